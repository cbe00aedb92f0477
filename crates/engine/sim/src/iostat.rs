//! What `iostat -x` prints of a block device, from the counters that the kernel keeps.
//!
//! Invariant: a window is the difference of two snapshots of the same queue; every column follows
//! from it by sysstat's formulas (version 7, of 2009). A mean over no request is 0, as printed.
//! Discards and flushes are not counted here.

use iostrata_run::host::Iostat;

/// Bytes of a sector in `/proc/diskstats`, whatever the device's own.
const SECTOR_BYTES: f64 = 512.0;
const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;
const BYTES_PER_MIB: f64 = 1_048_576.0;

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
pub struct Counters {
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

impl Counters {
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
}

/// The columns of `iostat -x` of 2009.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Columns {
    /// `rrqm/s`: reads merged per second.
    pub reads_merged_per_s: f64,
    /// `wrqm/s`: writes merged per second.
    pub writes_merged_per_s: f64,
    /// `r/s`: reads completed per second.
    pub reads_per_s: f64,
    /// `w/s`: writes completed per second.
    pub writes_per_s: f64,
    /// `rMB/s`: MiB read per second.
    pub read_mib_per_s: f64,
    /// `wMB/s`: MiB written per second.
    pub write_mib_per_s: f64,
    /// `avgrq-sz`: mean size of a request, in sectors of 512 bytes.
    pub request_sectors: f64,
    /// `avgqu-sz`: mean number of requests in the queue and in the device.
    pub queue_size: f64,
    /// `await`: mean time of a request from coming to completion, in ms.
    pub await_ms: f64,
    /// `r_await`: the same of reads alone.
    pub read_await_ms: f64,
    /// `w_await`: the same of writes alone.
    pub write_await_ms: f64,
    /// `svctm`: busy time per request, in ms. Not a service time on a device that overlaps them.
    pub service_ms: f64,
    /// `%util`: share of time with a request in the queue or in the device, in percent.
    pub util_pct: f64,
}

fn ratio(sum: f64, count: f64) -> f64 {
    if count > 0.0 { sum / count } else { 0.0 }
}

impl Columns {
    /// The columns of the window between two snapshots; all 0 for a window without time.
    ///
    /// # Panics
    /// When `until` lies before `since`.
    pub fn between(since: &Counters, until: &Counters) -> Self {
        assert!(since.at_ns <= until.at_ns, "a window ends before it starts");
        let span_ns = (until.at_ns - since.at_ns) as f64;
        let span_s = span_ns / NS_PER_S;
        let of = |field: fn(&DirectionCounters) -> u64| {
            let read = field(&until.read) - field(&since.read);
            let write = field(&until.write) - field(&since.write);
            (read as f64, write as f64)
        };
        let (reads, writes) = of(|counters| counters.ios);
        let (reads_merged, writes_merged) = of(|counters| counters.merges);
        let (read_bytes, written_bytes) = of(|counters| counters.bytes);
        let (read_wait_ns, write_wait_ns) = of(|counters| counters.wait_ns);
        let ios = reads + writes;
        let busy_ns = (until.busy_ns - since.busy_ns) as f64;
        Self {
            reads_merged_per_s: ratio(reads_merged, span_s),
            writes_merged_per_s: ratio(writes_merged, span_s),
            reads_per_s: ratio(reads, span_s),
            writes_per_s: ratio(writes, span_s),
            read_mib_per_s: ratio(read_bytes / BYTES_PER_MIB, span_s),
            write_mib_per_s: ratio(written_bytes / BYTES_PER_MIB, span_s),
            request_sectors: ratio((read_bytes + written_bytes) / SECTOR_BYTES, ios),
            queue_size: ratio((until.depth_ns - since.depth_ns) as f64, span_ns),
            await_ms: ratio((read_wait_ns + write_wait_ns) / NS_PER_MS, ios),
            read_await_ms: ratio(read_wait_ns / NS_PER_MS, reads),
            write_await_ms: ratio(write_wait_ns / NS_PER_MS, writes),
            service_ms: ratio(busy_ns / NS_PER_MS, ios),
            util_pct: 100.0 * ratio(busy_ns, span_ns),
        }
    }

    /// The mean of several windows, column by column; all 0 without any.
    pub fn mean(windows: &[Self]) -> Self {
        let mean = |column: fn(&Self) -> f64| {
            ratio(windows.iter().map(column).sum(), windows.len() as f64)
        };
        Self {
            reads_merged_per_s: mean(|one| one.reads_merged_per_s),
            writes_merged_per_s: mean(|one| one.writes_merged_per_s),
            reads_per_s: mean(|one| one.reads_per_s),
            writes_per_s: mean(|one| one.writes_per_s),
            read_mib_per_s: mean(|one| one.read_mib_per_s),
            write_mib_per_s: mean(|one| one.write_mib_per_s),
            request_sectors: mean(|one| one.request_sectors),
            queue_size: mean(|one| one.queue_size),
            await_ms: mean(|one| one.await_ms),
            read_await_ms: mean(|one| one.read_await_ms),
            write_await_ms: mean(|one| one.write_await_ms),
            service_ms: mean(|one| one.service_ms),
            util_pct: mean(|one| one.util_pct),
        }
    }

    /// The same as the run directory keeps it, under the names of today's iostat; `await`, `svctm`
    /// and `avgrq-sz` over both directions have no place there.
    pub fn of_today(&self) -> Iostat {
        let some = |is_some: bool, value: f64| is_some.then_some(value);
        let merged_pct = |merged: f64, done: f64| 100.0 * ratio(merged, merged + done);
        let size_kib = |mib_per_s: f64, per_s: f64| 1024.0 * ratio(mib_per_s, per_s);
        let (has_reads, has_writes) = (self.reads_per_s > 0.0, self.writes_per_s > 0.0);
        Iostat {
            reads_per_s: self.reads_per_s,
            read_kib_per_s: self.read_mib_per_s * 1024.0,
            reads_merged_per_s: self.reads_merged_per_s,
            reads_merged_pct: some(
                has_reads,
                merged_pct(self.reads_merged_per_s, self.reads_per_s),
            ),
            read_await_ms: some(has_reads, self.read_await_ms),
            read_size_kib: some(has_reads, size_kib(self.read_mib_per_s, self.reads_per_s)),
            writes_per_s: self.writes_per_s,
            write_kib_per_s: self.write_mib_per_s * 1024.0,
            writes_merged_per_s: self.writes_merged_per_s,
            writes_merged_pct: some(
                has_writes,
                merged_pct(self.writes_merged_per_s, self.writes_per_s),
            ),
            write_await_ms: some(has_writes, self.write_await_ms),
            write_size_kib: some(has_writes, size_kib(self.write_mib_per_s, self.writes_per_s)),
            queue_size: self.queue_size,
            util_pct: self.util_pct,
            ..Iostat::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds of the post's kind: 5,756 writes of 8 sectors, nine merged, busy all the time.
    fn window() -> (Counters, Counters) {
        let since = Counters { at_ns: 5_000_000_000, ..Counters::default() };
        let write = DirectionCounters {
            ios: 5_756,
            merges: 9,
            bytes: 5_756 * 4096,
            wait_ns: 1_421_732_000_000,
        };
        let read =
            DirectionCounters { ios: 44, merges: 0, bytes: 44 * 16_384, wait_ns: 4_400_000_000 };
        let until = Counters {
            at_ns: 15_000_000_000,
            read,
            write,
            busy_ns: 10_000_000_000,
            depth_ns: 1_426_132_000_000,
        };
        (since, until)
    }

    #[test]
    fn columns_are_those_computed_by_hand() {
        let (since, until) = window();
        let columns = Columns::between(&since, &until);
        let near = |found: f64, by_hand: f64| {
            assert!((found - by_hand).abs() < 1e-6 * by_hand.abs().max(1.0), "{found} {by_hand}");
        };
        near(columns.writes_per_s, 575.6);
        near(columns.reads_per_s, 4.4);
        near(columns.writes_merged_per_s, 0.9);
        near(columns.reads_merged_per_s, 0.0);
        near(columns.write_mib_per_s, 2.248_437_5);
        near(columns.read_mib_per_s, 0.068_75);
        // (5756 x 8 + 44 x 32) sectors over 5,800 requests.
        near(columns.request_sectors, 47_456.0 / 5_800.0);
        near(columns.queue_size, 142.613_2);
        near(columns.await_ms, 1_426_132.0 / 5_800.0);
        near(columns.write_await_ms, 247.0);
        near(columns.read_await_ms, 100.0);
        near(columns.service_ms, 10_000.0 / 5_800.0);
        near(columns.util_pct, 100.0);
    }

    #[test]
    fn nothing_divides_by_nothing() {
        let idle = Counters { at_ns: 10, ..Counters::default() };
        assert_eq!(Columns::between(&idle, &idle), Columns::default());
        assert_eq!(Columns::mean(&[]), Columns::default());
        let today = Columns::default().of_today();
        assert_eq!((today.write_await_ms, today.read_size_kib), (None, None));
    }

    #[test]
    fn todays_names_hold_the_same_figures() {
        let (since, until) = window();
        let today = Columns::between(&since, &until).of_today();
        assert_eq!(today.write_size_kib, Some(4.0));
        assert_eq!(today.read_size_kib, Some(16.0));
        assert_eq!(today.write_await_ms, Some(247.0));
        assert!((today.writes_merged_pct.unwrap() - 100.0 * 9.0 / 5_765.0).abs() < 1e-9);
    }

    #[test]
    fn the_mean_is_over_windows() {
        let (since, until) = window();
        let one = Columns::between(&since, &until);
        let mean = Columns::mean(&[one, Columns::default()]);
        assert!((mean.writes_per_s - 287.8).abs() < 1e-9);
        assert!((mean.service_ms - one.service_ms / 2.0).abs() < 1e-9);
    }
}
