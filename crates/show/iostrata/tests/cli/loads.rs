//! `stress` and `insert`: prepared, run, checked and removed, on the engine and on private servers.

use iostrata_server::private::ServerProgram;
use serde_json::Value;

use crate::harness::{Bench, completed, document, number, stderr, stdout};
use crate::server::{Private, programs};

const SMALL: &str = "--engine buffer_pool_size=256M --engine redo_log_capacity=128M";

fn done(bench: &Bench, line: &str) -> String {
    let output = bench.line(line);
    assert!(output.status.success(), "{line}: {}", stderr(&output));
    stdout(&output)
}

fn refused(bench: &Bench, line: &str, words: &[&str]) {
    let output = bench.line(line);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{line}: {said}");
    words.iter().for_each(|word| assert!(said.contains(word), "{line}: no {word} in {said}"));
}

/// The sum of all numbers of an object.
fn sum(of: &Value) -> f64 {
    of.as_object().unwrap().values().filter_map(Value::as_f64).sum()
}

fn stress_cycle(bench: &Bench, target: &str, fix: &str) {
    refused(bench, &format!("stress run {target} --time 1"), &[fix]);
    let prepare = format!("stress prepare {target} --objects 2000 --history 4 --json");
    let prepared = document(&bench.line(&format!("{prepare} --out P")), "prepare");
    assert_eq!((number(&prepared, "/size"), number(&prepared, "/rows")), (2_000.0, 11_110.0));
    assert!(bench.path("P/result.json").is_file());
    let again = document(&bench.line(&prepare), "prepare");
    assert_eq!((number(&again, "/rows"), number(&again, "/rows_before")), (0.0, 11_110.0));
    refused(bench, &format!("stress prepare {target} --objects 7"), &["2000 objects", "--reset"]);
    refused(bench, &format!("stress run {target} --objects 7"), &["2000 objects", "--reset"]);
    let fresh = document(&bench.line(&format!("stress check {target} --json")), "tpcc-check");
    assert_eq!((&fresh["ok"], fresh["conditions"].as_array().unwrap().len()), (&true.into(), 5));

    let run = |more: &str| {
        let line = format!("stress run {target} --time 2 --warmup-time 0 --json {more}");
        document(&bench.line(&line), "tpcc")
    };
    let mixed = run("--threads 4,8 --mix 2,1,1 --check --out R");
    assert_eq!((sum(&mixed["errors"]), mixed["levels"].as_array().unwrap().len()), (0.0, 2));
    assert!((sum(&mixed["mix"]) - 1.0).abs() < 1e-9);
    assert!((number(&mixed, "/mix/read") - 0.5).abs() < 0.1, "{}", mixed["mix"]);
    assert!((number(&mixed, "/mix/read_write") - 0.25).abs() < 0.1, "{}", mixed["mix"]);
    assert!(number(&mixed, "/latency_us/write/p99") > 0.0);
    let report = done(bench, "report R");
    assert!(report.starts_with("iostrata stress") && report.contains("read-writes"), "{report}");
    let reads = run("--threads 256 --read-pct 100");
    assert_eq!((number(&reads, "/mix/read"), number(&reads, "/threads")), (1.0, 256.0));
    let used = document(&bench.line(&format!("stress check {target} --json")), "tpcc-check");
    assert_eq!((&used["ok"], number(&used, "/rows")), (&true.into(), 11_110.0), "{used}");
}

fn insert_cycle(bench: &Bench, target: &str, storage_engine: Option<&str>) {
    let named = storage_engine.map_or(String::new(), |name| format!("--storage-engine {name}"));
    let prepare = format!("insert prepare {target} {named} --rows 20000 --json");
    let prepared = document(&bench.line(&prepare), "prepare");
    assert_eq!((number(&prepared, "/size"), number(&prepared, "/rows")), (20_000.0, 20_000.0));
    let line = format!(
        "insert run {target} {named} --threads 2 --rows-per-commit 10 --time 3 --warmup-time 0 \
         --check --json --out I"
    );
    let run = document(&bench.line(&line), "tpcc");
    let (tps, rows_per_s) = (number(&run, "/tps"), run["insert"]["rows_per_s"].as_f64());
    // In a window as short as this the interval of the rate may be wider than the rate.
    let is_unknown = run["unknown"].as_array().unwrap().iter().any(|one| one["name"] == "tps");
    assert_eq!(rows_per_s.is_none(), is_unknown, "{}", run["unknown"]);
    assert!(rows_per_s.is_none_or(|rate| (rate / (10.0 * tps) - 1.0).abs() < 1e-9) && tps > 0.0);
    assert_eq!(run["insert"]["storage_engine"].as_str(), storage_engine);
    let growth = &run["insert"]["growth"];
    let column = |name: &str| growth[name].as_array().unwrap().clone();
    let rows: Vec<u64> = column("rows").iter().filter_map(Value::as_u64).collect();
    assert!(rows.len() >= 2 && rows.is_sorted() && rows[0] > 20_000, "{growth}");
    assert_eq!((column("t_s").len(), column("rows_per_s").len()), (rows.len(), rows.len()));
    assert!(column("table_bytes").iter().all(Value::is_u64), "{growth}");
    assert_eq!(growth["index_bytes"].is_null(), storage_engine.is_none(), "{growth}");
    let page = std::fs::read_to_string(bench.path("I/report.html")).unwrap();
    assert!(page.contains("chart-insert-size") && page.contains("rows at the end"));
    assert!(is_unknown || done(bench, "report I").contains("rows/s"));
    let _from_this_cycle = std::fs::remove_dir_all(bench.path("I"));
    let checked = document(&bench.line(&format!("insert check {target} --json")), "tpcc-check");
    let inserted = 10.0 * number(&run, "/completed/transaction");
    // What a window leaves unfinished is committed, too.
    let rows = number(&checked, "/rows");
    assert!(checked["ok"] == true && rows >= 20_000.0 + inserted, "{checked}");
    assert_eq!(checked["size_unit"], "rows");
    assert!(done(bench, &format!("insert cleanup {target}")).contains("removed"));
    refused(bench, &format!("insert check {target}"), &["insert prepare"]);
}

#[test]
fn objects_are_read_and_changed_on_the_engine_and_damage_is_found() {
    let bench = Bench::new();
    let target = format!("--target engine:db {SMALL}");
    stress_cycle(&bench, &target, "create it with `prepare`");
    // A history row less: the engine is opened as any program may open it.
    let kept = iostrata_engine::Engine::kept_settings(bench.path("db")).unwrap().unwrap();
    let engine = iostrata_engine::Engine::options().settings(kept).open(bench.path("db")).unwrap();
    let history = engine.table("stress_history").unwrap().unwrap();
    let (key, _) = history.range(..).next().unwrap().unwrap();
    let mut batch = engine.batch();
    batch.delete(&history, &key).unwrap();
    batch.commit().unwrap();
    engine.close().unwrap();
    let checked = bench.line(&format!("stress check {target} --json"));
    assert_eq!(checked.status.code(), Some(1), "{}", stderr(&checked));
    let found: Value = serde_json::from_str(&stdout(&checked)).unwrap();
    let is_broken = |id: usize| found["conditions"][id - 1]["ok"] == false;
    assert_eq!([1, 2, 3, 4, 5].map(is_broken), [true, true, false, true, false], "{found}");
    let judged = bench.line(&format!("stress run {target} --read-pct 100 --time 1 --check"));
    assert_eq!(judged.status.code(), Some(1), "{}", stderr(&judged));
    assert!(stderr(&judged).contains("object 1: 3 history rows"), "{}", stderr(&judged));
    assert!(done(&bench, &format!("stress cleanup {target}")).contains("removed"));
    assert!(done(&bench, &format!("stress cleanup {target}")).contains("nothing"));
}

#[test]
fn rows_are_inserted_into_the_engine() {
    let bench = Bench::new();
    insert_cycle(&bench, &format!("--target engine:db {SMALL}"), None);
}

#[test]
fn both_loads_run_on_a_server_with_each_storage_engine_that_it_has() {
    let Some(private) = Private::start(&[]) else { return };
    let bench = Bench::new();
    let target = |database: &str| format!("--target {}", private.target("root", database));
    stress_cycle(&bench, &target("stress"), "stress prepare");
    std::thread::scope(|scope| {
        for engine in ["InnoDB", "MyISAM", "Aria"] {
            let target = target(engine);
            scope.spawn(move || insert_cycle(&Bench::new(), &target, Some(engine)));
        }
    });
    let asked = |engine: &str| {
        format!("insert prepare {} --rows 10 --storage-engine {engine}", target("rows"))
    };
    let words = ["storage engine NoSuch is not available here", "1286", "NoSuch", "has Aria"];
    refused(&bench, &asked("NoSuch"), &words);
    refused(&bench, &asked("No-Such"), &["`No-Such` is no name of a storage engine"]);
    done(&bench, &asked("MyISAM"));
    refused(&bench, &asked("Aria"), &["--storage-engine Aria", "there with MyISAM", "--reset"]);
    let run = format!("insert run {} --time 1 --storage-engine Aria", target("rows"));
    refused(&bench, &run, &["there with MyISAM"]);
    drop(private.end());
}

#[test]
fn private_servers_of_every_flavour_run_them_from_the_beginning() {
    let server = |program: &str| {
        format!("--server {program} --server-dir s --time 2 --warmup-time 0 --json")
    };
    let insert = |program: &str, engine: &str| {
        format!("insert run {} --rows 5000 --storage-engine {engine}", server(program))
    };
    let with_objects = |program: &str| {
        let more = "--objects 500 --history 3 --threads 2 --check";
        let run = Bench::new().line(&format!("stress run {} {more}", server(program)));
        assert!(completed(&document(&run, "tpcc")) > 0.0);
    };
    let with_rows = |program: &str| {
        let run = Bench::new().line(&(insert(program, "MyISAM") + " --check"));
        let run = document(&run, "tpcc");
        assert_eq!(run["insert"]["storage_engine"], "MyISAM");
        assert!(run["durability"]["flush_log_at_commit"].is_null(), "MyISAM has no such redo");
    };
    let without_aria = |program: &str| {
        if !ServerProgram::find(program).unwrap().version.is_mariadb {
            let words = ["storage engine Aria is not available here", "error 1286", "has ARCHIVE"];
            refused(&Bench::new(), &insert(program, "Aria"), &words);
        }
    };
    let programs = programs();
    let runs: [&(dyn Fn(&str) + Sync); 3] = [&with_objects, &with_rows, &without_aria];
    // Their data are made at the same time, which is most of what they do.
    std::thread::scope(|scope| {
        for program in &programs {
            eprintln!("{program}");
            runs.iter().for_each(|run| drop(scope.spawn(move || run(program))));
        }
    });
}

#[test]
fn bad_input_is_told_with_its_fix() {
    let bench = Bench::new();
    for (line, code, words) in [
        ("stress prepare --target engine:db --objects 0", 2, "use 1 to"),
        ("stress prepare --target engine:db --history 0", 2, "use 1 to 1000"),
        ("stress prepare --target engine:db --history 1001", 2, "use 1 to 1000"),
        ("stress run --target engine:missing", 2, "no such directory missing"),
        ("stress run --target engine:missing --mix 1,2", 2, "three shares"),
        ("stress run --target engine:missing --mix 0,0,0", 2, "three shares"),
        ("stress run --target engine:missing --read-pct 101", 2, "0 to 100"),
        ("stress run --target engine:missing --read-pct 1 --mix 1,1,1", 2, "cannot be used with"),
        ("stress run --target engine:missing --threads 0", 2, "threads"),
        ("stress run --target engine:missing --threads 10001", 2, "use 1 to 10000"),
        ("stress check --target mysql://u@127.0.0.1:1/x", 3, "127.0.0.1:1"),
        ("insert prepare --target engine:db --rows 3000000000", 2, "2147483647"),
        ("insert prepare --target engine:db --storage-engine MyISAM", 2, "mysql://"),
        ("insert run --target engine:missing --rows-per-commit 0", 2, "use 1 to 100000"),
        ("insert run --target engine:missing --rows 5", 2, "--server"),
        ("insert run --target engine:missing", 2, "no such directory missing"),
        ("insert check --target db", 2, "engine:DIR or mysql://"),
    ] {
        let output = bench.line(line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert!(said.contains(words), "{line}: {said}");
    }
    assert!(!bench.path("db").exists());
    for command in ["stress", "insert"] {
        let help = done(&bench, &format!("{command} run --help"));
        for option in ["--target", "--server", "--storage-engine", "--threads", "--check"] {
            assert!(help.contains(option), "{command}: no {option}");
        }
        let all = done(&bench, &format!("{command} --help"));
        for action in ["prepare", "run", "check", "cleanup"] {
            assert!(all.contains(action), "{command}: no {action}");
        }
    }
}
