//! The journal: what is meant to be changed, what was, and what is undone, one line each; or which
//! measuring files were made; and the directory where journals are kept, which a kill survives.
//!
//! Layout: a file of JSON lines, `changes-<pid>-<start>-<n>.jsonl`; the first line names the owner.
//! Invariant: a line, and the file's name, is on the disk before what it announces happens; the
//! file is locked as long as its owner lives; only the last line can be torn, and a torn line
//! announced nothing that happened. A journal that has grown long is replaced in one step by a
//! shorter one of the same meaning; a process that had opened the old one sees that it is no
//! journal any more. Only its owner may read the directory.
//!
//! Lines are only added, or all replaced by fewer of the same meaning; a change counts as undone
//! when its last line states it. Reading never fails; a line in the middle that cannot be read is
//! counted, not skipped silently.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::JournalError;
use crate::kind::{Change, Effect, JournalEntry, Prior};
use crate::seen::{ChangeId, Owner};
use crate::undone::How;
use crate::variables::ServerSetting;

/// A journal is not shortened before it has so many bytes, and then twice as many as it had after
/// it was last shortened.
const LONG_BYTES: u64 = 64 << 10;

/// Names tried before giving up; others only look at a new journal for a moment.
const NAMES: u32 = 100;

/// An open journal, locked by this process.
#[derive(Debug)]
pub(crate) struct Journal {
    state: StateDir,
    path: PathBuf,
    file: File,
    /// Its bytes after it was last shortened.
    short_bytes: u64,
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
                    let mut journal = Self { state: state.clone(), path, file, short_bytes: 0 };
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
    /// another process was faster.
    pub(crate) fn take(state: &StateDir, path: &Path) -> Result<Option<Self>, JournalError> {
        let opened = File::options().read(true).append(true).open(path);
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // What it contains can be undone all the same.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                File::open(path).map_err(|error| journal_error("open", path, error))?
            }
            opened => opened.map_err(|error| journal_error("open", path, error))?,
        };
        if !lock(&file).map_err(|error| journal_error("lock", path, error))? {
            return Ok(None);
        }
        // Its owner may live on with one that replaced it.
        let taken = Self { state: state.clone(), path: path.to_owned(), file, short_bytes: 0 };
        Ok(is_at(&taken.file, path).then_some(taken))
    }

    /// Its place.
    pub(crate) fn path(&self) -> &Path {
        &self.path
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
            match self.file.set_len(content.whole_bytes) {
                // Nothing will follow it on a disk that cannot be written.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                cut => cut.map_err(fail)?,
            }
        }
        Ok(content)
    }

    /// Lets nothing be written any more.
    #[cfg(test)]
    pub(crate) fn stop_noting(&mut self) {
        self.file = File::open(&self.path).unwrap();
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

    /// Replaces it by a shorter one with only these entries, when it has grown long. The lock of
    /// a server that holds the old one would not hold the new one, so there must be none.
    pub(crate) fn shorten(
        &mut self,
        owner: &Owner,
        entries: &[JournalEntry],
    ) -> Result<(), JournalError> {
        let fail = |source| journal_error("shorten", &self.path, source);
        let bytes = self.file.metadata().map_err(fail)?.len();
        if bytes <= LONG_BYTES.max(2 * self.short_bytes) {
            return Ok(());
        }
        let first = Record::Journal { version: VERSION, owner: owner.clone() };
        let mut lines = Vec::new();
        for record in [first].into_iter().chain(entries.iter().flat_map(Record::of)) {
            serde_json::to_writer(&mut lines, &record).map_err(|error| fail(error.into()))?;
            lines.push(b'\n');
        }
        self.file = replace(&self.path, &lines).map_err(fail)?;
        self.short_bytes = lines.len() as u64;
        self.state.sync()
    }

    /// Removes it: everything in it is settled.
    pub(crate) fn remove(self) -> Result<(), JournalError> {
        // A kill may have left the beginnings of a shorter one.
        let _there_is_none = fs::remove_file(beside(&self.path));
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(journal_error("remove", &self.path, error))
            }
            _ => self.state.sync(),
        }
    }
}

/// Puts a file with these bytes into the place of a journal, locked before it can be seen there.
fn replace(path: &Path, lines: &[u8]) -> io::Result<File> {
    let beside = beside(path);
    let _there_is_none = fs::remove_file(&beside);
    let mut file = create_locked(&beside)?.ok_or(io::ErrorKind::WouldBlock)?;
    let written = file.write_all(lines).and_then(|()| file.sync_all());
    match written.and_then(|()| fs::rename(&beside, path)) {
        Ok(()) => Ok(file),
        Err(error) => {
            let _is_removed_with_the_journal = fs::remove_file(&beside);
            Err(error)
        }
    }
}

/// Where the successor of a journal is written. No process looks for journals under such a name.
fn beside(path: &Path) -> PathBuf {
    path.with_extension("new")
}

/// Whether an open file is what is at a path.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (open, there) = (file.metadata().map(place), fs::metadata(path).map(place));
    matches!((open, there), (Ok(open), Ok(there)) if open == there)
}

/// A new file with its lock; `None` when a process that reads journals was faster.
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

/// Version of the lines.
pub(crate) const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record {
    /// The first.
    Journal { version: u32, owner: Owner },
    /// A change is about to be made.
    Intent { id: ChangeId, change: Change, before: Prior },
    /// Settings of a group that is in place are about to be adjusted.
    Adjusting { id: ChangeId, settings: Vec<ServerSetting> },
    /// It was made, or adjusted.
    Done { id: ChangeId, after: Effect },
    /// The journal belongs to this process from now on.
    HandedOver { to: Owner },
    /// It is about to be undone.
    Undoing { id: ChangeId },
    /// It is undone.
    Undone { id: ChangeId, how: How },
    /// Files to measure on are about to be made; they go with their process.
    Files { at_us: u64, paths: Vec<PathBuf> },
}

impl Record {
    /// The line that announces a change.
    pub(crate) fn intent(entry: &JournalEntry) -> Self {
        let JournalEntry { id, change, prior, .. } = entry.clone();
        Self::Intent { id, change, before: prior }
    }

    /// The lines of a change.
    fn of(entry: &JournalEntry) -> Vec<Self> {
        let (id, adjusting) = (entry.id, &entry.adjusting);
        let mut records = vec![Self::intent(entry)];
        records.extend(entry.effect.clone().map(|after| Self::Done { id, after }));
        if !adjusting.is_empty() {
            records.push(Self::Adjusting { id, settings: adjusting.clone() });
        }
        if entry.was_undoing {
            records.push(Self::Undoing { id });
        }
        records
    }
}

/// What a journal holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) owner: Option<Owner>,
    /// Changes that are not undone, in the order in which they were made.
    pub(crate) entries: Vec<JournalEntry>,
    /// Files that were announced, each with when.
    pub(crate) files: Vec<(PathBuf, u64)>,
    /// Bytes of the whole lines.
    whole_bytes: u64,
    /// Whole lines that could not be read.
    pub(crate) damaged_lines: u32,
}

/// Reads the bytes of a journal.
pub(crate) fn parse(bytes: &[u8]) -> Content {
    let mut content = Content::default();
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    content.whole_bytes = end as u64;
    for line in bytes[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice(line) {
            Ok(record) => content.take(record),
            Err(_) => content.damaged_lines += 1,
        }
    }
    content
}

impl Content {
    fn take(&mut self, record: Record) {
        match record {
            Record::Journal { version, owner } => {
                // A newer version may hold more than is understood here.
                self.damaged_lines += u32::from(version > VERSION);
                self.owner = Some(owner);
            }
            Record::Intent { id, change, before: prior } => {
                self.entries.push(JournalEntry::intended(id, change, prior));
            }
            Record::Adjusting { id, settings } => {
                if let Some(entry) = self.entry(id) {
                    entry.adjusting.extend(settings);
                }
            }
            Record::Done { id, after } => {
                if let Some(entry) = self.entry(id) {
                    entry.effect = Some(after);
                    entry.adjusting.clear();
                }
            }
            Record::HandedOver { to } => self.owner = Some(to),
            Record::Undoing { id } => {
                if let Some(entry) = self.entry(id) {
                    entry.was_undoing = true;
                }
            }
            Record::Undone { id, .. } => self.entries.retain(|entry| entry.id != id),
            Record::Files { at_us, paths } => {
                self.files.extend(paths.into_iter().map(|path| (path, at_us)));
            }
        }
    }

    fn entry(&mut self, id: ChangeId) -> Option<&mut JournalEntry> {
        self.entries.iter_mut().find(|entry| entry.id == id)
    }
}

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
    use crate::kind::{DropCaches, DropEffect, Nothing};

    #[test]
    fn a_journal_is_locked_while_its_owner_lives() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::at(dir.path().join("state"));
        let journal = Journal::begin(&state, &Owner::this()).unwrap();
        let found = state.journals();
        assert_eq!(found, std::slice::from_ref(&journal.path));
        assert!(Journal::take(&state, &found[0]).unwrap().is_none());
        drop(journal);
        let taken = soon(|| Journal::take(&state, &found[0]).unwrap()).unwrap();
        assert_eq!(taken.content().unwrap().owner, Some(Owner::this()));
        taken.remove().unwrap();
        assert!(state.journals().is_empty());
        assert!(Journal::take(&state, &found[0]).unwrap().is_none());
    }

    /// Another test may be starting a child, which has the lock too until it is another program.
    fn soon<T>(take: impl Fn() -> Option<T>) -> Option<T> {
        (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            take()
        })
    }

    /// A journal with so many lines about one change.
    fn long(state: &StateDir) -> (Journal, JournalEntry) {
        let mut journal = Journal::begin(state, &Owner::this()).unwrap();
        let mut entry = JournalEntry::intended(ChangeId(1), DropCaches.into(), Nothing.into());
        entry.effect = Some(DropEffect.into());
        Record::of(&entry).iter().for_each(|record| journal.append(record).unwrap());
        while journal.file.metadata().unwrap().len() <= LONG_BYTES {
            journal.append(&Record::Done { id: entry.id, after: DropEffect.into() }).unwrap();
        }
        (journal, entry)
    }

    #[test]
    fn a_long_journal_becomes_a_short_one_that_says_the_same() {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let state = StateDir::at(dir.path().join("state"));
        let (mut journal, entry) = long(&state);
        let before = journal.content().unwrap();
        // A process that opened the old one just before finds that it is no journal any more.
        let old = File::options().read(true).append(true).open(&journal.path).unwrap();
        fs::write(beside(&journal.path), "the rest of a kill").unwrap();
        journal.shorten(&Owner::this(), std::slice::from_ref(&entry)).unwrap();
        let after = journal.content().unwrap();
        assert_eq!(after.entries, std::slice::from_ref(&entry));
        assert_eq!((after.entries, after.owner), (before.entries, before.owner));
        assert!(after.whole_bytes < 1000, "{}", after.whole_bytes);
        assert_eq!(state.journals(), std::slice::from_ref(&journal.path));
        assert!(
            soon(|| lock(&old).unwrap().then_some(())).is_some() && !is_at(&old, &journal.path)
        );
        assert!(Journal::take(&state, &journal.path).unwrap().is_none(), "the new one is locked");
        // It goes on in the new one, which is not shortened again at once.
        journal.append(&Record::Undoing { id: entry.id }).unwrap();
        journal.shorten(&Owner::this(), &[]).unwrap();
        assert!(journal.content().unwrap().entries[0].was_undoing);
        fs::write(beside(&journal.path), "the rest of a kill").unwrap();
        journal.remove().unwrap();
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0);
    }

    fn lines(records: &[Record]) -> Vec<u8> {
        let line = |record| serde_json::to_string(record).unwrap() + "\n";
        records.iter().map(line).collect::<String>().into_bytes()
    }

    fn three() -> Vec<u8> {
        let intent = |id| Record::Intent {
            id: ChangeId(id),
            change: DropCaches.into(),
            before: Nothing.into(),
        };
        let owner = Owner { pid: 1, start_ticks: 2, boot_id: "b".into() };
        lines(&[
            Record::Journal { version: VERSION, owner },
            intent(1),
            Record::Done { id: ChangeId(1), after: DropEffect.into() },
            intent(2),
            Record::Undoing { id: ChangeId(1) },
            Record::Undone { id: ChangeId(1), how: How::PutBack },
            intent(3),
        ])
    }

    #[test]
    fn what_is_not_undone_is_found() {
        let content = parse(&three());
        let ids: Vec<u32> = content.entries.iter().map(|entry| entry.id.0).collect();
        assert_eq!(ids, [2, 3]);
        assert_eq!((content.damaged_lines, content.owner.unwrap().pid), (0, 1));
    }

    #[test]
    fn any_prefix_is_read_without_damage() {
        let bytes = three();
        for end in 0..bytes.len() {
            let content = parse(&bytes[..end]);
            assert_eq!(content.damaged_lines, 0, "{end}");
            assert!(content.whole_bytes <= end as u64);
        }
    }

    #[test]
    fn damage_in_the_middle_is_counted() {
        let mut bytes = three();
        bytes.splice(0..0, *b"{\"record\":\"unheard_of\"}\n");
        let content = parse(&bytes);
        assert_eq!((content.damaged_lines, content.entries.len()), (1, 2));
    }
}

#[cfg(test)]
mod state_tests {
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
