//! What `read_ms_max` does on a private MariaDB, and the refusal of a server that is of no known
//! kind.

use rustix::process::Signal;
use serde_json::Value;

use crate::harness::{Bench, document, stderr, usual_or_soak};
use crate::server::Private;
use crate::under_load::{end, load_at, settings, start};

#[test]
fn less_is_written_while_reads_are_slow() {
    let bench = Bench::new();
    // Less is written only while the age allows it, which loading has raised already.
    let options = [
        "--innodb-log-file-size=96M",
        "--innodb-buffer-pool-size=128M",
        "--innodb-flush-log-at-trx-commit=0",
    ];
    let Some(private) = Private::start(&options) else { return };
    let target = private.target("root", "oltp");
    let load = load_at(&bench, &target, 200_000, 3_000);
    let before = settings(&private);
    // Reads while the server runs, none of which is as fast as this.
    std::fs::write(bench.path("reads.toml"), "read_ms_max = 0.01\n").unwrap();
    let [read_s, time] = usual_or_soak([10, 8], [14, 12]);
    let reads = "io --path F --size 64M --rw randread --bs 4k --direct --quiet";
    // On a busy machine the age is above the set-point all that time.
    let is_eased = (0..4).any(|round| {
        let reads = start(&bench, &format!("{reads} --runtime {read_s}s --out READS{round}"));
        let line = format!("tune {target} --config reads.toml --time {time} --json --quiet");
        let tuned = document(&bench.line(&line), "watch");
        end(reads, Signal::TERM);
        let is_measured =
            |one: &Value| one["device"]["read_ms"].as_f64().is_some_and(|ms| ms > 0.01);
        let eased = |one: &Value| one["why"].as_str().unwrap().contains("reads take");
        match tuned["samples"].as_array().unwrap().iter().any(is_measured) {
            true => tuned["settings"].as_array().unwrap().iter().any(eased),
            false => {
                eprintln!("skipped: the device below does not measure how long reads take");
                true
            }
        }
    });
    assert!(is_eased, "less is written in none of four windows");
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
