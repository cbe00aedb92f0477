//! The control groups of a process: where they lie, how they limit processors, memory and devices
//! or share these out, and what they held back.
//!
//! Version 1 keeps one tree per controller and block I/O limits there do not add up along the way;
//! version 2 keeps one tree, and a limit holds for everything below it. Controls (weight, latency,
//! cost) hold requests back although no counter shows them; only those that differ from the
//! kernel's defaults are reported, of the process's own groups and those above them, as far as they
//! can be seen from here. The kernel does not report how long requests waited for an I/O limit, so
//! that a limit counts as felt when the traffic of its group came near it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iostrata_io::Mount;
use iostrata_run::host::{
    BlockLayer, CgroupFacts, CgroupVersion, DeviceNumber, IoControl, IoControlKind, IoLimit,
    LimitScope, LimitedRate, ThrottleEvidence,
};

use crate::host::Root;

/// This process, as `/proc` names it; others are named by their id.
pub(crate) const SELF: &str = "self";

/// One group of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cgroup {
    /// Generation of the tree.
    pub(crate) version: CgroupVersion,
    /// Where the tree is mounted.
    pub(crate) tree: PathBuf,
    /// The group below it, `/` for the top.
    pub(crate) path: PathBuf,
}

impl Cgroup {
    /// The group's directory.
    pub(crate) fn dir(&self) -> PathBuf {
        dir_in(&self.tree, &self.path)
    }

    /// The group below the tree, as a report prints it.
    pub(crate) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// The group and all groups above it, the innermost first.
    fn and_above(&self) -> impl Iterator<Item = Cgroup> + '_ {
        self.path.ancestors().map(|path| Cgroup { path: path.to_owned(), ..self.clone() })
    }
}

fn dir_in(tree: &Path, path: &Path) -> PathBuf {
    tree.join(path.strip_prefix("/").unwrap_or(path))
}

/// The group of a process in the version 2 tree.
pub(crate) fn group_v2(root: &Root, mounts: &[Mount], who: &str) -> Option<Cgroup> {
    let mount = mounts.iter().find(|mount| mount.kind == "cgroup2")?;
    group(root, mount, CgroupVersion::V2, &membership_v2(root, who)?)
}

/// The group of a process in the version 1 tree of a controller.
pub(crate) fn group_v1(
    root: &Root,
    mounts: &[Mount],
    controller: &str,
    who: &str,
) -> Option<Cgroup> {
    let mount =
        mounts.iter().find(|mount| mount.kind == "cgroup" && mount.has_super_option(controller))?;
    group(root, mount, CgroupVersion::V1, &membership_v1(root, controller, who)?)
}

/// A container sees its own part of the tree: then the mounted directory is cut from the path, and
/// what does not fit below the mount is taken to be its top.
fn group(root: &Root, mount: &Mount, version: CgroupVersion, path: &str) -> Option<Cgroup> {
    let tree = mount.at.clone();
    let below = Path::new(path)
        .strip_prefix(&mount.root)
        .map(|below| Path::new("/").join(below))
        .unwrap_or_else(|_| PathBuf::from(path));
    let outside = below.components().any(|part| part.as_os_str() == "..");
    let path = match outside || !root.exists(dir_in(&tree, &below)) {
        true => PathBuf::from("/"),
        false => below,
    };
    Some(Cgroup { version, tree, path })
}

fn membership_v2(root: &Root, who: &str) -> Option<String> {
    let text = root.text(format!("/proc/{who}/cgroup"))?;
    text.lines().find_map(|line| line.strip_prefix("0::")).map(str::to_owned)
}

fn membership_v1(root: &Root, controller: &str, who: &str) -> Option<String> {
    let text = root.text(format!("/proc/{who}/cgroup"))?;
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == controller).then(|| path.to_owned())
    })
}

/// Where this process stands and what processors and memory it may use.
pub(crate) fn cgroup_facts(root: &Root) -> CgroupFacts {
    let mounts = crate::host::mounts(root);
    let v2 = group_v2(root, &mounts, SELF);
    let cpu = group_v1(root, &mounts, "cpu", SELF);
    let memory = group_v1(root, &mounts, "memory", SELF);
    let quota = tightest_quota(root, &v2, &cpu);
    let memory = tightest_memory(root, &v2, &memory);
    CgroupFacts {
        path_v2: membership_v2(root, SELF),
        path_v1_blkio: membership_v1(root, "blkio", SELF),
        cpu_quota_cpus: quota.as_ref().map(|(_, cpus)| *cpus),
        cpu_quota_version: quota.as_ref().map(|(group, _)| group.version),
        cpu_quota_group: quota.map(|(group, _)| group.name()),
        memory_limit_bytes: memory.as_ref().map(|(_, bytes)| *bytes),
        memory_limit_version: memory.as_ref().map(|(group, _)| group.version),
        memory_limit_group: memory.map(|(group, _)| group.name()),
    }
}

/// The tightest of all memory limits on the way up, in bytes, and the group that sets it. Above
/// `memory.high` a group is slowed down until it has given memory back.
fn tightest_memory(root: &Root, v2: &Option<Cgroup>, v1: &Option<Cgroup>) -> Option<(Cgroup, u64)> {
    let of = |group: Cgroup| {
        let files: &[&str] = match group.version {
            CgroupVersion::V2 => &["memory.max", "memory.high"],
            CgroupVersion::V1 => &["memory.limit_in_bytes"],
        };
        let number = |file: &&str| root.number::<u64>(group.dir().join(file));
        // Version 1 writes "no limit" as a number near the largest.
        let least = files.iter().filter_map(number).filter(|bytes| *bytes < 1 << 60).min();
        Some((group, least?))
    };
    above(v2).chain(above(v1)).filter_map(of).min_by_key(|(_, bytes)| *bytes)
}

fn above(group: &Option<Cgroup>) -> impl Iterator<Item = Cgroup> + '_ {
    group.iter().flat_map(Cgroup::and_above)
}

/// The group whose processor quota holds a process back, where one does. Its own `cpu.stat` counts
/// how often.
pub(crate) fn quota_group(root: &Root, mounts: &[Mount], who: &str) -> Option<Cgroup> {
    let (v2, cpu) = (group_v2(root, mounts, who), group_v1(root, mounts, "cpu", who));
    tightest_quota(root, &v2, &cpu).map(|(group, _)| group)
}

/// The tightest of all quotas on the way up, in processors, and the group that sets it.
fn tightest_quota(root: &Root, v2: &Option<Cgroup>, v1: &Option<Cgroup>) -> Option<(Cgroup, f64)> {
    let of = |group: Cgroup| {
        let cpus = match group.version {
            CgroupVersion::V2 => quota_v2(root, &group.dir()),
            CgroupVersion::V1 => quota_v1(root, &group.dir()),
        };
        Some((group, cpus?))
    };
    above(v2).chain(above(v1)).filter_map(of).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// `cpu.max`: quota and period in microseconds, or `max`.
fn quota_v2(root: &Root, dir: &Path) -> Option<f64> {
    let text = root.word(dir.join("cpu.max"))?;
    let mut words = text.split_whitespace();
    ratio(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
}

fn quota_v1(root: &Root, dir: &Path) -> Option<f64> {
    let quota: i64 = root.number(dir.join("cpu.cfs_quota_us"))?;
    ratio(u64::try_from(quota).ok()?, root.number(dir.join("cpu.cfs_period_us"))?)
}

fn ratio(quota_us: u64, period_us: u64) -> Option<f64> {
    (period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// A limit, and the directory of the group that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundLimit {
    pub(crate) limit: IoLimit,
    pub(crate) group: Cgroup,
}

/// The limits that hold a process back on any of the layers, the innermost group first.
pub(crate) fn limits_on(
    root: &Root,
    mounts: &[Mount],
    layers: &[BlockLayer],
    who: &str,
) -> Vec<FoundLimit> {
    let mut found = Vec::new();
    if let Some(group) = group_v2(root, mounts, who) {
        for group in group.and_above() {
            let text = root.text(group.dir().join("io.max")).unwrap_or_default();
            let values = parse_io_max(&text);
            collect(&mut found, &group, LimitScope::Process, layers, &values);
        }
    }
    if let Some(group) = group_v1(root, mounts, "blkio", who) {
        let own = throttle_v1(root, &group.dir());
        collect(&mut found, &group, LimitScope::Process, layers, &own);
        if group.path != Path::new("/") {
            let top = Cgroup { path: "/".into(), ..group };
            let values = throttle_v1(root, &top.dir());
            collect(&mut found, &top, LimitScope::WriteBack, layers, &values);
        }
    }
    found
}

/// Bytes and requests per second; absent is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Values {
    read_bytes: Option<u64>,
    write_bytes: Option<u64>,
    reads: Option<u64>,
    writes: Option<u64>,
}

fn collect(
    found: &mut Vec<FoundLimit>,
    group: &Cgroup,
    scope: LimitScope,
    layers: &[BlockLayer],
    values: &BTreeMap<DeviceNumber, Values>,
) {
    for (number, values) in values {
        let layer = layers.iter().find(|layer| layer.device_number == Some(*number));
        let (Some(layer), true) = (layer, *values != Values::default()) else { continue };
        let limit = IoLimit {
            cgroup: group.name(),
            version: group.version,
            scope,
            device: layer.name.clone(),
            device_number: *number,
            read_bytes_per_s: values.read_bytes,
            write_bytes_per_s: values.write_bytes,
            read_iops: values.reads,
            write_iops: values.writes,
        };
        found.push(FoundLimit { limit, group: group.clone() });
    }
}

/// `io.max`: lines such as `8:16 rbps=2097152 wbps=max riops=max wiops=120`.
fn parse_io_max(text: &str) -> BTreeMap<DeviceNumber, Values> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let Some(number) = words.next().and_then(|word| word.parse().ok()) else { continue };
        let values: &mut Values = all.entry(number).or_default();
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            let value = value.parse().ok();
            match name {
                "rbps" => values.read_bytes = value,
                "wbps" => values.write_bytes = value,
                "riops" => values.reads = value,
                "wiops" => values.writes = value,
                _ => {}
            }
        }
    }
    all
}

/// `blkio.throttle.*_device`: one file per value, lines such as `8:16 1048576`.
fn throttle_v1(root: &Root, dir: &Path) -> BTreeMap<DeviceNumber, Values> {
    let mut all: BTreeMap<DeviceNumber, Values> = BTreeMap::new();
    let mut add = |name: &str, set: fn(&mut Values, u64)| {
        let text = root.text(dir.join(format!("blkio.throttle.{name}_device"))).unwrap_or_default();
        for (number, value) in text.lines().filter_map(parse_pair) {
            set(all.entry(number).or_default(), value);
        }
    };
    add("read_bps", |values, value| values.read_bytes = Some(value));
    add("write_bps", |values, value| values.write_bytes = Some(value));
    add("read_iops", |values, value| values.reads = Some(value));
    add("write_iops", |values, value| values.writes = Some(value));
    all
}

fn parse_pair(line: &str) -> Option<(DeviceNumber, u64)> {
    let (number, value) = line.split_once(char::is_whitespace)?;
    Some((number.parse().ok()?, value.trim().parse().ok()?))
}

/// The default weight of a group.
const WEIGHT: u64 = 100;

/// The controls on any of the layers, the innermost group first.
pub(crate) fn controls_on(root: &Root, mounts: &[Mount], layers: &[BlockLayer]) -> Vec<IoControl> {
    let (v2, v1) = (group_v2(root, mounts, SELF), group_v1(root, mounts, "blkio", SELF));
    above(&v2).chain(above(&v1)).flat_map(|group| of_group(root, &group, layers)).collect()
}

fn of_group(root: &Root, group: &Cgroup, layers: &[BlockLayer]) -> Vec<IoControl> {
    let files: &[(&str, IoControlKind)] = match group.version {
        CgroupVersion::V2 => &[
            ("io.cost.qos", IoControlKind::Cost),
            ("io.latency", IoControlKind::Latency),
            ("io.weight", IoControlKind::Weight),
            ("io.bfq.weight", IoControlKind::BfqWeight),
        ],
        CgroupVersion::V1 => &[
            ("blkio.weight", IoControlKind::Weight),
            ("blkio.bfq.weight", IoControlKind::BfqWeight),
            ("blkio.bfq.weight_device", IoControlKind::BfqWeight),
        ],
    };
    let lines = files.iter().flat_map(|(name, kind)| {
        let text = root.text(group.dir().join(name)).unwrap_or_default();
        text.lines().filter_map(|line| control(group, *kind, line, layers)).collect::<Vec<_>>()
    });
    lines.collect()
}

/// Lines such as `254:0 target=10000`, `default 100`, `254:0 50` or a lone number.
fn control(
    group: &Cgroup,
    kind: IoControlKind,
    line: &str,
    layers: &[BlockLayer],
) -> Option<IoControl> {
    let line = line.trim();
    let (first, rest) = line.split_once(' ').unwrap_or(("default", line));
    let device = match first.parse::<DeviceNumber>() {
        Ok(number) => {
            let layer = layers.iter().find(|layer| layer.device_number == Some(number))?;
            Some(layer.name.clone())
        }
        Err(_) if first == "default" => None,
        Err(_) => return None,
    };
    let counts = match kind {
        IoControlKind::Cost => rest.split(' ').any(|word| word == "enable=1"),
        IoControlKind::Latency => device.is_some() && !rest.ends_with("target=0"),
        IoControlKind::Weight | IoControlKind::BfqWeight => {
            rest.trim().parse::<u64>().is_ok_and(|weight| weight != WEIGHT)
        }
    };
    let cgroup = group.name();
    counts.then(|| IoControl {
        cgroup,
        version: group.version,
        kind,
        device,
        value: rest.trim().to_owned(),
    })
}

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

    /// What happened since an earlier moment. `device_io` is what a device did, for groups that do
    /// not count themselves.
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
mod limits_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn io_max_with_max_and_numbers() {
        let all = parse_io_max("8:16 rbps=2097152 wbps=max riops=max wiops=120\njunk\n8:0\n");
        let values = all[&"8:16".parse().unwrap()];
        assert_eq!(values.read_bytes, Some(2_097_152));
        assert_eq!(values.writes, Some(120));
        assert_eq!((values.write_bytes, values.reads), (None, None));
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn version_1_pairs() {
        assert_eq!(parse_pair("254:0 1500"), Some(("254:0".parse().unwrap(), 1500)));
        assert_eq!(parse_pair("254:0"), None);
        assert_eq!(parse_pair("x 1"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "(?s).{0,200}", tidy in "([0-9]{1,3}:[0-9] ?[rw]?[a-z=0-9]{0,12}\n){0,4}") {
            parse_io_max(&text);
            parse_io_max(&tidy);
            tidy.lines().filter_map(parse_pair).for_each(drop);
        }
    }
}

#[cfg(test)]
mod controls_tests {
    use iostrata_run::host::LayerKind;

    use super::*;

    #[test]
    fn what_differs_from_the_defaults_is_a_control() {
        let group =
            Cgroup { version: CgroupVersion::V2, tree: "/sys".into(), path: "/db.slice".into() };
        let layers = [BlockLayer {
            name: "vda".to_owned(),
            device_number: "254:0".parse().ok(),
            kind: LayerKind::Disk,
            depth: 0,
            below: Vec::new(),
            size_bytes: None,
            alignment_offset_bytes: None,
        }];
        let found = |kind, line| {
            let control = control(&group, kind, line, &layers)?;
            Some((control.device, control.value))
        };
        use IoControlKind::{BfqWeight, Cost, Latency, Weight};
        let on_vda = |value: &str| Some((Some("vda".to_owned()), value.to_owned()));
        assert_eq!(found(Latency, "254:0 target=10000"), on_vda("target=10000"));
        assert_eq!(found(Latency, "8:0 target=10000"), None, "another device");
        assert_eq!(found(Cost, "254:0 enable=1 ctrl=auto"), on_vda("enable=1 ctrl=auto"));
        assert_eq!(found(Cost, "254:0 enable=0 ctrl=auto"), None);
        assert_eq!(found(Weight, "default 100"), None);
        assert_eq!(found(Weight, "default 50"), Some((None, "50".to_owned())));
        assert_eq!(found(Weight, "254:0 20"), on_vda("20"));
        assert_eq!(found(BfqWeight, "500"), Some((None, "500".to_owned())));
        assert_eq!(found(BfqWeight, ""), None);
    }
}

#[cfg(test)]
mod throttle_tests {
    use proptest::prelude::*;

    use super::*;

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
