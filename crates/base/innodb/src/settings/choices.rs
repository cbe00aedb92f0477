//! Settings that take one of a few words.

use super::value::Value;
use crate::settings::ValueKind;

/// An enum whose variants are words of a setting; the same list makes the parser and the printer.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every word that is taken.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Every value.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Its word.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }
        }

        impl Value for $name {
            fn parse(text: &str, _kind: &ValueKind) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.word().eq_ignore_ascii_case(text))
            }

            fn print(&self, _kind: &ValueKind) -> String {
                self.word().to_owned()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

choice! {
    /// What a commit waits for.
    FlushLogAt {
        /// Nothing: redo is written and synced once in every `flush_log_at_timeout`.
        Timeout = "0",
        /// Its redo is durable.
        Commit = "1",
        /// Its redo is written to the file; synced once in every `flush_log_at_timeout`.
        Written = "2",
    }
}

choice! {
    /// With which calls data and redo reach the device.
    FlushMethod {
        /// Buffered, then fsync.
        Fsync = "fsync",
        /// Redo opened with O_DSYNC, data as with fsync.
        Dsync = "O_DSYNC",
        /// Data past the page cache, then fsync; redo buffered and synced.
        Direct = "O_DIRECT",
        /// As `O_DIRECT`, and data is synced only when a file grew.
        DirectNoFsync = "O_DIRECT_NO_FSYNC",
        /// Data and redo past the page cache.
        AllDirect = "ALL_O_DIRECT",
    }
}

choice! {
    /// How requests are given to the kernel.
    IoMethod {
        /// One system call per request.
        Sync = "sync",
        /// Native asynchronous I/O.
        Libaio = "libaio",
        /// A ring shared with the kernel.
        IoUring = "io_uring",
    }
}

choice! {
    /// What protects a page that a crash left half written.
    Doublewrite {
        /// A whole copy is durable before the page is written in place.
        On = "ON",
        /// Nothing: a torn page is found by its checksum and lost.
        Off = "OFF",
        /// Only number and checksum are kept: a torn page is named, and lost.
        DetectOnly = "DETECT_ONLY",
    }
}

choice! {
    /// How a damaged page is told from a good one.
    ChecksumAlgorithm {
        /// CRC-32C over the page.
        Crc32 = "crc32",
        /// Not at all.
        None = "none",
    }
}

choice! {
    /// Which policy decides what is flushed and when.
    PolicyName {
        /// MySQL 5.0 and 5.1: 100 pages per second.
        Fixed100 = "fixed-100",
        /// Google's patch to them: `io_capacity` in place of the constant.
        IoCapacity = "io-capacity",
        /// XtraDB 5.1: shares of `io_capacity` by steps of the age.
        Reflex = "reflex",
        /// XtraDB: what the age of each page asks for, without a cap.
        Estimate = "estimate",
        /// XtraDB: ten looks a second, less what others have flushed.
        KeepAverage = "keep-average",
        /// InnoDB plugin 1.0.4 and MySQL 5.5: capped by `io_capacity`.
        Adaptive = "adaptive",
        /// The patch of 2010: the tail of the redo goes as fast as its head comes.
        LsnAge = "lsn-age",
        /// MySQL 5.6.
        PageCleaner56 = "page-cleaner-56",
        /// MySQL 5.7.
        PageCleaner57 = "page-cleaner-57",
        /// MySQL 8.0.30 and 8.4.
        PageCleaner84 = "page-cleaner-84",
        /// MariaDB 10.5 and later.
        Mariadb = "mariadb",
        /// Percona Server 5.6.
        PerconaHighCheckpoint = "percona-high-checkpoint",
        /// Feedback: checkpoint age is held below the async limit.
        Steady = "steady",
    }
}

choice! {
    /// What caps the flushing of the policies of history.
    FlushWriteLimit {
        /// What the policy itself was capped by.
        Policy = "policy",
        /// `io_capacity`; page cleaners `io_capacity_max`.
        Capped = "capped",
        /// Nothing.
        Free = "free",
        /// As `capped`, and the cap rises while the redo is nearly full.
        AutoRaised = "auto-raised",
    }
}

choice! {
    /// Whose rule `max_purge_lag` follows.
    MaxPurgeLagVersion {
        /// MySQL 5.0 to 5.5: not while a snapshot keeps purge from its work; without a cap.
        Mysql55 = "5.5",
        /// MySQL 5.6 and 5.7: at least 5 ms.
        Mysql56 = "5.6",
        /// MySQL 8.0: without the step to 5 ms.
        Mysql80 = "8.0",
        /// MySQL 8.4: only while purge is behind by more than a batch of each thread.
        Mysql84 = "8.4",
    }
}
