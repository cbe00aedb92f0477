//! The verdict in a terminal.

use std::path::Path;

use iostrata_plan::Layer;
use iostrata_run::{Finding, FindingKind};
use iostrata_show::report::{html, markdown, terminal};

use crate::report::sample::{self, Sample};

fn samples() -> [Sample; 5] {
    let (probe, clean) = (sample::probe(), sample::clean_probe());
    [probe, clean, sample::io(), sample::transactions(), sample::partial()]
}

#[test]
fn a_verdict_fits_a_screen() {
    for sample in samples() {
        for width in [60, 80, 100, 200] {
            let text = terminal(&sample.view(), width, false);
            let most = text.lines().map(|line| line.chars().count()).max().unwrap();
            let rows = text.lines().count();
            assert!(most <= width, "{most} columns at {width}:\n{text}");
            assert!(width < 80 || rows <= 60, "{rows} rows at {width}:\n{text}");
        }
    }
}

#[test]
fn without_colour_it_is_ascii() {
    for sample in samples() {
        let text = terminal(&sample.view(), 100, false);
        assert!(text.is_ascii(), "{text}");
    }
}

#[test]
fn every_job_of_a_job_file_is_in_every_form() {
    let sample = sample::fio();
    let view = sample.view();
    let (text, page) = (terminal(&view, 100, false), html(&view));
    for shown in
        ["redo (wave 1, 30 s)", "<b>pages</b>, 4 clones (wave 2, 30 s)", "jobs.fio:7: openfiles=1"]
    {
        assert!(text.contains(shown), "{shown} is missing in:\n{text}");
    }
    let written = markdown(&view);
    assert!(
        written.contains("## redo (wave 1, 30 s)") && written.contains("\\<b\\>pages"),
        "{written}"
    );
    assert!(page.contains("&lt;b&gt;pages&lt;/b&gt;, 4 clones") && page.contains("2 workloads"));
    assert!(!page.contains("A partial run"));
}

/// Compares with the text that is kept; `UPDATE_TEXTS=1` keeps a new one, to be read before it is
/// committed.
fn assert_kept(name: &str, text: &str) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/report/texts/{name}.txt"));
    if std::env::var_os("UPDATE_TEXTS").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} differs from what is kept:\n{text}");
}

#[test]
fn a_probe_reads_at_a_glance() {
    for width in [60, 80] {
        assert_kept(&format!("probe-{width}"), &terminal(&sample::probe().view(), width, false));
        let clean = terminal(&sample::clean_probe().view(), width, false);
        assert_kept(&format!("clean-{width}"), &clean);
    }
}

#[test]
fn a_loss_without_a_second_rung_is_among_the_losses() {
    let mut sample = sample::clean_probe();
    let finding = Finding {
        id: "volume_cap".to_owned(),
        kind: FindingKind::Loss,
        text: "The volume takes 3,000 requests/s and no more.".to_owned(),
        layer: Layer::Limit,
        effect_pct: None,
        effect_pct_ci95: None,
        effect_pct_n: 4,
        evidence: Default::default(),
    };
    sample.document().findings.push(finding);
    let text = terminal(&sample.view(), 80, false);
    assert!(text.contains("Losses\n  The volume takes 3,000 requests/s and no more."), "{text}");
    for form in [text, html(&sample.view()), markdown(&sample.view())] {
        assert!(!form.contains("No loss found"), "{form:.4000}");
    }
}

#[test]
fn what_could_not_be_decided_is_no_loss_that_was_not_found() {
    let open = sample::probe().document().losses[0].clone();
    for (compared, said) in [
        (1, "Nothing is known of losses: 1 comparison of equal work stayed open."),
        (
            2,
            "No layer costs more than 8 % or 310 us a request (1 comparison of equal work); 1 stayed open.",
        ),
    ] {
        let mut sample = sample::clean_probe();
        let document = sample.document();
        (document.compared, document.undecided) = (compared, vec![open.clone()]);
        let text = terminal(&sample.view(), 100, false);
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn every_run_has_the_same_rows() {
    let rows = |text: &str| -> Vec<String> {
        let ladder = text.lines().skip_while(|line| !line.starts_with("One request in flight"));
        let ladder = ladder.take_while(|line| !line.is_empty());
        let layers = ["device ", "file system ", "file API "];
        ladder
            .filter(|line| layers.iter().any(|layer| line.trim_start().starts_with(layer)))
            .map(|line| line.chars().take(43).collect::<String>())
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    };
    let whole = rows(&terminal(&sample::probe().view(), 80, false));
    let mut little = sample::probe();
    little.document().rungs.truncate(4);
    little.document().losses.clear();
    assert_eq!(whole.len(), 17, "{whole:#?}");
    assert_eq!(rows(&terminal(&little.view(), 80, false)), whole);
}

#[test]
fn one_workload_reads_like_what_users_of_fio_know() {
    let text = terminal(&sample::io().view(), 100, false);
    for line in [
        "               rate            bandwidth     mean      p50      p95      p99    p99.9      max",
        "  reads    18.3 K/s +- 0.9 %  71.7 MiB/s  41.2 us  38.3 us  57.7 us  90.6 us   202 us  1.28 ms",
        "  *buffers (memlock_limited): registered buffers were refused (RLIMIT_MEMLOCK or kernel)",
    ] {
        assert!(text.lines().any(|one| one == line), "no line {line:?} in\n{text}");
    }
    let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let again = "+- is for this window; measured again within the hour: 16.5 K/s to 20.2 K/s reads";
    assert!(flowing.contains(again) && flowing.contains("(by 7 earlier runs here)"), "{text}");
}
