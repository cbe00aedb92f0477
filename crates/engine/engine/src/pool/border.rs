//! What the pool needs from outside: settings, pages, and somebody who frees frames.

use iostrata_innodb::PageNo;
use iostrata_io::disk::Aligned;

use crate::error::EngineError;
use crate::page::PageSize;

/// How a pool is laid out. All but `old_pct` are fixed while it lives.
#[derive(Clone, Copy, Debug)]
pub struct PoolSettings {
    pub page_size: PageSize,
    /// Pages that fit; at least 1.
    pub frames: usize,
    /// Share of the pool for pages not yet proven to be used again, in percent (5 to 95).
    pub old_pct: u32,
    /// Bytes of redo that one bucket of dirty pages covers; at least 1. A few hundred buckets over
    /// the redo's capacity are enough.
    pub bucket_bytes: u64,
    /// So often in a row free frames are asked for in vain before a typed error; at least 1.
    pub tries_max: u32,
    /// Whether a page is copied whenever that is offered, also where readers never met: for tests.
    pub copies_always: bool,
}

impl PoolSettings {
    pub fn new(page_size: PageSize, frames: usize) -> Self {
        Self {
            page_size,
            frames,
            old_pct: 37,
            bucket_bytes: 1 << 20,
            tries_max: 200,
            copies_always: false,
        }
    }
}

/// One page of a batch that is read ahead.
pub struct Wanted {
    pub page: PageNo,
    pub bytes: Aligned,
    pub result: Result<(), EngineError>,
}

pub trait PageSource: Send + Sync {
    /// Reads one page, verified. `into` is a page long and keeps its length.
    fn read(&self, page: PageNo, into: &mut Aligned) -> Result<(), EngineError>;

    /// Reads several pages, each with a result of its own. One by one unless the source can batch.
    fn read_many(&self, wanted: &mut [Wanted]) {
        for one in wanted {
            one.result = self.read(one.page, &mut one.bytes);
        }
    }
}

pub trait Supply: Send + Sync {
    /// There is no free frame. Called without latches, perhaps by many threads at once: either
    /// wakes the cleaner and waits a moment, or runs a step of it inline, which may call anything
    /// of the pool that pins no absent page.
    fn free_wanted(&self);
}

/// For tests: every page is zeros, and frames become free by nobody's hand.
#[cfg(test)]
pub(crate) struct Nothing;

#[cfg(test)]
impl PageSource for Nothing {
    fn read(&self, _: PageNo, _: &mut Aligned) -> Result<(), EngineError> {
        Ok(())
    }
}

#[cfg(test)]
impl Supply for Nothing {
    fn free_wanted(&self) {}
}
