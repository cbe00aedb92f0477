//! The doublewrite files, one for each batch in flight, and the header of a batch, as bytes.
//!
//! Invariants: a file is locked from before a batch's copies are written until that batch is
//! durable in place, so a copy is not overwritten while it may be needed. No thread waits for one
//! file while holding another, except in their order. A batch is one contiguous write from the
//! header on, of the buffers that the pages came in; when `write` returns it is as durable as the
//! flush method makes it. What `write_header` wrote, `read_header` finds; of anything else it finds
//! nothing, and it reads nothing outside.
//! Batches are numbered over all files, ever upwards; one is settled once it is durable in place,
//! and never when it failed. Each header holds the number below which all batches were durable in
//! place: repair does not believe older copies, which may be of older contents.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};

use iostrata_innodb::{Counter, FilePlan, PageNo, SettingError, SyncRule};
use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Disk, DiskError, FileId, FileMode};

use crate::counts::Counts;
use crate::error::EngineError;
use crate::page::PageView;
use crate::store::data::{PageCopy, StoreSettings, durability};
use crate::store::layout::{
    BATCH_AT, BATCH_MAGIC, BLOCK_BYTES, DOUBLEWRITE_PAGES_MAX, IDENTITY_MAGIC, VERSION, batch,
    doublewrite_file_bytes, doublewrite_name, entry, header_bytes, identity, no_room, not_a_store,
};
use crate::sync::locked;

pub(crate) struct DoublewriteFiles {
    files: Vec<Mutex<DoublewriteFile>>,
    pub(crate) order: Order,
    turn: AtomicUsize,
    batch_pages: usize,
}

impl DoublewriteFiles {
    pub(crate) fn new(files: Vec<DoublewriteFile>) -> Self {
        let batch_pages = files[0].pages();
        let (order, turn) = (Order::default(), AtomicUsize::new(0));
        let files = files.into_iter().map(Mutex::new).collect();
        Self { files, order, turn, batch_pages }
    }

    pub(crate) fn batch_pages(&self) -> usize {
        self.batch_pages
    }

    /// A file that is not in use; waits for one when all are.
    pub(crate) fn any(&self) -> MutexGuard<'_, DoublewriteFile> {
        let turn = self.turn.fetch_add(1, Relaxed);
        let at = |step: usize| &self.files[(turn + step) % self.files.len()];
        for step in 0..self.files.len() {
            match at(step).try_lock() {
                Ok(file) => return file,
                Err(std::sync::TryLockError::Poisoned(file)) => return file.into_inner(),
                Err(std::sync::TryLockError::WouldBlock) => {}
            }
        }
        locked(at(0))
    }

    /// All files, once every batch is finished.
    pub(crate) fn all(&self) -> Vec<MutexGuard<'_, DoublewriteFile>> {
        self.files.iter().map(locked).collect()
    }
}

#[derive(Debug, Default)]
struct BatchOrder {
    next: u64,
    unsettled: Vec<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Order(Mutex<BatchOrder>);

impl Order {
    /// Numbers from here on are above `sequence`.
    pub(crate) fn continue_after(&self, sequence: u64) {
        let mut running = locked(&self.0);
        running.next = running.next.max(sequence.saturating_add(1));
    }

    /// A new batch: its number, and the number below which all batches are durable in place.
    pub(crate) fn begin(&self) -> (u64, u64) {
        let mut running = locked(&self.0);
        let sequence = running.next;
        running.next += 1;
        running.unsettled.push(sequence);
        (sequence, running.unsettled.iter().copied().min().unwrap_or(sequence))
    }

    /// This batch is durable in place.
    pub(crate) fn settle(&self, sequence: u64) {
        locked(&self.0).unsettled.retain(|running| *running != sequence);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchKind {
    /// Nothing: no page may be restored.
    Empty,
    /// A copy of every page.
    Copies,
    /// Numbers and checksums alone.
    EntriesOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchEntry {
    pub(crate) page: u64,
    pub(crate) lsn: u64,
    pub(crate) crc: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundBatch {
    pub(crate) sequence: u64,
    pub(crate) settled: u64,
    pub(crate) kind: BatchKind,
    pub(crate) header_bytes: usize,
    pub(crate) entries: Vec<BatchEntry>,
}

impl BatchKind {
    const fn code(self) -> u32 {
        match self {
            Self::Empty => 0,
            Self::Copies => 1,
            Self::EntriesOnly => 2,
        }
    }
}

/// Number and the limit of settled batches.
pub(crate) type Numbers = (u64, u64);

/// Writes a header over all of `into`.
pub(crate) fn write_header(
    into: &mut [u8],
    (sequence, settled): Numbers,
    kind: BatchKind,
    entries: impl Iterator<Item = BatchEntry> + Clone,
) {
    let count = entries.clone().count();
    let end = batch::ENTRIES + count * entry::BYTES;
    assert!(end <= into.len(), "{count} entries do not fit into {} bytes", into.len());
    into[..batch::ENTRIES].fill(0);
    into[end..].fill(0);
    into[..8].copy_from_slice(&BATCH_MAGIC);
    put_u64(into, batch::SEQUENCE, sequence);
    put_u64(into, batch::SETTLED, settled);
    put_u32(into, batch::KIND, kind.code());
    put_u32(into, batch::COUNT, count as u32);
    put_u32(into, batch::HEADER_BYTES, into.len() as u32);
    for (of, at) in entries.zip((batch::ENTRIES..).step_by(entry::BYTES)) {
        put_u64(into, at + entry::PAGE, of.page);
        put_u64(into, at + entry::LSN, of.lsn);
        put_u32(into, at + entry::CRC, of.crc);
        put_u32(into, at + entry::CRC + 4, 0);
    }
    let crc = crc(into, end);
    put_u32(into, batch::CRC, crc);
}

/// Bytes of the header that begins with this block, if one does.
fn header_length(first_block: &[u8]) -> Option<usize> {
    let bytes = get_u32(first_block, batch::HEADER_BYTES)? as usize;
    let most = header_bytes(DOUBLEWRITE_PAGES_MAX);
    let whole = bytes.is_multiple_of(header_bytes(1)) && (1..=most).contains(&bytes);
    (whole && first_block.starts_with(&BATCH_MAGIC)).then_some(bytes)
}

/// The header in these bytes, if all of it is good.
fn read_header(from: &[u8]) -> Option<FoundBatch> {
    if header_length(from)? != from.len() {
        return None;
    }
    let count = get_u32(from, batch::COUNT)? as usize;
    let end = batch::ENTRIES + count.checked_mul(entry::BYTES)?;
    if end > from.len() || get_u32(from, batch::CRC)? != crc(from, end) {
        return None;
    }
    let kind = match get_u32(from, batch::KIND)? {
        0 => BatchKind::Empty,
        1 => BatchKind::Copies,
        2 => BatchKind::EntriesOnly,
        _ => return None,
    };
    let entries = (batch::ENTRIES..end).step_by(entry::BYTES).map(|at| {
        Some(BatchEntry {
            page: get_u64(from, at + entry::PAGE)?,
            lsn: get_u64(from, at + entry::LSN)?,
            crc: get_u32(from, at + entry::CRC)?,
        })
    });
    Some(FoundBatch {
        sequence: get_u64(from, batch::SEQUENCE)?,
        settled: get_u64(from, batch::SETTLED)?,
        kind,
        header_bytes: from.len(),
        entries: entries.collect::<Option<_>>()?,
    })
}

fn crc(header: &[u8], end: usize) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..batch::CRC]), &header[batch::ENTRIES..end])
}

pub(crate) fn put_u32(into: &mut [u8], at: usize, value: u32) {
    into[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(into: &mut [u8], at: usize, value: u64) {
    into[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn get_u32(from: &[u8], at: usize) -> Option<u32> {
    from.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn get_u64(from: &[u8], at: usize) -> Option<u64> {
    from.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

pub(crate) struct DoublewriteFile {
    disk: Arc<dyn Disk>,
    id: FileId,
    name: String,
    plan: FilePlan,
    page_bytes: usize,
    pages: u32,
    header: Option<Aligned>,
    counts: Arc<Counts>,
}

impl DoublewriteFile {
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        settings: &StoreSettings,
        at: usize,
        mode: FileMode,
        counts: &Arc<Counts>,
    ) -> Result<Self, EngineError> {
        let name = doublewrite_name(at)?;
        Ok(Self {
            id: disk.open(&name, mode)?,
            disk: Arc::clone(disk),
            name: name.to_string(),
            plan: settings.flush_method.plan(settings.trust_device_cache).doublewrite,
            page_bytes: settings.page_size.bytes(),
            pages: settings.doublewrite_pages,
            header: None,
            counts: Arc::clone(counts),
        })
    }

    pub(crate) fn pages(&self) -> usize {
        self.pages as usize
    }

    fn file_bytes(&self) -> u64 {
        doublewrite_file_bytes(self.pages, self.page_bytes)
    }

    /// Writes the identity, which is always the same, durably.
    pub(crate) fn identify(&self, data_files: u32, kind: SyncKind) -> Result<(), EngineError> {
        let block = self.identity(data_files);
        self.disk.write(self.id, 0, &block, durability(self.plan))?;
        self.sync(kind)
    }

    /// Makes the file as long as its settings want it, durably.
    pub(crate) fn lengthen(&self, kind: SyncKind) -> Result<(), EngineError> {
        let had = self.disk.len(self.id)? / BATCH_AT * BATCH_AT;
        if had < self.file_bytes() { self.fill(had.max(BATCH_AT), kind) } else { Ok(()) }
    }

    /// Writes zeros from `at` to the end, durably.
    pub(crate) fn fill(&self, at: u64, kind: SyncKind) -> Result<(), EngineError> {
        let zeros = Aligned::zeroed((self.file_bytes() - at) as usize);
        let written = self.disk.write(self.id, at, &zeros, durability(self.plan));
        written.map_err(|error| self.no_space(at, error))?;
        self.sync(kind)
    }

    fn no_space(&self, had: u64, error: DiskError) -> EngineError {
        if !error.is_full() {
            return error.into();
        }
        let pages = |bytes| bytes / self.page_bytes as u64;
        no_room(&self.name, pages(had), pages(self.file_bytes()))
    }

    fn identity(&self, data_files: u32) -> Aligned {
        let mut block = Aligned::zeroed(BLOCK_BYTES);
        block[..8].copy_from_slice(&IDENTITY_MAGIC);
        put_u32(&mut block, identity::VERSION, VERSION);
        put_u32(&mut block, identity::PAGE_BYTES, self.page_bytes as u32);
        put_u32(&mut block, identity::DATA_FILES, data_files);
        let crc = crc32c::crc32c(&block[..identity::CRC]);
        put_u32(&mut block, identity::CRC, crc);
        block
    }

    /// Whether the identity is there; an error when it is another one.
    pub(crate) fn check(&self, data_files: u32) -> Result<bool, EngineError> {
        let mut block = Aligned::zeroed(BLOCK_BYTES);
        match self.disk.read(self.id, 0, &mut block) {
            Err(DiskError::PastEnd { .. }) => return Ok(false),
            read => read?,
        }
        if block.iter().all(|byte| *byte == 0) {
            return Ok(false);
        }
        let number = |at| get_u32(&block, at).unwrap_or(0);
        let good = number(identity::CRC) == crc32c::crc32c(&block[..identity::CRC]);
        let not = |found| Err(self.not_a_store(found));
        match (block.starts_with(&IDENTITY_MAGIC), good, number(identity::VERSION)) {
            (false, ..) => return not("other first bytes"),
            // One sector, so a crash leaves it whole or not there: this is damage.
            (_, false, _) => return not("a wrong checksum"),
            (_, _, VERSION) => {}
            _ => return not("another version"),
        }
        let mismatch = |name, kept: u32, found: u32| {
            let (found, kept) = (found.to_string(), kept.to_string());
            Err(SettingError::Fixed { name, found, kept }.into())
        };
        let (page_bytes, files) = (number(identity::PAGE_BYTES), number(identity::DATA_FILES));
        match (page_bytes as usize == self.page_bytes, files == data_files) {
            (false, _) => mismatch("page_size", page_bytes, self.page_bytes as u32),
            (_, false) => mismatch("data_files", files, data_files),
            _ => Ok(true),
        }
    }

    pub(crate) fn not_a_store(&self, found: &str) -> EngineError {
        not_a_store(&self.name, found)
    }

    /// Writes and, unless the device is trusted, makes durable what guards these pages.
    pub(crate) fn write<'p>(
        &mut self,
        numbers: Numbers,
        kind: BatchKind,
        pages: impl Iterator<Item = &'p PageCopy> + Clone,
        sync: SyncKind,
    ) -> Result<(), EngineError> {
        let make = || Aligned::zeroed(header_bytes(self.pages));
        let header = self.header.get_or_insert_with(make);
        write_header(header, numbers, kind, pages.clone().map(entry_of));
        let copies = pages.filter(|_| kind == BatchKind::Copies).map(|copy| &copy.bytes);
        let parts: Vec<&Aligned> = std::iter::once(&*header).chain(copies).collect();
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.counts.add(Counter::DataWritten, bytes as u64);
        self.disk.write_parts(self.id, BATCH_AT, &parts, durability(self.plan))?;
        match self.plan.sync {
            SyncRule::GrowthOnly => Ok(()),
            SyncRule::EachBatch | SyncRule::EachDoublewriteBatch => self.sync(sync),
        }
    }

    /// Writes a batch that was found where it lies already, durably.
    pub(crate) fn rewrite(&self, found: &FoundBatch, sync: SyncKind) -> Result<(), EngineError> {
        if found.kind != BatchKind::Copies {
            return Ok(());
        }
        let bytes = found.header_bytes + found.entries.len() * self.page_bytes;
        // A file that is too short has lost a copy; the pages are judged without it.
        let Some(batch) = self.read_at(BATCH_AT, bytes)? else { return Ok(()) };
        self.disk.write(self.id, BATCH_AT, &batch, durability(self.plan))?;
        self.sync(sync)
    }

    /// Makes it durable that no copy may be restored any more, whatever the flush method.
    pub(crate) fn clear(&mut self, numbers: Numbers, sync: SyncKind) -> Result<(), EngineError> {
        let mut header = Aligned::zeroed(header_bytes(self.pages));
        write_header(&mut header, numbers, BatchKind::Empty, std::iter::empty());
        self.disk.write(self.id, BATCH_AT, &header, durability(self.plan))?;
        self.sync(sync)
    }

    pub(crate) fn sync(&self, kind: SyncKind) -> Result<(), EngineError> {
        self.counts.add(Counter::DataFsyncs, 1);
        Ok(self.disk.sync(self.id, kind)?)
    }

    /// The batch in the file, if one is there in whole.
    pub(crate) fn find(&self) -> Result<Option<FoundBatch>, EngineError> {
        let Some(first) = self.read_at(BATCH_AT, BLOCK_BYTES)? else { return Ok(None) };
        let Some(bytes) = header_length(&first) else { return Ok(None) };
        Ok(self.read_at(BATCH_AT, bytes)?.and_then(|header| read_header(&header)))
    }

    /// The copy in a slot, if the entry describes it.
    pub(crate) fn copy(
        &self,
        found: &FoundBatch,
        slot: usize,
    ) -> Result<Option<Aligned>, EngineError> {
        let at = BATCH_AT + (found.header_bytes + slot * self.page_bytes) as u64;
        let Some(copy) = self.read_at(at, self.page_bytes)? else { return Ok(None) };
        let wanted = found.entries[slot];
        let view = PageView::new(&copy);
        let good = view.crc() == wanted.crc && view.verify(PageNo(wanted.page)).is_ok();
        Ok(good.then_some(copy))
    }

    fn read_at(&self, at: u64, bytes: usize) -> Result<Option<Aligned>, EngineError> {
        let mut block = Aligned::zeroed(bytes);
        match self.disk.read(self.id, at, &mut block) {
            Err(DiskError::PastEnd { .. }) => Ok(None),
            read => Ok(read.map(|()| Some(block))?),
        }
    }
}

fn entry_of(copy: &PageCopy) -> BatchEntry {
    let view = PageView::new(&copy.bytes);
    BatchEntry { page: copy.page.0, lsn: view.lsn().0, crc: view.crc() }
}

impl Drop for DoublewriteFile {
    fn drop(&mut self) {
        self.disk.close(self.id);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        BatchEntry, BatchKind, FoundBatch, Order, header_length, read_header, write_header,
    };
    use crate::store::layout::header_bytes;

    #[test]
    fn a_batch_is_settled_only_with_all_before_it() {
        let order = Order::default();
        order.continue_after(9);
        order.continue_after(3);
        assert_eq!(order.begin(), (10, 10));
        assert_eq!(order.begin(), (11, 10));
        order.settle(11);
        assert_eq!(order.begin(), (12, 10));
        order.settle(10);
        assert_eq!(order.begin(), (13, 12));
    }

    fn entry() -> impl Strategy<Value = BatchEntry> {
        any::<(u64, u64, u32)>().prop_map(|(page, lsn, crc)| BatchEntry { page, lsn, crc })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_written_is_found_and_any_change_is_seen(
            entries in prop::collection::vec(entry(), 0..200),
            numbers in any::<(u64, u64)>(),
            damage in any::<(prop::sample::Index, u8)>(),
        ) {
            let mut bytes = vec![0xAA; header_bytes(200)];
            write_header(&mut bytes, numbers, BatchKind::Copies, entries.iter().copied());
            let (sequence, settled) = numbers;
            let header_bytes = bytes.len();
            prop_assert_eq!(header_length(&bytes[..4096]), Some(header_bytes));
            let found = read_header(&bytes);
            let used = 64 + entries.len() * 24;
            let kind = BatchKind::Copies;
            let wanted = FoundBatch { sequence, settled, kind, header_bytes, entries };
            prop_assert_eq!(found, Some(wanted));
            bytes[damage.0.index(used)] ^= damage.1.max(1);
            prop_assert_eq!(read_header(&bytes), None);
        }

        #[test]
        fn garbage_is_nothing(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(read_header(&bytes), None);
            prop_assert_eq!(header_length(&bytes), None);
        }
    }
}
