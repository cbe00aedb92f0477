//! `iostrata simulate queue`: every queue size on every device under every kernel, in virtual time.
//!
//! Invariant: what comes out depends on the arguments alone, not on the machine or its number of
//! processors; only `duration_s` does. A case that a kernel makes of several queue sizes (today's
//! bound) is simulated once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use iostrata_diagnose::{QueueFacts, summarise_queue};
use iostrata_report::RunView;
use iostrata_run::{
    KernelThen, QueueDevice, QueueDocument, QueueRun, RunKind, RunResult, Unavailable,
};
use iostrata_sim::insert::{self, InsertError, InsertOutcome, InsertPlan, POST_QUEUE_SIZES};
use iostrata_sim::model::{self, MeasuredDisk};
use iostrata_sim::queue::requests_taken;
use iostrata_spec::disk::DiskSpec;

use super::queue_runs::{Simulated, run as run_of};
use super::{queue_method, queue_words};
use crate::args::{QueueArgs, SimulateCommon};
use crate::display::{Display, colour, print_json, print_text, width};
use crate::ending::Ending;
use crate::run_dir::RunDir;
use crate::signals::Interruption;

/// The post's pair of disks, the same one command at a time, an array of a commenter, and flash.
const DEVICES: [&str; 4] = [
    "raid10-hdd,spindles=2",
    "raid10-hdd,spindles=2,queue=1",
    "raid10-hdd,spindles=34",
    "ssd-sata",
];
/// Rows at which runs are compared: where the post says how large the index was.
const COMPARED_ROWS: u64 = 77_000_000;
/// Fewest replicates: three pairs are the fewest that a conclusion may rest on, and five halve the
/// interval.
const REPLICATES_MIN: u32 = 5;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &QueueArgs, interruption: &Interruption) -> Result<(), Ending> {
    let started = Instant::now();
    let display = Display::new(args.common.quiet);
    let bench = Bench::new(args)?;
    let run_dir =
        RunDir::begin(RunKind::SimulateQueue, "simulate-queue", args.common.out.as_deref())?;
    run_dir.note.iter().for_each(|note| display.note(note));
    let deadline = args.common.max_time.map(|time| started + time);
    let over =
        || interruption.is_set() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let outcomes = bench.simulate(&over, &display);
    display.finish();
    let mut document = summarise_queue(bench.facts(args, &outcomes?));
    document.duration_s = started.elapsed().as_secs_f64();
    document.report = run_dir.report();
    run_dir.keep(&document)?;
    show(&args.common, &document, &run_dir)?;
    match interruption.is_set() {
        true => Err(Ending::Interrupted(interruption.exit_code())),
        false => Ok(()),
    }
}

fn show(common: &SimulateCommon, document: &QueueDocument, run_dir: &RunDir) -> Result<(), Ending> {
    if common.json {
        return print_json(document);
    }
    let result = RunResult::SimulateQueue(Box::new(document.clone()));
    let view =
        RunView { manifest: &run_dir.manifest, result: Some(&result), events: &[], notes: &[] };
    print_text(&iostrata_report::terminal(&view, width(), colour()))
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
    plan: InsertPlan,
}

/// Everything to simulate.
struct Bench {
    devices: Vec<Device>,
    kernels: Vec<KernelThen>,
    nr_requests: Vec<u32>,
    cases: Vec<Case>,
    replicates: u32,
}

/// Outcomes by case, each with its replicates in order as far as they came.
type Outcomes = Vec<Vec<InsertOutcome>>;

impl Bench {
    fn new(args: &QueueArgs) -> Result<Self, Ending> {
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
            replicates: REPLICATES_MIN,
        };
        bench.cases = bench.cases(args);
        Ok(bench)
    }

    fn cases(&self, args: &QueueArgs) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::new();
        for (device, kernel, nr_requests) in self.every() {
            let mut plan = InsertPlan::post(self.devices[device].spec.clone(), nr_requests, kernel);
            plan.has_reader = args.reader;
            plan.replicates = 1;
            let taken = self.taken(device, &plan);
            let same =
                |case: &Case| (case.device, case.kernel, case.taken) == (device, kernel, taken);
            if !cases.iter().any(same) {
                cases.push(Case { device, kernel, taken, plan });
            }
        }
        cases
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

    /// Simulates every case on all processors, until `is_over`: replicate by replicate, so that what
    /// is cut off is replicates and not cases.
    fn simulate(
        &self,
        is_over: &(dyn Fn() -> bool + Sync),
        display: &Display,
    ) -> Result<Outcomes, Ending> {
        let jobs = self.cases.len() * self.replicates as usize;
        let next = AtomicUsize::new(0);
        let found: Mutex<Vec<(usize, Result<InsertOutcome, InsertError>)>> = Mutex::default();
        let work = || {
            while !is_over() {
                let job = next.fetch_add(1, Ordering::Relaxed);
                if job >= jobs {
                    return;
                }
                let outcome = self.one(job);
                let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                found.push((job, outcome));
                let case = &self.cases[job % self.cases.len()];
                let text = format!("{}, nr_requests {}", case.plan.disk, case.taken);
                display.progress(found.len() as f64 / jobs as f64, &text);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.max(1));
        std::thread::scope(|scope| {
            (0..threads).for_each(|_| {
                scope.spawn(work);
            });
        });
        let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.ordered(found)
    }

    fn one(&self, job: usize) -> Result<InsertOutcome, InsertError> {
        let case = &self.cases[job % self.cases.len()];
        let replicate = (job / self.cases.len()) as u64;
        let mut plan = case.plan.clone();
        // Spread far, so that neighbouring seeds of a user share no replicate.
        plan.seed = plan.seed.wrapping_add(replicate.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        insert::run(&plan, self.devices[case.device].measured.as_ref())
    }

    /// By case, in order of replicates, up to the first that is missing.
    fn ordered(
        &self,
        mut found: Vec<(usize, Result<InsertOutcome, InsertError>)>,
    ) -> Result<Outcomes, Ending> {
        found.sort_by_key(|(job, _)| *job);
        let mut outcomes: Outcomes = self.cases.iter().map(|_| Vec::new()).collect();
        for (job, outcome) in found {
            let (case, replicate) = (job % self.cases.len(), job / self.cases.len());
            let outcome = outcome.map_err(|error| Ending::Usage(error.to_string()))?;
            if outcomes[case].len() == replicate {
                outcomes[case].push(outcome);
            }
        }
        Ok(outcomes)
    }

    fn facts(&self, args: &QueueArgs, outcomes: &Outcomes) -> QueueFacts {
        let mut runs: Vec<QueueRun> = Vec::new();
        let mut unavailable = Vec::new();
        for (device, kernel, nr_requests) in self.every() {
            let plan = InsertPlan::post(self.devices[device].spec.clone(), nr_requests, kernel);
            let taken = self.taken(device, &plan);
            let is_of =
                |case: &Case| (case.device, case.kernel, case.taken) == (device, kernel, taken);
            let of_case = self.cases.iter().position(is_of).map(|place| &outcomes[place]);
            let simulated = Simulated {
                device: &self.devices[device].spec,
                kernel,
                nr_requests,
                outcomes: of_case.into_iter().flatten().collect(),
            };
            match run_of(&simulated, COMPARED_ROWS) {
                Some(run) => runs.push(run),
                None => unavailable.push(Unavailable {
                    what: format!("{}, {kernel}, nr_requests {nr_requests}", plan.disk),
                    why: "the simulation was stopped before it".to_owned(),
                    fix: Some("give a longer --max-time".to_owned()),
                }),
            }
        }
        let all = self.cases.len() * self.replicates as usize;
        let done: usize = outcomes.iter().map(Vec::len).sum();
        QueueFacts {
            devices: self.devices.iter().map(|device| device.described.clone()).collect(),
            runs,
            unavailable,
            span_s: args.span.as_secs_f64(),
            seed: args.common.seed,
            method: queue_method::figures(outcomes, self.replicates),
            limits: queue_method::limits(),
            duration_s: 0.0,
            interrupted: done < all,
        }
    }
}

/// A device that can be built, or what is wrong with it.
fn device(spec: DiskSpec, seed: u64) -> Result<Device, Ending> {
    let measured = None;
    let capacity_bytes = InsertPlan::post(spec.clone(), 128, KernelThen::Today).capacity_bytes;
    let drive = model::drive(&spec, capacity_bytes, measured.as_ref(), seed)
        .map_err(|error| Ending::Usage(format!("--device {spec}: {error}")))?;
    let described = queue_words::device(&spec, &drive.facts());
    Ok(Device { spec, measured, described })
}
