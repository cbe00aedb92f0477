//! From the recording of a database to a load that does the same in the model, window by window.
//!
//! Purpose: what-if questions are answered for that load. The recording is compared with the same
//! stretch of the model, and settings with each other once nothing fills up any more. Method: first
//! which pages are changed, under an open rate, so that the device has no part in it: the power of
//! zipf by bisection, until as many pages become dirty per transaction as were recorded. Then the
//! time that a transaction takes apart from its waits, in a closed loop.
//! Invariants: what the plan is not free in stays as it is, and what cannot be met is met as far as
//! it goes; the figures say how far that is. A window lies after so much redo, not after so much
//! time, since the model may be slower than the server.

use iostrata_run::FlushFigures;
use iostrata_stats::{SECOND_EVENTS_MIN, stability};

use super::plan::{
    Demand, FlushOutcome, FlushPlan, FlushPlanError, FlushSecond, PageAccess, SPAN_S_MAX,
};
use super::{FOLLOWED_PER_S, run, run_while};

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
    /// The time of a transaction apart from its waits.
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
    let mut best = FitMaximum { most: 0.0, pages: open.load.pages_per_txn, power: POWERS[0] };
    for _ in 0..=if free.pages { RAISES } else { 0 } {
        let (mut reached, mut skewed) = (FitMaximum { most: 0.0, ..best }, POWERS[0]);
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
struct FitMaximum {
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

/// Transactions per second that are followed one by one where only their pages matter.
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
            min_over_mean_1s: stability(&commits, 1.0)
                .filter(|_| tps >= SECOND_EVENTS_MIN)
                .map(|even| even.min_over_mean_1s),
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

/// A load that is known is run, recorded, and found again.
#[cfg(test)]
mod tests {
    use iostrata_innodb::{PolicyName, Settings};
    use iostrata_run::FlushFigures;

    use crate::flush::*;

    const ALL_FREE: FitFreedom = FitFreedom { access: true, pages: true, time: true };

    fn plan(policy: PolicyName, redo: &str, iops: Option<f64>) -> FlushPlan {
        let mut settings = Settings { policy, ..Settings::default() };
        for (name, value) in
            [("redo_log_capacity", redo), ("buffer_pool_size", "12G"), ("io_capacity", "1000")]
        {
            settings.set(name, value).unwrap();
        }
        let load = FlushLoad {
            demand: Demand::Users(16),
            pages_per_txn: 8.0,
            redo_bytes_per_txn: 6000.0,
            data_bytes: 8 << 30,
            access: PageAccess::Zipf(0.75),
            cpu_us_per_txn: 20_000.0,
            processors: 16,
        };
        let sizes = (u64::from(settings.page_size), load.data_bytes);
        let device = FlushDevice::new(&"nvme".parse().unwrap(), None, iops, sizes, 1).unwrap();
        FlushPlan { settings, device, load, changes: Vec::new(), span_s: 400.0, seed: 3 }
    }

    /// Figures of samples of the seconds from here on, taken as a target's are.
    fn recorded(plan: &FlushPlan, from: usize, length: usize) -> RecordedWindow {
        let outcome = run(plan).unwrap();
        let seconds = &outcome.seconds[from..from + length];
        let mean = |of: fn(&FlushSecond) -> f64| {
            seconds.iter().map(of).sum::<f64>() / seconds.len() as f64
        };
        let pct = |age: f64| 100.0 * age / outcome.wall_age as f64;
        let grown = seconds[length - 1].dirty_pages - outcome.seconds[from - 1].dirty_pages;
        let dirtied = mean(|second| second.flushed_pages) + grown / length as f64;
        let most = seconds.iter().map(|second| second.checkpoint_age).max().unwrap();
        RecordedWindow {
            figures: FlushFigures {
                tps: mean(|second| second.commits),
                redo_bytes_per_s: Some(mean(|second| second.redo_bytes)),
                pages_dirtied_per_s: Some(dirtied),
                checkpoint_age_pct_mean: Some(pct(mean(|second| second.checkpoint_age as f64))),
                ..FlushFigures::default()
            },
            checkpoint_age_pct_max: Some(pct(most as f64)),
            length_s: length as f64,
        }
    }

    /// The plan from the recording alone.
    fn unknown(plan: &FlushPlan) -> FlushPlan {
        let mut unknown = FlushPlan { seed: 8, ..plan.clone() };
        unknown.load.access = PageAccess::Uniform;
        unknown.load.cpu_us_per_txn = 500.0;
        unknown
    }

    fn is_near(found: Option<f64>, truth: Option<f64>, share: f64) -> bool {
        (found.unwrap() / truth.unwrap() - 1.0).abs() < share
    }

    #[test]
    fn a_known_load_is_found_again_while_its_redo_fills_and_when_it_is_full() {
        // The whole redo takes minutes to fill, or goes round every few seconds.
        for (policy, redo, from) in [
            (PolicyName::Mariadb, "4G", 30),
            (PolicyName::Steady, "64M", 200),
            (PolicyName::PageCleaner84, "64M", 200),
        ] {
            let known = plan(policy, redo, None);
            let window = recorded(&known, from, 60);
            let found = fit(&unknown(&known), &window, ALL_FREE).unwrap();
            let (truth, model) = (window.figures, found.modelled);
            let told = format!("{policy}: {truth:?} {model:?} {:?}", found.plan.load);
            assert!((model.tps / truth.tps - 1.0).abs() < 0.03, "{told}");
            assert!(is_near(model.redo_bytes_per_s, truth.redo_bytes_per_s, 0.03), "{told}");
            assert!(is_near(model.pages_dirtied_per_s, truth.pages_dirtied_per_s, 0.05), "{told}");
            assert!(
                is_near(model.checkpoint_age_pct_mean, truth.checkpoint_age_pct_mean, 0.1),
                "{told}"
            );
            let PageAccess::Zipf(power) = found.plan.load.access else { panic!("{told}") };
            assert!((power - 0.75).abs() < 0.08, "{told}");
            assert!((found.plan.load.cpu_us_per_txn / 20_000.0 - 1.0).abs() < 0.05, "{told}");
        }
    }

    #[test]
    fn what_is_given_stays_and_what_cannot_be_met_shows_in_the_figures() {
        let known = plan(PolicyName::Steady, "64M", None);
        let window = recorded(&known, 200, 60);
        let fixed = FitFreedom { access: false, pages: false, time: false };
        let found = fit(&known, &window, fixed).unwrap();
        assert_eq!(found.plan.load, known.load);
        // A device that is much slower than the recorded one.
        let slow = plan(PolicyName::Steady, "64M", Some(60.0));
        let found = fit(&unknown(&slow), &window, ALL_FREE).unwrap();
        assert!(found.modelled.tps < 0.8 * window.figures.tps, "{:?}", found.modelled);
        // Fewer changes than pages that became dirty: more are assumed, unless they were given.
        let mut few = unknown(&known);
        few.load.pages_per_txn = 0.5;
        let free = fit(&few, &window, ALL_FREE).unwrap();
        assert!(free.plan.load.pages_per_txn > 1.0, "{:?}", free.plan.load);
        let given = fit(&few, &window, FitFreedom { pages: false, ..ALL_FREE }).unwrap();
        assert_eq!(given.plan.load.pages_per_txn, 0.5);
    }

    #[test]
    fn settings_are_compared_once_their_redo_has_gone_round() {
        let known = plan(PolicyName::Mariadb, "64M", Some(1500.0));
        let window = recorded(&known, 200, 120);
        let found = steady(&known, &window).unwrap().unwrap();
        let later = recorded(&FlushPlan { seed: 9, ..known.clone() }, 150, 240).figures;
        assert!((found.tps / later.tps - 1.0).abs() < 0.05, "{found:?} {later:?}");
        assert!(is_near(found.pages_dirtied_per_s, later.pages_dirtied_per_s, 0.05), "{found:?}");
        let pages = found.pages_written_per_txn.unwrap() * found.tps;
        assert!((pages / found.pages_dirtied_per_s.unwrap() - 1.0).abs() < 0.1, "{found:?}");
        assert!(found.flushed_pages_per_s_max.unwrap() >= pages, "{found:?}");
        assert!((0.0..1.0).contains(&found.min_over_mean_1s.unwrap()), "{found:?}");
        // A window that is over ends the run: the same figures with a longer span.
        let longer = FlushPlan { span_s: 5000.0, ..known.clone() };
        assert_eq!(steady(&longer, &window).unwrap(), Some(found));
        // A redo of 64 GiB takes hours.
        assert_eq!(steady(&plan(PolicyName::Mariadb, "64G", None), &window), Ok(None));
    }
}
