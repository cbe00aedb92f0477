//! What a recording advises, on a private MariaDB: tried in turns and put back, and an open
//! transaction that is named.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread::{scope, sleep};
use std::time::Duration;

use iostrata_server::{Credentials, ServerAddress, ServerTarget};
use iostrata_target::{
    Access, ColumnType, Op, OpId, Rows, Schema, Session, SessionOptions, Target,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Bench, document, number, stderr, stdout, wait_until};
use crate::server::Private;

/// A redo that goes round within seconds, and a page cleaner that is told to sleep.
const OPTIONS: [&str; 4] = [
    "--innodb-log-file-size=10M",
    "--innodb-buffer-pool-size=128M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-max-dirty-pages-pct-lwm=0",
];
const TABLES: &str = "--tables 1 --table-size 20000";

fn connected(private: &Private, database: &str) -> ServerTarget {
    let address: ServerAddress = private.target("root", database).parse().unwrap();
    let address = Credentials::default().complete(address).unwrap();
    ServerTarget::open(address, None).unwrap()
}

/// The settings of the server's engine, as it tells them.
fn settings(private: &Private) -> BTreeMap<String, String> {
    let facts = connected(private, "").facts().unwrap();
    facts.settings.into_iter().filter(|(name, _)| name.starts_with("innodb_")).collect()
}

fn start(bench: &Bench, line: &str) -> Child {
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
}

fn ids(document: &Value, list: &str, name: &str) -> Vec<String> {
    let all = document[list].as_array().unwrap().iter();
    all.map(|one| one[name].as_str().unwrap().to_owned()).collect()
}

/// Waits until a trial has set something.
fn wait_until_set(private: &Private, before: &BTreeMap<String, String>, child: &mut Child) {
    wait_until("something is set", 100, || {
        assert!(child.try_wait().unwrap().is_none(), "it ended without setting anything");
        settings(private) != *before
    });
}

#[test]
fn advice_is_tried_in_turns_and_put_back_whatever_ends_it() {
    let bench = Bench::new();
    let Some(private) = Private::start(&OPTIONS) else { return };
    let target = private.target("root", "oltp");
    let made = bench.line(&format!("oltp update_index prepare --target {target} {TABLES} --quiet"));
    assert!(made.status.success(), "{}", stderr(&made));
    let run = format!("oltp update_index run --target {target} {TABLES} --threads 4 --quiet");
    let mut load = start(&bench, &format!("{run} --warmup-time 0 --time 240"));
    sleep(Duration::from_secs(2));
    let before = settings(&private);
    let line = format!("watch {target} --interval 100ms --time 5 --verify --verify-window 2s");
    let tried = bench.line(&format!("{line} --record tried --json"));
    assert_eq!(settings(&private), before);
    let text = stderr(&tried);
    assert!(text.contains("8 windows of 2 s, in turns"), "{text}");
    let kept = document(&tried, "watch");
    assert!(ids(&kept, "findings", "id").contains(&"page_cleaner_sleeps".to_owned()), "{kept}");
    let found = kept["verifications"].as_array().unwrap();
    let names: Vec<&str> = found.iter().filter_map(|one| one["text"].as_str()).collect();
    assert!(names[0].contains("innodb_max_dirty_pages_pct_lwm = 0.001"), "{names:?}");
    assert_eq!(found.len(), 3, "{names:?}");
    assert_eq!(number(&found[0], "/effect_pct_n"), 4.0);
    assert!(number(&found[0], "/effect_pct_ci95/0") < number(&found[0], "/effect_pct"));
    assert!(number(&found[0], "/before") > 0.0 && number(&found[0], "/after") > 0.0);
    let shown = bench.line("report tried");
    assert!(stdout(&shown).contains("Tried here, in turns"), "{}", stdout(&shown));

    // Beside the advice stands what it is expected to change, or why that is not known.
    let advice = kept["advice"].as_array().unwrap();
    let awake = advice.iter().find(|one| one["setting"] == "innodb_max_dirty_pages_pct_lwm");
    let expected = &awake.unwrap()["expected"];
    assert_eq!(expected["settings"]["innodb_max_dirty_pages_pct_lwm"], "0.001", "{expected}");
    let (text, fits) = (expected["text"].to_string(), &kept["expected_from"]["fits"]);
    match fits.as_bool() {
        Some(true) if !text.contains("Nothing is expected") => {
            let change = number(expected, "/tps/change_pct/value");
            assert!(number(expected, "/tps/change_pct/ci95/0") <= change, "{expected}");
        }
        _ => assert!(text.contains("Nothing is expected: "), "{expected}"),
    }
    assert!(stdout(&shown).contains("expected to change, by simulation"), "{}", stdout(&shown));

    // A signal ends the trial, and a kill leaves what restore puts back.
    let line = line.replace("--time 5", "--time 3");
    let mut ended = start(&bench, &format!("{line} --record ended"));
    wait_until_set(&private, &before, &mut ended);
    signal(&ended, Signal::TERM);
    assert_eq!(ended.wait().unwrap().code(), Some(143));
    assert_eq!(settings(&private), before);
    let mut killed = start(&bench, &format!("{line} --record killed"));
    wait_until_set(&private, &before, &mut killed);
    signal(&killed, Signal::KILL);
    killed.wait().unwrap();
    assert_ne!(settings(&private), before, "nobody puts back what a killed one left");
    let restored = bench.line(&format!("restore --target {target}"));
    assert!(restored.status.success(), "{}{}", stdout(&restored), stderr(&restored));
    assert_eq!(settings(&private), before);
    signal(&load, Signal::TERM);
    load.wait().unwrap();
}

#[test]
fn what_cannot_be_tried_is_refused_before_it_is_recorded() {
    let bench = Bench::new();
    let server = "mysql://u@127.0.0.1:9/";
    for (line, code, says) in [
        (format!("watch {server} --verify"), 2, "add --record DIR and --time"),
        (format!("watch {server} --verify --record RUN"), 2, "add --record DIR and --time"),
        ("watch engine:db --verify --record RUN --time 5".to_owned(), 2, "settings of a server"),
        (format!("watch {server} --verify --record RUN --time 5"), 3, "nobody listens there"),
        (format!("watch {server} --verify-window 1s"), 2, "2s to 10m"),
    ] {
        let output = bench.line(&line);
        assert_eq!(output.status.code(), Some(code), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{line}: {}", stderr(&output));
    }
    let Some(private) = Private::start(&["--read-only=ON"]) else { return };
    let target = private.target("root", "");
    let output = bench.line(&format!("watch {target} --verify --record RUN --time 5"));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("read_only is ON"), "{}", stderr(&output));
    assert!(!bench.path("RUN").exists());
}

/// A session with statements that give numbers or nothing.
fn session(private: &Private, statements: &[&str], autocommit: bool) -> Box<dyn Session> {
    let op = |sql: &&str| {
        let number = vec![ColumnType::Int { bytes: 8 }];
        let gives = if sql.starts_with("SELECT") { number } else { Vec::new() };
        let access = Access::Statement { sql: (*sql).to_owned(), gives };
        Op { name: "statement", table: 0, access }
    };
    let ops = statements.iter().map(op).collect();
    let options = SessionOptions { ops, autocommit, as_text: true, ..SessionOptions::default() };
    connected(private, "mysql").session(&Arc::new(Schema::default()), &options).unwrap()
}

#[test]
fn a_transaction_that_stays_open_while_history_grows_is_named() {
    let bench = Bench::new();
    let options = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"];
    let Some(private) = Private::start(&options) else { return };
    let changes = "BEGIN NOT ATOMIC DECLARE i INT DEFAULT 0; DECLARE until DATETIME DEFAULT \
                   SYSDATE() + INTERVAL 8 SECOND; WHILE SYSDATE() < until DO UPDATE test_open \
                   SET v = v + 1 WHERE id = 1 + i % 100; SET i = i + 1; END WHILE; END";
    let statements = [
        "CREATE TABLE test_open (id INT PRIMARY KEY, v INT) ENGINE=InnoDB",
        "INSERT INTO test_open SELECT seq, 0 FROM seq_1_to_100",
        changes,
    ];
    let mut writer = session(&private, &statements, true);
    let mut run = |op: usize| writer.run(OpId(op), &[], &mut Rows::default()).map(drop);
    run(0).unwrap();
    run(1).unwrap();
    let reads = ["SELECT COUNT(*) FROM test_open", "SELECT CONNECTION_ID()"];
    let mut open = session(&private, &reads, false);
    open.begin().unwrap();
    open.run(OpId(0), &[], &mut Rows::default()).unwrap();
    let mut rows = Rows::default();
    open.run(OpId(1), &[], &mut rows).unwrap();
    let id = format!("{:?}", rows.row(0).next().unwrap());
    let id = id.trim_matches(|char: char| !char.is_ascii_digit()).to_owned();
    let target = private.target("root", "");
    let recorded = scope(|scope| {
        scope.spawn(|| run(2).unwrap());
        bench.line(&format!("watch {target} --interval 100ms --time 10 --record open --json"))
    });
    let kept = document(&recorded, "watch");
    let findings = kept["findings"].as_array().unwrap();
    let held = findings.iter().find(|one| one["id"] == "purge_held_by_view");
    let held = held.unwrap_or_else(|| panic!("{findings:?}"));
    let text = held["text"].as_str().unwrap();
    assert!(text.contains(&format!("The transaction of connection {id}, open for")), "{text}");
    assert_eq!(held["evidence"]["oldest_transaction_id"].to_string(), id);
    assert!(ids(&kept, "advice", "setting").contains(&format!("KILL {id}")), "{kept}");
    // What is advised ends it.
    let mut killer = session(&private, &[&format!("KILL {id}")], true);
    killer.run(OpId(0), &[], &mut Rows::default()).unwrap();
    sleep(Duration::from_secs(1));
    let line = format!("watch {target} --interval 100ms --once --json");
    let after = document(&bench.line(&line), "watch-sample");
    assert_eq!(after["oldest_transaction_s"], 0.0, "{after}");
}
