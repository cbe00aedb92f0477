//! One doublewrite file.
//!
//! Invariant: a batch is one contiguous write from the header on, of the buffers that the pages
//! came in; when `write` returns it is as durable as the flush method makes it.

use std::sync::Arc;

use iostrata_innodb::{Counter, FilePlan, PageNo, SettingError, SyncRule};
use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Disk, DiskError, FileId, FileMode};

use crate::counts::Counts;
use crate::error::EngineError;
use crate::page::PageView;
use crate::store::data::{PageCopy, StoreSettings, durability};
use crate::store::doublewrite::batch::{
    self, BatchEntry, BatchKind, FoundBatch, Numbers, get_u32, put_u32,
};
use crate::store::layout::{
    BATCH_AT, BLOCK_BYTES, IDENTITY_MAGIC, VERSION, doublewrite_file_bytes, doublewrite_name,
    header_bytes, identity, no_room, not_a_store,
};

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
        batch::write(header, numbers, kind, pages.clone().map(entry_of));
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
        batch::write(&mut header, numbers, BatchKind::Empty, std::iter::empty());
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
        let Some(bytes) = batch::length(&first) else { return Ok(None) };
        Ok(self.read_at(BATCH_AT, bytes)?.and_then(|header| batch::read(&header)))
    }

    /// The copy in a slot, if it is the one that the entry tells of.
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
