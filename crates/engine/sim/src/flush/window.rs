//! Windows of the model's course, and what the model did in them.
//!
//! Purpose: what was recorded is set beside the same stretch of the model, and settings are set
//! beside each other where nothing fills up any more. Invariant: a window lies after so much redo,
//! not after so much time, since the model may be slower than the server.

use iostrata_run::FlushFigures;
use iostrata_stats::stability;

use super::outcome::{FlushOutcome, FlushSecond};
use super::plan::{FlushPlan, FlushPlanError, SPAN_S_MAX};
use super::simulate::{FOLLOWED_PER_S, run, run_while};

/// Most seconds of the model before a recorded window.
const LEAD_S_MAX: f64 = 1800.0;
/// Rounds of the redo before a window in which nothing fills up.
const ROUNDS: f64 = 5.0;
/// Fewest seconds of such a window, and before it: averages of policies reach back a minute, and
/// waves are to come in several times.
const STEADY_S_MIN: f64 = 120.0;
/// Most seconds of such a window.
const STEADY_S_MAX: f64 = 600.0;
/// The redo is taken to fill over the window where the age rises by so much of what was made.
const FILLS_SHARE: f64 = 0.7;
/// Rounds before a window in which settings are compared, and the seconds after which fewer rounds
/// do: one side may have far more redo than the other.
const COMPARED_ROUNDS: f64 = 2.0;
const COMPARED_LEAD_S: f64 = 600.0;
/// Rounds without which redo that fills for the first time is what is seen.
const COMPARED_ROUNDS_MIN: f64 = 1.2;
const COMPARED_LEAD_S_MAX: f64 = 3600.0;

/// Transactions per second that are followed one by one where their pages are what is looked at.
const COARSELY_PER_S: f64 = 100.0;

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

/// What a plan comes to once its redo has gone round: so that settings can be compared, about as
/// long as was recorded. `None` where that would take more than an hour at the recorded pace.
///
/// # Errors
/// A plan that can't be simulated.
pub fn steady(
    plan: &FlushPlan,
    recorded: &RecordedWindow,
) -> Result<Option<FlushFigures>, FlushPlanError> {
    let tps = recorded.figures.tps;
    let bytes_per_s = (tps * plan.load.redo_bytes_per_txn).max(1.0);
    let wall = wall_bytes(plan)?;
    let least = COMPARED_ROUNDS_MIN * wall;
    if COMPARED_LEAD_S_MAX * bytes_per_s < least {
        return Ok(None);
    }
    // Of a large redo fewer rounds are worth their time.
    let before_bytes = (COMPARED_ROUNDS * wall).min(COMPARED_LEAD_S * bytes_per_s).max(least);
    let before_bytes = before_bytes.max(STEADY_S_MIN * bytes_per_s);
    let length_s = recorded.length_s.round().clamp(STEADY_S_MIN, STEADY_S_MAX);
    let span_s = 1.5 * before_bytes / bytes_per_s + length_s + 2.0;
    let window = ModelWindow { before_bytes, length_s, span_s: span_s.ceil(), tps };
    let plan = FlushPlan { span_s: window.span_s, changes: Vec::new(), ..plan.clone() };
    // What is long is followed less closely.
    let is_long = before_bytes > COMPARED_LEAD_S * bytes_per_s;
    Ok(Some(if is_long { window.run_coarsely(&plan)? } else { window.run(&plan)? }))
}

/// Where in the model's course the recorded window lies.
pub(super) struct ModelWindow {
    /// Redo that was made before it, in bytes.
    before_bytes: f64,
    /// Its length in seconds.
    length_s: f64,
    pub span_s: f64,
    /// Transactions per second that were recorded.
    pub tps: f64,
}

impl ModelWindow {
    /// A server whose redo fills for the first time is followed from there; of any other the
    /// window lies where the redo went round several times.
    pub fn of(plan: &FlushPlan, recorded: &RecordedWindow) -> Result<Self, FlushPlanError> {
        let tps = recorded.figures.tps;
        let bytes_per_s = tps * plan.load.redo_bytes_per_txn;
        let length_s = recorded.length_s.round().max(2.0);
        let wall = wall_bytes(plan)?;
        let filled = filling(recorded, bytes_per_s * length_s, wall);
        let (before_bytes, length_s) = match filled {
            Some(before_bytes) => (before_bytes, length_s),
            None => {
                let before_bytes = (ROUNDS * wall).max(STEADY_S_MIN * bytes_per_s);
                (before_bytes, length_s.clamp(STEADY_S_MIN, STEADY_S_MAX))
            }
        };
        let lead_s = (before_bytes / bytes_per_s.max(1.0)).min(LEAD_S_MAX);
        // More than enough: the model may be slower than the server.
        let span_s = (1.5 * lead_s + length_s + 2.0).clamp(10.0, SPAN_S_MAX).ceil();
        Ok(Self { before_bytes, length_s, span_s, tps })
    }

    /// What the model does there, which is run no longer than that takes.
    ///
    /// # Errors
    /// A plan that can't be simulated.
    pub fn run(&self, plan: &FlushPlan) -> Result<FlushFigures, FlushPlanError> {
        self.run_following(plan, FOLLOWED_PER_S)
    }

    /// The same with more transactions in one go: enough to see how many pages become dirty.
    ///
    /// # Errors
    /// A plan that can't be simulated.
    pub fn run_coarsely(&self, plan: &FlushPlan) -> Result<FlushFigures, FlushPlanError> {
        self.run_following(plan, COARSELY_PER_S)
    }

    fn run_following(
        &self,
        plan: &FlushPlan,
        followed_per_s: f64,
    ) -> Result<FlushFigures, FlushPlanError> {
        let (mut made_bytes, mut left_s) = (0.0, self.length_s);
        let is_over = |second: &FlushSecond| {
            made_bytes += second.redo_bytes;
            left_s -= f64::from(u8::from(made_bytes > self.before_bytes));
            left_s < 1.0
        };
        Ok(self.figures(&run_while(plan, followed_per_s, is_over)?))
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
        let commits: Vec<f64> = seconds.iter().map(|second| second.commits).collect();
        let stalled = commits.iter().filter(|commits| **commits < tps / 2.0).count();
        FlushFigures {
            tps,
            redo_bytes_per_s: Some(per_s(|second| second.redo_bytes)),
            pages_dirtied_per_s: Some((flushed_per_s + more_per_s).max(0.0)),
            checkpoint_age_pct_mean: Some(100.0 * age / outcome.wall_age.max(1) as f64),
            redo_stalled_pct: Some(100.0 * stalled as f64 / seconds.len().max(1) as f64),
            min_over_mean_1s: stability(&commits, 1.0).map(|even| even.min_over_mean_1s),
            pages_written_per_txn: (tps > 0.0).then(|| flushed_per_s / tps),
            flushed_pages_per_s_max: seconds
                .iter()
                .map(|second| second.flushed_pages)
                .max_by(f64::total_cmp),
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
