//! Files of a crate import each other in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Breach;
use super::imports::Crate;
use super::source::SourceFile;
use super::tables::{CIRCLES, SPLIT_IMPLS};

/// Circles that the tables do not list, and what they list without need.
pub fn judge(sources: &[SourceFile]) -> Vec<Breach> {
    breaches(sources, SPLIT_IMPLS, CIRCLES)
}

fn breaches(sources: &[SourceFile], split_impls: &[&str], known: &[&str]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut in_circles: BTreeSet<&str> = BTreeSet::new();
    let crates = Crate::of(sources);
    for mut imports in crates.iter().map(Crate::imports) {
        imports.retain(|file, _| !is_listed(split_impls, file));
        for circle in circles(&imports) {
            in_circles.extend(circle.iter().filter_map(|file| file.to_str()));
            let new = circle.iter().filter(|file| !is_listed(known, file));
            breaches.extend(new.map(|file| {
                let others = circle.iter().filter(|other| *other != file);
                let names: Vec<String> = others.map(|other| other.display().to_string()).collect();
                let text = format!("in an import circle with {}", names.join(", "));
                Breach::new(file, 0, text)
            }));
        }
    }
    let stale = known.iter().filter(|file| !in_circles.contains(*file));
    breaches.extend(stale.map(|file| {
        let text = "in no import circle any more; take it off the list in xtask's tables";
        Breach::new(Path::new(file), 0, text)
    }));
    breaches
}

fn is_listed(list: &[&str], file: &Path) -> bool {
    list.iter().any(|listed| Path::new(listed) == file)
}

/// Groups of files each of which imports all the others, directly or through each other.
fn circles<'a>(imports: &BTreeMap<&'a Path, BTreeSet<&'a Path>>) -> Vec<BTreeSet<&'a Path>> {
    let reached = |from: &'a Path| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(next) = open.pop().and_then(|file| imports.get(file)) {
            open.extend(next.iter().copied().filter(|file| seen.insert(*file)));
        }
        seen
    };
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        imports.keys().map(|file| (*file, reached(file))).collect();
    let circle_of = |file: &'a Path| -> BTreeSet<&'a Path> {
        let both = |other: &&Path| reached.get(*other).is_some_and(|seen| seen.contains(file));
        reached[file].iter().copied().filter(both).collect()
    };
    let all: BTreeSet<_> = imports.keys().map(|file| circle_of(file)).collect();
    all.into_iter().filter(|circle| !circle.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Vec<SourceFile> {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
            ("a.rs", "use crate::b::B;\npub struct A;\n"),
            ("b.rs", "use crate::c::C;\npub struct B;\n"),
            ("c.rs", "use super::a::A;\npub struct C;\n"),
            ("d.rs", "use crate::a::A;\n"),
        ];
        let read =
            |(path, text): (&str, &str)| SourceFile::read(&Path::new("x/src").join(path), text);
        files.map(read).into()
    }

    const ALL: [&str; 3] = ["x/src/a.rs", "x/src/b.rs", "x/src/c.rs"];

    #[test]
    fn every_file_of_a_circle_is_named_and_no_other() {
        let found = breaches(&sources(), &[], &[]);
        let files: Vec<&str> = found.iter().map(|breach| breach.path.to_str().unwrap()).collect();
        assert_eq!(files, ALL);
        assert!(found[0].text.ends_with("with x/src/b.rs, x/src/c.rs"), "{found:?}");
    }

    #[test]
    fn the_list_covers_what_it_names_and_only_shrinks() {
        assert!(breaches(&sources(), &[], &ALL).is_empty());
        assert_eq!(breaches(&sources(), &[], &ALL[1..]).len(), 1);
        assert_eq!(breaches(&sources(), &[], &[&ALL[..], &["x/src/d.rs"]].concat()).len(), 1);
    }

    #[test]
    fn a_split_impl_closes_no_circle() {
        assert!(breaches(&sources(), &ALL[..1], &[]).is_empty());
        assert!(SPLIT_IMPLS.len() <= 3, "three at most");
    }
}
