//! The table of lanes names every module of tests that it should, and nothing that is not there.
//!
//! Invariant: a module of the program's tests without a row would run in parallel with anything,
//! and never after a change; it is a breach. So is a dependency that a row leaves out and its
//! module names.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Breach;
use super::tables::{CRATES, MODULES};
use crate::test::lanes::{LaneRow, ROWS, UNITS};

/// Where the table is.
const TABLE: &str = "xtask/src/test/lanes.rs";

/// Judges the table against the modules that there are.
///
/// # Errors
/// When the main file of a binary in the table cannot be read.
pub fn judge(root: &Path) -> Result<Vec<Breach>> {
    let mut binaries: Vec<&str> = ROWS.iter().map(|row| row.binary).collect();
    binaries.dedup();
    let mut breaches = Vec::new();
    for binary in binaries {
        let main = main_of(binary).with_context(|| format!("no crate is named {binary}"))?;
        let text = fs::read_to_string(root.join(&main));
        let text = text.with_context(|| format!("cannot read {}", main.display()))?;
        let has_tests = |module: &&str| {
            let file = root.join(&main).with_file_name(format!("{module}.rs"));
            let inside = root.join(&main).with_file_name(module);
            inside.is_dir() || fs::read_to_string(file).is_ok_and(|text| text.contains("#[test]"))
        };
        let modules: Vec<&str> = modules(&text).filter(has_tests).collect();
        let rows: Vec<&LaneRow> = ROWS.iter().filter(|row| row.binary == binary).collect();
        breaches.extend(judge_binary(binary, &main, &modules, &rows));
        for row in rows.iter().filter(|row| !row.without.is_empty()) {
            let is_own = |module: &&str| match module_of(row) {
                "" => !rows.iter().any(|other| module_of(other) == *module),
                own => own == *module,
            };
            let dir = root.join(main.with_file_name(""));
            let text = modules.iter().copied().filter(is_own).map(|module| code(&dir, module));
            let text: String = text.collect();
            let file = main.with_file_name(module_of(row)).with_extension("rs");
            let beside = main.ancestors().nth(3).filter(|_| binary != "cli");
            let manifest = beside.unwrap_or(Path::new("")).join("Cargo.toml");
            let manifest = fs::read_to_string(root.join(&manifest));
            let manifest = manifest.with_context(|| format!("{binary} has no Cargo.toml"))?;
            breaches.extend(judge_without(row, &file, &text, &manifest));
        }
    }
    breaches.extend(UNITS.iter().filter_map(|(name, tests)| judge_unit(root, name, tests)));
    let is_crate = |name: &&str| CRATES.iter().any(|one| one.name == *name);
    let about = ROWS.iter().flat_map(|row| row.about.iter().copied());
    breaches.extend(about.filter(|name| !is_crate(name)).map(|name| {
        Breach::new(Path::new(TABLE), 0, format!("{name} is no crate; name one of this workspace"))
    }));
    Ok(breaches)
}

fn judge_binary(binary: &str, main: &Path, modules: &[&str], rows: &[&LaneRow]) -> Vec<Breach> {
    let has_row = |module: &&&str| {
        let test = format!("{module}::");
        rows.iter().any(|row| test.starts_with(row.tests))
    };
    let missing = modules.iter().filter(|module| !has_row(module)).map(|module| {
        Breach::new(main, 0, format!("the tests of {module} have no row in {TABLE}; add one"))
    });
    let is_there = |row: &&&LaneRow| row.tests.is_empty() || modules.contains(&module_of(row));
    let stale = rows.iter().filter(|row| !is_there(row)).map(|row| {
        let text = format!("{binary} has no module for the row {:?}; remove it", row.tests);
        Breach::new(Path::new(TABLE), 0, text)
    });
    missing.chain(stale).collect()
}

/// The code of a module: of its file, or of all files of its directory.
fn code(dir: &Path, module: &str) -> String {
    let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let Ok(inside) = fs::read_dir(dir.join(module)) else {
        return read(dir.join(module).with_extension("rs"));
    };
    inside.flatten().map(|entry| read(entry.path())).collect()
}

/// Unit tests with a process of their own are those of a module of their crate.
fn judge_unit(root: &Path, name: &str, tests: &str) -> Option<Breach> {
    let rules = CRATES.iter().find(|one| one.name == name);
    let module = tests.split("::").next().unwrap_or_default();
    let is_there = rules.is_some_and(|rules| {
        let source = Path::new("crates").join(rules.tier.directory()).join(name).join("src");
        let file = root.join(source).join(module);
        file.is_dir() || file.with_extension("rs").is_file()
    });
    let text = || format!("{name} has no module for the unit tests {tests:?}; remove their row");
    (!is_there).then(|| Breach::new(Path::new(TABLE), 0, text()))
}

/// What a row leaves out has to be a dependency, or a part of a crate, and nothing that the tests
/// name: neither the module nor the command of its name.
fn judge_without(row: &LaneRow, file: &Path, text: &str, manifest: &str) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for name in row.without {
        if let Some((_, part)) = name.split_once('/') {
            if !MODULES.iter().any(|rules| Path::new(rules.dir).ends_with(format!("src/{part}"))) {
                let text = format!("{name} is no part of a crate that has borders of its own");
                breaches.push(Breach::new(Path::new(TABLE), 0, text));
            }
            let names = [format!("{part}::"), format!("\"{part}\"")];
            if names.iter().any(|name| text.contains(name)) {
                let text =
                    format!("{} has a row without {name} in {TABLE}; remove it there", row.tests);
                breaches.push(Breach::new(file, 0, text));
            }
            continue;
        }
        let is_dependency = |line: &str| {
            line.strip_prefix(&format!("iostrata-{name}"))
                .is_some_and(|s| s.starts_with(['.', ' ']))
        };
        if !manifest.lines().any(is_dependency) {
            let text = format!("{} does not depend on {name}; remove it from the row", row.binary);
            breaches.push(Breach::new(Path::new(TABLE), 0, text));
        }
        if text.is_empty() || text.contains(&format!("iostrata_{name}")) {
            let text =
                format!("{} has a row without {name} in {TABLE}; remove it there", row.tests);
            breaches.push(Breach::new(file, 0, text));
        }
    }
    breaches
}

/// The module that a row's tests are in.
fn module_of(row: &LaneRow) -> &str {
    row.tests.split("::").next().unwrap_or_default()
}

/// The names in the lines `mod name;`.
fn modules(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
}

/// The main file of a binary, by the directories of tests that crates have.
fn main_of(binary: &str) -> Option<PathBuf> {
    if binary == "cli" {
        return Some(PathBuf::from("crates/show/iostrata/tests/cli/main.rs"));
    }
    let rules = CRATES.iter().find(|one| one.name == binary)?;
    let crate_dir = Path::new("crates").join(rules.tier.directory()).join(rules.name);
    let own = matches!(binary, "load" | "study");
    Some(crate_dir.join("tests").join(if own { binary } else { "it" }).join("main.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn a_module_without_a_row_and_a_row_without_a_module_are_breaches() {
        let rows: Vec<&LaneRow> =
            ROWS.iter().filter(|row| row.binary == "cli" && row.tests == "tune::").collect();
        let judge = |modules: &[&str]| judge_binary("cli", Path::new("main.rs"), modules, &rows);
        assert_eq!(judge(&["tune"]), []);
        assert!(judge(&["tune", "tuner"])[0].text.contains("tests of tuner have no row"));
        assert!(judge(&[])[0].text.contains("no module for the row \"tune::\""));
    }

    #[test]
    fn a_dependency_that_is_left_out_and_used_is_a_breach() {
        let row = ROWS.iter().find(|row| row.binary == "database" && row.tests == "stalls::");
        let judge = |text: &str, manifest: &str| {
            judge_without(row.unwrap(), Path::new("stalls.rs"), text, manifest)
        };
        let depends = "iostrata-embedded.workspace = true\niostrata-sim.workspace = true\n";
        assert_eq!(judge("use iostrata_server::ServerTarget;", depends), []);
        let used = judge("use iostrata_embedded::EmbeddedTarget;", depends);
        assert!(used[0].text.contains("row without embedded"), "{used:?}");
        let none = judge("use iostrata_server::ServerTarget;", "iostrata-embedded-x = 1\n");
        assert!(none[0].text.contains("database does not depend on embedded"), "{none:?}");
    }

    #[test]
    fn unit_tests_of_a_module_that_is_gone_are_a_breach() {
        let root = workspace::root();
        assert_eq!(judge_unit(&root, "sim", "insert::"), None);
        for (name, tests) in [("sim", "inserts::"), ("sims", "insert::")] {
            let breach = judge_unit(&root, name, tests).unwrap();
            assert!(breach.text.contains("no module for the unit tests"), "{}", breach.text);
        }
    }

    #[test]
    fn the_table_is_in_order() {
        assert_eq!(judge(&workspace::root()).unwrap(), []);
    }
}
