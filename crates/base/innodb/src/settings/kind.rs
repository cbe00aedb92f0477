//! A row of the catalogue: kind, range, default, when it may change; from the text of a setting to
//! its value and back, with the range held; the settings that take one of a few words; and why a
//! setting is refused.

use std::fmt;
use std::path::PathBuf;

use iostrata_stats::units::{Size, parse_size};

/// One setting, as help, documents and errors describe it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Its name, InnoDB's without the prefix where InnoDB has it.
    pub name: &'static str,
    /// Other names that are taken.
    pub aliases: &'static [&'static str],
    /// What it takes.
    pub kind: ValueKind,
    /// The default, in words where it depends on the machine.
    pub default: &'static str,
    /// When it may change.
    pub when: When,
    /// InnoDB's variable, if any.
    pub innodb: Option<InnoDb>,
    /// One sentence.
    pub doc: &'static str,
}

/// The variable of InnoDB that a setting is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnoDb {
    /// The full name of the variable.
    pub name: &'static str,
    /// Its default in MySQL 8.4.
    pub default: &'static str,
}

/// When a setting may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Only when the data is created: it decides how the data lies in files.
    Creation,
    /// Whenever the data is opened.
    Open,
    /// While the engine runs.
    Live,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            When::Creation => "when the data is created",
            When::Open => "when the engine opens",
            When::Live => "at any time",
        })
    }
}

/// What a setting takes. Limits are inclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueKind {
    /// Bytes: a number with K, M, G or T, or none.
    Size {
        /// Least, in bytes.
        min: u64,
        /// Most, in bytes.
        max: u64,
        /// Whether only powers of two are taken.
        is_power_of_two: bool,
    },
    /// A whole number.
    Count {
        /// Least.
        min: u64,
        /// Most.
        max: u64,
    },
    /// A share in percent, with decimals.
    Percent {
        /// Least.
        min: f64,
        /// Most.
        max: f64,
    },
    /// ON or OFF.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A directory, or nothing.
    Directory,
}

impl fmt::Display for ValueKind {
    /// Completes "it takes ...".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            ValueKind::Size { min, max, is_power_of_two: false } => {
                write!(f, "a size from {} to {}", Size(min), Size(max))
            }
            ValueKind::Size { min, max, is_power_of_two: true } => {
                write!(f, "a power of two from {} to {}", Size(min), Size(max))
            }
            ValueKind::Count { min, max } => write!(f, "a whole number from {min} to {max}"),
            ValueKind::Percent { min, max } => write!(f, "a percentage from {min} to {max}"),
            ValueKind::Switch => f.write_str("ON or OFF"),
            ValueKind::Choice([only]) => write!(f, "only {only}"),
            ValueKind::Choice(words) => write!(f, "one of {}", words.join(", ")),
            ValueKind::Directory => {
                f.write_str("a directory on one line, or nothing for the data's")
            }
        }
    }
}

// From the text of a setting to its value and back, with the range held.

/// A type that a field of the settings may have.
pub(super) trait Value: Sized {
    /// The value of a text without outer spaces, or nothing when the setting does not take it.
    fn parse(text: &str, kind: &ValueKind) -> Option<Self>;
    /// The text that parses back to the value.
    fn print(&self, kind: &ValueKind) -> String;
}

impl Value for u64 {
    fn parse(text: &str, kind: &ValueKind) -> Option<u64> {
        match *kind {
            ValueKind::Size { min, max, is_power_of_two } => parse_size(text)
                .ok()
                .filter(|bytes| (min..=max).contains(bytes))
                .filter(|bytes| !is_power_of_two || bytes.is_power_of_two()),
            ValueKind::Count { min, max } => {
                let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse().ok().filter(|count| is_plain && (min..=max).contains(count))
            }
            _ => None,
        }
    }

    fn print(&self, kind: &ValueKind) -> String {
        match kind {
            ValueKind::Size { .. } => Size(*self).to_string(),
            _ => self.to_string(),
        }
    }
}

impl Value for u32 {
    fn parse(text: &str, kind: &ValueKind) -> Option<u32> {
        u64::parse(text, kind).and_then(|value| u32::try_from(value).ok())
    }

    fn print(&self, kind: &ValueKind) -> String {
        u64::from(*self).print(kind)
    }
}

impl Value for f64 {
    fn parse(text: &str, kind: &ValueKind) -> Option<f64> {
        let ValueKind::Percent { min, max } = *kind else { return None };
        let number = text.strip_suffix('%').unwrap_or(text).trim_end();
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        number.parse().ok().filter(|share| is_plain && (min..=max).contains(share))
    }

    fn print(&self, _kind: &ValueKind) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn parse(text: &str, _kind: &ValueKind) -> Option<bool> {
        match text.to_ascii_lowercase().as_str() {
            "on" | "1" | "true" | "yes" => Some(true),
            "off" | "0" | "false" | "no" => Some(false),
            _ => None,
        }
    }

    fn print(&self, _kind: &ValueKind) -> String {
        if *self { "ON" } else { "OFF" }.to_owned()
    }
}

impl Value for Option<PathBuf> {
    fn parse(text: &str, _kind: &ValueKind) -> Option<Option<PathBuf>> {
        let is_one_line = !text.contains(|letter: char| letter.is_control());
        is_one_line.then(|| (!text.is_empty()).then(|| PathBuf::from(text)))
    }

    fn print(&self, _kind: &ValueKind) -> String {
        self.as_ref().map_or_else(String::new, |path| path.to_string_lossy().into_owned())
    }
}

// Settings that take one of a few words.

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
    /// How a damaged page is recognised.
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
        /// XtraDB: what the age of each page requires, without a cap.
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

// Why a setting is refused: the setting, the value found, and what it takes.

/// Why a setting is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// No setting has that name.
    #[error("there is no setting `{name}`{}", did_you_mean(*.near))]
    Unknown {
        /// The name as it was given.
        name: String,
        /// The setting whose name is nearest, if one is near.
        near: Option<&'static str>,
    },
    /// The value is not one that the setting takes.
    #[error("{name} is `{found}`; it takes {kind}")]
    Value {
        /// The setting.
        name: &'static str,
        /// The value as it was given.
        found: String,
        /// What it takes.
        kind: ValueKind,
    },
    /// Two settings do not go together.
    #[error("{name} is {found}, and {other} is {other_found}; {fix}")]
    Conflict {
        /// The setting.
        name: &'static str,
        /// Its value.
        found: String,
        /// The setting that it does not go with.
        other: &'static str,
        /// The value of that one.
        other_found: String,
        /// What would be taken.
        fix: String,
    },
    /// The setting cannot change while the engine runs.
    #[error("{name} cannot become `{found}` while the engine runs; it can be set {when}")]
    NotLive {
        /// The setting.
        name: &'static str,
        /// The value as it was given.
        found: String,
        /// When it may change.
        when: When,
    },
    /// The data was created with another value.
    #[error("{name} is {found}, and the data was created with {kept}; open it with {kept}")]
    Fixed {
        /// The setting.
        name: &'static str,
        /// The value that was given.
        found: String,
        /// The value that the data has.
        kept: String,
    },
}

fn did_you_mean(near: Option<&str>) -> String {
    near.map_or_else(
        || "; the list is in docs/settings.md".to_owned(),
        |name| format!("; did you mean {name}?"),
    )
}
