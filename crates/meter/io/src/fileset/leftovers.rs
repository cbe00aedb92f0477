//! The files that this process made and still has to remove.
//!
//! Invariant: a path is on the list from before anybody can see the file until it is removed or
//! complete and kept; a file that took its place meanwhile (another inode) is left alone.
//! It is not for use inside a signal handler: it takes a lock. A thread that waits for signals may.

use std::fs;
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static LEFTOVERS: Mutex<Vec<Leftover>> = Mutex::new(Vec::new());

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
    let mut leftovers = lock();
    let removed = leftovers.iter().filter(|file| unlink(file)).count();
    leftovers.clear();
    removed
}

/// Makes a file that must not exist yet, and lists it.
pub(crate) fn create(path: &Path) -> io::Result<(File, Leftover)> {
    // Under the lock, so that the file is never there without being listed.
    let mut leftovers = lock();
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    let meta = file.metadata()?;
    // A directory change of the process must not lead to another file.
    let path = std::path::absolute(path)?;
    let leftover = Leftover { path, device: meta.dev(), inode: meta.ino() };
    leftovers.push(leftover.clone());
    Ok((file, leftover))
}

/// Takes a file off the list: it stays.
pub(crate) fn keep(file: &Leftover) {
    lock().retain(|listed| listed != file);
}

/// Removes one file and takes it off the list.
pub(crate) fn remove(file: &Leftover) {
    let mut leftovers = lock();
    let listed = leftovers.len();
    leftovers.retain(|other| other != file);
    if leftovers.len() < listed {
        unlink(file);
    }
}

fn unlink(file: &Leftover) -> bool {
    let same = fs::symlink_metadata(&file.path)
        .is_ok_and(|meta| meta.dev() == file.device && meta.ino() == file.inode);
    same && fs::remove_file(&file.path).is_ok()
}

fn lock() -> MutexGuard<'static, Vec<Leftover>> {
    LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_here_and_not_kept_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name| directory.path().join(name);
        let (_file, kept) = create(&path("kept")).unwrap();
        keep(&kept);
        create(&path("left")).unwrap();
        // Another file of the same name is not ours any more.
        create(&path("replaced")).unwrap();
        fs::write(path("other"), "theirs").unwrap();
        fs::rename(path("other"), path("replaced")).unwrap();
        let (_file, gone) = create(&path("gone")).unwrap();
        remove(&gone);

        assert_eq!(remove_leftovers(), 1);
        assert!(path("kept").exists() && path("replaced").exists());
        assert!(!path("left").exists() && !path("gone").exists());
        assert!(create(&path("kept")).is_err());
    }
}
