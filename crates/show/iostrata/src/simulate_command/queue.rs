//! `iostrata simulate queue`: every queue size on every device under every kernel, in virtual time.
//!
//! Invariant: what comes out depends on the arguments alone, not on the machine or its number of
//! processors; only `duration_s` does. A case that a kernel makes of several queue sizes (today's
//! bound) is simulated once.

use std::time::Instant;

use iostrata_diagnose::{QueueFacts, summarise_queue};
use iostrata_plan::disk::DiskSpec;
use iostrata_run::{
    KernelThen, QueueDevice, QueueRun, RunKind, RunResult, Unavailable, UnavailableCause,
};
use iostrata_sim::insert::{self, InsertError, InsertOutcome, InsertPlan, POST_QUEUE_SIZES};
use iostrata_sim::model::{self, MeasuredDisk};
use iostrata_sim::queue::requests_taken;

use super::parallel::on_all_processors;
use super::queue_runs::{Simulated, measured_s, run as run_of};
use super::{queue_method, queue_words};
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
/// Most replicates, however long the span that is asked for.
const REPLICATES_MAX: u32 = 12;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
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
    let mut document = summarise_queue(bench.facts(args, &outcomes?));
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
    /// The same where runs are compared, with a reader beside it.
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
            // beside which everything else stands.
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

    /// Every run: device, kernel, queue size asked for.
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

    fn facts(&self, args: &QueueArgs, outcomes: &Outcomes) -> QueueFacts {
        let mut runs: Vec<QueueRun> = Vec::new();
        let mut unavailable = Vec::new();
        for (device, kernel, nr_requests) in self.every() {
            let plan = self.plan(device, kernel, nr_requests);
            let taken = self.taken(device, &plan);
            let is_of =
                |case: &Case| (case.device, case.kernel, case.taken) == (device, kernel, taken);
            let place = self.cases.iter().position(is_of);
            let simulated = Simulated {
                device: &self.devices[device].spec,
                kernel,
                nr_requests,
                outcomes: place.into_iter().flat_map(|at| &outcomes.by_case[at]).collect(),
            };
            match run_of(&simulated, COMPARED_ROWS) {
                Some(run) => runs.push(run),
                None => unavailable.push(Unavailable {
                    what: format!("{}, {kernel}, nr_requests {nr_requests}", plan.disk),
                    why: "the simulation was stopped before it".to_owned(),
                    fix: Some("give a longer --max-time".to_owned()),
                    cause: UnavailableCause::LeftOut,
                    kernel_lines: Vec::new(),
                }),
            }
        }
        QueueFacts {
            devices: self.devices.iter().map(|device| device.described.clone()).collect(),
            runs,
            unavailable,
            span_s: self.span_s,
            seed: args.common.seed,
            method: queue_method::figures(&outcomes.by_case),
            limits: queue_method::limits(),
            duration_s: 0.0,
            interrupted: !outcomes.is_complete,
        }
    }
}

/// A device that can be built, or what is wrong with it.
fn device(spec: DiskSpec, seed: u64) -> Result<Device, ExitError> {
    let measured = measured::of(&spec)?;
    let capacity_bytes = InsertPlan::post(spec.clone(), 128, KernelThen::Today).capacity_bytes;
    let drive = model::drive(&spec, capacity_bytes, measured.as_ref(), seed)
        .map_err(|error| ExitError::Usage(format!("--device {spec}: {error}")))?;
    let described = queue_words::device(&spec, &drive.facts());
    Ok(Device { spec, measured, described })
}
