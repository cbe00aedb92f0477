//! Which module of a crate may know which, where a crate has parts with borders of their own.
//!
//! Invariant: judged from the files that declare what is imported, so that a re-export hides
//! nothing. Test code is left out.

use std::path::Path;

use super::Breach;
use super::imports::Crate;
use super::source::SourceFile;
use super::tables::{self, MODULES, ModuleRules};

/// Every import over a border.
pub fn judge(sources: &[SourceFile]) -> Vec<Breach> {
    let crates = Crate::of(sources);
    let imports = crates.iter().flat_map(Crate::imports);
    let inner = imports.filter_map(|(file, to)| Some((file, to, tables::module_of(file)?)));
    let inner = inner.flat_map(|(file, to, rules)| {
        let names = to.into_iter().map(move |to| module_name(rules, to));
        let crossed = names.filter(move |name| !may_use(rules, name));
        crossed.map(move |name| Breach::new(file, 0, format!("must not know {name}")))
    });
    inner.chain(sources.iter().filter(|source| !source.is_test_file).flat_map(crates_of)).collect()
}

/// Every crate of ours that a module must not know.
fn crates_of(source: &SourceFile) -> Vec<Breach> {
    let Some(rules) = tables::module_of(&source.path) else { return Vec::new() };
    let words = source.lines().flat_map(|(number, line)| {
        let words = line.split(|char| !super::rust::is_word(char));
        words.filter_map(move |word| Some((number, word.strip_prefix("iostrata_")?)))
    });
    let crossed = words.filter(|(_, name)| !rules.may_use.contains(name));
    crossed
        .map(|(number, name)| Breach::new(&source.path, number, format!("must not know {name}")))
        .collect()
}

/// The module of a file, as those beside it call it: `page`; `lib` for the top of the crate.
fn module_name(rules: &ModuleRules, file: &Path) -> String {
    let src = Path::new(rules.dir).parent().unwrap_or(Path::new(""));
    let below = file.strip_prefix(src).unwrap_or(file).with_extension("");
    let first = below.components().next();
    first.map(|part| part.as_os_str().to_string_lossy().into_owned()).unwrap_or_default()
}

fn may_use(rules: &ModuleRules, name: &str) -> bool {
    Path::new(rules.dir).ends_with(name) || rules.may_use.contains(&name)
}

/// Modules of the table that are gone.
pub fn stale(sources: &[SourceFile]) -> Vec<Breach> {
    let is_there = |rules: &&ModuleRules| {
        let files =
            [Path::new(rules.dir).join("mod.rs"), Path::new(rules.dir).with_extension("rs")];
        sources.iter().any(|source| files.contains(&source.path))
    };
    let gone = MODULES.iter().filter(|rules| !is_there(rules));
    let text = "is in the table of modules but not in the workspace";
    gone.map(|rules| Breach::new(Path::new(rules.dir), 0, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(store: &str) -> Vec<String> {
        let files = [
            ("lib.rs", "pub mod page;\npub mod redo;\npub mod store;\nmod poison;\n"),
            ("page/mod.rs", "mod view;\npub use view::View;\n"),
            ("page/view.rs", "pub struct View;\n"),
            ("poison.rs", "pub struct Poison;\n"),
            ("redo/mod.rs", "pub struct Redo;\n"),
            ("store/mod.rs", "mod read;\n"),
            ("store/read.rs", store),
        ];
        let read = |(path, text): &(&str, &str)| {
            SourceFile::read(&Path::new("crates/engine/engine/src").join(path), text)
        };
        let sources: Vec<SourceFile> = files.iter().map(read).collect();
        judge(&sources).into_iter().map(|breach| breach.text).collect()
    }

    #[test]
    fn a_module_keeps_to_its_line_of_the_table() {
        assert!(found("use iostrata_io::disk::Disk;\nuse crate::page::View;\n").is_empty());
        assert_eq!(found("use crate::redo::Redo;\n"), ["must not know redo"]);
        assert_eq!(found("fn a() { crate::poison::Poison; }\n"), ["must not know poison"]);
        assert_eq!(found("use iostrata_stats::Measured;\n"), ["must not know stats"]);
        assert!(found("#[cfg(test)]\nmod tests { use crate::redo::Redo; }\n").is_empty());
    }

    #[test]
    fn the_table_names_modules_that_are_there() {
        let mods = MODULES.iter().map(|rules| Path::new(rules.dir).join("mod.rs"));
        let sources: Vec<SourceFile> = mods.map(|path| SourceFile::read(&path, "")).collect();
        assert!(stale(&sources).is_empty());
        assert_eq!(stale(&sources[1..]).len(), 1);
    }
}
