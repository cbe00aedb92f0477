//! How large the cache is and when it writes.

use iostrata_run::KernelThen;

use super::Submission;
use crate::queue::Submitter;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
/// Age at which a file's dirty pages are written (`dirty_expire_centisecs` of 3,000), in ns.
pub const EXPIRE_NS: u64 = 30_000_000_000;
/// How often the flusher looks for them (`dirty_writeback_centisecs` of 500), in ns.
pub const PERIODIC_NS: u64 = 5_000_000_000;
/// Age at which a journal transaction is committed (ext3's `commit=5`), in ns.
pub const COMMIT_NS: u64 = 5_000_000_000;
/// Pages that the flusher submits before it looks at the limits again (`MAX_WRITEBACK_PAGES`).
pub const WRITEBACK_PAGES_MAX: u32 = 1024;

/// The program that writes.
pub const WRITER: Submitter = Submitter(0);
/// The thread that commits the journal.
pub const JOURNAL: Submitter = Submitter(1);
/// The thread that writes back.
pub const FLUSHER: Submitter = Submitter(2);

/// How a cache is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachePlan {
    /// Pages of all files; they lie on the drive from `base_bytes` on.
    pub pages: u32,
    /// Where the first page lies.
    pub base_bytes: u64,
    /// Pages that memory holds.
    pub memory_pages: u32,
    /// Dirty pages, those on their way to the drive included, at which a writer waits.
    pub dirty_pages_max: u32,
    /// Dirty pages above which the flusher writes without waiting for their age.
    pub background_pages: u32,
    /// Who submits, and in which order.
    pub submission: Submission,
}

impl CachePlan {
    /// The defaults of a kernel for so much memory. Sources: Documentation/filesystems/proc.txt of
    /// 2.6.18 (`dirty_ratio` 40, `dirty_background_ratio` 10) and
    /// Documentation/admin-guide/sysctl/vm.rst of today (20 and 10); mm/page-writeback.c of today
    /// holds a writer at the mean of the limit and of half the way between both.
    pub fn of(kernel: KernelThen, memory_bytes: u64, pages: u32, base_bytes: u64) -> Self {
        let memory_pages = (memory_bytes / PAGE_BYTES) as u32;
        let (ratio_pct, background_pages) = match kernel {
            KernelThen::Y2009 => (40, memory_pages / 10),
            KernelThen::Today => (20, memory_pages / 10),
        };
        let limit = (u64::from(memory_pages) * ratio_pct / 100) as u32;
        let dirty_pages_max = match kernel {
            KernelThen::Y2009 => limit,
            KernelThen::Today => (limit + limit.midpoint(background_pages)) / 2,
        };
        Self {
            pages,
            base_bytes,
            memory_pages,
            dirty_pages_max,
            background_pages,
            submission: Submission::of(kernel),
        }
    }
}
