//! Control groups that share a device out by weight, latency or cost: what no counter shows as a
//! limit and what holds requests back all the same.
//!
//! Invariant: only what differs from the kernel's defaults, of the process's own groups and those
//! above them, as far as they can be seen from here.

use std::path::Path;

use iostrata_run::host::{BlockLayer, CgroupVersion, DeviceNumber, IoControl, IoControlKind};

use crate::host::Root;
use crate::host::cgroup::{Cgroup, SELF, group_v1, group_v2};
use iostrata_io::Mount;

/// The weight of a group that nobody gave one.
const WEIGHT: u64 = 100;

/// The controls on any of the layers, the innermost group first.
pub(crate) fn controls_on(root: &Root, mounts: &[Mount], layers: &[BlockLayer]) -> Vec<IoControl> {
    let v2 = group_v2(root, mounts, SELF).into_iter().flat_map(|group| above(&group));
    let v1 = group_v1(root, mounts, "blkio", SELF).into_iter().flat_map(|group| above(&group));
    v2.chain(v1).flat_map(|group| of_group(root, &group, layers)).collect()
}

fn above(group: &Cgroup) -> Vec<Cgroup> {
    group.and_above().collect()
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
    let cgroup = shown(&group.path);
    counts.then(|| IoControl {
        cgroup,
        version: group.version,
        kind,
        device,
        value: rest.trim().to_owned(),
    })
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
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
