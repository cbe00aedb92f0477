//! A disk over a directory of a real file system.
//!
//! Invariant: direct I/O where the file system takes it, and `facts` says whether it did; nothing
//! is synced that was not asked for. Clones are the same disk.
//! A batch runs its requests one after another: it saves no time over single calls yet.

use std::collections::HashMap;
use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, fstat, fsync, ftruncate, open, openat, renameat, unlinkat,
};
use rustix::io::{Errno, ReadWriteFlags, pread, pwrite, pwritev2};

use crate::SyncKind;
use crate::api::sync::flush;
use crate::disk::{
    Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName, InTurn,
};
use crate::open::alignment;
use crate::queue;

struct OpenFile {
    descriptor: OwnedFd,
    name: FileName,
    facts: Facts,
}

#[derive(Default)]
struct Files {
    open: HashMap<FileId, Arc<OpenFile>>,
    next: u32,
}

struct Inner {
    directory: OwnedFd,
    name: String,
    direct: bool,
    files: RwLock<Files>,
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
    /// Takes an existing directory as a disk; `direct` asks for direct I/O, file by file.
    ///
    /// # Errors
    /// When the directory cannot be opened.
    pub fn new(directory: &Path, direct: bool) -> Result<Self, DiskError> {
        let name = directory.display().to_string();
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = open(directory, flags, Mode::empty());
        let directory = opened.map_err(|errno| failed("open", &name, errno))?;
        let files = RwLock::new(Files::default());
        Ok(Self(Arc::new(Inner { directory, name, direct, files })))
    }

    fn file(&self, file: FileId) -> Arc<OpenFile> {
        let files = self.0.files.read().unwrap_or_else(PoisonError::into_inner);
        match files.open.get(&file) {
            Some(open) => Arc::clone(open),
            None => panic!("{file:?} is not open"),
        }
    }

    fn open_at(&self, name: &FileName, mode: FileMode) -> Result<(OwnedFd, bool), Errno> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let flags = match mode {
            FileMode::Existing => flags,
            FileMode::Create => flags | OFlags::CREATE,
            FileMode::CreateNew => flags | OFlags::CREATE | OFlags::EXCL,
        };
        let rights = Mode::RUSR | Mode::WUSR;
        let open = |flags| openat(&self.0.directory, name.as_str(), flags, rights);
        if !self.0.direct {
            return Ok((open(flags)?, false));
        }
        match open(flags | OFlags::DIRECT) {
            // A refusal may come after the file was made; it is then there for the second try.
            Err(Errno::INVAL) => Ok((open(flags - OFlags::EXCL)?, false)),
            opened => Ok((opened?, true)),
        }
    }
}

fn failed(doing: &'static str, name: &str, errno: Errno) -> DiskError {
    let name = name.to_owned();
    match errno {
        Errno::NOENT => DiskError::NotFound { name },
        Errno::EXIST => DiskError::Exists { name },
        errno => DiskError::System { doing, name, errno: errno.raw_os_error() },
    }
}

impl OpenFile {
    fn check_alignment(&self, at: u64, bytes: u64) -> Result<(), DiskError> {
        let block_bytes = self.facts.block_bytes;
        let block = u64::from(block_bytes);
        if at.is_multiple_of(block) && bytes.is_multiple_of(block) {
            return Ok(());
        }
        Err(DiskError::Unaligned { name: self.name.to_string(), at, bytes, block_bytes })
    }

    fn failed(&self, doing: &'static str) -> impl Fn(Errno) -> DiskError {
        move |errno| failed(doing, self.name.as_str(), errno)
    }

    fn len(&self) -> Result<u64, DiskError> {
        let stat = fstat(&self.descriptor).map_err(self.failed("ask for the length of"))?;
        Ok(stat.st_size as u64)
    }

    fn past_end(&self, at: u64, bytes: u64) -> Result<(), DiskError> {
        let (name, file_bytes) = (self.name.to_string(), self.len()?);
        Err(DiskError::PastEnd { name, at, bytes, file_bytes })
    }
}

fn facts(file: BorrowedFd<'_>, direct: bool) -> Facts {
    let physical = queue::attribute(file, "physical_block_size");
    Facts {
        block_bytes: if direct { alignment(file).offset_bytes } else { 1 },
        physical_block_bytes: physical.and_then(|text| text.parse().ok()).unwrap_or(4096),
        direct,
        // The kernel promises it only to writes that ask for it, which these do not.
        atomic_write_bytes: 0,
    }
}

/// Moves all of `bytes` bytes by calls that may move fewer. False when nothing moves any more.
fn whole(bytes: usize, mut some: impl FnMut(usize) -> Result<usize, Errno>) -> Result<bool, Errno> {
    let mut moved = 0;
    while moved < bytes {
        match some(moved) {
            Ok(0) => return Ok(false),
            Ok(more) => moved += more,
            Err(Errno::INTR) => {}
            // The rest after the end of the file is not aligned.
            Err(Errno::INVAL) if moved > 0 => return Ok(false),
            Err(errno) => return Err(errno),
        }
    }
    Ok(true)
}

impl Disk for RealDisk {
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        let opened = self.open_at(name, mode);
        let (descriptor, direct) = opened.map_err(|errno| failed("open", name.as_str(), errno))?;
        let facts = facts(descriptor.as_fd(), direct);
        let file = OpenFile { descriptor, name: name.clone(), facts };
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

    fn len(&self, file: FileId) -> Result<u64, DiskError> {
        self.file(file).len()
    }

    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        let file = self.file(file);
        let bytes = into.len();
        file.check_alignment(at, bytes as u64)?;
        let all =
            whole(bytes, |moved| pread(&file.descriptor, &mut into[moved..], at + moved as u64));
        match all.map_err(file.failed("read"))? {
            true => Ok(()),
            false => file.past_end(at, bytes as u64),
        }
    }

    fn write(&self, file: FileId, at: u64, from: &Aligned, d: Durability) -> Result<(), DiskError> {
        let file = self.file(file);
        file.check_alignment(at, from.len() as u64)?;
        let all = whole(from.len(), |moved| {
            let (rest, at) = (&from[moved..], at + moved as u64);
            match d {
                Durability::Volatile => pwrite(&file.descriptor, rest, at),
                Durability::WriteThrough => {
                    let flags = ReadWriteFlags::DSYNC;
                    pwritev2(&file.descriptor, &[IoSlice::new(rest)], at, flags)
                }
            }
        });
        match all.map_err(file.failed("write"))? {
            true => Ok(()),
            false => Err(file.failed("write")(Errno::NOSPC)),
        }
    }

    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError> {
        let file = self.file(file);
        flush(file.descriptor.as_fd(), kind).map_err(file.failed("sync"))
    }

    fn batch(&self) -> Box<dyn Batch> {
        Box::new(InTurn::new(self.clone()))
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
            // Unknown is a file too: some file systems do not say.
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
