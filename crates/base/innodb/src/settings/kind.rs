//! What a row of the catalogue says: kind, range, default, when it may change.

use std::fmt;

use iostrata_stats::units::Size;

/// One setting, as help, documents and errors describe it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Its name, InnoDB's without the prefix where InnoDB has it.
    pub name: &'static str,
    /// Other names that are taken.
    pub aliases: &'static [&'static str],
    /// What it takes.
    pub kind: ValueKind,
    /// What it is when nobody says anything, in words where it depends on the machine.
    pub default: &'static str,
    /// When it may change.
    pub when: When,
    /// InnoDB's variable, if there is one.
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
