//! Which requests, in one word.

use crate::Mix;

/// Which requests, in fio's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rw {
    /// Reads in order.
    Read,
    /// Writes in order.
    Write,
    /// Both, in order.
    Readwrite,
    /// Reads anywhere.
    Randread,
    /// Writes anywhere.
    Randwrite,
    /// Both, anywhere.
    Randrw,
}

impl Rw {
    /// Whether requests go anywhere instead of in order.
    pub fn is_random(self) -> bool {
        matches!(self, Rw::Randread | Rw::Randwrite | Rw::Randrw)
    }

    /// Whether reads and writes are mixed.
    pub fn is_mixed(self) -> bool {
        matches!(self, Rw::Readwrite | Rw::Randrw)
    }

    /// The mix, given the percentage of reads where there are both.
    pub fn mix(self, read_pct: u8) -> Mix {
        match self {
            Rw::Read | Rw::Randread => Mix::Read,
            Rw::Write | Rw::Randwrite => Mix::Write,
            Rw::Readwrite | Rw::Randrw => Mix::Both { read_pct },
        }
    }

    /// In a reader's words.
    pub fn words(self) -> &'static str {
        match self {
            Rw::Read => "sequential reads",
            Rw::Write => "sequential writes",
            Rw::Readwrite => "sequential reads and writes",
            Rw::Randread => "random reads",
            Rw::Randwrite => "random writes",
            Rw::Randrw => "random reads and writes",
        }
    }
}
