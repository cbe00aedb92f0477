//! Measures the points of a probe, block by block, stores every replicate, and takes the latencies
//! of a point's replicates together.
//!
//! Invariant: a finished replicate is durable before the next begins; points of a block take turns
//! in an order that reverses from one replicate to the next (ABBA), so that a drift of the device
//! falls on all alike. A point that fails is named and left out; the probe goes on.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use iostrata_diagnose::Suspicion;
use iostrata_linux::host::{KernelLog, Root, Scope, describe_path};
use iostrata_load::IoLoad;
use iostrata_plan::{OpKind, Point};
use iostrata_run::host::IoLimit;
use iostrata_run::{
    Event, OpFigures, PooledLatencies, PooledLatency, ProbeHost, Replicate, Unavailable,
};
use iostrata_stats::{LatencyHistogram, Measured, pooled_percentiles};

use super::blocks::{self, Block, Moment, Part};
use super::budget::{Announcement, ProbeOptions, Shape};
use super::prepare::{self, Pace, prepare};
use crate::{Pipeline, StudyError};

/// Share of the time that is kept for confirming what is suspected.
const CONFIRM_SHARE: f64 = 0.15;
/// What is kept of it for what the last parts may bring.
const CONFIRM_SHARE_END: f64 = 0.04;
/// Points are never cut shorter than this for lack of time: the last ones are left out instead.
const MIN_TIME_FACTOR: f64 = 0.05;
/// Replicates that confirm or clear a suspicion.
const CONFIRMATIONS: u32 = 4;

/// A probe that is under way.
pub(super) struct Probe<'a> {
    pub options: &'a ProbeOptions,
    pub announcement: &'a Announcement,
    pub host: &'a ProbeHost,
    pub pipeline: Pipeline<'a>,
    /// Limits of control groups as they were read last.
    pub limits: Vec<IoLimit>,
    pub part: Part,
    /// Seconds of the run after which nothing more is begun.
    pub over_at_s: f64,
    pub share_done: f64,
    /// How fast files are filled.
    pub fill_bytes_per_s: f64,
    /// How long overwriting the files took.
    pub precondition_s: f64,
    /// The kernel log since the probe began.
    pub kernel_log: KernelLog,
    /// Whether the storage failed: it gets no more requests.
    pub is_broken: bool,
}

impl Probe<'_> {
    /// Measures every block of a part.
    pub fn run_part(&mut self, part: Part, shape: &Shape, share: f64) -> Result<(), StudyError> {
        if matches!(part, Part::Reference(_)) {
            self.read_limits()?;
        }
        let sustained_max = self.announcement.sustained_write_bytes_max;
        let begun = self.pipeline.events.len();
        let blocks = part.blocks(shape, &self.pipeline.events, sustained_max);
        for block in &blocks {
            self.run_block(block, share / blocks.len() as f64)?;
        }
        self.pipeline.files.drop_used_up();
        for pooled in pooled(&self.pipeline.events[begun..]) {
            self.pipeline.store(Event::Pooled(Box::new(pooled)))?;
        }
        Ok(())
    }

    /// Overwrites the file that is read, over and over, before anything is measured: what a drive
    /// or a volume does only while it is fresh is then over.
    pub fn precondition(&mut self, shape: &Shape) -> Result<(), StudyError> {
        let (bytes_max, time_max) =
            (self.announcement.precondition_bytes_max, self.announcement.precondition_time_max);
        if bytes_max == 0 {
            return Ok(());
        }
        let began_s = self.pipeline.elapsed_s();
        self.part = Part::Precondition;
        self.run_block(&blocks::precondition(shape, bytes_max, time_max), 0.0)?;
        self.precondition_s = self.pipeline.elapsed_s() - began_s;
        Ok(())
    }

    /// Seconds that filling the sets which are not there yet will take.
    pub fn fill_left_s(&self, shape: &Shape) -> f64 {
        if self.options.read_only || self.fill_bytes_per_s <= 0.0 {
            return 0.0;
        }
        let all = shape.read_bytes as f64 + self.announcement.sets() * shape.write_bytes as f64;
        (all - self.pipeline.files.filled_bytes() as f64).max(0.0) / self.fill_bytes_per_s
    }

    /// How much shorter the points of these parts must be for the whole to keep its bound, with
    /// time left for points that confirm a suspicion.
    pub fn time_factor(&self, parts: &[Part], fill_left_s: f64) -> f64 {
        let all_s = self.announcement.usual_time().as_secs_f64();
        let was_confirmed = !parts.contains(&Part::Database);
        let reserve_s = all_s * if was_confirmed { CONFIRM_SHARE_END } else { CONFIRM_SHARE };
        let gone_s = self.pipeline.elapsed_s() - self.precondition_s;
        let left_s = (all_s - reserve_s - fill_left_s - gone_s).max(0.0);
        let planned_s: f64 = parts.iter().map(|part| part.planned_s()).sum();
        (left_s / planned_s).clamp(MIN_TIME_FACTOR, 1.0)
    }

    /// The part's share of the progress that is left.
    pub fn share_of(&self, part: Part, parts: &[Part]) -> f64 {
        let planned_s: f64 = parts.iter().map(|part| part.planned_s()).sum();
        (1.0 - self.share_done).max(0.0) * part.planned_s() / planned_s
    }

    pub fn prepare(&mut self) -> Result<Option<Shape>, StudyError> {
        let stop = self.pipeline.stop();
        let listener = &mut *self.pipeline.listener;
        let mut filling = |progress: iostrata_io::Progress| {
            let total = iostrata_stats::units::bytes(progress.total_bytes as f64);
            listener.progress(0.0, &format!("filling {total} with random data"));
        };
        let mut prepared =
            prepare(self.options, self.announcement, &mut self.pipeline.files, stop, &mut filling)?;
        self.pipeline.store_clock()?;
        if prepared.shape.is_none()
            && let Some(others) = prepare::others(&self.host.path)
        {
            prepared.unavailable.iter_mut().for_each(|one| one.why.push_str(&others));
        }
        let unavailable = prepared.unavailable;
        let limits = prepare::limits_of(&self.host.path);
        self.pipeline.store_missing(limits.into_iter().chain(unavailable))?;
        self.fill_bytes_per_s = prepared.fill_bytes_per_s;
        Ok(prepared.shape)
    }

    /// Whether a signal came, the storage failed or the time is up.
    pub fn is_over(&self) -> bool {
        self.is_broken
            || self.pipeline.is_interrupted()
            || self.pipeline.elapsed_s() > self.over_at_s
    }

    /// Bytes that may have been written by the end of the current part: what the sustained point
    /// needs is kept for it.
    fn budget(&self) -> u64 {
        let all = self.announcement.written_bytes_max;
        match self.part {
            Part::Sustained | Part::Reference(Moment::End) | Part::Transactions => all,
            _ => all.saturating_sub(self.announcement.sustained_write_bytes_max),
        }
    }

    fn run_block(&mut self, block: &Block, share: f64) -> Result<(), StudyError> {
        let first = self.next_replicate(&block.points);
        self.run_points(&block.points, first..first + block.replicates, share)
    }

    /// Reads the limits of control groups again, and looks for their effect where they changed.
    fn read_limits(&mut self) -> Result<(), StudyError> {
        let root = Root::system();
        let Ok(path) = describe_path(&root, &self.options.dir) else { return Ok(()) };
        if path.limits == self.limits {
            return Ok(());
        }
        self.pipeline.meter.look_at(Scope::of(&root, &path));
        self.limits.clone_from(&path.limits);
        self.pipeline.store(Event::Limits { at_s: self.pipeline.elapsed_s(), limits: path.limits })
    }

    /// Measures points in turns, the order reversed from one replicate to the next.
    fn run_points(
        &mut self,
        points: &[Point],
        replicates: std::ops::Range<u32>,
        share: f64,
    ) -> Result<(), StudyError> {
        let mut points: Vec<&Point> = points.iter().collect();
        let step = share / (points.len().max(1) * replicates.len().max(1)) as f64;
        for replicate in replicates {
            let mut failed = Vec::new();
            for point in &points {
                if self.is_over() {
                    return Ok(());
                }
                if let Err(error) = self.run_point(point, replicate)? {
                    failed.push(point.id.clone());
                    self.store_failure(&point.title, &error)?;
                }
                self.share_done += step;
            }
            points.retain(|point| !failed.contains(&point.id));
            points.reverse();
        }
        Ok(())
    }

    /// Names a point that failed. Where the storage itself did, the kernel's own words are kept.
    fn store_failure(&mut self, what: &str, error: &StudyError) -> Result<(), StudyError> {
        let mut missing = error.missing(what);
        if error.is_broken() {
            self.is_broken = true;
            missing.kernel_lines = self.kernel_log.since(&prepare::devices(&self.host.path));
        }
        self.pipeline.store(Event::Unavailable(missing))
    }

    /// Measures a point once. The inner result is the point's own failure; the outer one ends the
    /// probe.
    pub fn run_point(
        &mut self,
        point: &Point,
        replicate: u32,
    ) -> Result<Result<(), StudyError>, StudyError> {
        let asked: u64 =
            point.streams.iter().filter_map(|stream| stream.spec.write_bytes_max).sum();
        if asked > 0 && self.pipeline.written_bytes() + asked > self.budget() {
            let why = format!(
                "the write budget of {} is used up",
                iostrata_stats::units::bytes(self.announcement.written_bytes_max as f64)
            );
            let left_out = Unavailable::left_out(point.title.as_str(), why, "--max-write");
            self.pipeline.store(Event::Unavailable(left_out))?;
            return Ok(Ok(()));
        }
        let (share, title) = (self.share_done, self.part.title());
        let text = format!("{title}: {}", point.title);
        self.pipeline.listener.progress(share, &text);
        let left_s = self.over_at_s - self.pipeline.elapsed_s();
        let left = Duration::from_secs_f64(left_s.max(0.0));
        let began = Instant::now();
        let clock = || began.elapsed();
        let prepared = Pace::until(left, &clock, self.pipeline.stop()).prepare(
            &mut self.pipeline.files,
            &point.streams,
            &mut |_| (),
        );
        if let Err(error) = prepared {
            let error = StudyError::from(error);
            return Ok(if self.is_over() && !error.is_broken() { Ok(()) } else { Err(error) });
        }
        let load = IoLoad::new(&point.streams, self.pipeline.files.files(&point.streams));
        let measured = self.pipeline.measure(point, replicate, &load, &|_| share, &text, &mut []);
        let mut measurement = match measured {
            Ok(measurement) => measurement,
            Err(error) => return Ok(Err(error)),
        };
        if measurement.interrupted {
            return Ok(Ok(()));
        }
        if let Some(error) = measurement.error.take() {
            return Ok(Err(error));
        }
        self.pipeline.store(Event::Replicate(Box::new(measurement.replicate)))?;
        Ok(Ok(()))
    }

    /// Measures the points that confirm or clear what `diagnose` suspects.
    pub fn confirm(&mut self) -> Result<(), StudyError> {
        self.read_limits()?;
        let suspicions = iostrata_diagnose::suspect(&self.pipeline.events, self.host);
        for Suspicion { id, confirm } in &suspicions {
            if self.is_over() {
                return Ok(());
            }
            let confirm_ids = confirm.iter().map(|point| point.id.clone()).collect();
            self.pipeline.store(Event::Suspected { id: (*id).to_owned(), confirm: confirm_ids })?;
            let first = self.next_replicate(confirm);
            self.run_points(confirm, first..first + CONFIRMATIONS, 0.0)?;
        }
        Ok(())
    }

    /// Tries out what was advised, before and after, inside the probe's own files.
    pub fn verify(&mut self) -> Result<(), StudyError> {
        let groups = iostrata_diagnose::verify_points(self.host, &self.pipeline.events);
        if groups.is_empty() {
            let why = "nothing was advised that can be tried without root and without a server";
            let missing = Unavailable::impossible("--verify", why, None);
            return self.pipeline.store(Event::Unavailable(missing));
        }
        for points in groups {
            let first = self.next_replicate(&points);
            self.run_points(&points, first..first + CONFIRMATIONS, 0.0)?;
        }
        Ok(())
    }

    /// The first replicate number that none of these points has used.
    pub fn next_replicate(&self, points: &[Point]) -> u32 {
        let all = self.pipeline.events.iter().filter_map(Event::replicate);
        let used = all.filter(|one| points.iter().any(|point| point.id == one.point.id));
        used.map(|one| one.replicate + 1).max().unwrap_or(0)
    }
}

// Latencies of all replicates of a point taken together.
//
// A window of a second holds a few hundred commits: too few for their 99th percentile, and too
// short for pauses that come once a second. The replicates together are not.

const PERCENTS: [f64; 6] = [50.0, 90.0, 95.0, 98.0, 99.0, 99.9];

/// The points with several streams among the events of a part: those are rated and compared by
/// their slowest requests.
fn pooled(events: &[Event]) -> Vec<PooledLatencies> {
    let mut points: BTreeMap<&str, Vec<&Replicate>> = BTreeMap::new();
    let replicates = events.iter().filter_map(Event::replicate);
    for replicate in replicates.filter(|one| one.point.streams.len() > 1) {
        points.entry(&replicate.point.id).or_default().push(replicate);
    }
    let pooled = |(point, replicates): (&str, Vec<&Replicate>)| PooledLatencies {
        point: point.to_owned(),
        replicates: replicates.iter().map(|one| one.replicate).collect(),
        latencies: latencies(&replicates),
    };
    points.into_iter().map(pooled).collect()
}

/// By stream and kind of request.
fn latencies(replicates: &[&Replicate]) -> Vec<PooledLatency> {
    let mut latencies: BTreeMap<(usize, OpKind), Vec<&OpFigures>> = BTreeMap::new();
    for replicate in replicates {
        for (at, stream) in replicate.streams.iter().enumerate() {
            stream.ops.iter().for_each(|(op, figures)| {
                latencies.entry((at, op)).or_default().push(figures);
            });
        }
    }
    let name = |at: usize| replicates[0].streams[at].name.clone();
    let pooled = |((at, op), figures): ((usize, OpKind), Vec<&OpFigures>)| {
        let parts: Vec<(&LatencyHistogram, &Measured)> =
            figures.into_iter().map(OpFigures::response).collect();
        let n = parts.iter().map(|(histogram, _)| histogram.count()).sum();
        let percentiles = pooled_percentiles(&parts, &PERCENTS);
        PooledLatency { stream: name(at), op, n, percentiles }
    };
    latencies.into_iter().map(pooled).collect()
}
