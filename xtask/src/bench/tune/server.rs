//! Which servers there are to measure: those that tests use.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::servers::suite;
use crate::workspace::Workspace;

/// A server program.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchServer {
    /// As the fleet names it.
    pub name: String,
    pub program: PathBuf,
}

impl BenchServer {
    /// The option that gives it so much redo.
    pub fn redo(&self, bytes: u64) -> String {
        match self.name.as_str() {
            // Two files of the same size.
            "mysql-5.6" => format!("innodb_log_file_size={}", bytes / 2),
            name if name.starts_with("mysql") => format!("innodb_redo_log_capacity={bytes}"),
            _ => format!("innodb_log_file_size={bytes}"),
        }
    }
}

/// Servers of these names; all that are there where none is named. The first one found is that
/// which a scenario for one server runs on.
///
/// # Errors
/// A name that is not known, or is not there; when there is none at all.
pub fn found(workspace: &Workspace, names: &[String]) -> Result<Vec<BenchServer>> {
    let known = suite::names();
    if let Some(other) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("--server {other}: there are {}", known.join(", "));
    }
    let mut found = Vec::new();
    for name in known {
        if !names.is_empty() && !names.iter().any(|one| one == name) {
            continue;
        }
        let installed = suite::program_of(name, &workspace.target.join("fleet"));
        let program = installed.or_else(|| among_programs(name));
        match program {
            Some(program) => found.push(BenchServer { name: name.to_owned(), program }),
            None if names.is_empty() => eprintln!("{name} is not installed and left out"),
            None => bail!("--server {name}: not installed; see cargo xtask servers install"),
        }
    }
    if found.is_empty() {
        bail!("no server is installed; see cargo xtask servers install");
    }
    Ok(found)
}

/// A program of this version among those that tests are told of.
fn among_programs(name: &str) -> Option<PathBuf> {
    let programs = std::env::var("IOSTRATA_TEST_PROGRAMS").unwrap_or_default();
    let mut paths = programs.split(':').filter(|path| !path.is_empty()).map(PathBuf::from);
    paths.find(|path| is_version(path, name))
}

fn is_version(path: &Path, name: &str) -> bool {
    let output = Command::new(path).args(["--no-defaults", "--version"]).output();
    let said = output.map(|one| String::from_utf8_lossy(&one.stdout).into_owned());
    let Some((family, version)) = name.split_once('-') else { return false };
    let is_mariadb = |said: &str| said.contains("MariaDB");
    said.is_ok_and(|said| {
        said.contains(&format!("Ver {version}.")) && is_mariadb(&said) == (family == "mariadb")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_its_own_word_for_the_redo() {
        let redo =
            |name: &str| BenchServer { name: name.to_owned(), program: PathBuf::new() }.redo(200);
        assert_eq!(redo("mysql-5.6"), "innodb_log_file_size=100");
        assert_eq!(redo("mysql-9.7"), "innodb_redo_log_capacity=200");
        assert_eq!(redo("mariadb-11.4"), "innodb_log_file_size=200");
    }
}
