//! The right to use a directory alone.
//!
//! Invariant: it is held by the open file (flock), not by the file's content or being there: it
//! goes when the holder drops it or dies, and nothing has to be cleaned up after a crash. The
//! holder's process number in the file is for the message only.
//! It keeps out those who ask for it; it protects no file. Network file systems may not have it.

use std::io::Write as _;
use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, ftruncate, openat};
use rustix::io::{Errno, pread};

use crate::disk::real::RealDisk;
use crate::disk::real::file::failed;
use crate::disk::{DiskError, FileName};

/// The only use of a directory, by those who ask for it under the same name. Released when it is
/// dropped or the process ends; the file stays.
#[derive(Debug)]
pub struct DirectoryLock {
    file: OwnedFd,
    name: FileName,
}

impl RealDisk {
    /// Takes the directory for this one use: whoever asks for the same name meanwhile is refused,
    /// in this process as in others. The file `name` is made and stays; [`list`] shows it.
    ///
    /// # Errors
    /// [`DiskError::Locked`] when someone holds it, or what the system says.
    ///
    /// [`list`]: crate::disk::Disk::list
    pub fn lock(&self, name: &FileName) -> Result<DirectoryLock, DiskError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let opened = openat(&self.0.directory, name.as_str(), flags, Mode::RUSR | Mode::WUSR);
        let file = opened.map_err(|errno| failed("open", name.as_str(), errno))?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => {
                    let (directory, name) = (self.0.name.clone(), name.to_string());
                    return Err(DiskError::Locked { directory, name, holder: holder(&file) });
                }
                Err(errno) => return Err(failed("lock", name.as_str(), errno)),
            }
        }
        let lock = DirectoryLock { file, name: name.clone() };
        // A full disk has no block for it, and what is on it can be used all the same.
        let _for_the_message_only = lock.sign();
        Ok(lock)
    }
}

impl DirectoryLock {
    /// The file that is locked.
    pub fn name(&self) -> &FileName {
        &self.name
    }

    /// Leaves this process's number for those who are refused.
    fn sign(&self) -> Result<(), Errno> {
        let mut text = Vec::new();
        // Writing into memory does not fail.
        let _written = writeln!(text, "{}", std::process::id());
        ftruncate(&self.file, 0)?;
        rustix::io::pwrite(&self.file, &text, 0).map(|_| ())
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // The number of a process that does not hold it any more would mislead.
        let _for_the_message_only = ftruncate(&self.file, 0);
        // By hand: a child that was forked meanwhile has the same open file.
        let _released_with_the_last_copy_else = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The process that holds the lock, if it left its number.
fn holder(file: &OwnedFd) -> Option<u32> {
    let mut text = [0; 16];
    let bytes = pread(file, &mut text, 0).ok()?;
    std::str::from_utf8(text.get(..bytes)?).ok()?.trim_end().parse().ok()
}
