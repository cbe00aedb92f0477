//! Job files as their users run them, and compared with fio where it is installed.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Bench, document, stderr, stdout, wait_until};

const QUICK: &str = "[global]\n\
    size=4m\n\
    ioengine=sync\n\
    [reads]\nrw=randread\nnumjobs=2\nunlink=1\n\
    [writes]\nrw=write\nbs=4k\nfsync=64\nfilename=w\nstonewall\n\
    [nothing]\nioengine=null\nrw=randrw\nrwmixread=70\nsize=1g\nruntime=1\ntime_based\n\
    bs=4k,8k\ngroup_reporting\nnumjobs=2\nstonewall\nthread\n";

fn bench(job_file: &str) -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.path("j.fio"), job_file).unwrap();
    bench
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path}"))
}

#[test]
fn a_dry_run_shows_the_plan_and_touches_nothing() {
    let bench = bench(QUICK);
    let plan = document(&bench.line("fio --dry-run j.fio --json"), "fio_plan");
    assert_eq!(plan["waves"].as_array().unwrap().len(), 3);
    let text = bench.line("fio --dry-run j.fio");
    assert!(text.status.success(), "{}", stderr(&text));
    for word in ["wave 3 of 3", "fsync after every 64 writes", "reads and writes 70:30"] {
        assert!(stdout(&text).contains(word), "{word} is missing in: {}", stdout(&text));
    }
    assert_eq!(bench.data_files(), ["j.fio"]);
}

#[test]
fn jobs_run_in_waves_and_keep_their_files_as_fio_does() {
    let bench = bench(QUICK);
    let document = document(&bench.line("fio j.fio --json --quiet --out RUN"), "fio");
    let waves = document["waves"].as_array().unwrap();
    let names: Vec<Vec<&str>> = waves
        .iter()
        .map(|wave| {
            let jobs = wave["jobs"].as_array().unwrap();
            jobs.iter().map(|job| job["name"].as_str().unwrap()).collect()
        })
        .collect();
    assert_eq!(names, [vec!["reads.0", "reads.1"], vec!["writes"], vec!["nothing"]]);
    for clone in ["0", "1"] {
        let reads = &waves[0]["jobs"][clone.parse::<usize>().unwrap()];
        assert_eq!(number(reads, "/read/ios"), 1024.0, "each clone reads its 4 MiB once");
        assert!(reads["write"].is_null());
    }
    let writes = &waves[1]["jobs"][0];
    assert_eq!((number(writes, "/write/ios"), number(writes, "/sync/ios")), (1024.0, 16.0));
    let nothing = &waves[2]["jobs"][0];
    assert!((number(nothing, "/duration_s") - 1.0).abs() < 0.01);
    let share = number(nothing, "/read/ios")
        / (number(nothing, "/read/ios") + number(nothing, "/write/ios"));
    assert!((0.69..0.71).contains(&share), "{share}");
    let bytes = number(nothing, "/write/bytes_per_s") / number(nothing, "/write/iops");
    assert!((bytes / 8192.0 - 1.0).abs() < 1e-3, "{bytes}");
    assert_eq!(bench.data_files(), ["j.fio", "w"], "unlink=1 removes, fio keeps the others");
    // Filled: two files that are read. Written: one.
    assert_eq!(number(&document, "/bytes_written"), f64::from(3 * (4 << 20)));
    let shown = bench.line("report RUN --format json");
    assert!(shown.status.success(), "{}", stderr(&shown));
}

#[test]
fn bounds_of_the_command_line_hold_for_every_wave() {
    const LONG: &str = "[a]\nioengine=null\nsize=1g\nrw=randread\nruntime=60\ntime_based\n";
    let bench = bench(LONG);
    let document = document(&bench.line("fio j.fio --json --quiet --point-time 300ms"), "fio");
    assert!(number(&document, "/waves/0/jobs/0/duration_s") < 30.0);
    // When a window is precise depends on the machine: the plan shows what it waits for.
    let plan = bench.line("fio j.fio --dry-run --json --precision 90% --point-time 20s");
    let plan: Value = serde_json::from_str(&stdout(&plan)).unwrap();
    let spec = &plan["waves"][0]["jobs"][0]["streams"][0]["spec"];
    assert_eq!((spec["precision"].as_f64(), &spec["runtime"]), (Some(0.9), &Value::Null), "{spec}");
    let refused = bench.line("fio j.fio --precision 200%");
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("precision"), "{}", stderr(&refused));
}

#[test]
fn delays_ramps_and_logs() {
    let bench = bench(
        "[a]\nioengine=null\nsize=1g\nrw=read\nthread\nruntime=1\ntime_based\nstartdelay=300ms\n\
         ramp_time=200ms\nwrite_bw_log=x\nwrite_iops_log=x\nwrite_lat_log=x\nlog_avg_msec=250\n\
         [b]\nioengine=null\nsize=1g\nrw=read\nthread\nruntime=1\ntime_based\n",
    );
    let document = document(&bench.line("fio j.fio --json --quiet"), "fio");
    let wave = &document["waves"][0];
    assert!((number(wave, "/duration_s") - 1.5).abs() < 0.01, "{wave}");
    for job in wave["jobs"].as_array().unwrap() {
        assert!((number(job, "/duration_s") - 1.0).abs() < 0.01, "{job}");
    }
    for (name, lines) in [("x_bw.1.log", 4), ("x_iops.1.log", 4), ("x_clat.1.log", 4)] {
        let log = std::fs::read_to_string(bench.path(name)).unwrap();
        assert_eq!(log.lines().count(), lines, "{name}: {log}");
        for line in log.lines() {
            let fields: Vec<u64> = line.split(", ").map(|field| field.parse().unwrap()).collect();
            assert_eq!((fields.len(), fields[2]), (5, 0), "{line}");
            assert!(fields[0].is_multiple_of(250) && fields[1] > 0, "{line}");
        }
    }
}

#[test]
fn the_command_and_the_report_print_the_same_tables() {
    let bench = bench(
        "[a]\nioengine=null\nrw=randrw\nsize=4m\nruntime=1\ntime_based\n[b]\nstonewall\n\
                       ioengine=null\nrw=read\nsize=4m\nnumjobs=2\n",
    );
    let printed = bench.line("fio j.fio --quiet --out RUN");
    assert!(printed.status.success(), "{}", stderr(&printed));
    let again = bench.line("report RUN --format terminal");
    // fio's own text stands before our table.
    assert!(stdout(&printed).ends_with(&stdout(&again)), "{}", stdout(&printed));
    assert!(stdout(&printed).contains("\n  read: IOPS="), "{}", stdout(&printed));
    for said in ["3 workloads, run in waves", "a (wave 1, ", "reads", "B written", "kept in RUN"] {
        assert!(stdout(&printed).contains(said), "{said} is missing in: {}", stdout(&printed));
    }
}

#[test]
fn existing_files_are_only_read_without_leave() {
    let bench = bench("[a]\nrw=write\nfilename=precious\nsize=1m\n");
    let content = vec![7_u8; 1 << 20];
    std::fs::write(bench.path("precious"), &content).unwrap();
    let refused = bench.line("fio j.fio");
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--overwrite-contents"), "{}", stderr(&refused));
    assert_eq!(std::fs::read(bench.path("precious")).unwrap(), content);
    let allowed = bench.line("fio j.fio --overwrite-contents --json");
    assert!(allowed.status.success(), "{}", stderr(&allowed));
    assert_ne!(std::fs::read(bench.path("precious")).unwrap(), content);
}

#[test]
fn what_cannot_be_run_is_refused_with_file_line_option_and_reason() {
    for (text, expected) in [
        ("[a]\nsize=1m\n\nioengine=rbd\n", "iostrata: j.fio:4: ioengine=rbd: there is no such"),
        ("[a]\nsize=1m\niodpeth=4\n", "iostrata: j.fio:3: iodpeth=4: there is no such option; did"),
        ("[a]\nsize=1m\nverify=crc99\n", "iostrata: j.fio:3: verify=crc99: there is no such"),
        ("[a]\nrw=read\n", "iostrata: j.fio:1: [a]: a.0.0 does not exist yet; say size="),
        (
            "[a]\nsize=1m\ndirectory=/none\n",
            "iostrata: j.fio:3: directory=/none: there is no directory",
        ),
        ("", "iostrata: j.fio: job file: there is no job in it"),
        ("\u{0}\u{1}[", "iostrata: j.fio:1: [: this is no section"),
    ] {
        let bench = bench(text);
        for line in ["fio --dry-run j.fio", "fio j.fio"] {
            // What is not there is planned all the same.
            let is_missing = text.contains("/none") || text == "[a]\nrw=read\n";
            if is_missing && line.contains("dry") {
                continue;
            }
            let output = bench.line(line);
            let message = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{text}: {message}");
            assert!(message.starts_with(expected), "{text}: {message}");
            assert!(output.stdout.is_empty());
        }
        assert_eq!(bench.data_files(), ["j.fio"]);
    }
}

/// Whether fio is installed; prints it when it is not.
pub fn fio_is_installed() -> bool {
    let found = Command::new("fio").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: fio is not installed");
    }
    found
}

#[test]
fn fio_reads_the_same_job_files_the_same_way() {
    if !fio_is_installed() {
        return;
    }
    // What each moves by itself is fixed, so both must report the same counts.
    for text in [
        "[a]\nsize=1m\n",
        "[global]\nsize=1m\nbs=8k\n[a]\nnumjobs=2\n[b]\nbs=16k\n[global]\nsize=2m\n[c]\nstonewall\n",
        "[a]\nsize=64ki\nloops=3\n",
        "[a]\nsize=1mib\nbs=4k\n",
        "[a]\nkb_base=1000\nsize=4mib\nbs=4096\n",
        "[a]\nsize=0x20000\nrw=randread:8\n",
        "[a]\nsize=1m\nio_size=3m\nrw=randwrite\n",
        "[a]\nfilesize=256k\nnrfiles=4\nrw=read\n",
        "[a]\nsize=1m\nnumber_ios=7\n",
        "[a]\nsize=$pagesize*16 ; a comment\n",
        "[a]\nsize=1m\nbs=4k,16k\nrw=write\nname=other\n",
        "[a]\nsize=1m\n[a]\nsize=2m\nnew_group\ngroup_reporting\n[b]\nsize=1m\ngroup_reporting\n",
    ] {
        let text = text
            .replace("[a]", "[a]\nioengine=null\nthread")
            .replace("[b]", "[b]\nioengine=null\nthread");
        let text = text.replace("[c]", "[c]\nioengine=null\nthread");
        let bench = bench(&text);
        let ours = bench.line("fio j.fio --output-format json --quiet");
        assert!(ours.status.success(), "{text}: {}", stderr(&ours));
        let ours: Value = serde_json::from_str(&stdout(&ours)).unwrap();
        let theirs = Command::new("fio")
            .args(["--output-format=json", "j.fio"])
            .current_dir(bench.path(""))
            .output()
            .unwrap();
        let theirs: Value = serde_json::from_str(&stdout(&theirs)).unwrap();
        let jobs = |document: &Value| -> Vec<(String, Value, Value, Value, Value, Value)> {
            document["jobs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|job| {
                    let total = |kind: &str, field: &str| job[kind][field].clone();
                    (
                        job["jobname"].as_str().unwrap().to_owned(),
                        job["groupid"].clone(),
                        total("read", "total_ios"),
                        total("read", "io_bytes"),
                        total("write", "total_ios"),
                        total("write", "io_bytes"),
                    )
                })
                .collect()
        };
        assert_eq!(jobs(&ours), jobs(&theirs), "{text}");
    }
}

/// What a process and those that it has started have read of devices.
fn read_bytes(pid: u32) -> u64 {
    let read = |pid: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
        line.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0)
    };
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads.map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let children: String = children.map(Result::unwrap_or_default).collect();
    read(&pid.to_string()) + children.split_whitespace().map(read).sum::<u64>()
}

#[test]
fn a_signal_ends_the_wave_and_keeps_what_was_measured() {
    let bench = bench(
        "[a]\nioengine=libaio\nrw=randread\ndirect=1\nsize=8m\nruntime=60\ntime_based\n\
         unlink=1\n[b]\nstonewall\nrw=write\nsize=1m\n",
    );
    let mut child = bench
        .command(&["fio", "j.fio", "--json", "--quiet"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    crate::signals::wait_for_window(&bench);
    let before = read_bytes(child.id());
    wait_until("requests are done", 20, || read_bytes(child.id()) > before + (64 << 10));
    let sent = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let mut text = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["waves"].as_array().unwrap().len(), 1, "the second wave never began");
    assert!(number(&document, "/waves/0/jobs/0/read/ios") > 0.0, "what was measured is kept");
    assert_eq!(bench.data_files(), ["j.fio"]);
}
