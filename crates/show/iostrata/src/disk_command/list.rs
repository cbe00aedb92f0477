//! `iostrata disk list`.
//!
//! Invariant: it touches no device, so what arrived is what others sent.

use std::path::Path;

use iostrata_change::{Platform, System};
use iostrata_linux::host::{Root, device_counters, parse_stat};
use iostrata_run::host::DeviceCounters;
use iostrata_run::{DiskListDocument, DiskRow};
use iostrata_sim::emudisk::Power;
use iostrata_stats::units;

use super::{Found, found, stats};
use crate::args::DiskListArgs;
use crate::display::{print_json, print_text};
use crate::exit_error::ExitError;

/// Runs the command.
///
/// # Errors
/// When stdout cannot be written.
pub fn run(args: &DiskListArgs) -> Result<(), ExitError> {
    // What a killed server left is for `restore`, and was mentioned.
    let disks = found().into_iter().filter(|one| one.disk.is_served);
    let document = DiskListDocument { disks: disks.map(|one| row(&one)).collect() };
    match args.common.json {
        true => print_json(&document),
        false => print_text(&text(&document)),
    }
}

fn row(found: &Found) -> DiskRow {
    let Found { disk, asked } = found;
    let stats = stats(disk);
    let stats = stats.as_ref();
    let is_of_a_run = !disk.is_left_behind();
    DiskRow {
        device: disk.device.display().to_string(),
        model: asked.disk.to_string(),
        size_bytes: asked.size_bytes,
        pid: disk.process.pid,
        run_pid: is_of_a_run.then_some(disk.owner.pid),
        in_use: in_use(found),
        answers: stats.is_some(),
        reads: stats.map(|stats| stats.reads),
        writes: stats.map(|stats| stats.writes),
        flushes: stats.map(|stats| stats.flushes),
        merged: stats.and_then(|_| merged(found)),
        depth_max: stats.map(|stats| stats.depth_max),
        depth_mean: stats.map(|stats| stats.depth_mean),
        read_bytes: stats.map(|stats| stats.read_bytes),
        write_bytes: stats.map(|stats| stats.write_bytes),
        in_order_pct: stats.map(|stats| stats.in_order * 100.0),
        late: stats.map(|stats| stats.late),
        errors_injected: stats.map(|stats| stats.errors_injected),
        unflushed_bytes: stats.map(|stats| stats.unflushed_bytes),
        store_bytes: stats.map(|stats| stats.store_bytes),
        has_power: stats.map(|stats| stats.power == Power::On),
        power_cuts: stats.map(|stats| stats.cuts),
    }
}

fn in_use(found: &Found) -> Option<String> {
    let system = System::new();
    let device = &found.disk.device;
    let mounts = system.mounts().unwrap_or_default();
    if let Some(mount) = mounts.iter().find(|mount| Path::new(&mount.source) == device) {
        return Some(format!("mounted at {}", mount.at.display()));
    }
    let openers = system.openers(device);
    (!openers.is_empty()).then(|| format!("open by {}", openers.join(", ")))
}

/// Requests that the kernel merged, as it counts them for the device.
fn merged(found: &Found) -> Option<u64> {
    let name = found.disk.device.file_name()?.to_str()?;
    let merged = |counters: DeviceCounters| counters.reads_merged + counters.writes_merged;
    let now = device_counters(&Root::system(), name).map(merged)?;
    // The device may have served other files before.
    now.checked_sub(parse_stat(&found.disk.stat).map(merged)?)
}

fn text(document: &DiskListDocument) -> String {
    if document.disks.is_empty() {
        return "There is no emulated disk; iostrata disk start makes one.\n".to_owned();
    }
    document.disks.iter().map(row_text).collect()
}

fn row_text(row: &DiskRow) -> String {
    let size = units::bytes(row.size_bytes as f64);
    let mut text = format!("{}: {}, {size}, process {}", row.device, row.model, row.pid);
    if let Some(run) = row.run_pid {
        text += &format!(", of a run (process {run})");
    }
    if let Some(by) = &row.in_use {
        text += &format!(", {by}");
    }
    if row.has_power == Some(false) {
        text += ", without power";
    }
    text.push('\n');
    let (Some(reads), Some(writes), Some(flushes)) = (row.reads, row.writes, row.flushes) else {
        return text + "  its server does not answer; iostrata disk stop takes it away\n";
    };
    let merged = row.merged.map_or_else(|| "an unknown number".to_owned(), |n| n.to_string());
    let depth = match (row.depth_mean, row.depth_max) {
        (Some(mean), Some(max)) => format!("{mean:.1} at a time (at most {max})"),
        _ => String::new(),
    };
    text + &format!(
        "  {reads} reads, {writes} writes, {flushes} flushes, {merged} merged; {depth}\n"
    )
}
