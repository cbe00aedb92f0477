//! The closed sets of names: queue attributes, write-back settings, file systems.
//!
//! Invariant: a name here is the kernel's own, so that a journal reads like the system does.

use serde::{Deserialize, Serialize};

/// An attribute of a block device's queue, `/sys/block/<disk>/queue/<name>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueAttribute {
    /// Which I/O scheduler. Switching it resets others, `nr_requests` first of all.
    Scheduler,
    /// Requests that the queue holds.
    NrRequests,
    /// Read-ahead, in KiB.
    ReadAheadKb,
    /// 0 merges all it can, 1 only simple merges, 2 none.
    Nomerges,
    /// Where completions run: 0 anywhere, 1 the submitter's group, 2 the very processor.
    RqAffinity,
    /// Latency goal of write-back throttling, in us; 0 turns it off.
    WbtLatUsec,
    /// Whether completions feed the random pool.
    AddRandom,
    /// Whether counters are kept.
    Iostats,
}

impl QueueAttribute {
    /// All of them, the scheduler first.
    pub const ALL: [Self; 8] = [
        Self::Scheduler,
        Self::NrRequests,
        Self::ReadAheadKb,
        Self::Nomerges,
        Self::RqAffinity,
        Self::WbtLatUsec,
        Self::AddRandom,
        Self::Iostats,
    ];

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::NrRequests => "nr_requests",
            Self::ReadAheadKb => "read_ahead_kb",
            Self::Nomerges => "nomerges",
            Self::RqAffinity => "rq_affinity",
            Self::WbtLatUsec => "wbt_lat_usec",
            Self::AddRandom => "add_random",
            Self::Iostats => "iostats",
        }
    }

    /// The attribute of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// A write-back setting of the kernel, `/proc/sys/vm/<name>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VmSetting {
    /// Dirty share of memory at which writers write themselves, in %.
    DirtyRatio,
    /// Dirty share of memory at which write-back begins, in %.
    DirtyBackgroundRatio,
    /// As `dirty_ratio`, in bytes; setting one turns the other to 0.
    DirtyBytes,
    /// As `dirty_background_ratio`, in bytes; setting one turns the other to 0.
    DirtyBackgroundBytes,
    /// Age at which a dirty page is written, in hundredths of a second.
    DirtyExpireCentisecs,
    /// Interval of write-back, in hundredths of a second.
    DirtyWritebackCentisecs,
}

impl VmSetting {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::DirtyRatio,
        Self::DirtyBackgroundRatio,
        Self::DirtyBytes,
        Self::DirtyBackgroundBytes,
        Self::DirtyExpireCentisecs,
        Self::DirtyWritebackCentisecs,
    ];

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::DirtyRatio => "dirty_ratio",
            Self::DirtyBackgroundRatio => "dirty_background_ratio",
            Self::DirtyBytes => "dirty_bytes",
            Self::DirtyBackgroundBytes => "dirty_background_bytes",
            Self::DirtyExpireCentisecs => "dirty_expire_centisecs",
            Self::DirtyWritebackCentisecs => "dirty_writeback_centisecs",
        }
    }

    /// The setting of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The other form of the same limit, which the kernel turns to 0 when this one is set.
    pub fn other_form(self) -> Option<Self> {
        match self {
            Self::DirtyRatio => Some(Self::DirtyBytes),
            Self::DirtyBytes => Some(Self::DirtyRatio),
            Self::DirtyBackgroundRatio => Some(Self::DirtyBackgroundBytes),
            Self::DirtyBackgroundBytes => Some(Self::DirtyBackgroundRatio),
            Self::DirtyExpireCentisecs | Self::DirtyWritebackCentisecs => None,
        }
    }
}

/// A file system that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilesystemKind {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl FilesystemKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ext4, Self::Xfs, Self::Btrfs];

    /// The kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The kind of this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// The program that makes it.
    pub fn program(self) -> &'static str {
        match self {
            Self::Ext4 => "mkfs.ext4",
            Self::Xfs => "mkfs.xfs",
            Self::Btrfs => "mkfs.btrfs",
        }
    }

    /// Debian's package with the program.
    pub fn package(self) -> &'static str {
        match self {
            Self::Ext4 => "e2fsprogs",
            Self::Xfs => "xfsprogs",
            Self::Btrfs => "btrfs-progs",
        }
    }

    /// Arguments of every call: no discard, nothing put off until after mounting, and no question
    /// about old contents, which were looked at before.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
            Self::Xfs => &["-q", "-f", "-K"],
            Self::Btrfs => &["-q", "-f", "-K"],
        }
    }
}

/// How much of a backing file is written when it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prewrite {
    /// Every byte, with data that no storage can shrink, past the page cache; the extents are
    /// checked.
    All,
    /// Nothing: the file is only allocated. What a load touches has to be written first, and
    /// [`touched_unwritten_bytes`](crate::touched_unwritten_bytes) tells whether it was.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for one in QueueAttribute::ALL {
            assert_eq!(QueueAttribute::of(one.name()), Some(one));
            assert_eq!(serde_json::to_string(&one).unwrap(), format!("\"{}\"", one.name()));
        }
        for one in VmSetting::ALL {
            assert_eq!(VmSetting::of(one.name()), Some(one));
            assert_eq!(one.other_form().and_then(VmSetting::other_form).unwrap_or(one), one);
            assert_eq!(serde_json::to_string(&one).unwrap(), format!("\"{}\"", one.name()));
        }
        for one in FilesystemKind::ALL {
            assert_eq!(FilesystemKind::of(one.name()), Some(one));
        }
    }
}
