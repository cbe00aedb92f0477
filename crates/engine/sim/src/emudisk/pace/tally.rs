//! Counts of what came.
//!
//! Invariant: exact, and so cheap that they are always on.

use crate::drive::Command;

/// What came so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub depth_max: u32,
    in_order: u64,
    next_byte: u64,
    depth: u32,
    changed_ns: u64,
    busy_ns: u64,
    /// Depth times ns.
    area: u128,
}

impl Traffic {
    /// Depth averaged over the time in which it was not 0.
    pub(crate) fn depth_mean(&self) -> f64 {
        if self.busy_ns == 0 { 0.0 } else { self.area as f64 / self.busy_ns as f64 }
    }

    /// Share of reads and writes that began where the one before ended.
    pub(crate) fn in_order_share(&self) -> f64 {
        let all = self.reads + self.writes;
        if all == 0 { 0.0 } else { self.in_order as f64 / all as f64 }
    }

    pub(super) fn came(&mut self, now_ns: u64, command: Command, at_bytes: u64, bytes: u32) {
        let bytes = u64::from(bytes);
        match command {
            Command::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Command::Write | Command::WriteThrough => {
                self.writes += 1;
                self.write_bytes += bytes;
            }
            Command::Flush => self.flushes += 1,
        }
        if command != Command::Flush {
            self.in_order += u64::from(at_bytes == self.next_byte && at_bytes > 0);
            self.next_byte = at_bytes + bytes;
        }
        self.passed(now_ns);
        self.depth += 1;
        self.depth_max = self.depth_max.max(self.depth);
    }

    pub(super) fn left(&mut self, now_ns: u64, requests: usize) {
        if requests > 0 {
            self.passed(now_ns);
            self.depth -= requests as u32;
        }
    }

    fn passed(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.changed_ns);
        if self.depth > 0 {
            self.busy_ns += passed_ns;
            self.area += u128::from(self.depth) * u128::from(passed_ns);
        }
        self.changed_ns = self.changed_ns.max(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_weighted_with_time() {
        let mut tally = Traffic::default();
        tally.came(100, Command::Read, 0, 4096);
        tally.came(200, Command::Write, 4096, 512);
        tally.left(500, 1);
        tally.left(600, 1);
        // Idle from 600 to 1000 does not count.
        tally.came(1000, Command::Flush, 0, 0);
        tally.left(1500, 1);
        assert_eq!(tally.depth_mean(), (100.0 + 600.0 + 100.0 + 500.0) / 1000.0);
        assert_eq!((tally.depth_max, tally.in_order_share()), (2, 0.5));
        assert_eq!((tally.reads, tally.writes, tally.flushes), (1, 1, 1));
        assert_eq!((tally.read_bytes, tally.write_bytes), (4096, 512));
    }
}
