//! In which order dirty pages reach the queue.

use iostrata_run::KernelThen;

/// Who submits dirty pages, and in which order.
///
/// Sources: Linux Documentation/filesystems/ext3.txt (`data=ordered`, the default: "all data are
/// forced directly out to the main file system prior to its metadata being committed to the
/// journal"; `commit=5`: every five seconds), fs/jbd/commit.c of 2.6.18 (`t_sync_datalist` is
/// written in the order in which its buffers were dirtied); Documentation/filesystems/ext4
/// (delayed allocation: overwritten data take no part in a commit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Submission {
    /// ext3 of 2009: every five seconds a journal commit forces out the pages dirtied since the
    /// last one, in the order of dirtying; whoever writes to one that is not submitted yet submits
    /// it and waits.
    Unsorted,
    /// Today: only the flusher writes, by file and offset.
    InodeOrdered,
}

impl Submission {
    /// What the file systems of that time do.
    pub fn of(kernel: KernelThen) -> Self {
        match kernel {
            KernelThen::Y2009 => Self::Unsorted,
            KernelThen::Today => Self::InodeOrdered,
        }
    }

    /// Most pages in a bio of whoever writes back: 512 KiB today.
    pub(super) fn bio_pages_max(self) -> u32 {
        match self {
            Self::Unsorted => 1,
            Self::InodeOrdered => 128,
        }
    }
}
