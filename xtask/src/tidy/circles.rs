//! Files of a crate import each other in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::Breach;
use super::imports::Crate;
use super::source::SourceFile;

/// Every import that closes a circle.
pub fn judge(sources: &[SourceFile]) -> Vec<Breach> {
    Crate::of(sources).iter().flat_map(|one| closing(&one.imports())).collect()
}

fn closing(imports: &BTreeMap<&Path, BTreeSet<&Path>>) -> Vec<Breach> {
    let edges = imports.iter().flat_map(|(file, to)| to.iter().map(move |to| (*file, *to)));
    let in_circle = edges.filter(|(file, to)| reached(imports, to).contains(file));
    let breach = |(file, to): (&Path, &Path)| {
        Breach::new(file, 0, format!("imports {}, which leads back to it", to.display()))
    };
    in_circle.map(breach).collect()
}

/// What a file imports, directly or through others.
fn reached<'a>(
    imports: &BTreeMap<&'a Path, BTreeSet<&'a Path>>,
    from: &'a Path,
) -> BTreeSet<&'a Path> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        let next = imports.get(file).into_iter().flatten().copied();
        open.extend(next.filter(|file| seen.insert(*file)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let read =
            |(path, text): &(&str, &str)| SourceFile::read(&Path::new("x/src").join(path), text);
        let sources: Vec<SourceFile> = files.iter().map(read).collect();
        let named = |breach: Breach| format!("{} {}", breach.path.display(), breach.text);
        judge(&sources).into_iter().map(named).collect()
    }

    #[test]
    fn every_import_of_a_circle_is_named_and_no_other() {
        let found = found(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
            ("a.rs", "use crate::b::B;\npub struct A;\n"),
            ("b.rs", "use crate::c::C;\npub struct B;\n"),
            ("c.rs", "use super::a::A;\npub struct C;\n"),
            ("d.rs", "use crate::a::A;\n"),
        ]);
        assert_eq!(
            found,
            [
                "x/src/a.rs imports x/src/b.rs, which leads back to it",
                "x/src/b.rs imports x/src/c.rs, which leads back to it",
                "x/src/c.rs imports x/src/a.rs, which leads back to it",
            ]
        );
    }

    #[test]
    fn the_search_goes_on_behind_a_file_without_imports() {
        let path = Path::new;
        let imports = [(path("a"), [path("b"), path("z")].into()), (path("b"), [path("a")].into())];
        assert_eq!(closing(&imports.into()).len(), 2);
    }
}
