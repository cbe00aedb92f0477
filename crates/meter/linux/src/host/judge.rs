//! Verdicts from evidence: short processors, limits, memory that answers, and I/O of the device
//! that the caller did not issue. Each threshold stands here, with its reason.
//!
//! Normal are, beyond the caller's own bytes:
//! - 5 % of them (metadata, time stamps), or as many again without direct I/O (read-ahead, pages
//!   made dirty earlier);
//! - what a file system writes to its journal or tree for each flush ([`FlushCost`]);
//! - a floor of 1 MiB/s and 50 requests/s over at least 4 s: logs and timers of an idle machine.
//!
//! Whatever goes beyond is foreign. Requests are judged besides bytes only for direct I/O of at
//! most 64 KiB, because large requests are split and cached ones are merged on their way.

use iostrata_run::host::{CpuShares, DeviceDelta, ForeignIo, OwnIo, PathFacts, ThrottleEvidence};
use iostrata_stats::{Verdict, Verdicts};

/// More stolen time than this shows in latencies, in percent.
const STEAL_PCT_MAX: f64 = 2.0;
/// With less than this left idle, the processors set the pace, in percent.
const IDLE_PCT_MIN: f64 = 5.0;
/// A limit used this far held requests back, in percent; token buckets leave some of it unused.
const LIMIT_USED_PCT_MIN: f64 = 90.0;
/// A quota that ran out in more than this share of its periods set the pace, in percent.
const QUOTA_PERIODS_PCT_MAX: f64 = 5.0;
/// Device bytes under this share of the issued bytes mean that memory answered the rest.
const DEVICE_SHARE_MIN: f64 = 0.9;
/// Below this many bytes issued, nothing is concluded from what the device did.
const ISSUED_BYTES_MIN: u64 = 1 << 20;

/// Whether the processors were short.
pub(crate) fn cpu_verdicts(cpu: Option<&CpuShares>, verdicts: &mut Verdicts) {
    let Some(cpu) = cpu else { return };
    if cpu.steal_pct > STEAL_PCT_MAX {
        verdicts.add(Verdict::Steal);
    }
    if cpu.idle_pct + cpu.iowait_pct < IDLE_PCT_MIN {
        verdicts.add(Verdict::CpuLimited);
    }
}

/// Whether control groups held something back.
pub(crate) fn throttle_verdicts(throttle: Option<&ThrottleEvidence>, verdicts: &mut Verdicts) {
    let Some(throttle) = throttle else { return };
    if throttle.io_limit_used_pct.is_some_and(|used| used >= LIMIT_USED_PCT_MIN) {
        verdicts.add(Verdict::Throttled);
    }
    if let (Some(periods), Some(throttled)) = (throttle.cpu_periods, throttle.cpu_periods_throttled)
        && periods > 0
        && throttled as f64 / periods as f64 * 100.0 > QUOTA_PERIODS_PCT_MAX
    {
        verdicts.add(Verdict::CpuLimited);
    }
}

/// Whether memory answered what the device should have.
pub(crate) fn cache_verdicts(own: &OwnIo, device: &DeviceDelta, verdicts: &mut Verdicts) {
    let short = |issued: u64, done: u64| {
        issued >= ISSUED_BYTES_MIN && (done as f64) < issued as f64 * DEVICE_SHARE_MIN
    };
    if short(own.read_bytes, device.read_bytes())
        || short(own.written_bytes, device.written_bytes())
    {
        verdicts.add(Verdict::Cached);
        if own.direct {
            verdicts.add(Verdict::DirectIgnored);
        }
    }
}

/// Share of the own traffic that passes as normal.
const OWN_SHARE: f64 = 0.05;
/// The same without direct I/O.
const OWN_SHARE_BUFFERED: f64 = 1.0;
/// Traffic of an idle machine, in bytes per second.
pub(crate) const FLOOR_BYTES_PER_S: f64 = (1 << 20) as f64;
/// Traffic of an idle machine, in requests per second.
pub(crate) const FLOOR_REQUESTS_PER_S: f64 = 50.0;
/// The floor holds at least this long, in seconds: idle traffic comes in bursts.
const FLOOR_SECONDS_MIN: f64 = 4.0;
/// Requests of more than this may be split below, in bytes.
const UNSPLIT_BYTES_MAX: f64 = (64 << 10) as f64;

/// What a file system may write for one flush beyond the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlushCost {
    /// Bytes of journal, log or tree.
    pub bytes: u64,
    /// Requests that write them.
    pub requests: u64,
    /// How often the data themselves are written, at most.
    pub data_copies: f64,
}

impl Default for FlushCost {
    /// A journal that logs metadata blocks (ext4) or changes (xfs). Appends of 4 KiB with fsync
    /// were measured to cost 19 KiB in 2 requests on ext4 and 1 KiB in 1 request on xfs.
    fn default() -> Self {
        Self { bytes: 32 << 10, requests: 8, data_copies: 1.0 }
    }
}

impl FlushCost {
    /// The cost on the file system of a path.
    pub(crate) fn of(facts: &PathFacts) -> Self {
        let top_devices = facts.block_stack.iter().filter(|layer| layer.depth == 0).count();
        let journals_data = facts.mount_options.iter().any(|option| option == "data=journal");
        let own = match facts.file_system.as_deref() {
            // Trees that are copied on write: a flush rewrites a path in each of several trees,
            // often twice. The same appends were measured to cost 138 KiB in 10 requests on btrfs.
            Some("btrfs" | "bcachefs" | "zfs" | "f2fs" | "nilfs2") => {
                Self { bytes: 256 << 10, requests: 32, ..Self::default() }
            }
            _ => Self::default(),
        };
        let copies = top_devices.max(1) as f64 * if journals_data { 2.0 } else { 1.0 };
        Self { data_copies: copies, ..own }
    }
}

/// Sets what a device did against what the caller issued.
pub fn foreign_io(own: &OwnIo, device: &DeviceDelta, cost: &FlushCost) -> ForeignIo {
    let seconds = device.seconds;
    let floor_seconds = seconds.max(FLOOR_SECONDS_MIN);
    let share = if own.direct { OWN_SHARE } else { OWN_SHARE_BUFFERED };
    let floor_bytes = FLOOR_BYTES_PER_S * floor_seconds;
    let floor_requests = FLOOR_REQUESTS_PER_S * floor_seconds;
    let copied = cost.data_copies - 1.0;
    let flushes = own.flushes as f64;

    let excess = |device: u64, own: u64| (device as f64 - own as f64).max(0.0);
    let read_bytes = excess(device.read_bytes(), own.read_bytes);
    let written_bytes = excess(device.written_bytes(), own.written_bytes);
    let reads = excess(device.counters.reads, own.reads);
    let writes = excess(device.counters.writes, own.writes);

    let read_allowed = share * own.read_bytes as f64 + floor_bytes;
    let write_allowed = (share + copied) * own.written_bytes as f64
        + flushes * cost.bytes as f64 * cost.data_copies
        + floor_bytes;
    let reads_allowed = share * own.reads as f64 + floor_requests;
    let writes_allowed = (share + copied) * own.writes as f64
        + flushes * cost.requests as f64 * cost.data_copies
        + floor_requests;
    let unsplit = |bytes: u64, requests: u64| bytes as f64 <= requests as f64 * UNSPLIT_BYTES_MAX;
    let judge_reads = own.direct && unsplit(own.read_bytes, own.reads);
    let judge_writes = own.direct && unsplit(own.written_bytes, own.writes);
    ForeignIo {
        raised: read_bytes > read_allowed
            || written_bytes > write_allowed
            || (judge_reads && reads > reads_allowed)
            || (judge_writes && writes > writes_allowed),
        read_bytes_per_s: read_bytes / seconds,
        write_bytes_per_s: written_bytes / seconds,
        reads_per_s: reads / seconds,
        writes_per_s: writes / seconds,
        read_allowance_bytes_per_s: read_allowed / seconds,
        write_allowance_bytes_per_s: write_allowed / seconds,
        processes: Vec::new(),
    }
}

/// What arrives at the bottom of a stack that writes each byte `copies` times.
pub(crate) fn own_at_bottom(own: &OwnIo, copies: f64) -> OwnIo {
    let times = |count: u64| (count as f64 * copies) as u64;
    OwnIo { writes: times(own.writes), written_bytes: times(own.written_bytes), ..*own }
}

#[cfg(test)]
mod tests {
    use iostrata_run::host::DeviceCounters;

    use super::*;

    fn shares(idle_pct: f64, iowait_pct: f64, steal_pct: f64) -> CpuShares {
        CpuShares { idle_pct, iowait_pct, steal_pct, ..CpuShares::default() }
    }

    #[test]
    fn processors() {
        let judged = |cpu: CpuShares| {
            let mut verdicts = Verdicts::none();
            cpu_verdicts(Some(&cpu), &mut verdicts);
            verdicts
        };
        assert!(judged(shares(50.0, 10.0, 2.0)).is_sound());
        assert!(judged(shares(50.0, 10.0, 2.1)).has(Verdict::Steal));
        assert!(judged(shares(1.0, 3.0, 0.0)).has(Verdict::CpuLimited));
        assert!(judged(shares(0.0, 30.0, 0.0)).is_sound());
    }

    #[test]
    fn limits_and_quotas() {
        let judged = |throttle: ThrottleEvidence| {
            let mut verdicts = Verdicts::none();
            throttle_verdicts(Some(&throttle), &mut verdicts);
            verdicts
        };
        let io = |used| ThrottleEvidence { io_limit_used_pct: Some(used), ..Default::default() };
        assert!(judged(io(89.0)).is_sound());
        assert!(judged(io(97.0)).has(Verdict::Throttled));
        let quota = |throttled| ThrottleEvidence {
            cpu_periods: Some(100),
            cpu_periods_throttled: Some(throttled),
            ..Default::default()
        };
        assert!(judged(quota(5)).is_sound());
        assert!(judged(quota(6)).has(Verdict::CpuLimited));
    }

    #[test]
    fn memory_instead_of_the_device() {
        let judged = |direct, issued: u64, done: u64| {
            let own = OwnIo { direct, read_bytes: issued, ..OwnIo::default() };
            let counters = DeviceCounters { sectors_read: done / 512, ..Default::default() };
            let mut verdicts = Verdicts::none();
            cache_verdicts(&own, &DeviceDelta { seconds: 1.0, counters }, &mut verdicts);
            verdicts.iter().collect::<Vec<_>>()
        };
        assert_eq!(judged(true, 100 << 20, 99 << 20), []);
        assert_eq!(judged(true, 100 << 20, 50 << 20), [Verdict::Cached, Verdict::DirectIgnored]);
        assert_eq!(judged(false, 100 << 20, 0), [Verdict::Cached]);
        assert_eq!(judged(true, 4096, 0), []);
    }

    const MIB: u64 = 1 << 20;

    fn device(seconds: f64, reads: u64, read_bytes: u64, writes: u64, written: u64) -> DeviceDelta {
        let counters = DeviceCounters {
            reads,
            sectors_read: read_bytes / 512,
            writes,
            sectors_written: written / 512,
            ..DeviceCounters::default()
        };
        DeviceDelta { seconds, counters }
    }

    fn own(reads: u64, writes: u64, block: u64, flushes: u64) -> OwnIo {
        OwnIo {
            direct: true,
            reads,
            writes,
            read_bytes: reads * block,
            written_bytes: writes * block,
            flushes,
        }
    }

    #[test]
    fn own_traffic_is_not_foreign() {
        let own = own(100_000, 0, 4096, 0);
        let device = device(4.0, 100_100, 100_100 * 4096, 50, MIB);
        assert!(!foreign_io(&own, &device, &FlushCost::default()).raised);
    }

    #[test]
    fn a_journal_is_not_foreign() {
        // Each append of 4 KiB with its fsync: data, three journal blocks, a commit block.
        let own = own(0, 20_000, 4096, 20_000);
        let device = device(4.0, 0, 0, 60_000, 20_000 * 5 * 4096);
        assert!(!foreign_io(&own, &device, &FlushCost::default()).raised);
        let without_flushes = OwnIo { flushes: 0, ..own };
        assert!(foreign_io(&without_flushes, &device, &FlushCost::default()).raised);
    }

    #[test]
    fn another_reader_is_foreign() {
        let own = own(100_000, 0, 4096, 0);
        let device = device(4.0, 100_000 + 400, 100_000 * 4096 + 400 * MIB, 0, 0);
        let foreign = foreign_io(&own, &device, &FlushCost::default());
        assert!(foreign.raised);
        assert_eq!((foreign.reads_per_s, foreign.read_bytes_per_s), (100.0, 100.0 * MIB as f64));
    }

    #[test]
    fn many_small_requests_are_foreign_by_number() {
        let own = own(1000, 0, 4096, 0);
        let device = device(4.0, 1000, 1000 * 4096, 900, 900 * 512);
        assert!(foreign_io(&own, &device, &FlushCost::default()).raised);
    }

    #[test]
    fn large_requests_may_be_split() {
        let own = own(0, 1000, MIB, 0);
        let device = device(4.0, 0, 0, 8000, 1000 * MIB);
        assert!(!foreign_io(&own, &device, &FlushCost::default()).raised);
    }

    #[test]
    fn an_idle_machine_in_a_short_window() {
        let device = device(0.5, 0, 0, 100, 3 * MIB);
        assert!(
            !foreign_io(
                &OwnIo { direct: true, ..OwnIo::default() },
                &device,
                &FlushCost::default()
            )
            .raised
        );
    }

    #[test]
    fn buffered_reads_may_double_and_no_more() {
        let own = OwnIo { direct: false, ..own(10_000, 0, 4096, 0) };
        let twice = device(4.0, 10, 2 * 10_000 * 4096, 0, 0);
        assert!(!foreign_io(&own, &twice, &FlushCost::default()).raised);
        let more = device(4.0, 10, 3 * 10_000 * 4096, 0, 0);
        assert!(foreign_io(&own, &more, &FlushCost::default()).raised);
    }

    #[test]
    fn a_mirror_writes_twice_below() {
        let below = own_at_bottom(&own(10, 10, 4096, 3), 2.0);
        assert_eq!((below.writes, below.written_bytes, below.reads), (20, 81_920, 10));
    }
}
