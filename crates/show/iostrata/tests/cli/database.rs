//! `tpcc` and `oltp`: the contract's exact calls on the engine, and bad input.

use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Bench, completed, document, number, stderr, stdout};

/// An engine that is small enough for tests.
const SMALL: &str = "--engine buffer_pool_size=256M --engine redo_log_capacity=128M";

/// What every document of a run holds.
fn assert_run(document: &Value, seconds: f64) {
    assert!(completed(document) > 0.0 && number(document, "/tps_n") >= 2.0);
    // It may be longer on a busy machine, not shorter.
    let duration_s = number(document, "/duration_s");
    assert!(duration_s > 0.95 * seconds, "{duration_s}");
    let tps = number(document, "/tps");
    assert!(number(document, "/tps_ci95/0") <= tps && number(document, "/tps_ci95/1") >= tps);
    assert!((tps / (completed(document) / duration_s) - 1.0).abs() < 0.01);
    let mix: f64 = document["mix"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
    assert!((mix - 1.0).abs() < 1e-9);
    assert!(document["response_us"].is_null(), "there is no schedule");
    assert_eq!(document["errors"], serde_json::json!({}));
    assert_eq!(document["durability"]["flush_log_at_commit"], 1);
    for of in document["latency_us"].as_object().unwrap().values() {
        for field in ["p50", "p95", "p99", "p99_9", "max"] {
            assert!(number(of, &format!("/{field}")) > 0.0, "{field}");
        }
    }
}

#[test]
fn tpcc_is_prepared_run_and_checked_on_the_engine() {
    let bench = Bench::new();
    let target = format!("--target engine:db {SMALL}");
    let early = bench.line(&format!("tpcc run {target} --time 1"));
    assert_eq!(early.status.code(), Some(2), "{}", stderr(&early));
    assert!(stderr(&early).contains("create it with `prepare`"), "{}", stderr(&early));
    let prepared = bench.line(&format!("tpcc prepare {target} --warehouses 1 --out P --json"));
    let prepared = document(&prepared, "prepare");
    assert!(number(&prepared, "/rows") > 500_000.0);
    assert!(bench.path("P/result.json").is_file());
    let fresh = document(&bench.line(&format!("tpcc check {target} --json")), "tpcc-check");
    assert_eq!((&fresh["ok"], fresh["conditions"].as_array().unwrap().len()), (&true.into(), 12));

    let line = format!("tpcc run {target} --threads 8 --time 3 --json --out R");
    let run = document(&bench.line(&line), "tpcc");
    assert_run(&run, 3.0);
    let share = number(&run, "/mix/new_order");
    assert!((0.40..0.50).contains(&share), "{share}");
    assert!((number(&run, "/nopm") / (60.0 * share * number(&run, "/tps")) - 1.0).abs() < 0.02);
    assert!(run["deviations"].as_array().unwrap().len() >= 3);
    assert!((0.0..1.0).contains(&number(&run, "/stability/min_over_mean_1s")));
    assert_eq!(run["target"]["flavour"], "engine");
    let report = bench.line("report R --json");
    assert_eq!(document(&report, "tpcc")["tps"], run["tps"]);
    assert!(bench.path("R/report.html").is_file());

    let used = document(&bench.line(&format!("tpcc check {target} --json")), "tpcc-check");
    assert_eq!(used["ok"], true);
    let eleventh = used["conditions"][10]["detail"].as_str().unwrap();
    assert!(eleventh.contains("delivered orders"), "{eleventh}");

    let stairs = bench.line(&format!("tpcc run {target} --threads 1,2 --time 1 --json --out S"));
    let stairs = document(&stairs, "tpcc");
    let levels: Vec<f64> =
        stairs["levels"].as_array().unwrap().iter().map(|level| number(level, "/tps")).collect();
    assert_eq!(levels.len(), 2);
    assert_eq!(levels.iter().copied().fold(0.0, f64::max), number(&stairs, "/tps"));

    let rated = bench.line(&format!(
        "tpcc run {target} --threads 4 --time 2 --warmup-time 0 --rate 100 --json --out T"
    ));
    let rated = document(&rated, "tpcc");
    // Of the two hundred that are due most come to be done, and hardly any besides.
    let done = completed(&rated);
    assert!((100.0..280.0).contains(&done), "{done}");
    assert!(number(&rated, "/response_us/new_order/p99") > 0.0);

    assert!(stdout(&bench.line(&format!("tpcc cleanup {target}"))).contains("removed"));
    let gone = bench.line(&format!("tpcc check {target}"));
    assert_eq!(gone.status.code(), Some(2));
    assert!(stderr(&gone).contains("tpcc prepare"), "{}", stderr(&gone));
}

#[test]
fn a_violated_condition_is_found() {
    let bench = Bench::new();
    let target = format!("--target engine:db {SMALL}");
    let prepared = bench.line(&format!("tpcc prepare {target} --warehouses 1"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    // An order less: the engine is opened as any program may open it.
    let engine = iostrata_engine::Engine::options();
    let kept = iostrata_engine::Engine::kept_settings(bench.path("db")).unwrap().unwrap();
    let engine = engine.settings(kept).open(bench.path("db")).unwrap();
    let orders = engine.table("new_orders").unwrap().unwrap();
    let (key, _) = orders.range(..).next().unwrap().unwrap();
    let mut batch = engine.batch();
    batch.delete(&orders, &key).unwrap();
    batch.commit().unwrap();
    engine.close().unwrap();
    let checked = bench.line(&format!("tpcc check {target} --json"));
    assert_eq!(checked.status.code(), Some(1), "{}", stderr(&checked));
    let found: Value = serde_json::from_str(&stdout(&checked)).unwrap();
    let violated: Vec<u64> = found["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|condition| condition["ok"] == false)
        .map(|condition| condition["id"].as_u64().unwrap())
        .collect();
    assert_eq!(violated, [5, 11]);
    assert_eq!(counted(&found, "new_orders"), (false, 8_999, 9_000));
    assert_eq!(counted(&found, "customer"), (true, 30_000, 30_000));
    rows_that_are_missing_are_found(&bench, &target);
}

/// Of a table: whether its rows are in order, how many there are and must be.
fn counted(check: &Value, table: &str) -> (bool, u64, u64) {
    let counts = check["counts"].as_array().unwrap();
    let count = counts.iter().find(|count| count["table"] == table).unwrap();
    let number = |name: &str| count[name].as_u64().unwrap();
    (count["ok"] == true, number("rows"), number("expected"))
}

/// Every other row of the stock is removed: no condition compares it with anything.
fn rows_that_are_missing_are_found(bench: &Bench, target: &str) {
    let kept = iostrata_engine::Engine::kept_settings(bench.path("db")).unwrap().unwrap();
    let engine = iostrata_engine::Engine::options().settings(kept).open(bench.path("db")).unwrap();
    let stock = engine.table("stock").unwrap().unwrap();
    let keys: Vec<_> = stock.range(..).step_by(2).map(|row| row.unwrap().0).collect();
    for keys in keys.chunks(1_000) {
        let mut batch = engine.batch();
        keys.iter().for_each(|key| batch.delete(&stock, key).unwrap());
        batch.commit().unwrap();
    }
    engine.close().unwrap();
    let checked = bench.line(&format!("tpcc check {target} --json"));
    assert_eq!(checked.status.code(), Some(1), "{}", stderr(&checked));
    let found: Value = serde_json::from_str(&stdout(&checked)).unwrap();
    assert_eq!(found["conditions"].as_array().unwrap().len(), 12);
    assert_eq!(counted(&found, "stock"), (false, 50_000, 100_000));
    let shown = stdout(&bench.line(&format!("tpcc check {target}")));
    assert!(shown.contains("stock: 50000 rows, 100000 must be there"), "{shown}");
    let again = bench.line(&format!("tpcc prepare {target} --warehouses 1"));
    assert_eq!(again.status.code(), Some(2), "{}", stdout(&again));
    let said = stderr(&again);
    assert!(said.contains("stock has 50000 of 100000 rows in warehouse 1"), "{said}");
    let run = bench.line(&format!("tpcc run {target} --time 60 --json"));
    assert_eq!(run.status.code(), Some(3), "{}", stdout(&run));
    assert!(stderr(&run).contains("tpcc prepare --reset"), "{}", stderr(&run));
    let run: Value = serde_json::from_str(&stdout(&run)).unwrap();
    assert!(number(&run, "/errors/missing_row") > 0.0);
    assert!(number(&run, "/duration_s") < 30.0, "it ends at the first row that is missing");
}

#[test]
fn tables_smaller_than_asked_for_are_refused() {
    let bench = Bench::new();
    let target = format!("--target engine:db {SMALL}");
    let prepared = bench.line(&format!("oltp point_select prepare {target} --table-size 1000"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    let run = |size: u32| {
        bench.line(&format!(
            "oltp point_select run {target} --table-size {size} --time 0.2 --warmup-time 0"
        ))
    };
    let larger = run(1_001);
    assert_eq!(larger.status.code(), Some(2), "{}", stdout(&larger));
    let said = stderr(&larger);
    assert!(said.contains("--table-size 1001") && said.contains("up to id 1000"), "{said}");
    assert!(run(1_000).status.success());
}

#[test]
fn oltp_runs_on_the_engine() {
    let bench = Bench::new();
    let target = format!("--target engine:db {SMALL}");
    let tables = "--tables 1 --table-size 20000";
    let line = format!("oltp point_select prepare {target} {tables}");
    assert!(bench.line(&line).status.success());
    let again = bench.line(&line);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("sbtest1 is there already"), "{}", stderr(&again));
    for (member, statements) in [("point_select", 1.0), ("read_write", 18.0)] {
        let line = format!("oltp {member} run {target} {tables} --threads 2 --time 2 --json");
        let run = document(&bench.line(&line), "tpcc");
        assert_run(&run, 2.0);
        assert!(run["nopm"].is_null());
        let found = number(&run, "/driver/statements_per_txn");
        assert!((found / statements - 1.0).abs() < 0.01, "{member}: {found}");
    }
    let cleanup = bench.line(&format!("oltp point_select cleanup {target} {tables}"));
    assert!(cleanup.status.success(), "{}", stderr(&cleanup));
}

#[test]
fn bad_input_is_told_with_its_fix() {
    let bench = Bench::new();
    for (line, code, words) in [
        ("tpcc run --target db", 2, "engine:DIR or mysql://"),
        ("tpcc prepare --target engine:db --warehouses 0", 2, "at least one"),
        ("tpcc prepare --target engine:db --engine buffer_pool=1G", 2, "buffer_pool"),
        ("tpcc prepare --target engine:db --engine nothing", 2, "name=value"),
        ("tpcc check --target engine:missing", 2, "no such directory missing"),
        ("tpcc run --target mysql://u@127.0.0.1:1/x --threads 0", 2, "threads"),
        ("tpcc run --target engine:db --rate -5", 2, "rate"),
        ("tpcc run --target engine:db --wait --think-multiplier -1", 2, "use 0 to 1000"),
        ("tpcc run --target mysql://u@127.0.0.1:1/x --mix 1,2", 2, "five shares"),
        ("tpcc check --target mysql://u@127.0.0.1:1/x", 3, "127.0.0.1:1"),
        ("tpcc check --target mysql://u@127.0.0.1:no/x", 2, "no"),
        ("oltp read_write run --target engine:missing", 2, "no such directory missing"),
        ("oltp nothing run --target engine:db", 2, "possible values"),
    ] {
        let output = bench.line(line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
    }
    let secret = bench.line("tpcc check --target mysql://u:hunter2@127.0.0.1:1/x");
    assert!(!stderr(&secret).contains("hunter2"), "{}", stderr(&secret));
    assert_eq!(bench.data_files(), Vec::<String>::new());
}

#[test]
fn passwords_are_hidden_from_who_lists_processes() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let target = format!("mysql://u:hunter2@127.0.0.1:{port}/x");
    let mut child = bench
        .command(&["tpcc", "check", "--target", &target])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // It has connected, and gets no answer.
    let (_connection, _) = listener.accept().unwrap();
    let shown = std::fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = String::from_utf8_lossy(&shown).replace('\0', " ");
    assert!(shown.contains("mysql://u:*******@127.0.0.1"), "{shown}");
}

#[test]
fn an_engine_that_is_killed_under_load_keeps_all_conditions() {
    let bench = Bench::new();
    let target = format!("--target engine:db {SMALL}");
    let prepared = bench.line(&format!("tpcc prepare {target} --warehouses 1"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    for seed in 1..=2 {
        let line = format!("tpcc run {target} --threads 8 --time 60 --seed {seed} --quiet");
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut child = bench.command(&words).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2_500));
        child.kill().unwrap();
        child.wait().unwrap();
        let checked = bench.line(&format!("tpcc check {target} --json"));
        assert_eq!(document(&checked, "tpcc-check")["ok"], true);
    }
}
