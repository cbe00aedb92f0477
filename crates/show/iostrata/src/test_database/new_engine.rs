//! An engine that is about to be made: what it takes of the disk, said before it takes it.
//!
//! Invariant: what making it has left is removed when making it fails; nothing is touched where an
//! engine, or anything else, was before.

use std::fs;
use std::path::{Path, PathBuf};

use iostrata_engine::Engine;
use iostrata_stats::units;

use crate::exit_error::ExitError;

const REDO: &str = "redo_log_capacity";
const GROWTH: &str = "autoextend_increment";
/// Data that is smaller gets less redo than the usual, and grows in smaller steps.
const SMALL_DATA_BYTES: u64 = 256 << 20;
const SMALL_REDO: &str = "128M";
const SMALL_GROWTH: &str = "8M";
/// Pages are not full, and files grow in steps.
const DATA_SPREAD: f64 = 1.5;

/// A directory that an engine is made in.
pub struct NewEngine {
    dir: PathBuf,
    /// Whether the directory is there already, and empty.
    was_there: bool,
}

impl NewEngine {
    /// What is to be made, with settings that go with so many bytes of data; none where an engine
    /// is there. `note` hears how much of the disk it takes.
    ///
    /// # Errors
    /// When the disk has not the room for it.
    pub fn of(
        dir: &Path,
        data_bytes: Option<u64>,
        settings: &mut Vec<(String, String)>,
        note: &dyn Fn(&str),
    ) -> Result<Option<Self>, ExitError> {
        let was_there = match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
            // Whatever it holds: opening says what is wrong with it.
            Ok(false) => return Ok(None),
            Ok(true) => true,
            Err(_) => false,
        };
        let names = |name: &str, settings: &[(String, String)]| {
            settings.iter().any(|(one, _)| one.replace('-', "_").ends_with(name))
        };
        if data_bytes.is_some_and(|bytes| bytes < SMALL_DATA_BYTES) {
            for (name, value) in [(REDO, SMALL_REDO), (GROWTH, SMALL_GROWTH)] {
                if !names(name, settings) {
                    settings.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        let mut all = Engine::server_settings();
        for (name, value) in settings.iter() {
            // A setting that is none is refused when it is opened.
            let _refused = all.set(name, value);
        }
        let data = (data_bytes.unwrap_or(0) as f64 * DATA_SPREAD) as u64;
        let data = data.max(u64::from(all.data_files) * all.autoextend_increment);
        // Redo in a directory of its own is on another disk, perhaps.
        let redo = if all.redo_directory.is_none() { all.redo_log_capacity } else { 0 };
        let free = free_bytes(dir);
        let words = |bytes: u64| units::bytes(bytes as f64);
        if let Some(free) = free.filter(|free| *free < redo + data) {
            return Err(ExitError::NotHere(format!(
                "engine:{}: a new engine takes {} of redo and about {} of data, and {} are free there; \
                 make room, load less, or take less redo by --engine {REDO}=64M",
                dir.display(),
                words(redo),
                words(data),
                words(free)
            )));
        }
        let free = free.map_or(String::new(), |free| format!("; {} are free there", words(free)));
        note(&format!(
            "engine:{} is made: {} of redo ({REDO}) and about {} of data{free}",
            dir.display(),
            words(redo),
            words(data)
        ));
        Ok(Some(Self { dir: dir.to_owned(), was_there }))
    }

    /// Removes what making it has left.
    pub fn remove(&self) {
        // The failure that led here is what is told.
        let _rest = fs::remove_dir_all(&self.dir);
        if self.was_there {
            let _gone = fs::create_dir(&self.dir);
        }
    }
}

/// What is free on the disk that a directory is to be on.
fn free_bytes(dir: &Path) -> Option<u64> {
    let there = std::path::absolute(dir).ok()?;
    let there = there.ancestors().find(|one| one.is_dir())?;
    let stat = rustix::fs::statvfs(there).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
