//! Options of jobs, each compared with the installed fio: the same job, the same counts.

use serde_json::Value;

use crate::fio::fio_is_installed;
use crate::fio_line::fio_output;
use crate::harness::{Bench, stderr, stdout};

/// What a line prints as fio's JSON here, and by fio where that is installed, each in a directory
/// that `prepare` made.
fn both_sides(line: &str, prepare: impl Fn(&Bench)) -> Vec<(&'static str, Bench, Value)> {
    let parsed = |text: &str| -> Value {
        let begin = text.find("{\n").unwrap_or_else(|| panic!("no document: {text}"));
        serde_json::from_str(&text[begin..]).unwrap()
    };
    let line = format!("{line} --output-format=json");
    let bench = Bench::new();
    prepare(&bench);
    let ours = bench.line(&format!("fio {line} --quiet"));
    assert!(ours.status.success(), "{line}: {}", stderr(&ours));
    let document = parsed(&stdout(&ours));
    let mut sides = vec![("ours", bench, document)];
    if fio_is_installed() {
        let bench = Bench::new();
        prepare(&bench);
        let theirs = fio_output(&bench, &line);
        assert!(theirs.status.success(), "{line}: {}", stderr(&theirs));
        let document = parsed(&stdout(&theirs));
        sides.push(("fio", bench, document));
    }
    sides
}

fn number(document: &Value, path: &str) -> u64 {
    let found = document.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {path}")) as u64
}

#[test]
fn ranges_are_flushed_as_often() {
    for engine in ["psync", "libaio", "io_uring", "mmap"] {
        let line = format!(
            "--name=a --filename=f --size=256k --bs=4k --rw=randwrite --ioengine={engine} \
             --sync_file_range=wait_before,write:8"
        );
        for (side, _, run) in both_sides(&line, |_| ()) {
            let flushes = number(&run, "/jobs/0/sync/lat_ns/N");
            assert!((7..=8).contains(&flushes), "{side} {engine}: {flushes}");
            assert_eq!(number(&run, "/jobs/0/write/total_ios"), 64, "{side} {engine}");
        }
    }
}

#[test]
fn what_is_appended_stands_behind_what_is_there() {
    let line = "--name=a --filename=f --size=64k --bs=16k --rw=write --file_append=1";
    let before = vec![7_u8; 128 << 10];
    let prepare = |bench: &Bench| {
        // Made by the program itself, so that it may be written.
        let made = bench.line("fio --name=a --filename=f --size=128k --rw=write --quiet");
        assert!(made.status.success(), "{}", stderr(&made));
        std::fs::write(bench.path("f"), &before).unwrap();
    };
    for (side, bench, run) in both_sides(line, prepare) {
        let found = std::fs::read(bench.path("f")).unwrap();
        assert_eq!(found.len(), 192 << 10, "{side}");
        assert!(found.starts_with(&before), "{side} writes over what was there");
        assert!(found[before.len()..].iter().any(|byte| *byte != 0), "{side}");
        assert_eq!(number(&run, "/jobs/0/write/io_bytes"), 64 << 10, "{side}");
    }
}

#[test]
fn files_below_a_directory_are_read() {
    let line = "--name=a --opendir=d --rw=read --bs=4k";
    let prepare = |bench: &Bench| {
        std::fs::create_dir_all(bench.path("d/e/f")).unwrap();
        for file in ["d/1", "d/e/2", "d/e/f/3"] {
            std::fs::write(bench.path(file), vec![1; 64 << 10]).unwrap();
        }
        std::os::unix::fs::symlink("1", bench.path("d/link")).unwrap();
    };
    for (side, _, run) in both_sides(line, prepare) {
        assert_eq!(number(&run, "/jobs/0/read/total_ios"), 48, "{side}");
    }
    let bench = Bench::new();
    let missing = bench.line("fio --name=a --opendir=nowhere --rw=read");
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("--opendir=nowhere: No such file"), "{}", stderr(&missing));
}

#[test]
fn each_loop_is_read_back_as_fio_does() {
    let line = "--name=a --filename=f --size=256k --bs=4k --rw=randwrite --verify=crc32c --loops=3";
    for (side, _, run) in both_sides(line, |_| ()) {
        for direction in ["read", "write"] {
            let ios = number(&run, &format!("/jobs/0/{direction}/total_ios"));
            assert_eq!(ios, 3 * 64, "{side} {direction}");
        }
    }
}

#[test]
fn a_job_that_is_steady_ends_alone_or_with_its_group() {
    let jobs = "--size=1g --ioengine=null --rw=randread --time_based --runtime=6 --rate_iops=1000 \
                --name=steady --ss=iops:90% --ss_dur=2 --name=other --new_group";
    for (side, _, run) in both_sides(jobs, |_| ()) {
        let ios = [0, 1].map(|at| number(&run, &format!("/jobs/{at}/read/total_ios")));
        assert!(ios[0] < 4500 && ios[1] > 5500, "{side}: {ios:?}");
    }
    let group = "--size=1g --ioengine=null --rw=randread --time_based --runtime=20 \
                 --rate_iops=1000 --group_reporting --ss=iops:90% --ss_dur=2 --numjobs=2 --name=a \
                 --name=b";
    for (side, _, run) in both_sides(group, |_| ()) {
        let ios = number(&run, "/jobs/0/read/total_ios");
        assert!(ios < 4 * 6000, "{side}: {ios} of four clones");
        let mean = number(&run, "/jobs/0/steadystate/data/iops_mean");
        assert!((3600..4400).contains(&mean), "{side}: {mean} of the group");
    }
}

#[test]
fn a_job_that_only_makes_its_files_is_reported_with_zeros() {
    let line = "--name=a --filename=f --size=1m --rw=read --create_only=1";
    for (side, bench, run) in both_sides(line, |_| ()) {
        assert_eq!(run["jobs"][0]["jobname"], "a", "{side}");
        assert_eq!(number(&run, "/jobs/0/read/total_ios"), 0, "{side}");
        assert_eq!(std::fs::metadata(bench.path("f")).unwrap().len(), 1 << 20, "{side}");
    }
}

#[test]
fn directions_are_reported_as_one_where_that_is_asked_for() {
    let line = "--name=a --filename=f --size=1m --rw=randrw --unified_rw_reporting=";
    for (asked, is_apart) in [("none", true), ("mixed", false), ("1", false), ("both", true)] {
        for (side, _, run) in both_sides(&format!("{line}{asked}"), |_| ()) {
            let job = &run["jobs"][0];
            assert_eq!(job.get("read").is_some(), is_apart, "{side} {asked}");
            assert_eq!(job.get("mixed").is_some(), asked != "none", "{side} {asked}");
            if asked != "none" {
                assert_eq!(number(&run, "/jobs/0/mixed/total_ios"), 256, "{side} {asked}");
                assert_eq!(number(&run, "/jobs/0/mixed/lat_ns/N"), 256, "{side} {asked}");
            }
        }
    }
    let bench = Bench::new();
    let text = stdout(&bench.line(&format!("fio {line}mixed --quiet")));
    assert!(text.contains("\n  mixed: IOPS=") && text.contains("\n  MIXED: bw="), "{text}");
    assert!(text.contains("total=256,0,0,0"), "{text}");
}

#[test]
fn reads_make_room_by_fallocate() {
    let line = "--name=a --filename=f --size=64k --ioengine=falloc --rw=read";
    for (side, _, run) in both_sides(line, |_| ()) {
        assert_eq!(number(&run, "/jobs/0/read/total_ios"), 16, "{side}");
    }
}

#[test]
fn options_and_engines_are_explained_in_fios_look() {
    let bench = Bench::new();
    let said = |line: &str| {
        let output = bench.line(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        stdout(&output)
    };
    let engines = said("fio --enghelp");
    assert!(engines.starts_with("Available IO engines:\n\t"), "{engines}");
    assert!(engines.contains("\n\tlibaio\n") && engines.contains("\n\tio_uring\n"));
    assert!(said("fio --enghelp=psync").starts_with("psync  "));
    let one = said("fio --cmdhelp=blocksize");
    assert!(one.starts_with("                  bs: ") && one.contains("alias: blocksize"), "{one}");
    for all in ["fio --cmdhelp", "fio --cmdhelp=all"] {
        assert!(said(all).lines().count() > 200, "{all}");
    }
    for line in ["fio --cmdhelp=blocksze", "fio --enghelp=nosuch"] {
        assert_eq!(bench.line(line).status.code(), Some(2), "{line}");
    }
    assert!(stderr(&bench.line("fio --cmdhelp=blocksze")).contains("did you mean blocksize?"));
    assert!(said("fio -v").starts_with("fio-3.33"));
}
