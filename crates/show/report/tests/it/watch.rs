//! The report of a target that was watched.

use iostrata_report::{html, markdown, terminal};
use iostrata_run::{
    Advice, Finding, FindingKind, Risk, RunKind, RunResult, SamplerCost, StallCause,
    TransactionStall, TunedSetting, WatchDocument, WatchSample, WatchTarget,
};
use iostrata_spec::Layer;

use crate::sample::{Sample, manifest};

fn stall(t_s: f64, length_s: f64) -> TransactionStall {
    let evidence = "the age was at 99 % of its limit".to_owned();
    TransactionStall { t_s, length_s, min_tps: 14.0, cause: StallCause::RedoFull, evidence }
}

fn advice(setting: &str, value: &str, where_: String) -> Advice {
    Advice {
        setting: setting.to_owned(),
        value: value.to_owned(),
        default: None,
        where_,
        why: vec!["redo_too_small".to_owned()],
        text: "Redo holds 40 s of writes.".to_owned(),
        risk: Risk::None,
        undo: format!("SET GLOBAL {setting} = 104857600"),
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
        for said in ["asked 61 times", "did not answer 2 times"] {
            assert!(text.contains(said), "{said} is not in\n{text}");
        }
    }
    let page = &all[2];
    assert!(page.contains(">87 %<"), "the highest age, which no kept sample has: {page}");
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
