//! The columns of `iostat -x`, from a difference of counters.
//!
//! Source: sysstat 12, `iostat.c` and `rd_stats.c` (`compute_ext_disk_stats`). Requests per second
//! are completed requests; a request's time and size are means over completed requests; `%rrqm` is
//! merged over merged and completed; `aqu-sz` and `%util` are time in the queue and time with a
//! request in flight over elapsed time, not capped.

use super::{DeviceCounters, DeviceDelta, Iostat};

impl Iostat {
    /// The columns for one difference.
    pub fn of(delta: &DeviceDelta) -> Self {
        let c = &delta.counters;
        let per_s = |count: u64| count as f64 / delta.seconds;
        let optional_per_s = |count: Option<u64>| count.map(per_s);
        let kib_per_s = |sectors: u64| sectors as f64 / 2.0 / delta.seconds;
        Self {
            reads_per_s: per_s(c.reads),
            read_kib_per_s: kib_per_s(c.sectors_read),
            reads_merged_per_s: per_s(c.reads_merged),
            reads_merged_pct: merged_pct(c.reads_merged, c.reads),
            read_await_ms: mean(c.read_ms, c.reads),
            read_size_kib: mean(c.sectors_read, c.reads).map(|sectors| sectors / 2.0),
            writes_per_s: per_s(c.writes),
            write_kib_per_s: kib_per_s(c.sectors_written),
            writes_merged_per_s: per_s(c.writes_merged),
            writes_merged_pct: merged_pct(c.writes_merged, c.writes),
            write_await_ms: mean(c.write_ms, c.writes),
            write_size_kib: mean(c.sectors_written, c.writes).map(|sectors| sectors / 2.0),
            discards_per_s: optional_per_s(c.discards),
            discard_kib_per_s: c.sectors_discarded.map(kib_per_s),
            discards_merged_per_s: optional_per_s(c.discards_merged),
            discards_merged_pct: both(c.discards_merged, c.discards)
                .and_then(|(merged, done)| merged_pct(merged, done)),
            discard_await_ms: both(c.discard_ms, c.discards).and_then(|(ms, done)| mean(ms, done)),
            discard_size_kib: both(c.sectors_discarded, c.discards)
                .and_then(|(sectors, done)| mean(sectors, done))
                .map(|sectors| sectors / 2.0),
            flushes_per_s: optional_per_s(c.flushes),
            flush_await_ms: both(c.flush_ms, c.flushes).and_then(|(ms, done)| mean(ms, done)),
            queue_size: c.queue_ms as f64 / 1000.0 / delta.seconds,
            util_pct: c.busy_ms as f64 / 10.0 / delta.seconds,
        }
    }
}

impl DeviceDelta {
    /// Two stretches of time as one; counters that one of them lacks are absent.
    pub fn plus(&self, other: &Self) -> Self {
        let (a, b) = (&self.counters, &other.counters);
        let sum = |a: Option<u64>, b: Option<u64>| both(a, b).map(|(a, b)| a + b);
        Self {
            seconds: self.seconds + other.seconds,
            counters: DeviceCounters {
                reads: a.reads + b.reads,
                reads_merged: a.reads_merged + b.reads_merged,
                sectors_read: a.sectors_read + b.sectors_read,
                read_ms: a.read_ms + b.read_ms,
                writes: a.writes + b.writes,
                writes_merged: a.writes_merged + b.writes_merged,
                sectors_written: a.sectors_written + b.sectors_written,
                write_ms: a.write_ms + b.write_ms,
                in_flight: b.in_flight,
                busy_ms: a.busy_ms + b.busy_ms,
                queue_ms: a.queue_ms + b.queue_ms,
                discards: sum(a.discards, b.discards),
                discards_merged: sum(a.discards_merged, b.discards_merged),
                sectors_discarded: sum(a.sectors_discarded, b.sectors_discarded),
                discard_ms: sum(a.discard_ms, b.discard_ms),
                flushes: sum(a.flushes, b.flushes),
                flush_ms: sum(a.flush_ms, b.flush_ms),
            },
        }
    }
}

fn mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

fn merged_pct(merged: u64, done: u64) -> Option<f64> {
    let all = merged as f64 + done as f64;
    (all > 0.0).then(|| merged as f64 / all * 100.0)
}

fn both(a: Option<u64>, b: Option<u64>) -> Option<(u64, u64)> {
    a.zip(b)
}

#[cfg(test)]
mod tests {
    use super::*;

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
