//! What `read_ms_max` does on a private MariaDB, and the refusal of a server that is of no known
//! kind.

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Bench, document, stderr, wait_until};
use crate::server::Private;
use crate::tune::{end, load, pressed, settings, start};

#[test]
fn less_is_written_while_reads_are_slow() {
    let bench = Bench::new();
    let Some(private) = pressed(&[]) else { return };
    let load = load(&bench, &private);
    let before = settings(&private);
    // Reads beside the server, none of which is as fast as this.
    std::fs::write(bench.path("reads.toml"), "read_ms_max = 0.01\n").unwrap();
    let reads = "io --path F --size 64M --rw randread --bs 4k --direct --quiet --out READS";
    let reads = start(&bench, &format!("{reads} --runtime 300s"));
    let target = private.target("root", "oltp");
    let watched = document(&bench.line(&format!("watch {target} --time 3 --json")), "watch");
    let is_measured = |one: &Value| one["device"]["read_ms"].as_f64().is_some_and(|ms| ms > 0.01);
    if !watched["samples"].as_array().unwrap().iter().any(is_measured) {
        eprintln!("skipped: the device below does not measure how long reads take");
        return;
    }
    let tune =
        start(&bench, &format!("tune {target} --config reads.toml --json --quiet --out RUN"));
    // The age has to fall to the set-point before less may be written.
    let kept = || std::fs::read_to_string(bench.path("RUN/events.jsonl")).unwrap_or_default();
    wait_until("less is written", 100, || kept().contains(" less as reads take "));
    let ended = end(tune, Signal::TERM);
    assert_eq!(ended.status.code(), Some(143), "{}", stderr(&ended));
    end(reads, Signal::TERM);
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
