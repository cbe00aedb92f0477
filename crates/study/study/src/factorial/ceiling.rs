//! What a loop device and the file below it can do at most, and the verdict that follows.
//!
//! Invariant: `loop_limited` means that a figure lies at the loop device's own ceiling while the
//! file below it, measured directly, can do more: then the loop device was measured, not what lies
//! on it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use iostrata_plan::study::{Cell, StudyPlan, VolumeKind};
use iostrata_plan::{IoApi, IoSpec, Layer, Mix, Point, Stream};
use iostrata_stats::{Measured, combine};

use super::pace::total_iops;

/// Block of the ceiling points in a plan.
pub(super) const BLOCK: &str = "ceiling";
/// Bytes of the file for both.
pub(super) const BYTES: u64 = 512 << 20;
/// Replicates of each, alternating.
pub(super) const REPLICATES: u32 = 3;
const WINDOW: Duration = Duration::from_millis(400);
/// A figure within this share of the ceiling is at it.
const AT_CEILING: f64 = 0.9;
/// How much more the file below must do for the loop device to be the bound.
const BELOW_DOES_MORE: f64 = 1.1;

/// A pair of points: the same load on the loop device and on a file next to its backing file.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    block_bytes: u32,
    writes: bool,
    /// On the loop device.
    pub on_loop: Point,
    /// On a file next to the backing file.
    pub below: Point,
}

/// The pairs that a plan needs on `bytes` of each: one per block size, reading and writing, at its
/// largest concurrency.
pub(super) fn pairs(plan: &StudyPlan, device: &Path, dir: &Path, bytes: u64) -> Vec<Pair> {
    let loads = plan
        .cells
        .iter()
        .filter(|cell| cell.volume.kind != VolumeKind::Here && cell.volume.disk.is_none());
    let workloads: Vec<&IoSpec> = loads.filter_map(Cell::requests).collect();
    let blocks: BTreeSet<u32> = workloads.iter().map(|spec| spec.block_bytes).collect();
    let jobs = workloads.iter().map(|spec| spec.jobs * spec.depth).max().unwrap_or(1).clamp(1, 64);
    let mut pairs = Vec::new();
    for block_bytes in blocks {
        for writes in [false, true] {
            let on = |what: &str, title: &str, path: &Path| {
                let mut point = point(what, title, path, block_bytes, writes, jobs);
                point.streams[0].spec.size_bytes = bytes;
                point
            };
            pairs.push(Pair {
                block_bytes,
                writes,
                on_loop: on("loop", "the loop device", device),
                below: on("below", "a file next to the backing file", dir),
            });
        }
    }
    pairs
}

fn point(what: &str, title: &str, path: &Path, block_bytes: u32, writes: bool, jobs: u32) -> Point {
    let mut spec = IoSpec::new(path);
    spec.mix = if writes { Mix::Write } else { Mix::Read };
    (spec.block_bytes, spec.jobs, spec.api) = (block_bytes, jobs, IoApi::Sync);
    spec.direct = true;
    (spec.point_time, spec.precision) = (WINDOW, 0.01);
    let kind = if writes { "writes" } else { "reads" };
    let kib = block_bytes >> 10;
    Point {
        id: format!("ceiling_{what}_{kind}_{kib}k"),
        title: format!("{kib} KiB random {kind}, {jobs} at once, on {title}"),
        layer: Layer::Device,
        streams: vec![Stream { name: "load".to_owned(), spec }],
        metric: total_iops(),
        curve: None,
        block: BLOCK.to_owned(),
        levels: Vec::new(),
        transactions: None,
    }
}

/// The ceiling of loop devices for one block size and direction, where the file below does more.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ceiling {
    block_bytes: u32,
    writes: bool,
    iops: f64,
}

impl Ceiling {
    /// From the replicates of a pair; absent where the loop device takes nothing away.
    pub(super) fn of(pair: &Pair, on_loop: &[Measured], below: &[Measured]) -> Option<Self> {
        let (on_loop, below) = (combine(on_loop)?, combine(below)?);
        (below.value > on_loop.value * BELOW_DOES_MORE).then_some(Self {
            block_bytes: pair.block_bytes,
            writes: pair.writes,
            iops: on_loop.value,
        })
    }

    /// Whether a figure of a workload lies at this ceiling.
    pub(super) fn bounds(&self, workload: &IoSpec, iops: f64) -> bool {
        let same = workload.block_bytes == self.block_bytes && workload.mix.writes() == self.writes;
        same && workload.mix.reads() != self.writes && iops >= self.iops * AT_CEILING
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_stats::Verdicts;

    fn pair() -> Pair {
        let on = |what| point(what, "", Path::new("/x"), 4096, true, 16);
        Pair { block_bytes: 4096, writes: true, on_loop: on("loop"), below: on("below") }
    }

    fn measured(value: f64) -> Vec<Measured> {
        vec![Measured::new(value, [value * 0.99, value * 1.01], 30, Verdicts::none()); 3]
    }

    #[test]
    fn a_loop_device_that_takes_nothing_bounds_nothing() {
        assert_eq!(Ceiling::of(&pair(), &measured(100.0), &measured(105.0)), None);
        assert!(Ceiling::of(&pair(), &measured(100.0), &measured(150.0)).is_some());
    }

    #[test]
    fn only_figures_at_the_ceiling_of_the_same_work_are_bounded() {
        let ceiling = Ceiling::of(&pair(), &measured(100.0), &measured(150.0)).unwrap();
        let mut spec = IoSpec::new("");
        spec.mix = Mix::Write;
        assert!(ceiling.bounds(&spec, 95.0) && !ceiling.bounds(&spec, 60.0));
        spec.block_bytes = 16384;
        assert!(!ceiling.bounds(&spec, 95.0), "another block size");
        (spec.block_bytes, spec.mix) = (4096, Mix::Read);
        assert!(!ceiling.bounds(&spec, 95.0), "another direction");
        spec.mix = Mix::Both { read_pct: 50 };
        assert!(!ceiling.bounds(&spec, 95.0), "a mix is not judged by one direction");
    }
}
