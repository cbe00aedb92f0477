//! Pages on their way to disk.
//!
//! Invariant: what is taken for writing is a copy made under the latch; until it is reported written
//! or not written its LSN counts in `oldest`, and the page is neither taken again nor thrown out.

use iostrata_io::disk::Aligned;
use iostrata_page::{Lsn, PageNo};

/// A copy of a page, to be written.
#[must_use = "a page taken for writing must be reported by `flushed` or `not_flushed`"]
#[derive(Debug)]
pub struct Flushing {
    /// Which page.
    pub page: PageNo,
    /// The page's newest change: must be durable in the redo before the page is written.
    pub lsn: Lsn,
    /// The page as it was; its checksum is not sealed.
    pub bytes: Aligned,
    /// Kept for the report.
    pub flight: Flight,
}

/// What the pool must know again when the writing has ended.
#[must_use = "a page taken for writing must be reported by `flushed` or `not_flushed`"]
#[derive(Debug)]
pub struct Flight {
    frame: u32,
}
