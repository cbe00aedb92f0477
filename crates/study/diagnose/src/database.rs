//! The database-shaped rung: how many pages per second can be flushed while commits and reads keep
//! to an objective.
//!
//! Objective: a high percentile of commits and of reads stays within the larger of twice what it is
//! at the calmest level and [`OBJECTIVE_US_MIN`], and every stream really gets its requested rate.
//! The percentile is taken over all replicates together, and it is the highest beyond which enough
//! requests lie, at enough separate moments. The page rate includes the doublewrite: its writes run
//! at the same time as the page writes.
//! Invariant: a rate is held where it and every lower one keep to the objective with their whole
//! intervals; it is missed where one lies beyond it with its whole interval and none above is held.
//! What lies between the two is not known.

use iostrata_plan::OpKind;
use iostrata_run::{OpFigures, PooledLatency, Replicate};
use iostrata_stats::Interval;

use crate::figure::{achieved_share, asked_per_s, median, op_of, stream_of};
use crate::observed::{EventIndex, PointLog};

/// The curve that its points stand on.
pub(crate) const CURVE: &str = "database";
/// A high percentile up to this is fine whatever it was without page writes: a commit on a good
/// drive without power-loss protection takes about as long, and a client sees little of it.
pub(crate) const OBJECTIVE_US_MIN: f64 = 2_000.0;
/// How much longer than at the calmest level a high percentile may be.
pub(crate) const OBJECTIVE_FACTOR: f64 = 2.0;
/// Share of a requested rate that counts as achieved.
const ACHIEVED_MIN: f64 = 0.95;
/// Percentiles that may be quoted, the highest first.
const PERCENTS: [f64; 4] = [99.0, 98.0, 95.0, 90.0];
/// Requests that must lie beyond a percentile that is quoted.
const BEYOND_MIN: f64 = 10.0;
/// What is quoted of runs in which nothing was taken together: the middle replicate's.
const PERCENT_OF_ONE: f64 = 99.0;

/// A high percentile of a latency, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tail {
    pub us: f64,
    pub us_ci95: Option<Interval>,
}

impl Tail {
    fn low(&self) -> f64 {
        self.us_ci95.map_or(self.us, |[low, _]| low)
    }

    fn high(&self) -> f64 {
        self.us_ci95.map_or(self.us, |[_, high]| high)
    }
}

/// A stream that did not get its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shortfall {
    /// What it does, in words.
    pub what: &'static str,
    /// Per second.
    pub asked: f64,
    /// Per second.
    pub done: f64,
}

/// One level of the load.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// Requested pages per second.
    pub pages_per_s: f64,
    /// Pages per second written.
    pub pages_done_per_s: f64,
    /// High percentile of commits.
    pub commit: Tail,
    /// Mean of commits, in microseconds.
    pub commit_mean_us: f64,
    /// High percentile of reads.
    pub read: Option<Tail>,
    /// Mean of reads, in microseconds.
    pub read_mean_us: Option<f64>,
    /// Shortest mean of reads of a replicate, in microseconds.
    pub read_mean_us_min: Option<f64>,
    /// Longest mean of reads of a replicate, in microseconds.
    pub read_mean_us_max: Option<f64>,
    /// Replicates behind it.
    pub n: u64,
    /// The stream that fell short the most.
    pub shortfall: Option<Shortfall>,
}

/// Whether a level keeps to the objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectiveOutcome {
    Yes,
    No,
    Unknown,
}

/// The levels by rising page rate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Database {
    levels: Vec<Level>,
    /// Which percentile of commits is quoted.
    pub commit_percent: f64,
    /// Which percentile of reads is quoted.
    pub read_percent: f64,
}

impl Database {
    pub fn of(log: &EventIndex<'_>) -> Self {
        let on_curve = log.points().iter().filter_map(|seen| {
            let place = seen.point.curve.as_ref().filter(|place| place.curve == CURVE)?;
            Some((place.x, seen))
        });
        let seen: Vec<(f64, &PointLog<'_>)> = on_curve.collect();
        let percent = |stream, op| percent_of(log, &seen, stream, op);
        let (commit_percent, read_percent) =
            (percent("redo", OpKind::Sync), percent("readers", OpKind::Read));
        let mut levels: Vec<Level> = seen
            .iter()
            .filter_map(|(x, seen)| level(log, *x, seen, [commit_percent, read_percent]))
            .collect();
        levels.sort_by(|a, b| a.pages_per_s.total_cmp(&b.pages_per_s));
        Self { levels, commit_percent, read_percent }
    }

    /// The level without page writes.
    pub fn idle(&self) -> Option<&Level> {
        self.levels.first().filter(|level| level.pages_per_s == 0.0)
    }

    /// Longest percentile of commits that is still fine, in microseconds; `None` where nothing was
    /// measured without page writes.
    pub fn commit_objective_us(&self) -> Option<f64> {
        self.idle()?;
        objective_us(self.levels.iter().map(|level| level.commit.us))
    }

    /// Longest percentile of reads that is still fine, in microseconds.
    pub fn read_objective_us(&self) -> Option<f64> {
        self.idle()?.read?;
        objective_us(self.levels.iter().filter_map(|level| level.read.map(|read| read.us)))
    }

    /// Whether a level keeps to the objective.
    pub fn held(&self, level: &Level) -> ObjectiveOutcome {
        let Some(commit_us) = self.commit_objective_us() else { return ObjectiveOutcome::No };
        let tails = [
            Some((level.commit, commit_us)),
            level.read.and_then(|read| Some((read, self.read_objective_us()?))),
        ];
        let tails = || tails.iter().flatten();
        if level.shortfall.is_some() || tails().any(|(tail, most)| tail.low() > *most) {
            ObjectiveOutcome::No
        } else if tails().all(|(tail, most)| tail.high() <= *most) {
            ObjectiveOutcome::Yes
        } else {
            ObjectiveOutcome::Unknown
        }
    }

    fn flushing(&self) -> impl DoubleEndedIterator<Item = &Level> {
        self.levels.iter().filter(|level| level.pages_per_s > 0.0)
    }

    /// The highest level with page writes that keeps to the objective, as every lower one does.
    pub fn carried(&self) -> Option<&Level> {
        self.flushing().take_while(|level| self.held(level) == ObjectiveOutcome::Yes).last()
    }

    /// The highest rate that was tried, in pages per second.
    pub fn highest(&self) -> Option<f64> {
        self.flushing().next_back().map(|level| level.pages_per_s)
    }

    /// Its place on the axis.
    pub fn carried_x(&self) -> Option<f64> {
        self.carried().map(|level| level.pages_per_s)
    }

    /// The lowest level that misses the objective and has none above it that keeps it: more page
    /// writes never make anything faster, so that a level below one that keeps it was disturbed.
    pub fn first_missed(&self) -> Option<&Level> {
        let highest_held = self.flushing().rfind(|level| self.held(level) == ObjectiveOutcome::Yes);
        let from = highest_held.map_or(0.0, |level| level.pages_per_s);
        let mut above = self.flushing().filter(|level| level.pages_per_s > from);
        above.find(|level| self.held(level) == ObjectiveOutcome::No)
    }
}

/// The objective from the calmest level: page writes never make anything faster, so that a level
/// without them that was slower than one with them was disturbed.
fn objective_us(tails_us: impl Iterator<Item = f64>) -> Option<f64> {
    Some((tails_us.reduce(f64::min)? * OBJECTIVE_FACTOR).max(OBJECTIVE_US_MIN))
}

fn pooled<'a>(
    log: &EventIndex<'a>,
    seen: &PointLog<'_>,
    stream: &str,
    op: OpKind,
) -> Option<&'a PooledLatency> {
    let all = &log.pooled(&seen.point.id)?.latencies;
    all.iter().find(|one| one.stream == stream && one.op == op)
}

/// The highest percentile beyond which enough requests lie at every level, at enough moments.
fn percent_of(
    log: &EventIndex<'_>,
    seen: &[(f64, &PointLog<'_>)],
    stream: &str,
    op: OpKind,
) -> f64 {
    let all: Vec<&PooledLatency> =
        seen.iter().filter_map(|(_, seen)| pooled(log, seen, stream, op)).collect();
    let Some(fewest) = all.iter().map(|one| one.n).min() else { return PERCENT_OF_ONE };
    let is_sampled = |percent: f64| {
        let mut found = all.iter().flat_map(|one| &one.percentiles);
        found.all(|one| one.percent != percent || one.is_sampled())
    };
    let enough = |percent: &f64| {
        (1.0 - percent / 100.0) * fewest as f64 >= BEYOND_MIN && is_sampled(*percent)
    };
    PERCENTS.into_iter().find(enough).unwrap_or(PERCENTS[PERCENTS.len() - 1])
}

/// The percentile over all replicates; the middle one's where nothing was taken together.
fn tail(
    log: &EventIndex<'_>,
    seen: &PointLog<'_>,
    stream: &'static str,
    op: OpKind,
    percent: f64,
) -> Option<Tail> {
    if let Some(pooled) = pooled(log, seen, stream, op) {
        let found = pooled.percentiles.iter().find(|one| one.percent == percent)?;
        return Some(Tail { us: found.us, us_ci95: found.us_ci95 });
    }
    let figures = seen.replicates.iter().filter_map(|one| op_of(stream_of(one, stream)?, op));
    let p99 = figures.map(|op| op.response_us.unwrap_or(op.latency_us).p99).collect();
    Some(Tail { us: median(p99)?, us_ci95: None })
}

fn level(
    log: &EventIndex<'_>,
    pages_per_s: f64,
    seen: &PointLog<'_>,
    [commit_percent, read_percent]: [f64; 2],
) -> Option<Level> {
    let all = |stream: &'static str, op: OpKind, take: fn(&OpFigures) -> f64| {
        let figures = seen.replicates.iter().filter_map(|one| op_of(stream_of(one, stream)?, op));
        figures.map(take).collect::<Vec<f64>>()
    };
    let of = |stream, op, take| median(all(stream, op, take));
    let mean = |op: &OpFigures| op.response_us.unwrap_or(op.latency_us).mean;
    let done = of("pages", OpKind::Write, |op| op.iops.value);
    if pages_per_s > 0.0 && done.is_none() {
        return None;
    }
    Some(Level {
        pages_per_s,
        pages_done_per_s: done.unwrap_or(0.0),
        commit: tail(log, seen, "redo", OpKind::Sync, commit_percent)?,
        commit_mean_us: of("redo", OpKind::Sync, mean)?,
        read: tail(log, seen, "readers", OpKind::Read, read_percent),
        read_mean_us: of("readers", OpKind::Read, mean),
        read_mean_us_min: all("readers", OpKind::Read, mean).into_iter().reduce(f64::min),
        read_mean_us_max: all("readers", OpKind::Read, mean).into_iter().reduce(f64::max),
        n: seen.replicates.len() as u64,
        shortfall: shortfall(seen),
    })
}

/// The streams by name, and what they do.
const STREAMS: [(&str, &str); 4] = [
    ("redo", "commits"),
    ("pages", "pages"),
    ("doublewrite", "doublewrite batches"),
    ("readers", "reads"),
];

/// The stream that got the least of its rate in the middle replicate, where that is too little.
/// Random arrivals of a short window may fall short by chance: two standard deviations are
/// forgiven.
fn shortfall(seen: &PointLog<'_>) -> Option<Shortfall> {
    let short = STREAMS.iter().filter_map(|&(name, what)| {
        let replicates = &seen.replicates;
        let share =
            median(replicates.iter().filter_map(|one| achieved_share(one, name)).collect())?;
        let counted = |one: &&&Replicate| {
            let stream = stream_of(one, name)?;
            let moved = stream.ops.iter().filter(|(kind, _)| *kind != OpKind::Sync);
            Some(moved.map(|(_, op)| op.ios).sum::<u64>() as f64)
        };
        let requests = median(replicates.iter().filter_map(|one| counted(&one)).collect())?;
        let asked = asked_per_s(seen.point, name)?;
        let is_short = share < ACHIEVED_MIN - 2.0 / requests.max(1.0).sqrt();
        is_short.then_some((share, Shortfall { what, asked, done: share * asked }))
    });
    short.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, shortfall)| shortfall)
}
