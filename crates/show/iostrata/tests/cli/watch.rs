//! `iostrata watch` on a private server and on an engine that another process holds.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use iostrata_engine::{Engine, Settings};
use serde_json::Value;

use crate::harness::{Bench, document, number, stderr, stdout};
use crate::server::Private;

/// The contract's fields, whatever the target tells.
const FIELDS: [&str; 20] = [
    "t_s",
    "tps",
    "checkpoint_age_bytes",
    "checkpoint_age_limit_bytes",
    "checkpoint_age_pct",
    "redo_bytes_per_s",
    "redo_seconds_left",
    "dirty_pages",
    "dirty_pct",
    "flush_adaptive_pages_per_s",
    "flush_lru_pages_per_s",
    "flush_background_pages_per_s",
    "flush_sync_pages_per_s",
    "furious_flushes",
    "history_list_length",
    "purge_per_s",
    "pending_reads",
    "pending_writes",
    "stalled",
    "stall_cause",
];

pub fn has_all_fields(sample: &Value) {
    let sample = sample.as_object().unwrap();
    for field in FIELDS {
        assert!(sample.contains_key(field), "{field} is missing in {sample:?}");
    }
}

fn start(bench: &Bench, line: &str) -> Child {
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// An engine that this process holds.
fn engine(bench: &Bench) -> Engine {
    let mut settings = Settings::default();
    for (name, value) in [("buffer_pool_size", "4M"), ("redo_log_capacity", "1M")] {
        settings.set(name, value).unwrap();
    }
    Engine::open(bench.path("db"), settings).unwrap()
}

#[test]
fn a_server_is_watched_once_line_by_line_and_on_record() {
    let Some(private) = Private::start(&["--innodb-buffer-pool-size=32M"]) else { return };
    let bench = Bench::new();
    let target = private.target("root", "mysql");
    let sample = document(
        &bench.line(&format!("watch {target} --interval 200ms --once --json")),
        "watch-sample",
    );
    has_all_fields(&sample);
    assert!(number(&sample, "/checkpoint_age_limit_bytes") > 0.0);
    assert!(number(&sample, "/tps") >= 0.0 && number(&sample, "/sample_us") > 0.0);
    assert_eq!(sample["stalled"], false);
    assert!(sample["flush_sync_pages_per_s"].is_null(), "that counter is off: {sample}");

    let lines = bench.line(&format!("watch {target} --interval 100ms --time 1 --json-lines"));
    assert!(lines.status.success(), "{}", stderr(&lines));
    let lines: Vec<Value> =
        stdout(&lines).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!((5..=11).contains(&lines.len()), "{}", lines.len());
    lines.iter().for_each(has_all_fields);

    let line = format!("watch {target} --interval 100ms --time 1 --record RUN --enable-counters");
    let recorded = bench.line(&line);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let text = stdout(&recorded);
    assert!(text.lines().next().unwrap().contains("age%"), "{text}");
    assert!(text.contains("it never stalled"), "{text}");
    let kept = document(&bench.line("report RUN --json"), "watch");
    assert_eq!(kept["target"]["flavour"], "mariadb");
    let last = kept["samples"].as_array().unwrap().last().unwrap().clone();
    assert!(number(&last, "/flush_sync_pages_per_s") >= 0.0, "the counter was on: {last}");
    assert!(bench.path("RUN/report.html").is_file());
    let after = document(
        &bench.line(&format!("watch {target} --interval 100ms --once --json")),
        "watch-sample",
    );
    assert!(after["flush_sync_pages_per_s"].is_null(), "the counter is off again");
    private.end();
}

#[test]
fn an_engine_is_watched_while_another_process_holds_it() {
    let bench = Bench::new();
    let engine = engine(&bench);
    let sample = document(&bench.line("watch engine:db --once --json"), "watch-sample");
    has_all_fields(&sample);
    assert_eq!(sample["furious_flushes"], 0);
    assert!(number(&sample, "/purge_per_s") >= 0.0);
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut child = start(&bench, "watch engine:db --interval 100ms --json-lines --record RUN");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        has_all_fields(&first);
        lines.next().unwrap().unwrap();
        signal(&child, name);
        lines.for_each(drop);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        let kept = document(&bench.line("report RUN --json"), "watch");
        assert!(kept["samples"].as_array().unwrap().len() >= 2, "{kept}");
    }
    engine.close().unwrap();
}

#[test]
fn what_cannot_be_watched_is_refused_with_the_fix() {
    let bench = Bench::new();
    engine(&bench).close().unwrap();
    for (line, code, words) in [
        ("watch engine:none --once", 2, "holds no engine"),
        ("watch db --once", 2, "mysql://user@host:port or engine:DIR"),
        ("watch mysql://u@127.0.0.1:9/ --once", 3, "nobody listens there"),
        ("watch mysql://u@h1,h2/ --once", 2, "name 2 targets"),
        ("watch engine:db engine:db --json", 2, "--json-lines"),
        ("watch engine:db --interval 10ms", 2, "100ms to 60s"),
        ("watch", 2, "TARGET"),
    ] {
        let output = bench.line(line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{line}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{line}");
    }
}
