//! What is expected of advice, from pairs that are made for it.

use std::collections::BTreeMap;

use iostrata_run::host::{CgroupVersion, IoLimit, LimitScope, ThrottleEvidence};
use iostrata_run::{FlushFigures, FlushRecording, WatchDevice, WatchDocument};
use iostrata_stats::{Measured, Verdicts};

use super::expected::*;
use super::made::{calm, pressed, set, with};
use crate::rules::diagnose_watch;

fn figures(tps: f64, worst: f64, pages: f64) -> FlushFigures {
    FlushFigures {
        tps,
        min_over_mean_1s: Some(worst),
        pages_written_per_txn: Some(pages),
        flushed_pages_per_s_max: Some(1000.0),
        ..FlushFigures::default()
    }
}

fn model(recorded: FlushFigures, modelled: FlushFigures) -> FlushRecording {
    FlushRecording {
        run: "this recording".to_owned(),
        workload: "its own load".to_owned(),
        target: "mariadb 10.11.19".to_owned(),
        policy: "mariadb".to_owned(),
        recorded,
        modelled,
        assumed: Vec::new(),
        fits: false,
        text: Vec::new(),
    }
}

fn limited() -> ModelBasis {
    ModelBasis {
        limit_iops: Some(Measured::new(1500.0, [1490.0, 1510.0], 40, Verdicts::none())),
        ..ModelBasis::default()
    }
}

fn pairs() -> Vec<[FlushFigures; 2]> {
    let pair = |n: u32| {
        let swing = 1.0 + 0.01 * f64::from(n);
        [figures(400.0 * swing, 0.0, 3.0), figures(500.0 * swing * swing, 0.8, 3.3)]
    };
    (0..6).map(pair).collect()
}

#[test]
fn what_one_finding_advises_is_set_together() {
    let mut document = pressed(calm());
    set(
        &mut document,
        &[
            ("innodb_io_capacity", "200"),
            ("innodb_io_capacity_max", "400"),
            ("innodb_max_dirty_pages_pct_lwm", "0"),
        ],
    );
    let (_, advice) = diagnose_watch(&document);
    let names = |all: &BTreeMap<String, String>| all.keys().cloned().collect::<Vec<String>>();
    let groups: Vec<Vec<String>> = modelled_advice(&advice).iter().map(names).collect();
    let capacity = ["innodb_io_capacity", "innodb_io_capacity_max"];
    let expected: [&[&str]; 3] =
        [&["innodb_max_dirty_pages_pct_lwm"], &["innodb_log_file_size"], &capacity];
    assert_eq!(groups, expected);
    // The redo is not tried; everything else is tried at once.
    let together = modelled_together(&advice).unwrap();
    let all = [capacity[0], capacity[1], "innodb_max_dirty_pages_pct_lwm"];
    assert_eq!(names(&together), all);
    let only = &advice[..1];
    assert_eq!((modelled_advice(only).len(), modelled_together(only)), (1, None));
    assert_eq!(modelled_advice(&[]), Vec::<BTreeMap<String, String>>::new());
}

#[test]
fn the_limit_is_what_a_device_does_that_has_enough_to_do() {
    let busy = with(calm(), |at, sample| {
        let writes_per_s = if at % 2 == 0 { 1500.0 } else { 90.0 };
        let in_flight = if at % 2 == 0 { 9.0 } else { 0.3 };
        sample.device = Some(WatchDevice { writes_per_s, in_flight, ..Default::default() });
    });
    let limit = ModelBasis::of(&busy).unwrap().limit_iops.unwrap();
    assert_eq!((limit.value, limit.n), (1500.0, 120));
    assert_eq!(ModelBasis::of(&calm()).unwrap().limit_iops, None);
    assert_eq!(ModelBasis::of(&WatchDocument::default()), None);
    // Where it did as much without, or more with a deeper queue, the queue came and went.
    let changed = |change: fn(usize, &mut WatchDevice)| {
        let document = with(busy.clone(), |at, sample| change(at, sample.device.as_mut().unwrap()));
        ModelBasis::of(&document).unwrap().limit_iops
    };
    assert_eq!(changed(|at, device| device.writes_per_s += (at % 2) as f64 * 2000.0), None);
    let deeper = |at: usize, device: &mut WatchDevice| {
        device.in_flight += (at % 4) as f64;
        device.writes_per_s += (at % 4) as f64 * 400.0;
    };
    assert_eq!(changed(deeper), None);
    assert_eq!(changed(|at, device| device.reads_per_s = (at % 8) as f64 * 1800.0), None);
    assert!(changed(|at, device| device.writes_per_s += (at % 5) as f64 * 50.0).is_some());
}

#[test]
fn what_a_control_group_lets_through_is_the_limit() {
    let held = |of: fn(usize) -> Option<u64>| {
        let document = with(calm(), |at, sample| {
            let write_iops = of(at);
            let limit = write_iops.map(|_| IoLimit { write_iops, ..io_limit() });
            sample.throttle = Some(ThrottleEvidence { io_limit: limit, ..Default::default() });
        });
        ModelBasis::of(&document).unwrap()
    };
    let basis = held(|at| (at > 0).then_some(1500));
    assert_eq!((basis.limit_iops.as_ref().unwrap().value, basis.is_limit_set), (1500.0, true));
    let mut from = model(figures(400.0, 0.1, 3.0), figures(400.0, 0.1, 3.0));
    judge_expected(&mut from, &basis).unwrap();
    let told = "Its control group lets 1.5 K writes per second through";
    assert!(from.text.iter().any(|text| text.starts_with(told)), "{:?}", from.text);
    let effect = expected_effect(BTreeMap::new(), &from, &basis, &pairs());
    assert!(effect.text[1].ends_with("on a device of 1.5 K requests per second."), "{effect:?}");
    for unknown in [held(|_| None), held(|at| Some(if at < 30 { 1500 } else { 750 }))] {
        assert_eq!((unknown.limit_iops, unknown.is_limit_set), (None, false));
    }
}

fn io_limit() -> IoLimit {
    IoLimit {
        cgroup: "/db".to_owned(),
        version: CgroupVersion::V2,
        scope: LimitScope::Process,
        device: "vda".to_owned(),
        device_number: "254:0".parse().unwrap(),
        read_bytes_per_s: None,
        write_bytes_per_s: None,
        read_iops: None,
        write_iops: None,
    }
}

#[test]
fn figures_change_as_their_pairs_do() {
    let recorded = figures(400.0, 0.1, 3.0);
    let from = model(recorded, recorded);
    let effect = expected_effect(BTreeMap::new(), &from, &limited(), &pairs());
    let tps = effect.tps.as_ref().unwrap();
    let [low, high] = tps.change_pct.ci95.unwrap();
    assert!(low < 25.0 && 30.0 < high && tps.change_pct.n == 6, "{effect:?}");
    let worst = effect.min_over_mean_1s.as_ref().unwrap();
    assert!((worst.change_pct.value - 80.0).abs() < 1e-9 && worst.before.value == 0.0);
    let pages = effect.pages_written_per_txn.as_ref().unwrap();
    assert!((pages.change_pct.value - 10.0).abs() < 1e-9, "{effect:?}");
    assert!(effect.text[0].contains("transactions/s from 410 to 525"), "{:?}", effect.text);
    assert!(effect.text[1].contains("a device of 1.5 K requests per second"), "{effect:?}");
}

#[test]
fn what_the_model_does_otherwise_is_not_stated() {
    let from = model(figures(400.0, 0.1, 3.0), figures(400.0, 0.4, 4.0));
    let effect = expected_effect(BTreeMap::new(), &from, &limited(), &pairs());
    assert!(effect.is_known() && effect.tps.is_some());
    assert_eq!((&effect.min_over_mean_1s, &effect.pages_written_per_txn), (&None, &None));
    let text = effect.text.join(" ");
    let said = "Not stated: the worst second over the mean, since 0.10 was recorded, and the \
                model has 0.40.";
    assert!(text.contains(said) && text.contains("Not stated: pages written"), "{text}");
}

#[test]
fn nothing_is_said_that_depends_on_an_unknown_device() {
    let recorded = figures(400.0, 0.1, 3.0);
    let unknown = ModelBasis::default();
    let from = model(recorded, recorded);
    let known = expected_effect(BTreeMap::new(), &from, &unknown, &pairs());
    assert!(known.is_known() && known.text[1].contains("limit plays no part"), "{known:?}");
    let mut more = pairs();
    more[3][1].flushed_pages_per_s_max = Some(1200.0);
    let none = expected_effect(BTreeMap::new(), &from, &unknown, &more);
    assert!(!none.is_known() && none.text[0].contains("up to 1.2 K pages"), "{none:?}");
}

#[test]
fn a_model_that_does_something_else_is_refused_with_its_device() {
    let recorded = figures(400.0, 0.1, 3.0);
    let mut fits = model(recorded, recorded);
    assert_eq!(judge_expected(&mut fits, &limited()), Ok(()));
    assert!(fits.fits && fits.text.last().unwrap().contains("1.5 K requests per second"));
    let mut apart = model(recorded, figures(200.0, 0.1, 3.0));
    let why = judge_expected(&mut apart, &ModelBasis::default()).unwrap_err();
    assert!(why.contains("Off by more than 15 %: transactions per second: 50 % less."), "{why}");
    assert!(!apart.fits && why.ends_with("The limit of the device is not known."), "{why}");
    // One stalls and the other does not, whatever their means are.
    let mut even = model(recorded, figures(400.0, 0.9, 3.0));
    assert!(judge_expected(&mut even, &limited()).is_err() && !even.fits);
    assert!(even.text.iter().any(|text| text.contains("that of the model has 0.90")), "{even:?}");
}
