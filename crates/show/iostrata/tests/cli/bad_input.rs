//! What cannot be run: an error that names the option, the value and the fix, and nothing left.

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
        ("io --path F --runtime 0", ["--runtime", "1ms"]),
        ("io --path F --precision 0", ["--precision 0", "0.03"]),
        ("io --path F --random-distribution zipf:2", ["--random-distribution 2", "below 1"]),
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

#[test]
fn a_file_that_shrinks_under_the_run_is_named() {
    let bench = Bench::new();
    let mut child = bench
        .command(&["io", "--path", "F", "--size", "64M", "--runtime", "3s", "--json"])
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    crate::signals::wait_for_window(&bench);
    std::fs::File::options().write(true).open(bench.path("F")).unwrap().set_len(0).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(3));
    let mut message = String::new();
    std::io::Read::read_to_string(&mut child.stderr.unwrap(), &mut message).unwrap();
    assert!(message.contains("truncated") && message.contains('F'), "{message}");
    assert_eq!(bench.data_files(), Vec::<String>::new());
}
