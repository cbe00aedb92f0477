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
        ("io --path F --bs 2G", ["`2G` is out of range", "512 to 1G"]),
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
    cases.iter().for_each(|(line, words)| names(&bench, line, 2, words));
    assert_eq!(bench.data_files(), Vec::<String>::new());
}

/// A line that must be refused with a message that has all these words.
fn names(bench: &Bench, line: &str, code: i32, words: &[&str]) {
    has_words(line, &refused(bench, line, code), words);
}

fn has_words(line: &str, message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "{line}: `{word}` is missing in: {message}");
    }
}

#[test]
fn values_that_cannot_be() {
    let bench = Bench::new();
    for (line, words) in [
        ("io --path F --size -4k", ["--size", "`-4k` is negative"]),
        ("io --path F --runtime -5", ["--runtime", "`-5` is negative"]),
        ("io --path F --max-time 0", ["--max-time", "`0` leaves no time"]),
        ("io --path F --iodepth -1", ["--iodepth", "`-1` is negative"]),
        ("io --path F --numjobs 1.5", ["--numjobs", "`1.5` is not a whole number"]),
        ("io --path F --nrfiles 5000000000", ["--nrfiles", "`5000000000` is too large"]),
        ("io --path F --rwmixread 101", ["--rwmixread", "0 to 100"]),
        ("io --path F --rate-iops many", ["--rate-iops", "`many` is not a number"]),
        ("io --path F --direct 1", ["'1' found", "tip: write --direct=1"]),
        ("probe --size -5", ["--size", "negative"]),
        ("probe --size 1k", ["--size 1K", "at least 16M"]),
        ("probe --max-write 1k", ["--max-write 1K", "at least 144 MiB"]),
        ("probe --point-time 0", ["--point-time", "leaves no time"]),
        ("study show limits --budget -1", ["--budget", "negative"]),
        ("study show limits --budget 0", ["--budget", "leaves no time"]),
        ("study show limits --replicates 0", ["--replicates", "1 to 1000"]),
        ("study show limits --part nope", ["--part `nope`", "main"]),
        ("study show limit", ["study limit", "limits"]),
        ("study list --budget 1", ["--budget", "Usage"]),
        ("disk start --model nvme --size -1", ["--size", "negative"]),
        ("disk start --model nvme --size 900T", ["900 TiB", "at most 16 TiB"]),
        ("disk start --model nope --size 1G", ["`nope` is not a disk model", "hdd-15k"]),
        ("disk fault /dev/loop99 --slow -1", ["--slow", "`-1`"]),
        ("disk fault /dev/loop99 --eio-rate -1", ["--eio-rate", "-1"]),
        ("disk fault nope --slow 1", ["nope is no emulated disk", "disk start"]),
        ("engine crash-test DIR --seconds 0", ["--seconds", "leaves no time"]),
        ("engine crash-test DIR --seed -1", ["--seed", "negative"]),
        ("engine crash-test DIR --engine page_size=3", ["--engine: page_size", "4K to 64K"]),
        ("simulate queue --span -1", ["--span", "negative"]),
        ("simulate queue --nr-requests -5", ["--nr-requests", "take 1 to 10000000"]),
        ("simulate nope", ["simulate nope", "`queue`"]),
        ("restore --size 1", ["--size", "Usage"]),
    ] {
        names(&bench, line, 2, &words);
    }
    assert_eq!(bench.data_files(), Vec::<String>::new());
}

#[test]
fn places_that_are_something_else() {
    let bench = Bench::new();
    std::fs::write(bench.path("file"), "").unwrap();
    std::fs::write(bench.path("j.fio"), "[global]\nsize=1m\n[a]\n[b]\n").unwrap();
    for (line, words) in [
        ("probe file", ["file: not a directory", "io --path"]),
        ("probe --out file", ["--out file", "not a directory"]),
        ("io --path F --ioengine null --runtime 1ms --out file", ["--out file", "new or empty"]),
        ("io --path file/F --size 1M", ["file/F", "Not a directory"]),
        ("fio .", [".: job file: it cannot be read", "directory"]),
        ("fio file", ["file: job file", "[job]"]),
        ("fio j.fio --section c", ["--section c", "there are a, b"]),
        ("study show .", ["study .: cannot be read", "not a file"]),
        ("study show file", ["file:1:1", "name"]),
        ("study run limits --dir file", ["--dir file", "not a directory"]),
        ("study run limits --device file", ["--device file", "lsblk"]),
        ("study resume .", ["study resume .", "no run.json"]),
        ("study diff a b --run file", ["file is not a run directory", "it is a file"]),
        ("report none", ["none is not a run directory", "nothing of that name"]),
        ("report .", [". is not a run directory", "no run.json"]),
        ("disk start --model nvme --size 1G --store file", ["--store file", "memory"]),
        ("disk start --model probe:file --size 1G", ["probe:file", "iostrata probe"]),
        ("engine check file", ["file contains no engine", "name the directory"]),
        ("engine crash-test file", ["file: it is no directory", "name one"]),
    ] {
        names(&bench, line, 2, &words);
    }
    assert_eq!(bench.data_files(), ["file", "j.fio"]);
}

#[test]
fn runs_that_cannot_be_read() {
    let bench = Bench::new();
    let made = bench.line("io --path F --ioengine null --size 1M --runtime 10ms --out RUN");
    assert!(made.status.success(), "{}", stderr(&made));
    let kept = std::fs::read_to_string(bench.path("RUN/run.json")).unwrap();
    let put = |text: &str| std::fs::write(bench.path("RUN/run.json"), text).unwrap();
    put(&kept[..kept.len() / 2]);
    names(&bench, "report RUN", 2, &["RUN/run.json", "damaged"]);
    let current = "\"major\": 1";
    assert!(kept.contains(current), "{kept}");
    put(&kept.replacen(current, "\"major\": 99", 1));
    names(&bench, "report RUN", 2, &["RUN is in format 99.", "or newer"]);
    put(&kept);
    let events = bench.path("RUN/events.jsonl");
    let lines = std::fs::read_to_string(&events).unwrap();
    std::fs::write(&events, format!("nonsense\n{lines}")).unwrap();
    names(&bench, "report RUN", 2, &["RUN/events.jsonl line 1 is damaged"]);
}

#[test]
fn what_a_user_without_rights_may_not_do() {
    let bench = Bench::new();
    for name in ["closed", "fixed"] {
        std::fs::create_dir(bench.path(name)).unwrap();
    }
    if !bench.admits_nobody() {
        return;
    }
    let made = bench.line("io --path F --ioengine null --size 1M --runtime 10ms --out RUN");
    assert!(made.status.success(), "{}", stderr(&made));
    bench.set_mode("closed", 0o700);
    bench.set_mode("fixed", 0o555);
    let image = bench.path("image");
    File::create(&image).unwrap().set_len(1 << 20).unwrap();
    let device = attach(&image).unwrap_or_default();
    let jobs = format!("[a]\nrw=read\nfilename={device}\n");
    std::fs::write(bench.path("j.fio"), jobs).unwrap();
    let reads = format!("io --path {device} --rw randread --runtime 10ms");
    let mut cases = vec![
        ("probe ../fixed", 3, ["fixed/iostrata-", "another place"]),
        ("probe ../closed", 3, ["closed", "Permission denied"]),
        ("io --path ../fixed/F --size 1M", 3, ["fixed/F: Permission denied", "another place"]),
        ("io --path ../closed/F --size 1M", 2, ["closed/F: Permission denied", "another place"]),
        ("report ../closed", 2, ["closed/run.json", "Permission denied"]),
        ("report ../RUN", 3, ["the report cannot be written", "--format"]),
        ("study run limits", 3, ["needs root", "sudo"]),
        ("disk start --model nvme --size 64M", 3, ["needs root", "sudo"]),
        ("engine check ../closed", 3, ["closed", "Permission denied"]),
        ("engine crash-test ../fixed/d", 3, ["fixed/d: Permission denied", "can be written"]),
    ];
    if device.is_empty() {
        eprintln!("skipped: no loop device can be attached");
    } else {
        cases.push(("fio ../j.fio", 2, ["/dev/loop", "Permission denied"]));
        cases.push((&reads, 3, ["/dev/loop", "Permission denied"]));
    }
    let outputs: Vec<_> =
        cases.iter().map(|(line, ..)| bench.as_nobody(line).output().unwrap()).collect();
    if !device.is_empty() {
        assert!(Command::new("losetup").args(["-d", &device]).status().unwrap().success());
    }
    for ((line, code, words), output) in cases.iter().zip(&outputs) {
        assert_eq!(output.status.code(), Some(*code), "{line}: {}", stderr(output));
        has_words(line, &stderr(output), words);
        assert!(!stderr(output).contains("does not exist"), "{line}: {}", stderr(output));
    }
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
