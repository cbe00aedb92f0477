//! `iostrata engine` on real directories, with real kills and power cuts.

use iostrata_engine::{Engine, Settings};
use serde_json::Value;

use crate::harness::{Bench, document, is_soak, stderr, stdout};

/// An engine with a few rows, closed.
fn made(bench: &Bench) {
    let mut settings = Settings::default();
    for (name, value) in [("buffer_pool_size", "4M"), ("redo_log_capacity", "1M")] {
        settings.set(name, value).unwrap();
    }
    let engine = Engine::open(bench.path("db"), settings).unwrap();
    let table = engine.create_table("t").unwrap();
    table.bulk_load((0..1000_u32).map(|row| (row.to_be_bytes(), [7; 100]))).unwrap();
    engine.close().unwrap();
}

#[test]
fn a_whole_engine_is_told_so() {
    let bench = Bench::new();
    made(&bench);
    let found = document(&bench.line("engine check db --json"), "engine-check");
    assert_eq!(found["ok"], true);
    assert_eq!(found["recovery"]["was_clean"], true);
    let table = &found["tables"][1];
    assert_eq!((&table["name"], &table["rows"]), (&Value::from("t"), &Value::from(1000)));
    let text = stdout(&bench.line("engine check db"));
    assert!(text.contains("t: 1000 rows") && text.contains("as it should be"), "{text}");
}

#[test]
fn a_damaged_page_is_found_and_named() {
    let bench = Bench::new();
    made(&bench);
    // Page 4 is a leaf of the table; with four data files it is the second page of the first.
    let path = bench.path("db").join("data-00");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[16384 + 9000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let output = bench.line("engine check db --json");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(found["ok"], false);
    let problems = found["problems"].as_array().unwrap();
    let is_named = |problem: &Value| {
        problem["page"] == 4 && problem["what"].as_str().unwrap().contains("checksum")
    };
    assert!(problems.iter().any(is_named), "{problems:?}");
}

/// Super page, map and catalogue: what an engine cannot be opened or searched without.
#[test]
fn damage_of_any_page_is_a_judgement_with_a_document() {
    for page in 0..4 {
        let bench = Bench::new();
        made(&bench);
        let path = bench.path("db").join(format!("data-0{page}"));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[300] ^= 0x41;
        std::fs::write(&path, bytes).unwrap();
        let output = bench.line("engine check db --json");
        assert_eq!(output.status.code(), Some(1), "page {page}: {}", stderr(&output));
        let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!((&found["ok"], &found["problems"][0]["page"]), (&false.into(), &page.into()));
        let text = stdout(&bench.line("engine check db"));
        assert!(!text.contains("t: 0 rows") && !text.contains("as it should be"), "{text}");
    }
}

#[test]
fn a_data_file_that_was_cut_is_a_judgement() {
    let bench = Bench::new();
    made(&bench);
    let file = std::fs::File::options().write(true).open(bench.path("db").join("data-02")).unwrap();
    file.set_len(1_000_000).unwrap();
    let output = bench.line("engine check db");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("data-02 is 1000000 bytes, not a multiple of the page"), "{text}");
}

#[test]
fn counters_are_read_while_another_process_holds_the_engine() {
    let bench = Bench::new();
    made(&bench);
    let settings = Engine::kept_settings(bench.path("db")).unwrap().unwrap();
    let engine = Engine::open(bench.path("db"), settings).unwrap();
    let held = bench.line("engine check db");
    assert_eq!(held.status.code(), Some(3));
    assert!(stderr(&held).contains(&std::process::id().to_string()), "{}", stderr(&held));
    // Closing publishes once more, so nothing is waited for here.
    engine.table("t").unwrap().unwrap().get(&5_u32.to_be_bytes()).unwrap().unwrap();
    engine.close().unwrap();
    let found = document(&bench.line("engine stats db --json"), "engine-stats");
    assert_eq!(found["pid"], std::process::id());
    let counter = |name: &str| {
        let counters = found["counters"].as_array().unwrap();
        let row = counters.iter().find(|row| row["name"] == name).unwrap();
        row["value"].as_u64().unwrap()
    };
    assert!(counter("rows_read") >= 1);
    assert!(counter("lsn_current") >= counter("lsn_last_checkpoint"));
    assert_eq!(counter("buffer_pool_pages_total"), 256);
    let text = stdout(&bench.line("engine stats db"));
    assert!(text.contains("checkpoint_age"), "{text}");
}

#[test]
fn what_is_no_engine_is_bad_input() {
    let bench = Bench::new();
    std::fs::write(bench.path("file"), "x").unwrap();
    for line in ["check nothing", "stats nothing", "check .", "stats .", "check file", "stats file"]
    {
        let line = format!("engine {line}");
        let line = line.as_str();
        let output = bench.line(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains("contains no engine"), "{}", stderr(&output));
    }
    for (dir, word) in [("file", "no directory"), ("a/b", "above it is missing")] {
        let output = bench.run(&["engine", "crash-test", dir, "--seconds", "1"]);
        assert_eq!(output.status.code(), Some(2), "{dir}: {}", stderr(&output));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    }
    for (setting, word) in [("page_size=5K", "page_size"), ("nix=1", "nix"), ("nix", "name=value")]
    {
        let output = bench.run(&["engine", "crash-test", "d", "--engine", setting]);
        assert_eq!(output.status.code(), Some(2), "{setting}: {}", stderr(&output));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
        assert!(!bench.path("d").exists(), "nothing is made for bad input");
    }
}

#[test]
fn nothing_acknowledged_is_lost_in_a_crash() {
    let bench = Bench::new();
    let seconds = if is_soak() { 40 } else { 8 };
    let line = format!("engine crash-test DIR --seconds {seconds} --json");
    let found = document(&bench.line(&line), "engine-crash-test");
    let number = |name: &str| found[name].as_u64().unwrap();
    assert_eq!((number("lost"), number("check_failures")), (0, 0), "{found:#}");
    assert!(number("kills") > 0 && number("acknowledged") > 0, "{found:#}");
    assert!(number("recoveries") >= number("kills") + number("copies"), "{found:#}");
    assert!(number("closes") > 0 && found["close_s_max"].as_f64().unwrap() > 0.0, "{found:#}");
    for why in found["unavailable"].as_array().unwrap() {
        eprintln!("skipped: {}", why.as_str().unwrap());
    }
    assert!(!bench.path("DIR").exists(), "what was made is gone");
}

/// The ways of writing, each so often and for so long: half an hour.
const LONG_WAYS: [&str; 4] =
    ["", "--engine flush_method=fsync", "--engine page_size=4K", "--by power"];
const LONG_ROUNDS: usize = 3;
const LONG_SECONDS: u64 = 150;

#[test]
fn half_an_hour_of_crashes_loses_nothing() {
    if !is_soak() {
        eprintln!("skipped: a long test (cargo xtask soak)");
        return;
    }
    let mut all = [0; 4];
    for (seed, way) in (1..).zip(LONG_WAYS.repeat(LONG_ROUNDS)) {
        let bench = Bench::new();
        let line =
            format!("engine crash-test DIR --seconds {LONG_SECONDS} --seed {seed} --json {way}");
        let output = bench.line(&line);
        if output.status.code() == Some(3) {
            eprintln!("skipped: {way}: {}", stderr(&output).trim());
            continue;
        }
        let found = document(&output, "engine-crash-test");
        let number = |name: &str| found[name].as_u64().unwrap();
        assert_eq!((number("lost"), number("check_failures")), (0, 0), "{line}: {found:#}");
        let counted = ["kills", "power_cuts", "copies", "closes"].map(number);
        assert!(counted[0] > 0 && counted[3] > 0, "{line}: {found:#}");
        all.iter_mut().zip(counted).for_each(|(all, counted)| *all += counted);
    }
    let [kills, power_cuts, copies, closes] = all;
    eprintln!("{kills} kills, {power_cuts} of them power cuts, {copies} copies, {closes} closes");
}

#[test]
fn a_test_of_crashes_finds_what_is_lost() {
    let bench = Bench::new();
    // InnoDB's own form of this method never syncs the redo, which this disk punishes.
    let output = bench.line(
        "engine crash-test DIR --seconds 40 --json --by power --engine flush_method=ALL_O_DIRECT \
         --engine trust_device_cache=on",
    );
    if output.status.code() == Some(3) {
        eprintln!("skipped: {}", stderr(&output).trim());
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{}{}", stdout(&output), stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let bad = ["lost", "check_failures"].map(|name| found[name].as_u64().unwrap());
    assert!(bad.iter().sum::<u64>() > 0, "{found:#}");
}
