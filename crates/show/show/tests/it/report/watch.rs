//! The report of a target that was watched.

use iostrata_plan::Layer;
use iostrata_run::{
    Advice, ExpectedEffect, ExpectedFigure, Finding, FindingKind, FlushFigures, FlushRecording,
    Risk, RunKind, RunResult, SamplerCost, StallCause, TransactionStall, TunedFigure, TunedSetting,
    WatchDocument, WatchSample, WatchTarget,
};
use iostrata_show::report::{html, markdown, terminal};
use iostrata_stats::{Measured, Verdicts};

use crate::report::sample::{Sample, manifest};

fn stall(t_s: f64, length_s: f64) -> TransactionStall {
    let evidence = "the age was at 99 % of its limit".to_owned();
    TransactionStall { t_s, length_s, min_tps: 14.0, cause: StallCause::RedoFull, evidence }
}

fn advice(setting: &str, value: &str, where_: String) -> Advice {
    Advice {
        versions: None,
        source: None,
        setting: setting.to_owned(),
        value: value.to_owned(),
        default: None,
        where_,
        why: vec!["redo_too_small".to_owned()],
        text: "Redo holds 40 s of writes.".to_owned(),
        risk: Risk::None,
        undo: format!("SET GLOBAL {setting} = 104857600"),
        expected: None,
    }
}

fn watched() -> Sample {
    let finding = Finding {
        id: "redo_too_small".to_owned(),
        kind: FindingKind::Loss,
        text: "Redo is too small.".to_owned(),
        layer: Layer::Engine,
        effect_pct: None,
        effect_pct_ci95: None,
        effect_pct_n: 30,
        evidence: Default::default(),
    };
    let sample = |t_s: u32| WatchSample {
        t_s: f64::from(t_s),
        tps: Some(500.0),
        checkpoint_age_pct: Some(80.0),
        ..WatchSample::default()
    };
    let by_file = "innodb_log_files_in_group = 4 in my.cnf [mysqld]; it needs a restart".to_owned();
    let document = WatchDocument {
        target: WatchTarget { name: "mysql://b@db:3306".to_owned(), ..WatchTarget::default() },
        duration_s: 60.0,
        samples: (0..60).map(sample).collect(),
        stalls: vec![stall(20.0, 4.0), stall(40.0, 3.0)],
        stalled_s: 7.0,
        checkpoint_age_pct_max: Some(87.0),
        sampler: SamplerCost { samples: 61, failed: 2, sample_us_mean: 900.0, sample_us_max: 2e3 },
        tps: Some(500.0),
        settings: vec![TunedSetting { name: "innodb_io_capacity".into(), ..Default::default() }],
        findings: vec![finding],
        advice: vec![
            advice("innodb_log_file_size", "1073741824", "SET GLOBAL innodb_log_file_size".into()),
            advice("innodb_log_files_in_group", "4", by_file),
        ],
        ..WatchDocument::default()
    };
    let result = Some(RunResult::Watch(Box::new(document)));
    let manifest = manifest(RunKind::Watch, &["watch", "mysql://b@db:3306"]);
    Sample { manifest, result, events: vec![], notes: vec![] }
}

#[test]
fn the_recording_says_what_was_computed_of_all_of_it() {
    let view_of = watched();
    let all =
        [terminal(&view_of.view(), 100, false), markdown(&view_of.view()), html(&view_of.view())];
    for text in &all {
        for said in ["it stalled 2 times, 7 s together", "redo full", "14 transactions/s"] {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
    }
    for text in &all[1..] {
        for said in ["sampled 61 times", "did not answer 2 times"] {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
    }
    let page = &all[2];
    assert!(page.contains(">87 %<"), "the highest age, which no kept sample has: {page}");
}

#[test]
fn what_was_tuned_stands_beside_what_was_not() {
    let mut view_of = watched();
    if let Some(RunResult::Watch(document)) = &mut view_of.result {
        document.tuned = vec![TunedFigure {
            title: "worst two seconds".to_owned(),
            unit: "transactions/s".to_owned(),
            tuned: Some(Measured::new(434.0, [431.0, 437.0], 30, Verdicts::none())),
            ..TunedFigure::default()
        }];
    }
    let view = view_of.view();
    for text in [terminal(&view, 100, false), markdown(&view), html(&view)] {
        for said in ["What tuning saved and cost", "worst two seconds", "434", "not known"] {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
    }
    let plain = watched();
    assert!(!html(&plain.view()).contains("What tuning saved"), "nothing was tuned");
}

#[test]
fn advice_stands_beside_the_findings_with_its_undo() {
    let view_of = watched();
    let all =
        [terminal(&view_of.view(), 100, false), markdown(&view_of.view()), html(&view_of.view())];
    for text in &all {
        for said in ["innodb_log_file_size = 1073741824", "SET GLOBAL innodb_log_file_size"] {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
    }
    let page = &all[2];
    assert!(page.contains("To undo: SET GLOBAL innodb_log_file_size = 104857600"));
    // Only what belongs into the file is in the fragment.
    assert!(page.contains("[mysqld]\ninnodb_log_files_in_group = 4\n<"), "{page}");
}

#[test]
fn pressure_limits_and_files_are_drawn_where_they_are_told() {
    let mut view_of = watched();
    let page = html(&view_of.view());
    let titles = [
        "Time in which tasks waited",
        "Use of the tightest I/O limit",
        "Time held back by a processor quota",
        "Written to files, by what they hold",
        "Mean time of a sync",
    ];
    assert!(titles.iter().all(|title| !page.contains(title)), "nothing tells them");
    let Some(RunResult::Watch(document)) = &mut view_of.result else { panic!("a recording") };
    for sample in &mut document.samples {
        let told = r#"{"t_s": 0, "stalled": false, "sample_us": 0,
            "pressure": {"io": {"some_pct": 40, "full_pct": 30, "some_us": 400000}},
            "throttle": {"io_limit_used_pct": 98, "cpu_throttled_us": 5000},
            "files": {"source": "performance_schema", "classes": [
                {"class": "redo", "write_bytes_per_s": 2097152, "sync_ms": 4}]}}"#;
        let WatchSample { pressure, throttle, files, .. } = serde_json::from_str(told).unwrap();
        *sample = WatchSample { pressure, throttle, files, ..sample.clone() };
    }
    let page = html(&view_of.view());
    assert!(titles.iter().all(|title| page.contains(title)), "{page}");
    for said in ["I/O, some", "I/O, all"] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    assert!(!page.contains("processors, some"), "what is not told has no line");
}

fn figure(before: f64, after: f64, [low, change, high]: [f64; 3]) -> ExpectedFigure {
    let measured = |value, ci95| Measured::new(value, ci95, 6, Verdicts::none());
    ExpectedFigure {
        before: measured(before, [0.9 * before, 1.1 * before]),
        after: measured(after, [0.9 * after, 1.1 * after]),
        change_pct: measured(change, [low, high]),
    }
}

/// The same with what its advice is expected to change.
fn expecting() -> WatchDocument {
    let Some(RunResult::Watch(mut watched)) = watched().result else { unreachable!() };
    let stands_on = "6 pairs of runs of the model of mariadb.";
    let set = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    watched.advice[0].expected = Some(ExpectedEffect {
        settings: set("innodb_log_file_size", "1073741824"),
        tps: Some(figure(400.0, 500.0, [21.4, 25.2, 29.0])),
        min_over_mean_1s: Some(figure(0.1, 0.8, [60.5, 70.3, 80.1])),
        pages_written_per_txn: Some(figure(3.0, 2.9, [-5.4, -3.3, -1.2])),
        text: vec![stands_on.to_owned()],
    });
    watched.advice[1].expected = Some(ExpectedEffect {
        settings: set("innodb_log_files_in_group", "4"),
        text: vec!["Nothing is expected: its redo takes an hour to fill.".to_owned()],
        ..ExpectedEffect::default()
    });
    watched.expected_from = Some(FlushRecording {
        run: "this recording".to_owned(),
        workload: "its own load".to_owned(),
        target: "mariadb 10.11.19".to_owned(),
        policy: "mariadb".to_owned(),
        recorded: FlushFigures::default(),
        modelled: FlushFigures::default(),
        assumed: Vec::new(),
        fits: true,
        text: vec!["The model does what was recorded.".to_owned()],
    });
    *watched
}

fn shown(watched: WatchDocument) -> [String; 3] {
    let sample = Sample { result: Some(RunResult::Watch(Box::new(watched))), ..self::watched() };
    [terminal(&sample.view(), 120, false), markdown(&sample.view()), html(&sample.view())]
}

#[test]
fn what_advice_is_expected_to_change_stands_beside_it_with_its_interval() {
    let all = shown(expecting());
    for text in &all {
        for said in [
            "What that is expected to change, by simulation",
            "+25 %",
            "+70 points",
            "-3.3 %",
            "6 pairs of runs of the model of mariadb.",
            "Nothing is expected: its redo takes an hour to fill.",
        ] {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
    }
    for text in &all[1..] {
        for said in ["+21, +29", "-5.4, -1.2", "The model does what was recorded."] {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
    }
    let [terminal, ..] = shown(*match watched().result {
        Some(RunResult::Watch(watched)) => watched,
        _ => unreachable!(),
    });
    assert!(!terminal.contains("expected to change"), "{terminal}");
}
