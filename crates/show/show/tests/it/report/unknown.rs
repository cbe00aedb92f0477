//! Figures that cannot be, fed to every view: none shows them as measured.

use iostrata_plan::OpKind;
use iostrata_run::{Refusal, RunResult};
use iostrata_show::report::{html, markdown, terminal};
use iostrata_stats::LatencyUs;
use serde_json::Value;

use crate::report::sample::{self, Sample};

/// The sample as it reaches the views.
fn checked(mut sample: Sample) -> Sample {
    sample.result.iter_mut().for_each(RunResult::check);
    sample
}

/// Every form of a run, with its name; the JSON one as the command prints it.
fn forms(sample: &Sample) -> [(&'static str, String); 4] {
    let view = sample.view();
    [
        ("terminal", terminal(&view, 80, false)),
        ("markdown", markdown(&view)),
        ("html", html(&view)),
        ("json", serde_json::to_string(&sample.result).unwrap()),
    ]
}

/// Rungs that cannot be, and one whose interval is meaningless.
fn broken_probe() -> Sample {
    let mut sample = sample::probe();
    let document = sample.document();
    let mut set = |name: &str, value: f64, ci95: [f64; 2]| {
        let rung = document.rungs.iter_mut().find(|rung| rung.name == name).unwrap();
        (rung.value, rung.value_ci95) = (value, Some(ci95));
        rung.title = format!("broken {name}");
    };
    set("sustained_16k", 0.0, [0.0, 0.0]);
    set("commit_fsync", -993.125, [-1_511.0, 3_497.0]);
    set("commit_dsync", f64::NAN, [1.0, 2.0]);
    set("path_direct", 7_777.125, [2_000.0, 13_554.25]);
    let loss = document.losses.first_mut().unwrap();
    (loss.loss_pct, loss.text) = (15_898.0, "broken loss".to_owned());
    let finding = document.findings.first_mut().unwrap();
    (finding.effect_pct, finding.text) = (Some(293.0), "broken finding of 293 %".to_owned());
    checked(sample)
}

#[test]
fn no_view_shows_what_cannot_be() {
    let sample = broken_probe();
    for (form, text) in forms(&sample) {
        for shown in [
            "993.125",
            "993 commits",
            "-1511",
            "-1.51 K",
            "15898",
            "15.9 K %",
            "293 %",
            "broken loss",
        ] {
            assert!(!text.contains(shown), "{form}: {shown} in\n{text:.4000}");
        }
        assert!(!text.contains(" 0 writes/s"), "{form}");
        if form != "terminal" {
            for name in ["sustained_16k", "commit_fsync", "commit_dsync"] {
                assert!(text.contains(&format!("broken {name}")), "{form} is silent on {name}");
            }
        }
        if form != "json" {
            assert!(!text.contains("7.78 K writes/s"), "{form} shows what says nothing");
        }
    }
    let [_, (_, written), (_, page), (_, json)] = forms(&sample);
    for text in [&written, &page] {
        assert!(text.contains("no request completed") && text.contains("it cannot be below zero"));
        assert!(text.contains("its interval is wider than its value, 2 K to 13.6 K writes/s"));
    }
    let json: Value = serde_json::from_str(&json).unwrap();
    let why: Vec<(&str, &str)> = json["unknown"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap(), one["why"].as_str().unwrap()))
        .collect();
    assert!(why.contains(&("sustained_16k", "nothing_completed")), "{why:?}");
    assert!(why.contains(&("commit_fsync", "below_zero")), "{why:?}");
    assert!(why.contains(&("commit_dsync", "not_finite")), "{why:?}");
    assert!(why.contains(&("path_direct", "wider_than_value")), "{why:?}");
    let names: Vec<&str> =
        json["rungs"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(!names.contains(&"sustained_16k") && names.contains(&"path_direct"));
    assert_eq!(json["losses"].as_array().unwrap().len(), 2, "the impossible loss is gone");
}

#[test]
fn a_workload_in_which_nothing_completed_has_no_rate() {
    let mut sample = sample::io();
    let Some(RunResult::Io(document)) = &mut sample.result else { unreachable!() };
    let write = document.ops.get_mut(OpKind::Write).unwrap();
    (write.ios, write.iops, write.iops_ci95) = (0, 0.0, Some([0.0, 0.0]));
    write.latency_us = LatencyUs::default();
    let sync = document.ops.get_mut(OpKind::Sync).unwrap();
    (sync.ios, sync.iops, sync.iops_ci95) = (0, 0.0, Some([0.0, 0.0]));
    (sync.latency_us, sync.response_us) = (LatencyUs::default(), Some(LatencyUs::default()));
    let sample = checked(sample);
    for (form, text) in forms(&sample) {
        assert!(text.contains("unknown"), "{form}");
        assert!(!text.contains("0 ns"), "{form}: a latency of no request\n{text:.3000}");
        assert!(form == "json" || text.contains("flushes unknown: no request"), "{form}");
        assert!(form == "json" || text.contains("no request completed"), "{form}");
        assert!(!text.contains("0 writes/s") && !text.contains(" 0 /s"), "{form}\n{text:.3000}");
    }
    let Some(RunResult::Io(document)) = &sample.result else { unreachable!() };
    let why = document.unknown.iter().find(|one| one.name == "write").map(|one| one.why);
    assert_eq!(why, Some(Refusal::NothingCompleted));
    assert_eq!(document.ops[OpKind::Write].as_ref().unwrap().iops_ci95, None);
}

#[test]
fn a_point_of_a_study_is_unknown_in_its_table() {
    let mut sample = sample::small_study();
    let Some(RunResult::Study(document)) = &mut sample.result else { unreachable!() };
    let count = document.points.len();
    document.points[0].value = 0.0;
    document.points[0].value_ci95 = Some([0.0, 0.0]);
    (document.points[1].value, document.points[1].value_ci95) = (777.125, Some([100.0, 1_554.0]));
    let sample = checked(sample);
    for (form, text) in forms(&sample) {
        assert!(form == "json" || !text.contains("\u{b1} 94 %"), "{form}");
        // What the marks mean stands below the table, whatever is in it.
        let rows = text.split("~ an interval").next().unwrap();
        let word = if form == "terminal" { " ?" } else { "unknown" };
        assert!(rows.contains(word), "{form}\n{text:.3000}");
    }
    let Some(RunResult::Study(document)) = &sample.result else { unreachable!() };
    assert_eq!((document.points.len(), document.unknown.len()), (count - 1, 2));
}
