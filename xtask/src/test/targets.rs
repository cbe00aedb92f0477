//! The test binaries of the workspace.
//!
//! Purpose: build them all with one cargo call, so that features and profile are the same for all,
//! and learn where they and the programs they start are.
//! Invariant: unit binaries come before integration binaries.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::workspace::{self, Workspace};

/// What to build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Unit tests of libraries and programs.
    Unit,
    /// Integration tests too.
    All,
}

/// How the tests of a binary may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetKind {
    /// Next to the code: in parallel threads.
    Unit,
    /// Under `tests/`: one after the other, since they may be real-time.
    Integration,
    /// The examples in the documentation of all packages, which only cargo can build and run.
    Examples,
    /// The model checker's tests of the engine, whose build differs from all others.
    Schedules,
}

/// One test binary.
#[derive(Clone, Debug)]
pub struct Target {
    /// Package it belongs to.
    pub package: String,
    /// Version of the package.
    pub version: String,
    /// Name of the target within the package.
    pub name: String,
    /// How it runs.
    pub kind: TargetKind,
    /// Where it is.
    pub executable: PathBuf,
    /// Directory it runs in: the package's, as with cargo.
    pub dir: PathBuf,
    /// Programs of the package, which integration tests start: name and place.
    pub programs: Vec<(String, PathBuf)>,
}

impl Target {
    /// What cargo builds and runs by itself.
    pub fn of_cargo(workspace: &Workspace, kind: TargetKind) -> Self {
        let (package, name) = match kind {
            TargetKind::Schedules => ("iostrata-engine", "model"),
            _ => ("documentation", "of all packages"),
        };
        Self {
            package: package.to_owned(),
            version: String::new(),
            name: name.to_owned(),
            kind,
            executable: PathBuf::new(),
            dir: workspace.root.clone(),
            programs: Vec::new(),
        }
    }

    /// The package without the project's name; the integration tests of the program are `cli`.
    pub fn short_name(&self) -> &str {
        match self.kind {
            TargetKind::Integration if self.name == "cli" => "cli",
            _ => self.package.strip_prefix("iostrata-").unwrap_or(&self.package),
        }
    }

    /// Package, binary and kind.
    pub fn full_name(&self) -> String {
        let kind = match self.kind {
            TargetKind::Unit => "unit",
            TargetKind::Integration => "integration",
            TargetKind::Examples => "examples",
            TargetKind::Schedules => "schedules",
        };
        format!("{} {} ({kind})", self.package, self.name)
    }
}

/// What a build made.
pub struct Built {
    /// The test binaries.
    pub targets: Vec<Target>,
    /// The process that runs a private server, where it was built too.
    pub helper: Option<PathBuf>,
}

/// Builds those of one package, or of all where it has no name; `None` when the code does not
/// compile, which cargo has then explained on stderr.
///
/// # Errors
/// When cargo cannot be run.
pub fn build(workspace: &Workspace, which: Which, package: &str) -> Result<Option<Built>> {
    let mut command = workspace::cargo(&workspace.root);
    command.args(["test", "--quiet", "--no-run"]);
    match package {
        "" => command.arg("--workspace"),
        package => command.args(["--package", package]),
    };
    command.arg("--message-format=json-render-diagnostics");
    if which == Which::Unit {
        command.args(["--lib", "--bins"]);
    }
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo test")?;
    if !output.status.success() {
        return Ok(None);
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let messages: Vec<Value> = lines.lines().filter_map(|s| serde_json::from_str(s).ok()).collect();
    let is_helper = |message: &&Value| {
        message["target"]["kind"][0] == "example" && message["target"]["name"] == "private_server"
    };
    let helper = messages.iter().find(is_helper).and_then(|one| one["executable"].as_str());
    let helper = helper.map(PathBuf::from);
    Ok(Some(Built { targets: from_messages(workspace, &messages), helper }))
}

fn from_messages(workspace: &Workspace, messages: &[Value]) -> Vec<Target> {
    let mut targets: Vec<Target> =
        messages.iter().filter_map(|message| target(workspace, message, messages)).collect();
    targets.sort_by(|a, b| (a.kind, &a.package, &a.name).cmp(&(b.kind, &b.package, &b.name)));
    targets
}

fn target(workspace: &Workspace, message: &Value, all: &[Value]) -> Option<Target> {
    if message["profile"]["test"] != true {
        return None;
    }
    let executable = PathBuf::from(message["executable"].as_str()?);
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let package = workspace.package_in(manifest.parent()?)?;
    let kind = match message["target"]["kind"][0].as_str()? {
        "test" => TargetKind::Integration,
        _ => TargetKind::Unit,
    };
    Some(Target {
        package: package.name.clone(),
        version: package.version.clone(),
        name: message["target"]["name"].as_str()?.to_owned(),
        kind,
        executable,
        dir: package.dir.clone(),
        programs: programs(message, all),
    })
}

/// Programs that cargo built along with the tests of the same package.
fn programs(of: &Value, all: &[Value]) -> Vec<(String, PathBuf)> {
    all.iter()
        .filter(|other| other["manifest_path"] == of["manifest_path"])
        .filter(|other| other["profile"]["test"] == false && other["target"]["kind"][0] == "bin")
        .filter_map(|other| {
            let name = other["target"]["name"].as_str()?.to_owned();
            Some((name, PathBuf::from(other["executable"].as_str()?)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Package;
    use serde_json::json;

    fn message(kind: &str, is_test: bool) -> Value {
        json!({"reason": "compiler-artifact", "manifest_path": "/w/a/Cargo.toml",
            "target": {"kind": [kind], "name": kind}, "profile": {"test": is_test},
            "executable": format!("/w/target/{kind}")})
    }

    #[test]
    fn finds_tests_and_the_programs_beside_them() {
        let package = Package {
            name: "a".into(),
            version: "1".into(),
            dir: "/w/a".into(),
            dependencies: Vec::new(),
            integration_tests: 1,
        };
        let workspace =
            Workspace { root: "/w".into(), target: "/w/target".into(), packages: vec![package] };
        let messages = [message("test", true), message("lib", true), message("bin", false)];
        let targets = from_messages(&workspace, &messages);
        let kinds: Vec<TargetKind> = targets.iter().map(|target| target.kind).collect();
        assert_eq!(kinds, [TargetKind::Unit, TargetKind::Integration]);
        assert_eq!(targets[1].programs, [("bin".to_owned(), PathBuf::from("/w/target/bin"))]);
    }
}
