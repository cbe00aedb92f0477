//! A disk over a directory of a real file system, its options, and the right to use the directory
//! alone.
//!
//! Invariant: direct I/O where the file system takes it, and `facts` reports whether it did;
//! nothing is synced unless requested. Clones are the same disk. No option changes what a call
//! promises, only how it is kept and what it costs. Who may use the directory is not its concern,
//! unless the lock is requested.

mod batch;
mod file;

use std::collections::HashMap;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstatvfs, fsync, ftruncate, open,
    openat, renameat, unlinkat,
};
use rustix::io::{Errno, pread};

use crate::api::sync::flush;
use crate::disk::{
    Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName, InTurn,
};
use crate::open::DSYNC;
use crate::{Refusal, SyncKind};
use batch::{Carrier, QueuedBatch};
use file::{OpenFile, failed};

/// Carriers that are kept for the next batch; more are given back to the kernel.
const SPARE_CARRIERS: usize = 16;

#[derive(Default)]
struct Files {
    open: HashMap<FileId, Arc<OpenFile>>,
    next: u32,
}

struct Inner {
    directory: OwnedFd,
    name: String,
    options: RealOptions,
    files: RwLock<Files>,
    carriers: Mutex<Carriers>,
}

/// Making a ring or a context costs more than a batch of a few requests.
struct Carriers {
    spare: Vec<Box<dyn Carrier>>,
    granted: BatchGrant,
}

/// A disk over a directory. Clones are the same disk.
#[derive(Clone)]
pub struct RealDisk(Arc<Inner>);

impl std::fmt::Debug for RealDisk {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "RealDisk({})", self.0.name)
    }
}

impl RealDisk {
    /// Takes an existing directory as a disk; `direct` requests direct I/O, file by file. Batches
    /// run in turn.
    ///
    /// # Errors
    /// When the directory cannot be opened.
    pub fn new(directory: &Path, direct: bool) -> Result<Self, DiskError> {
        let batch = BatchKind::Sync;
        Self::with(directory, RealOptions { direct, batch, ..RealOptions::default() })
    }

    /// Takes an existing directory as a disk.
    ///
    /// # Errors
    /// When the directory cannot be opened. What the kernel does not grant is no error:
    /// [`facts`](Disk::facts) and [`batch_granted`](Self::batch_granted) report it.
    pub fn with(directory: &Path, options: RealOptions) -> Result<Self, DiskError> {
        let name = directory.display().to_string();
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = open(directory, flags, Mode::empty());
        let directory = opened.map_err(|errno| failed("open", &name, errno))?;
        let files = RwLock::new(Files::default());
        let (first, granted) = batch::grant(options.batch, depth(options));
        let carriers = Mutex::new(Carriers { spare: first.into_iter().collect(), granted });
        Ok(Self(Arc::new(Inner { directory, name, options, files, carriers })))
    }

    /// What the newest batch was made of; before the first, what it will be made of.
    pub fn batch_granted(&self) -> BatchGrant {
        self.carriers().granted.clone()
    }

    fn carriers(&self) -> MutexGuard<'_, Carriers> {
        self.0.carriers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a carrier that holds nothing for the next batch.
    fn give_back(&self, carrier: Box<dyn Carrier>) {
        let mut carriers = self.carriers();
        if carrier.is_fit() && carriers.spare.len() < SPARE_CARRIERS {
            carriers.spare.push(carrier);
        }
    }

    fn file(&self, file: FileId) -> Arc<OpenFile> {
        let files = self.0.files.read().unwrap_or_else(PoisonError::into_inner);
        match files.open.get(&file) {
            Some(open) => Arc::clone(open),
            None => panic!("{file:?} is not open"),
        }
    }

    fn always_through(&self) -> bool {
        self.0.options.write_through == WriteThrough::OpenFlag
    }

    fn open_at(&self, name: &FileName, mode: FileMode) -> Result<(OwnedFd, bool), Errno> {
        let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if self.always_through() {
            flags |= DSYNC;
        }
        let flags = match mode {
            FileMode::Existing => flags,
            FileMode::Create => flags | OFlags::CREATE,
            FileMode::CreateNew => flags | OFlags::CREATE | OFlags::EXCL,
        };
        let rights = Mode::RUSR | Mode::WUSR;
        let open = |flags| openat(&self.0.directory, name.as_str(), flags, rights);
        if !self.0.options.direct {
            return Ok((open(flags)?, false));
        }
        match open(flags | OFlags::DIRECT) {
            // A refusal may come after the file was made; it is then there for the second try.
            Err(Errno::INVAL) => Ok((open(flags - OFlags::EXCL)?, false)),
            opened => Ok((opened?, true)),
        }
    }
}

fn depth(options: RealOptions) -> u32 {
    options.depth.clamp(1, MOST_DEPTH)
}

impl Disk for RealDisk {
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        let opened = self.open_at(name, mode);
        let (descriptor, direct) = opened.map_err(|errno| failed("open", name.as_str(), errno))?;
        let file = OpenFile::new(descriptor, name.clone(), direct, self.0.options);
        let mut files = self.0.files.write().unwrap_or_else(PoisonError::into_inner);
        let id = FileId(files.next);
        files.next += 1;
        files.open.insert(id, Arc::new(file));
        Ok(id)
    }

    fn close(&self, file: FileId) {
        self.0.files.write().unwrap_or_else(PoisonError::into_inner).open.remove(&file);
    }

    fn facts(&self, file: FileId) -> Facts {
        self.file(file).facts
    }

    fn free_bytes(&self) -> Option<u64> {
        let found = fstatvfs(&self.0.directory).ok()?;
        // One without a size has no bound, or does not report it.
        (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
    }

    fn len(&self, file: FileId) -> Result<u64, DiskError> {
        self.file(file).len()
    }

    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        let file = self.file(file);
        file.check_alignment(at, into.len() as u64)?;
        file.read(at, into, 0)
    }

    fn write(&self, file: FileId, at: u64, from: &Aligned, d: Durability) -> Result<(), DiskError> {
        let file = self.file(file);
        file.check_alignment(at, from.len() as u64)?;
        file.write(at, from, d, 0)
    }

    fn write_parts(
        &self,
        file: FileId,
        at: u64,
        parts: &[&Aligned],
        d: Durability,
    ) -> Result<(), DiskError> {
        let file = self.file(file);
        for (part, at) in parts.iter().zip(starts(at, parts)) {
            file.check_alignment(at, part.len() as u64)?;
        }
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        file.write_parts(at, &parts, d)
    }

    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError> {
        let file = self.file(file);
        flush(file.descriptor.as_fd(), kind, (0, 0)).map_err(file.failed("sync"))
    }

    fn batch(&self) -> Box<dyn Batch> {
        let depth = depth(self.0.options);
        let spare = self.carriers().spare.pop();
        let carrier = spare.or_else(|| {
            let (carrier, granted) = batch::grant(self.0.options.batch, depth);
            self.carriers().granted = granted;
            carrier
        });
        match carrier {
            Some(carrier) => Box::new(QueuedBatch::new(self.clone(), carrier, depth)),
            None => Box::new(InTurn::new(self.clone())),
        }
    }

    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError> {
        let file = self.file(file);
        ftruncate(&file.descriptor, len).map_err(file.failed("set the length of"))
    }

    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError> {
        let directory = &self.0.directory;
        renameat(directory, from.as_str(), directory, to.as_str())
            .map_err(|errno| failed("rename", from.as_str(), errno))
    }

    fn remove(&self, name: &FileName) -> Result<(), DiskError> {
        unlinkat(&self.0.directory, name.as_str(), AtFlags::empty())
            .map_err(|errno| failed("remove", name.as_str(), errno))
    }

    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        let failed = |errno| failed("list", &self.0.name, errno);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0.directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // Unknown is a file too: some file systems do not report the type.
            let is_file = !matches!(entry.file_type(), FileType::Directory | FileType::Symlink);
            // A name that is not text was not made here.
            if let (true, Ok(name)) = (is_file, entry.file_name().to_str()) {
                names.extend(FileName::new(name));
            }
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        fsync(&self.0.directory).map_err(|errno| failed("sync", &self.0.name, errno))
    }
}

/// Where each of these parts begins when the first one begins at `at`.
fn starts<'a>(at: u64, parts: &'a [&Aligned]) -> impl Iterator<Item = u64> + 'a {
    parts.iter().scan(at, |end, part| {
        let start = *end;
        *end += part.len() as u64;
        Some(start)
    })
}

// How a real disk carries out its calls.
//
// Invariant: no option changes what a call promises, only how it is kept and what it costs.

/// How a write that is to survive a crash is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteThrough {
    /// By RWF_DSYNC on this one write.
    #[default]
    PerWrite,
    /// By O_DSYNC on the file: every write of this disk is durable when it returns, also those that
    /// did not request it.
    OpenFlag,
}

/// What keeps the requests of a batch in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BatchKind {
    /// One after another by pread and pwrite, when they are waited for.
    Sync,
    /// io_submit. Asynchronous for direct I/O only: a buffered request is carried out whole while
    /// it is submitted.
    Libaio,
    /// io_uring.
    #[default]
    IoUring,
}

/// The options of a real disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealOptions {
    /// Direct I/O, file by file, where the file system takes it.
    pub direct: bool,
    /// How write-through writes are made durable.
    pub write_through: WriteThrough,
    /// What batches are made of; the next lower kind where the kernel does not grant it.
    pub batch: BatchKind,
    /// Requests that one batch keeps in flight at most, 1 to [`MOST_DEPTH`]; more wait their turn.
    pub depth: u32,
    /// Request that the kernel does not tear writes (RWF_ATOMIC) that it can take that way: direct,
    /// of a length that is a power of two within the limits of the file, at a multiple of that
    /// length. `Facts::atomic_write_bytes` is 0 without it.
    pub atomic: bool,
}

/// The most requests that one batch keeps in flight.
pub const MOST_DEPTH: u32 = 4096;

impl Default for RealOptions {
    /// Direct, io_uring, 64 in flight.
    fn default() -> Self {
        Self {
            direct: true,
            write_through: WriteThrough::default(),
            batch: BatchKind::default(),
            depth: 64,
            atomic: false,
        }
    }
}

/// What the batches of a disk are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchGrant {
    /// The kind; for [`BatchKind::Sync`] the depth means nothing.
    pub kind: BatchKind,
    /// Requests in flight at most.
    pub depth: u32,
    /// What was requested and not granted, and why.
    pub refused: Vec<Refusal>,
}

// The right to use a directory alone.
//
// Invariant: it is held by the open file (flock), not by the file's content or being there: it goes
// when the holder drops it or dies, and nothing has to be cleaned up after a crash. The holder's
// process number in the file is for the message only. It keeps out only users that take it; it
// protects no file. Network file systems may not have it.

/// The only use of a directory, among those that lock it under the same name. Released when it is
/// dropped or the process ends; the file stays.
#[derive(Debug)]
pub struct DirectoryLock {
    file: OwnedFd,
    name: FileName,
}

impl RealDisk {
    /// Takes the directory for this one use: a second lock of the same name is refused, in this
    /// process as in others. The file `name` is made and stays; [`list`] shows it.
    ///
    /// # Errors
    /// [`DiskError::Locked`] when someone holds it, or the system's error.
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

    /// Leaves this process's number for those that are refused.
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

#[cfg(test)]
mod tests {
    use rustix::fs::fcntl_getfl;

    use super::*;

    #[test]
    fn the_options_reach_the_descriptor() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let name = FileName::new("a").unwrap();
        let opened = |options| {
            let disk = RealDisk::with(directory.path(), options).unwrap();
            let file = disk.open(&name, FileMode::Create).unwrap();
            let flags = fcntl_getfl(&disk.file(file).descriptor).unwrap();
            let through = disk.file(file).write_flags(0, 4096, Durability::WriteThrough);
            (flags, through, disk.facts(file))
        };
        let plain = RealOptions { direct: false, ..RealOptions::default() };
        let (flags, through, facts) = opened(plain);
        assert!(!flags.intersects(OFlags::SYNC | OFlags::DIRECT));
        assert_eq!((through, facts.direct), (libc::RWF_DSYNC, false));
        let (flags, through, _) =
            opened(RealOptions { write_through: WriteThrough::OpenFlag, ..plain });
        assert_eq!((flags & OFlags::SYNC, through), (DSYNC, 0), "O_DSYNC and nothing twice");
        let (flags, _, facts) = opened(RealOptions::default());
        assert_eq!(flags.contains(OFlags::DIRECT), facts.direct);
    }
}
