//! An engine on a disk of one's own: files in a map, and a count of the calls on them.
//!
//! `cargo run -p iostrata-engine --example own_disk`

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iostrata_engine::disk::{
    Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName, InTurn,
    MemDisk, SyncKind,
};
use iostrata_engine::{Background, Disks, Engine, EngineError, OpenOptions};

type Content = Arc<Mutex<Vec<u8>>>;
type File = (FileName, Content);

/// Files in memory, the names that lead to them, and those that are open.
#[derive(Clone, Default)]
struct MapDisk {
    names: Arc<Mutex<BTreeMap<FileName, Content>>>,
    open: Arc<Mutex<HashMap<FileId, File>>>,
    next: Arc<AtomicU64>,
    syncs: Arc<AtomicU64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MapDisk {
    fn file(&self, file: FileId) -> Result<File, DiskError> {
        let name = format!("file {}", file.0);
        lock(&self.open).get(&file).cloned().ok_or(DiskError::NotFound { name })
    }
}

impl Disk for MapDisk {
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        let mut names = lock(&self.names);
        match (names.contains_key(name), mode) {
            (false, FileMode::Existing) => {
                return Err(DiskError::NotFound { name: name.to_string() });
            }
            (true, FileMode::CreateNew) => {
                return Err(DiskError::Exists { name: name.to_string() });
            }
            _ => {}
        }
        let content = Arc::clone(names.entry(name.clone()).or_default());
        let file = FileId(self.next.fetch_add(1, Ordering::Relaxed) as u32);
        lock(&self.open).insert(file, (name.clone(), content));
        Ok(file)
    }

    fn close(&self, file: FileId) {
        lock(&self.open).remove(&file);
    }

    fn facts(&self, _file: FileId) -> Facts {
        Facts { block_bytes: 1, physical_block_bytes: 512, direct: true, atomic_write_bytes: 0 }
    }

    fn len(&self, file: FileId) -> Result<u64, DiskError> {
        Ok(lock(&self.file(file)?.1).len() as u64)
    }

    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        let (name, content) = self.file(file)?;
        let (content, bytes) = (lock(&content), into.len());
        let Some(found) = content.get(at as usize..at as usize + bytes) else {
            let (bytes, file_bytes) = (bytes as u64, content.len() as u64);
            return Err(DiskError::PastEnd { name: name.to_string(), at, bytes, file_bytes });
        };
        into.copy_from_slice(found);
        Ok(())
    }

    fn write(&self, file: FileId, at: u64, from: &Aligned, _: Durability) -> Result<(), DiskError> {
        let (_name, content) = self.file(file)?;
        let (mut content, end) = (lock(&content), at as usize + from.len());
        let length = content.len().max(end);
        content.resize(length, 0);
        content[at as usize..end].copy_from_slice(from);
        Ok(())
    }

    fn sync(&self, file: FileId, _: SyncKind) -> Result<(), DiskError> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.file(file).map(drop)
    }

    fn batch(&self) -> Box<dyn Batch> {
        Box::new(InTurn::new(self.clone()))
    }

    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError> {
        lock(&self.file(file)?.1).resize(len as usize, 0);
        Ok(())
    }

    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError> {
        let mut names = lock(&self.names);
        let found = names.remove(from).ok_or(DiskError::NotFound { name: from.to_string() })?;
        names.insert(to.clone(), found);
        Ok(())
    }

    fn remove(&self, name: &FileName) -> Result<(), DiskError> {
        let removed = lock(&self.names).remove(name);
        removed.map(drop).ok_or(DiskError::NotFound { name: name.to_string() })
    }

    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        Ok(lock(&self.names).keys().cloned().collect())
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        Ok(())
    }
}

/// Writes a row, ends as a crash does, and finds it again.
fn write_and_recover(disk: impl Disk + Clone + 'static) -> Result<(), EngineError> {
    let options = || -> Result<OpenOptions<'_>, EngineError> {
        Engine::options().set("redo_log_capacity", "1M")?.set("autoextend_increment", "1M")
    };
    let engine = options()?.open_on(Disks::one(disk.clone()), Background::Threads)?;
    let cities = engine.open_table("cities")?;
    let mut batch = engine.batch();
    batch.put(&cities, b"Oslo", b"Norway")?;
    batch.commit()?;
    drop(cities);
    engine.abandon();
    let engine = options()?.open_on(Disks::one(disk), Background::Manual)?;
    let found = engine.open_table("cities")?.get(b"Oslo")?;
    assert_eq!(found.as_deref(), Some(&b"Norway"[..]));
    engine.close()
}

/// On the disk above, and on the one in memory that is there already.
pub fn main() -> Result<(), EngineError> {
    let disk = MapDisk::default();
    write_and_recover(disk.clone())?;
    assert!(disk.syncs.load(Ordering::Relaxed) > 0);
    write_and_recover(MemDisk::new())
}
