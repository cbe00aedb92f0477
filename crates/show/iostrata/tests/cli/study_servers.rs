//! Studies with private servers as levels: measured, refused in their cells, killed and gone on.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Bench, document, has_mariadb, stderr, stdout};

/// An engine, a server, one that is not installed, an option that servers lack, a storage engine
/// that is none, and a setting of which a server dies.
const STUDY: &str = r#"
name = "both"
title = "The engine beside a server"
[base]
workload = "updates"
filesystem = "here"
rows = 2000
workers = 2
"database.redo_log_capacity" = "8M"
"database.buffer_pool_size" = "16M"
[factors]
target = ["engine", "mariadb", "mariadb-5.1"]
[[part]]
name = "lacking"
[part.factors]
target = ["mariadb"]
"server.no_such_option" = [1]
[[part]]
name = "no_engine"
[part.factors]
target = ["mariadb"]
storage_engine = ["NoSuchEngine"]
[[part]]
name = "dying"
[part.factors]
target = ["mariadb"]
"server.innodb_data_home_dir" = ["/no/such/place"]
[measure]
replicates = 2
replicates_max = 2
point_time = "700ms"
trace = false
profile_hz = 0
"#;

/// Whether something has this name in a list of what could not be measured, with all these words.
fn is_said(unavailable: &Value, what: &str, words: &[&str]) -> bool {
    let all = unavailable.as_array().unwrap();
    let found = all.iter().find(|one| one["what"].as_str().unwrap() == what);
    found.is_some_and(|one| words.iter().all(|word| one.to_string().contains(word)))
}

/// Servers that work on data below a directory.
fn servers_below(dir: &Path) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = lines.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&format!("--datadir={}", dir.display()))).collect()
}

#[test]
fn a_server_stands_beside_the_engine_and_what_it_lacks_is_said_in_its_cell() {
    if !has_mariadb() {
        return;
    }
    let bench = Bench::new();
    std::fs::write(bench.path("both.toml"), STUDY).unwrap();
    let document = document(&bench.line("study run both.toml --out RUN --json"), "study");
    let points = document["points"].as_array().unwrap();
    let ids: Vec<&str> = points.iter().map(|point| point["id"].as_str().unwrap()).collect();
    let missing = &document["unavailable"];
    assert_eq!(ids, ["engine", "mariadb"], "{missing:#}");
    for point in points {
        let figures = &point["transactions"]["figures"];
        for name in ["tps", "cpu_us_per_transaction"] {
            assert!(figures[name]["value"].as_f64().unwrap() > 0.0, "{name}: {figures:#}");
        }
        let has_syncs = figures["syncs_per_transaction"].is_object();
        assert_eq!(has_syncs, point["id"] == "engine", "MariaDB does not count them: {figures:#}");
    }
    let fix = "--server PROGRAM";
    assert!(is_said(missing, "MariaDB 5.1", &["mariadb-5.1", "impossible", fix]), "{missing:#}");
    let lacking = ["no_such_option", "impossible", "unknown variable"];
    assert!(is_said(missing, "MariaDB, no such option 1", &lacking), "{missing:#}");
    let engine = ["NoSuchEngine", "impossible"];
    assert!(is_said(missing, "MariaDB, storage_engine NoSuchEngine", &engine), "{missing:#}");
    let dying = ["/no/such/place", "failed", "does not start"];
    let what = "MariaDB, innodb data home dir /no/such/place";
    assert!(is_said(missing, what, &dying), "{missing:#}");
    assert!(!bench.path("RUN/volumes").exists(), "the data of servers is gone");
    assert_eq!(servers_below(&bench.path("")), [""; 0]);
}

#[test]
fn a_killed_study_of_servers_is_restored_and_goes_on() {
    if !has_mariadb() {
        return;
    }
    let bench = Bench::new();
    let text = STUDY.replace(r#"["engine", "mariadb", "mariadb-5.1"]"#, r#"["mariadb"]"#);
    let text = text.split("[[part]]").next().unwrap().to_owned();
    let measure = STUDY.split("[measure]").nth(1).unwrap();
    std::fs::write(bench.path("both.toml"), format!("{text}[measure]{measure}")).unwrap();
    let mut child = bench
        .command(&["study", "run", "both.toml", "--out", "RUN", "--quiet", "--replicates", "3"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let events = || std::fs::read_to_string(bench.path("RUN/events.jsonl")).unwrap_or_default();
    let replicates = || events().matches("\"event\":\"replicate\"").count();
    while replicates() < 1 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let output = bench.line("restore");
    assert_eq!(output.status.code(), Some(0), "{} {}", stdout(&output), stderr(&output));
    assert_eq!(servers_below(&bench.path("")), [""; 0], "a killed study leaves no server");
    assert!(!bench.path("RUN/volumes/iostrata-databases").exists(), "{}", stdout(&output));
    let had = replicates();
    let document = document(&bench.line("study resume RUN --json"), "study");
    assert_eq!(document["points"].as_array().unwrap().len(), 1);
    // One more in each round, and for the one before, where the hypervisor took the window.
    let done = replicates();
    assert!(document["interrupted"] == false && (3..=7).contains(&done), "{done} replicates");
    assert!(had < 3, "it went on");
}

/// A server under a limit in which its own code and threads have hardly room.
#[test]
fn a_server_that_the_kernel_kills_for_its_memory_is_told_so() {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if !has_mariadb() || !rustix::process::geteuid().is_root() || swaps.lines().count() > 1 {
        eprintln!("skipped: needs MariaDB, root, and no swap space");
        return;
    }
    let bench = Bench::new();
    let text = STUDY.replace(r#"["engine", "mariadb", "mariadb-5.1"]"#, r#"["mariadb"]"#);
    let text = text.replace("workers = 2", "workers = 2\nmemory_limit = \"48M\"");
    let text = text.split("[[part]]").next().unwrap();
    let measure = STUDY.split("[measure]").nth(1).unwrap();
    std::fs::write(bench.path("both.toml"), format!("{text}[measure]{measure}")).unwrap();
    let output = bench.line("study run both.toml --out RUN");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for words in ["its memory limit was reached", "smaller buffer pool"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn a_program_that_is_no_server_is_refused_before_anything_is_made() {
    let bench = Bench::new();
    std::fs::write(bench.path("both.toml"), STUDY).unwrap();
    let output = bench.line("study run both.toml --out RUN --server /bin/true");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("--server /bin/true"), "{}", stderr(&output));
    assert!(!bench.path("RUN").exists());
}
