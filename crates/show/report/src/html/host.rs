//! The machine and what lies under the directory.

use iostrata_run::ProbeHost;
use iostrata_run::host::{BlockLayer, DeviceFacts, IoLimit, LayerKind};
use maud::{Markup, html};

use crate::RunView;
use crate::words;

type Fact = (&'static str, Option<String>);

/// The facts of the host; nothing when they were not kept.
pub(crate) fn section(view: &RunView<'_>) -> Option<Markup> {
    let host = view.host()?;
    Some(html! {
        h3 { "Machine" } (facts(machine(host)))
        h3 { "Directory" } (facts(directory(host)))
        @if !host.path.block_stack.is_empty() {
            p.note {
                "From the file system down: "
                (host.path.block_stack.iter().map(layer).collect::<Vec<_>>().join(" \u{2192} "))
            }
        }
        @for device in &host.path.devices { h3 { "Device " (device.name) } (facts(of(device))) }
        @for limit in &host.path.limits { p.note.warn { (limited(limit)) } }
        @for note in &host.path.notes { p.note { (note) } }
    })
}

fn facts(all: Vec<Fact>) -> Markup {
    html! {
        dl.facts {
            @for (name, what) in all {
                @if let Some(what) = what { div { dt { (name) } dd { (what) } } }
            }
        }
    }
}

fn machine(host: &ProbeHost) -> Vec<Fact> {
    let machine = &host.machine;
    let size = |bytes: u64| words::value(bytes as f64, "bytes");
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

fn directory(host: &ProbeHost) -> Vec<Fact> {
    let path = &host.path;
    let size = |bytes: u64| words::value(bytes as f64, "bytes");
    let options = path.mount_options.join(",");
    vec![
        ("Path", Some(path.path.clone())),
        ("File system", path.file_system.clone()),
        ("Mounted from", path.mount_source.clone()),
        ("Mounted at", path.mount_point.clone()),
        ("Mount options", Some(options).filter(|options| !options.is_empty())),
        ("Size", path.total_bytes.map(size)),
        ("Free", path.free_bytes.map(size)),
        ("Block", path.block_bytes.map(size)),
        ("Direct I/O", Some(direct(host))),
    ]
}

fn direct(host: &ProbeHost) -> String {
    let behaviour = match serde_json::to_value(host.path.direct_io.behaviour) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("a behaviour is a string, not {other:?}"),
    };
    match &host.path.direct_io.reason {
        Some(reason) => format!("{behaviour}: {reason}"),
        None => behaviour,
    }
}

fn of(device: &DeviceFacts) -> Vec<Fact> {
    let size = |bytes: u64| words::value(bytes as f64, "bytes");
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

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
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
        (limit.read_iops.map(|n| n as f64), "reads/s"),
        (limit.write_iops.map(|n| n as f64), "writes/s"),
        (limit.read_bytes_per_s.map(|n| n as f64), "bytes/s"),
        (limit.write_bytes_per_s.map(|n| n as f64), "bytes/s"),
    ];
    let directions = ["reads", "writes", "reads", "writes"];
    let parts: Vec<String> = rates
        .iter()
        .zip(directions)
        .filter_map(|((rate, unit), what)| {
            rate.map(|rate| format!("{what} at {}", words::value(rate, unit)))
        })
        .collect();
    format!("Control group {} limits {} {}", limit.cgroup, limit.device, parts.join(", "))
}
