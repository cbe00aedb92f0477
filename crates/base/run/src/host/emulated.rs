//! What reached an emulated disk, and what its queue was really set to.
//!
//! Invariant: plain data of one window or of several added up; what was not counted is absent.

use serde::{Deserialize, Serialize};

/// An attribute of a device's queue as it was requested, and as the kernel took it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueReadback {
    /// Its name in `/sys/block/*/queue`: `scheduler`, `nr_requests`.
    pub attribute: String,
    /// The requested value.
    pub asked: String,
    /// What was read back.
    pub took: String,
}

/// Requests that reached an emulated disk: what scheduler and queue made of the load's requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EmulatedDisk {
    /// The disk as it was requested: `hdd-15k,queue=1`.
    pub model: String,
    /// Reads that came.
    pub reads: u64,
    /// Writes that came.
    pub writes: u64,
    /// Flushes that came.
    pub flushes: u64,
    /// Bytes of the reads.
    pub read_bytes: u64,
    /// Bytes of the writes.
    pub write_bytes: u64,
    /// Reads and writes that began where the one before them ended.
    pub in_order: u64,
    /// Replies that were sent more than 100 us after the moment that the model gave.
    pub late: u64,
    /// Most requests in flight at a time since the disk was started.
    pub depth_max: u32,
}

impl EmulatedDisk {
    /// Reads, writes and flushes.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes + self.flushes
    }

    /// Share of reads and writes that began where the one before them ended, in percent; absent
    /// where none came.
    pub fn in_order_pct(&self) -> Option<f64> {
        share_pct(self.in_order, self.reads + self.writes)
    }

    /// Share of replies that the model's moment was missed by, in percent; absent where none were
    /// sent.
    pub fn late_pct(&self) -> Option<f64> {
        share_pct(self.late, self.requests())
    }

    /// Two stretches of time, or two equal disks, as one.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            model: self.model.clone(),
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            flushes: self.flushes + other.flushes,
            read_bytes: self.read_bytes + other.read_bytes,
            write_bytes: self.write_bytes + other.write_bytes,
            in_order: self.in_order + other.in_order,
            late: self.late + other.late,
            depth_max: self.depth_max.max(other.depth_max),
        }
    }
}

fn share_pct(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| 100.0 * part as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_add_up_and_shares_are_of_all() {
        let one = EmulatedDisk {
            model: "hdd-15k".to_owned(),
            reads: 10,
            writes: 30,
            flushes: 10,
            read_bytes: 40_960,
            write_bytes: 122_880,
            in_order: 4,
            late: 5,
            depth_max: 7,
        };
        let two = one.plus(&EmulatedDisk { depth_max: 31, reads: 50, ..one.clone() });
        assert_eq!((two.requests(), two.depth_max), (140, 31));
        assert_eq!((one.in_order_pct(), one.late_pct()), (Some(10.0), Some(10.0)));
        let none = EmulatedDisk { reads: 0, writes: 0, flushes: 0, ..one };
        assert_eq!((none.in_order_pct(), none.late_pct()), (None, None));
    }
}
