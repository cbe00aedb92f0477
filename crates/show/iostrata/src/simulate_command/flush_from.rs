//! `simulate flush --from RUN`: the recorded load, fitted, under what the arguments ask for.
//!
//! Invariant: the load is fitted to the recorded policy and settings; what the arguments ask for
//! comes after that. What is assumed is named.

use iostrata_run::{FlushAssumption, FlushFigures, FlushRecording};
use iostrata_sim::flush::{Demand, FitFreedom, FlushLoad, FlushPlan, fit};
use iostrata_stats::units::Size;

use super::flush_plan::{LOAD, demand, device, finished, load_of, settings};
use super::recording::Recording;
use crate::args::FlushArgs;
use crate::exit_error::ExitError;

/// The plan that is asked for, on the load of a recording, and how well the model does that.
///
/// # Errors
/// A recording that says too little; whatever can't be simulated.
pub fn plan(
    args: &FlushArgs,
    recording: Recording,
) -> Result<(FlushPlan, FlushRecording), ExitError> {
    let Recording { run, workload, target, .. } = &recording;
    let (run, workload, target) = (run.clone(), workload.clone(), target.clone());
    let figures = recording.window.figures;
    let load = load_of(args, &recorded_load(&recording, args.redo_per_txn));
    // What is asked for beside the load is not in the recorded plan.
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

/// The load as far as the recording says it; the redo of a transaction may be given.
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

/// What neither the recording says nor arguments, where there are any.
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
        let own = "one for each user: what their time is spent on is not known".to_owned();
        assume(is_said, "processors", own);
    } else {
        assume(is_said, "processors", load.processors.to_string());
        let time = format!("{} us", load.cpu_us_per_txn);
        assume(said(|args| args.cpu_per_txn.is_some()), "processor time of a transaction", time);
    }
    all
}
