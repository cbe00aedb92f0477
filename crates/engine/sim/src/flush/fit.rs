//! From the recording of a database to a load that does the same in the model.
//!
//! Purpose: what-if questions are asked of that load. Method: first which pages are changed, under
//! an open rate, so that the device has no part in it: the power of zipf by bisection, until as
//! many pages become dirty per transaction as were recorded. Then the time that a transaction takes
//! beside its waits, in a closed loop. Invariant: what the plan is not free in stays as it is, and
//! what cannot be met is met as far as it goes; the figures say how far that is.

use iostrata_run::FlushFigures;

use super::outcome::{FlushOutcome, FlushSecond};
use super::plan::{Demand, FlushPlan, FlushPlanError, PageAccess, SPAN_S_MAX};
use super::simulate::run;

/// Powers of zipf that are tried, from the most skewed on.
const POWERS: [f64; 10] = [3.0, 2.0, 1.5, 1.2, 1.0, 0.85, 0.7, 0.5, 0.25, 0.01];
/// Halvings of what is searched.
const HALVINGS: u32 = 12;
/// Times that the pages that a transaction changes are raised until they dirty enough.
const RAISES: u32 = 6;
/// Most seconds of the model before its window.
const LEAD_S_MAX: f64 = 1800.0;
/// Rounds of the redo before a window in which nothing fills up.
const ROUNDS: f64 = 5.0;
/// Fewest seconds of such a window, and before it: averages of policies reach back a minute, and
/// waves are to come in several times.
const STEADY_S_MIN: f64 = 120.0;
/// The redo is taken to fill over the window where the age rises by so much of what was made.
const FILLS_SHARE: f64 = 0.7;

/// A recorded window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordedWindow {
    /// Its figures.
    pub figures: FlushFigures,
    /// The highest checkpoint age, in percent as the mean is.
    pub checkpoint_age_pct_max: Option<f64>,
    /// Its length in seconds.
    pub length_s: f64,
}

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
    let modelled = window.figures(&run(&plan)?);
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
                let is_more = |power| Ok(dirtied_per_txn(&mut open, window, power)? > wanted);
                plan.load.access = PageAccess::Zipf(halve([power, skewed], is_more)?);
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
    let figures = window.figures(&run(open)?);
    Ok(figures.pages_dirtied_per_s.unwrap_or(0.0) / figures.tps.max(f64::MIN_POSITIVE))
}

/// A user's transactions take at most what lies between two of them; the device takes its part of
/// that.
fn fit_time(
    plan: &mut FlushPlan,
    window: &ModelWindow,
    users: f64,
    wanted_tps: f64,
) -> Result<(), FlushPlanError> {
    let most_us = (1.5e6 * users / wanted_tps).clamp(2.0, 1e7);
    let mut tried = plan.clone();
    let is_more = |log: f64| {
        tried.load.cpu_us_per_txn = log.exp();
        Ok(window.figures(&run(&tried)?).tps > wanted_tps)
    };
    plan.load.cpu_us_per_txn = halve([0.0, most_us.ln()], is_more)?.exp();
    Ok(())
}

/// The place at which what falls crosses what is wanted; an end where it does not.
fn halve(
    [mut low, mut high]: [f64; 2],
    mut is_more: impl FnMut(f64) -> Result<bool, FlushPlanError>,
) -> Result<f64, FlushPlanError> {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if is_more(middle)? { low = middle } else { high = middle }
    }
    Ok(f64::midpoint(low, high))
}

/// Where in the model's course the recorded window lies.
struct ModelWindow {
    /// Redo that was made before it, in bytes.
    before_bytes: f64,
    /// Its length in seconds.
    length_s: f64,
    span_s: f64,
    tps: f64,
}

impl ModelWindow {
    /// A server whose redo fills for the first time is followed from there; of any other the
    /// window lies where the redo went round several times.
    fn of(plan: &FlushPlan, recorded: &RecordedWindow) -> Result<Self, FlushPlanError> {
        let tps = recorded.figures.tps;
        let bytes_per_s = tps * plan.load.redo_bytes_per_txn;
        let length_s = recorded.length_s.round().max(2.0);
        let wall = wall_bytes(plan)?;
        let filled = filling(recorded, bytes_per_s * length_s, wall);
        let (before_bytes, length_s) = match filled {
            Some(before_bytes) => (before_bytes, length_s),
            None => {
                let before_bytes = (ROUNDS * wall).max(STEADY_S_MIN * bytes_per_s);
                (before_bytes, length_s.max(STEADY_S_MIN))
            }
        };
        let lead_s = (before_bytes / bytes_per_s.max(1.0)).min(LEAD_S_MAX);
        // More than enough: the model may be slower than the server.
        let span_s = (1.5 * lead_s + length_s + 2.0).clamp(10.0, SPAN_S_MAX).ceil();
        Ok(Self { before_bytes, length_s, span_s, tps })
    }

    /// What the model did there; at its end where it did not get so far.
    fn figures(&self, outcome: &FlushOutcome) -> FlushFigures {
        let all = &outcome.seconds;
        let length = (self.length_s as usize).clamp(1, all.len().max(1));
        let mut made_bytes = 0.0;
        let is_before = |second: &&FlushSecond| {
            made_bytes += second.redo_bytes;
            made_bytes <= self.before_bytes
        };
        let latest = all.len().saturating_sub(length);
        let from = all.iter().take_while(is_before).count().min(latest);
        let seconds = &all[from..(from + length).min(all.len())];
        let per_s = |of: fn(&FlushSecond) -> f64| {
            seconds.iter().map(of).sum::<f64>() / seconds.len().max(1) as f64
        };
        let dirty_before = from.checked_sub(1).map_or(0.0, |last| all[last].dirty_pages);
        let dirty_after = seconds.last().map_or(0.0, |last| last.dirty_pages);
        let flushed_per_s = per_s(|second| second.flushed_pages);
        let more_per_s = (dirty_after - dirty_before) / seconds.len().max(1) as f64;
        let age = per_s(|second| second.checkpoint_age as f64);
        let tps = per_s(|second| second.commits);
        let stalled = seconds.iter().filter(|second| second.commits < tps / 2.0).count();
        FlushFigures {
            tps,
            redo_bytes_per_s: Some(per_s(|second| second.redo_bytes)),
            pages_dirtied_per_s: Some((flushed_per_s + more_per_s).max(0.0)),
            checkpoint_age_pct_mean: Some(100.0 * age / outcome.wall_age.max(1) as f64),
            redo_stalled_pct: Some(100.0 * stalled as f64 / seconds.len().max(1) as f64),
        }
    }
}

/// The age at which the plan's policy stops users.
fn wall_bytes(plan: &FlushPlan) -> Result<f64, FlushPlanError> {
    let glance = FlushPlan { span_s: 10.0, ..plan.clone() };
    Ok(run(&glance)?.wall_age as f64)
}

/// The redo before a window in which the age only grew; nothing where it did not, or is not known.
fn filling(recorded: &RecordedWindow, made_bytes: f64, wall: f64) -> Option<f64> {
    let mean = recorded.figures.checkpoint_age_pct_mean? / 100.0 * wall;
    let most = recorded.checkpoint_age_pct_max? / 100.0 * wall;
    // An age that grows evenly ends as far above its mean as it began below it.
    let grows = 2.0 * (most - mean);
    let is_filling = grows > FILLS_SHARE * made_bytes && mean > 0.25 * made_bytes;
    is_filling.then(|| (mean - made_bytes / 2.0).max(0.0))
}
