//! Which crate may know which.
//!
//! Invariant: judged from what cargo resolves out of each Cargo.toml, so that it cannot be bypassed
//! by a path or a rename.

use std::path::{Path, PathBuf};

use super::Breach;
use super::tables::{self, CRATES, CrateRules, IMPURE, OWNERS, Tier};
use crate::workspace::{Dependency, Package, Workspace};

/// The package at the top of the repository.
const INSTALLED: &str = "iostrata";

/// All borders of the workspace.
pub fn judge(workspace: &Workspace) -> Vec<Breach> {
    let mut breaches: Vec<Breach> = Vec::new();
    for package in &workspace.packages {
        breaches.extend(package_breaches(&workspace.root, package));
    }
    let exists = |rules: &CrateRules| {
        workspace.packages.iter().any(|one| short_name(&one.name) == rules.name)
    };
    let gone = CRATES.iter().filter(|rules| !exists(rules));
    breaches.extend(gone.map(|rules| {
        let text = format!("{} is in the table of crates but not in the workspace", rules.name);
        Breach::new(Path::new("xtask/src/tidy/tables.rs"), 0, text)
    }));
    breaches
}

fn package_breaches(root: &Path, package: &Package) -> Vec<Breach> {
    let manifest = package.dir.join("Cargo.toml");
    let path = manifest.strip_prefix(root).map_or(manifest.clone(), PathBuf::from);
    let mut texts = Vec::new();
    match tables::rules_of(short_name(&package.name)) {
        None => texts.push("not in the table of crates in xtask/src/tidy/tables.rs".to_owned()),
        Some(rules) => {
            texts.extend(place(rules, &path));
            texts.extend(package.dependencies.iter().filter_map(|to| crossing(rules, to)));
        }
    }
    if package.integration_tests > 1 {
        texts.push("more than one integration binary; make them modules of one".to_owned());
    }
    texts.into_iter().map(|text| Breach::new(&path, 0, text)).collect()
}

/// `iostrata-stats` is the crate `stats`.
fn short_name(package: &str) -> &str {
    package.strip_prefix("iostrata-").unwrap_or(package)
}

/// A crate lies on its tier.
fn place(rules: &CrateRules, path: &Path) -> Option<String> {
    let expected = match rules.tier {
        Tier::Xtask => PathBuf::from("xtask/Cargo.toml"),
        // Its code lies on its tier, too.
        _ if rules.name == INSTALLED => PathBuf::from("Cargo.toml"),
        tier => Path::new("crates").join(tier.directory()).join(rules.name).join("Cargo.toml"),
    };
    (path != expected).then(|| format!("belongs in {}", expected.display()))
}

/// What is wrong with one dependency, if anything is.
fn crossing(from: &CrateRules, to: &Dependency) -> Option<String> {
    if let Some(inner) = tables::rules_of(short_name(&to.name)) {
        let is_higher = inner.tier > from.tier;
        let is_allowed = to.for_tests || from.may_use.contains(&inner.name);
        return (is_higher || !is_allowed)
            .then(|| format!("{} must not know {}", from.name, inner.name));
    }
    if to.for_tests {
        return None;
    }
    let is_pure = from.is_pure && !tables::has_impure_module(from);
    if is_pure && IMPURE.contains(&to.name.as_str()) {
        return Some(format!("{} is pure and must not use {}", from.name, to.name));
    }
    let owner = OWNERS.iter().find(|(name, _)| *name == to.name);
    let is_foreign = owner.is_some_and(|(_, crates)| !crates.contains(&from.name));
    is_foreign.then(|| format!("{} must not use {}; it stays in its own crate", from.name, to.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(from: &str, to: &str, for_tests: bool) -> Option<String> {
        let rules = tables::rules_of(from).unwrap();
        crossing(rules, &Dependency { name: to.to_owned(), for_tests })
    }

    #[test]
    fn floors_hold() {
        assert_eq!(found("load", "iostrata-io", false), None);
        assert_eq!(found("iostrata", "iostrata-show", false), None);
        for (from, to) in [
            ("stats", "iostrata-io"),
            ("linux", "iostrata-load"),
            ("load", "iostrata-study"),
            ("diagnose", "iostrata-load"),
            ("show", "iostrata-io"),
            ("show", "iostrata-study"),
            ("xtask", "iostrata-io"),
        ] {
            assert!(found(from, to, false).is_some(), "{from} -> {to}");
        }
    }

    #[test]
    fn tests_may_use_more_but_not_a_higher_tier() {
        assert_eq!(found("stats", "iostrata-run", true), None);
        assert!(found("stats", "iostrata-study", true).is_some());
        assert_eq!(found("stats", "tempfile", true), None);
    }

    #[test]
    fn outside_types_stay_in_their_room() {
        assert!(found("show", "clap", false).is_some());
        assert!(found("load", "mysql", false).is_some());
        assert!(found("stats", "rustix", false).is_some());
        assert_eq!(found("io", "io-uring", false), None);
        // For its module that is not pure; `style::purity` keeps it out of the others.
        assert_eq!(found("sim", "rustix", false), None);
    }

    #[test]
    fn a_crate_lies_on_its_tier_and_in_the_table() {
        let package = |name: &str, dir: &str| Package {
            name: name.into(),
            version: "1".into(),
            dir: dir.into(),
            dependencies: Vec::new(),
            integration_tests: 2,
        };
        let breaches = |name, dir| package_breaches(Path::new("/w"), &package(name, dir)).len();
        assert_eq!(breaches("iostrata-stats", "/w/crates/base/stats"), 1, "two test binaries");
        assert_eq!(breaches("iostrata-stats", "/w/crates/show/stats"), 2);
        assert_eq!(breaches("iostrata-new", "/w/crates/base/new"), 2);
    }

    #[test]
    fn the_table_itself_keeps_the_tiers() {
        for rules in CRATES {
            for used in rules.may_use {
                let used = tables::rules_of(used).unwrap();
                assert!(used.tier <= rules.tier, "{} -> {}", rules.name, used.name);
            }
        }
    }
}
