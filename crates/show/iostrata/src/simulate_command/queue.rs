//! `iostrata simulate queue`: every queue size on every device under every kernel, in virtual time.
//!
//! Invariant: what comes out depends on the arguments alone, not on the machine or its number of
//! processors; only `duration_s` does. A case that a kernel makes of several queue sizes (today's
//! bound) is simulated once.

use std::collections::BTreeMap;
use std::time::Instant;

use iostrata_diagnose::conclude_queue;
use iostrata_plan::disk::{DiskModel, DiskSpec};
use iostrata_run::{
    KernelThen, QueueDevice, QueueDocument, QueuePoint, QueueReader, QueueReplicate, QueueRun,
    RunKind, RunResult,
};
use iostrata_sim::drive::DriveFacts;
use iostrata_sim::insert::{
    self, InsertError, InsertOutcome, InsertPlan, InsertPoint, InsertReader, POST_QUEUE_SIZES,
};
use iostrata_sim::model::{self, MeasuredDisk};
use iostrata_sim::queue::requests_taken;
use iostrata_stats::{LatencyUs, Measured, Verdict, Verdicts, combine};
use serde_json::{Value, json};

use super::{on_all_processors, stopped_before};
use crate::args::QueueArgs;
use crate::disk_command::measured;
use crate::display::Display;
use crate::exit_error::ExitError;
use crate::run_sink::RunSink;
use crate::signals::Interruption;

/// The post's disk (both of its mirror do every write), the same one command at a time, the array
/// of a commenter (without a protected cache: how long that one hides the disks depends on when it
/// was last empty), and flash.
const DEVICES: [&str; 4] =
    ["hdd-15k", "hdd-15k,queue=1", "raid10-hdd,spindles=34,cache=off", "ssd-sata"];
/// Rows at which runs are compared: where the post has figures of its large queue in full work,
/// with an index of 2.4 GB that memory holds with room to spare.
const COMPARED_ROWS: u64 = 41_000_000;
/// Queue sizes of the post's own figures, at which the growth of the table is followed.
const POST_OWN_SIZES: [u32; 2] = [128, 100_000];
/// Fewest replicates: three pairs are the fewest that a conclusion may rest on.
const REPLICATES_MIN: u32 = 3;
/// Most replicates, however long the requested span.
const REPLICATES_MAX: u32 = 12;

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &QueueArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let started = Instant::now();
    let display = Display::new(args.common.printing.quiet);
    let bench = Bench::new(args)?;
    let out = args.common.out.as_deref();
    let mut sink = RunSink::begin(RunKind::SimulateQueue, "simulate-queue", out, &display)?;
    sink.say_whether_kept();
    let deadline = args.common.max_time.map(|time| started + time);
    let over =
        || interruption.is_set() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let outcomes = bench.simulate(&over, &display);
    display.finish();
    let mut document = bench.document(args, &outcomes?);
    conclude_queue(&mut document);
    document.duration_s = started.elapsed().as_secs_f64();
    document.report = sink.report();
    if !sink.keep_with_report(&document) {
        document.report = None;
    }
    let result = RunResult::SimulateQueue(Box::new(document));
    sink.print(&result, &[], args.common.printing.json)?;
    sink.end(match interruption.is_set() {
        true => Err(ExitError::Interrupted(interruption.exit_code())),
        false => Ok(()),
    })
}

/// A device with what it takes to build it.
struct Device {
    spec: DiskSpec,
    measured: Option<MeasuredDisk>,
    described: QueueDevice,
}

/// What is simulated once: queue sizes that a kernel makes the same are one case.
struct Case {
    device: usize,
    kernel: KernelThen,
    taken: u32,
    /// The load by itself.
    plan: InsertPlan,
    /// The same where runs are compared, with a reader at the same time.
    with_reader: Option<InsertPlan>,
}

/// One replicate of one case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    replicate: u32,
    case: usize,
}

/// Everything to simulate.
struct Bench {
    devices: Vec<Device>,
    kernels: Vec<KernelThen>,
    nr_requests: Vec<u32>,
    cases: Vec<Case>,
    span_s: f64,
}

/// Outcomes by case, each with its replicates in order as far as they came.
struct Outcomes {
    by_case: Vec<Vec<InsertOutcome>>,
    is_complete: bool,
}

impl Bench {
    fn new(args: &QueueArgs) -> Result<Self, ExitError> {
        let specs: Vec<DiskSpec> = match args.device.as_slice() {
            [] => DEVICES.iter().filter_map(|text| text.parse().ok()).collect(),
            lists => lists.iter().flat_map(|list| list.0.clone()).collect(),
        };
        let mut devices: Vec<Device> = Vec::new();
        for spec in specs {
            if devices.iter().all(|device| device.spec != spec) {
                devices.push(device(spec, args.common.seed)?);
            }
        }
        let nr_requests =
            args.nr_requests.as_ref().map_or(POST_QUEUE_SIZES.to_vec(), |list| list.0.clone());
        let mut bench = Self {
            devices,
            kernels: args.kernel.0.clone(),
            nr_requests,
            cases: Vec::new(),
            span_s: args.span.as_secs_f64(),
        };
        bench.cases = bench.cases(args);
        Ok(bench)
    }

    fn cases(&self, args: &QueueArgs) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::new();
        for (device, kernel, nr_requests) in self.every() {
            let mut plan = self.plan(device, kernel, nr_requests);
            plan.seed = args.common.seed;
            plan.replicates = 1;
            let mut with_reader = plan.clone();
            with_reader.rows_at = vec![COMPARED_ROWS];
            with_reader.has_reader = true;
            // The way to that size is followed on the first device at the post's own queue sizes,
            // with which everything else is compared.
            if device > 0 || !POST_OWN_SIZES.contains(&nr_requests) {
                plan.rows_at = vec![COMPARED_ROWS];
            }
            let taken = self.taken(device, &plan);
            let same =
                |case: &Case| (case.device, case.kernel, case.taken) == (device, kernel, taken);
            if !cases.iter().any(same) {
                let with_reader = args.reader.then_some(with_reader);
                cases.push(Case { device, kernel, taken, plan, with_reader });
            }
        }
        cases
    }

    fn plan(&self, device: usize, kernel: KernelThen, nr_requests: u32) -> InsertPlan {
        InsertPlan::post(self.devices[device].spec.clone(), nr_requests, kernel)
    }

    /// Every run: device, kernel, requested queue size.
    fn every(&self) -> impl Iterator<Item = (usize, KernelThen, u32)> {
        (0..self.devices.len()).flat_map(move |device| {
            self.kernels.iter().flat_map(move |kernel| {
                self.nr_requests.iter().map(move |nr_requests| (device, *kernel, *nr_requests))
            })
        })
    }

    fn taken(&self, device: usize, plan: &InsertPlan) -> u32 {
        let tags = self.devices[device].described.queue_depth;
        requests_taken(plan.kernel, plan.scheduler, tags, plan.nr_requests)
    }

    /// Simulates every case until `is_over`: replicate by replicate, so that what is cut off is
    /// replicates and not cases.
    fn simulate(
        &self,
        is_over: &(dyn Fn() -> bool + Sync),
        display: &Display,
    ) -> Result<Outcomes, ExitError> {
        let jobs = |replicates: std::ops::Range<u32>| -> Vec<Job> {
            let all = |replicate| (0..self.cases.len()).map(move |case| Job { replicate, case });
            replicates.flat_map(all).collect()
        };
        let first = jobs(0..REPLICATES_MIN);
        let mut found = self.work(&first, is_over, display)?;
        let more = jobs(REPLICATES_MIN..self.replicates(&found));
        let asked = first.len() + more.len();
        found.extend(self.work(&more, is_over, display)?);
        let is_complete = found.len() == asked;
        found.sort_by_key(|(job, _)| *job);
        let mut by_case: Vec<Vec<InsertOutcome>> = self.cases.iter().map(|_| Vec::new()).collect();
        for (job, outcome) in found {
            // Up to the first that is missing: the same place has the same seed everywhere.
            if by_case[job.case].len() == job.replicate as usize {
                by_case[job.case].push(outcome);
            }
        }
        Ok(Outcomes { by_case, is_complete })
    }

    /// Replicates with which everything together lasts as long as the span, from the first ones.
    fn replicates(&self, found: &[(Job, InsertOutcome)]) -> u32 {
        let outcomes: Vec<&InsertOutcome> = found.iter().map(|(_, outcome)| outcome).collect();
        let each_s = measured_s(&outcomes) / f64::from(REPLICATES_MIN);
        let wanted = if each_s > 0.0 { (self.span_s / each_s).ceil() } else { 0.0 };
        (wanted as u32).clamp(REPLICATES_MIN, REPLICATES_MAX)
    }

    /// Does jobs on all processors until `is_over`.
    fn work(
        &self,
        jobs: &[Job],
        is_over: &(dyn Fn() -> bool + Sync),
        display: &Display,
    ) -> Result<Vec<(Job, InsertOutcome)>, ExitError> {
        let told = |at: usize, share: f64| {
            let case = &self.cases[jobs[at].case];
            let text = format!("{}, nr_requests {}", case.plan.disk, case.taken);
            display.progress(share, &text);
        };
        let found = on_all_processors(jobs.len(), is_over, |at| self.one(jobs[at]), told);
        let checked = |(at, outcome): (usize, Result<InsertOutcome, InsertError>)| match outcome {
            Ok(outcome) => Ok((jobs[at], outcome)),
            Err(error) => Err(ExitError::Usage(error.to_string())),
        };
        found.into_iter().map(checked).collect()
    }

    fn one(&self, job: Job) -> Result<InsertOutcome, InsertError> {
        let case = &self.cases[job.case];
        let measured = self.devices[case.device].measured.as_ref();
        let run = |plan: &InsertPlan| {
            let mut plan = plan.clone();
            // Spread far, so that neighbouring seeds of a user share no replicate.
            let spread = u64::from(job.replicate).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            plan.seed = plan.seed.wrapping_add(spread);
            insert::run(&plan, measured)
        };
        let Some(with_reader) = &case.with_reader else { return run(&case.plan) };
        let mut beside = run(with_reader)?;
        if case.plan.rows_at == with_reader.rows_at {
            return Ok(beside);
        }
        let mut outcome = run(&case.plan)?;
        let compared = outcome.points.iter_mut().find(|point| point.rows == COMPARED_ROWS);
        if let (Some(point), Some(beside)) = (compared, beside.points.first_mut()) {
            point.reader = beside.reader.take();
        }
        Ok(outcome)
    }

    /// What was simulated, nothing concluded from it yet.
    fn document(&self, args: &QueueArgs, outcomes: &Outcomes) -> QueueDocument {
        let mut runs: Vec<QueueRun> = Vec::new();
        let mut unavailable = Vec::new();
        for (device, kernel, nr_requests) in self.every() {
            let plan = self.plan(device, kernel, nr_requests);
            let taken = self.taken(device, &plan);
            let is_of =
                |case: &Case| (case.device, case.kernel, case.taken) == (device, kernel, taken);
            let place = self.cases.iter().position(is_of);
            let simulated = SimulatedQueue {
                device: &self.devices[device].spec,
                kernel,
                nr_requests,
                outcomes: place.into_iter().flat_map(|at| &outcomes.by_case[at]).collect(),
            };
            match queue_run(&simulated, COMPARED_ROWS) {
                Some(run) => runs.push(run),
                None => {
                    let what = format!("{}, {kernel}, nr_requests {nr_requests}", plan.disk);
                    unavailable.push(stopped_before(what));
                }
            }
        }
        QueueDocument {
            devices: self.devices.iter().map(|device| device.described.clone()).collect(),
            runs,
            unavailable,
            span_s: self.span_s,
            seed: args.common.seed,
            method: figures(&outcomes.by_case),
            limits: limits(),
            interrupted: !outcomes.is_complete,
            ..QueueDocument::default()
        }
    }
}

/// A device that can be built, or what is wrong with it.
fn device(spec: DiskSpec, seed: u64) -> Result<Device, ExitError> {
    let measured = measured(&spec)?;
    let capacity_bytes = InsertPlan::post(spec.clone(), 128, KernelThen::Today).capacity_bytes;
    let drive = model::drive(&spec, capacity_bytes, measured.as_ref(), seed)
        .map_err(|error| ExitError::Usage(format!("--device {spec}: {error}")))?;
    let described = device_words(&spec, &drive.facts());
    Ok(Device { spec, measured, described })
}

/// Figures of the method by name, the unit in the name.
pub fn figures(outcomes: &[Vec<InsertOutcome>]) -> BTreeMap<String, Value> {
    let all = || outcomes.iter().flatten().flat_map(|outcome| &outcome.points);
    let measured_s: f64 = all().map(|point| point.measured_s).sum();
    let windows = all().map(|point| 1 + usize::from(point.reader.is_some())).sum::<usize>();
    BTreeMap::from([
        ("windows".to_owned(), json!(windows)),
        ("virtual_time_of_the_load_alone_s".to_owned(), json!(measured_s)),
    ])
}

/// What the model leaves out, in sentences.
pub fn limits() -> Vec<String> {
    [
        "On flash under the kernel of 2009 a small queue lets the load run in either of two courses, \
         with the writer stopped by each journal commit or not; figures there are not steady.",
        "Today's bounds are examples that were measured: a scheduler takes at most 2,048 requests on \
         a virtio disk, without one the device's own number of commands is the bound.",
        "The kernel's choice of pages to forget is taken as the least recently used; the few reads \
         that the post shows at 77 million rows do not follow from that.",
        "Devices are models with parameters from data sheets, not the post's own; docs/disks.md has \
         them.",
        "The post's mirrored pair is modelled as one of its disks with that disk's own write cache, \
         since both do every write. Behind a controller with a protected cache (raid10-hdd) a pair \
         behaves differently.",
        "At each index size the load is simulated once it is steady; the way from an empty table to \
         there is put together from those rates.",
        "Processor time, locks of the server and the table's own reads of data beyond the caches \
         are not in the model.",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// One queue size on one device under one kernel, with every replicate that was simulated.
pub struct SimulatedQueue<'a> {
    pub device: &'a DiskSpec,
    pub kernel: KernelThen,
    pub nr_requests: u32,
    /// One outcome for each replicate, each with one window at each index size.
    pub outcomes: Vec<&'a InsertOutcome>,
}

/// Virtual time of all windows without the reader.
pub fn measured_s(outcomes: &[&InsertOutcome]) -> f64 {
    outcomes.iter().flat_map(|outcome| &outcome.points).map(|point| point.measured_s).sum()
}

/// The run; nothing when no replicate of it was simulated.
fn queue_run(simulated: &SimulatedQueue<'_>, compared_rows: u64) -> Option<QueueRun> {
    let first = simulated.outcomes.first()?;
    let point = |place: usize| {
        let replicates: Option<Vec<&InsertPoint>> =
            simulated.outcomes.iter().map(|outcome| outcome.points.get(place)).collect();
        point(&replicates?, first.points.len() > 1)
    };
    let points: Vec<QueuePoint> = (0..first.points.len()).filter_map(point).collect();
    let compared = points.iter().find(|point| point.rows == compared_rows).or(points.last())?;
    let mut verdicts = Verdicts::none();
    points.iter().for_each(|point| verdicts.merge(&point.verdicts));
    Some(QueueRun {
        nr_requests: simulated.nr_requests.into(),
        nr_requests_taken: first.nr_requests_taken.into(),
        device: simulated.device.to_string(),
        kernel: simulated.kernel,
        index_bytes: compared.index_bytes,
        rows_per_hour: compared.rows_per_hour,
        rows_per_hour_ci95: compared.rows_per_hour_ci95,
        rows_per_hour_n: compared.rows_per_hour_n,
        iostat: compared.iostat,
        reader: compared.reader.clone(),
        measured_s: measured_s(&simulated.outcomes),
        points,
        verdicts,
    })
}

/// Replicates at one size. Without growth there was no smaller size before it, and the time to it
/// is not known.
fn point(replicates: &[&InsertPoint], has_growth: bool) -> Option<QueuePoint> {
    let first = replicates.first()?;
    let mut rows_per_hour = mean(replicates.iter().map(|one| one.rows_per_hour.value))?;
    replicates.iter().for_each(|one| rows_per_hour.verdicts.merge(&one.rows_per_hour.verdicts));
    if rows_per_hour.ci95.is_some_and(|[low, high]| high - low > 2.0 * rows_per_hour.value) {
        // Half the interval is more than the figure: the replicates ended in different courses.
        rows_per_hour.verdicts.add(Verdict::NotSteady);
    }
    let reached_h = mean(replicates.iter().map(|one| one.reached_h)).filter(|_| has_growth);
    let device = replicates.iter().map(|one| one.device).reduce(|sum, one| sum.plus(&one))?;
    let readers: Option<Vec<&InsertReader>> =
        replicates.iter().map(|one| one.reader.as_ref()).collect();
    Some(QueuePoint {
        rows: first.rows,
        index_bytes: first.index_bytes,
        rows_per_hour: rows_per_hour.value,
        rows_per_hour_ci95: rows_per_hour.ci95,
        rows_per_hour_n: rows_per_hour.n,
        reached_h: reached_h.as_ref().map(|hours| hours.value),
        reached_h_ci95: reached_h.as_ref().and_then(|hours| hours.ci95),
        reached_h_n: reached_h.as_ref().map_or(0, |hours| hours.n),
        iostat: device.iostat(),
        reader: readers.and_then(|readers| reader(&readers)),
        replicates: replicates.iter().map(|one| replicate(one, has_growth)).collect(),
        verdicts: rows_per_hour.verdicts,
    })
}

fn replicate(point: &InsertPoint, has_growth: bool) -> QueueReplicate {
    QueueReplicate {
        rows_per_hour: point.rows_per_hour.value,
        reached_h: has_growth.then_some(point.reached_h),
        iostat: point.device.iostat(),
        reader_us_p99: point.reader.as_ref().map(|reader| reader.latency_us.p99),
    }
}

/// A reader over its replicates: percentiles are means of the replicates' percentiles.
fn reader(replicates: &[&InsertReader]) -> Option<QueueReader> {
    let of = |field: fn(&LatencyUs) -> f64| {
        let sum: f64 = replicates.iter().map(|one| field(&one.latency_us)).sum();
        sum / replicates.len() as f64
    };
    let p99 = mean(replicates.iter().map(|one| one.latency_us.p99))?;
    let rows_per_hour = mean(replicates.iter().map(|one| one.rows_per_hour.value))?;
    let latency_us = LatencyUs {
        mean: of(|us| us.mean),
        p50: of(|us| us.p50),
        p95: of(|us| us.p95),
        p99: p99.value,
        p99_9: of(|us| us.p99_9),
        max: replicates.iter().map(|one| one.latency_us.max).fold(0.0, f64::max),
    };
    Some(QueueReader {
        latency_us,
        latency_us_p99_ci95: p99.ci95,
        latency_us_p99_n: p99.n,
        rows_per_hour: rows_per_hour.value,
        rows_per_hour_ci95: rows_per_hour.ci95,
        rows_per_hour_n: rows_per_hour.n,
        reads: replicates.iter().map(|one| one.reads).sum(),
    })
}

/// A mean over replicates with the interval between them: each is one sample.
fn mean(values: impl Iterator<Item = f64>) -> Option<Measured> {
    let sample = |value| Measured { value, ci95: None, n: 1, verdicts: Verdicts::none() };
    combine(&values.map(sample).collect::<Vec<Measured>>())
}

/// Disks of an array whose number is not given: one mirrored pair.
const SPINDLES_DEFAULT: u32 = 2;

/// The device as the document describes it.
pub fn device_words(spec: &DiskSpec, facts: &DriveFacts) -> QueueDevice {
    let spindles = match spec.model {
        DiskModel::Raid10Hdd => spec.spindles.unwrap_or(SPINDLES_DEFAULT),
        _ => 1,
    };
    QueueDevice {
        device: spec.to_string(),
        title: title(spec, spindles),
        is_rotational: facts.is_rotational,
        spindles,
        queue_depth: facts.queue_depth,
    }
}

fn title(spec: &DiskSpec, spindles: u32) -> String {
    let mut title = match &spec.model {
        DiskModel::Hdd7k2 => "a disk of 7,200 turns".to_owned(),
        DiskModel::Hdd10k => "a disk of 10,000 turns".to_owned(),
        DiskModel::Hdd15k => "a disk of 15,000 turns".to_owned(),
        DiskModel::Raid10Hdd if spindles == 2 => "two disks in RAID 1".to_owned(),
        DiskModel::Raid10Hdd => format!("{spindles} disks in RAID 10"),
        DiskModel::SsdSata => "SATA flash".to_owned(),
        DiskModel::Nvme => "NVMe flash".to_owned(),
        DiskModel::NvmeNoPlp => "NVMe flash without power-loss protection".to_owned(),
        DiskModel::CloudBurst => "a cloud volume".to_owned(),
        DiskModel::Probe(file) => format!("the disk probed in {}", file.display()),
    };
    match spec.queue_depth {
        Some(1) => title.push_str(" without command queueing"),
        Some(depth) => title.push_str(&format!(" with {depth} commands at a time")),
        None => {}
    }
    match spec.write_cache {
        Some(true) => title.push_str(", write cache on"),
        Some(false) => title.push_str(", write cache off"),
        None => {}
    }
    title
}
