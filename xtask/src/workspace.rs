//! The workspace as cargo reports it.
//!
//! Purpose: where the packages are, what they depend on and what targets they have.
//! Invariant: read from `cargo metadata`, so never out of date.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// All packages of the workspace and its directories.
pub struct Workspace {
    /// Top directory.
    pub root: PathBuf,
    /// Where cargo builds.
    pub target: PathBuf,
    /// Members, in cargo's order.
    pub packages: Vec<Package>,
}

/// One member.
pub struct Package {
    /// As in its Cargo.toml.
    pub name: String,
    /// Version, as text.
    pub version: String,
    /// Where its Cargo.toml is.
    pub dir: PathBuf,
    /// What it needs.
    pub dependencies: Vec<Dependency>,
    /// How many integration test binaries it has.
    pub integration_tests: usize,
}

/// One line of a dependency table.
pub struct Dependency {
    /// Package name.
    pub name: String,
    /// From `[dev-dependencies]`.
    pub for_tests: bool,
}

impl Workspace {
    /// Runs cargo metadata.
    ///
    /// # Errors
    /// When cargo cannot be run or a Cargo.toml is broken.
    pub fn read() -> Result<Self> {
        let output = cargo(&root())
            .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
        Self::from_metadata(&metadata).context("cargo metadata misses a field")
    }

    fn from_metadata(metadata: &Value) -> Option<Self> {
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        Some(Self {
            root: path(&metadata["workspace_root"])?,
            target: path(&metadata["target_directory"])?,
            packages: metadata["packages"]
                .as_array()?
                .iter()
                .map(package)
                .collect::<Option<_>>()?,
        })
    }

    /// The member of this name.
    ///
    /// # Errors
    /// When there is none; it names all.
    pub fn package(&self, name: &str) -> Result<&Package> {
        let named = self.packages.iter().find(|package| package.name == name);
        named.with_context(|| {
            let names: Vec<&str> = self.packages.iter().map(|one| one.name.as_str()).collect();
            format!("no package {name:?}; there are {}", names.join(", "))
        })
    }

    /// The member with this manifest directory.
    pub fn package_in(&self, dir: &Path) -> Option<&Package> {
        self.packages.iter().find(|package| package.dir == dir)
    }

    /// Whether the tests of a package are built with this library.
    pub fn tests_stand_on(&self, package: &str, library: &str) -> bool {
        let (mut found, mut at) = (vec![package], 0);
        while let Some(&name) = found.get(at) {
            let one = self.packages.iter().find(|one| one.name == name);
            let names = one.into_iter().flat_map(|one| &one.dependencies);
            // What tests alone depend on counts for the package itself.
            for next in names.filter(|next| !next.for_tests || at == 0) {
                if !found.contains(&&*next.name) {
                    found.push(&next.name);
                }
            }
            at += 1;
        }
        found.contains(&library)
    }
}

fn package(value: &Value) -> Option<Package> {
    let is_integration_test = |target: &&Value| target["kind"][0] == "test";
    Some(Package {
        name: value["name"].as_str()?.to_owned(),
        version: value["version"].as_str()?.to_owned(),
        dir: Path::new(value["manifest_path"].as_str()?).parent()?.to_owned(),
        dependencies: value["dependencies"]
            .as_array()?
            .iter()
            .map(|one| {
                let name = one["name"].as_str()?.to_owned();
                Some(Dependency { name, for_tests: one["kind"] == "dev" })
            })
            .collect::<Option<_>>()?,
        integration_tests: value["targets"].as_array()?.iter().filter(is_integration_test).count(),
    })
}

/// Top directory of the clone that this program belongs to.
pub fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = manifest.unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
    Path::new(&here).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The cargo that started this, in `root`, without the variables that it set for this program. Some
/// build scripts depend on these: they would run again after each plain `cargo test`, and all that
/// stands on them would be built again.
pub fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(root);
    let is_of_package = |name: &OsString| {
        name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        })
    };
    for name in std::env::vars_os().map(|(name, _)| name).filter(is_of_package) {
        command.env_remove(name);
    }
    command
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn cargo_gets_no_variables_of_this_package() {
        let command = cargo(&root());
        let removed: Vec<&OsStr> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        // This test has them from the suite or from cargo.
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
            assert!(removed.contains(&OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn an_unknown_package_is_an_error_that_names_all() {
        let workspace = Workspace::read().unwrap();
        assert_eq!(workspace.package("iostrata-innodb").unwrap().name, "iostrata-innodb");
        let error = workspace.package("innodb").err().unwrap().to_string();
        assert!(error.starts_with("no package \"innodb\"; there are "), "{error}");
        assert!(error.contains(" iostrata-innodb, "), "{error}");
    }
}
