//! The known name that a misspelt one is nearest to.

/// Longer names are not compared: nothing known is that long.
const CHARS_MAX: usize = 64;

/// The candidate with the fewest letters to change, if a third of the name at most is wrong.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length > CHARS_MAX {
        return None;
    }
    let (changes, best) =
        known.map(|word| (changes(name, word), word)).min_by_key(|(changes, _)| *changes)?;
    (changes < length && changes <= (length / 3).max(1)).then_some(best)
}

/// Letters to insert, remove or replace (Levenshtein), two neighbours swapped counting as one.
fn changes(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0_usize; to.len() + 1]; from.len() + 1];
    for (at, row) in rows.iter_mut().enumerate() {
        row[0] = at;
    }
    rows[0] = (0..=to.len()).collect();
    for i in 1..=from.len() {
        for j in 1..=to.len() {
            let replace = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            rows[i][j] = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                rows[i][j] = rows[i][j].min(rows[i - 2][j - 2] + 1);
            }
        }
    }
    rows[from.len()][to.len()]
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
