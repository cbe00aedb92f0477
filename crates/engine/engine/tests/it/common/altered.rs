//! A disk with one thing taken away, from a moment on, or slowed down, or one promise added.
//!
//! Taking a call away below the `Disk` trait is the same as leaving it out above: the store and the
//! proof share every line above the trait.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use iostrata_io::SyncKind;
use iostrata_io::disk::{
    Aligned, Batch, BatchCompletion, Disk, DiskError, Durability, Facts, FileId, FileMode,
    FileName, ForwardDisk,
};

/// What is taken away. Files are named by the beginning of their names.
#[derive(Clone, Debug, Default)]
pub struct Alteration {
    /// Syncs of these files do nothing, and writes to them are not written through.
    pub unsynced: Option<&'static str>,
    /// Writes to these files do nothing, from this offset on.
    pub unwritten: Option<(&'static str, u64)>,
    /// Writes of what these files hold already do nothing.
    pub unrepeated: Option<&'static str>,
    /// `sync_dir` does nothing.
    pub no_sync_dir: bool,
    /// A sync that failed is reported as successful, regardless of the switch.
    pub is_deaf: bool,
    /// Nothing of the above is missing before this is turned on.
    pub switch: Switch,
    /// Syncs of these files take so much longer, regardless of the switch.
    pub slow_sync: Option<(&'static str, Duration)>,
    /// The size of an atomic write that the device reports, in bytes.
    pub atomic_write_bytes: u32,
}

/// The altered disk.
pub struct Altered {
    inner: Arc<dyn Disk>,
    alteration: Alteration,
    names: Names,
}

/// Whether things are missing already. Clones are one switch.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<AtomicBool>);

impl Switch {
    pub fn turn(&self, on: bool) {
        self.0.store(on, Ordering::SeqCst);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Altered {
    pub fn new(inner: Arc<dyn Disk>, alteration: Alteration) -> Arc<Self> {
        Arc::new(Self { inner, alteration, names: Names::default() })
    }
}

/// The names of the open files.
#[derive(Clone, Default)]
struct Names(Arc<RwLock<HashMap<FileId, String>>>);

impl Names {
    fn begins(&self, file: FileId, beginning: Option<&'static str>) -> bool {
        if beginning.is_none() {
            return false;
        }
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match (names.get(&file), beginning) {
            (Some(name), Some(beginning)) => name.starts_with(beginning),
            _ => false,
        }
    }

    fn is_unwritten(&self, file: FileId, at: u64, altered: &Alteration) -> bool {
        let beginning = altered.unwritten.and_then(|(name, from)| (at >= from).then_some(name));
        self.begins(file, beginning) && altered.switch.is_on()
    }

    fn is_repeated(
        &self,
        disk: &dyn Disk,
        (file, at): (FileId, u64),
        from: &Aligned,
        altered: &Alteration,
    ) -> bool {
        let mut held = Aligned::zeroed(from.len());
        self.begins(file, altered.unrepeated)
            && altered.switch.is_on()
            && disk.read(file, at, &mut held).is_ok()
            && held[..] == from[..]
    }

    fn is_unsynced(&self, file: FileId, altered: &Alteration) -> bool {
        self.begins(file, altered.unsynced) && altered.switch.is_on()
    }

    fn durability(&self, file: FileId, asked: Durability, altered: &Alteration) -> Durability {
        if self.is_unsynced(file, altered) { Durability::Volatile } else { asked }
    }
}

impl ForwardDisk for Altered {
    fn below(&self) -> &dyn Disk {
        &*self.inner
    }

    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        let file = self.inner.open(name, mode)?;
        let mut names = self.names.0.write().unwrap_or_else(PoisonError::into_inner);
        names.insert(file, name.to_string());
        Ok(file)
    }

    fn facts(&self, file: FileId) -> Facts {
        let atomic_write_bytes = self.alteration.atomic_write_bytes;
        Facts { atomic_write_bytes, ..self.inner.facts(file) }
    }

    fn write(&self, file: FileId, at: u64, from: &Aligned, d: Durability) -> Result<(), DiskError> {
        let altered = &self.alteration;
        if self.names.is_unwritten(file, at, altered)
            || self.names.is_repeated(&*self.inner, (file, at), from, altered)
        {
            return Ok(());
        }
        let d = self.names.durability(file, d, &self.alteration);
        self.inner.write(file, at, from, d)
    }

    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError> {
        if self.names.is_unsynced(file, &self.alteration) {
            return Ok(());
        }
        if let Some((beginning, longer)) = self.alteration.slow_sync
            && self.names.begins(file, Some(beginning))
        {
            std::thread::sleep(longer);
        }
        let result = self.inner.sync(file, kind);
        if self.alteration.is_deaf { Ok(()) } else { result }
    }

    fn batch(&self) -> Box<dyn Batch> {
        Box::new(AlteredBatch {
            disk: Arc::clone(&self.inner),
            inner: self.inner.batch(),
            alteration: self.alteration.clone(),
            names: self.names.clone(),
            skipped: Vec::new(),
        })
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        let is_missing = self.alteration.no_sync_dir && self.alteration.switch.is_on();
        if is_missing { Ok(()) } else { self.inner.sync_dir() }
    }
}

struct AlteredBatch {
    disk: Arc<dyn Disk>,
    inner: Box<dyn Batch>,
    alteration: Alteration,
    names: Names,
    /// Writes that are not done; they come back as done.
    skipped: Vec<BatchCompletion>,
}

impl Batch for AlteredBatch {
    fn read(&mut self, file: FileId, at: u64, into: Aligned, tag: u64) {
        self.inner.read(file, at, into, tag);
    }

    fn write(&mut self, file: FileId, at: u64, from: Aligned, d: Durability, tag: u64) {
        let altered = &self.alteration;
        if self.names.is_unwritten(file, at, altered)
            || self.names.is_repeated(&*self.disk, (file, at), &from, altered)
        {
            self.skipped.push(BatchCompletion { tag, buffer: from, result: Ok(()) });
            return;
        }
        let d = self.names.durability(file, d, &self.alteration);
        self.inner.write(file, at, from, d, tag);
    }

    fn submit(&mut self) {
        self.inner.submit();
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.skipped.len()
    }

    fn complete(&mut self, min: usize, done: &mut dyn FnMut(BatchCompletion)) {
        let skipped = self.skipped.len();
        self.skipped.drain(..).for_each(&mut *done);
        self.inner.complete(min.saturating_sub(skipped), done);
    }
}
