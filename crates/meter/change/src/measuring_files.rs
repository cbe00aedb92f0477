//! Files to measure on, written down before they are made, and removed for a process that was
//! killed.
//!
//! Invariant: a file is removed only when its journal announced it, the owner of that journal is
//! gone, and the file carries that owner's mark (or is still empty, private and new). What was kept
//! or replaced, or made by another process, has no such mark and is left.

use std::fmt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use iostrata_io::{FileRecord, abandoned_bytes, remove_abandoned};
use serde::{Deserialize, Serialize};

use crate::error::JournalError;
use crate::journal::{Content, Journal, Record, StateDir};
use crate::seen::Owner;

/// Called with the reason why no record can be kept.
type OnFailure = Box<dyn FnOnce(&JournalError) + Send>;

/// The record of this process's measuring files. Its journal begins with the first of them.
pub struct MeasuringFiles {
    state: StateDir,
    journal: Option<Journal>,
    /// Called once.
    on_failure: Option<OnFailure>,
}

impl MeasuringFiles {
    /// A record in this place; `on_failure` is called with the reason if none is possible.
    pub fn new(state: StateDir, on_failure: OnFailure) -> Self {
        Self { state, journal: None, on_failure: Some(on_failure) }
    }

    fn write_down(&mut self, paths: &[PathBuf]) -> Result<String, JournalError> {
        let owner = Owner::this();
        let journal = match &mut self.journal {
            Some(journal) => journal,
            none => none.insert(Journal::begin(&self.state, &owner)?),
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_us = since_epoch.as_micros() as u64;
        journal.append(&Record::Files { at_us, paths: paths.to_vec() })?;
        Ok(mark_of(&owner))
    }
}

impl FileRecord for MeasuringFiles {
    fn announce(&mut self, paths: &[PathBuf]) -> Option<String> {
        match self.write_down(paths) {
            Ok(mark) => Some(mark),
            Err(error) => {
                if let Some(tell) = self.on_failure.take() {
                    tell(&error);
                }
                None
            }
        }
    }

    fn settle(&mut self) {
        if let Some(journal) = self.journal.take() {
            // One that stays names files that are gone; the next restore removes it.
            let _stays = journal.remove();
        }
    }
}

/// How a file's mark names its owner.
fn mark_of(owner: &Owner) -> String {
    format!("{} {} {}", owner.pid, owner.start_ticks, owner.boot_id)
}

/// A file that a killed process left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftFile {
    /// Which.
    pub path: PathBuf,
    /// The room that it takes, in bytes.
    pub bytes: u64,
    /// Why it could not be removed; absent when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl fmt::Display for LeftFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = iostrata_stats::units::bytes(self.bytes as f64);
        let path = self.path.display();
        match &self.error {
            None => write!(f, "removed: measuring file {path} ({size})"),
            Some(why) => write!(f, "not removed: measuring file {path} ({size}): {why}"),
        }
    }
}

/// The files of a dead owner that are still there.
pub(crate) fn left(content: &Content) -> Vec<LeftFile> {
    let Some(owner) = &content.owner else { return Vec::new() };
    let mark = mark_of(owner);
    let mut found: Vec<LeftFile> = Vec::new();
    for (path, at_us) in &content.files {
        let is_known = found.iter().any(|file| file.path == *path);
        if let Some(bytes) = abandoned_bytes(path, &mark, *at_us).filter(|_| !is_known) {
            found.push(LeftFile { path: path.clone(), bytes, error: None });
        }
    }
    found
}

/// Removes the files of a dead owner that are still there; one failure does not keep the rest.
pub(crate) fn remove(content: &Content) -> Vec<LeftFile> {
    let removed = |mut file: LeftFile| {
        file.error = remove_abandoned(&file.path).err().map(|error| error.to_string());
        file
    };
    left(content).into_iter().map(removed).collect()
}
