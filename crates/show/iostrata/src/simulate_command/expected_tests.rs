//! A server that is known is recorded, and what its advice is expected to change is set beside what
//! it does change.

use iostrata_diagnose::diagnose_watch;
use iostrata_innodb::{PolicyName, Settings};
use iostrata_run::{
    ExpectedEffect, StallCause, TransactionStall, WatchDevice, WatchDocument, WatchSample,
    WatchTarget,
};
use iostrata_sim::flush::{
    Demand, FlushLoad, FlushOutcome, FlushPlan, FlushSecond, PageAccess, RecordedWindow, run,
    steady,
};

use super::expect;
use super::expected::device;

/// Requests per second that the volume is held to.
const LIMIT: f64 = 600.0;
const SECONDS: usize = 240;
const AWAKE: (&str, &str) = ("max_dirty_pages_pct_lwm", "0.001");

/// A MariaDB whose page cleaner sleeps until its small redo is nearly full.
fn known(lwm: &str) -> FlushPlan {
    let mut settings = Settings { policy: PolicyName::Mariadb, ..Settings::default() };
    for (name, value) in [
        ("redo_log_capacity", "64M"),
        ("buffer_pool_size", "2G"),
        ("io_capacity", "200"),
        ("io_capacity_max", "2000"),
        (AWAKE.0, lwm),
    ] {
        settings.set(name, value).unwrap();
    }
    let load = FlushLoad {
        demand: Demand::Users(16),
        pages_per_txn: 2.0,
        redo_bytes_per_txn: 6000.0,
        data_bytes: 4 << 30,
        access: PageAccess::Zipf(0.8),
        cpu_us_per_txn: 20_000.0,
        processors: 16,
    };
    let device = device(&settings, load.data_bytes, Some(LIMIT)).unwrap();
    FlushPlan { settings, device, load, changes: Vec::new(), span_s: 600.0, seed: 40 }
}

/// What `watch` keeps of the model's seconds after the first `from`.
fn recorded(outcome: &FlushOutcome, from: usize) -> WatchDocument {
    let seconds = &outcome.seconds[from..from + SECONDS];
    let mean = seconds.iter().map(|second| second.commits).sum::<f64>() / SECONDS as f64;
    let pages = seconds.iter().map(|second| second.flushed_pages).sum::<f64>() / SECONDS as f64;
    let sample = |(at, second): (usize, &FlushSecond)| WatchSample {
        t_s: at as f64,
        tps: (at > 0).then_some(second.commits),
        checkpoint_age_bytes: Some(second.checkpoint_age),
        checkpoint_age_limit_bytes: Some(outcome.wall_age),
        checkpoint_age_pct: Some(100.0 * second.checkpoint_age as f64 / outcome.wall_age as f64),
        redo_bytes_per_s: (at > 0).then_some(second.redo_bytes),
        dirty_pages: Some(second.dirty_pages as u64),
        flushed_pages_per_s: (at > 0).then_some(second.flushed_pages),
        sessions_running: Some(16),
        device: Some(WatchDevice {
            name: "vdb".to_owned(),
            writes_per_s: LIMIT,
            in_flight: if second.flushed_pages > 200.0 { 12.0 } else { 0.5 },
            ..WatchDevice::default()
        }),
        ..WatchSample::default()
    };
    let stalls = seconds.iter().enumerate().filter(|(_, one)| one.commits < mean / 2.0);
    let stalls = stalls.map(|(at, second)| TransactionStall {
        t_s: at as f64,
        length_s: 1.0,
        min_tps: second.commits,
        cause: StallCause::RedoFull,
        evidence: String::new(),
    });
    let settings = [
        ("innodb_log_file_size", "67108864"),
        ("innodb_buffer_pool_size", "2147483648"),
        ("innodb_io_capacity", "200"),
        ("innodb_io_capacity_max", "2000"),
        ("innodb_max_dirty_pages_pct", "90.000000"),
        ("innodb_max_dirty_pages_pct_lwm", "0.000000"),
        ("innodb_flush_neighbors", "1"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let ages = seconds.iter().map(|second| second.checkpoint_age).max().unwrap();
    WatchDocument {
        target: WatchTarget {
            flavour: "mariadb".to_owned(),
            version: "10.11.19-MariaDB".to_owned(),
            settings: settings.into(),
            ..WatchTarget::default()
        },
        duration_s: SECONDS as f64,
        samples: seconds.iter().enumerate().map(sample).collect(),
        stalls: stalls.collect(),
        checkpoint_age_pct_max: Some(100.0 * ages as f64 / outcome.wall_age as f64),
        tps: Some(mean),
        pages_written_per_txn: Some(pages / mean),
        ..WatchDocument::default()
    }
}

fn concluded(mut document: WatchDocument) -> WatchDocument {
    (document.findings, document.advice) = diagnose_watch(&document);
    expect(&mut document);
    document
}

/// What is expected of the advice for one setting.
fn expected<'a>(document: &'a WatchDocument, setting: &str) -> &'a ExpectedEffect {
    let advised = document.advice.iter().find(|one| one.setting == setting);
    let advised = advised.unwrap_or_else(|| panic!("{setting}: {:?}", document.advice));
    advised.expected.as_ref().unwrap_or_else(|| panic!("{advised:?}"))
}

fn sleeping() -> WatchDocument {
    recorded(&run(&known("0")).unwrap(), 300)
}

#[test]
fn a_cleaner_that_is_woken_is_expected_to_do_what_it_does() {
    let document = concluded(sleeping());
    let from = document.expected_from.as_ref().unwrap();
    assert!(from.fits, "{:?}", from.text);
    let effect = expected(&document, "innodb_max_dirty_pages_pct_lwm");
    let window = RecordedWindow { figures: from.recorded, ..RecordedWindow::default() };
    let window = RecordedWindow { length_s: SECONDS as f64, ..window };
    let truth = |lwm| steady(&known(lwm), &window).unwrap().unwrap();
    let (before, after) = (truth("0"), truth(AWAKE.1));
    let tps = effect.tps.as_ref().unwrap();
    let change = 100.0 * (after.tps / before.tps - 1.0);
    // A model that fits may be off by 15 %.
    let is_near = (tps.change_pct.value - change).abs() < 15.0;
    assert!(is_near && (tps.change_pct.value < 0.0) == (change < 0.0), "{change} {effect:?}");
    let worst = effect.min_over_mean_1s.as_ref().unwrap();
    let [low, _] = worst.change_pct.ci95.unwrap();
    assert!(low > 0.0, "its worst second becomes better: {effect:?}");
    let change = 100.0 * (after.min_over_mean_1s.unwrap() - before.min_over_mean_1s.unwrap());
    assert!((worst.change_pct.value - change).abs() < 20.0, "{change} {effect:?}");
    let pages = effect.pages_written_per_txn.as_ref().unwrap();
    assert_eq!(pages.change_pct.n, 5);
    assert!(effect.text.iter().any(|text| text.contains("600 requests per second")), "{effect:?}");
    // The same recording gives the same figures.
    assert_eq!(document.advice, concluded(sleeping()).advice);
}

#[test]
fn of_a_recording_that_does_not_fit_nothing_is_expected_and_it_says_why() {
    let mut slow = sleeping();
    for device in slow.samples.iter_mut().filter_map(|sample| sample.device.as_mut()) {
        device.writes_per_s = 150.0;
    }
    let slow = concluded(slow);
    let effect = expected(&slow, "innodb_max_dirty_pages_pct_lwm");
    assert!(!effect.is_known(), "{effect:?}");
    assert!(effect.text[0].contains("the model does not do what was recorded"), "{effect:?}");
    assert!(!slow.expected_from.as_ref().unwrap().fits);
    // A device of which nothing is known has no limit, so that its model never stalls.
    let mut blind = sleeping();
    blind.samples.iter_mut().for_each(|sample| sample.device = None);
    let blind = concluded(blind);
    let effect = expected(&blind, "innodb_max_dirty_pages_pct_lwm");
    assert!(!effect.is_known(), "{effect:?}");
    assert!(effect.text[0].contains("The limit of the device is not known"), "{effect:?}");
    // Nor is there a load to fit where the target does not tell its transactions.
    let mut silent = sleeping();
    silent.tps = None;
    let silent = concluded(silent);
    let effect = expected(&silent, "innodb_max_dirty_pages_pct_lwm");
    assert!(effect.text[0].contains("no transaction was seen"), "{effect:?}");
    assert_eq!(silent.expected_from, None);
}

#[test]
fn of_a_quiet_recording_nothing_is_expected() {
    let mut quiet = sleeping();
    quiet.stalls.clear();
    for sample in &mut quiet.samples {
        sample.checkpoint_age_pct = Some(15.0);
    }
    let quiet = concluded(quiet);
    assert!(quiet.advice.is_empty(), "{:?}", quiet.advice);
    assert_eq!((quiet.expected_from, quiet.expected_together), (None, None));
}
