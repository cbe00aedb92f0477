//! Studies of transactions on the embedded engine.

use std::io::{Seek, SeekFrom};
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::harness::{Bench, document, stderr, stdout, usual_or_soak};

/// A redo so small that it goes round many times in a second.
const STUDY: &str = r#"
name = "even"
title = "Two policies on a small redo"
question = "Which is more even?"
[base]
workload = "updates"
filesystem = "here"
rows = 5000
workers = 4
"engine.redo_log_capacity" = "1M"
"engine.buffer_pool_size" = "8M"
[factors]
"engine.policy" = ["adaptive", "steady"]
[measure]
replicates = 3
replicates_max = 3
point_time = "2200ms"
trace = false
profile_hz = 0
[[answer]]
asks = "which is more even"
of = { "engine.policy" = "steady" }
over = { "engine.policy" = "adaptive" }
metric = "min_over_mean_1s"
more = "steady is more even"
less = "steady is less even"
same = "both are as even"
[then]
source = "made up"
machine = "none"
[[then.figure]]
text = "steady"
value = 100
metric = "tps"
at = { "engine.policy" = "steady" }
"#;

/// The same with fewer replicates in the usual form.
fn study() -> String {
    STUDY.replace("= 3\n", &format!("= {}\n", replicates_of_a_point()))
}

fn replicates_of_a_point() -> usize {
    usual_or_soak(2, 3)
}

/// The same with a reader and with a second engine on the same directory, and without the engine.
fn beside() -> String {
    let factors = "[factors]\n\"engine.policy\" = [\"adaptive\", \"steady\"]";
    let second = "readers = 1\nsecond_rate_tps = 200\n\"second.policy\" = \"steady\"\n\
                  \"second.redo_log_capacity\" = \"1M\"\n\
                  \"second.buffer_pool_size\" = \"8M\"\n\
                  [factors]\n\"engine.policy\" = [\"steady\"]\nsecond_workers = [0, 2]";
    let text = study().replace(factors, second);
    text.split("[[answer]]").next().unwrap_or_default().to_owned()
}

fn replicates(bench: &Bench) -> usize {
    let events = std::fs::read_to_string(bench.path("RUN/events.jsonl")).unwrap_or_default();
    events.matches("\"event\":\"replicate\"").count()
}

#[test]
fn policies_are_compared_by_their_transactions() {
    let bench = Bench::new();
    std::fs::write(bench.path("even.toml"), study()).unwrap();
    let output = bench.line("study run even.toml --out RUN --json");
    let document = document(&output, "study");
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "{:#}", document["unavailable"]);
    for point in points {
        assert_eq!(point["unit"], "transactions/s");
        assert!(point["value"].as_f64().unwrap() > 0.0);
        let found = &point["transactions"];
        let figure = |name: &str| found["figures"][name]["value"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&figure("min_over_mean_1s")), "{found:#}");
        for name in ["redo_bytes_per_s", "pages_dirtied_per_s", "checkpoint_age_pct", "tps"] {
            assert!(figure(name) > 0.0, "{name}: {found:#}");
        }
        assert!(
            figure("latency_p99_9_us")
                >= point["transaction"]["latency_us"]["p50"].as_f64().unwrap()
        );
        // Who was admitted before the wall may finish: four writers, in a redo of 1 MiB.
        assert!(figure("checkpoint_age_max_pct") <= 110.0, "{found:#}");
        let seconds = found["series"]["tps"].as_array().unwrap();
        assert_eq!(seconds.len(), 2, "whole seconds of a window of 2.2 s: {seconds:?}");
    }
    assert_eq!(document["then"][0]["unit"], "transactions/s");
    assert!(document["then"][0]["now"].as_f64().unwrap() > 0.0);
    assert_eq!(document["answers"].as_array().unwrap().len(), 1);
    let changes = document["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 1, "one directory of databases: {changes:?}");
    assert!(!bench.path("RUN/volumes").exists(), "the databases are gone");
    let report = std::fs::read_to_string(bench.path("RUN/report.html")).unwrap();
    assert!(report.contains("Stability and speed"));
    let shown = stdout(&bench.line("report RUN --format terminal"));
    assert!(shown.contains("Worst second"), "{shown}");
    let picture = stdout(&bench.line("report RUN --format svg"));
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
}

#[test]
fn a_second_engine_runs_beside_the_first_and_is_removed_with_it() {
    let bench = Bench::new();
    std::fs::write(bench.path("even.toml"), beside()).unwrap();
    let document = document(&bench.line("study run even.toml --out RUN --json"), "study");
    let points = document["points"].as_array().unwrap();
    let ids: Vec<&str> = points.iter().map(|point| point["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["steady_second0", "steady_second2"], "{:#}", document["unavailable"]);
    let figures = |point: usize| &points[point]["transactions"]["figures"];
    let figure = |name: &str| figures(1)[name]["value"].as_f64().unwrap();
    let tps = figure("second_tps");
    assert!(tps > 0.0 && tps < 300.0, "it has a rate of its own, 200: {tps}");
    assert!(figure("tps") > 0.0 && figure("second_pages_per_s") > 0.0, "{:#}", figures(1));
    assert!((0.0..100.0).contains(&figure("second_pages_pct")), "{:#}", figures(1));
    assert!(figures(0)["second_tps"].is_null(), "no second engine, no figures of one");
    let reads = |point: usize| figures(point)["reader_iops"]["value"].as_f64().unwrap();
    assert!(reads(0) > 0.0 && reads(1) > 0.0, "{:#}", figures(0));
    assert!(figure("reader_latency_p99_us") > 0.0, "{:#}", figures(1));
    assert_eq!(document["changes"].as_array().unwrap().len(), 2, "a directory for each");
    assert!(!bench.path("RUN/volumes").exists(), "the databases are gone");
    let report = std::fs::read_to_string(bench.path("RUN/report.html")).unwrap();
    assert!(report.contains("Second engine") && report.contains("Concurrent reads"));
}

#[test]
fn what_is_said_of_a_second_engine_is_checked_with_its_place() {
    let bench = Bench::new();
    for (right, wrong, place, words) in [
        ("\"second.policy\"", "\"second.polcy\"", "even.toml:14:18", "policy"),
        ("\"second.policy\" = \"steady\"", "\"second.policy\" = \"stedy\"", "14:19", "steady"),
        ("workload = \"updates\"", "bs = \"4k\"", "even.toml:19:", "requests are what runs"),
        ("second_workers = [0, 2]", "row_updates = [4]", "even.toml:", "second_workers = 4"),
    ] {
        let text = beside().replacen(right, wrong, 1);
        std::fs::write(bench.path("even.toml"), text).unwrap();
        let output = bench.line("study show even.toml");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(place) && said.contains(words), "{place}: {said}");
    }
}

/// Inserts on a volume that is filled while the study runs.
#[test]
fn a_point_without_room_on_its_volume_is_told_with_what_helps() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a volume needs root");
        return;
    }
    let bench = Bench::new();
    let text = STUDY.split("[[answer]]").next().unwrap().replace("\"updates\"", "\"insert\"");
    // Far more replicates than are measured before the volume is full.
    let text = text.replace("\"here\"", "\"ext4\"").replace("= 3\n", "= 40\n");
    std::fs::write(bench.path("even.toml"), text).unwrap();
    let mut study = bench.command(&["study", "run", "even.toml", "--out", "RUN", "--quiet"]);
    let mut child = study.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while replicates(&bench) < 1 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut filling = std::fs::File::create(bench.path("RUN/volumes/ext4/filling")).unwrap();
    // Room that is taken without being written; what is left of it is.
    let (mut at, mut step) = (0, 1 << 30);
    while step >= 1 << 20 {
        match rustix::fs::fallocate(&filling, FallocateFlags::empty(), at, step) {
            Ok(()) => at += step,
            Err(Errno::NOSPC) => step /= 2,
            Err(other) => panic!("{other}"),
        }
    }
    filling.seek(SeekFrom::End(0)).unwrap();
    let full = std::io::copy(&mut std::io::repeat(0), &mut filling).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    drop(filling);
    child.wait().unwrap();
    let text = std::fs::read_to_string(bench.path("RUN/result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    let missing = result["unavailable"].as_array().unwrap();
    let of_room = missing.iter().find(|one| one["cause"] == "no_room");
    let of_room = of_room.unwrap_or_else(|| panic!("no point without room: {missing:#?}"));
    assert!(of_room["fix"].as_str().unwrap().contains("`volume_size`"), "{of_room:#}");
    assert!(!bench.path("RUN/volumes").exists(), "the volume is gone");
}

/// More rows in a transaction than the pool has room for.
#[test]
fn a_load_whose_transactions_all_fail_is_told_with_their_error() {
    let bench = Bench::new();
    let text = STUDY.split("[[answer]]").next().unwrap();
    let text = text.replace("\"updates\"", "\"insert\"\ncommit_rows = 2000");
    std::fs::write(bench.path("even.toml"), text).unwrap();
    let output = bench.line("study run even.toml --out RUN");
    let said = stderr(&output);
    assert_ne!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("transactions failed, most of them with too_large"), "{said}");
    let shown = stdout(&output);
    assert!(shown.contains("No point was measured") && !shown.contains("100 %"), "{shown}");
}

#[test]
fn what_the_engine_does_not_take_is_refused_before_anything_is_made() {
    let bench = Bench::new();
    for (right, wrong, place, words) in [
        (
            "\"engine.policy\" = [\"adaptive\"",
            "\"engine.polcy\" = [\"adaptive\"",
            "even.toml:13:19",
            "policy",
        ),
        ("\"steady\"]", "\"stedy\"]", "even.toml:13:32", "steady"),
        ("\"8M\"", "\"plenty\"", "even.toml:11:29", "buffer_pool_size"),
    ] {
        let text = STUDY.replacen(right, wrong, 1).replace(
            "at = { \"engine.policy\" = \"steady\" }",
            "at = { \"engine.policy\" = \"adaptive\" }",
        );
        let text = text.split("[[answer]]").next().unwrap();
        std::fs::write(bench.path("even.toml"), text).unwrap();
        for command in ["study show even.toml", "study run even.toml --out RUN"] {
            let output = bench.line(command);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(said.contains(place) && said.contains(words), "{place}: {said}");
        }
        assert!(!bench.path("RUN").exists());
    }
}

#[test]
fn a_killed_study_of_transactions_is_restored_and_goes_on() {
    let bench = Bench::new();
    std::fs::write(bench.path("even.toml"), beside()).unwrap();
    let start = || {
        bench
            .command(&["study", "run", "even.toml", "--out", "RUN", "--quiet"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut child = start();
    while replicates(&bench) < 1 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    // In the middle of the next window, with transactions under way.
    std::thread::sleep(Duration::from_millis(700));
    child.kill().unwrap();
    child.wait().unwrap();
    let volumes = bench.path("RUN/volumes");
    let directories = ["iostrata-databases", "iostrata-databases-second"];
    let databases = directories.map(|name| volumes.join(name));
    assert!(databases.iter().all(|dir| dir.is_dir()), "a killed study leaves its databases");
    let output = bench.line("restore");
    assert_eq!(output.status.code(), Some(0), "{} {}", stdout(&output), stderr(&output));
    assert!(!databases.iter().any(|dir| dir.exists()), "{}", stdout(&output));
    let had = replicates(&bench);
    let document = document(&bench.line("study resume RUN --json"), "study");
    assert_eq!(document["points"].as_array().unwrap().len(), 2);
    // Windows that other guests of the machine took are measured once more.
    let (has, all) = (replicates(&bench), 2 * replicates_of_a_point());
    assert!(document["interrupted"] == false && has >= all, "{has} replicates");
    assert!(had < all, "it went on");
}

#[test]
fn a_directory_of_databases_that_is_not_ours_is_left_alone() {
    let bench = Bench::new();
    std::fs::write(bench.path("even.toml"), STUDY).unwrap();
    std::fs::create_dir_all(bench.path("data/iostrata-databases")).unwrap();
    std::fs::write(bench.path("data/iostrata-databases/mine"), "mine").unwrap();
    let output = bench.line("study run even.toml --out RUN --dir data");
    assert_ne!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stderr(&output).contains("iostrata-databases"), "{}", stderr(&output));
    assert_eq!(
        std::fs::read_to_string(bench.path("data/iostrata-databases/mine")).unwrap(),
        "mine"
    );
}
