//! `simulate flush` as users call it: the exact call, what it keeps, bad input.

use serde_json::Value;

use crate::harness::{Bench, document, number, repository, stderr, stdout};

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn the_whole_comparison_shows_who_stalls_and_who_does_not() {
    let bench = Bench::new();
    let output = bench.line("simulate flush --policy all --json --quiet --out RUN");
    let document = document(&output, "simulate-flush");
    let policies = document["policies"].as_array().unwrap();
    assert_eq!(policies.len(), 13);
    for policy in policies {
        let (name, series) = (&policy["name"], &policy["series"]);
        let columns = ["t_s", "tps", "checkpoint_age_pct", "dirty_pages", "flushed_per_s"];
        for column in columns.map(|column| numbers(&series[column])) {
            assert_eq!(column.len(), 3600, "{name}");
        }
        let wall = policy["wall_pct"].as_f64().unwrap();
        assert!(numbers(&series["checkpoint_age_pct"]).iter().all(|age| *age <= wall + 5.0));
        let seconds = &numbers(&series["tps"])[360..];
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        let tps_mean = policy["tps_mean"].as_f64().unwrap();
        assert!((tps_mean / mean - 1.0).abs() < 1e-3, "{name}: {tps_mean} {mean}");
    }
    let of = |name: &str| policies.iter().find(|policy| policy["name"] == name).unwrap();
    let worst = |name: &str| of(name)["min_over_mean_1s"].as_f64().unwrap();
    assert!(worst("steady") > 0.8 && worst("adaptive") < 0.2);
    assert_eq!(of("steady")["evenness"], "even");
    assert_eq!(of("adaptive")["evenness"], "stalls");
    assert!(of("adaptive")["furious_flushes"].as_u64().unwrap() > 0);
    assert_eq!(of("steady")["furious_flushes"], 0);
    assert!(document["headline"].as_array().unwrap().len() > 1);
    assert_eq!(stderr(&output), "", "--quiet");
    assert!(bench.path("RUN/report.html").metadata().unwrap().len() > 100_000);
    for (format, words) in [("terminal", "worst second"), ("markdown", "## All policies")] {
        let shown = stdout(&bench.line(&format!("report RUN --format {format}")));
        assert!(shown.contains(words) && shown.contains("page-cleaner-84"), "{shown}");
    }
}

/// Arrivals by chance leave seconds empty at such a rate. A volume that stops for minutes does
/// something else.
#[test]
fn a_transaction_every_other_second_is_no_stall() {
    let bench = Bench::new();
    let line = "simulate flush --policy adaptive,steady --rate 0.5 --pages-per-txn 1000 \
                --redo-per-txn 1M --redo 32M --pool 512M --data 75M --json --quiet";
    let even = document(&bench.line(line), "simulate-flush");
    for policy in even["policies"].as_array().unwrap() {
        assert_eq!((&policy["evenness"], &policy["stalls"]), (&"even".into(), &0.into()));
        assert!(!policy["text"].as_str().unwrap().contains("worst second"), "{}", policy["text"]);
    }
    let shown = stdout(&bench.line(&line.replace("--json ", "")));
    assert!(shown.contains("adaptive (0.51/s)"), "{shown}");
    let stopped = bench.line(&format!("{line} --limit-at 20m=20 --limit-at 40m=1500"));
    let stopped = document(&stopped, "simulate-flush");
    for policy in stopped["policies"].as_array().unwrap() {
        assert_eq!(policy["evenness"], "stalls", "{}", policy["text"]);
        assert!(policy["longest_stall_s"].as_f64().unwrap() > 60.0, "{}", policy["text"]);
    }
}

#[test]
fn the_same_seed_gives_the_same_document_and_options_are_followed() {
    let bench = Bench::new();
    let line = "simulate flush --policy steady --span 5m --redo 100M --users 8 --seed 5 \
                --distribution hot:10/80 --device ssd-sata --iops-limit 2000 \
                --limit-at 2m=500 --load-at 3m=2 --set io_capacity=700 --json --quiet --out RUN";
    let policies = |name: &str| {
        let output = bench.line(&line.replace("RUN", name));
        document(&output, "simulate-flush")
    };
    let (first, second) = (policies("A"), policies("B"));
    assert_eq!(first["policies"], second["policies"]);
    assert_eq!(first["settings"]["io_capacity"], "700");
    assert_eq!(first["turns"].as_array().unwrap().len(), 2);
    let tps = numbers(&first["policies"][0]["series"]["tps"]);
    let mean = |from: usize, to: usize| tps[from..to].iter().sum::<f64>() / (to - from) as f64;
    assert!(mean(150, 175) < 0.75 * mean(60, 110), "{tps:?}");
}

#[test]
fn what_is_wrong_is_named_with_what_would_do() {
    let bench = Bench::new();
    for (options, words) in [
        ("--policy steadier", "page-cleaner-84"),
        ("--set io_capacity=0", "it takes a whole number from 1"),
        ("--set io_capacity", "write NAME=VALUE"),
        ("--set log_buffer_size=1M", "does not follow"),
        ("--set policy=steady", "--policy"),
        ("--redo 300K", "too small"),
        ("--pool 1K", "buffer_pool_size"),
        ("--users 0", "1 to 2,000"),
        ("--users 8 --rate 100", "cannot be used with"),
        ("--device nvme --limit-at 10m=500", "give the device a limit"),
        ("--limit-at 2h=500", "outside the span"),
        ("--limit-at soon", "30m=750"),
        ("--iops-limit 0", "1 to 100,000,000"),
        ("--device floppy", "is not a disk model"),
        ("--distribution gauss", "hot:10/90"),
        ("--max-purge-lag 1000", "max_purge_lag_delay"),
        ("--span 1s", "10 seconds"),
    ] {
        let output = bench.line(&format!("simulate flush {options}"));
        assert_eq!(output.status.code(), Some(2), "{options}");
        assert!(stderr(&output).contains(words), "{options}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{options}");
    }
}

/// The commands of the block of a document that writes a file.
fn printed_commands(document: &str, file: &str) -> Vec<String> {
    let block = document.split("```").find(|block| block.contains(&format!("> {file}")));
    let commands = block.unwrap_or_else(|| panic!("no command writes {file}")).split("&&");
    let own = |command: &str| {
        let command = command.split(" > ").next().unwrap().trim();
        command.strip_prefix("iostrata ").unwrap().to_owned()
    };
    commands.map(own).collect()
}

#[test]
fn the_documented_picture_is_what_its_command_makes() {
    const PICTURE: &str = "docs/flushing-policies.svg";
    let page = std::fs::read_to_string(repository().join("docs/flushing.md")).unwrap();
    let bench = Bench::new();
    let mut now = String::new();
    for command in printed_commands(&page, PICTURE) {
        let output = bench.line(&command);
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        now = stdout(&output);
    }
    let path = repository().join(PICTURE);
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &now).unwrap();
    }
    let shown = std::fs::read_to_string(&path).unwrap_or_default();
    let update = "UPDATE_DOCS=1 cargo test -p iostrata --test cli documented_picture";
    assert!(shown == now, "{PICTURE} is not what its command makes: run {update}");
    assert!(now.len() < 150_000, "{} bytes", now.len());
    assert!(page.contains("](flushing-policies.svg)"));
    for policy in iostrata_innodb::PolicyName::WORDS {
        let title = now.split(&format!(">{policy}: ")).nth(1).unwrap();
        let verdict = title.split('<').next().unwrap();
        let said = format!("\n- `{policy}` {verdict}: ");
        assert!(page.contains(&said), "docs/flushing.md says something else than {}", said.trim());
    }
}

#[test]
fn a_picture_is_of_one_finished_simulation() {
    let bench = Bench::new();
    let simulate = "simulate flush --policy steady --span 10s --quiet --out RUN";
    assert!(bench.line(simulate).status.success());
    let io = "io --path F --ioengine null --runtime 100ms --quiet --out IO";
    assert!(bench.line(io).status.success());
    for (runs, words) in
        [("IO", "`iostrata io` has no picture"), ("RUN RUN", "where all are recordings")]
    {
        let output = bench.line(&format!("report {runs} --format svg"));
        assert_eq!(output.status.code(), Some(2), "{runs}");
        assert!(stderr(&output).contains(words), "{runs}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{runs}");
    }
    let picture = stdout(&bench.line("report RUN --format svg"));
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
}

#[test]
fn a_recorded_run_is_asked_what_would_be() {
    let bench = Bench::new();
    let target = "--target engine:db --engine buffer_pool_size=64M --engine redo_log_capacity=64M \
                  --engine policy=page-cleaner-57 --engine io_capacity=3000";
    let tables = "--tables 1 --table-size 20000";
    let prepared = bench.line(&format!("oltp write_only prepare {target} {tables}"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    let run = |member: &str, out: &str| {
        let line = format!(
            "oltp {member} run {target} {tables} --threads 4 --time 5 --warmup-time 1 --json \
             --out {out}"
        );
        document(&bench.line(&line), "tpcc")
    };
    let recorded = run("write_only", "R");
    assert_eq!(recorded["target"]["settings"]["io_capacity"], "3000");

    let line = "simulate flush --from R --policy steady,page-cleaner-84 --redo 256M --span 2m \
                --json --quiet --out S";
    let found = document(&bench.line(line), "simulate-flush");
    let from = &found["from"];
    assert_eq!(
        (&from["policy"], &from["workload"]),
        (&"page-cleaner-57".into(), &"oltp_write_only".into())
    );
    assert_eq!(from["recorded"]["tps"], recorded["tps"]);
    assert_eq!(found["settings"]["io_capacity"], "3000", "as recorded");
    assert_eq!(found["settings"]["redo_log_capacity"], "256M", "as asked");
    assert_eq!(found["policies"].as_array().unwrap().len(), 2);
    let share = |figure: &str| {
        number(from, &format!("/modelled/{figure}")) / number(from, &format!("/recorded/{figure}"))
    };
    let rates = ["tps", "redo_bytes_per_s", "pages_dirtied_per_s"].map(share);
    let stalls =
        ["recorded", "modelled"].map(|of| number(from, &format!("/{of}/redo_stalled_pct")) >= 2.0);
    let fits = rates.iter().all(|rate| (rate - 1.0).abs() <= 0.15) && stalls[0] == stalls[1];
    assert_eq!(from["fits"], fits, "{rates:?}");
    assert!((rates[1] / rates[0] - 1.0).abs() < 0.02, "redo per transaction: {rates:?}");
    let assumed = from["assumed"].to_string();
    assert!(assumed.contains("device") && !assumed.contains("buffer pool"), "{assumed}");
    let shown = stdout(&bench.line("report S --format markdown"));
    assert!(shown.contains("oltp_write_only on engine") && shown.contains("Not in the recording"));

    // A device that can't have done it is reported.
    let slow = "simulate flush --from R --policy steady --iops-limit 2 --span 1m --json --out T";
    let slow = document(&bench.line(slow), "simulate-flush");
    assert_eq!(slow["from"]["fits"], false);
    assert!(slow["headline"][0].as_str().unwrap().contains("not to be trusted"));

    run("point_select", "Q");
    std::fs::create_dir(bench.path("empty")).unwrap();
    std::fs::remove_file(bench.path("R/result.json")).unwrap();
    for (run, words) in [
        ("empty", "is not a run directory"),
        ("missing", "is not a run directory"),
        ("S", "`iostrata tpcc run`, or of `run` of oltp, stress or insert"),
        ("R", "stopped before its end"),
        ("Q", "record a workload that writes"),
    ] {
        let output = bench.line(&format!("simulate flush --from {run} --json"));
        assert_eq!(output.status.code(), Some(2), "{run}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{run}: {}", stderr(&output));
    }
}
