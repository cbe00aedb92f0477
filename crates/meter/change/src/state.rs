//! The directory where journals are kept, which a kill survives.
//!
//! Invariant: only its owner may look into it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::JournalError;

/// Where the state is kept. Nothing is made before it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The place of this user: `IOSTRATA_STATE`, else `/var/lib/iostrata` for root, else
    /// `$XDG_STATE_HOME/iostrata`, else `~/.local/state/iostrata`.
    pub fn of_user() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        Self(place(variable, rustix::process::geteuid().is_root()))
    }

    /// A place of the caller's choice.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self(dir.into())
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the directory, durably.
    pub(crate) fn make(&self) -> Result<(), JournalError> {
        let fail =
            |source| JournalError { doing: "make a place for", path: self.0.clone(), source };
        if self.0.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(fail)?;
        for dir in self.0.ancestors().skip(1).take(2).filter(|dir| dir.is_dir()) {
            File::open(dir).and_then(|dir| dir.sync_all()).map_err(fail)?;
        }
        Ok(())
    }

    /// Makes the names in the directory durable.
    pub(crate) fn sync(&self) -> Result<(), JournalError> {
        File::open(&self.0).and_then(|dir| dir.sync_all()).map_err(|source| JournalError {
            doing: "flush the directory of",
            path: self.0.clone(),
            source,
        })
    }

    /// The journals in it, sorted by name. An unreadable directory holds none for this user.
    pub(crate) fn journals(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        let is_journal = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("changes-") && name.ends_with(".jsonl")
        };
        let mut found: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path()).filter(is_journal).collect();
        found.sort();
        found
    }
}

fn place(variable: impl Fn(&str) -> Option<OsString>, is_root: bool) -> PathBuf {
    if let Some(dir) = variable("IOSTRATA_STATE") {
        // The working directory may change between a run and its restore.
        let dir = PathBuf::from(dir);
        return std::path::absolute(&dir).unwrap_or(dir);
    }
    if is_root {
        return PathBuf::from("/var/lib/iostrata");
    }
    let home = || PathBuf::from(variable("HOME").unwrap_or_else(|| "/".into()));
    let state = variable("XDG_STATE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    state.unwrap_or_else(|| home().join(".local/state")).join("iostrata")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_follows_the_user() {
        fn with(set: &[(&str, &str)], is_root: bool) -> PathBuf {
            let find = |name: &str| set.iter().find(|(key, _)| *key == name);
            place(|name| find(name).map(|(_, value)| value.into()), is_root)
        }
        assert_eq!(with(&[], true), Path::new("/var/lib/iostrata"));
        assert_eq!(with(&[("IOSTRATA_STATE", "/s")], true), Path::new("/s"));
        let home = ("HOME", "/home/a");
        let default = Path::new("/home/a/.local/state/iostrata");
        assert_eq!(with(&[home], false), default);
        assert_eq!(with(&[home, ("XDG_STATE_HOME", "/x")], false), Path::new("/x/iostrata"));
        assert_eq!(with(&[home, ("XDG_STATE_HOME", "x")], false), default);
    }
}
