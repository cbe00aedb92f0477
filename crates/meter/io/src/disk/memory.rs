//! A disk in memory, for tests: exact, and as faulty as a test wants it.
//!
//! Invariant: clones are the same disk. Every call takes effect at once and in order; there is no
//! crash here (the trace disk makes those). A fault changes nothing but what it says.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::SyncKind;
use crate::disk::{
    Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName, InTurn,
};

/// What a call is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// `open`.
    Open,
    /// `read`.
    Read,
    /// `write`.
    Write,
    /// `sync`.
    Sync,
    /// `set_len`.
    SetLen,
    /// `rename`.
    Rename,
    /// `remove`.
    Remove,
    /// `sync_dir`.
    SyncDir,
}

/// A call, as a fault hook sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Counts calls of every kind, from 0.
    pub number: u64,
    /// What it is about to do.
    pub kind: CallKind,
    /// The file's name when it was opened; empty for `sync_dir`.
    pub name: String,
    /// First byte; the new length for `set_len`.
    pub at: u64,
    /// Bytes to move.
    pub bytes: u64,
}

/// What a fault hook lets happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call goes on.
    None,
    /// It fails with this errno (5 is EIO, 28 is ENOSPC) and changes nothing.
    Errno(i32),
    /// A write stores only so many bytes and then fails with EIO. Other calls fail with EIO.
    Short(u64),
}

type Hook = Box<dyn FnMut(&Call) -> Fault + Send>;

#[derive(Default)]
struct Inner {
    names: BTreeMap<FileName, u64>,
    contents: HashMap<u64, Vec<u8>>,
    open: HashMap<FileId, (u64, FileName)>,
    next_inode: u64,
    next_file: u32,
    calls: u64,
    capacity_bytes: Option<u64>,
    hook: Option<Hook>,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Default)]
pub struct MemDisk(Arc<Mutex<Inner>>);

impl fmt::Debug for MemDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "MemDisk({} files)", self.lock().names.len())
    }
}

impl MemDisk {
    /// An empty disk without bounds.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty disk on which all files together hold so many bytes; more fails with ENOSPC.
    pub fn with_capacity(bytes: u64) -> Self {
        let disk = Self::default();
        disk.lock().capacity_bytes = Some(bytes);
        disk
    }

    /// A disk with these files, as a crash left it.
    pub(crate) fn with_files(files: impl IntoIterator<Item = (FileName, Vec<u8>)>) -> Self {
        let disk = Self::default();
        let mut inner = disk.lock();
        for (name, content) in files {
            let inode = inner.make(name);
            inner.contents.insert(inode, content);
        }
        drop(inner);
        disk
    }

    /// Asks `hook` before every call what is to become of it. It must not use this disk.
    pub fn before_each(&self, hook: impl FnMut(&Call) -> Fault + Send + 'static) {
        self.lock().hook = Some(Box::new(hook));
    }

    /// A file's bytes by name.
    pub fn content(&self, name: &FileName) -> Option<Vec<u8>> {
        let inner = self.lock();
        inner.names.get(name).and_then(|inode| inner.contents.get(inode)).cloned()
    }

    /// Every name with its inode, and every inode's bytes.
    pub(crate) fn snapshot(&self) -> (BTreeMap<FileName, u64>, BTreeMap<u64, Vec<u8>>) {
        let inner = self.lock();
        let contents = inner.contents.iter().map(|(inode, content)| (*inode, content.clone()));
        (inner.names.clone(), contents.collect())
    }

    /// What a file is known by whatever its name, and whether this call made it.
    pub(crate) fn open_inode(
        &self,
        name: &FileName,
        mode: FileMode,
    ) -> Result<(FileId, u64, bool), DiskError> {
        let mut inner = self.lock();
        let at = (CallKind::Open, name.as_str(), 0, 0);
        inner.check("open", at)?;
        let (inode, made) = match (inner.names.get(name), mode) {
            (Some(_), FileMode::CreateNew) => {
                return Err(DiskError::Exists { name: name.to_string() });
            }
            (Some(inode), _) => (*inode, false),
            (None, FileMode::Existing) => {
                return Err(DiskError::NotFound { name: name.to_string() });
            }
            (None, _) => (inner.make(name.clone()), true),
        };
        let file = FileId(inner.next_file);
        inner.next_file += 1;
        inner.open.insert(file, (inode, name.clone()));
        Ok((file, inode, made))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn make(&mut self, name: FileName) -> u64 {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.names.insert(name, inode);
        self.contents.insert(inode, Vec::new());
        inode
    }

    fn file(&self, file: FileId) -> (u64, String) {
        match self.open.get(&file) {
            Some((inode, name)) => (*inode, name.to_string()),
            None => panic!("{file:?} is not open"),
        }
    }

    fn content(&mut self, inode: u64) -> &mut Vec<u8> {
        self.contents.entry(inode).or_default()
    }

    fn fault(&mut self, (kind, name, at, bytes): (CallKind, &str, u64, u64)) -> Fault {
        let call = Call { number: self.calls, kind, name: name.to_owned(), at, bytes };
        self.calls += 1;
        self.hook.as_mut().map_or(Fault::None, |hook| hook(&call))
    }

    fn check(
        &mut self,
        doing: &'static str,
        call: (CallKind, &str, u64, u64),
    ) -> Result<(), DiskError> {
        let name = call.1.to_owned();
        match self.fault(call) {
            Fault::None => Ok(()),
            Fault::Errno(errno) => Err(DiskError::System { doing, name, errno }),
            Fault::Short(_) => Err(DiskError::System { doing, name, errno: libc::EIO }),
        }
    }

    /// Whether an inode may grow to `len` bytes.
    fn has_room(&self, inode: u64, len: u64) -> bool {
        let Some(capacity) = self.capacity_bytes else { return true };
        let others = self.contents.iter().filter(|(other, _)| **other != inode);
        others.map(|(_, content)| content.len() as u64).sum::<u64>() + len <= capacity
    }

    /// Frees what has no name and is not open.
    fn forget(&mut self, inode: u64) {
        let named = self.names.values().any(|other| *other == inode);
        if !named && !self.open.values().any(|(other, _)| *other == inode) {
            self.contents.remove(&inode);
        }
    }
}

/// Puts bytes into a content, which grows as needed.
pub(super) fn put(content: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    let (start, end) = (at as usize, at as usize + bytes.len());
    if content.len() < end {
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
}

impl Disk for MemDisk {
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        self.open_inode(name, mode).map(|(file, _inode, _made)| file)
    }

    fn close(&self, file: FileId) {
        let mut inner = self.lock();
        if let Some((inode, _name)) = inner.open.remove(&file) {
            inner.forget(inode);
        }
    }

    fn facts(&self, _file: FileId) -> Facts {
        let block_bytes = 1;
        Facts { block_bytes, physical_block_bytes: 512, direct: true, atomic_write_bytes: 0 }
    }

    fn len(&self, file: FileId) -> Result<u64, DiskError> {
        let mut inner = self.lock();
        let (inode, _name) = inner.file(file);
        Ok(inner.content(inode).len() as u64)
    }

    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let (inode, name) = inner.file(file);
        let bytes = into.len() as u64;
        inner.check("read", (CallKind::Read, &name, at, bytes))?;
        let content = inner.content(inode);
        let file_bytes = content.len() as u64;
        if at.checked_add(bytes).is_none_or(|end| end > file_bytes) {
            return Err(DiskError::PastEnd { name, at, bytes, file_bytes });
        }
        into.copy_from_slice(&content[at as usize..(at + bytes) as usize]);
        Ok(())
    }

    fn write(
        &self,
        file: FileId,
        at: u64,
        from: &Aligned,
        _d: Durability,
    ) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let (inode, name) = inner.file(file);
        let failed = |errno| DiskError::System { doing: "write", name: name.clone(), errno };
        let bytes = from.len() as u64;
        let fault = inner.fault((CallKind::Write, &name, at, bytes));
        if let Fault::Errno(errno) = fault {
            return Err(failed(errno));
        }
        let len = (inner.content(inode).len() as u64).max(at + bytes);
        if !inner.has_room(inode, len) {
            return Err(failed(libc::ENOSPC));
        }
        if let Fault::Short(bytes) = fault {
            let some = (bytes as usize).min(from.len());
            put(inner.content(inode), at, &from[..some]);
            return Err(failed(libc::EIO));
        }
        put(inner.content(inode), at, from);
        Ok(())
    }

    fn sync(&self, file: FileId, _kind: SyncKind) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let (_inode, name) = inner.file(file);
        inner.check("sync", (CallKind::Sync, &name, 0, 0))
    }

    fn batch(&self) -> Box<dyn Batch> {
        Box::new(InTurn::new(self.clone()))
    }

    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let (inode, name) = inner.file(file);
        inner.check("set the length of", (CallKind::SetLen, &name, len, 0))?;
        if !inner.has_room(inode, len) {
            let doing = "set the length of";
            return Err(DiskError::System { doing, name, errno: libc::ENOSPC });
        }
        inner.content(inode).resize(len as usize, 0);
        Ok(())
    }

    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError> {
        let mut inner = self.lock();
        inner.check("rename", (CallKind::Rename, from.as_str(), 0, 0))?;
        let Some(inode) = inner.names.remove(from) else {
            return Err(DiskError::NotFound { name: from.to_string() });
        };
        if let Some(replaced) = inner.names.insert(to.clone(), inode) {
            inner.forget(replaced);
        }
        Ok(())
    }

    fn remove(&self, name: &FileName) -> Result<(), DiskError> {
        let mut inner = self.lock();
        inner.check("remove", (CallKind::Remove, name.as_str(), 0, 0))?;
        let Some(inode) = inner.names.remove(name) else {
            return Err(DiskError::NotFound { name: name.to_string() });
        };
        inner.forget(inode);
        Ok(())
    }

    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        Ok(self.lock().names.keys().cloned().collect())
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        self.lock().check("sync", (CallKind::SyncDir, "", 0, 0))
    }
}
