//! A name of a type says which type is meant: it is not declared all over the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Breach;
use super::source::SourceFile;
use super::tables::NAME_CRATES_MAX;

/// Types whose name is declared in too many crates.
pub fn judge(sources: &[SourceFile]) -> Vec<Breach> {
    let mut crates_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut places: Vec<(&str, &Path, usize)> = Vec::new();
    for source in sources {
        for (line, name) in source.lines().filter_map(|(at, line)| Some((at, declared(line)?))) {
            crates_of.entry(name).or_default().insert(source.crate_name());
            places.push((name, &source.path, line));
        }
    }
    let breach = |(name, path, line): (&str, &Path, usize)| {
        let count = crates_of.get(name).map_or(0, BTreeSet::len);
        let text = format!(
            "{name} is a type of {count} crates, {NAME_CRATES_MAX} are allowed; say which {name}"
        );
        (count > NAME_CRATES_MAX).then(|| Breach::new(path, line, text))
    };
    places.into_iter().filter_map(breach).collect()
}

/// The type that a line declares. Associated types and types of a macro are none.
fn declared(line: &str) -> Option<&str> {
    let item = match line.trim_start().strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line.trim_start(),
    };
    let item = item.strip_prefix("unsafe ").unwrap_or(item);
    let (kind, rest) = item.split_once(' ')?;
    let is_type = match kind {
        "struct" | "enum" | "union" | "trait" => true,
        "type" => !line.starts_with(' '),
        _ => false,
    };
    let end = rest.find(|char| !super::rust::is_word(char)).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| is_type && !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_seen() {
        for line in [
            "struct Place;",
            "pub struct Place<T> {",
            "    enum Place {",
            "pub(crate) unsafe trait Place: Send {",
            "pub(in crate::drive) type Place = u64;",
        ] {
            assert_eq!(declared(line), Some("Place"), "{line}");
        }
        for line in ["    type Place = u64;", "let struct_place = 1;", "impl Place {", "use a;"] {
            assert_eq!(declared(line), None, "{line}");
        }
    }

    fn sources(crates: &[&str]) -> Vec<SourceFile> {
        let path = |name: &&str| Path::new("crates/base").join(name).join("src/lib.rs");
        let text = "pub struct Place;\n#[cfg(test)]\nmod tests { struct Place; struct Test; }\n";
        crates.iter().map(|name| SourceFile::read(&path(name), text)).collect()
    }

    #[test]
    fn a_name_in_many_crates_is_named() {
        assert!(judge(&sources(&["a", "b", "c", "c"])).is_empty());
        let found = judge(&sources(&["a", "b", "c", "d"]));
        assert_eq!((found.len(), found[0].line), (4, 1));
    }
}
