//! The journal: what is meant to be changed, what was, and what is undone, one line each; or which
//! measuring files were made.
//!
//! Layout: a file of JSON lines, `changes-<pid>-<start>-<n>.jsonl`; the first line names the owner.
//! Invariant: a line is on the disk, and the file's name too, before what it announces happens; the
//! file is locked as long as its owner lives; only the last line can be torn, and a torn line
//! announced nothing that happened.

pub(crate) mod leftover;
mod read;
mod record;

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{FlockOperation, flock};

use crate::error::JournalError;
use crate::owner::Owner;
use crate::state::StateDir;

pub(crate) use read::{Content, parse};
pub(crate) use record::{JournalEntry, Record, VERSION};

/// Names tried before giving up; others only look at a new journal for a moment.
const NAMES: u32 = 100;

/// An open journal, locked by this process.
#[derive(Debug)]
pub(crate) struct Journal {
    state: StateDir,
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Begins a new one, durably.
    pub(crate) fn begin(state: &StateDir, owner: &Owner) -> Result<Self, JournalError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        state.make()?;
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..NAMES {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("changes-{}-{}-{number}.jsonl", owner.pid, owner.start_ticks);
            let path = state.path().join(name);
            match create_locked(&path) {
                Ok(Some(file)) => {
                    let mut journal = Self { state: state.clone(), path, file };
                    journal.append(&Record::Journal { version: VERSION, owner: owner.clone() })?;
                    state.sync()?;
                    return Ok(journal);
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(journal_error("begin", &path, error)),
            }
        }
        Err(journal_error("begin", state.path(), last))
    }

    /// Takes over the journal of a process that is gone; `None` while its owner lives, or when
    /// somebody else was faster.
    pub(crate) fn take(state: &StateDir, path: &Path) -> Result<Option<Self>, JournalError> {
        let opened = File::options().read(true).append(true).open(path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| journal_error("open", path, error))?,
        };
        if !lock(&file).map_err(|error| journal_error("lock", path, error))? {
            return Ok(None);
        }
        Ok(Some(Self { state: state.clone(), path: path.to_owned(), file }))
    }

    /// The file that is locked; the lock lasts as long as any process has it open.
    pub(crate) fn lock(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// What it holds. A torn last line is cut off, so that the next one starts on its own.
    pub(crate) fn content(&self) -> Result<Content, JournalError> {
        let fail = |source| journal_error("read", &self.path, source);
        let bytes = fs::read(&self.path).map_err(fail)?;
        let content = parse(&bytes);
        if content.whole_bytes < bytes.len() as u64 {
            self.file.set_len(content.whole_bytes).map_err(fail)?;
        }
        Ok(content)
    }

    /// Writes one line; it is on the disk when this returns.
    pub(crate) fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        let fail = |source| journal_error("write", &self.path, source);
        let before = self.file.metadata().map_err(fail)?.len();
        let mut line = serde_json::to_vec(record).map_err(|error| fail(error.into()))?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_all());
        if written.is_err() {
            // A half line, as on a full disk, must not be followed by another.
            let _stays_torn = self.file.set_len(before);
        }
        written.map_err(fail)
    }

    /// Removes it: everything in it is settled.
    pub(crate) fn remove(self) -> Result<(), JournalError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(journal_error("remove", &self.path, error))
            }
            _ => self.state.sync(),
        }
    }
}

/// A new file with its lock; `None` when somebody who looks at journals was faster.
fn create_locked(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().append(true).create_new(true).mode(0o600).open(path)?;
    let is_ours = lock(&file)? && file.metadata()?.nlink() > 0;
    Ok(is_ours.then_some(file))
}

/// Whether the lock could be had.
fn lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn journal_error(doing: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError { doing, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_locked_while_its_owner_lives() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().join("state"));
        let journal = Journal::begin(&state, &Owner::this()).unwrap();
        let found = state.journals();
        assert_eq!(found, std::slice::from_ref(&journal.path));
        assert!(Journal::take(&state, &found[0]).unwrap().is_none());
        drop(journal);
        // Another test may be starting a child, which has the lock too until it is another program.
        let take = || Journal::take(&state, &found[0]).unwrap();
        let taken = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            take()
        });
        let taken = taken.unwrap();
        assert_eq!(taken.content().unwrap().owner, Some(Owner::this()));
        taken.remove().unwrap();
        assert!(state.journals().is_empty());
        assert!(Journal::take(&state, &found[0]).unwrap().is_none());
    }
}
