//! A disk with other facts, or one that takes its time, or one that holds writes back.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use iostrata_io::SyncKind;
use iostrata_io::disk::{
    Aligned, Batch, BatchCompletion, Disk, DiskError, Durability, Facts, FileId, FileMode,
    FileName, ForwardDisk,
};

/// Where batches of requests wait. Clones are the same one; it is open at first.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<Barred>, Condvar)>);

#[derive(Default)]
struct Barred {
    is_closed: bool,
    waiting: u32,
}

impl Gate {
    pub fn close(&self) {
        self.0.0.lock().unwrap().is_closed = true;
    }

    pub fn open(&self) {
        self.0.0.lock().unwrap().is_closed = false;
        self.0.1.notify_all();
    }

    /// Waits until a thread waits there.
    pub fn wait_for_one(&self) {
        let barred = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(barred, |barred| barred.waiting == 0).unwrap());
    }

    fn pass(&self) {
        let mut barred = self.0.0.lock().unwrap();
        barred.waiting += 1;
        self.0.1.notify_all();
        self.0.1.wait_while(barred, |barred| barred.is_closed).unwrap().waiting -= 1;
    }
}

/// Carries nothing out before the gate is open.
struct HeldBack(Box<dyn Batch>, Gate);

impl Batch for HeldBack {
    fn read(&mut self, file: FileId, at: u64, into: Aligned, tag: u64) {
        self.0.read(file, at, into, tag);
    }
    fn write(&mut self, file: FileId, at: u64, from: Aligned, d: Durability, tag: u64) {
        self.0.write(file, at, from, d, tag);
    }
    fn submit(&mut self) {
        self.0.submit();
    }
    fn in_flight(&self) -> usize {
        self.0.in_flight()
    }
    fn complete(&mut self, min: usize, done: &mut dyn FnMut(BatchCompletion)) {
        self.1.pass();
        self.0.complete(min, done);
    }
}

pub struct Altered<D> {
    disk: D,
    /// Writes of up to so many bytes are not torn in the first data file.
    atomic_bytes: u32,
    sync_takes: Duration,
    gate: Gate,
    first: Mutex<Option<FileId>>,
}

impl<D: Disk> Altered<D> {
    pub fn atomic(disk: D, atomic_bytes: u32) -> Self {
        let (sync_takes, gate, first) = (Duration::ZERO, Gate::default(), Mutex::new(None));
        Self { disk, atomic_bytes, sync_takes, gate, first }
    }

    /// Batches wait at this gate.
    pub fn gated(disk: D, gate: &Gate) -> Self {
        Self { gate: gate.clone(), ..Self::atomic(disk, 0) }
    }

    /// Syncs take a while, so that other threads get somewhere meanwhile.
    pub fn slow(disk: D) -> Self {
        Self { sync_takes: Duration::from_micros(200), ..Self::atomic(disk, 0) }
    }
}

impl<D: Disk> ForwardDisk for Altered<D> {
    fn below(&self) -> &dyn Disk {
        &self.disk
    }

    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        let file = self.disk.open(name, mode)?;
        if name.as_str() == "data-00" {
            *self.first.lock().unwrap() = Some(file);
        }
        Ok(file)
    }

    fn facts(&self, file: FileId) -> Facts {
        let is_first = *self.first.lock().unwrap() == Some(file);
        let atomic_write_bytes = if is_first { self.atomic_bytes } else { 0 };
        Facts { atomic_write_bytes, ..self.disk.facts(file) }
    }

    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError> {
        std::thread::sleep(self.sync_takes);
        self.disk.sync(file, kind)
    }

    fn batch(&self) -> Box<dyn Batch> {
        Box::new(HeldBack(self.disk.batch(), self.gate.clone()))
    }
}
