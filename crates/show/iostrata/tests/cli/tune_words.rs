//! What `--mode auto-raise`, `--allow-delay` and `read_ms_max` do on a private MariaDB, and what it
//! is told that calls itself something else.

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Bench, document, stderr};
use crate::server::Private;
use crate::tune::{end, load, loaded, settings};

/// Commits do not wait for the disk.
const AT_EASE: &str = "--innodb-flush-log-at-trx-commit=0";

/// The changes of a document.
fn changes(tuned: &Value) -> Vec<(&str, f64, f64, &str)> {
    let text = |one: &'_ Value, name: &str| one[name].as_str().unwrap().to_owned();
    let value = |one: &Value, name: &str| match text(one, name).as_str() {
        "ON" => 1.0,
        "OFF" => 0.0,
        number => number.parse().unwrap(),
    };
    let all = tuned["settings"].as_array().unwrap().iter();
    let change = |one: &'_ Value| (value(one, "from"), value(one, "to"));
    all.map(|one| {
        let (from, to) = change(one);
        (one["name"].as_str().unwrap(), from, to, one["why"].as_str().unwrap())
    })
    .collect()
}

#[test]
fn auto_raise_raises_the_capacity_and_nothing_else() {
    let bench = Bench::new();
    let Some((private, load)) = loaded(&bench, 24) else { return };
    let before = settings(&private);
    let target = private.target("root", "oltp");
    let line = format!("tune {target} --mode auto-raise --interval 200ms --time 14 --json --quiet");
    let tuned = document(&bench.line(&line), "watch");
    let changes = changes(&tuned);
    assert!(!changes.is_empty(), "the redo was three quarters full");
    for (name, from, to, why) in changes {
        assert!(["innodb_io_capacity", "innodb_io_capacity_max"].contains(&name), "{name}");
        assert!(to > from && why.contains("three quarters full"), "{name} {from} {to} {why}");
        assert!(name != "innodb_io_capacity" || to == from + 100.0, "{from} {to}");
    }
    assert_eq!(settings(&private), before);
    end(load, Signal::TERM);
}

#[test]
fn writers_are_delayed_only_where_that_is_allowed() {
    let bench = Bench::new();
    let Some((private, load)) = loaded(&bench, 28) else { return };
    let before = settings(&private);
    let target = private.target("root", "oltp");
    let of_delay = |tuned: &Value| {
        let all = changes(tuned);
        all.iter().filter(|one| one.0.starts_with("innodb_max_purge_lag")).count()
    };
    // So little may be written that the age goes to its limit.
    let bounds = "[innodb_io_capacity]\nmax = 100\n[innodb_io_capacity_max]\nmax = 100\n";
    std::fs::write(bench.path("little.toml"), bounds).unwrap();
    let line = format!("tune {target} --config little.toml --time 8 --json --quiet");
    let never = document(&bench.line(&line), "watch");
    assert_eq!(of_delay(&never), 0, "{}", never["settings"]);
    let allowed = document(&bench.line(&format!("{line} --allow-delay")), "watch");
    assert!(of_delay(&allowed) >= 2, "{}", allowed["settings"]);
    assert_eq!(settings(&private), before);
    end(load, Signal::TERM);
}

#[test]
fn less_is_written_while_reads_are_slow() {
    let bench = Bench::new();
    // A redo that lasts for some seconds: less is written only while the age allows it.
    let options = ["--innodb-log-file-size=160M", "--innodb-buffer-pool-size=128M", AT_EASE];
    let Some(private) = Private::start(&options) else { return };
    let load = load(&bench, &private, 26);
    let before = settings(&private);
    let target = private.target("root", "oltp");
    // Reads beside the server, none of which is as fast as this.
    std::fs::write(bench.path("reads.toml"), "read_ms_max = 0.01\n").unwrap();
    let reads = "io --path F --size 64M --rw randread --bs 4k --direct --runtime 14s --quiet";
    let reads = crate::tune::start(&bench, &format!("{reads} --out READS"));
    let line = format!("tune {target} --config reads.toml --time 12 --json --quiet");
    let tuned = document(&bench.line(&line), "watch");
    end(reads, Signal::TERM);
    let is_told = |one: &Value| one["device"]["read_ms"].as_f64().is_some_and(|ms| ms > 0.01);
    if !tuned["samples"].as_array().unwrap().iter().any(is_told) {
        eprintln!("skipped: the device below does not tell how long reads take");
    } else {
        let eased = |one: &(&str, f64, f64, &str)| one.3.contains("reads take");
        assert!(changes(&tuned).iter().any(eased), "{}", tuned["settings"]);
    }
    assert_eq!(settings(&private), before);
    end(load, Signal::TERM);
}

#[test]
fn a_server_of_an_unknown_kind_is_refused_and_left_as_it_is() {
    let bench = Bench::new();
    for (version, called) in [
        ("8.0.11-TiDB-v7.5.0", "tidb 7.5.0"),
        ("10.4.34-MariaDB", "mariadb 10.4.34"),
        ("5.5.62-strange", "unknown 5.5.62"),
    ] {
        let Some(private) = Private::start(&[&format!("--version={version}")]) else { return };
        let before = settings(&private);
        let output = bench.line(&format!("tune {} --time 2", private.target("root", "")));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{version}: {said}");
        assert!(said.contains("its page cleaner is not known"), "{version}: {said}");
        assert!(said.contains(called), "{version}: {said}");
        assert_eq!(settings(&private), before, "{version}");
    }
}
