//! The name that was probably meant.

use super::{CATALOGUE, plain};

/// Edits beyond which a name is another one.
const EDITS_MAX: usize = 4;

/// The setting whose name is nearest to this one, when one is near.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = plain(name);
    if name.len() > 64 {
        return None;
    }
    let names = CATALOGUE
        .iter()
        .flat_map(|setting| std::iter::once(setting.name).chain(setting.aliases.iter().copied()));
    let allowed = EDITS_MAX.min(name.len() / 3);
    names
        .map(|known| (!is_part(&name, known), edits(&name, known), known))
        .filter(|(is_other, edits, _)| !is_other || *edits <= allowed)
        .min()
        .map(|(_, _, known)| known)
}

/// Whether a long piece of a name was typed for the whole.
fn is_part(name: &str, known: &str) -> bool {
    name.len() >= 6 && known.contains(name)
}

/// Letters to insert, delete or replace to make one name of the other (Levenshtein's distance).
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        for (from, to, distance) in
            [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("io_capacty", "io_capacity", 1)]
        {
            assert_eq!(edits(from, to), distance, "{from} {to}");
            assert_eq!(edits(to, from), distance, "{to} {from}");
        }
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        for (typed, meant) in [
            ("io_capacty", Some("io_capacity")),
            ("innodb-bufer-pool-size", Some("buffer_pool_size")),
            ("redo_log_capasity", Some("redo_log_capacity")),
            ("double_write", Some("doublewrite")),
            ("pool_size", Some("buffer_pool_size")),
            ("query_cache_type", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed), meant, "{typed}");
        }
    }
}
