//! Closed sets of names that changes have in them.
//!
//! Invariant: a name of a setting is the kernel's own, so that a journal reads like the system
//! does.

use serde::{Deserialize, Serialize};

/// A closed set with the kernel's name of each.
macro_rules! named {
    (
        $(#[$doc:meta])* $set:ident ($($derive:ident),*) {
            $($(#[$one:meta])* $value:ident = $name:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize $(, $derive)*)]
        pub enum $set {
            $($(#[$one])* #[serde(rename = $name)] $value,)*
        }

        impl $set {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$value),*];

            /// The kernel's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name,)*
                }
            }

            /// The one of this name.
            pub fn of(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.name() == name)
            }
        }
    };
}

named! {
    /// An attribute of a block device's queue, `/sys/block/<disk>/queue/<name>`; the scheduler
    /// first.
    QueueAttribute (PartialOrd, Ord) {
        /// Which I/O scheduler. Switching it resets others, `nr_requests` first of all.
        Scheduler = "scheduler",
        /// Requests that the queue holds.
        NrRequests = "nr_requests",
        /// Read-ahead, in KiB.
        ReadAheadKb = "read_ahead_kb",
        /// 0 merges all it can, 1 only simple merges, 2 none.
        Nomerges = "nomerges",
        /// Where completions run: 0 anywhere, 1 the submitter's group, 2 the very processor.
        RqAffinity = "rq_affinity",
        /// Latency goal of write-back throttling, in us; 0 turns it off.
        WbtLatUsec = "wbt_lat_usec",
        /// Whether completions feed the random pool.
        AddRandom = "add_random",
        /// Whether counters are kept.
        Iostats = "iostats",
    }
}

named! {
    /// A write-back setting of the kernel, `/proc/sys/vm/<name>`.
    VmSetting (PartialOrd, Ord) {
        /// Dirty share of memory at which writers write themselves, in %.
        DirtyRatio = "dirty_ratio",
        /// Dirty share of memory at which write-back begins, in %.
        DirtyBackgroundRatio = "dirty_background_ratio",
        /// As `dirty_ratio`, in bytes; setting one turns the other to 0.
        DirtyBytes = "dirty_bytes",
        /// As `dirty_background_ratio`, in bytes; setting one turns the other to 0.
        DirtyBackgroundBytes = "dirty_background_bytes",
        /// Age at which a dirty page is written, in hundredths of a second.
        DirtyExpireCentisecs = "dirty_expire_centisecs",
        /// Interval of write-back, in hundredths of a second.
        DirtyWritebackCentisecs = "dirty_writeback_centisecs",
    }
}

impl VmSetting {
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

named! {
    /// A file system that can be made.
    FilesystemKind () {
        /// ext4.
        Ext4 = "ext4",
        /// XFS.
        Xfs = "xfs",
        /// btrfs.
        Btrfs = "btrfs",
    }
}

impl FilesystemKind {
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
    /// about old contents, which were checked before.
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
    /// [`touched_unwritten_bytes`](crate::touched_unwritten_bytes) returns whether it was.
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
