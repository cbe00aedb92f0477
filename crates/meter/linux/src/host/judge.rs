//! Verdicts from evidence. Each threshold stands here, with its reason.

use iostrata_run::host::{CpuShares, DeviceDelta, OwnIo, ThrottleEvidence};
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

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_run::host::DeviceCounters;

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
}
