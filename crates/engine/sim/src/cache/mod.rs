//! The page cache and how it writes back.
//!
//! Purpose: when a written page reaches the block queue, in which order, and who waits for it.
//! Invariants: every page that was dirtied is written or still dirty; a page is never in the queue
//! twice; dirty pages pass the limit by no more than the pages of one write.
//! Pages are one row of neighbours on the drive, all files one after the other in the order of
//! their numbers; metadata and the journal's own blocks are left out, as is read-ahead.

mod bits;
mod flusher;
mod journal;
mod page_cache;
mod pages;
mod plan;
mod submission;
#[cfg(test)]
mod tests;

pub use page_cache::{Access, PageCache, Waits};
pub use pages::PageCounts;
pub use plan::{
    COMMIT_NS, CachePlan, EXPIRE_NS, FLUSHER, JOURNAL, PAGE_BYTES, PERIODIC_NS,
    WRITEBACK_PAGES_MAX, WRITER,
};
pub use submission::Submission;
