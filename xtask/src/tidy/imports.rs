//! What a file of a crate imports from the crate's other files: never in a circle, and never over
//! the border of a module that has one.
//!
//! An import is a path that begins with `crate` or `super`, in a `use` tree or in the code itself,
//! followed through re-exports to the file that declares the item. That a module names its own
//! modules is none: seen from outside they are one. Test code is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::source::SourceFile;
use super::tables::{MODULES, ModuleRules};
use super::{Breach, source, tables};

/// Re-exports that are followed before giving up.
const HOPS_MAX: usize = 8;

/// The files of one crate as modules.
struct Crate {
    modules: BTreeMap<Vec<String>, Module>,
}

struct Module {
    file: PathBuf,
    uses: Vec<Use>,
    /// Paths in the code besides `use` items.
    paths: Vec<Vec<String>>,
}

/// One name that a `use` item brings in; the module's name for all of a module.
#[derive(Debug)]
struct Use {
    path: Vec<String>,
    name: String,
}

impl Crate {
    /// The crates among the sources: everything under a `src` directory is one.
    pub fn of(sources: &[SourceFile]) -> Vec<Self> {
        let mut crates: BTreeMap<&Path, Self> = BTreeMap::new();
        for source in sources.iter().filter(|source| !source.is_test_file) {
            let Some(root) = source.path.ancestors().find(|dir| dir.ends_with("src")) else {
                continue;
            };
            let Ok(below) = source.path.strip_prefix(root) else { continue };
            let one = crates.entry(root).or_insert_with(|| Self { modules: BTreeMap::new() });
            one.modules.insert(module_path(below), Module::read(source));
        }
        crates.into_values().collect()
    }

    /// Every file with the files that it imports from.
    pub fn imports(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let of = |from: &[String], module: &Module| {
            let paths = module.uses.iter().map(|one| &one.path).chain(&module.paths);
            let inner = paths.filter(|path| path[0] == "crate" || path[0] == "super");
            let files = inner.filter_map(|path| self.resolve(from, path, HOPS_MAX));
            files.filter(|file| *file != module.file).collect()
        };
        self.modules.iter().map(|(path, it)| (it.file.as_path(), of(path, it))).collect()
    }

    /// The file that declares what `path` names when it is written in module `from`.
    fn resolve(&self, from: &[String], path: &[String], hops: usize) -> Option<&Path> {
        let mut at = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => from.to_vec(),
            name => match self.modules.contains_key(&joined(from, name)) {
                true => from.to_vec(),
                false => return self.follow(from, path, hops),
            },
        };
        for (index, name) in path.iter().enumerate() {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                _ if self.modules.contains_key(&joined(&at, name)) => at.push(name.clone()),
                _ => {
                    let followed = self.follow(&at, &path[index..], hops);
                    return followed.or_else(|| Some(&self.modules.get(&at)?.file));
                }
            }
        }
        self.modules.get(&at).map(|module| module.file.as_path())
    }

    /// The file behind the first name of `path` when module `at` has it from a `use`.
    fn follow(&self, at: &[String], path: &[String], hops: usize) -> Option<&Path> {
        let (name, rest) = path.split_first()?;
        let found = self.modules.get(at)?.uses.iter().find(|found| found.name == *name)?;
        self.resolve(at, &[&found.path, rest].concat(), hops.checked_sub(1)?)
    }
}

impl Module {
    fn read(source: &SourceFile) -> Self {
        let lines: Vec<&str> = source.lines().map(|(_, line)| line).collect();
        let (uses, code) = split_uses(&lines.join("\n"));
        Self { file: source.path.clone(), uses, paths: paths_in(&code) }
    }
}

/// `a/b.rs` and `a/b/mod.rs` are the module `a::b`; `lib.rs` and `main.rs` are the root.
fn module_path(below: &Path) -> Vec<String> {
    let below = below.with_extension("");
    let names = below.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    if names.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        names.pop();
    }
    names
}

fn joined(path: &[String], name: &str) -> Vec<String> {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

/// The `use` items of a file, and its code without them.
fn split_uses(code: &str) -> (Vec<Use>, String) {
    let (mut uses, mut rest, mut at) = (Vec::new(), String::new(), 0);
    for (start, _) in code.match_indices("use ") {
        let line_start = code[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let before = code[line_start..start].trim();
        let is_item = before.is_empty() || before == "pub" || before.starts_with("pub(");
        let Some(len) = code[start..].find(';').filter(|_| is_item && start >= at) else {
            continue;
        };
        let tree = &code[start + 4..start + len];
        flatten(&[], tree, &mut uses);
        rest.push_str(&code[at..line_start]);
        at = start + len + 1;
    }
    rest.push_str(&code[at..]);
    (uses, rest)
}

/// Takes a `use` tree apart: `a::{b, c::D as E}` is `a::b` and `a::c::D` under the name `E`.
fn flatten(prefix: &[String], tree: &str, uses: &mut Vec<Use>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let group = group.strip_suffix('}').unwrap_or(group);
        let head = head.split("::").map(str::trim).filter(|name| !name.is_empty());
        let prefix: Vec<String> = prefix.iter().cloned().chain(head.map(str::to_owned)).collect();
        for part in split_group(group) {
            flatten(&prefix, part, uses);
        }
        return;
    }
    let (path, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim())),
        None => (tree, None),
    };
    let names = path.split("::").map(|name| name.trim().to_owned());
    let mut path: Vec<String> = prefix.iter().cloned().chain(names).collect();
    if path.len() > 1 && path.last().is_some_and(|last| last == "self" || last == "*") {
        path.pop();
    }
    if let Some(name) = alias.or(path.last().map(String::as_str)) {
        uses.push(Use { name: name.to_owned(), path });
    }
}

/// The parts of a group, split at the commas outside of inner groups.
fn split_group(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, char) in group.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&group[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

/// Every path of at least two names in code.
fn paths_in(code: &str) -> Vec<Vec<String>> {
    let is_path = |char: char| source::is_word(char) || char == ':';
    code.split(|char| !is_path(char))
        .map(|path| path.split("::").map(str::to_owned).collect::<Vec<_>>())
        .filter(|path| path.len() > 1 && !path[0].is_empty() && !path[0].contains(':'))
        .collect()
}

// Files of a crate import each other in one direction.

/// Every import that closes a circle.
pub fn circles(sources: &[SourceFile]) -> Vec<Breach> {
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

// Which module of a crate may know which, where a crate has parts with borders of their own.
//
// Invariant: judged from the files that declare what is imported, so that a re-export hides
// nothing. Test code is left out.

/// Every import over a border.
pub fn borders_of_modules(sources: &[SourceFile]) -> Vec<Breach> {
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
        let words = line.split(|char| !super::source::is_word(char));
        words.filter_map(move |word| Some((number, word.strip_prefix("iostrata_")?)))
    });
    let crossed = words.filter(|(_, name)| !rules.may_use.contains(name));
    crossed
        .map(|(number, name)| Breach::new(&source.path, number, format!("must not know {name}")))
        .collect()
}

/// The module of a file, as the modules next to it call it: `page`; `lib` for the top of the crate.
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
pub fn stale_modules(sources: &[SourceFile]) -> Vec<Breach> {
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

    /// What `file` imports, by the names of files.
    fn imports(files: &[(&str, &str)], file: &str) -> Vec<String> {
        let read = |(path, text): &(&str, &str)| {
            SourceFile::read(&Path::new("crates/base/x/src").join(path), text)
        };
        let sources: Vec<SourceFile> = files.iter().map(read).collect();
        let crates = Crate::of(&sources);
        let imports = crates[0].imports();
        let found = imports.iter().find(|(path, _)| path.ends_with(file)).unwrap().1;
        let name =
            |path: &&Path| path.strip_prefix("crates/base/x/src").unwrap().display().to_string();
        found.iter().map(name).collect()
    }

    #[test]
    fn trees_are_taken_apart() {
        let mut uses = Vec::new();
        flatten(&[], "a::{self, b::{C, D as E}, f::*}", &mut uses);
        let found: Vec<(String, String)> =
            uses.iter().map(|found| (found.path.join("::"), found.name.clone())).collect();
        let expected = [("a", "a"), ("a::b::C", "C"), ("a::b::D", "E"), ("a::f", "f")];
        assert_eq!(found, expected.map(|(path, name)| (path.to_owned(), name.to_owned())));
    }

    #[test]
    fn paths_lead_to_files() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\npub use b::Other;\n"),
            ("a.rs", "mod deep;\nfn a() { deep::go(); crate::b::go() }\n"),
            ("a/deep.rs", "use std::fmt;\nuse crate::Other;\npub fn go() { super::a() }\n"),
            ("b/mod.rs", "pub use inner::Other;\nmod inner;\npub fn go() {}\n"),
            ("b/inner.rs", "use super::{\n    go,\n};\npub struct Other;\n"),
        ];
        assert_eq!(imports(&files, "a.rs"), ["b/mod.rs"], "its own modules are no imports");
        assert_eq!(imports(&files, "a/deep.rs"), ["a.rs", "b/inner.rs"], "through re-exports");
        assert_eq!(imports(&files, "b/inner.rs"), ["b/mod.rs"]);
        assert!(imports(&files, "lib.rs").is_empty());
    }

    #[test]
    fn tests_import_what_they_like() {
        let test = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n";
        let files = [("lib.rs", "mod a;\nmod b;\n"), ("a.rs", test), ("b.rs", "struct B;\n")];
        assert!(imports(&files, "a.rs").is_empty());
    }
}

#[cfg(test)]
mod circles_tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let read =
            |(path, text): &(&str, &str)| SourceFile::read(&Path::new("x/src").join(path), text);
        let sources: Vec<SourceFile> = files.iter().map(read).collect();
        let named = |breach: Breach| format!("{} {}", breach.path.display(), breach.text);
        circles(&sources).into_iter().map(named).collect()
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

#[cfg(test)]
mod modules_tests {
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
        borders_of_modules(&sources).into_iter().map(|breach| breach.text).collect()
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
        assert!(stale_modules(&sources).is_empty());
        assert_eq!(stale_modules(&sources[1..]).len(), 1);
    }
}
