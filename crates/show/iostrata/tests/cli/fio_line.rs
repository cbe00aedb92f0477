//! fio's command line as it is pasted, and what jobs request beyond plain requests, compared with
//! fio where it is installed.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::fio::fio_is_installed;
use crate::harness::{Bench, document, stderr, stdout};

/// The jobs of fio's JSON, each with what it moved.
fn moved(text: &str) -> Vec<(String, Vec<Value>)> {
    let document: Value = serde_json::from_str(&text[text.find('{').unwrap_or(0)..]).unwrap();
    let jobs = document["jobs"].as_array().unwrap().iter();
    jobs.map(|job| {
        let name = job["jobname"].as_str().unwrap().to_owned();
        let total = |kind: &str| [job[kind]["total_ios"].clone(), job[kind]["io_bytes"].clone()];
        (name, ["read", "write"].into_iter().flat_map(total).collect())
    })
    .collect()
}

#[test]
fn a_pasted_line_runs() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("d")).unwrap();
    let line = "fio --rw=write --ioengine=sync --fdatasync=1 --directory=d --size=230k --bs=2300 \
                -name=mytest --output-format=json --quiet";
    let output = bench.line(line);
    assert!(output.status.success(), "{}", stderr(&output));
    let document: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let job = &document["jobs"][0];
    assert_eq!(
        (job["jobname"].as_str(), job["write"]["total_ios"].as_u64()),
        (Some("mytest"), Some(102))
    );
    assert!(job["sync"]["lat_ns"]["percentile"]["99.000000"].as_u64() > Some(0), "{job}");
    assert!(bench.path("d/mytest.0.0").exists());
}

#[test]
fn a_job_file_comes_from_standard_input_too() {
    let bench = Bench::new();
    let mut command = bench.command(&["fio", "-", "--output-format=json", "--quiet"]);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"[a]\nrw=write\nsize=64k\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let expected = [0, 0, 16, 65536].map(Value::from).to_vec();
    assert_eq!(moved(&stdout(&output)), [("a".to_owned(), expected)]);
}

#[test]
fn directories_of_a_filename_are_made_and_logs_have_the_jobs_name() {
    let bench = Bench::new();
    let line = "fio --name=a --size=64k --rw=write --filename=d/e/f --write_bw_log= --quiet";
    let output = bench.line(line);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(bench.path("d/e/f").exists() && bench.path("a_bw.1.log").exists());
    let output = bench.line("fio --name=a --size=64k --rw=write --directory=none");
    assert_eq!(output.status.code(), Some(2));
    let expected = "argument 4, --directory=none: there is no directory none; create it";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn of_an_option_that_is_repeated_the_last_counts() {
    let bench = Bench::new();
    let line = "fio --name=a --size=64k --output=x --output=y --parse-only --parse-only --eta=never \
                --eta=auto";
    let output = bench.line(line);
    assert!(output.status.success(), "{}", stderr(&output));
    let options = "--table-size=9 --table-size=90 --tables=1";
    let output = bench.line(&format!("oltp_insert --target engine:e {options} prepare"));
    assert!(stdout(&output).starts_with("1 table: 90 rows"), "{}", stdout(&output));
}

#[test]
fn everything_wrong_with_a_line_is_named_with_its_argument() {
    let bench = Bench::new();
    std::fs::write(bench.path("j.fio"), "[b]\nioengine=rbd\n").unwrap();
    let output = bench.line("fio --rw=foo --name=a --size=1m --secton=b --iodpeth=4 j.fio");
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    for part in [
        "argument 1, --rw=foo: there is no such direction",
        "argument 4, --secton=b: there is no such option; did you mean section?",
        "argument 5, --iodpeth=4: there is no such option; did you mean iodepth?",
        "j.fio:2: ioengine=rbd: there is no such engine",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let nothing = bench.line("fio");
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("begin a job with --name"), "{}", stderr(&nothing));
    let client = bench.line("fio --client=h --name=a --size=1m");
    assert!(stderr(&client).contains("--client=h: jobs run on this machine only"));
    assert!(bench.data_files() == ["j.fio"], "nothing was made");
    let help = stdout(&bench.line("fio --help"));
    for part in ["Requests:", "--rw, --readwrite", "Time, rates and order:", "--skip-unsupported"] {
        assert!(help.contains(part), "{part}: {help}");
    }
}

#[test]
fn jobs_that_cannot_be_run_are_left_out() {
    let bench = Bench::new();
    let text = "[a]\nsize=64k\nioengine=null\n[b]\nsize=64k\nioengine=rbd\n";
    std::fs::write(bench.path("j.fio"), text).unwrap();
    let output = bench.line("fio --skip-unsupported --json j.fio");
    let run = document(&output, "fio");
    assert_eq!(run["waves"][0]["jobs"].as_array().unwrap().len(), 1);
    assert!(
        stderr(&output).contains("j.fio:6: ioengine=rbd: [b] is left out"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_device_that_is_not_there_is_never_made() {
    let bench = Bench::new();
    for line in [
        "fio --name=a --filename=/dev/sdq --size=4m --rw=write",
        "io --path /dev/sdq --size 4m --rw randwrite --runtime 10ms",
    ] {
        let output = bench.line(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(stderr(&output).contains("/dev/sdq: no such device"), "{}", stderr(&output));
        assert!(!std::path::Path::new("/dev/sdq").exists());
    }
    let planned = bench.line("fio --dry-run --name=a --filename=/dev/sdq --size=10% --rw=write");
    assert!(planned.status.success(), "{}", stderr(&planned));
}

#[test]
fn files_in_memory_are_noted() {
    let shared = std::path::Path::new("/dev/shm");
    if !shared.is_dir() {
        eprintln!("skipped: there is no /dev/shm");
        return;
    }
    let bench = Bench::new();
    let file = format!("/dev/shm/iostrata-test-{}", std::process::id());
    let line = format!("fio --name=a --filename={file} --size=64k --rw=write --unlink=1 --json");
    let run = document(&bench.line(&line), "fio");
    let text = run["warnings"].to_string();
    assert!(text.contains("in memory (tmpfs)"), "{text}");
    let line = format!("io --path {file} --size 64k --rw write --runtime 10ms --json");
    let run = document(&bench.line(&line), "io");
    assert!(run["notes"].to_string().contains("in memory (tmpfs)"), "{}", run["notes"]);
}

#[test]
fn files_are_made_without_being_measured() {
    let bench = Bench::new();
    let line = "fio --create_only=1 --filename=tmp --size=1m --name=prepare --json";
    let run = document(&bench.line(line), "fio");
    assert_eq!(run["waves"].as_array().map(Vec::len), Some(0));
    assert_eq!(run["bytes_written"].as_u64(), Some(1 << 20));
    assert_eq!(std::fs::metadata(bench.path("tmp")).unwrap().len(), 1 << 20);
}

#[test]
fn trims_punch_holes_in_files() {
    let bench = Bench::new();
    for (engine, rw) in [("sync", "trim"), ("libaio", "randtrim"), ("io_uring", "trimwrite")] {
        let line = format!(
            "fio --name=a --ioengine={engine} --iodepth=4 --rw={rw} --size=256k --bs=16k \
             --overwrite=1 --filename=f --unlink=1 --json"
        );
        let run = document(&bench.line(&line), "fio");
        let job = &run["waves"][0]["jobs"][0];
        assert_eq!(job["trim"]["ios"].as_u64(), Some(16), "{engine} {rw}: {job}");
        let writes = if rw == "trimwrite" { Some(16) } else { None };
        assert_eq!(job["write"]["ios"].as_u64(), writes, "{engine} {rw}: {job}");
    }
    let kept = "fio --name=a --rw=trim --size=256k --overwrite=1 --filename=f --quiet";
    assert!(bench.line(kept).status.success());
    let blocks =
        std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(bench.path("f")).unwrap());
    assert_eq!((blocks, std::fs::metadata(bench.path("f")).unwrap().len()), (0, 256 << 10));
}

#[test]
fn what_is_written_is_verified() {
    let bench = Bench::new();
    for engine in ["sync", "libaio", "io_uring"] {
        let line = format!(
            "fio --name=a --ioengine={engine} --iodepth=4 --rw=randwrite --bs=4k --size=256k \
             --filename=f --verify=crc32c --do_verify=1 --json --quiet"
        );
        let run = document(&bench.line(&line), "fio");
        let job = &run["waves"][0]["jobs"][0];
        let ios = (job["write"]["ios"].as_u64(), job["read"]["ios"].as_u64());
        assert_eq!(ios, (Some(64), Some(64)), "{engine}: each block is read back");
    }
    let pattern =
        "fio --name=p --size=64k --filename=p --verify=pattern --verify_pattern=0xabcd --rw=";
    assert!(bench.line(&format!("{pattern}write")).status.success());
    if fio_is_installed() {
        let theirs = format!("{pattern}read --ioengine=psync");
        let theirs = theirs.split(' ').skip(1).filter(|word| !word.is_empty());
        let theirs = Command::new("fio").args(theirs).current_dir(bench.path("")).output().unwrap();
        assert!(theirs.status.success(), "fio verifies our pattern: {}", stderr(&theirs));
    }
    let again =
        "fio --name=b --rw=randread --bs=4k --size=256k --filename=f --verify=crc32c --quiet";
    assert!(bench.line(again).status.success(), "another run verifies it, too");
    let file = std::fs::File::options().write(true).open(bench.path("f")).unwrap();
    std::os::unix::fs::FileExt::write_at(&file, b"x", 100_000).unwrap();
    let damaged = bench.line(again);
    assert_eq!(damaged.status.code(), Some(3));
    let message = stderr(&damaged);
    assert!(
        message.contains("98304") && message.contains("not those that were written"),
        "{message}"
    );
}

#[test]
fn the_depth_that_keeps_a_latency_is_searched_for() {
    let bench = Bench::new();
    let line = "fio --name=a --ioengine=null --size=1g --rw=randread --iodepth=16 --thread \
                --runtime=20 --time_based --latency_window=20000 --latency_percentile=50 --json \
                --quiet --latency_target=";
    for (target, text) in [("10s", "up to depth 16 of 16"), ("1us", "latency_target=1us")] {
        let run = document(&bench.line(&format!("{line}{target}")), "fio");
        assert!(run["warnings"].to_string().contains(text), "{}", run["warnings"]);
        let duration_s = run["waves"][0]["duration_s"].as_f64();
        assert!(duration_s < Some(10.0), "one window is reported: {duration_s:?}");
    }
}

#[test]
fn a_log_is_replayed() {
    let bench = Bench::new();
    let log = "fio version 3 iolog\n0 f add\n0 f open\n10 f read 0 4096\n20 f write 4096 8192\n\
               2000 f sync 0 0\n150000 f read 8192 4096\n150000 f close\n";
    std::fs::write(bench.path("log"), log).unwrap();
    for (options, least_s) in [("", 0.15), ("--replay_no_stall=1", 0.0)] {
        let line = format!(
            "fio --name=a --read_iolog=log --ioengine=libaio --iodepth=4 {options} \
                            --json --quiet"
        );
        let run = document(&bench.line(&line), "fio");
        let job = &run["waves"][0]["jobs"][0];
        let ios = ["read", "write", "sync"].map(|kind| job[kind]["ios"].as_u64());
        assert_eq!(ios, [Some(2), Some(1), Some(1)], "{job}");
        assert!(job["duration_s"].as_f64() >= Some(least_s), "{job}");
    }
    let redirected =
        "fio --name=a --read_iolog=log --replay_redirect=g --replay_no_stall=1 --quiet";
    assert!(bench.line(redirected).status.success());
    assert_eq!(std::fs::metadata(bench.path("g")).unwrap().len(), 12_288);
}

/// The jobs whose requests are logged and replayed, with their number of clones.
const LOGGED: [(&str, usize); 6] = [
    ("--rw=randrw --size=256k --ioengine=psync --fsync=4", 1),
    ("--rw=write --size=64k --bs=2300 --ioengine=sync --fdatasync=3", 1),
    ("--rw=write --size=64k --ioengine=sync --end_fsync=1", 1),
    ("--rw=randread --size=128k --ioengine=libaio --iodepth=4 --numjobs=2 --group_reporting", 2),
    ("--rw=randrw --size=256k --ioengine=psync --nrfiles=3 --numjobs=2 --thread", 2),
    ("--rw=write --size=64k --ioengine=psync --verify=crc32c --directory=d", 1),
];

/// What a program reports about a log that it replays: reads and writes with their bytes.
fn replayed(bench: &Bench, log: &str, is_ours: bool) -> Vec<Value> {
    let line = format!(
        "--name=r --ioengine=psync --replay_no_stall=1 --read_iolog={log} \
                        --output-format=json"
    );
    let text = match is_ours {
        true => {
            let output = bench.line(&format!("fio {line} --quiet --overwrite-contents"));
            assert!(output.status.success(), "{}", stderr(&output));
            stdout(&output)
        }
        false => fio_beside(bench, &line),
    };
    moved(&text).remove(0).1
}

/// The requests of a log, counted: by file, action, and for reads and writes by place and bytes.
fn logged(bench: &Bench, log: &str) -> BTreeMap<String, u32> {
    let text = std::fs::read_to_string(bench.path(log)).unwrap();
    let mut requests = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [_, file, what @ ("sync" | "datasync"), _, "0"] => {
                *requests.entry(format!("{file} {what}")).or_default() += 1;
            }
            [at, file, what, offset, bytes] => {
                let at: u64 = at.parse().unwrap();
                assert!(at < 60_000_000, "microseconds: {line}");
                let request = format!("{file} {what} {offset} {bytes}");
                *requests.entry(request).or_default() += 1;
            }
            _ => {}
        }
    }
    requests
}

#[test]
fn requests_are_logged_as_fio_logs_them_and_each_replays_the_others_log() {
    if !fio_is_installed() {
        return;
    }
    for (job, clones) in LOGGED {
        let (of_ours, of_theirs) = (Bench::new(), Bench::new());
        for bench in [&of_ours, &of_theirs] {
            std::fs::create_dir(bench.path("d")).unwrap();
        }
        let line = format!("--name=a {job} --write_iolog=log --output-format=json");
        let ours = of_ours.line(&format!("fio {line} --quiet"));
        assert!(ours.status.success(), "{job}: {}", stderr(&ours));
        fio_beside(&of_theirs, &line);
        let heads = |bench: &Bench| {
            let text = std::fs::read_to_string(bench.path("log")).unwrap();
            text.lines().filter(|line| *line == "fio version 3 iolog").count()
        };
        assert_eq!((heads(&of_ours), heads(&of_theirs)), (clones, clones), "{job}");
        // Which direction comes how often is drawn; where there is one, all is the same.
        if !job.contains("randrw") {
            assert_eq!(logged(&of_ours, "log"), logged(&of_theirs, "log"), "{job}");
        }
        for bench in [&of_ours, &of_theirs] {
            let [own, others] = [true, false].map(|is_ours| replayed(bench, "log", is_ours));
            assert_eq!(own, others, "{job}");
            assert!(own.iter().any(|count| count.as_u64() > Some(0)), "{job}");
        }
    }
}

#[test]
fn a_log_is_appended_to_logs_alone() {
    let bench = Bench::new();
    let run = |log: &str| {
        let line = "fio --name=a --filename=f --size=8k --rw=read --ioengine=psync --quiet";
        bench.line(&format!("{line} --write_iolog={log}"))
    };
    assert!(run("log").status.success() && run("log").status.success());
    let text = std::fs::read_to_string(bench.path("log")).unwrap();
    let reads = text.lines().filter(|line| line.contains(" f read ")).count();
    assert_eq!(reads, 4, "both runs: {text}");
    assert!(text.starts_with("fio version 3 iolog\n0 f add\n0 f open\n"), "{text}");
    assert!(text.ends_with(" f close\n"), "{text}");
    std::fs::write(bench.path("precious"), "mine").unwrap();
    for (log, expected) in [
        ("precious", "write_iolog=precious: the file exists and is not a request log"),
        ("/dev/null", "write_iolog=/dev/null: the file exists and is not"),
        ("f", "write_iolog=f: a job uses this file itself"),
        ("none/log", "write_iolog=none/log: its directory does not exist"),
    ] {
        let output = run(log);
        assert_eq!(output.status.code(), Some(2), "{log}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(bench.path("precious")).unwrap(), "mine");
}

/// Requests, bytes and calls of both directions, and the size and mode of each file afterwards.
fn calls(bench: &Bench, text: &str) -> (Vec<Value>, Vec<(String, u64, u32)>) {
    let run: Value = serde_json::from_str(&text[text.find("{\n").unwrap()..]).unwrap();
    let of = |direction: &str| {
        let one = &run["jobs"][0][direction];
        let samples = &one["bw_samples"];
        let counts = [&one["total_ios"], &one["io_bytes"], &one["clat_ns"]["N"]];
        let none = [&one["slat_ns"]["N"], &one["lat_ns"]["N"], &one["lat_ns"]["max"], samples];
        counts.into_iter().chain(none).cloned().collect::<Vec<_>>()
    };
    let names = bench.data_files().into_iter().filter(|name| name.starts_with("a."));
    let file = |name: String| {
        let meta = std::fs::metadata(bench.path(&name)).unwrap();
        (name, meta.len(), meta.mode() & 0o777)
    };
    (["read", "write"].into_iter().flat_map(of).collect(), names.map(file).collect())
}

#[test]
fn files_are_made_looked_at_and_deleted_as_fio_does() {
    if !fio_is_installed() {
        return;
    }
    for job in [
        "--ioengine=filecreate --filesize=4k --nrfiles=10",
        "--ioengine=filecreate --filesize=64k --nrfiles=5 --rw=write",
        "--ioengine=filecreate --size=40k --nrfiles=10 --loops=3",
        "--ioengine=filecreate --filesize=4k --nrfiles=5 --unlink=1 --rw=randread",
        "--ioengine=filestat --filesize=64k --nrfiles=5 --stat_type=stat",
        "--ioengine=filestat --filesize=4k --nrfiles=10 --rw=randwrite --loops=2",
        "--ioengine=filedelete --filesize=4k --nrfiles=10",
        "--ioengine=filedelete --filesize=64k --nrfiles=5 --rw=write --iodepth=1",
    ] {
        let line = format!("--name=a {job} --output-format=json");
        let (of_ours, of_theirs) = (Bench::new(), Bench::new());
        let mut found = Vec::new();
        // Twice: what one run left, the next recreates or deletes.
        for _ in 0..2 {
            let ours = of_ours.line(&format!("fio {line} --quiet"));
            assert!(ours.status.success(), "{job}: {}", stderr(&ours));
            found.push(calls(&of_ours, &stdout(&ours)));
        }
        let theirs = calls(&of_theirs, &fio_beside(&of_theirs, &line));
        let without_mode = |(counts, files): &(Vec<Value>, Vec<(String, u64, u32)>)| {
            let files = files.iter().map(|(name, bytes, _)| (name.clone(), *bytes));
            (counts.clone(), files.collect::<Vec<_>>())
        };
        for found in &found {
            assert_eq!(without_mode(found), without_mode(&theirs), "{job}");
            if job.contains("filecreate") {
                assert_eq!(found.1, theirs.1, "{job}");
            }
        }
    }
}

#[test]
fn names_are_made_and_deleted_only_where_files_may_be_written() {
    let bench = Bench::new();
    std::fs::write(bench.path("a.0.1"), "mine").unwrap();
    let run = |engine: &str, more: &str| {
        let line = "fio --name=a --filesize=4k --nrfiles=3 --quiet --ioengine=";
        bench.line(&format!("{line}{engine} {more}"))
    };
    for engine in ["filecreate", "filedelete"] {
        let output = run(engine, "");
        assert_eq!(output.status.code(), Some(2), "{engine}: {}", stderr(&output));
        assert!(stderr(&output).contains("a.0.1"), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(bench.path("a.0.1")).unwrap(), "mine");
    }
    let refused = run("filedelete", "--readonly");
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let mixed = run("filestat", "--rw=randrw");
    assert!(stderr(&mixed).contains("rw=randrw: files are neither"), "{}", stderr(&mixed));
    let allowed = run("filecreate", "--overwrite-contents");
    assert!(allowed.status.success(), "{}", stderr(&allowed));
    assert_eq!(std::fs::read_to_string(bench.path("a.0.1")).unwrap(), "mine", "as fio leaves it");
    // A name that is not there a second time.
    let again = run("filedelete", "--loops=2 --overwrite-contents --nrfiles=1");
    assert_eq!(again.status.code(), Some(3), "{}", stderr(&again));
}

#[test]
fn a_job_ends_when_its_rate_is_steady() {
    let bench = Bench::new();
    let line = "fio --name=a --ioengine=null --size=1g --rw=randread --time_based --runtime=60 \
                --rate_iops=1000 --ss=iops:50% --ss_dur=2 --thread --json --quiet";
    let run = document(&bench.line(line), "fio");
    let duration = run["waves"][0]["duration_s"].as_f64().unwrap();
    assert!((2.0..30.0).contains(&duration), "{duration}");
}

/// Requests of each direction, and how long it made them, in milliseconds.
fn directions(text: &str) -> [(f64, f64); 2] {
    let run: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    ["read", "write"].map(|direction| {
        let of = |key: &str| run["jobs"][0][direction][key].as_f64().unwrap();
        (of("total_ios"), of("runtime"))
    })
}

pub fn fio_output(bench: &Bench, line: &str) -> Output {
    let words = line.split(' ').filter(|word| !word.is_empty());
    Command::new("fio").args(words).current_dir(bench.path("")).output().unwrap()
}

fn fio_beside(bench: &Bench, line: &str) -> String {
    stdout(&fio_output(bench, line))
}

#[test]
fn a_direction_of_a_mix_has_a_rate_of_its_own() {
    for (rate, reads, writes) in [
        ("--rate=1m,", Some(512.0), None),
        ("--rate=,400k", None, Some(200.0)),
        ("--rate_iops=200, --rwmixread=10", Some(400.0), None),
        ("--rate_iops=200,100 --rwmixread=90", Some(400.0), Some(200.0)),
        ("--rate_iops=150", Some(300.0), Some(300.0)),
    ] {
        let line = format!(
            "--output-format=json --name=a --size=1m --rw=randrw --ioengine=null --time_based \
             --runtime=2 {rate}"
        );
        let bench = Bench::new();
        let ours = || {
            let ours = bench.line(&format!("fio {line} --quiet"));
            assert!(ours.status.success(), "{rate}: {}", stderr(&ours));
            stdout(&ours)
        };
        reaches("ours", rate, [reads, writes], ours);
        if fio_is_installed() {
            reaches("fio", rate, [reads, writes], || fio_beside(&bench, &line));
        }
    }
}

/// Runs until both directions have done what was asked for, which takes a processor: three times at
/// most. One is never above its rate, and one without a rate is far above.
fn reaches(side: &str, rate: &str, asked: [Option<f64>; 2], run: impl Fn() -> String) {
    let is_reached = || {
        let done = directions(&run()).map(|(ios, _)| ios);
        done.into_iter().zip(asked).all(|(ios, asked)| {
            let share = ios / asked.unwrap_or(10_000.0);
            assert_eq!(share > 1.03, asked.is_none(), "{side} {rate}: {ios}");
            share > 0.9
        })
    };
    assert!((0..3).any(|_| is_reached()), "{side} {rate}: below in each of three runs");
}

#[test]
fn a_job_below_its_least_rate_ends_with_an_error_and_the_others_go_on() {
    let line = "--output-format=json --size=1m --ioengine=null --time_based --runtime=4 \
                --rate_iops=200 --ratecycle=500 --name=reads --rw=read --rate_min=1g \
                --name=writes --rw=randrw --rate_min=1k,1g --name=kept --rw=read \
                --rate_iops_min=50 --name=only_reads --rw=read --rate_min=,1g --name=later \
                --stonewall --rw=read --runtime=1";
    let bench = Bench::new();
    let ours = bench.line(&format!("fio {line} --quiet"));
    assert_eq!(ours.status.code(), Some(1), "{}", stderr(&ours));
    let mut sides = vec![("ours", ours)];
    if fio_is_installed() {
        sides.push(("fio", fio_output(&bench, line)));
    }
    for (side, output) in sides {
        assert!(!output.status.success(), "{side}");
        let said = stderr(&output);
        for job in ["reads", "writes"] {
            let missed = format!("{job}: rate_min=1073741824B/s not met, got ");
            assert!(said.contains(&missed), "{side}: {said}");
        }
        let text = stdout(&output);
        let run: Value = serde_json::from_str(&text[text.find("{\n").unwrap()..]).unwrap();
        let jobs = run["jobs"].as_array().unwrap();
        let errors: Vec<i64> = jobs.iter().map(|job| job["error"].as_i64().unwrap()).collect();
        assert_eq!(errors, [5, 5, 0, 0, 0], "{side}: {said}");
        let reads = |at: usize| jobs[at]["read"]["total_ios"].as_u64().unwrap();
        assert!(reads(0) > 300 && reads(0) < reads(2), "{side}: {} {}", reads(0), reads(2));
        assert!(reads(4) > 100, "{side}: later waves run");
    }
}

#[test]
fn jobs_end_with_one_that_misses_its_rate_where_that_is_asked_for() {
    let line = "--output-format=json --size=1m --ioengine=null --time_based --runtime=20 \
                --rate_iops=200 --ratecycle=100 --rw=read --name=a --rate_iops_min=100 \
                --exitall_on_error --thinktime=100ms --name=b";
    let bench = Bench::new();
    let ours = bench.line(&format!("fio {line} --quiet"));
    let mut sides = vec![("ours", ours)];
    if fio_is_installed() {
        sides.push(("fio", fio_output(&bench, line)));
    }
    for (side, output) in sides {
        let (said, text) = (stderr(&output), stdout(&output));
        assert_eq!(output.status.code(), Some(1), "{side}: {said}");
        assert!(said.contains("a: rate_iops_min=100 not met, got "), "{side}: {said}");
        let run: Value = serde_json::from_str(&text[text.find("{\n").unwrap()..]).unwrap();
        let errors = [0, 1].map(|at| run["jobs"][at]["error"].as_i64());
        assert_eq!(errors, [Some(5), Some(0)], "{side}");
        assert!(run["jobs"][1]["read"]["total_ios"].as_u64() < Some(3000), "{side}: {run}");
    }
}

#[test]
fn rates_that_contradict_each_other_are_refused_as_fio_does() {
    for (rates, expected) in [
        ("--rate=1m --rate_min=2m", "--rate_min=2m: it is never reached under rate=1m"),
        ("--rate=1m,2m --ratemin=1500k", "--ratemin=1500k: it is never reached under rate=1m,2m"),
        ("--rate_iops=10 --rate_iops_min=,11", "--rate_iops_min=,11: it is never reached under"),
        ("--rate_min=1 --rate_iops_min=1", "rate_min and rate_iops_min are both given"),
        ("--rate=1m --rate_iops=1", "rate and rate_iops are both given"),
    ] {
        let line = format!("--name=a --size=1m --ioengine=null {rates}");
        let bench = Bench::new();
        let ours = bench.line(&format!("fio {line}"));
        assert_eq!(ours.status.code(), Some(2), "{rates}");
        assert!(stderr(&ours).contains(expected), "{}", stderr(&ours));
        if fio_is_installed() {
            assert!(!fio_output(&bench, &line).status.success(), "fio runs {rates}");
        }
    }
}

#[test]
fn what_is_read_back_has_a_time_of_its_own() {
    let bench = Bench::new();
    // Writes are paced, and reading back is not.
    let line = "--output-format=json --name=a --filename=f --size=400k --bs=4k --rw=write \
                --ioengine=psync --verify=crc32c --rate_iops=200,100";
    let ours = bench.line(&format!("fio {line} --quiet"));
    assert!(ours.status.success(), "{}", stderr(&ours));
    let text = stdout(&ours);
    let [(reads, read_ms), (writes, write_ms)] = directions(&text);
    assert_eq!((reads, writes), (100.0, 100.0));
    assert!(write_ms > 3.0 * read_ms, "{read_ms} {write_ms}");
    let run: Value = serde_json::from_str(&text).unwrap();
    let (fios, own) =
        (&run["jobs"][0]["read"], &run["jobs"][0]["iostrata"]["workloads"][0]["read"]);
    let [fios, own] = [fios, own].map(|read| read["iops"].as_f64().unwrap());
    assert!((own / fios - 1.0).abs() < 0.01, "both forms have one rate: {own} {fios}");
    // Both parts are long enough to be distinguished, and together they are the whole.
    let both = "--output-format=json --name=b --filename=b --size=8m --bs=4k --rw=write --direct=1 \
                --ioengine=psync --verify=crc32c --quiet";
    let text = stdout(&bench.line(&format!("fio {both}")));
    let [(_, read_ms), (_, write_ms)] = directions(&text);
    let run: Value = serde_json::from_str(&text).unwrap();
    let whole_ms = run["jobs"][0]["job_runtime"].as_f64().unwrap();
    assert!(read_ms.min(write_ms) > 10.0, "{read_ms} {write_ms}");
    assert!((read_ms + write_ms - whole_ms).abs() <= 3.0, "{read_ms} {write_ms} {whole_ms}");
    let mixed = "--output-format=json --name=m --filename=m --size=400k --bs=4k --rw=randrw \
                 --ioengine=psync --verify=crc32c --rate_iops=100,100 --quiet";
    let [(reads, read_ms), (writes, write_ms)] =
        directions(&stdout(&bench.line(&format!("fio {mixed}"))));
    assert!(reads >= 100.0 && writes > 20.0 && read_ms >= write_ms, "{reads} {writes}");
}

#[test]
fn fio_takes_the_same_lines_and_moves_as_much() {
    if !fio_is_installed() {
        return;
    }
    for line in [
        "--name=a --size=1m --ioengine=null --name=b --size=64k --ioengine=null --stonewall",
        "--ioengine=null --size=1m --name=a --name=b --bs=8k",
        "--name=global --size=1m --ioengine=null --name=a --name=b --size=64k",
        "--ioengine=null --size=1m --bs 4k --bs=8k -name a -thread -group_reporting",
        "j.fio --ioengine=null --size=1m",
        "--ioengine=null --size=2m --name=k --size=1m j.fio",
        "--ioengine=null --size=1m --section=y --name=q j.fio",
        "--ioengine=null --size=1m --name=a --bssplit=20k-28k/100",
        "--ioengine=null --size=1m --name=a --bs=4k --ba=16k --rw=randread",
        "--ioengine=null --size=1m --name=a --rw=randread --percentage_random=50",
        "--ioengine=null --size=1m --name=a --rw=randwrite --percentage_random=100,0",
        "--ioengine=null --size=1m --name=a --rw=write --bssplit=,8k/100",
        "--ioengine=psync --filename=data --name=a --offset=10%",
        "--ioengine=psync --filename=data --name=a --offset=10% --offset_align=64k",
        "--ioengine=psync --filename=data --name=a --size=50% --offset=60%",
        "--ioengine=psync --filename=data --name=a --size=0 --offset=500k",
        "--ioengine=psync --filename=data --name=a --size=10% --offset_increment=40% --numjobs=3",
        "--ioengine=psync --filename=data --name=a --size=100%% --bs=64k",
        "--ioengine=posixaio --filename=data --name=a --size=100%",
        "--ioengine=posixaio --iodepth=4 --filename=data --name=a --size=100%",
        "--ioengine=null --size=1m --name=a --rw=randread --random_distribution=zoned:60/10:40/90",
        "--ioengine=mmap --filename=w --size=256k --name=a --rw=randwrite --fsync=8",
        "--ioengine=psync --filename=w --size=256k --name=a --rw=write --verify=md5 --loops=1",
        "--ioengine=null --size=1m --name=a --loops=2 --pre_read=0 --rw=randread --norandommap",
    ] {
        let bench = Bench::new();
        std::fs::write(bench.path("j.fio"), "[x]\n[y]\nbs=8k\n").unwrap();
        std::fs::write(bench.path("data"), vec![7; 1_000_000]).unwrap();
        let ours = bench.line(&format!("fio {line} --output-format=json --quiet"));
        assert!(ours.status.success(), "{line}: {}", stderr(&ours));
        let theirs = Command::new("fio")
            .args(line.split(' ').filter(|word| !word.is_empty()))
            .arg("--output-format=json")
            .current_dir(bench.path(""))
            .output()
            .unwrap();
        assert_eq!(moved(&stdout(&ours)), moved(&stdout(&theirs)), "{line}");
    }
}

#[test]
fn a_job_file_is_shown_as_fio_shows_it() {
    if !fio_is_installed() {
        return;
    }
    let bench = Bench::new();
    let text = "[global]\nbs=8k\ntime_based\nruntime=1\n[x]\nrw=randread\ndescription=a b\n\
                filename=a:b\n[y]\nstonewall\nsize=2m\n";
    std::fs::write(bench.path("j.fio"), text).unwrap();
    let ours = bench.line("fio --showcmd j.fio");
    let theirs =
        Command::new("fio").args(["--showcmd", "j.fio"]).current_dir(bench.path("")).output();
    assert_eq!(stdout(&ours).trim(), stdout(&theirs.unwrap()).trim());
}
