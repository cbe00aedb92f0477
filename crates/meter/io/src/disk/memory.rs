//! A disk in memory, for tests: exact, and as faulty as a test wants it, with its faults.
//!
//! Invariant: clones are the same disk. Every call takes effect at once and in order; there is no
//! crash here (the trace disk makes those). A fault changes nothing but what it names.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::SyncKind;
use crate::disk::blocks::Blocks;
use crate::disk::{
    Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName, InTurn,
};

type Hook = Box<dyn FnMut(&Call) -> Fault + Send>;

struct Inner {
    facts: Facts,
    names: BTreeMap<FileName, u64>,
    contents: HashMap<u64, Blocks>,
    open: HashMap<FileId, (u64, FileName)>,
    next_inode: u64,
    next_file: u32,
    calls: u64,
    capacity_bytes: Option<u64>,
    hook: Option<Hook>,
}

/// Of a disk that takes requests at any byte.
const PLAIN: Facts =
    Facts { block_bytes: 1, physical_block_bytes: 512, direct: true, atomic_write_bytes: 0 };

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub struct MemDisk(Arc<Mutex<Inner>>);

impl fmt::Debug for MemDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "MemDisk({} files)", self.lock().names.len())
    }
}

impl MemDisk {
    /// An empty disk without bounds.
    pub fn new() -> Self {
        Self::with_facts(PLAIN)
    }

    /// An empty disk without bounds that poses as one with these facts: reads and writes that are
    /// not at multiples of its blocks are refused, and on a trace of it untorn writes stay whole.
    ///
    /// # Panics
    /// When `block_bytes` is 0.
    pub fn with_facts(facts: Facts) -> Self {
        assert!(facts.block_bytes > 0, "a block has at least 1 byte");
        Self(Arc::new(Mutex::new(Inner::new(facts))))
    }

    /// An empty disk on which all files together hold so many bytes; more fails with ENOSPC.
    pub fn with_capacity(bytes: u64) -> Self {
        let disk = Self::new();
        disk.set_capacity(Some(bytes));
        disk
    }

    /// Changes how many bytes all files together hold; absent for no bound. What is there stays.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity_bytes = bytes;
    }

    /// A disk with these files, as a crash left it.
    pub(super) fn with_files(
        facts: Facts,
        files: impl IntoIterator<Item = (FileName, Blocks)>,
    ) -> Self {
        let mut inner = Inner::new(facts);
        for (name, content) in files {
            let inode = inner.make(name);
            inner.contents.insert(inode, content);
        }
        Self(Arc::new(Mutex::new(inner)))
    }

    /// Another disk with the same files, facts and bounds, but no faults and nothing open. It costs
    /// little: the two share what neither changes.
    pub fn copy(&self) -> Self {
        let inner = self.lock();
        let files = inner.names.iter().map(|(name, inode)| {
            (name.clone(), inner.contents.get(inode).cloned().unwrap_or_default())
        });
        let copy = Self::with_files(inner.facts, files);
        copy.set_capacity(inner.capacity_bytes);
        copy
    }

    /// The facts that every file of this disk reports.
    pub(super) fn facts_of_all(&self) -> Facts {
        self.lock().facts
    }

    /// Calls `hook` before every call to decide its fate. It must not use this disk.
    pub fn before_each(&self, hook: impl FnMut(&Call) -> Fault + Send + 'static) {
        self.lock().hook = Some(Box::new(hook));
    }

    /// A file's bytes by name.
    pub fn content(&self, name: &FileName) -> Option<Vec<u8>> {
        let inner = self.lock();
        inner.names.get(name).and_then(|inode| inner.contents.get(inode)).map(Blocks::to_vec)
    }

    #[cfg(any(test, feature = "testing"))]
    /// Every name with its inode, and every inode's bytes.
    pub(super) fn snapshot(&self) -> (BTreeMap<FileName, u64>, BTreeMap<u64, Blocks>) {
        let inner = self.lock();
        let contents = inner.contents.iter().map(|(inode, content)| (*inode, content.clone()));
        (inner.names.clone(), contents.collect())
    }

    #[cfg(any(test, feature = "testing"))]
    /// A disk with the facts and bounds of this one and with these names and contents, as
    /// `snapshot` gives them.
    pub(super) fn with_snapshot(
        &self,
        names: BTreeMap<FileName, u64>,
        contents: BTreeMap<u64, Blocks>,
    ) -> Self {
        let old = self.lock();
        let mut inner = Inner::new(old.facts);
        inner.capacity_bytes = old.capacity_bytes;
        inner.next_inode = old.next_inode;
        inner.names = names;
        inner.contents = contents.into_iter().collect();
        let unnamed = |inode: &u64| !inner.names.values().any(|named| named == inode);
        let unnamed: Vec<u64> = inner.contents.keys().copied().filter(unnamed).collect();
        unnamed.into_iter().for_each(|inode| inner.forget(inode));
        Self(Arc::new(Mutex::new(inner)))
    }

    /// What a file is known by whatever its name, and whether this call made it.
    pub(super) fn open_inode(
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

impl Default for MemDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl Inner {
    fn new(facts: Facts) -> Self {
        Self {
            facts,
            names: BTreeMap::new(),
            contents: HashMap::new(),
            open: HashMap::new(),
            next_inode: 0,
            next_file: 0,
            calls: 0,
            capacity_bytes: None,
            hook: None,
        }
    }

    fn make(&mut self, name: FileName) -> u64 {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.names.insert(name, inode);
        self.contents.insert(inode, Blocks::default());
        inode
    }

    fn file(&self, file: FileId) -> (u64, FileName) {
        match self.open.get(&file) {
            Some((inode, name)) => (*inode, name.clone()),
            None => panic!("{file:?} is not open"),
        }
    }

    fn content(&mut self, inode: u64) -> &mut Blocks {
        self.contents.entry(inode).or_default()
    }

    fn fault(&mut self, (kind, name, at, bytes): (CallKind, &str, u64, u64)) -> Fault {
        let number = self.calls;
        self.calls += 1;
        let Some(hook) = &mut self.hook else { return Fault::None };
        hook(&Call { number, kind, name: name.to_owned(), at, bytes })
    }

    fn check(
        &mut self,
        doing: &'static str,
        call: (CallKind, &str, u64, u64),
    ) -> Result<(), DiskError> {
        let failed = |errno| DiskError::System { doing, name: call.1.to_owned(), errno };
        match self.fault(call) {
            Fault::None => Ok(()),
            Fault::Errno(errno) => Err(failed(errno)),
            Fault::Short(_) => Err(failed(libc::EIO)),
        }
    }

    /// Whether an inode may grow to `len` bytes.
    fn has_room(&self, inode: u64, len: u64) -> bool {
        let Some(capacity) = self.capacity_bytes else { return true };
        let others = self.contents.iter().filter(|(other, _)| **other != inode);
        others.map(|(_, content)| content.len()).sum::<u64>() + len <= capacity
    }

    /// Frees what has no name and is not open.
    fn forget(&mut self, inode: u64) {
        let named = self.names.values().any(|other| *other == inode);
        if !named && !self.open.values().any(|(other, _)| *other == inode) {
            self.contents.remove(&inode);
        }
    }
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
        self.facts_of_all()
    }

    fn free_bytes(&self) -> Option<u64> {
        let inner = self.lock();
        let used = inner.contents.values().map(Blocks::len).sum::<u64>();
        inner.capacity_bytes.map(|capacity| capacity.saturating_sub(used))
    }

    fn len(&self, file: FileId) -> Result<u64, DiskError> {
        let mut inner = self.lock();
        let (inode, _name) = inner.file(file);
        Ok(inner.content(inode).len())
    }

    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let (inode, name) = inner.file(file);
        let bytes = into.len() as u64;
        inner.facts.check_alignment(&name, at, bytes)?;
        inner.check("read", (CallKind::Read, name.as_str(), at, bytes))?;
        let content = inner.content(inode);
        let file_bytes = content.len();
        if at.checked_add(bytes).is_none_or(|end| end > file_bytes) {
            return Err(DiskError::PastEnd { name: name.to_string(), at, bytes, file_bytes });
        }
        content.read(at, into);
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
        let failed = |errno| DiskError::System { doing: "write", name: name.to_string(), errno };
        let bytes = from.len() as u64;
        inner.facts.check_alignment(&name, at, bytes)?;
        let fault = inner.fault((CallKind::Write, name.as_str(), at, bytes));
        if let Fault::Errno(errno) = fault {
            return Err(failed(errno));
        }
        let len = inner.content(inode).len().max(at + bytes);
        if !inner.has_room(inode, len) {
            return Err(failed(libc::ENOSPC));
        }
        if let Fault::Short(bytes) = fault {
            let some = (bytes as usize).min(from.len());
            inner.content(inode).put(at, &from[..some]);
            return Err(failed(libc::EIO));
        }
        inner.content(inode).put(at, from);
        Ok(())
    }

    fn sync(&self, file: FileId, _kind: SyncKind) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let (_inode, name) = inner.file(file);
        inner.check("sync", (CallKind::Sync, name.as_str(), 0, 0))
    }

    fn batch(&self) -> Box<dyn Batch> {
        Box::new(InTurn::new(self.clone()))
    }

    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let (inode, name) = inner.file(file);
        inner.check("set the length of", (CallKind::SetLen, name.as_str(), len, 0))?;
        if !inner.has_room(inode, len) {
            let (doing, name) = ("set the length of", name.to_string());
            return Err(DiskError::System { doing, name, errno: libc::ENOSPC });
        }
        inner.content(inode).resize(len);
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

// What a test may do to the calls on a memory disk.
//
// Invariant: a fault changes nothing but what it names.

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
    /// The call proceeds.
    None,
    /// It fails with this errno (5 is EIO, 28 is ENOSPC) and changes nothing.
    Errno(i32),
    /// A write stores only so many bytes and then fails with EIO. Other calls fail with EIO.
    Short(u64),
}
