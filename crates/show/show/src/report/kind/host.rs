//! The machine and what lies under the directory.

use iostrata_run::ProbeHost;
use iostrata_run::host::{BlockLayer, DeviceFacts, IoLimit, LayerKind};
use serde_json::Value;

use super::common::facts;
use crate::report::RunView;
use crate::report::cell::Tone;
use crate::report::document::{Block, Blocks, On, Style};
use crate::report::words;

/// The machine and what lies under the directory; nothing when that was not kept.
pub(super) fn host(view: &RunView<'_>, host: Option<&ProbeHost>) -> Option<Blocks> {
    let host = host.or(view.manifest.host.as_ref())?;
    let mut body = Blocks::new();
    let mut part = |title: &str, all: Vec<(&str, Option<String>)>| {
        let known = all.into_iter().filter_map(|(name, what)| Some((name.to_owned(), what?)));
        body.title(On::FILES, title).add(On::FILES, facts(known.collect()));
    };
    part("Machine", machine(host));
    part("Directory", directory(host));
    for device in &host.path.devices {
        part(&format!("Device {}", device.name), of_device(device));
    }
    let mut note = |tone, words: String| {
        body.add(On::FILES, Block::Text(Style::Note(tone), words.into()));
    };
    if !host.path.block_stack.is_empty() {
        let layers = host.path.block_stack.iter().map(layer).collect::<Vec<_>>();
        note(Tone::Plain, format!("From the file system down: {}", layers.join(" \u{2192} ")));
    }
    host.path.limits.iter().for_each(|limit| note(Tone::Warn, limited(limit)));
    host.path.notes.iter().for_each(|words| note(Tone::Plain, words.clone()));
    Some(body)
}

fn size(bytes: u64) -> String {
    words::value(bytes as f64, "bytes")
}

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

fn machine(host: &ProbeHost) -> Vec<(&'static str, Option<String>)> {
    let machine = &host.machine;
    vec![
        ("Kernel", machine.kernel.clone()),
        ("Architecture", machine.architecture.clone()),
        ("Processor", machine.cpu_model.clone()),
        ("Processors", machine.cpus.map(|cpus| cpus.to_string())),
        ("Processors allowed", machine.cpus_allowed.map(|cpus| cpus.to_string())),
        ("Processor quota", machine.cgroup.cpu_quota_cpus.map(|cpus| cpus.to_string())),
        ("Memory", machine.memory_bytes.map(size)),
        ("Memory limit", machine.cgroup.memory_limit_bytes.map(size)),
        ("Virtualisation", machine.virtualisation.clone()),
        ("Container", machine.container.clone()),
        ("Clock source", machine.clock_source.clone()),
        ("Frequency governor", machine.cpu_governor.clone()),
        ("Root", Some(yes(machine.user_is_root))),
    ]
}

fn directory(host: &ProbeHost) -> Vec<(&'static str, Option<String>)> {
    let path = &host.path;
    let options = path.mount_options.join(",");
    let behaviour = match serde_json::to_value(path.direct_io.behaviour) {
        Ok(Value::String(name)) => name,
        other => unreachable!("a behaviour is a string, not {other:?}"),
    };
    let direct = path.direct_io.reason.iter().fold(behaviour, |it, why| format!("{it}: {why}"));
    vec![
        ("Path", Some(path.path.clone())),
        ("File system", path.file_system.clone()),
        ("Mounted from", path.mount_source.clone()),
        ("Mounted at", path.mount_point.clone()),
        ("Mount options", Some(options).filter(|options| !options.is_empty())),
        ("Size", path.total_bytes.map(size)),
        ("Free", path.free_bytes.map(size)),
        ("Block", path.block_bytes.map(size)),
        ("Direct I/O", Some(direct)),
    ]
}

fn of_device(device: &DeviceFacts) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("Model", device.model.clone()),
        ("Attached by", device.transport.clone()),
        ("Size", device.size_bytes.map(size)),
        ("Blocks", device.logical_block_bytes.map(|bytes| format!("{bytes} B logical"))),
        ("Physical block", device.physical_block_bytes.map(size)),
        ("Scheduler", device.scheduler.clone()),
        ("nr_requests", device.nr_requests.map(|n| n.to_string())),
        ("Hardware queues", device.queues.map(|n| n.to_string())),
        ("Read-ahead", device.read_ahead_kib.map(|kib| size(kib * 1024))),
        ("Write cache", device.write_cache.clone()),
        ("Forced unit access", device.fua.map(yes)),
        ("Rotational, claimed", device.rotational_flag.map(yes)),
        ("Atomic write", device.atomic_write_bytes_max.filter(|&bytes| bytes > 0).map(size)),
    ]
}

fn layer(layer: &BlockLayer) -> String {
    let kind = match &layer.kind {
        LayerKind::Partition { .. } => "partition",
        LayerKind::Lvm { .. } => "logical volume",
        LayerKind::Crypt { .. } => "encryption",
        LayerKind::Multipath { .. } => "multipath",
        LayerKind::DeviceMapper { .. } => "device mapper",
        LayerKind::Md { .. } => "RAID",
        LayerKind::Loop { .. } => "loop device",
        LayerKind::Bcache => "bcache",
        LayerKind::Zram => "zram",
        LayerKind::Disk => "disk",
    };
    format!("{} ({kind})", layer.name)
}

fn limited(limit: &IoLimit) -> String {
    let rates = [
        ("reads", limit.read_iops.map(|n| n as f64), "reads/s"),
        ("writes", limit.write_iops.map(|n| n as f64), "writes/s"),
        ("reads", limit.read_bytes_per_s.map(|n| n as f64), "bytes/s"),
        ("writes", limit.write_bytes_per_s.map(|n| n as f64), "bytes/s"),
    ];
    let rate = |(what, rate, unit): (&str, Option<f64>, &str)| {
        Some(format!("{what} at {}", words::value(rate?, unit)))
    };
    let parts: Vec<String> = rates.into_iter().filter_map(rate).collect();
    format!("Control group {} limits {} {}", limit.cgroup, limit.device, parts.join(", "))
}
