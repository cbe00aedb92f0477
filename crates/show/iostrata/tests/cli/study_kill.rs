//! SIGKILL at random moments of a study: after `restore` the system is as it was before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Bench, stderr, stdout, usual_or_soak, wait_until};

/// Volumes, mounts, schedulers, queue lengths, groups, write-back settings: all of it changes all
/// the time.
const STUDY: &str = r#"
name = "churn"
title = "Changes without end"
question = "Is everything put back?"
[base]
size = "16M"
direct = true
bs = "4k"
dirty_expire_centisecs = 700
[factors]
filesystem = ["raw", "ext4", "xfs"]
rw = ["randread", "randwrite"]
scheduler = ["none", "mq-deadline"]
nr_requests = [64, 100]
memory_limit = ["256M", "300M"]
[[part]]
name = "emulated"
[part.factors]
disk = ["nvme"]
filesystem = ["raw", "ext4"]
rw = ["randwrite"]
scheduler = ["none"]
nr_requests = [64]
memory_limit = ["256M"]
[measure]
replicates = 40
precision = "1%"
point_time = "50ms"
"#;

/// A kill comes so many microseconds later than that at most.
const LATER_US: u64 = 20_000;

/// Everything that the study may change, as text by name. Served disks of other tests may still be
/// ending: of their mounts only those below `own` count.
fn system(own: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut add = |name: String, value: String| all.insert(name, value);
    let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let own = own.display().to_string();
    for mount in text(Path::new("/proc/self/mounts")).lines() {
        if !mount.starts_with("iostrata-disk ") || mount.contains(&own) {
            add(format!("mount {mount}"), "exists".to_owned());
        }
    }
    for entry in std::fs::read_dir("/sys/block").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let backing = entry.path().join("loop/backing_file");
        add(format!("{name} backing"), text(&backing));
        for attribute in [
            "scheduler",
            "nr_requests",
            "read_ahead_kb",
            "nomerges",
            "rq_affinity",
            "wbt_lat_usec",
            "add_random",
            "iostats",
        ] {
            let value = text(&entry.path().join("queue").join(attribute));
            add(format!("{name} {attribute}"), value);
        }
    }
    for name in ["ratio", "background_ratio", "bytes", "background_bytes", "expire_centisecs"] {
        let path = PathBuf::from(format!("/proc/sys/vm/dirty_{name}"));
        add(path.display().to_string(), text(&path));
    }
    for place in ["/sys/fs/cgroup", "/sys/kernel/tracing/instances"] {
        for dir in own_directories(Path::new(place), 5) {
            add(dir.display().to_string(), "exists".to_owned());
        }
    }
    all
}

/// Directories that this program names after itself.
fn own_directories(dir: &Path, depth: u32) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let dirs = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
    let mut found = Vec::new();
    for path in dirs {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("iostrata-")) {
            found.push(path.clone());
        }
        if depth > 0 && !path.is_symlink() {
            found.extend(own_directories(&path, depth - 1));
        }
    }
    found
}

fn has_tools() -> bool {
    let found = |name: &str| {
        let dirs = ["/sbin", "/usr/sbin", "/bin", "/usr/bin"];
        dirs.iter().any(|dir| Path::new(dir).join(name).exists())
    };
    let is_root = rustix::process::geteuid().is_root();
    let ready = is_root
        && Path::new("/dev/loop-control").exists()
        && found("mkfs.ext4")
        && found("mkfs.xfs");
    if !ready {
        eprintln!("skipped: needs root, loop devices, e2fsprogs and xfsprogs");
    }
    ready
}

/// Servers of emulated disks that were started below a directory and still run.
fn servers(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let text = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    let dir = dir.display().to_string();
    text.filter(|line| line.contains("disk serve") && line.contains(&dir)).collect()
}

/// Changes that were made, put back or not, as the journal has them.
fn changes(bench: &Bench) -> usize {
    bench.journal().matches("\"done\"").count()
}

#[test]
fn a_killed_study_leaves_nothing_that_restore_does_not_put_back() {
    if !has_tools() {
        return;
    }
    // The volumes of the first points are made and changed within sixteen changes.
    let (kills, changes_max) = usual_or_soak((6, 16), (100, 48));
    let mut with_changes = 0;
    for kill in 0..kills {
        // Spread over all that is changed, the first before anything is.
        let made = kill * 61 % kills * changes_max / kills;
        let later_us = kill as u64 * 7_919 % LATER_US;
        let bench = Bench::new();
        std::fs::write(bench.path("churn.toml"), STUDY).unwrap();
        let before = system(&bench.path(""));
        let mut child = bench
            .command(&["study", "run", "churn.toml", "--out", "RUN", "--quiet"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("so much was changed", 1, || {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended by itself before {made} changes: {ended:?}");
            changes(&bench) >= made
        });
        std::thread::sleep(Duration::from_micros(later_us));
        child.kill().unwrap();
        child.wait().unwrap();
        with_changes += usize::from(changes(&bench) > 0);
        let output = bench.line("restore");
        assert_eq!(output.status.code(), Some(0), "{} {}", stdout(&output), stderr(&output));
        let after = system(&bench.path(""));
        let differs: Vec<_> = before
            .iter()
            .filter(|(name, value)| after.get(*name) != Some(value))
            .chain(after.iter().filter(|(name, _)| !before.contains_key(*name)))
            .collect();
        assert!(
            differs.is_empty(),
            "kill {kill} after {made} changes: {differs:#?}\n{}",
            stdout(&output)
        );
        assert_eq!(servers(&bench.path("")), [""; 0], "kill {kill} after {made} changes");
        let volumes = bench.path("RUN/volumes");
        let left: Vec<_> = std::fs::read_dir(volumes).into_iter().flatten().flatten().collect();
        assert!(left.is_empty(), "kill {kill} after {made} changes: {left:?}");
    }
    assert!(with_changes + 1 >= kills, "{with_changes} of {kills} kills met changes in place");
}

#[test]
fn a_killed_study_goes_on_where_it_was() {
    if !has_tools() {
        return;
    }
    let bench = Bench::new();
    let replicates = usual_or_soak("replicates = 2\nreplicates_max = 2", "replicates = 2");
    let study = STUDY
        .replace("replicates = 40", replicates)
        .replace("precision = \"1%\"", "precision = \"90%\"");
    // Each volume and scheduler once at least.
    let few = [
        ("nr_requests = [64, 100]", "nr_requests = [64]"),
        (r#"memory_limit = ["256M", "300M"]"#, r#"memory_limit = ["256M"]"#),
        (r#"rw = ["randread", "randwrite"]"#, r#"rw = ["randwrite"]"#),
    ];
    let few = few.iter().fold(study.clone(), |study, (all, one)| study.replace(all, one));
    let (study, points, kill_at) = usual_or_soak((few, 6, 3), (study, 48, 20));
    std::fs::write(bench.path("churn.toml"), study).unwrap();
    let mut child = bench
        .command(&["study", "run", "churn.toml", "--out", "RUN", "--quiet", "--no-trace"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let events = || std::fs::read_to_string(bench.path("RUN/events.jsonl")).unwrap_or_default();
    let replicates = |text: &str| text.matches("\"event\":\"replicate\"").count();
    while replicates(&events()) < kill_at && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let had = replicates(&events());
    let output = bench.line("study resume RUN --json");
    let document = crate::harness::document(&output, "study");
    assert_eq!(document["interrupted"], false);
    let emulated = if Path::new("/dev/fuse").exists() { 2 } else { 0 };
    let measured = document["points"].as_array().unwrap().len();
    assert_eq!(measured, points + emulated, "{:#}", document["unavailable"]);
    assert!(replicates(&events()) > had, "it went on");
    let mut once = BTreeSet::new();
    for event in events().lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let point = (event["point"].to_string(), event["replicate"].to_string());
        assert!(event["event"] != "replicate" || once.insert(point), "measured anew: {event}");
    }
    assert!(bench.path("RUN/report.html").exists());
    let again = bench.line("study resume RUN");
    assert_eq!(again.status.code(), Some(2), "a finished study has nothing to go on with");
}
