//! The known name that a misspelt one is nearest to.

/// Longer names are not compared: nothing known is that long.
const CHARS_MAX: usize = 64;

/// The candidate with the fewest letters to insert, remove, replace or swap, if a third of the name
/// at most is wrong.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > CHARS_MAX {
        return None;
    }
    let (changes, best) = known
        .map(|word| (strsim::osa_distance(name, word), word))
        .min_by_key(|(changes, _)| *changes)?;
    (changes < length && changes <= (length / 3).max(1)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_slips_are_recognised_and_others_are_not() {
        let known = ["workers", "rw", "filesystem", "fsync"];
        let near = |name| nearest(name, known.into_iter());
        assert_eq!(near("wrokers"), Some("workers"));
        assert_eq!(near("file-system"), Some("filesystem"));
        assert_eq!(near("fsyncs"), Some("fsync"));
        assert_eq!(near("colour"), None);
        assert_eq!(near(""), None);
    }
}
