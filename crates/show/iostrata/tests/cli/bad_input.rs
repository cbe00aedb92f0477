//! What cannot be run: an error that names the option, the value and the fix, and nothing left.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::harness::{Bench, stderr};

/// Runs a line that must be refused with a code, and returns the message.
fn refused(bench: &Bench, line: &str, code: i32) -> String {
    let output = bench.line(line);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{line}: {message}");
    assert!(!message.contains("panicked"), "{line}: {message}");
    assert!(output.stdout.is_empty(), "{line} printed a result");
    message
}

#[test]
fn combinations_that_cannot_be_run() {
    let bench = Bench::new();
    let cases = [
        ("io --path F --iodepth 8", ["--iodepth 8", "libaio"]),
        ("io --path F --direct --bs 1000", ["--bs 1000", "multiple of 512"]),
        ("io --path F --size 1k", ["--size 1K", "at least 4K"]),
        ("io --path F --rate-iops 0", ["--rate-iops 0", "above 0"]),
        ("io --path F --numjobs 0", ["--numjobs 0", "1 to"]),
        ("io --path F --fsync 4", ["--fsync 4", "writes"]),
        ("io --path F --fsync 4 --fdatasync 4 --rw write", ["--fsync", "--fdatasync"]),
        ("io --path F --frobnicate", ["--frobnicate", "Usage"]),
        ("io --path F --rw sideways", ["sideways", "randread"]),
        ("io --path F --bs 4q", ["4q", "K, M, G, T"]),
        ("io --path F --bs 32M", ["`32M` is out of range", "512 to 16M"]),
        ("io --path F --size -1G", ["`-1G` is negative", "--size"]),
        ("io --path F --runtime -5s", ["`-5s` is negative", "--runtime"]),
        ("probe --max-write -1", ["`-1` is negative", "--max-write"]),
        ("probe --max-write 100M", ["--max-write 100M", "at least 256M"]),
        ("io --path F --runtime 0", ["--runtime", "1ms"]),
        ("io --path F --precision 0", ["--precision 0", "0.03"]),
        ("io --path F --random-distribution zipf:9", ["--random-distribution 9", "up to 4"]),
        ("fio none.fio", ["none.fio: job file", "No such file"]),
        ("io --path F --hipri --ioengine sync", ["--hipri", "io_uring"]),
        ("io --path none/F --size 16M", ["none", "create it"]),
        ("io", ["--path", "Usage"]),
        ("probe none", ["none", "existing directory"]),
        ("probe --max-time 1s", ["--max-time", "5s"]),
        ("probe --precision 2", ["--precision 2", "0.03"]),
        ("report none", ["none", ""]),
        ("sprobe", ["sprobe", "probe"]),
    ];
    for (line, words) in cases {
        let message = refused(&bench, line, 2);
        for word in words {
            assert!(message.contains(word), "{line}: `{word}` is missing in: {message}");
        }
    }
    assert_eq!(bench.data_files(), Vec::<String>::new());
}

#[test]
fn a_file_of_somebody_else_is_only_read() {
    let bench = Bench::new();
    let precious = vec![7_u8; 1 << 20];
    std::fs::write(bench.path("F"), &precious).unwrap();
    let message = refused(&bench, "io --path F --rw randwrite --runtime 100ms", 2);
    assert!(message.contains("--overwrite-contents"), "{message}");
    let output = bench.line("io --path F --rw randread --runtime 100ms --json");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read(bench.path("F")).unwrap(), precious);
    let output =
        bench.line("io --path F --rw randwrite --runtime 100ms --overwrite-contents --json");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_ne!(std::fs::read(bench.path("F")).unwrap(), precious);
}

#[test]
fn more_than_there_is_room_for() {
    let bench = Bench::new();
    let message = refused(&bench, "io --path F --size 900T --runtime 100ms", 3);
    assert!(message.contains("free") && message.contains("--size"), "{message}");
    assert_eq!(bench.data_files(), Vec::<String>::new());
}

/// Starts a run on F, does something to the file, and returns the exit code and the message.
fn disturbed(bench: &Bench, disturb: impl FnOnce()) -> (Option<i32>, String) {
    let mut child = bench
        .command(&["io", "--path", "F", "--size", "64M", "--runtime", "2s", "--json"])
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    crate::signals::wait_for_window(bench);
    disturb();
    let status = child.wait().unwrap();
    let mut message = String::new();
    std::io::Read::read_to_string(&mut child.stderr.unwrap(), &mut message).unwrap();
    (status.code(), message)
}

#[test]
fn a_file_that_shrinks_or_goes_under_the_run_is_named() {
    let bench = Bench::new();
    let shrink = || {
        File::options().write(true).open(bench.path("F")).unwrap().set_len(0).unwrap();
    };
    let (code, message) = disturbed(&bench, shrink);
    assert_eq!(code, Some(3), "{message}");
    assert!(message.contains("truncated") && message.contains("F at offset"), "{message}");
    assert_eq!(bench.data_files(), Vec::<String>::new());
    let bench = Bench::new();
    let (code, message) = disturbed(&bench, || std::fs::remove_file(bench.path("F")).unwrap());
    assert_eq!(code, Some(3), "{message}");
    assert!(message.contains("was removed while"), "{message}");
}

#[test]
fn a_device_that_fails_is_named_with_the_offset() {
    let bench = Bench::new();
    let image = bench.path("image");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let Some(device) = attach(&image) else {
        eprintln!("skipped: no loop device can be attached (needs root)");
        return;
    };
    // What lies beyond the end of the backing file can no longer be read.
    File::options().write(true).open(&image).unwrap().set_len(1 << 20).unwrap();
    let line = format!("io --path {device} --rw randread --direct --runtime 500ms --json");
    let output = bench.line(&line);
    let detached = Command::new("losetup").args(["-d", &device]).status().unwrap();
    assert!(detached.success());
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("Input/output error") && message.contains("at offset"), "{message}");
    assert!(bench.path("iostrata-runs").exists(), "the partial run is kept");
}

fn attach(image: &Path) -> Option<String> {
    let output = Command::new("losetup").args(["-f", "--show"]).arg(image).output().ok()?;
    let device = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !device.is_empty()).then_some(device)
}

#[test]
fn a_full_file_system_is_named_and_left_as_it_was() {
    let bench = Bench::new();
    let mount = bench.path("small");
    std::fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
        .arg(&mount)
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        eprintln!("skipped: no tmpfs can be mounted (needs root)");
        return;
    }
    let filled = bench.line("io --path small/F --size 64M --runtime 100ms");
    let probed = bench.line("probe small --quiet");
    let left = std::fs::read_dir(&mount).unwrap().count();
    let unmounted = Command::new("umount").arg(&mount).status().unwrap();
    assert!(unmounted.success());
    assert_eq!((filled.status.code(), probed.status.code(), left), (Some(3), Some(3), 0));
    assert!(stderr(&filled).contains("free"), "{}", stderr(&filled));
    assert!(stderr(&probed).contains("too little room"), "{}", stderr(&probed));
}
