//! The columns of `iostat -x`, from a difference of counters.
//!
//! Source: sysstat 12, `iostat.c` and `rd_stats.c` (`compute_ext_disk_stats`). Requests per second
//! are completed requests; a request's time and size are means over completed requests; `%rrqm` is
//! merged over merged and completed; `aqu-sz` and `%util` are time in the queue and time with a
//! request in flight over elapsed time, not capped.

use super::{DeviceCounters, DeviceDelta, Iostat};

/// What became of one kind of requests in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceRequests {
    /// Requests completed.
    pub done: f64,
    /// Requests merged into one that waited.
    pub merged: f64,
    /// KiB of completed requests.
    pub kib: f64,
    /// Time that they took together, in ms.
    pub wait_ms: f64,
}

/// What a device, real or simulated, did in a window: all that the columns follow from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceWindow {
    /// How long it is.
    pub seconds: f64,
    /// Reads.
    pub reads: DeviceRequests,
    /// Writes.
    pub writes: DeviceRequests,
    /// Time of all requests together, weighted by how many were in flight, in ms.
    pub queue_ms: f64,
    /// Time with at least one request in flight, in ms.
    pub busy_ms: f64,
}

impl DeviceRequests {
    fn of(done: u64, merged: u64, sectors: u64, wait_ms: u64) -> Self {
        let kib = sectors as f64 / 2.0;
        Self { done: done as f64, merged: merged as f64, kib, wait_ms: wait_ms as f64 }
    }

    fn merged_pct(&self) -> Option<f64> {
        mean(self.merged * 100.0, self.merged + self.done)
    }

    fn await_ms(&self) -> Option<f64> {
        mean(self.wait_ms, self.done)
    }

    fn size_kib(&self) -> Option<f64> {
        mean(self.kib, self.done)
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            done: self.done + other.done,
            merged: self.merged + other.merged,
            kib: self.kib + other.kib,
            wait_ms: self.wait_ms + other.wait_ms,
        }
    }
}

impl DeviceWindow {
    /// Two windows as one.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            seconds: self.seconds + other.seconds,
            reads: self.reads.plus(&other.reads),
            writes: self.writes.plus(&other.writes),
            queue_ms: self.queue_ms + other.queue_ms,
            busy_ms: self.busy_ms + other.busy_ms,
        }
    }

    /// The columns, without those of discards and flushes; rates are 0 in a window without time.
    pub fn iostat(&self) -> Iostat {
        let Self { seconds, reads, writes, .. } = self;
        let per_s = |count: f64| mean(count, *seconds).unwrap_or(0.0);
        Iostat {
            reads_per_s: per_s(reads.done),
            read_kib_per_s: per_s(reads.kib),
            reads_merged_per_s: per_s(reads.merged),
            reads_merged_pct: reads.merged_pct(),
            read_await_ms: reads.await_ms(),
            read_size_kib: reads.size_kib(),
            writes_per_s: per_s(writes.done),
            write_kib_per_s: per_s(writes.kib),
            writes_merged_per_s: per_s(writes.merged),
            writes_merged_pct: writes.merged_pct(),
            write_await_ms: writes.await_ms(),
            write_size_kib: writes.size_kib(),
            queue_size: per_s(self.queue_ms) / 1000.0,
            util_pct: per_s(self.busy_ms) / 10.0,
            ..Iostat::default()
        }
    }
}

impl Iostat {
    /// The columns for one difference.
    pub fn of(delta: &DeviceDelta) -> Self {
        let c = &delta.counters;
        let window = DeviceWindow {
            seconds: delta.seconds,
            reads: DeviceRequests::of(c.reads, c.reads_merged, c.sectors_read, c.read_ms),
            writes: DeviceRequests::of(c.writes, c.writes_merged, c.sectors_written, c.write_ms),
            queue_ms: c.queue_ms as f64,
            busy_ms: c.busy_ms as f64,
        };
        // Each column by itself, as each counter may be missing.
        let discards = DeviceRequests::of(
            c.discards.unwrap_or(0),
            c.discards_merged.unwrap_or(0),
            c.sectors_discarded.unwrap_or(0),
            c.discard_ms.unwrap_or(0),
        );
        let per_s = |count: Option<u64>| count.map(|count| count as f64 / delta.seconds);
        Self {
            discards_per_s: per_s(c.discards),
            discard_kib_per_s: per_s(c.sectors_discarded).map(|sectors| sectors / 2.0),
            discards_merged_per_s: per_s(c.discards_merged),
            discards_merged_pct: both(c.discards_merged, c.discards)
                .and_then(|_| discards.merged_pct()),
            discard_await_ms: both(c.discard_ms, c.discards).and_then(|_| discards.await_ms()),
            discard_size_kib: both(c.sectors_discarded, c.discards)
                .and_then(|_| discards.size_kib()),
            flushes_per_s: per_s(c.flushes),
            flush_await_ms: both(c.flush_ms, c.flushes)
                .and_then(|(ms, done)| mean(ms as f64, done as f64)),
            ..window.iostat()
        }
    }

    fn per_request(&self, sum_per_s: f64) -> Option<f64> {
        mean(sum_per_s, self.reads_per_s + self.writes_per_s)
    }

    /// `avgrq-sz` over reads and writes, in KiB (iostat has it in sectors); absent without any.
    pub fn request_kib(&self) -> Option<f64> {
        self.per_request(self.read_kib_per_s + self.write_kib_per_s)
    }

    /// `await` over reads and writes: mean time of a request, in ms; absent without any.
    pub fn await_ms(&self) -> Option<f64> {
        let all = |await_ms: Option<f64>, per_s: f64| await_ms.unwrap_or(0.0) * per_s;
        let reads = all(self.read_await_ms, self.reads_per_s);
        self.per_request(reads + all(self.write_await_ms, self.writes_per_s))
    }

    /// `svctm`: busy time per request, in ms; absent without any. No service time on a device that
    /// overlaps requests.
    pub fn service_ms(&self) -> Option<f64> {
        self.per_request(self.util_pct * 10.0)
    }
}

impl DeviceCounters {
    /// Combines each column of an earlier and a later reading; `None` when a count has no result. A
    /// column that one of them lacks is absent; `in_flight` is the later one.
    pub fn zip(
        &self,
        later: &Self,
        count: impl Fn(u64, u64) -> Option<u64>,
        ms: impl Fn(u64, u64) -> u64,
    ) -> Option<Self> {
        let known = |a: Option<u64>, b: Option<u64>| match a.zip(b) {
            Some((a, b)) => count(a, b).map(Some),
            None => Some(None),
        };
        let known_ms = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| ms(a, b));
        Some(Self {
            reads: count(self.reads, later.reads)?,
            reads_merged: count(self.reads_merged, later.reads_merged)?,
            sectors_read: count(self.sectors_read, later.sectors_read)?,
            read_ms: ms(self.read_ms, later.read_ms),
            writes: count(self.writes, later.writes)?,
            writes_merged: count(self.writes_merged, later.writes_merged)?,
            sectors_written: count(self.sectors_written, later.sectors_written)?,
            write_ms: ms(self.write_ms, later.write_ms),
            in_flight: later.in_flight,
            busy_ms: ms(self.busy_ms, later.busy_ms),
            queue_ms: ms(self.queue_ms, later.queue_ms),
            discards: known(self.discards, later.discards)?,
            discards_merged: known(self.discards_merged, later.discards_merged)?,
            sectors_discarded: known(self.sectors_discarded, later.sectors_discarded)?,
            discard_ms: known_ms(self.discard_ms, later.discard_ms),
            flushes: known(self.flushes, later.flushes)?,
            flush_ms: known_ms(self.flush_ms, later.flush_ms),
        })
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, later: &Self) -> Self {
        let sum = self.zip(later, |a, b| Some(a.saturating_add(b)), u64::saturating_add);
        sum.unwrap_or_default()
    }
}

impl DeviceDelta {
    /// Two stretches of time as one; counters that one of them lacks are absent.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let counters = self.counters.plus(&other.counters);
        Self { seconds: self.seconds + other.seconds, counters }
    }
}

fn mean(sum: f64, count: f64) -> Option<f64> {
    (count > 0.0).then(|| sum / count)
}

fn both(a: Option<u64>, b: Option<u64>) -> Option<(u64, u64)> {
    a.zip(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, by_hand: f64) {
        let found = found.unwrap();
        assert!((found - by_hand).abs() < 1e-6 * by_hand.abs().max(1.0), "{found} {by_hand}");
    }

    /// Ten seconds of the kind of a post of 2009: 5,756 writes of 8 sectors, nine merged, busy all
    /// the time.
    fn window() -> DeviceWindow {
        DeviceWindow {
            seconds: 10.0,
            reads: DeviceRequests { done: 44.0, merged: 0.0, kib: 44.0 * 16.0, wait_ms: 4_400.0 },
            writes: DeviceRequests {
                done: 5_756.0,
                merged: 9.0,
                kib: 5_756.0 * 4.0,
                wait_ms: 1_421_732.0,
            },
            queue_ms: 1_426_132.0,
            busy_ms: 10_000.0,
        }
    }

    #[test]
    fn columns_are_those_computed_by_hand() {
        let columns = window().iostat();
        near(Some(columns.writes_per_s), 575.6);
        near(Some(columns.reads_per_s), 4.4);
        near(Some(columns.writes_merged_per_s), 0.9);
        near(Some(columns.reads_merged_per_s), 0.0);
        near(columns.writes_merged_pct, 100.0 * 9.0 / 5_765.0);
        near(Some(columns.write_kib_per_s / 1024.0), 2.248_437_5);
        near(Some(columns.read_kib_per_s / 1024.0), 0.068_75);
        near(columns.write_size_kib, 4.0);
        near(columns.read_size_kib, 16.0);
        // (5756 x 8 + 44 x 32) sectors over 5,800 requests.
        near(columns.request_kib(), 47_456.0 / 5_800.0 / 2.0);
        near(Some(columns.queue_size), 142.613_2);
        near(columns.await_ms(), 1_426_132.0 / 5_800.0);
        near(columns.write_await_ms, 247.0);
        near(columns.read_await_ms, 100.0);
        near(columns.service_ms(), 10_000.0 / 5_800.0);
        near(Some(columns.util_pct), 100.0);
    }

    #[test]
    fn nothing_divides_by_nothing() {
        let idle = DeviceWindow::default().iostat();
        assert_eq!(idle, Iostat::default());
        assert_eq!((idle.await_ms(), idle.service_ms(), idle.request_kib()), (None, None, None));
    }

    #[test]
    fn windows_add_up() {
        let idle = DeviceWindow { seconds: 10.0, ..DeviceWindow::default() };
        let columns = window().plus(&idle).iostat();
        near(Some(columns.writes_per_s), 287.8);
        near(columns.service_ms(), 10_000.0 / 5_800.0);
    }

    #[test]
    fn two_stretches_weigh_by_what_they_did() {
        let stretch = |seconds, reads, read_ms, flushes| DeviceDelta {
            seconds,
            counters: DeviceCounters { reads, read_ms, flushes, ..DeviceCounters::default() },
        };
        let sum = stretch(1.0, 100, 100, Some(4)).plus(&stretch(3.0, 300, 1500, None));
        let columns = Iostat::of(&sum);
        assert_eq!((columns.reads_per_s, columns.read_await_ms), (100.0, Some(4.0)));
        assert_eq!(columns.flushes_per_s, None, "one stretch did not count them");
    }
}
