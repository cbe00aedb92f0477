//! From the recording of a database to a load that does the same in the model.
//!
//! Purpose: what-if questions are asked of that load. Method: first which pages are changed, under
//! an open rate, so that the device has no part in it: the power of zipf by bisection, until as
//! many pages become dirty per transaction as were recorded. Then the time that a transaction takes
//! beside its waits, in a closed loop. Invariant: what the plan is not free in stays as it is, and
//! what cannot be met is met as far as it goes; the figures say how far that is.

use iostrata_run::FlushFigures;

use super::plan::{Demand, FlushPlan, FlushPlanError, PageAccess};
use super::window::{ModelWindow, RecordedWindow};

/// Powers of zipf that are tried, from the most skewed on.
const POWERS: [f64; 10] = [3.0, 2.0, 1.5, 1.2, 1.0, 0.85, 0.7, 0.5, 0.25, 0.01];
/// Halvings of what is searched.
const HALVINGS: u32 = 12;
/// Times that the time of a transaction is taken from what the last one lacked.
const TRIES: u32 = 4;
/// What comes so near to what is searched is found.
const NEAR_SHARE: f64 = 0.002;
/// Times that the pages that a transaction changes are raised until they dirty enough.
const RAISES: u32 = 6;

/// What of a load may be chosen so that the recording comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitFreedom {
    /// Which pages are changed.
    pub access: bool,
    /// How many pages a transaction changes, where no choice of pages dirties enough of them.
    pub pages: bool,
    /// The time of a transaction beside its waits.
    pub time: bool,
}

/// A load that does what was recorded, as far as it goes.
#[derive(Clone, Debug)]
pub struct FlushFit {
    /// The plan with that load.
    pub plan: FlushPlan,
    /// What the model makes of it.
    pub modelled: FlushFigures,
}

/// Fits the load of a plan, whose settings and demand are the recorded ones.
///
/// # Errors
/// A plan that can't be simulated.
pub fn fit(
    plan: &FlushPlan,
    recorded: &RecordedWindow,
    free: FitFreedom,
) -> Result<FlushFit, FlushPlanError> {
    let mut plan = FlushPlan { changes: Vec::new(), ..plan.clone() };
    let window = ModelWindow::of(&plan, recorded)?;
    plan.span_s = window.span_s;
    if let Some(dirtied) = recorded.figures.pages_dirtied_per_s.filter(|_| free.access) {
        fit_access(&mut plan, &window, free, dirtied / recorded.figures.tps)?;
    }
    if let Demand::Users(users) = plan.load.demand
        && free.time
    {
        fit_time(&mut plan, &window, f64::from(users), recorded.figures.tps)?;
    }
    let modelled = window.run(&plan)?;
    Ok(FlushFit { plan, modelled })
}

/// Finds the power. Small data that is dirty already dirties little under an even load, too: of two
/// powers that would do the more skewed one is taken, since loads are.
fn fit_access(
    plan: &mut FlushPlan,
    window: &ModelWindow,
    free: FitFreedom,
    wanted: f64,
) -> Result<(), FlushPlanError> {
    let mut open = plan.clone();
    open.load.demand = Demand::Rate(window.tps);
    open.load.cpu_us_per_txn = 1.0;
    let mut best = Reached { most: 0.0, pages: open.load.pages_per_txn, power: POWERS[0] };
    for _ in 0..=if free.pages { RAISES } else { 0 } {
        let (mut reached, mut skewed) = (Reached { most: 0.0, ..best }, POWERS[0]);
        reached.pages = open.load.pages_per_txn;
        for power in POWERS {
            let dirtied = dirtied_per_txn(&mut open, window, power)?;
            if dirtied >= wanted {
                let over = |power| Ok(dirtied_per_txn(&mut open, window, power)? / wanted);
                plan.load.access = PageAccess::Zipf(halve([power, skewed], over)?);
                plan.load.pages_per_txn = reached.pages;
                return Ok(());
            }
            if dirtied > reached.most {
                (reached.most, reached.power) = (dirtied, power);
            }
            skewed = power;
        }
        if reached.most <= best.most {
            break;
        }
        best = reached;
        open.load.pages_per_txn = (best.pages * 1.1 * wanted / best.most).min(10_000.0);
    }
    plan.load.access = PageAccess::Zipf(best.power);
    plan.load.pages_per_txn = best.pages;
    Ok(())
}

/// The most pages that a transaction dirties with so many changes, and under which power.
#[derive(Clone, Copy)]
struct Reached {
    most: f64,
    pages: f64,
    power: f64,
}

fn dirtied_per_txn(
    open: &mut FlushPlan,
    window: &ModelWindow,
    power: f64,
) -> Result<f64, FlushPlanError> {
    open.load.access = PageAccess::Zipf(power);
    let figures = window.run_coarsely(open)?;
    Ok(figures.pages_dirtied_per_s.unwrap_or(0.0) / figures.tps.max(f64::MIN_POSITIVE))
}

/// A user's transactions take at most what lies between two of them; the device takes its part of
/// that. What it takes hardly changes with the time of a transaction, so that is tried first.
fn fit_time(
    plan: &mut FlushPlan,
    window: &ModelWindow,
    users: f64,
    wanted_tps: f64,
) -> Result<(), FlushPlanError> {
    let between_us = 1e6 * users / wanted_tps;
    let mut tried = plan.clone();
    let mut over = |cpu_us: f64| -> Result<f64, FlushPlanError> {
        tried.load.cpu_us_per_txn = cpu_us;
        Ok(window.run(&tried)?.tps / wanted_tps)
    };
    let mut cpu_us = (between_us / 2.0).clamp(1.0, 1e7);
    for _ in 0..TRIES {
        let found = over(cpu_us)?;
        if (found - 1.0).abs() <= NEAR_SHARE {
            plan.load.cpu_us_per_txn = cpu_us;
            return Ok(());
        }
        let waits_us = between_us / found.max(f64::MIN_POSITIVE) - cpu_us;
        cpu_us = (between_us - waits_us).clamp(1.0, 1e7);
    }
    let most_us = (1.5 * between_us).clamp(2.0, 1e7);
    plan.load.cpu_us_per_txn = halve([0.0, most_us.ln()], |log| over(log.exp()))?.exp();
    Ok(())
}

/// The place at which what falls crosses 1, or comes near enough; an end where it does not.
fn halve(
    [mut low, mut high]: [f64; 2],
    mut over: impl FnMut(f64) -> Result<f64, FlushPlanError>,
) -> Result<f64, FlushPlanError> {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let found = over(middle)?;
        if (found - 1.0).abs() <= NEAR_SHARE {
            return Ok(middle);
        }
        if found > 1.0 { low = middle } else { high = middle }
    }
    Ok(f64::midpoint(low, high))
}
