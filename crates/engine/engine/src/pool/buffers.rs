//! Page-sized buffers that are used again.
//!
//! Invariant: all are exactly one page long. A bounded number is kept.

use std::sync::Mutex;

use iostrata_io::disk::Aligned;

use crate::page::PageSize;
use crate::pool::parking::locked;

/// Buffers at rest.
pub struct Buffers {
    page_bytes: usize,
    kept_max: usize,
    kept: Mutex<Vec<Aligned>>,
}

impl Buffers {
    /// Keeps up to `kept_max`.
    pub fn new(page_size: PageSize, kept_max: usize) -> Self {
        Self { page_bytes: page_size.bytes(), kept_max, kept: Mutex::default() }
    }

    /// A buffer with whatever it held last.
    pub fn take(&self) -> Aligned {
        let kept = locked(&self.kept).pop();
        kept.unwrap_or_else(|| Aligned::zeroed(self.page_bytes))
    }

    pub fn give(&self, buffer: Aligned) {
        let mut kept = locked(&self.kept);
        if kept.len() < self.kept_max && buffer.len() == self.page_bytes {
            kept.push(buffer);
        }
    }
}
