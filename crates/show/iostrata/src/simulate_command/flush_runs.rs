//! What a policy's seconds come to: figures after the warm-up, series of everything.

use iostrata_innodb::PolicyName;
use iostrata_run::{FlushEvenness, FlushPolicyRun, FlushSeries};
use iostrata_sim::flush::{FlushOutcome, FlushSecond};
use iostrata_stats::{Verdicts, estimate, low_spells, stability};

/// Users that are stopped for less of their time than this were not stopped by a full redo as a
/// rule, in percent.
const STOPPED_PCT_MIN: f64 = 0.5;

/// The run of a policy; `warm_up` seconds are left out of figures.
pub fn run(name: PolicyName, outcome: &FlushOutcome, warm_up: usize) -> FlushPolicyRun {
    let all = &outcome.seconds;
    let seconds = &all[warm_up.min(all.len())..];
    let tps: Vec<f64> = seconds.iter().map(|second| second.commits).collect();
    let sum = |of: fn(&FlushSecond) -> f64| seconds.iter().map(of).sum::<f64>();
    let commits = sum(|second| second.commits).max(1.0);
    let mean = estimate(&tps);
    let even = stability(&tps, 1.0);
    let spells = low_spells(&tps, 1.0);
    let min_over_mean_1s = even.map_or(0.0, |even| even.min_over_mean_1s);
    let stopped_pct = 100.0 * outcome.stopped_share;
    let evenness = match spells.is_empty() && min_over_mean_1s > 0.0 {
        false => FlushEvenness::Stalls,
        true if stopped_pct >= STOPPED_PCT_MIN => FlushEvenness::AtTheWall,
        true => FlushEvenness::Even,
    };
    let pct = |age: u64| 100.0 * age as f64 / outcome.capacity as f64;
    let everything: f64 = all.iter().map(|second| second.commits).sum::<f64>().max(1.0);
    FlushPolicyRun {
        name: name.word().to_owned(),
        tps_mean: mean.as_ref().map_or(0.0, |mean| mean.mean),
        tps_mean_ci95: mean.as_ref().and_then(|mean| mean.mean_ci95),
        tps_mean_n: mean.as_ref().map_or(0, |mean| mean.batches),
        min_over_mean_1s,
        stalled_s: spells.iter().map(|spell| spell.length_s).fold(0.0, |sum, one| sum + one),
        stalls: spells.len() as u64,
        longest_stall_s: even.map_or(0.0, |even| even.longest_below_half_s),
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
