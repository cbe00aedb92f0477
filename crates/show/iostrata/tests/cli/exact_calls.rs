//! The contract's exact calls, each run as it stands there, and the shape of what they print.

use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Bench, document, number, probed, stderr, stdout};
use crate::server::Private;
use crate::watch::has_all_fields;

/// What every document of `io` holds: `iops = ios / duration_s`, inside its interval.
fn assert_rates(document: &Value, op: &str) {
    let ios = number(document, &format!("/{op}/ios"));
    let iops = number(document, &format!("/{op}/iops"));
    let duration_s = number(document, "/duration_s");
    assert!((iops / (ios / duration_s) - 1.0).abs() < 1e-6, "{iops} {ios} {duration_s}");
    assert!(number(document, &format!("/{op}/iops_ci95/0")) <= iops);
    assert!(number(document, &format!("/{op}/iops_ci95/1")) >= iops);
    assert!(number(document, &format!("/{op}/iops_n")) >= 2.0);
    // Another run may be slower or faster than this window allows for.
    for (side, sign) in [(0, 1.0), (1, -1.0)] {
        let [window, again] = ["iops_ci95", "iops_repeat_ci95"]
            .map(|name| sign * number(document, &format!("/{op}/{name}/{side}")));
        assert!(again <= window, "side {side}: {again} {window}");
    }
    for field in ["mean", "p50", "p95", "p99", "p99_9", "max"] {
        assert!(number(document, &format!("/{op}/latency_us/{field}")) > 0.0, "{field}");
    }
}

#[test]
fn io_null_touches_and_reserves_nothing() {
    let bench = Bench::new();
    let output = bench
        .line("io --path F --ioengine null --rw randread --bs 4k --size 100G --runtime 3s --json");
    let document = document(&output, "io");
    assert_rates(&document, "read");
    assert!((number(&document, "/duration_s") - 3.0).abs() < 0.01);
    assert!(document["write"].is_null() && document["sync"].is_null());
    assert_eq!(bench.data_files(), Vec::<String>::new());
}

#[test]
fn io_keeps_a_file_and_uses_it_again() {
    let bench = Bench::new();
    let line = "io --path F --keep --size 512M --bs 4k --rw randread --direct --ioengine io_uring \
                --numjobs 1 --iodepth 32 --runtime 4s --json";
    let document = document(&bench.line(line), "io");
    assert_rates(&document, "read");
    assert!((number(&document, "/duration_s") - 4.0).abs() < 0.01);
    assert!(number(&document, "/cpu/ns_per_io") > 0.0);
    assert!(document["read"]["response_us"].is_null(), "there is no schedule");
    let made = std::fs::metadata(bench.path("F")).unwrap();
    assert_eq!(made.len(), 512 << 20);
    let again = bench.line(&line.replace("4s", "200ms"));
    assert!(again.status.success(), "{}", stderr(&again));
    let kept = std::fs::metadata(bench.path("F")).unwrap();
    assert_eq!(made.modified().unwrap(), kept.modified().unwrap(), "it was filled again");
}

#[test]
fn io_separates_flushes_and_keeps_both_latencies_when_rated() {
    let bench = Bench::new();
    let document = document(
        &bench.line(
            "io --path F --size 16M --bs 16k --rw randwrite --fdatasync 4 --rate-iops 400 \
             --rate-process poisson --runtime 1 --json",
        ),
        "io",
    );
    let (writes, syncs) = (number(&document, "/write/ios"), number(&document, "/sync/ios"));
    assert!((writes / 4.0 - syncs).abs() <= 2.0, "{writes} writes, {syncs} flushes");
    assert!(
        number(&document, "/write/response_us/p99") >= number(&document, "/write/latency_us/p50")
    );
    assert!(document["read"].is_null());
    assert_eq!(bench.data_files(), Vec::<String>::new(), "the file was made for the run");
}

#[test]
fn io_runs_jobs_as_processes() {
    let bench = Bench::new();
    let line =
        "io --path F --size 32M --rw randrw --direct --numjobs 3 --process --runtime 1 --json";
    let document = document(&bench.line(line), "io");
    assert_rates(&document, "read");
    assert_rates(&document, "write");
    assert!((number(&document, "/depth_mean") - 3.0).abs() < 0.3, "three jobs, one each in flight");
    assert_eq!(bench.data_files(), Vec::<String>::new());
}

#[test]
fn fio_says_what_a_job_file_comes_to() {
    let bench = Bench::new();
    std::fs::write(bench.path("FILE"), "[global]\nbs=16k\n[a]\nsize=1m\nrw=randwrite\n").unwrap();
    let output = bench.line("fio --dry-run FILE");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("16 KiB random"), "{}", stdout(&output));
    assert_eq!(bench.data_files(), ["FILE"]);
}

#[test]
fn probe_climbs_the_ladder_and_reports() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("data")).unwrap();
    let some = ["clock_read", "meter_null", "read_4k_depth_1", "write_16k_files_8"];
    let (document, output) = probed(12, &some, |max_time| {
        let _of_a_probe_that_was_too_short = std::fs::remove_dir_all(bench.path("RUN"));
        bench.line(&format!("probe data --json --out RUN {max_time} --max-write 6G --size 256M"))
    });
    for rung in document["rungs"].as_array().unwrap() {
        assert!(rung["value"].as_f64().unwrap() > 0.0, "{rung}");
        assert!(rung["value_n"].as_u64().unwrap() > 0, "{rung}");
    }
    let written = number(&document, "/bytes_written");
    assert!(written > 0.0 && written <= 6.0 * f64::from(1 << 30), "{written}");
    let report = document["report"].as_str().unwrap();
    assert!(bench.path(report).metadata().unwrap().len() > 30_000);
    assert_eq!(std::fs::read_dir(bench.path("data")).unwrap().count(), 0, "files were left");
    let stderr = stderr(&output);
    assert!(stderr.contains("Writes at most 6 GiB"), "{stderr}");
    let shown = bench.line("report RUN --format terminal");
    assert!(shown.status.success() && stdout(&shown).lines().count() > 5);
}

#[test]
fn probe_read_only_writes_its_file_once() {
    let bench = Bench::new();
    let output =
        bench.line("probe . --read-only --json --quiet --size 128M --max-time 6s --out RUN");
    let document = document(&output, "probe");
    assert_eq!(number(&document, "/bytes_written"), f64::from(128 << 20));
    let rungs = document["rungs"].as_array().unwrap();
    assert!(rungs.iter().all(|rung| !rung["name"].as_str().unwrap().contains("write")));
    assert_eq!(stderr(&output), "", "--quiet");
}

/// Runs a call until it has done something, and ends it as a user does.
fn until_terminated(bench: &Bench, line: &str, has_begun: &dyn Fn() -> bool) -> Output {
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while !has_begun() && Instant::now() < until {
        sleep(Duration::from_millis(50));
    }
    sleep(Duration::from_secs(3));
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{line}: {}", stderr(&output));
    output
}

#[test]
fn watch_tells_once_and_line_by_line() {
    let Some(private) = Private::start(&["--innodb-buffer-pool-size=32M"]) else { return };
    let bench = Bench::new();
    let target = private.target("root", "mysql");
    let sample = document(&bench.line(&format!("watch {target} --once --json")), "watch-sample");
    let lines = until_terminated(&bench, &format!("watch {target} --json-lines"), &|| true);
    let lines = stdout(&lines);
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let all: Vec<Value> = lines.chain([sample]).collect();
    assert!(all.len() >= 3, "{all:?}");
    for one in &all {
        has_all_fields(one);
        assert_eq!(one["stalled"], false, "{one}");
    }
}

#[test]
fn tune_keeps_its_run_and_ends_by_a_signal() {
    let Some(private) = Private::start(&["--innodb-buffer-pool-size=32M"]) else { return };
    let bench = Bench::new();
    let target = private.target("root", "mysql");
    let begun = || bench.path("RUN/run.json").is_file();
    until_terminated(&bench, &format!("tune {target} --out RUN"), &begun);
    let kept = document(&bench.line("report RUN --json"), "watch");
    assert!(kept["settings"].is_array() && kept.get("pages_written_per_txn").is_some(), "{kept}");
    assert!(number(&kept, "/duration_s") > 0.0);
}
