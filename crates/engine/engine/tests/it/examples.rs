//! The examples run, those that measure in a short form, and the documents show them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use iostrata_engine::{Counter, Engine, Settings};
use iostrata_innodb::{Doublewrite, FlushMethod};

#[path = "../../examples/flushing.rs"]
mod flushing;

#[allow(dead_code)] // its `main`
#[path = "../../examples/hello.rs"]
mod hello;

#[path = "../../examples/own_disk.rs"]
mod own_disk;

#[path = "../../examples/pipelined.rs"]
mod pipelined;

#[path = "../../examples/rates.rs"]
mod rates;

#[path = "../../examples/store_rates.rs"]
mod store_rates;

#[path = "../../examples/transactions.rs"]
mod transactions;

const EXAMPLE: &str = include_str!("../../examples/hello.rs");
const README: &str = include_str!("../../../../../README.md");

/// What stands for a second in an example that measures.
const SHORT: Duration = Duration::from_millis(10);

/// Far more than a first program should write.
const BYTES_MAX: u64 = 64 << 20;

fn small() -> Settings {
    let mut settings = Settings::default();
    for name in ["buffer_pool_size", "redo_log_capacity", "autoextend_increment"] {
        settings.set(name, "1M").unwrap();
    }
    settings
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start:?}"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end:?} behind {start:?}")).0
}

#[test]
fn readme_shows_the_example() {
    let shown = between(README, "```rust\n", "```");
    let is = between(EXAMPLE, "from here on.\n\n", "// README.md");
    assert!(shown == is, "README.md shows:\n{shown}\nthe example is:\n{is}");
}

#[test]
fn the_example_runs_twice_and_writes_little() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("cities");
    for _ in 0..2 {
        hello::hello(&directory).unwrap();
    }
    let files = std::fs::read_dir(&directory).unwrap();
    let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < BYTES_MAX, "{bytes} bytes for two rows");
}

#[test]
fn a_disk_of_ones_own_is_written_with_this_crate_alone() {
    own_disk::main().unwrap();
    let imports = include_str!("../../examples/own_disk.rs").lines();
    let foreign = |line: &&str| line.starts_with("use ") && !line.starts_with("use std::");
    assert!(imports.filter(foreign).all(|line| line.starts_with("use iostrata_engine::")));
}

#[test]
fn the_guide_shows_the_examples_of_transactions() {
    let example = without_indents(include_str!("../../examples/transactions.rs"));
    let guide = include_str!("../../../../../docs/transactions.md");
    let blocks: Vec<_> = guide.split("```rust\n").skip(1).collect();
    for block in &blocks {
        for part in block.split_once("```").unwrap().0.split("\n\n") {
            let shown = without_indents(part);
            assert!(example.contains(&shown), "not in the example:\n{shown}");
        }
    }
    assert_eq!(blocks.len(), 2);
    transactions::main().unwrap();
}

fn without_indents(text: &str) -> String {
    text.lines().map(|line| line.trim_start().to_owned() + "\n").collect()
}

#[test]
fn flushing_changes_rows_under_a_setting_that_is_changed() {
    let home = tempfile::tempdir().unwrap();
    let words = "seconds=6 rows=2000 batch=3 more_threads=2 then.redo_log_capacity=2M \
                 buffer_pool_size=1M redo_log_capacity=1M autoextend_increment=1M";
    let words = words.split_whitespace().map(str::to_owned);
    let times = flushing::flushing(home.path(), words, SHORT).unwrap();
    assert!(!times.is_empty());
    let settings = Engine::kept_settings(home.path()).unwrap().unwrap();
    assert_eq!(settings.redo_log_capacity, 2 << 20);
    let engine = Engine::open(home.path(), settings).unwrap();
    let rows: Vec<_> = engine.open_table("rows").unwrap().iter().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2000);
    // A loaded row is equal bytes; one that was changed begins with the number that was drawn.
    assert!(rows.iter().any(|(_, value)| value[..8] != value[8..16]));
}

#[test]
fn pipelined_sees_every_commit_settled() {
    let home = tempfile::tempdir().unwrap();
    let engine = Engine::open(home.path(), small()).unwrap();
    let work = Duration::from_micros(40);
    let load = pipelined::Load { rows: 500, outstanding: 4, work, lasts: 4 * SHORT };
    let times = pipelined::measure(&engine, &load, 2).unwrap();
    assert!(times.len() >= 2 && times.is_sorted());
    assert_eq!(engine.counters()[Counter::Commits], times.len() as u64);
    engine.close().unwrap();
}

#[test]
fn rates_are_measured_of_each_work() {
    let home = tempfile::tempdir().unwrap();
    let bench = rates::Bench::open(home.path(), 1000, small(), SHORT).unwrap();
    let turns: String = (0..rates::WORKS.len()).map(|work| format!("{work}\n")).collect();
    let mut answers = Vec::new();
    bench.take_turns(turns.as_bytes(), &mut answers).unwrap();
    let answers = String::from_utf8(answers).unwrap();
    let measured: Vec<f64> = answers.lines().map(|rate| rate.parse().unwrap()).collect();
    assert_eq!(measured.len(), rates::WORKS.len());
    assert!(measured.iter().all(|rate| *rate > 0.0), "{measured:?}");
    assert!(bench.engine.counters()[Counter::Commits] >= 9);
    bench.engine.close().unwrap();
}

#[test]
fn rates_of_two_builds_are_compared_in_turns() {
    let home = tempfile::tempdir().unwrap();
    let programs = [("other", 100), ("this", 150)].map(|(name, rate)| {
        let program = home.path().join(format!("{name}.sh"));
        let script = format!("#!/bin/sh\nmkdir \"$1\"\nwhile read work; do echo {rate}; done\n");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    });
    let [other, this] = &programs;
    let chosen = (3, "point reads");
    let ratios = rates::compare(&home.path().join("at"), &[], [other, this], chosen).unwrap();
    assert_eq!(ratios, [1.5; 3]);
}

#[test]
fn rates_of_the_store_are_measured_under_every_method() {
    let home = tempfile::tempdir().unwrap();
    let (rounds, pages) = (2, 2 * 128);
    let measured = store_rates::store_rates(&home.path().join("store"), rounds);
    assert_eq!(measured.len(), 3 + 2 * FlushMethod::ALL.len());
    for (method, doublewrite, [written, copied, syncs]) in measured {
        let what = format!("{method} {doublewrite:?}");
        assert_eq!(written, pages, "{what}");
        assert_eq!(copied, if doublewrite == Doublewrite::On { pages } else { 0 }, "{what}");
        assert_eq!(syncs > 0, method != FlushMethod::DirectNoFsync, "{what}");
    }
}
