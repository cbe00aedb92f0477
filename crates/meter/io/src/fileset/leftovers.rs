//! The files that this process made and still has to remove, those that a killed one left, and the
//! marks by which they are known.
//!
//! Invariant: a path is on the list from before the file is visible until it is removed or complete
//! and kept; a file that took its place meanwhile (another inode) is left alone. Where a
//! [`FileRecord`] is kept, it has a path before the file is made, and the file carries a mark. A
//! file of a dead process is removed only if that mark, or being empty, shows whose it is. It is
//! not for use inside a signal handler: it takes a lock. A thread that waits for signals may.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;
use std::{fs, io};

use rustix::fs::{XattrFlags, fremovexattr, fsetxattr, getxattr};
use rustix::io::Errno;

use crate::fileset::plan::{Fill, directory_of};

static LEFTOVERS: Mutex<OwnFiles> = Mutex::new(OwnFiles { files: Vec::new(), record: None });

/// Clocks of file systems tick more coarsely than the clock that a record is stamped with.
const CLOCK_GRAIN_US: u64 = 100_000;

/// Where it is written down which files a process makes, for others to remove after a kill.
pub trait FileRecord: Send {
    /// Takes down files that are about to be made; durable when it returns. Returns the words that
    /// their marks name the owner by; none when nothing could be written down, and the files are
    /// made all the same.
    fn announce(&mut self, paths: &[PathBuf]) -> Option<String>;
    /// Every file is gone or kept.
    fn settle(&mut self);
}

/// The files that this process made.
struct OwnFiles {
    files: Vec<Leftover>,
    record: Option<Box<dyn FileRecord>>,
}

/// Keeps a record of all files that are made from now on.
pub fn record_files(record: Box<dyn FileRecord>) {
    lock().record = Some(record);
}

/// Writes down that these files are about to be made, and returns how their marks name the owner.
pub(crate) fn announce(paths: &[PathBuf]) -> Option<String> {
    let paths: Vec<PathBuf> = paths.iter().filter_map(|path| real(path).ok()).collect();
    lock().record.as_mut()?.announce(&paths)
}

/// The path by which a later process finds the file: absolute, and its directory without links.
fn real(path: &Path) -> io::Result<PathBuf> {
    let directory = fs::canonicalize(super::plan::directory_of(path))?;
    Ok(directory.join(path.file_name().unwrap_or_default()))
}

/// The bytes that a file of a dead process takes, when it was made by `owner` to go with its run.
/// A file without a mark counts when it is empty, private and no older than its announcement: its
/// maker was killed before it could mark it.
pub fn abandoned_bytes(path: &Path, owner: &str, announced_us: u64) -> Option<u64> {
    let meta = fs::symlink_metadata(path).ok()?;
    let is_marked = is_temporary_of(path, &meta, owner);
    let is_mine = meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0;
    let is_new = born_us(&meta).is_some_and(|born_us| born_us + CLOCK_GRAIN_US >= announced_us);
    let is_empty = meta.is_file() && meta.len() == 0;
    let is_unmarked = is_empty && is_mine && is_new && !is_there(path);
    (is_marked || is_unmarked).then(|| meta.blocks() * 512)
}

/// Removes a file for which [`abandoned_bytes`] answered.
///
/// # Errors
/// When the kernel refuses.
pub fn remove_abandoned(path: &Path) -> io::Result<()> {
    fs::remove_file(path)?;
    remove_beside(path)
}

/// One file to remove, known by its path and inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leftover {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Removes every file that this process made and did not mean to keep. Returns how many it
/// removed. For the thread that waits for signals, and for the end of a program.
pub fn remove_leftovers() -> usize {
    let mut made = lock();
    let removed = made.files.iter().filter(|file| unlink(file)).count();
    made.files.clear();
    if let Some(record) = &mut made.record {
        record.settle();
    }
    removed
}

/// Makes a file that must not exist yet, lists it, and marks it with its owner.
pub(crate) fn create(path: &Path, owner: Option<&str>) -> io::Result<(File, Leftover)> {
    // Under the lock, so that the file is never there without being listed.
    let mut made = lock();
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    let meta = file.metadata()?;
    // A directory change of the process must not lead to another file.
    let path = std::path::absolute(path)?;
    let leftover = Leftover { path, device: meta.dev(), inode: meta.ino() };
    if let Some(owner) = owner {
        set_temporary(&leftover.path, &file, owner).inspect_err(|_| {
            unlink(&leftover);
        })?;
    }
    made.files.push(leftover.clone());
    Ok((file, leftover))
}

/// Takes a file off the list: it stays.
pub(crate) fn keep(file: &Leftover) {
    lock().files.retain(|listed| listed != file);
}

/// Removes one file and takes it off the list.
pub(crate) fn remove(file: &Leftover) {
    let files = &mut lock().files;
    let listed = files.len();
    files.retain(|other| other != file);
    if files.len() < listed {
        unlink(file);
    }
}

fn unlink(file: &Leftover) -> bool {
    let same = fs::symlink_metadata(&file.path)
        .is_ok_and(|meta| meta.dev() == file.device && meta.ino() == file.inode);
    same && remove_abandoned(&file.path).is_ok()
}

fn lock() -> MutexGuard<'static, OwnFiles> {
    LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

// The mark of a file that iostrata made: filled completely and kept, or to go with its run.
//
// Layout: one line of text in the extended attribute `user.iostrata`; where the file system has
// none, in a hidden file `.NAME.iostrata` in the same directory. A kept file has
// `iostrata 1 <bytes> <device> <inode> <fill>`, one that goes with its run
// `iostrata-temporary 1 <inode> <born_us> <owner>`. The inode keeps a copy from passing as the
// original, and its birth a later file of the same inode.
// Invariant: the mark of a kept file is set only after the last byte was written and flushed, and
// taken away before the file is changed in size; a file whose size or allocation does not match
// its mark is not used again. A temporary file is marked before its first byte is written.

const ATTRIBUTE: &str = "user.iostrata";
const LONGEST_BYTES: usize = 256;

/// Whether iostrata made this very file, complete or not any more.
pub(super) fn is_ours(path: &Path) -> bool {
    let Ok(meta) = fs::metadata(path) else { return false };
    read(path).is_some_and(|text| {
        let mut words = text.split(' ');
        let head = (words.next(), words.next());
        let identity = (words.nth(1), words.next());
        let (device, inode) = (meta.dev().to_string(), meta.ino().to_string());
        head == (Some("iostrata"), Some("1")) && identity == (Some(&device), Some(&inode))
    })
}

/// Whether the file is ours, has the right size and fill, and nothing of it is missing.
pub(super) fn is_complete(path: &Path, bytes: u64, fill: Fill) -> bool {
    let Ok(meta) = fs::metadata(path) else { return false };
    // A file that was truncated and extended again, or lost blocks, has fewer sectors than bytes.
    let allocated = meta.blocks() * 512 >= meta.len();
    let text = text(bytes, &meta, fill);
    meta.len() == bytes && allocated && read(path).is_some_and(|found| found == text)
}

/// Sets the mark and makes it durable.
pub(super) fn set(path: &Path, file: &File, bytes: u64, fill: Fill) -> io::Result<()> {
    write(path, file, &text(bytes, &file.metadata()?, fill))?;
    file.sync_all()
}

/// Marks a file that was just made as one that goes with the run of `owner`.
fn set_temporary(path: &Path, file: &File, owner: &str) -> io::Result<()> {
    write(path, file, &temporary(&file.metadata()?, owner))
}

/// Whether `owner` made this very file, and it is not to be kept.
fn is_temporary_of(path: &Path, meta: &fs::Metadata, owner: &str) -> bool {
    meta.is_file() && read(path).is_some_and(|found| found == temporary(meta, owner))
}

/// Whether the file has any mark.
fn is_there(path: &Path) -> bool {
    read(path).is_some()
}

/// Removes the hidden file that holds the mark where the file system has no attributes.
fn remove_beside(path: &Path) -> io::Result<()> {
    match fs::remove_file(beside(path)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Takes the mark away.
pub(super) fn clear(path: &Path, file: &File) -> io::Result<()> {
    match fremovexattr(file.as_fd(), ATTRIBUTE) {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::PERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    remove_beside(path)
}

fn text(bytes: u64, meta: &fs::Metadata, fill: Fill) -> String {
    let fill = match fill {
        Fill::Written => "written",
        Fill::Fallocated | Fill::Grown => "fallocated",
        Fill::Empty | Fill::Absent => "empty",
    };
    format!("iostrata 1 {bytes} {} {} {fill}", meta.dev(), meta.ino())
}

fn temporary(meta: &fs::Metadata, owner: &str) -> String {
    format!("iostrata-temporary 1 {} {} {owner}", meta.ino(), born_us(meta).unwrap_or(0))
}

/// When a file was made, where the file system reports it.
fn born_us(meta: &fs::Metadata) -> Option<u64> {
    let born = meta.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(born.as_micros() as u64)
}

fn write(path: &Path, file: &File, text: &str) -> io::Result<()> {
    match fsetxattr(file.as_fd(), ATTRIBUTE, text.as_bytes(), XattrFlags::empty()) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::PERM | Errno::NOSPC) => {
            // An older mark would be found first.
            clear(path, file)?;
            fs::write(beside(path), text)
        }
        Err(errno) => Err(errno.into()),
    }
}

fn read(path: &Path) -> Option<String> {
    let mut value = [0; LONGEST_BYTES];
    match getxattr(path, ATTRIBUTE, &mut value) {
        Ok(length) => String::from_utf8(value[..length].to_vec()).ok(),
        Err(_) => fs::read_to_string(beside(path)).ok(),
    }
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    directory_of(path).join(format!(".{name}.iostrata"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list is the process's: one test at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn only_what_was_made_here_and_not_kept_is_removed() {
        let _alone = alone();
        let directory = tempfile::tempdir().unwrap();
        let path = |name| directory.path().join(name);
        let (_file, kept) = create(&path("kept"), None).unwrap();
        keep(&kept);
        create(&path("left"), None).unwrap();
        // Another file of the same name is not ours any more.
        create(&path("replaced"), None).unwrap();
        fs::write(path("other"), "theirs").unwrap();
        fs::rename(path("other"), path("replaced")).unwrap();
        let (_file, gone) = create(&path("gone"), None).unwrap();
        remove(&gone);

        assert_eq!(remove_leftovers(), 1);
        assert!(path("kept").exists() && path("replaced").exists());
        assert!(!path("left").exists() && !path("gone").exists());
        assert!(create(&path("kept"), None).is_err());
    }

    #[test]
    fn of_a_dead_process_only_what_it_marked_is_removed() {
        const OWNER: &str = "7 8 boot";
        let _alone = alone();
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = |name| directory.path().join(name);
        let mebibyte = vec![1; 1 << 20];
        let fill = |mut file: &File| io::Write::write_all(&mut file, &mebibyte).unwrap();
        let (marked, _) = create(&path("marked"), Some(OWNER)).unwrap();
        fill(&marked);
        let bytes = |name, owner, at_us| abandoned_bytes(&path(name), owner, at_us);
        assert!(bytes("marked", OWNER, u64::MAX).is_some_and(|bytes| bytes >= 1 << 20));
        assert_eq!(bytes("marked", "7 9 boot", 0), None, "made by another process");

        // A copy with all its attributes, and a new file of the same name, are not ours.
        let mut copy = std::process::Command::new("cp");
        copy.arg("-a").arg(path("marked")).arg(path("copy"));
        assert!(copy.status().unwrap().success());
        assert_eq!(bytes("copy", OWNER, 0), None);
        fs::remove_file(path("marked")).unwrap();
        fs::write(path("marked"), "theirs").unwrap();
        assert_eq!(bytes("marked", OWNER, 0), None);
        std::os::unix::fs::symlink(path("copy"), path("link")).unwrap();
        assert_eq!(bytes("link", OWNER, 0), None);

        // Killed before it could be marked: empty, private and new.
        let (file, _) = create(&path("empty"), None).unwrap();
        assert_eq!(bytes("empty", OWNER, 0), Some(0));
        assert_eq!(bytes("empty", OWNER, u64::MAX - CLOCK_GRAIN_US), None, "older than announced");
        fill(&file);
        assert_eq!(bytes("empty", OWNER, 0), None, "it was written to");

        // One that is kept is no leftover.
        let (file, _) = create(&path("kept"), Some(OWNER)).unwrap();
        set(&path("kept"), &file, 0, crate::Fill::Empty).unwrap();
        assert_eq!(bytes("kept", OWNER, 0), None);
    }
}
