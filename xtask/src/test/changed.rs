//! What a change concerns.
//!
//! Purpose: from changed files to the packages whose tests can see the change, to the modules of
//! the program's own tests that are about it, and to those of other packages that it reaches by a
//! dependency that they use. What only tests depend on concerns these and nothing above them; a
//! part of a crate that nothing else in it names concerns the packages that name it.
//! Invariant: a file that belongs to no package and is read by none concerns no test; what every
//! package is built by concerns all. It reads imports from Cargo.toml only, so it chooses too much
//! rather than too little.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::lanes;
use super::targets::{Target, TargetKind};
use crate::tidy::tables::{MODULES, ModuleRules};
use crate::workspace::{Package, Workspace};

/// The package of the program.
const PROGRAM: &str = "iostrata";
/// Its integration tests, which all packages stand below.
const CLI: &str = "crates/show/iostrata/tests/cli/";
/// What every package is built by.
const FOR_ALL: [&str; 3] = ["Cargo.toml", "Cargo.lock", ".cargo/"];
/// Workspaces of their own.
const APART: [&str; 2] = ["crates/peers/", "fuzz/"];

/// What a change concerns.
#[derive(Debug, PartialEq, Eq)]
pub struct Concern {
    /// Packages that have a changed file.
    changed: BTreeSet<String>,
    /// The part of the package that each changed file lies in: `database/tune`. Empty where the
    /// file is of no part.
    parts: BTreeMap<String, BTreeSet<String>>,
    /// These, all that stand on them, and those whose tests alone do.
    closure: BTreeSet<String>,
    /// Of the last, those whose unit tests name nothing of it.
    without_units: BTreeSet<String>,
    /// For packages that depend on a changed one, the dependencies by which.
    by: BTreeMap<String, BTreeSet<String>>,
    /// Modules of the program's tests that changed themselves.
    modules: BTreeSet<String>,
}

impl Concern {
    /// What differs from the commit `base`, or where there is none from where `main` was left.
    ///
    /// # Errors
    /// When git cannot be run or does not know the commit.
    pub fn since(workspace: &Workspace, base: Option<&str>) -> Result<Self> {
        let base = match base {
            Some(base) => base.to_owned(),
            None => git(&workspace.root, &["merge-base", "HEAD", "main"])
                .unwrap_or_else(|_| "HEAD".to_owned()),
        };
        let base = base.trim();
        let mut files = git(&workspace.root, &["diff", "--name-only", base, "--"])?;
        files += &git(&workspace.root, &["ls-files", "--others", "--exclude-standard"])?;
        let files: Vec<PathBuf> = files.lines().map(PathBuf::from).collect();
        let short = base.get(..12).unwrap_or(base);
        println!("{} files differ from {short}", files.len());
        let concern = Self::of(workspace, &files)?;
        let tested: Vec<&str> = concern.packages().chain(concern.modules()).collect();
        println!("tested: {}", if tested.is_empty() { "nothing".into() } else { tested.join(" ") });
        Ok(concern)
    }

    fn of(workspace: &Workspace, files: &[PathBuf]) -> Result<Self> {
        let (changed, closure, without_units, modules) = Default::default();
        let (by, parts) = Default::default();
        let mut concern = Self { changed, parts, closure, without_units, by, modules };
        for file in files {
            concern.add(workspace, file)?;
        }
        concern.close(workspace)?;
        Ok(concern)
    }

    fn add(&mut self, workspace: &Workspace, file: &Path) -> Result<()> {
        let text = file.to_string_lossy();
        if APART.iter().any(|dir| text.starts_with(dir)) {
            println!("not checked, a workspace of its own: {text}");
            return Ok(());
        }
        if FOR_ALL.iter().any(|one| text == *one || one.ends_with('/') && text.starts_with(one)) {
            for package in &workspace.packages {
                self.insert(package, String::new());
            }
            return Ok(());
        }
        if let Some(module) = text.strip_prefix(CLI).and_then(|name| name.strip_suffix(".rs")) {
            let is_test = lanes::ROWS.iter().any(|row| row.tests == format!("{module}::"));
            if is_test {
                self.modules.insert(module.to_owned());
                return Ok(());
            }
        }
        if let Some(package) = owner(workspace, file) {
            self.insert(package, part(workspace, file));
            return Ok(());
        }
        for package in &workspace.packages {
            if reads(package, file)? {
                self.insert(package, String::new());
            }
        }
        Ok(())
    }

    fn insert(&mut self, package: &Package, part: String) {
        self.changed.insert(package.name.clone());
        self.parts.entry(package.name.clone()).or_default().insert(part);
    }

    fn close(&mut self, workspace: &Workspace) -> Result<()> {
        let apart = self.apart(workspace)?;
        let mut seen = self.changed.clone();
        loop {
            let before = seen.len();
            for package in &workspace.packages {
                for library in package.dependencies.iter().filter(|one| !one.for_tests) {
                    let is_seen = seen.contains(&library.name) && !seen.contains(&package.name);
                    if is_seen && names(package, apart.get(&library.name))? {
                        seen.insert(package.name.clone());
                    }
                }
            }
            if seen.len() == before {
                break;
            }
        }
        self.closure = seen.clone();
        for package in &workspace.packages {
            let mut by = BTreeSet::new();
            for name in package.dependencies.iter().map(|one| &one.name) {
                if seen.contains(name) && names(package, apart.get(name))? {
                    by.insert(name.clone());
                }
            }
            if !by.is_empty() && self.closure.insert(package.name.clone()) {
                let crates = by.iter().map(|name| name.replace('-', "_"));
                let crates: Vec<String> = crates.collect();
                let is_named = |text: &str| crates.iter().any(|name| text.contains(name));
                if !any_source(&source_dir(package).join("src"), is_named)? {
                    self.without_units.insert(package.name.clone());
                }
            }
            self.by.insert(package.name.clone(), by);
        }
        Ok(())
    }

    /// The changed packages of which nothing but parts changed that no other source of theirs
    /// names, and these parts: a package that does not name them either sees nothing of the change.
    fn apart(&self, workspace: &Workspace) -> Result<BTreeMap<String, Vec<String>>> {
        let mut apart = BTreeMap::new();
        for package in workspace.packages.iter().filter(|one| self.changed.contains(&one.name)) {
            let parts = self.parts.get(&package.name).into_iter().flatten();
            let name = |part: &String| part.split_once('/').map(|(_, name)| name.to_owned());
            let Some(parts) = parts.map(name).collect::<Option<Vec<String>>>() else { continue };
            let source = source_dir(package).join("src");
            let is_own = |path: &Path| {
                let place = path.strip_prefix(&source).unwrap_or(path).with_extension("");
                place.iter().next().is_some_and(|first| parts.iter().any(|part| first == &**part))
            };
            let is_named = |path: &Path, text: &str| !is_own(path) && names_any(text, &parts);
            if !parts.is_empty() && !any_file(&source, is_named)? {
                apart.insert(package.name.clone(), parts);
            }
        }
        Ok(apart)
    }

    /// Whether tests of this binary may see the change.
    pub fn holds(&self, target: &Target) -> bool {
        let is_seen = match target.kind {
            TargetKind::Unit => !self.without_units.contains(&target.package),
            _ => true,
        };
        (is_seen && self.closure.contains(&target.package))
            || (!self.modules.is_empty() && target.short_name() == "cli")
    }

    /// Whether a test of a binary is to be run.
    pub fn chooses(&self, target: &Target, test: &str) -> bool {
        if target.kind == TargetKind::Unit {
            return true;
        }
        let Some(row) = lanes::row_of(target.short_name(), test) else { return true };
        if self.changed.contains(&target.package) {
            return !self.is_only_in(&target.package, row.without);
        }
        let is_of = |name: &str, names: &[&str]| {
            name.strip_prefix("iostrata-").is_some_and(|name| names.contains(&name))
        };
        if row.binary != "cli" {
            let by = self.by.get(&target.package);
            return by.is_some_and(|by| by.iter().any(|name| !is_of(name, row.without)));
        }
        let module = test.split("::").next().unwrap_or_default();
        let mut changed = self.changed.iter();
        self.modules.contains(module)
            || changed.any(|name| is_of(name, row.about) && !self.is_only_in(name, row.without))
    }

    /// Whether all that changed in a package lies in these parts of it.
    fn is_only_in(&self, package: &str, parts: &[&str]) -> bool {
        let changed = self.parts.get(package);
        changed.is_some_and(|changed| changed.iter().all(|part| parts.contains(&part.as_str())))
    }

    fn modules(&self) -> impl Iterator<Item = &str> {
        self.modules.iter().map(String::as_str)
    }

    /// The packages whose tests run.
    fn packages(&self) -> impl Iterator<Item = &str> {
        self.closure.iter().map(String::as_str)
    }
}

/// The package that a file lies in. The program's package lies at the top, its code with the
/// others.
fn owner<'a>(workspace: &'a Workspace, file: &Path) -> Option<&'a Package> {
    if file.starts_with("crates/show/iostrata") {
        return workspace.packages.iter().find(|package| package.name == PROGRAM);
    }
    let place = workspace.root.join(file);
    let is_in = |package: &&Package| package.name != PROGRAM && place.starts_with(&package.dir);
    workspace.packages.iter().find(is_in)
}

/// The part of its crate that a file lies in: one that tidy's table of modules holds apart.
fn part(workspace: &Workspace, file: &Path) -> String {
    let is_in = |rules: &&ModuleRules| {
        file.starts_with(rules.dir) || file == Path::new(rules.dir).with_extension("rs")
    };
    let Some(rules) = MODULES.iter().find(is_in) else { return String::new() };
    let owner = owner(workspace, file).map_or("", |package| package.name.as_str());
    let name = Path::new(rules.dir).file_name().unwrap_or_default().to_string_lossy();
    format!("{}/{name}", owner.trim_start_matches("iostrata-"))
}

/// Whether the source of a package names a file at the top, or the directory that it lies in.
fn reads(package: &Package, file: &Path) -> Result<bool> {
    let text = file.to_string_lossy();
    let parent = file.parent().map(|dir| format!("{}/", dir.display())).unwrap_or_default();
    let is_own_place = parent.len() > 1 && parent != "docs/";
    let is_read =
        |source: &str| source.contains(&*text) || is_own_place && source.contains(&parent);
    any_source(&source_dir(package), is_read)
}

/// Where a package has its code: the program's does not lie next to its Cargo.toml.
fn source_dir(package: &Package) -> PathBuf {
    match &*package.name {
        PROGRAM => package.dir.join("crates/show/iostrata"),
        _ => package.dir.clone(),
    }
}

/// Whether a package names one of these modules; without such a list it may name anything.
fn names(package: &Package, modules: Option<&Vec<String>>) -> Result<bool> {
    let Some(modules) = modules else { return Ok(true) };
    any_source(&source_dir(package), |text| names_any(text, modules))
}

fn names_any(text: &str, modules: &[String]) -> bool {
    modules.iter().any(|module| text.contains(&format!("{module}::")))
}

/// Whether the text of any source file below a directory is like this.
fn any_source(dir: &Path, is_like: impl Fn(&str) -> bool) -> Result<bool> {
    any_file(dir, |_, text| is_like(text))
}

/// Whether any source file below a directory is like this, by its place and its text.
fn any_file(dir: &Path, is_like: impl Fn(&Path, &str) -> bool) -> Result<bool> {
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries = std::fs::read_dir(&dir);
        for entry in entries.with_context(|| format!("cannot read {}", dir.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|end| end == "rs")
                && is_like(&path, &std::fs::read_to_string(&path)?)
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new("git").args(words).current_dir(root).output();
    let output = output.context("cannot run git, from which --changed reads what has changed")?;
    if !output.status.success() {
        bail!("git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn concern(files: &[&str]) -> Concern {
        let workspace = Workspace::read().unwrap();
        let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
        Concern::of(&workspace, &files).unwrap()
    }

    fn cli() -> Target {
        integration(PROGRAM, "cli")
    }

    fn integration(package: &str, name: &str) -> Target {
        Target {
            package: package.into(),
            version: "1".into(),
            name: name.into(),
            kind: TargetKind::Integration,
            executable: PathBuf::new(),
            dir: PathBuf::new(),
            programs: Vec::new(),
        }
    }

    #[test]
    fn servers_are_for_packages_that_are_tested_with_them() {
        let workspace = Workspace::read().unwrap();
        let uses = |name: &str| workspace.tests_stand_on(name, "iostrata-server");
        // By itself, by a library, by tests alone.
        assert!(uses("iostrata-server") && uses("iostrata") && uses("iostrata-workload"));
        assert!(!uses("iostrata-stats") && !uses("iostrata-engine") && !uses("iostrata-change"));
    }

    #[test]
    fn a_crate_concerns_what_stands_on_it_and_the_modules_about_it() {
        let show = concern(&["crates/show/show/src/lib.rs"]);
        assert_eq!(show.packages().collect::<Vec<_>>(), [PROGRAM, "iostrata-show"]);
        assert!(show.holds(&cli()));
        assert!(show.chooses(&cli(), "simulate::a"));
        assert!(!show.chooses(&cli(), "tune_words::a"));
        let stats = concern(&["crates/base/stats/src/lib.rs"]);
        assert_eq!(stats.packages().count(), Workspace::read().unwrap().packages.len());
    }

    #[test]
    fn what_a_package_tests_without_the_changed_one_is_left_out() {
        let (database, workload) =
            (integration("iostrata-database", "it"), integration("iostrata-workload", "it"));
        let engine = concern(&["crates/engine/engine/src/lib.rs"]);
        assert!(engine.holds(&database) && engine.holds(&workload));
        assert!(engine.chooses(&database, "engine::a") && engine.chooses(&workload, "tpcc::a"));
        assert!(
            !engine.chooses(&database, "stalls::a") && !engine.chooses(&workload, "servers::a")
        );
        // Through another dependency, and in the package itself, a change concerns all of them.
        for file in ["crates/database/server/src/lib.rs", "crates/database/database/src/lib.rs"] {
            let below = concern(&[file]);
            assert!(
                below.chooses(&database, "stalls::a") && below.chooses(&workload, "servers::a")
            );
        }
        let own = concern(&["crates/database/database/tests/it/stage.rs"]);
        assert!(own.chooses(&database, "stalls::a"));
    }

    #[test]
    fn a_part_of_a_crate_concerns_the_tests_that_are_about_it() {
        let database = integration("iostrata-database", "it");
        let tune = concern(&["crates/database/database/src/tune/mod.rs"]);
        assert!(tune.chooses(&cli(), "tune_words::a") && !tune.chooses(&cli(), "server::a"));
        assert!(!tune.chooses(&database, "stalls::a") && tune.chooses(&database, "closed_loop::a"));
        // Nothing but the program names it, and the tests of its own crate.
        assert_eq!(tune.packages().collect::<Vec<_>>(), [PROGRAM, "iostrata-database"]);
        let everywhere = concern(&["crates/database/database/src/tune/mod.rs", "Cargo.lock"]);
        assert!(everywhere.chooses(&database, "stalls::a"));
        // The engine's other modules name this one.
        let page = concern(&["crates/engine/engine/src/page/mod.rs"]);
        assert!(page.packages().any(|name| name == "iostrata-embedded"));
        let both = ["tune/mod.rs", "target/mod.rs"]
            .map(|file| format!("crates/database/database/src/{file}"));
        let both = concern(&both.each_ref().map(String::as_str));
        assert!(both.chooses(&cli(), "server::a") && both.chooses(&database, "stalls::a"));
    }

    #[test]
    fn what_tests_alone_depend_on_concerns_nothing_above_them() {
        let engine = concern(&["crates/engine/engine/src/lib.rs"]);
        let unit = |name: &str| {
            let package = format!("iostrata-{name}");
            Target { kind: TargetKind::Unit, ..integration(&package, name) }
        };
        // They stand on the engine in their integration tests only.
        for name in ["database", "workload"] {
            let tests = integration(&format!("iostrata-{name}"), "it");
            assert!(engine.holds(&tests) && !engine.holds(&unit(name)), "{name}");
        }
        assert!(engine.holds(&unit("embedded")) && engine.holds(&unit("engine")));
        let dir = Workspace::read().unwrap().root.join("xtask");
        let package = |name: &str, on: &str, for_tests: bool| Package {
            name: name.to_owned(),
            version: String::new(),
            dir: dir.clone(),
            dependencies: vec![Dependency { name: on.to_owned(), for_tests }],
            integration_tests: 1,
        };
        let packages = vec![
            package("in-library", "changed", false),
            package("tests-alone", "in-library", true),
            package("above", "tests-alone", false),
            // The sources of this crate name it.
            package("units-too", "serde-json", true),
        ];
        let workspace = Workspace { root: dir.clone(), target: dir.clone(), packages };
        let mut concern = Concern::of(&workspace, &[]).unwrap();
        concern.changed = ["changed", "serde-json"].map(str::to_owned).into();
        concern.close(&workspace).unwrap();
        let closure: Vec<&str> = concern.packages().collect();
        assert_eq!(closure, ["changed", "in-library", "serde-json", "tests-alone", "units-too"]);
        assert_eq!(concern.without_units.iter().collect::<Vec<_>>(), ["tests-alone"]);
    }

    #[test]
    fn a_test_module_concerns_itself() {
        let study = concern(&["crates/show/iostrata/tests/cli/study.rs"]);
        assert_eq!(study.packages().count(), 0);
        assert!(study.holds(&cli()) && study.chooses(&cli(), "study::a"));
        assert!(!study.chooses(&cli(), "tune::a"));
        let harness = concern(&["crates/show/iostrata/tests/cli/harness.rs"]);
        assert!(harness.chooses(&cli(), "tune::a") && harness.chooses(&cli(), "study::a"));
    }

    #[test]
    fn documents_concern_those_who_read_them() {
        let page = concern(&["docs/fio.md"]);
        assert!(page.packages().any(|name| name == "iostrata-plan"));
        let unread = format!("no-such-{}", "page.md");
        assert_eq!(concern(&[&unread]).packages().count(), 0);
        assert_eq!(concern(&["fuzz/Cargo.toml"]).packages().count(), 0);
        let workspace = Workspace::read().unwrap();
        assert_eq!(concern(&["Cargo.lock"]).packages().count(), workspace.packages.len());
        let study = std::fs::read_dir(workspace.root.join("studies")).unwrap().next();
        let study = PathBuf::from("studies").join(study.unwrap().unwrap().file_name());
        let study = concern(&[&study.to_string_lossy()]);
        assert!(study.changed.contains("iostrata-plan"));
    }
}
