//! A device that tears no write of a page needs no copies.

use std::sync::Mutex;

use iostrata_io::SyncKind;
use iostrata_io::disk::{
    Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName, MemDisk,
};
use iostrata_store::FlushMethod;

use crate::common::{Round, create, open, small};

/// Writes of up to so many bytes are not torn in the first data file.
struct AtomicDisk {
    memory: MemDisk,
    bytes: u32,
    first: Mutex<Option<FileId>>,
}

impl AtomicDisk {
    fn new(memory: &MemDisk, bytes: u32) -> Self {
        Self { memory: memory.clone(), bytes, first: Mutex::new(None) }
    }
}

impl Disk for AtomicDisk {
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        let file = self.memory.open(name, mode)?;
        if name.as_str() == "data-00" {
            *self.first.lock().unwrap() = Some(file);
        }
        Ok(file)
    }
    fn close(&self, file: FileId) {
        self.memory.close(file);
    }
    fn facts(&self, file: FileId) -> Facts {
        let is_first = *self.first.lock().unwrap() == Some(file);
        let atomic_write_bytes = if is_first { self.bytes } else { 0 };
        Facts { atomic_write_bytes, ..self.memory.facts(file) }
    }
    fn len(&self, file: FileId) -> Result<u64, DiskError> {
        self.memory.len(file)
    }
    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        self.memory.read(file, at, into)
    }
    fn write(&self, file: FileId, at: u64, from: &Aligned, d: Durability) -> Result<(), DiskError> {
        self.memory.write(file, at, from, d)
    }
    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError> {
        self.memory.sync(file, kind)
    }
    fn batch(&self) -> Box<dyn Batch> {
        self.memory.batch()
    }
    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError> {
        self.memory.set_len(file, len)
    }
    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError> {
        self.memory.rename(from, to)
    }
    fn remove(&self, name: &FileName) -> Result<(), DiskError> {
        self.memory.remove(name)
    }
    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        self.memory.list()
    }
    fn sync_dir(&self) -> Result<(), DiskError> {
        self.memory.sync_dir()
    }
}

#[test]
fn only_pages_that_can_tear_are_copied() {
    let settings = small(FlushMethod::ODirect);
    for (atomic_bytes, copied) in [(0, 4), (2048, 4), (4096, 2), (1 << 20, 2)] {
        let memory = MemDisk::new();
        create(memory.clone(), &settings);
        let (store, _) = open(AtomicDisk::new(&memory, atomic_bytes), &settings);
        store.write(&mut Round::new(1, &[0, 1, 2, 3]).copies(settings.page_size)).unwrap();
        let counters = store.counters();
        assert_eq!((counters.dblwr_writes, counters.dblwr_pages_written), (1, copied));
        assert_eq!((counters.dblwr_pages_atomic, counters.pages_written), (4 - copied, 4));
        drop(store);
        let (_, repair) = open(memory, &settings);
        assert_eq!(repair.examined, copied);
    }
}

#[test]
fn a_batch_of_atomic_pages_alone_writes_no_copies() {
    let settings = small(FlushMethod::ODirect);
    let memory = MemDisk::new();
    create(memory.clone(), &settings);
    let (store, _) = open(AtomicDisk::new(&memory, 4096), &settings);
    store.write(&mut Round::new(1, &[0, 2]).copies(settings.page_size)).unwrap();
    let counters = store.counters();
    assert_eq!((counters.dblwr_writes, counters.dblwr_pages_atomic), (0, 2));
    assert_eq!((counters.dblwr_fsyncs, counters.data_fsyncs), (0, 3));
}
