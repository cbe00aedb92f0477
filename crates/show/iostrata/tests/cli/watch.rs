//! `iostrata watch` on a private server and on an engine that another process holds.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use iostrata_engine::{Engine, Settings};
use iostrata_server::private::ServerProgram;
use serde_json::Value;

use crate::harness::{Bench, document, number, stderr, stdout};
use crate::server::{Private, programs};

/// The contract's fields, whatever the target reports.
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
fn what_was_recorded_until_a_kill_is_reported() {
    let bench = Bench::new();
    let engine = engine(&bench);
    let line = "watch engine:db --interval 100ms --json-lines --record KILLED";
    let mut child = start(&bench, line);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let shown: Vec<String> = (0..4).map(|_| lines.next().unwrap().unwrap()).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    engine.close().unwrap();
    let kept = document(&bench.line("report KILLED --json"), "watch");
    assert_eq!(kept["target"]["flavour"], "engine");
    let samples = kept["samples"].as_array().unwrap();
    for (kept, shown) in samples.iter().zip(&shown) {
        assert_eq!(kept, &serde_json::from_str::<Value>(shown).unwrap());
    }
    assert!(samples.len() >= 4 && number(&kept, "/duration_s") > 0.2, "{kept}");
    let report = bench.line("report KILLED");
    assert!(report.status.success(), "{}", stderr(&report));
}

#[test]
fn of_several_targets_one_that_is_down_is_shown_and_asked_again() {
    let Some(mut private) = Private::start(&["--innodb-buffer-pool-size=32M"]) else { return };
    let bench = Bench::new();
    let engine = engine(&bench);
    let target = private.target("root", "mysql");
    private.kill();
    let once = bench.line(&format!("watch {target} engine:db --once"));
    assert!(once.status.success(), "{}", stderr(&once));
    assert!(stdout(&once).contains("no answer: mysql://root@"), "{}", stdout(&once));
    let none = bench.line(&format!("watch {target} mysql://u@127.0.0.1:9/ --once"));
    assert_eq!(none.status.code(), Some(3), "none answers: {}", stdout(&none));
    let alone = bench.line(&format!("watch {target} --once"));
    assert_eq!(alone.status.code(), Some(3), "{}", stdout(&alone));
    let line = format!("watch {target} engine:db --interval 200ms --json-lines");
    let mut child = start(&bench, &line);
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let is_servers = |sample: &Value| sample["target"].as_str().unwrap().starts_with("mysql://");
    let first = lines.find(is_servers).unwrap();
    assert!(first["error"].as_str().unwrap().contains("nothing listens"), "{first}");
    private.start_again();
    let answers = lines.find(|sample| is_servers(sample) && sample["error"].is_null()).unwrap();
    assert!(number(&answers, "/checkpoint_age_limit_bytes") > 0.0, "{answers}");
    signal(&child, "TERM");
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    engine.close().unwrap();
    private.end();
}

#[test]
fn what_cannot_be_watched_is_refused_with_the_fix() {
    let bench = Bench::new();
    engine(&bench).close().unwrap();
    for (line, code, words) in [
        ("watch engine:none --once", 2, "contains no engine"),
        ("watch db --once", 2, "mysql://user@host:port or engine:DIR"),
        ("watch mysql://u@127.0.0.1:9/ --once", 3, "nothing listens there"),
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

#[test]
fn an_address_that_is_taken_is_refused_before_a_server_is_asked() {
    let bench = Bench::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for command in ["watch", "tune"] {
        // Nothing listens at this server's address: a command that connected to it first would
        // report that.
        let output = bench.line(&format!(
            "{command} mysql://u@127.0.0.1:9/ --metrics-addr 127.0.0.1:{port} --time 1"
        ));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{command}: {said}");
        assert!(said.contains("--metrics-addr: "), "{command}: {said}");
    }
}

#[test]
fn a_watched_server_is_scraped_over_http() {
    let Some(private) = Private::start(&["--innodb-buffer-pool-size=32M"]) else { return };
    let bench = Bench::new();
    let target = private.target("root", "mysql");
    let line = format!("watch {target} --interval 100ms --json-lines --metrics-addr 0");
    let mut child = start(&bench, &line);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Rates come with the second sample.
    (0..3).for_each(|_| drop(lines.next().unwrap().unwrap()));
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
    let body = told.find_map(|line| scraped(&line.unwrap())).unwrap();
    signal(&child, "TERM");
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    for name in ["iostrata_target_up{", "iostrata_checkpoint_age_bytes{"] {
        let value = body.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| {
            panic!("{name} is missing in {body}");
        });
        assert!(value.contains("target=\"mysql://") && !value.contains("root@"), "{value}");
    }
    checked_by_promtool(&body);
    private.end();
}

/// The metrics at the address that a text names.
pub fn scraped(text: &str) -> Option<String> {
    let at = text.split("http://").nth(1)?.split_once("/metrics")?.0;
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    Some(body.to_owned())
}

/// What Prometheus's own tool reports about a page of metrics.
pub fn checked_by_promtool(body: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = promtool.stdout(Stdio::null()).spawn() else {
        eprintln!("skipped: promtool is not installed");
        return;
    };
    child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let checked = child.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}{body}", stderr(&checked));
}

#[test]
fn a_server_is_summed_up_on_one_page() {
    for program in programs() {
        let program = ServerProgram::find(&program).unwrap();
        let server = Private::of(
            program,
            tempfile::tempdir().unwrap(),
            &[],
            &["SET GLOBAL innodb_flush_log_at_trx_commit = 2", "CREATE DATABASE load_db"],
        );
        let bench = Bench::new();
        let target = server.target("root", "load_db");
        let loads =
            format!("oltp update_index prepare --target {target} --tables 1 --table-size 1000");
        assert!(bench.line(&loads).status.success());
        let line = format!("watch {target} --summary --time 1s --interval 200ms");
        let all = document(&bench.line(&format!("{line} --json")), "server-summary");
        assert_eq!(all["durability"]["flush_log_at_commit"], 2);
        assert_eq!(all["commit_survives"], "a crash of the server, not one of its host");
        assert!(number(&all, "/redo/mean_bytes_per_s_since_start") > 0.0, "{all}");
        assert!(number(&all, "/redo/minutes_at_mean_since_start") > 0.0, "{all}");
        assert!(number(&all, "/samples") >= 2.0 && number(&all, "/window_s") >= 0.2, "{all}");
        assert!(number(&all, "/connections/limit") > 0.0 && all["replica"].is_null(), "{all}");
        assert_eq!(all["deadlocks"], 0, "MySQL reports them as a metric, not as a status");
        assert!(number(&all, "/pool/dirty_pct") > 0.0, "{all}");
        let changed: Vec<&str> = all["settings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| one["source"] == "changed")
            .filter_map(|one| one["name"].as_str())
            .collect();
        let page = stdout(&bench.line(&line));
        assert!(
            page.contains("a commit survives a crash of the server, not one of its host"),
            "{page}"
        );
        match all["settings"].is_null() {
            true => assert!(page.contains("does not report their origin"), "{page}"),
            false => {
                assert_eq!(changed, ["innodb_flush_log_at_trx_commit"], "{page}");
                assert!(page.contains("Changed       innodb_flush_log_at_trx_commit=2"), "{page}");
            }
        }
        assert!(page.lines().all(|line| line.chars().count() <= 110), "{page}");
    }
}

#[test]
fn a_summary_is_of_one_server() {
    let bench = Bench::new();
    for (line, said) in [
        ("watch engine:db --summary", "iostrata engine stats DIR"),
        ("watch mysql://a@h:1 mysql://a@h:2 --summary", "2 targets were named"),
        ("watch mysql://a@h:1 --summary --once", "cannot be used with"),
    ] {
        let output = bench.line(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(stderr(&output).contains(said), "{line}: {}", stderr(&output));
    }
}

#[test]
fn every_counter_is_on_where_that_is_asked_for() {
    for program in programs() {
        let found = ServerProgram::find(&program).unwrap();
        let users = ["CREATE USER poor@localhost", "GRANT PROCESS ON *.* TO poor@localhost"];
        let options = ["--innodb-buffer-pool-size=64M"];
        let private = Private::of(found, tempfile::tempdir().unwrap(), &options, &users);
        let bench = Bench::new();
        let counted = |user: &str| {
            let target = private.target(user, "");
            let line = format!("watch {target} --enable-counters --lines --time 1");
            let output = bench.line(&line);
            (output.status.code(), stderr(&output))
        };
        let (code, said) = counted("root");
        assert_eq!(code, Some(0), "{program}: {said}");
        assert!(!said.contains("--enable-counters"), "{program}: {said}");
        let (code, said) = counted("poor");
        assert_eq!(code, Some(2), "{program}: {said}");
        assert!(said.contains("may not SET GLOBAL; as an administrator: GRANT S"), "{said}");
        private.end();
    }
}
