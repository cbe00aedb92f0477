//! The data files: open, as long as they are, written in place and synced.
//!
//! Invariant: `pages` never counts a page whose zeros are not durable. A failed write or sync
//! poisons the store. Sync rules of the flush method are kept here and nowhere else.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use iostrata_innodb::{
    ChecksumAlgorithm, Counter, Doublewrite, FilePlan, FlushMethod, PageNo, Settings,
};
use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Batch, Disk, Durability, FileId, FileMode};

use crate::counts::{Common, Counts};
use crate::error::{EngineError, Poison};
use crate::page::PageSize;
use crate::store::layout::{EXTEND_PAGES_MAX, data_name, place};
use crate::sync::locked;

/// A data file that is shorter than it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutFile {
    pub name: String,
    pub bytes: u64,
    /// The bytes that it had, at least.
    pub wanted_bytes: u64,
    /// The first page that it does not hold whole any more.
    pub first_lost: PageNo,
}

pub(crate) struct DataFile {
    pub(crate) id: FileId,
    pub(crate) name: String,
    /// Whole pages that are durable, of this file alone.
    pub(crate) pages: AtomicU64,
    /// The device does not tear a write of a page.
    pub(crate) atomic: bool,
    gate: SyncGate,
}

pub(crate) struct DataFiles {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) files: Vec<DataFile>,
    pub(crate) page_size: PageSize,
    pub(crate) plan: FilePlan,
    use_fdatasync: bool,
    pub(crate) batches: Batches,
    pub(crate) counts: Arc<Counts>,
    pub(crate) poison: Arc<Poison>,
    pub(crate) slots: WriteSlots,
}

impl DataFiles {
    /// Opens all files; those that it makes are empty.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        settings: &StoreSettings,
        mode: FileMode,
        common: &Common,
    ) -> Result<Self, EngineError> {
        let page_bytes = settings.page_size.bytes() as u64;
        let mut data = Self {
            disk: Arc::clone(disk),
            files: Vec::new(),
            page_size: settings.page_size,
            plan: settings.flush_method.plan(settings.trust_device_cache).data,
            use_fdatasync: settings.use_fdatasync,
            batches: Batches::new(Arc::clone(disk)),
            counts: Arc::clone(&common.counts),
            poison: Arc::clone(&common.poison),
            slots: WriteSlots::default(),
        };
        for file in 0..settings.data_files {
            let name = data_name(file)?;
            let id = disk.open(&name, mode)?;
            let atomic = u64::from(disk.facts(id).atomic_write_bytes) >= page_bytes;
            let (name, gate) = (name.to_string(), SyncGate::default());
            // Closed with the others, should the length be refused.
            data.files.push(DataFile { id, name, pages: AtomicU64::new(0), atomic, gate });
            data.files[file as usize].pages.store(disk.len(id)? / page_bytes, Release);
        }
        Ok(data)
    }

    pub(crate) fn sync_kind(&self) -> SyncKind {
        sync_kind(self.use_fdatasync)
    }

    /// Pages from 0 on without a gap.
    pub(crate) fn pages(&self) -> u64 {
        let files = self.files.len() as u64;
        let ends = self.files.iter().zip(0..);
        ends.map(|(file, at)| file.pages.load(Acquire) * files + at).min().unwrap_or(0)
    }

    /// What is shorter than `pages` pages of all files want it.
    pub(crate) fn cut(&self, pages: u64) -> Result<Vec<CutFile>, EngineError> {
        let (files, page_bytes) = (self.files.len() as u64, self.page_size.bytes() as u64);
        let mut cut = Vec::new();
        for (file, at) in self.files.iter().zip(0..) {
            let bytes = self.disk.len(file.id)?;
            let wanted_bytes = pages.saturating_sub(at).div_ceil(files) * page_bytes;
            if bytes < wanted_bytes {
                let first_lost = PageNo(bytes / page_bytes * files + at);
                cut.push(CutFile { name: file.name.clone(), bytes, wanted_bytes, first_lost });
            }
        }
        Ok(cut)
    }

    #[inline]
    pub(crate) fn place(&self, page: PageNo) -> (usize, u64) {
        let (file, at) = place(page, self.files.len() as u32);
        (file, at * self.page_size.bytes() as u64)
    }

    pub(crate) fn is_atomic(&self, page: PageNo) -> bool {
        self.files[self.place(page).0].atomic
    }

    pub(crate) fn sync(&self, file: usize) -> Result<(), EngineError> {
        let file = &self.files[file];
        file.gate.sync(&self.poison, || {
            self.counts.add(Counter::DataFsyncs, 1);
            Ok(self.disk.sync(file.id, self.sync_kind())?)
        })?;
        Ok(())
    }

    /// Writes pages, sorted by place, into their places, at most `in_flight` at a time, each in its
    /// slot unless all are in flight at once. All buffers
    /// come back into `pages`, also after a failure. Nothing is synced. Returns which files were
    /// touched, a bit each.
    pub(crate) fn write_in_place(
        &self,
        pages: &mut Vec<PageCopy>,
        in_flight: usize,
    ) -> Result<u64, EngineError> {
        let is_paced = in_flight < usize::MAX;
        let mut batch = self.batches.take();
        let mut touched = 0_u64;
        let (count, page_bytes) = (pages.len() as u64, self.page_size.bytes() as u64);
        let mut waiting = std::mem::take(pages).into_iter();
        let (mut room, mut result) = (in_flight.max(1), Ok(()));
        loop {
            // Behind a failure nothing new is begun.
            let next = if result.is_ok() { room } else { 0 };
            for PageCopy { page, bytes } in waiting.by_ref().take(next) {
                if is_paced {
                    self.slots.wait();
                }
                let (file, at) = self.place(page);
                touched |= 1 << file;
                batch.write(self.files[file].id, at, bytes, durability(self.plan), page.0);
            }
            batch.submit();
            if batch.in_flight() == 0 {
                break;
            }
            room = 0;
            batch.complete(1, &mut |done| {
                pages.push(PageCopy { page: PageNo(done.tag), bytes: done.buffer });
                room += 1;
                if result.is_ok() {
                    result = done.result;
                }
            });
        }
        pages.extend(waiting);
        self.batches.give_back(batch);
        self.counts.add(Counter::DataWrites, count);
        self.counts.add(Counter::DataWritten, count * page_bytes);
        match result {
            Ok(()) => Ok(touched),
            Err(error) => Err(self.poison.keep(error)),
        }
    }

    pub(crate) fn sync_touched(&self, touched: u64) -> Result<(), EngineError> {
        (0..self.files.len())
            .filter(|file| touched >> file & 1 == 1)
            .try_for_each(|file| self.sync(file))
    }

    pub(crate) fn zeros(&self, pages: u64) -> Aligned {
        Aligned::zeroed(pages as usize * self.page_size.bytes())
    }
}

impl Drop for DataFiles {
    fn drop(&mut self) {
        for file in &self.files {
            self.disk.close(file.id);
        }
    }
}

#[derive(Debug)]
pub struct PageCopy {
    pub page: PageNo,
    pub bytes: Aligned,
}

/// Batches of the disk, kept for the next caller: making one may cost system calls. One that is
/// kept has nothing queued and nothing in flight.
pub(crate) struct Batches {
    disk: Arc<dyn Disk>,
    idle: Mutex<Vec<Box<dyn Batch>>>,
}

impl Batches {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, idle: Mutex::new(Vec::new()) }
    }

    pub(crate) fn take(&self) -> Box<dyn Batch> {
        let idle = locked(&self.idle).pop();
        idle.unwrap_or_else(|| self.disk.batch())
    }

    pub(crate) fn give_back(&self, batch: Box<dyn Batch>) {
        assert!(batch.in_flight() == 0, "a batch with requests in flight was given back");
        locked(&self.idle).push(batch);
    }
}

/// Slots of this time, and so many at least, may be taken at once by those who come late: the
/// copies and syncs of a batch take time, too.
const LATE: Duration = Duration::from_millis(30);
const LATE_SLOTS: u32 = 16;
/// Longest wait for a slot, should the rate be nothing.
const WAIT_MAX: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct WriteSlots {
    /// Time of a slot; 0 without a rate.
    slot_ns: AtomicU64,
    next: Mutex<Option<Instant>>,
}

impl WriteSlots {
    /// So many slots per second; without bound for no slots.
    pub fn set_per_s(&self, per_s: f64) {
        let slot_ns = if per_s.is_finite() { (1e9 / per_s.max(1.0)) as u64 } else { 0 };
        self.slot_ns.store(slot_ns, Relaxed);
    }

    pub fn wait(&self) {
        let slot_ns = self.slot_ns.load(Relaxed);
        if slot_ns == 0 {
            return;
        }
        let (now, slot) = (Instant::now(), Duration::from_nanos(slot_ns));
        let mut next = locked(&self.next);
        let earliest = now.checked_sub(LATE.max(slot * LATE_SLOTS)).unwrap_or(now);
        let mine = next.unwrap_or(now).max(earliest);
        *next = Some(mine + slot);
        drop(next);
        std::thread::sleep(mine.saturating_duration_since(now).min(WAIT_MAX));
    }
}

/// Syncs of one file, one at a time. The system reports a lost write to one caller of a sync only;
/// therefore syncs of a file never overlap, and a failing sync poisons the store before the next
/// may begin. A caller returns success only if a sync that began after the call succeeded and none
/// before it failed; callers that wait together share one. Reads go on after a failure: nothing
/// built on them becomes durable.
#[derive(Debug, Default)]
pub(crate) struct SyncGate {
    asked: AtomicU64,
    /// Calls that the newest successful sync covers.
    covered: Mutex<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncPlace {
    Here,
    Elsewhere,
}

impl SyncGate {
    pub(crate) fn sync(
        &self,
        poison: &Poison,
        sync: impl FnOnce() -> Result<(), EngineError>,
    ) -> Result<SyncPlace, EngineError> {
        let call = self.asked.fetch_add(1, SeqCst) + 1;
        let mut covered = locked(&self.covered);
        poison.check()?;
        if *covered >= call {
            return Ok(SyncPlace::Elsewhere);
        }
        let covers = self.asked.load(SeqCst);
        sync().map_err(|error| poison.keep(error))?;
        *covered = covers;
        Ok(SyncPlace::Here)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Bytes of a page. Fixed when the store is created.
    pub page_size: PageSize,
    /// Files that pages are striped over, 1 to 64. Fixed when the store is created.
    pub data_files: u32,
    /// Pages by which each file grows at a time, 1 to 65536.
    pub extend_pages: u32,
    pub doublewrite: Doublewrite,
    pub doublewrite_pages: u32,
    pub flush_method: FlushMethod,
    /// Takes InnoDB's form of the flush method where that trusts the device's cache.
    pub trust_device_cache: bool,
    /// Whether reads check the checksum. Writes always set it, and repair always checks it.
    pub checksum: bool,
    pub use_fdatasync: bool,
}

impl StoreSettings {
    /// The options of the store, from checked settings of an engine.
    pub fn of(settings: &Settings) -> Self {
        let step = settings.autoextend_increment
            / (u64::from(settings.data_files) * u64::from(settings.page_size));
        Self {
            page_size: PageSize::of_settings(settings),
            data_files: settings.data_files,
            extend_pages: step.clamp(1, EXTEND_PAGES_MAX.into()) as u32,
            doublewrite: settings.doublewrite,
            doublewrite_pages: settings.doublewrite_pages,
            flush_method: settings.flush_method,
            trust_device_cache: settings.trust_device_cache,
            checksum: settings.checksum_algorithm == ChecksumAlgorithm::Crc32,
            use_fdatasync: settings.use_fdatasync,
        }
    }

    /// A store of these pages, with the defaults of the engine.
    pub fn new(page_size: PageSize) -> Self {
        Self { page_size, ..Self::of(&Settings::default()) }
    }
}

pub(crate) const fn durability(plan: FilePlan) -> Durability {
    if plan.write_through { Durability::WriteThrough } else { Durability::Volatile }
}

pub(crate) const fn sync_kind(use_fdatasync: bool) -> SyncKind {
    if use_fdatasync { SyncKind::Fdatasync } else { SyncKind::Fsync }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_at_their_rate_and_the_late_catch_up_with_a_few() {
        let slots = WriteSlots::default();
        let start = Instant::now();
        (0..1000).for_each(|_| slots.wait());
        slots.set_per_s(10_000.0);
        (0..50).for_each(|_| slots.wait());
        assert!(start.elapsed() >= Duration::from_micros(4900), "{:?}", start.elapsed());
        let next = slots.next.lock().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(60));
        slots.wait();
        let after = slots.next.lock().unwrap().unwrap();
        assert!(after > next + Duration::from_millis(25), "what was missed long ago is gone");
    }
}

#[cfg(test)]
mod gate_tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    use super::{SyncGate, SyncPlace};
    use crate::error::{EngineError, Poison};

    #[test]
    fn callers_that_wait_share_a_sync_and_none_overlap() {
        let (gate, poison) = (SyncGate::default(), Poison::default());
        let (running, made, shared) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
        let start = Barrier::new(8);
        std::thread::scope(|threads| {
            for _ in 0..8 {
                threads.spawn(|| {
                    start.wait();
                    for _ in 0..200 {
                        let synced = gate.sync(&poison, || {
                            assert_eq!(running.fetch_add(1, SeqCst), 0);
                            std::thread::yield_now();
                            running.fetch_sub(1, SeqCst);
                            Ok(())
                        });
                        match synced.unwrap() {
                            SyncPlace::Here => made.fetch_add(1, SeqCst),
                            SyncPlace::Elsewhere => shared.fetch_add(1, SeqCst),
                        };
                    }
                });
            }
        });
        assert_eq!(made.load(SeqCst) + shared.load(SeqCst), 1600);
    }

    #[test]
    fn after_a_failure_no_sync_succeeds() {
        let (gate, poison) = (SyncGate::default(), Poison::default());
        let lost = || Err(EngineError::full("lost".to_owned()));
        assert!(matches!(gate.sync(&poison, lost), Err(EngineError::NoSpace { .. })));
        let later = gate.sync(&poison, || Ok(()));
        let Err(EngineError::Poisoned { cause }) = later else { panic!("{later:?}") };
        assert!(matches!(*cause, EngineError::NoSpace { .. }), "{cause}");
    }
}
