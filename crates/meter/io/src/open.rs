//! Opened files, as the APIs take them, and attributes of the device that a file lies on.
//!
//! Invariant: a descriptor stays open as long as any API or clone holds the set.
//! It creates nothing and decides nothing about who may write: [`FileSet`](crate::FileSet) does.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use rustix::fs::{
    Advice, FileType, Mode, OFlags, fadvise, fstat, fsync, ioctl_blksszget, major, minor, open,
};
use rustix::io::Errno;

use crate::extents::{ExtentReport, Residency};
use crate::{OpenError, extents};

#[cfg(any(test, feature = "testing"))]
use crate::memory_files::MemoryFiles;

/// O_DSYNC. rustix 1.1 gives its own constant of that name the value of O_SYNC, which would flush
/// more than was requested.
pub(crate) const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC as u32);

/// Durability that the open flags give to every write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OpenSync {
    /// None.
    #[default]
    None,
    /// O_DSYNC.
    Dsync,
    /// O_SYNC.
    Sync,
}

/// How the files of a set are opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenMode {
    /// With O_DIRECT.
    pub direct: bool,
    /// For writing as well as reading.
    pub write: bool,
    /// With O_DSYNC or O_SYNC.
    pub sync: OpenSync,
}

/// One file of a set: its path and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpec {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes of it that requests may touch.
    pub bytes: u64,
}

/// What direct I/O on a file must be aligned to, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// Memory addresses.
    pub memory_bytes: u32,
    /// Offsets and lengths.
    pub offset_bytes: u32,
}

#[derive(Debug)]
struct OpenFile {
    spec: FileSpec,
    descriptor: Option<OwnedFd>,
}

/// Files opened alike. Clones share the descriptors.
#[derive(Clone, Debug)]
pub struct OpenFiles {
    files: Arc<[OpenFile]>,
    mode: OpenMode,
    #[cfg(any(test, feature = "testing"))]
    memory: Option<MemoryFiles>,
}

impl OpenFiles {
    /// Opens existing files. Nothing is created, truncated or checked for ownership: a worker
    /// process uses it on the files that its parent's [`FileSet`](crate::FileSet) prepared.
    ///
    /// # Errors
    /// [`OpenError::DirectRefused`] when the file system has no direct I/O, else
    /// [`OpenError::System`].
    pub fn open(specs: &[FileSpec], mode: OpenMode) -> Result<Self, OpenError> {
        let mut files = Vec::with_capacity(specs.len());
        for spec in specs {
            let descriptor = open_one(&spec.path, mode)?;
            files.push(OpenFile { spec: spec.clone(), descriptor: Some(descriptor) });
        }
        Ok(Self::of(files, mode))
    }

    /// Files that are only known by their names: none is opened.
    pub fn named(specs: &[FileSpec]) -> Self {
        let file = |spec: &FileSpec| OpenFile { spec: spec.clone(), descriptor: None };
        Self::of(specs.iter().map(file).collect(), OpenMode::default())
    }

    /// Files that are not there, for an API that touches none.
    pub fn null(files: u32, bytes_each: u64) -> Self {
        Self::without_descriptors("null", vec![bytes_each; files as usize])
    }

    /// Files in memory. Only [`MemoryApi`](crate::MemoryApi) can use them.
    #[cfg(any(test, feature = "testing"))]
    pub fn memory(files: &MemoryFiles) -> Self {
        let memory = Some(files.clone());
        Self { memory, ..Self::without_descriptors("memory", files.sizes()) }
    }

    fn of(files: Vec<OpenFile>, mode: OpenMode) -> Self {
        Self {
            files: files.into(),
            mode,
            #[cfg(any(test, feature = "testing"))]
            memory: None,
        }
    }

    fn without_descriptors(name: &str, bytes: Vec<u64>) -> Self {
        let file = |bytes| OpenFile {
            spec: FileSpec { path: PathBuf::from(name), bytes },
            descriptor: None,
        };
        Self::of(bytes.into_iter().map(file).collect(), OpenMode::default())
    }

    /// Number of files.
    pub fn count(&self) -> u32 {
        self.files.len() as u32
    }

    /// Bytes of a file that requests may touch.
    pub fn bytes(&self, file: u32) -> u64 {
        self.files[file as usize].spec.bytes
    }

    /// A file's path.
    pub fn path(&self, file: u32) -> &Path {
        &self.files[file as usize].spec.path
    }

    /// How the files were opened.
    pub fn mode(&self) -> OpenMode {
        self.mode
    }

    /// The largest alignment that direct I/O needs on any of the files.
    pub fn alignment(&self) -> Alignment {
        let mut all = Alignment { memory_bytes: 1, offset_bytes: 1 };
        for file in self.files.iter().filter_map(|file| file.descriptor.as_ref()) {
            let one = alignment(file.as_fd());
            all.memory_bytes = all.memory_bytes.max(one.memory_bytes);
            all.offset_bytes = all.offset_bytes.max(one.offset_bytes);
        }
        all
    }

    /// What the blocks of the files are: written, unwritten or holes.
    ///
    /// # Errors
    /// When the kernel cannot report on a file.
    pub fn extents(&self) -> Result<ExtentReport, OpenError> {
        let first = ExtentReport { supported: true, ..ExtentReport::default() };
        self.over_files(first, extents::look, ExtentReport::and)
    }

    /// How much of the files is in the page cache.
    ///
    /// # Errors
    /// When the kernel cannot report on a file.
    pub fn residency(&self) -> Result<Residency, OpenError> {
        self.over_files(Residency::default(), extents::cached, Residency::and)
    }

    /// Flushes the files.
    ///
    /// # Errors
    /// The kernel's error for the first one that cannot be flushed.
    pub fn sync(&self) -> io::Result<()> {
        let mut descriptors = self.files.iter().filter_map(|file| file.descriptor.as_ref());
        Ok(descriptors.try_for_each(fsync)?)
    }

    /// Advises the kernel to drop the files from the page cache. Dirty pages stay until flushed.
    pub fn drop_cached(&self) {
        for file in self.files.iter().filter_map(|file| file.descriptor.as_ref()) {
            let _only_advice = fadvise(file, 0, None, Advice::DontNeed);
        }
    }

    /// Reads the files, so that they are in the page cache. What cannot be read is left.
    pub fn read_into_cache(&self) {
        for file in self.files.iter() {
            // A descriptor of its own: one that bypasses the cache puts nothing there.
            if let Ok(mut content) = std::fs::File::open(&file.spec.path) {
                let _only_advice =
                    io::copy(&mut content.by_ref().take(file.spec.bytes), &mut io::sink());
            }
        }
    }

    fn over_files<T>(
        &self,
        first: T,
        look: fn(BorrowedFd<'_>, u64) -> io::Result<T>,
        and: fn(T, T) -> T,
    ) -> Result<T, OpenError> {
        let mut all = first;
        for file in self.files.iter() {
            let Some(descriptor) = &file.descriptor else { continue };
            let one = look(descriptor.as_fd(), file.spec.bytes)
                .map_err(|source| OpenError::System { path: file.spec.path.clone(), source })?;
            all = and(all, one);
        }
        Ok(all)
    }

    /// The files in memory behind this, if any.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn memory_files(&self) -> Option<&MemoryFiles> {
        self.memory.as_ref()
    }

    /// A file's descriptor.
    ///
    /// # Panics
    /// When no such file exists, or it has none: null files are for the null API only, files in
    /// memory for the memory API.
    #[inline]
    pub(crate) fn descriptor(&self, file: u32) -> BorrowedFd<'_> {
        match &self.files[file as usize].descriptor {
            Some(descriptor) => descriptor.as_fd(),
            None => panic!("this file has no descriptor: it is for the null or the memory API"),
        }
    }
}

/// Opens one existing file.
fn open_one(path: &Path, mode: OpenMode) -> Result<OwnedFd, OpenError> {
    let mut flags = OFlags::CLOEXEC | if mode.write { OFlags::RDWR } else { OFlags::RDONLY };
    flags |= match mode.sync {
        OpenSync::None => OFlags::empty(),
        OpenSync::Dsync => DSYNC,
        OpenSync::Sync => OFlags::SYNC,
    };
    if mode.direct {
        flags |= OFlags::DIRECT;
    }
    open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::INVAL if mode.direct => OpenError::DirectRefused { path: path.to_owned() },
        errno => OpenError::System { path: path.to_owned(), source: errno.into() },
    })
}

/// What direct I/O on this file must be aligned to: statx where the kernel reports it (6.1), else
/// the device's logical block, else the file system's block.
pub(crate) fn alignment(file: BorrowedFd<'_>) -> Alignment {
    if let Some(alignment) = stated_alignment(file) {
        return alignment;
    }
    let block = match fstat(file) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice => {
            ioctl_blksszget(file).unwrap_or(4096)
        }
        Ok(stat) => (stat.st_blksize as u32).clamp(512, 4096),
        Err(_) => 4096,
    };
    Alignment { memory_bytes: block, offset_bytes: block }
}

fn stated_alignment(file: BorrowedFd<'_>) -> Option<Alignment> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let asked = StatxFlags::DIOALIGN;
    let stat = statx(file, c"", AtFlags::EMPTY_PATH, asked).ok()?;
    let answered = stat.stx_mask & asked.bits() != 0 && stat.stx_dio_offset_align > 0;
    answered.then_some(Alignment {
        memory_bytes: stat.stx_dio_mem_align,
        offset_bytes: stat.stx_dio_offset_align,
    })
}

// Attributes of the block device that a file lies on.
//
// Invariant: reads sysfs only; a file system without one device (network, memory, btrfs) has none.

/// An attribute of the queue under a file or device, by its name in sysfs.
pub(crate) fn attribute(file: BorrowedFd<'_>, name: &str) -> Option<String> {
    let stat = fstat(file).ok()?;
    let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    let device = if is_device { stat.st_rdev } else { stat.st_dev };
    let node = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    // A partition has no queue of its own.
    let paths = [format!("{node}/queue/{name}"), format!("{node}/../queue/{name}")];
    let text = paths.iter().find_map(|path| fs::read_to_string(path).ok())?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use rustix::fs::fcntl_getfl;

    use super::*;

    #[test]
    fn the_mode_reaches_the_descriptor() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        let flags = |mode| fcntl_getfl(open_one(file.path(), mode).unwrap()).unwrap();
        let mode = OpenMode { write: true, ..OpenMode::default() };
        assert!(!flags(mode).intersects(OFlags::SYNC | OFlags::DIRECT));
        let dsync = flags(OpenMode { sync: OpenSync::Dsync, ..mode });
        assert_eq!(dsync & OFlags::SYNC, DSYNC);
        assert!(flags(OpenMode { sync: OpenSync::Sync, ..mode }).contains(OFlags::SYNC));
        match open_one(file.path(), OpenMode { direct: true, ..mode }) {
            Ok(opened) => assert!(fcntl_getfl(opened).unwrap().contains(OFlags::DIRECT)),
            Err(error) => eprintln!("skipped: {error}"),
        }
    }
}
