//! A disk in memory, a redo that is only a number, and a cleaner that runs where it is called.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use iostrata_engine::EngineError;
use iostrata_engine::page::PageSize;
use iostrata_engine::pool::{PageFlush, PageSource, Pool, PoolSettings, Supply};
use iostrata_innodb::{Lsn, PageNo};
use iostrata_io::disk::Aligned;

pub const PAGE_BYTES: usize = 4096;

/// The failure of a page that cannot be read.
pub fn bad_sector(page: PageNo) -> EngineError {
    EngineError::Corrupt { page: page.0, problem: "a bad sector".to_owned() }
}

/// Remembers what was written; a page never written is zeros.
#[derive(Default)]
pub struct MemorySource {
    pages: Mutex<HashMap<u64, Vec<u8>>>,
    pub bad: Mutex<HashSet<u64>>,
    pub reads: AtomicU64,
}

impl MemorySource {
    pub fn write(&self, page: PageNo, bytes: &[u8]) {
        self.pages.lock().unwrap().insert(page.0, bytes.to_vec());
    }

    pub fn stamp(&self, page: PageNo) -> u64 {
        self.pages.lock().unwrap().get(&page.0).map_or(0, |bytes| stamp(bytes))
    }

    pub fn lsn(&self, page: PageNo) -> u64 {
        self.pages.lock().unwrap().get(&page.0).map_or(0, |bytes| word(bytes, 2))
    }
}

impl PageSource for MemorySource {
    fn read(&self, page: PageNo, into: &mut Aligned) -> Result<(), EngineError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.bad.lock().unwrap().contains(&page.0) {
            return Err(bad_sector(page));
        }
        match self.pages.lock().unwrap().get(&page.0) {
            Some(bytes) => into.copy_from_slice(bytes),
            None => into.fill(0),
        }
        Ok(())
    }
}

/// The 64-bit word at this place.
pub fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap())
}

/// The one number a page is filled with, apart from its LSN; panics on a torn page.
pub fn stamp(bytes: &[u8]) -> u64 {
    let first = word(bytes, 0);
    for at in (0..bytes.len() / 8).filter(|at| *at != 2) {
        assert_eq!(word(bytes, at), first, "torn at word {at}");
    }
    first
}

/// Fills a page with one number and an LSN.
pub fn fill(bytes: &mut [u8], number: u64, lsn: u64) {
    for at in 0..bytes.len() / 8 {
        let value = if at == 2 { lsn } else { number };
        bytes[8 * at..8 * at + 8].copy_from_slice(&value.to_le_bytes());
    }
}

/// Writes to the memory source whatever the pool gives it, where it is called.
pub struct InlineCleaner {
    pool: OnceLock<Weak<Pool>>,
    source: Arc<MemorySource>,
    pub calls: AtomicU64,
}

impl InlineCleaner {
    /// Writes what was collected and reports it.
    pub fn write(&self, pool: &Pool, taken: Vec<PageFlush>) {
        for one in &taken {
            assert_eq!(word(&one.bytes, 2), one.lsn.0);
            std::thread::yield_now();
            self.source.write(one.page, &one.bytes);
        }
        pool.flushed(taken);
    }

    pub fn pool(&self) -> Option<Arc<Pool>> {
        self.pool.get()?.upgrade()
    }

    pub fn step(&self, pages: usize) {
        let Some(pool) = self.pool() else { return };
        let mut taken = Vec::new();
        pool.collect_cold(pages, &mut taken);
        self.write(&pool, taken);
        pool.evict(pages);
    }
}

impl Supply for InlineCleaner {
    /// As the engine's own, it waits a moment where nothing became free: those that have the frames
    /// may wait for a processor.
    fn free_wanted(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.step(4);
        if self.pool().is_some_and(|pool| pool.queues.free() == 0) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Frees nothing.
pub struct NoSupply;

impl Supply for NoSupply {
    fn free_wanted(&self) {}
}

pub fn settings(frames: usize) -> PoolSettings {
    let mut settings = PoolSettings::new(PageSize::new(PAGE_BYTES as u32).unwrap(), frames);
    settings.bucket_bytes = 16;
    settings
}

/// A pool with a memory source and an inline cleaner.
pub fn pool(frames: usize) -> (Arc<Pool>, Arc<MemorySource>, Arc<InlineCleaner>) {
    let source = Arc::new(MemorySource::default());
    let cleaner = Arc::new(InlineCleaner {
        pool: OnceLock::new(),
        source: Arc::clone(&source),
        calls: AtomicU64::new(0),
    });
    let (as_source, as_supply) = (Arc::clone(&source), Arc::clone(&cleaner));
    let pool = Arc::new(Pool::new(settings(frames), Arc::default(), as_source, as_supply));
    assert!(cleaner.pool.set(Arc::downgrade(&pool)).is_ok());
    (pool, source, cleaner)
}

/// One number after the other.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// Changes a page as the engine does: mark, append, change.
pub fn change(pool: &Pool, page: PageNo, redo: &AtomicU64, number: u64) {
    let mut page = pool.pin(page).unwrap().exclusive();
    page.mark_dirty(Lsn(redo.load(Ordering::SeqCst)));
    let end = redo.fetch_add(8, Ordering::SeqCst) + 8;
    fill(&mut page, number, end);
}
