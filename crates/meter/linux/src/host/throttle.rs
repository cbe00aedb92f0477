//! What control groups held back: processor quotas, and how far I/O limits were used.
//!
//! The kernel does not say how long requests waited for an I/O limit, so that a limit counts as
//! felt when the traffic of its group came near it.

use std::path::Path;

use iostrata_run::host::{CgroupVersion, DeviceNumber, IoLimit, LimitedRate, ThrottleEvidence};

use crate::host::Root;
use crate::host::cgroup::Cgroup;
use crate::host::limits::FoundLimit;

/// The processor quota's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuThrottle {
    periods: u64,
    throttled: u64,
    throttled_us: u64,
}

/// Requests and bytes that a group sent to one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GroupIo {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_bytes: u64,
}

/// All of it at one moment; `io` has one entry per limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThrottleCounters {
    pub(crate) cpu: Option<CpuThrottle>,
    pub(crate) io: Vec<Option<GroupIo>>,
}

impl ThrottleCounters {
    pub(crate) fn read(root: &Root, cpu: Option<&Cgroup>, limits: &[FoundLimit]) -> Self {
        let cpu = cpu.and_then(|group| {
            parse_cpu_stat(&root.text(group.dir().join("cpu.stat"))?, group.version)
        });
        let io = limits.iter().map(|found| group_io(root, found)).collect();
        Self { cpu, io }
    }

    /// What happened since an earlier moment. `device_io` tells what a device did, for groups that
    /// do not count themselves.
    pub(crate) fn since(
        &self,
        before: &Self,
        limits: &[FoundLimit],
        seconds: f64,
        device_io: impl Fn(&str) -> Option<GroupIo>,
    ) -> Option<ThrottleEvidence> {
        let mut evidence = ThrottleEvidence::default();
        if let (Some(after), Some(before)) = (self.cpu, before.cpu) {
            evidence.cpu_periods = after.periods.checked_sub(before.periods);
            evidence.cpu_periods_throttled = after.throttled.checked_sub(before.throttled);
            evidence.cpu_throttled_us = after.throttled_us.checked_sub(before.throttled_us);
        }
        for (at, found) in limits.iter().enumerate() {
            let reading = |counters: &Self| counters.io.get(at).copied().flatten();
            let counted = reading(self).zip(reading(before));
            let passed = match counted {
                Some((after, before)) => Some(between(before, after)),
                None => device_io(&found.limit.device),
            };
            let used = passed.and_then(|io| used_pct(&found.limit, io, seconds));
            if let Some((used, rate)) = used
                && Some(used) > evidence.io_limit_used_pct
            {
                evidence.io_limit_used_pct = Some(used);
                evidence.io_limit = Some(found.limit.clone());
                evidence.io_limit_rate = Some(rate);
            }
        }
        (evidence != ThrottleEvidence::default()).then_some(evidence)
    }
}

fn between(before: GroupIo, after: GroupIo) -> GroupIo {
    GroupIo {
        reads: after.reads.saturating_sub(before.reads),
        writes: after.writes.saturating_sub(before.writes),
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
        written_bytes: after.written_bytes.saturating_sub(before.written_bytes),
    }
}

/// The largest share of any of the limit's four values, in percent, and which one it is.
fn used_pct(limit: &IoLimit, io: GroupIo, seconds: f64) -> Option<(f64, LimitedRate)> {
    let share = |rate: LimitedRate| {
        let done = match rate {
            LimitedRate::ReadBytes => io.read_bytes,
            LimitedRate::WriteBytes => io.written_bytes,
            LimitedRate::Reads => io.reads,
            LimitedRate::Writes => io.writes,
        };
        let bound = limit.bound(rate).filter(|bound| *bound > 0)?;
        Some((done as f64 / seconds / bound as f64 * 100.0, rate))
    };
    LimitedRate::ALL.into_iter().filter_map(share).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// `cpu.stat`: version 1 counts nanoseconds, version 2 microseconds.
fn parse_cpu_stat(text: &str, version: CgroupVersion) -> Option<CpuThrottle> {
    let value = |name: &str| {
        text.lines().find_map(|line| {
            let (found, value) = line.split_once(' ')?;
            (found == name).then(|| value.trim().parse::<u64>().ok())?
        })
    };
    let throttled_us = match version {
        CgroupVersion::V1 => value("throttled_time")? / 1000,
        CgroupVersion::V2 => value("throttled_usec")?,
    };
    Some(CpuThrottle {
        periods: value("nr_periods")?,
        throttled: value("nr_throttled")?,
        throttled_us,
    })
}

fn group_io(root: &Root, found: &FoundLimit) -> Option<GroupIo> {
    let dir = found.group.dir();
    let number = found.limit.device_number;
    match found.group.version {
        CgroupVersion::V2 => parse_io_stat(&root.text(dir.join("io.stat"))?, number),
        CgroupVersion::V1 => group_io_v1(root, &dir, number),
    }
}

fn parse_io_stat(text: &str, number: DeviceNumber) -> Option<GroupIo> {
    let line = text.lines().find_map(|line| {
        let (found, values) = line.split_once(' ')?;
        (found.parse() == Ok(number)).then_some(values)
    });
    // A device without traffic has no line.
    let mut io = GroupIo::default();
    for (name, value) in line.unwrap_or("").split(' ').filter_map(|word| word.split_once('=')) {
        let value = value.parse().unwrap_or(0);
        match name {
            "rbytes" => io.read_bytes = value,
            "wbytes" => io.written_bytes = value,
            "rios" => io.reads = value,
            "wios" => io.writes = value,
            _ => {}
        }
    }
    Some(io)
}

fn group_io_v1(root: &Root, dir: &Path, number: DeviceNumber) -> Option<GroupIo> {
    let requests = root.text(dir.join("blkio.throttle.io_serviced"))?;
    let bytes = root.text(dir.join("blkio.throttle.io_service_bytes"))?;
    Some(GroupIo {
        reads: value_v1(&requests, number, "Read"),
        writes: value_v1(&requests, number, "Write"),
        read_bytes: value_v1(&bytes, number, "Read"),
        written_bytes: value_v1(&bytes, number, "Write"),
    })
}

/// Lines such as `254:0 Read 4711`; a device without traffic has none.
fn value_v1(text: &str, number: DeviceNumber, what: &str) -> u64 {
    text.lines()
        .find_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let found = words.next()?.parse() == Ok(number) && words.next()? == what;
            if found { words.next()?.parse().ok() } else { None }
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_generations_of_counters() {
        let v2 = "usage_usec 5\nnr_periods 100\nnr_throttled 20\nthrottled_usec 900\n";
        let v1 = "nr_periods 100\nnr_throttled 20\nthrottled_time 900000\n";
        let expected = CpuThrottle { periods: 100, throttled: 20, throttled_us: 900 };
        assert_eq!(parse_cpu_stat(v2, CgroupVersion::V2), Some(expected));
        assert_eq!(parse_cpu_stat(v1, CgroupVersion::V1), Some(expected));
        assert_eq!(parse_cpu_stat("nr_periods 1", CgroupVersion::V2), None);
        let number = "254:0".parse().unwrap();
        let io =
            parse_io_stat("8:0 rios=9\n254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5\n", number);
        let expected = GroupIo { reads: 3, writes: 4, read_bytes: 1, written_bytes: 2 };
        assert_eq!(io, Some(expected));
        assert_eq!(value_v1("254:0 Read 7\n254:0 Write 8\nTotal 15\n", number, "Write"), 8);
    }

    #[test]
    fn the_tightest_value_counts() {
        let limit = IoLimit {
            cgroup: "/".into(),
            version: CgroupVersion::V2,
            scope: iostrata_run::host::LimitScope::Process,
            device: "vda".into(),
            device_number: "254:0".parse().unwrap(),
            read_bytes_per_s: None,
            write_bytes_per_s: Some(1000),
            read_iops: Some(10),
            write_iops: Some(0),
        };
        let io = GroupIo { reads: 10, writes: 99, read_bytes: 1 << 30, written_bytes: 1900 };
        assert_eq!(used_pct(&limit, io, 2.0), Some((95.0, LimitedRate::WriteBytes)));
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}", near in "(254:0 [a-zR-W]{0,6}[= ]?[0-9]{0,22}\n){0,4}") {
            for text in [&text, &near] {
                parse_cpu_stat(text, CgroupVersion::V1);
                parse_io_stat(text, "254:0".parse().unwrap());
                value_v1(text, "254:0".parse().unwrap(), "Read");
            }
        }
    }
}
