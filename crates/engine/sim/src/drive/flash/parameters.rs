//! What a flash drive is made of, and how a data sheet's rates follow from it.

use super::super::DriveFacts;

/// Bytes that are mapped, programmed and moved as one.
pub const PAGE_BYTES: u32 = 4096;

/// What becomes of done writes at a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// Lost; a flush drains the cache.
    Volatile,
    /// Kept by capacitors; a flush has nothing to do.
    Protected,
    /// There is none: a write is done when it is programmed.
    Off,
}

/// How much has been written to the drive before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wear {
    /// Never written: a whole drive of erased blocks.
    Fresh,
    /// Written over many times: only the reserve is erased.
    Used,
}

/// What a flash drive is made of. Times in ns, rates per second.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashParameters {
    /// Commands that it takes at a time.
    pub queue_depth: u32,
    /// Dies (or channels of dies that can't overlap) that work at the same time.
    pub dies: u32,
    /// What the controller spends on a read before the next command's turn.
    pub read_command_ns: u64,
    /// The same on a write.
    pub write_command_ns: u64,
    /// What a read waits beside controller, die and link, without keeping others waiting.
    pub read_overhead_ns: u64,
    /// The same for a write.
    pub write_overhead_ns: u64,
    /// A die's time for reading a page.
    pub read_page_ns: u64,
    /// A die's time for programming a page.
    pub program_page_ns: u64,
    /// A die's time for erasing a block.
    pub erase_ns: u64,
    /// Pages of a block.
    pub block_pages: u32,
    /// The link towards the host, bytes per second.
    pub link_read_bytes_per_s: u64,
    /// The link from the host, bytes per second.
    pub link_write_bytes_per_s: u64,
    /// Pages that the write cache holds.
    pub cache_pages: u32,
    /// What becomes of them at a power cut.
    pub cache: WriteCache,
    /// What a flush takes after the cache is drained.
    pub flush_ns: u64,
    /// What it takes beyond programming until a write is found again after a power cut.
    pub through_ns: u64,
    /// Pages of erased blocks that a used drive keeps in reserve.
    pub reserve_pages: u64,
    /// Random writes of a page per second when the reserve is used up.
    pub random_write_iops: f64,
    /// Sequential writes in bytes per second when the reserve is used up.
    pub sequential_write_bytes_per_s: f64,
    /// At the beginning.
    pub wear: Wear,
}

impl FlashParameters {
    /// The same drive, never written.
    pub fn fresh(self) -> Self {
        Self { wear: Wear::Fresh, ..self }
    }

    /// What holds for it with a capacity.
    pub(super) fn facts(&self, capacity_bytes: u64) -> DriveFacts {
        let volatile_bytes = match self.cache {
            WriteCache::Volatile => u64::from(self.cache_pages) * u64::from(PAGE_BYTES),
            WriteCache::Protected | WriteCache::Off => 0,
        };
        DriveFacts {
            capacity_bytes,
            queue_depth: self.queue_depth,
            volatile_bytes,
            is_rotational: false,
        }
    }

    /// A die's time for moving a page that is still valid out of a block to be erased.
    pub fn move_page_ns(&self) -> u64 {
        self.read_page_ns + self.program_page_ns
    }

    /// Share of a block that is still valid when it is cleaned under random writes.
    pub fn valid_share_random(&self) -> f64 {
        self.valid_share(self.random_write_iops)
    }

    /// The same under sequential writes.
    pub fn valid_share_sequential(&self) -> f64 {
        self.valid_share(self.sequential_write_bytes_per_s / f64::from(PAGE_BYTES))
    }

    /// The share `v` of valid pages in a block of `B` pages with which the dies program
    /// `pages_per_s`: each page costs its programming and its part of the cleaning,
    /// `p + (v B m + e) / ((1 - v) B)`, with `m` for a move and `e` for an erase, and all dies
    /// together have `dies / pages_per_s` for it.
    fn valid_share(&self, pages_per_s: f64) -> f64 {
        let block = f64::from(self.block_pages);
        let page_ns = f64::from(self.dies) * 1e9 / pages_per_s;
        let cleaning_ns = page_ns - self.program_page_ns as f64;
        let share = (cleaning_ns * block - self.erase_ns as f64)
            / (block * (self.move_page_ns() as f64 + cleaning_ns));
        share.clamp(0.0, 0.99)
    }

    /// The Intel X25-E of 64 GB; `docs/disks.md` has the sources and the reasoning.
    ///
    /// A die here is a channel: ten of them. Programming follows from 170 MB/s of sequential
    /// writes, less the erase of every 64th page: `10 * 4096 B / 170 MB/s - 2 ms / 64`.
    pub fn x25_e() -> Self {
        Self {
            queue_depth: 32,
            dies: 10,
            read_command_ns: 28_570,
            write_command_ns: 28_570,
            read_overhead_ns: 5_050,
            write_overhead_ns: 40_050,
            read_page_ns: 25_000,
            program_page_ns: 209_700,
            erase_ns: 2_000_000,
            block_pages: 64,
            link_read_bytes_per_s: 250_000_000,
            link_write_bytes_per_s: 250_000_000,
            cache_pages: 64,
            cache: WriteCache::Volatile,
            flush_ns: 5_000_000,
            through_ns: 540_000,
            reserve_pages: 2_560,
            random_write_iops: 3_300.0,
            sequential_write_bytes_per_s: 170e6,
            wear: Wear::Used,
        }
    }
}
