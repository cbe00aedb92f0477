//! SIGKILL at random moments of a measurement: `restore` and the next measurement remove the files
//! that it left, and no others.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::harness::{Bench, is_soak, stderr, stdout};

const JOBS: &str = "[reads]\nrw=randread\nsize=24m\nnumjobs=2\nruntime=9\ntime_based\nunlink=1\n";
const LINES: [&str; 5] = [
    "probe data --size 64M --max-time 30s --quiet --out RUN",
    "io --path data/F --size 48M --rw randwrite --fsync 8 --runtime 9s --out RUN",
    "io --path data --size 48M --nrfiles 3 --runtime 9s --out RUN",
    "io --path data/F --size 48M --process --numjobs 2 --runtime 9s --out RUN",
    "fio j.fio --quiet --out RUN",
];
/// Moments of the kill lie within this time after the start, or after the first file.
const LATEST_MS: u64 = 600;

fn bench() -> Bench {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("data")).unwrap();
    std::fs::write(bench.path("j.fio"), format!("[global]\ndirectory=data\n{JOBS}")).unwrap();
    bench
}

fn data(bench: &Bench) -> Vec<String> {
    let entries = std::fs::read_dir(bench.path("data")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(mut child: Child) {
    let ended = child.try_wait().unwrap();
    assert!(ended.is_none(), "it ended by itself: {ended:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A measurement of the file F, killed while it ran.
fn killed(bench: &Bench, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let child = start(bench.command(&words));
    crate::signals::wait_for_window(bench);
    kill(child);
}

#[test]
fn a_killed_measurement_leaves_no_files_that_restore_does_not_remove() {
    let (kills, lines) = (if is_soak() { 60 } else { 3 }, LINES.len() as u64);
    let mut with_files = 0;
    for kill_number in 0..kills * lines {
        // Spread over the whole span; the lines take turns. Every other kill waits for a file.
        let at_ms = 4 + (kill_number * 61 + 13) % (kills * lines) * LATEST_MS / (kills * lines);
        let line = LINES[(kill_number % lines) as usize];
        let bench = bench();
        let child = start(bench.command(&line.split_whitespace().collect::<Vec<_>>()));
        while kill_number % 2 == 0 && data(&bench).is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(at_ms));
        kill(child);
        let left = data(&bench);
        let visible = left.iter().filter(|name| !name.starts_with('.'));
        let output = bench.line("restore");
        assert_eq!(output.status.code(), Some(0), "{} {}", stdout(&output), stderr(&output));
        for name in visible.clone() {
            let said = stdout(&output);
            assert!(said.contains("removed: measuring file") && said.contains(name), "{said}");
        }
        assert_eq!(data(&bench), [""; 0], "{line}, killed after {at_ms} ms, left {left:?}");
        with_files += u64::from(visible.count() > 0);
    }
    assert!(with_files * 3 >= kills * lines, "{with_files} kills met files");
}

#[test]
fn the_next_measurement_names_and_removes_what_a_killed_one_left() {
    let bench = bench();
    killed(&bench, "io --path data/F --size 16M --runtime 20s");
    assert_eq!(data(&bench), ["F"]);
    let noted = stderr(&bench.line("study list"));
    for word in ["data/F (16 MiB)", "killed (process", "iostrata restore"] {
        assert!(noted.contains(word), "`{word}` is missing in: {noted}");
    }
    let output = bench.line("probe data --size 64M --max-time 5s --json --out RUN");
    let said = stderr(&output);
    assert!(said.contains("Removed the measuring file") && said.contains("data/F"), "{said}");
    assert_eq!(data(&bench), [""; 0]);
    assert!(stdout(&bench.line("restore")).starts_with("Nothing is left"));
}

#[test]
fn files_in_use_and_files_that_were_kept_are_left() {
    let bench = bench();
    let line = "io --path data/F --size 16M --keep --runtime 20s";
    killed(&bench, line);
    assert_eq!(data(&bench), ["F"], "it was complete and to be kept");
    let words: Vec<&str> = "io --path data/G --size 16M --runtime 3s".split(' ').collect();
    let mut running = start(bench.command(&words));
    while data(&bench).len() < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = bench.line("restore");
    assert!(stdout(&output).contains("in use by process"), "{}", stdout(&output));
    let output = bench.line("io --path data/H --size 1M --runtime 10ms");
    assert!(!stderr(&output).contains("emoved"), "{}", stderr(&output));
    let mut names = data(&bench);
    names.sort();
    assert_eq!(names, ["F", "G"]);
    assert_eq!(running.wait().unwrap().code(), Some(0), "its file was not taken away");
    let again = bench.line("io --path data/F --size 16M --runtime 10ms --keep --json");
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(data(&bench), ["F"]);
}

#[test]
fn what_took_the_place_of_a_left_file_stays() {
    let bench = bench();
    killed(&bench, "io --path data/F --size 16M --runtime 20s");
    std::fs::remove_file(bench.path("data/F")).unwrap();
    std::fs::write(bench.path("data/F"), "precious").unwrap();
    for line in ["io --path data/G --size 1M --runtime 10ms", "restore"] {
        let output = bench.line(line);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(std::fs::read(bench.path("data/F")).unwrap(), b"precious");
    }
}

#[test]
fn a_user_without_rights_is_served_the_same() {
    let bench = bench();
    if !bench.admits_nobody() {
        return;
    }
    bench.set_mode("data", 0o777);
    let line = "io --path ../data/F --size 16M --runtime 20s";
    let child = start(bench.as_nobody(line));
    while !has_window(&bench.path("home")) {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(child);
    assert_eq!(data(&bench), ["F"]);
    assert!(bench.path("home/.local/state/iostrata").is_dir());
    let output = bench.as_nobody("restore").output().unwrap();
    assert!(stdout(&output).contains("data/F (16 MiB)"), "{}", stdout(&output));
    assert_eq!(data(&bench), [""; 0]);
    // Without any place for its state it measures all the same, and prints what that means.
    std::fs::remove_dir_all(bench.path("home/.local")).unwrap();
    bench.set_mode("home", 0o555);
    let line = "io --path ../data/F --size 1M --runtime 10ms";
    let output = bench.as_nobody(line).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("IOSTRATA_STATE"), "{}", stderr(&output));
    assert_eq!(data(&bench), [""; 0]);
}

/// Whether a run directory was begun there, which is after the files were filled.
fn has_window(home: &Path) -> bool {
    std::fs::read_dir(home.join("iostrata-runs")).is_ok_and(|mut runs| runs.next().is_some())
}
