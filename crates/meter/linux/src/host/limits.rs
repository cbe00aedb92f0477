//! Limits of control groups on the devices below a path.

use std::collections::BTreeMap;
use std::path::Path;

use iostrata_run::host::{BlockLayer, DeviceNumber, IoLimit, LimitScope};

use crate::host::Root;
use crate::host::cgroup::{Cgroup, group_v1, group_v2};
use iostrata_io::Mount;

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
            cgroup: group.path.to_string_lossy().into_owned(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
