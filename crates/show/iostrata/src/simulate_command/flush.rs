//! `iostrata simulate flush`: every policy for an hour of virtual time.
//!
//! Invariant: what comes out depends on the arguments alone, not on the machine; only `duration_s`
//! does.

use std::collections::BTreeMap;
use std::time::Instant;

use iostrata_diagnose::conclude_flush;
use iostrata_innodb::{PolicyName, Settings};
use iostrata_run::{
    FlushDocument, FlushPolicyRun, RunKind, RunResult, Unavailable, UnavailableCause,
};
use iostrata_sim::flush::{self, FlushPlan};
use iostrata_stats::Verdicts;
use serde_json::json;

use super::flush_plan::{device, disk_turns, load, plan, settings_of, turns};
use super::parallel::on_all_processors;
use super::recording::Recording;
use super::{flush_from, flush_runs};
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
/// As the contract's exit codes say.
pub fn run(args: &FlushArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let started = Instant::now();
    let display = Display::new(args.common.printing.quiet);
    let (plan, from) = match &args.from {
        Some(dir) => {
            let recording = Recording::read(dir, args.redo_per_txn.is_none(), disk_turns(args))?;
            let (plan, from) = flush_from::plan(args, recording)?;
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
        outcome.map(|outcome| flush_runs::run(policy, &outcome, warm_up(plan)))
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
    let missing = |name: &PolicyName| Unavailable {
        what: name.word().to_owned(),
        why: "the simulation was stopped before it".to_owned(),
        fix: Some("give a longer --max-time".to_owned()),
        cause: UnavailableCause::LeftOut,
        kernel_lines: Vec::new(),
    };
    let unavailable: Vec<Unavailable> = names.iter().filter(is_missing).map(missing).collect();
    let mut verdicts = Verdicts::none();
    policies.iter().for_each(|policy| verdicts.merge(&policy.verdicts));
    let pool = plan.settings.frames();
    let method = [("frames", json!(pool)), ("redo_bytes", json!(plan.settings.redo_log_capacity))];
    FlushDocument {
        title: "Which flushing policy holds, and which stops everybody?".to_owned(),
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
        "Costs of batches are asked of the disk's model once, when nothing else goes on; wear and \
         caches that fill over hours are not followed.",
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
