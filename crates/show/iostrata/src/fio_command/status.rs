//! What is known of a wave while it runs: its figures so far, and what its devices did.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

use iostrata_linux::host::{Root, delta, device_counters};
use iostrata_load::WindowFigures;
use iostrata_plan::Point;
use iostrata_run::Replicate;
use iostrata_run::host::{DeviceCounters, PathFacts};
use iostrata_stats::Verdicts;

use super::measured::{DeviceUse, MeasuredWave};
use crate::io_parts::path_facts;

/// A wave that runs.
pub struct Status<'a> {
    number: usize,
    point: &'a Point,
    started_s: f64,
    /// When it began, in milliseconds since 1970.
    pub began_ms: i64,
    /// The devices that its files lie on, as they come, with their counters at the beginning.
    devices: Vec<(String, DeviceCounters)>,
    since: Instant,
}

/// What lies under these paths, once for each device.
pub fn facts_by_device<'p>(paths: impl Iterator<Item = &'p Path>) -> Vec<PathFacts> {
    let mut seen = BTreeSet::new();
    paths.filter(|path| seen.insert(device_number(path))).filter_map(path_facts).collect()
}

/// The device that a path is or lies on; `None` where neither it nor its directory is there.
fn device_number(path: &Path) -> Option<u64> {
    let above = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let above = || std::fs::metadata(above.unwrap_or(Path::new(".")));
    let meta = std::fs::metadata(path).or_else(|_| above()).ok()?;
    Some(if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() })
}

impl<'a> Status<'a> {
    /// One that begins now, so many seconds after the first.
    pub fn begin(number: usize, point: &'a Point, facts: &[PathFacts], started_s: f64) -> Self {
        let mut devices: Vec<(String, DeviceCounters)> = Vec::new();
        for name in facts.iter().filter_map(|facts| Some(&facts.devices.first()?.name)) {
            let is_new = devices.iter().all(|(known, _)| known != name);
            let counters = device_counters(&Root::system(), name).filter(|_| is_new);
            devices.extend(counters.map(|counters| (name.clone(), counters)));
        }
        let began_ms = jiff::Timestamp::now().as_millisecond();
        Self { number, point, started_s, began_ms, devices, since: Instant::now() }
    }

    /// It with the figures so far.
    pub fn wave(&self, figures: WindowFigures) -> MeasuredWave {
        MeasuredWave {
            number: self.number,
            began_ms: self.began_ms,
            replicate: Replicate {
                point: self.point.clone(),
                replicate: 0,
                started_s: self.started_s,
                duration_s: figures.duration_s,
                streams: figures.streams,
                evidence: None,
                verdicts: Verdicts::none(),
            },
            details: figures.details,
            devices: self.devices(),
        }
    }

    /// What the devices did since the beginning.
    pub fn devices(&self) -> Vec<DeviceUse> {
        let seconds = self.since.elapsed().as_secs_f64();
        let used = |(name, before): &(String, DeviceCounters)| {
            let now = device_counters(&Root::system(), name)?;
            Some(DeviceUse { name: name.clone(), delta: delta(before, &now, seconds)? })
        };
        self.devices.iter().filter_map(used).collect()
    }
}
