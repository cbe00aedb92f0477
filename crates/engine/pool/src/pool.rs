//! The pool.
#![allow(dead_code)]
use crate::border::{PageSource, PoolSettings, Supply};
use crate::counters::PoolCounters;
use crate::error::PoolError;
use crate::flushing::Flushing;
use crate::frames::Frame;
use crate::guard::Pin;
use iostrata_page::{Lsn, PageNo};
use std::sync::Arc;

/// All pages in memory.
pub struct Pool {
    source: Arc<dyn PageSource>,
    supply: Arc<dyn Supply>,
    settings: PoolSettings,
}

impl Pool {
    /// An empty pool.
    pub fn new(
        settings: PoolSettings,
        source: Arc<dyn PageSource>,
        supply: Arc<dyn Supply>,
    ) -> Self {
        Self { source, supply, settings }
    }
    /// Pins a page, loading it when absent.
    pub fn pin(&self, page: PageNo) -> Result<Pin<'_>, PoolError> {
        Err(PoolError::NoSuchPage { page, last: page })
    }
    /// Pins a page that is resident.
    pub fn try_pin(&self, _page: PageNo) -> Option<Pin<'_>> {
        None
    }
    /// A page that needs no read.
    pub fn create(&self, page: PageNo) -> Result<Pin<'_>, PoolError> {
        Err(PoolError::NoSuchPage { page, last: page })
    }
    /// Reads ahead.
    pub fn prefetch(&self, _pages: &[PageNo]) {}
    /// The least LSN of dirty pages and pages being written.
    pub fn oldest(&self) -> Option<Lsn> {
        None
    }
    /// Pages dirty or being written.
    pub fn dirty_pages(&self) -> usize {
        0
    }
    /// Pages being written.
    pub fn flying_pages(&self) -> usize {
        0
    }
    /// Frames with no page.
    pub fn free_frames(&self) -> usize {
        0
    }
    /// Pages in the pool.
    pub fn resident(&self) -> usize {
        0
    }
    /// All frames.
    pub fn frames(&self) -> usize {
        0
    }
    /// Dirty pages by the bucket their LSN lies in, oldest first.
    pub fn age_histogram(&self) -> Vec<(Lsn, u32)> {
        Vec::new()
    }
    /// Takes the oldest dirty pages for writing.
    pub fn collect_oldest(&self, _max: usize, _until: Lsn, _out: &mut Vec<Flushing>) {}
    /// Takes dirty pages at the cold end for writing.
    pub fn collect_cold(&self, _max: usize, _out: &mut Vec<Flushing>) {}
    /// They are written.
    pub fn flushed(&self, _written: Vec<Flushing>) {}
    /// They are not written.
    pub fn not_flushed(&self, _unwritten: Vec<Flushing>) {}
    /// Throws out clean cold pages.
    pub fn evict(&self, _max: usize) -> usize {
        0
    }
    /// Forgets a freed page without writing it; true if it could be forgotten.
    pub fn discard(&self, _page: PageNo) -> bool {
        false
    }
    /// What happened so far.
    pub fn counters(&self) -> PoolCounters {
        PoolCounters::default()
    }
    /// The share of pages not proven to be used again, in percent.
    pub fn set_old_pct(&self, _old_pct: u32) {}
    pub(crate) fn restructure(&self, _frame: &Frame) {}
    pub(crate) fn mark_dirty(&self, _frame: &Frame, _at: Lsn) {}
}
