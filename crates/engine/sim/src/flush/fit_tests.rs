//! A load that is known is run, recorded, and found again.

use iostrata_innodb::{PolicyName, Settings};
use iostrata_run::FlushFigures;

use super::*;

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

/// What samples of the seconds from here on say, as a target's are taken.
fn recorded(plan: &FlushPlan, from: usize, length: usize) -> RecordedWindow {
    let outcome = run(plan).unwrap();
    let seconds = &outcome.seconds[from..from + length];
    let mean =
        |of: fn(&FlushSecond) -> f64| seconds.iter().map(of).sum::<f64>() / seconds.len() as f64;
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

/// The plan as one who knows only the recording has it.
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
