//! The counters that the kernel keeps of a block device, of a simulated one.
//!
//! Invariant: a window is the difference of two snapshots of the same queue; the columns of iostat
//! follow from it as they do from a real device's ([`DeviceWindow`]). Discards and flushes are not
//! counted here.

use iostrata_run::host::{DeviceRequests, DeviceWindow};

const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;

/// The counters of one direction, from the start of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Requests completed.
    pub ios: u64,
    /// Requests that were added to one that waited already.
    pub merges: u64,
    /// Bytes completed.
    pub bytes: u64,
    /// Sum over completed requests of the time from coming to completion, in ns.
    pub wait_ns: u64,
}

/// The counters of a queue at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// The moment, in ns.
    pub at_ns: u64,
    /// Reads.
    pub read: DirectionCounters,
    /// Writes.
    pub write: DirectionCounters,
    /// Time with at least one request in the queue or in the device, in ns.
    pub busy_ns: u64,
    /// Integral over time of requests in the queue and in the device, in request x ns.
    pub depth_ns: u128,
}

impl DirectionCounters {
    fn with(&self, other: &Self, each: &impl Fn(u64, u64) -> u64) -> Self {
        Self {
            ios: each(self.ios, other.ios),
            merges: each(self.merges, other.merges),
            bytes: each(self.bytes, other.bytes),
            wait_ns: each(self.wait_ns, other.wait_ns),
        }
    }
}

impl QueueCounters {
    /// Each counter made with the same of `other`.
    pub(crate) fn with(
        &self,
        other: &Self,
        each: &impl Fn(u64, u64) -> u64,
        wide: impl Fn(u128, u128) -> u128,
    ) -> Self {
        Self {
            at_ns: each(self.at_ns, other.at_ns),
            read: self.read.with(&other.read, each),
            write: self.write.with(&other.write, each),
            busy_ns: each(self.busy_ns, other.busy_ns),
            depth_ns: wide(self.depth_ns, other.depth_ns),
        }
    }

    /// What was counted since an earlier snapshot.
    ///
    /// # Panics
    /// When that is a later one.
    pub fn since(&self, earlier: &Self) -> DeviceWindow {
        assert!(earlier.at_ns <= self.at_ns, "a window ends before it starts");
        let past = self.with(earlier, &|a, b| a - b, |a, b| a - b);
        let requests = |one: &DirectionCounters| DeviceRequests {
            done: one.ios as f64,
            merged: one.merges as f64,
            kib: one.bytes as f64 / 1024.0,
            wait_ms: one.wait_ns as f64 / NS_PER_MS,
        };
        DeviceWindow {
            seconds: past.at_ns as f64 / NS_PER_S,
            reads: requests(&past.read),
            writes: requests(&past.write),
            queue_ms: past.depth_ns as f64 / NS_PER_MS,
            busy_ms: past.busy_ns as f64 / NS_PER_MS,
        }
    }
}
