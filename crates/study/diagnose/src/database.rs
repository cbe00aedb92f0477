//! The database-shaped rung: how many pages per second can be flushed while commits and reads keep
//! to an objective.
//!
//! Objective: the 99th percentile of commits and of reads stays within the larger of twice what it
//! is at the calmest level and [`OBJECTIVE_US_MIN`], and every stream really gets the rate that it
//! asked for. The page rate includes the doublewrite: its writes run beside the page writes.
//! Invariant: more page writes never make commits faster, so that a level that keeps to the
//! objective speaks for all below it; a lower one that missed it was disturbed.

use iostrata_run::{OpFigures, Replicate};
use iostrata_spec::OpKind;

use crate::figure::{achieved_share, median, op_of, stream_of};
use crate::observed::{Observed, Seen};

/// The curve that its points stand on.
pub(crate) const CURVE: &str = "database";
/// A 99th percentile up to this is fine whatever it was without page writes: a commit on a good
/// drive without power-loss protection takes about as long, and a client sees little of it.
pub(crate) const OBJECTIVE_US_MIN: f64 = 2_000.0;
/// How much longer than at the calmest level a 99th percentile may be.
pub(crate) const OBJECTIVE_FACTOR: f64 = 2.0;
/// Share of an asked rate that counts as achieved.
const ACHIEVED_MIN: f64 = 0.95;

/// One level of the load.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// Pages per second asked for.
    pub pages_per_s: f64,
    /// Pages per second written.
    pub pages_done_per_s: f64,
    /// 99th percentile of commits, in microseconds.
    pub commit_p99_us: f64,
    /// Mean of commits, in microseconds.
    pub commit_mean_us: f64,
    /// 99th percentile of reads, in microseconds.
    pub read_p99_us: Option<f64>,
    /// Mean of reads, in microseconds.
    pub read_mean_us: Option<f64>,
    /// Shortest mean of reads of a replicate, in microseconds.
    pub read_mean_us_min: Option<f64>,
    /// Longest mean of reads of a replicate, in microseconds.
    pub read_mean_us_max: Option<f64>,
    /// Replicates behind it.
    pub n: u64,
    /// Whether every stream got its rate.
    pub achieved: bool,
}

/// The levels by rising page rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Database {
    levels: Vec<Level>,
}

impl Database {
    pub fn of(log: &Observed<'_>) -> Self {
        let on_curve = log.points().iter().filter_map(|seen| {
            let place = seen.point.curve.as_ref().filter(|place| place.curve == CURVE)?;
            level(place.x, seen)
        });
        let mut levels: Vec<Level> = on_curve.collect();
        levels.sort_by(|a, b| a.pages_per_s.total_cmp(&b.pages_per_s));
        Self { levels }
    }

    /// The level without page writes.
    pub fn idle(&self) -> Option<&Level> {
        self.levels.first().filter(|level| level.pages_per_s == 0.0)
    }

    /// Longest 99th percentile of commits that is still fine, in microseconds; `None` where nothing
    /// was measured without page writes.
    pub fn commit_objective_us(&self) -> Option<f64> {
        self.idle()?;
        objective_us(self.levels.iter().map(|level| level.commit_p99_us))
    }

    /// Longest 99th percentile of reads that is still fine, in microseconds.
    pub fn read_objective_us(&self) -> Option<f64> {
        self.idle()?.read_p99_us?;
        objective_us(self.levels.iter().filter_map(|level| level.read_p99_us))
    }

    /// Whether a level keeps to the objective.
    pub fn keeps_objective(&self, level: &Level) -> bool {
        let Some(commit_us) = self.commit_objective_us() else { return false };
        let reads = match (level.read_p99_us, self.read_objective_us()) {
            (Some(read), Some(objective)) => read <= objective,
            _ => true,
        };
        level.achieved && level.commit_p99_us <= commit_us && reads
    }

    /// The highest level with page writes that keeps to the objective.
    pub fn carried(&self) -> Option<&Level> {
        let flushing = self.levels.iter().filter(|level| level.pages_per_s > 0.0);
        flushing.rev().find(|level| self.keeps_objective(level))
    }

    /// Its place on the axis.
    pub fn carried_x(&self) -> Option<f64> {
        self.carried().map(|level| level.pages_per_s)
    }

    /// The lowest level above the one that is carried.
    pub fn first_beyond(&self) -> Option<&Level> {
        let carried = self.carried_x().unwrap_or(0.0);
        self.levels.iter().find(|level| level.pages_per_s > carried)
    }
}

/// The objective from the calmest level: page writes never make anything faster, so that a level
/// without them that was slower than one with them was disturbed.
fn objective_us(p99_us: impl Iterator<Item = f64>) -> Option<f64> {
    Some((p99_us.reduce(f64::min)? * OBJECTIVE_FACTOR).max(OBJECTIVE_US_MIN))
}

fn level(pages_per_s: f64, seen: &Seen<'_>) -> Option<Level> {
    let all = |stream: &'static str, op: OpKind, take: fn(&OpFigures) -> f64| {
        let figures = seen.replicates.iter().filter_map(|one| op_of(stream_of(one, stream)?, op));
        figures.map(take).collect::<Vec<f64>>()
    };
    let of = |stream, op, take| median(all(stream, op, take));
    let p99 = |op: &OpFigures| op.response_us.unwrap_or(op.latency_us).p99;
    let mean = |op: &OpFigures| op.response_us.unwrap_or(op.latency_us).mean;
    let done = of("pages", OpKind::Write, |op| op.iops.value);
    if pages_per_s > 0.0 && done.is_none() {
        return None;
    }
    Some(Level {
        pages_per_s,
        pages_done_per_s: done.unwrap_or(0.0),
        commit_p99_us: of("redo", OpKind::Sync, p99)?,
        commit_mean_us: of("redo", OpKind::Sync, mean)?,
        read_p99_us: of("readers", OpKind::Read, p99),
        read_mean_us: of("readers", OpKind::Read, mean),
        read_mean_us_min: all("readers", OpKind::Read, mean).into_iter().reduce(f64::min),
        read_mean_us_max: all("readers", OpKind::Read, mean).into_iter().reduce(f64::max),
        n: seen.replicates.len() as u64,
        achieved: ["redo", "pages", "doublewrite", "readers"]
            .iter()
            .all(|name| stream_achieved(&seen.replicates, name)),
    })
}

/// Whether a stream got its rate in the middle replicate. Random arrivals of a short window may
/// fall short by chance: two standard deviations are forgiven.
fn stream_achieved(replicates: &[&Replicate], name: &str) -> bool {
    let shares: Vec<f64> = replicates.iter().filter_map(|one| achieved_share(one, name)).collect();
    let Some(share) = median(shares) else { return true };
    let counted = replicates.iter().filter_map(|one| {
        let stream = stream_of(one, name)?;
        Some([&stream.read, &stream.write].into_iter().flatten().map(|op| op.ios).sum::<u64>())
    });
    let requests = median(counted.map(|count| count as f64).collect()).unwrap_or(0.0);
    share >= ACHIEVED_MIN - 2.0 / requests.max(1.0).sqrt()
}
