//! `iostrata simulate flush`: every policy for an hour of virtual time.
//!
//! Invariant: what comes out depends on the arguments alone, not on the machine; only `duration_s`
//! does.

use std::collections::BTreeMap;
use std::time::Instant;

use iostrata_database::target::StallRule;
use iostrata_diagnose::conclude_flush;
use iostrata_innodb::{PolicyName, Settings};
use iostrata_run::{
    FlushAssumption, FlushDocument, FlushEvenness, FlushFigures, FlushPolicyRun, FlushRecording,
    FlushSeries, RunKind, RunResult, Unavailable,
};
use iostrata_sim::flush::{
    self, Demand, FitFreedom, FlushLoad, FlushOutcome, FlushPlan, FlushSecond, fit,
};
use iostrata_stats::units::Size;
use iostrata_stats::{Verdicts, estimate, low_spells, stability};
use serde_json::json;

use super::flush_plan::{
    LOAD, demand, device, disk_turns, finished, load, load_of, plan, settings, settings_of, turns,
};
use super::recording::Recording;
use super::{on_all_processors, stopped_before};
use crate::args::FlushArgs;
use crate::display::Display;
use crate::exit_error::ExitError;
use crate::run_sink::RunSink;
use crate::signals::Interruption;

/// Share of the span that no figure is taken from: the redo fills for the first time.
const WARM_UP_SHARE: f64 = 0.1;

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &FlushArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let started = Instant::now();
    let display = Display::new(args.common.printing.quiet);
    let (plan, from) = match &args.from {
        Some(dir) => {
            let recording = Recording::read(dir, args.redo_per_txn.is_none(), disk_turns(args))?;
            let (plan, from) = recorded_plan(args, recording)?;
            (plan, Some(from))
        }
        None => (plan(args)?, None),
    };
    let out = args.common.out.as_deref();
    let mut sink = RunSink::begin(RunKind::SimulateFlush, "simulate-flush", out, &display)?;
    sink.say_whether_kept();
    let deadline = args.common.max_time.map(|time| started + time);
    let over =
        || interruption.is_set() || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let found = simulate(&plan, &args.policy.0, &over, &display)?;
    display.finish();
    let mut document = document(&plan, &args.policy.0, found);
    document.from = from;
    conclude_flush(&mut document);
    document.duration_s = started.elapsed().as_secs_f64();
    document.report = sink.report();
    if !sink.keep_with_report(&document) {
        document.report = None;
    }
    let result = RunResult::SimulateFlush(Box::new(document));
    sink.print(&result, &[], args.common.printing.json)?;
    sink.end(match interruption.is_set() {
        true => Err(ExitError::Interrupted(interruption.exit_code())),
        false => Ok(()),
    })
}

fn warm_up(plan: &FlushPlan) -> usize {
    (plan.span_s * WARM_UP_SHARE) as usize
}

/// Simulates the policies on all processors until `is_over`; in their order.
fn simulate(
    plan: &FlushPlan,
    names: &[PolicyName],
    is_over: &(dyn Fn() -> bool + Sync),
    display: &Display,
) -> Result<Vec<FlushPolicyRun>, ExitError> {
    let run = |at: usize| {
        let policy = names[at];
        let settings = Settings { policy, ..plan.settings.clone() };
        let outcome = flush::run(&FlushPlan { settings, ..plan.clone() });
        outcome.map(|outcome| policy_run(policy, &outcome, warm_up(plan)))
    };
    let told = |at: usize, share: f64| display.progress(share, names[at].word());
    let found = on_all_processors(names.len(), is_over, run, told);
    let checked = |(_, run): (usize, Result<FlushPolicyRun, _>)| {
        run.map_err(|error: flush::FlushPlanError| ExitError::Usage(error.to_string()))
    };
    found.into_iter().map(checked).collect()
}

fn document(
    plan: &FlushPlan,
    names: &[PolicyName],
    policies: Vec<FlushPolicyRun>,
) -> FlushDocument {
    let is_missing = |name: &&PolicyName| policies.iter().all(|policy| policy.name != name.word());
    let missing = names.iter().filter(is_missing);
    let unavailable: Vec<Unavailable> = missing.map(|name| stopped_before(name.word())).collect();
    let mut verdicts = Verdicts::none();
    policies.iter().for_each(|policy| verdicts.merge(&policy.verdicts));
    let pool = plan.settings.frames();
    let method = [("frames", json!(pool)), ("redo_bytes", json!(plan.settings.redo_log_capacity))];
    FlushDocument {
        title: "Which flushing policy holds, and which stalls?".to_owned(),
        headline: Vec::new(),
        device: device(plan),
        load: load(plan),
        settings: settings_of(plan),
        from: None,
        turns: turns(plan),
        policies,
        span_s: plan.span_s,
        warm_up_s: warm_up(plan) as f64,
        seed: plan.seed,
        method: method
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        limits: limits(),
        interrupted: !unavailable.is_empty(),
        unavailable,
        duration_s: 0.0,
        verdicts,
        report: None,
    }
}

/// What the model leaves out, in sentences.
fn limits() -> Vec<String> {
    [
        "Dirty pages are a quantity, not single pages: chance in which page is hit is averaged.",
        "The device takes requests in their order. A write of redo waits for the batch of pages \
         before it, as behind a limit of a volume; a disk that reorders would let it pass.",
        "Costs of batches are computed once from the disk's model, without concurrent requests; wear \
         and caches that fill over hours are not modelled.",
        "Up to 256 KiB count as one request before the limit.",
        "Pages are written in batches of 128, one after the other. The engine writes several side \
         by side, and under steady as few at a time as the redo bears; servers that submit \
         thousands at once stall for longer.",
        "Where more than 400 transactions are done in a second, a user does several in one go.",
        "Latches, row locks, growth of files and reads of pages that are not changed are not in \
         the model.",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Users that are stopped for less of their time than this were not stopped by a full redo as a
/// rule, in percent.
const STOPPED_PCT_MIN: f64 = 0.5;

/// The run of a policy; `warm_up` seconds are left out of figures.
fn policy_run(name: PolicyName, outcome: &FlushOutcome, warm_up: usize) -> FlushPolicyRun {
    let all = &outcome.seconds;
    let seconds = &all[warm_up.min(all.len())..];
    let tps: Vec<f64> = seconds.iter().map(|second| second.commits).collect();
    let sum = |of: fn(&FlushSecond) -> f64| seconds.iter().map(of).sum::<f64>();
    let commits = sum(|second| second.commits).max(1.0);
    let mean = estimate(&tps);
    let even = stability(&tps, 1.0);
    let rate = mean.as_ref().map_or(0.0, |mean| mean.value);
    let mut spells = low_spells(&tps, 1.0);
    spells.retain(|spell| StallRule::WINDOW.is_stall(spell, rate));
    let min_over_mean_1s = even.map_or(0.0, |even| even.min_over_mean_1s);
    let stopped_pct = 100.0 * outcome.stopped_share;
    let evenness = match spells.is_empty() {
        false => FlushEvenness::Stalls,
        true if stopped_pct >= STOPPED_PCT_MIN => FlushEvenness::AtTheWall,
        true => FlushEvenness::Even,
    };
    let pct = |age: u64| 100.0 * age as f64 / outcome.capacity as f64;
    let everything: f64 = all.iter().map(|second| second.commits).sum::<f64>().max(1.0);
    FlushPolicyRun {
        name: name.word().to_owned(),
        tps_mean: rate,
        tps_mean_ci95: mean.as_ref().and_then(|mean| mean.ci95),
        tps_mean_n: mean.as_ref().map_or(0, |mean| mean.n),
        min_over_mean_1s,
        stalled_s: spells.iter().map(|spell| spell.length_s).fold(0.0, |sum, one| sum + one),
        stalls: spells.len() as u64,
        longest_stall_s: spells.iter().map(|spell| spell.length_s).fold(0.0, f64::max),
        evenness,
        furious_flushes: outcome.furious_flushes,
        commit_wait_us: outcome.commit_waits.summary().unwrap_or_default(),
        pages_written_per_txn: sum(|second| second.flushed_pages) / commits,
        write_requests_per_txn: outcome.write_requests / everything,
        redo_bytes_per_s: sum(|second| second.redo_bytes) / seconds.len().max(1) as f64,
        wall_pct: pct(outcome.wall_age),
        checkpoint_age_pct_max: pct(outcome.age_max),
        delayed_pct: 100.0 * outcome.delayed_share,
        stopped_pct,
        checkpoints: outcome.checkpoints,
        text: String::new(),
        series: series(outcome),
        verdicts: mean.map_or(Verdicts::none(), |mean| mean.verdicts),
    }
}

/// Points of a series at most: an hour second by second, of longer spans the mean of several.
const POINTS_MAX: usize = 3600;

fn series(outcome: &FlushOutcome) -> FlushSeries {
    let step = outcome.seconds.len().div_ceil(POINTS_MAX).max(1);
    let column = |of: &dyn Fn(&FlushSecond) -> f64, digits: i32| -> Vec<f64> {
        let scale = 10_f64.powi(digits);
        let mean = |part: &[FlushSecond]| part.iter().map(of).sum::<f64>() / part.len() as f64;
        let parts = outcome.seconds.chunks(step);
        parts.map(|part| (mean(part) * scale).round() / scale).collect()
    };
    let capacity = outcome.capacity as f64;
    FlushSeries {
        t_s: (1..=outcome.seconds.len().div_ceil(step)).map(|at| (at * step) as f64).collect(),
        tps: column(&|second| second.commits, 1),
        checkpoint_age_pct: column(&|second| 100.0 * second.checkpoint_age as f64 / capacity, 2),
        dirty_pages: column(&|second| second.dirty_pages, 0),
        flushed_per_s: column(&|second| second.flushed_pages, 0),
        history: column(&|second| second.history, 0),
    }
}

/// The requested plan, on the load of a recording, and how well the model reproduces that.
///
/// # Errors
/// A recording that holds too little; whatever can't be simulated.
fn recorded_plan(
    args: &FlushArgs,
    recording: Recording,
) -> Result<(FlushPlan, FlushRecording), ExitError> {
    let Recording { run, workload, target, .. } = &recording;
    let (run, workload, target) = (run.clone(), workload.clone(), target.clone());
    let figures = recording.window.figures;
    let load = load_of(args, &recorded_load(&recording, args.redo_per_txn));
    // What is requested apart from the load is not in the recorded plan.
    let as_it_was = FlushArgs { limit_at: Vec::new(), load_at: Vec::new(), ..args.clone() };
    let before = finished(&as_it_was, recording.settings.clone(), load)?;
    let free = FitFreedom {
        access: args.distribution.is_none(),
        pages: args.pages_per_txn.is_none(),
        time: args.cpu_per_txn.is_none(),
    };
    let found = fit(&before, &recording.window, free)
        .map_err(|error| ExitError::Usage(format!("--from {run}: {error}")))?;
    let asked = demand(args).unwrap_or(recording.demand);
    let load = FlushLoad { demand: asked, ..found.plan.load };
    let plan = finished(args, settings(args, recording.settings.clone())?, load)?;
    let policy = recording.settings.policy.word().to_owned();
    let mut assumed = recording.assumed;
    assumed.extend(assumptions(Some(args), &found.plan, &figures, recording.data_bytes));
    let from = FlushRecording {
        run,
        workload,
        target,
        policy,
        recorded: figures,
        modelled: found.modelled,
        assumed,
        fits: false,
        text: Vec::new(),
    };
    Ok((plan, from))
}

/// The load as far as the recording has it; the redo of a transaction may be given.
pub fn recorded_load(recording: &Recording, redo_per_txn: Option<u64>) -> FlushLoad {
    let figures = &recording.window.figures;
    let per_txn = |per_s: Option<f64>| per_s.map(|per_s| per_s / figures.tps);
    let given = redo_per_txn.map(|bytes| bytes as f64);
    let redo = given.or(per_txn(figures.redo_bytes_per_s)).unwrap_or(LOAD.redo_bytes_per_txn);
    // A page that is dirty already does not become dirty again: more are changed than become so.
    let dirtied = per_txn(figures.pages_dirtied_per_s).unwrap_or(0.0);
    let changed = redo * LOAD.pages_per_txn / LOAD.redo_bytes_per_txn;
    FlushLoad {
        demand: recording.demand,
        pages_per_txn: changed.max(1.1 * dirtied).clamp(0.01, 10_000.0),
        redo_bytes_per_txn: redo,
        data_bytes: recording.data_bytes.map_or(LOAD.data_bytes, |bytes| bytes.max(1_000_000)),
        // Each user's time is its own: what it is spent on is not known.
        processors: match recording.demand {
            Demand::Users(users) => users,
            Demand::Rate(_) => LOAD.processors,
        },
        ..LOAD
    }
}

/// What neither the recording nor the arguments give, if anything.
pub fn assumptions(
    args: Option<&FlushArgs>,
    plan: &FlushPlan,
    figures: &FlushFigures,
    data_bytes: Option<u64>,
) -> Vec<FlushAssumption> {
    let mut all = Vec::new();
    let mut assume = |is_said: bool, what: &str, taken_as: String| {
        if !is_said {
            all.push(FlushAssumption { what: what.to_owned(), taken_as });
        }
    };
    let said = |of: fn(&FlushArgs) -> bool| args.is_some_and(of);
    let limit = if plan.device.iops_limit().is_none() { ", no limit" } else { "" };
    let is_said = said(|args| args.device.is_some() || args.iops_limit.is_some());
    assume(is_said, "device", format!("{}{limit}", device(plan)));
    let load = &plan.load;
    let is_said = data_bytes.is_some() || said(|args| args.data.is_some());
    assume(is_said, "data", Size(load.data_bytes).to_string());
    let pages = format!("{:.3}, by its redo", load.pages_per_txn);
    assume(said(|args| args.pages_per_txn.is_some()), "pages changed per transaction", pages);
    let is_said = said(|args| args.distribution.is_some()) || figures.pages_dirtied_per_s.is_some();
    assume(is_said, "which pages are changed", "zipf:0.9".to_owned());
    let is_said = said(|args| args.processors.is_some());
    if matches!(load.demand, Demand::Users(_)) {
        let own = "one for each user: how they spend their time is unknown".to_owned();
        assume(is_said, "processors", own);
    } else {
        assume(is_said, "processors", load.processors.to_string());
        let time = format!("{} us", load.cpu_us_per_txn);
        assume(said(|args| args.cpu_per_txn.is_some()), "processor time of a transaction", time);
    }
    all
}
