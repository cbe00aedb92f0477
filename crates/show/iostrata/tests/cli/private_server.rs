//! Private servers around a run: limited, on a prepared copy, as a user, and killed at any moment.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::harness::{
    Bench, completed, document, has_mariadb, is_soak, stderr, stdout, wait_until,
};

const RUN: &str = "oltp read_write run --server mariadbd --server-dir s --table-size 2000 \
                   --server-option innodb_buffer_pool_size=32M --threads 2";

/// Groups that this program names after itself.
fn groups(dir: &Path, depth: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let dirs = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    let mut found = Vec::new();
    for path in dirs.filter(|path| !path.is_symlink()) {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("iostrata-")) {
            found.push(path.clone());
        }
        if depth > 0 {
            found.extend(groups(&path, depth - 1));
        }
    }
    found
}

fn all_groups() -> Vec<PathBuf> {
    groups(Path::new("/sys/fs/cgroup"), 4)
}

/// Command lines that name a place.
fn naming(place: &Path) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = lines.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(&format!("{}/", place.display()))).collect()
}

#[test]
fn a_prepared_copy_is_made_once_and_every_run_begins_alike() {
    if !has_mariadb() {
        return;
    }
    let bench = Bench::new();
    let run = |more: &str| bench.line(&format!("{RUN} --time 1 --prepared kept --json {more}"));
    for _ in 0..2 {
        let found = document(&run(""), "tpcc");
        assert!(completed(&found) > 0.0);
        assert!(bench.path("kept/data/ibdata1").is_file());
        assert!(!bench.path("s").exists() && !bench.path("kept.new").exists());
    }
    let mark = std::fs::read_to_string(bench.path("kept/prepared.txt")).unwrap();
    assert!(mark.contains("MariaDB") && mark.contains("1 tables of 2000 rows"), "{mark}");
    let other = run("--tables 2");
    assert_eq!(other.status.code(), Some(2), "{}", stderr(&other));
    assert!(stderr(&other).contains("2 tables of 2000 rows"), "{}", stderr(&other));
    std::fs::write(bench.path("kept/prepared.txt"), "").unwrap();
    let unmarked = run("");
    assert_eq!(unmarked.status.code(), Some(2), "{}", stderr(&unmarked));
    assert!(stderr(&unmarked).contains("it holds ``"), "{}", stderr(&unmarked));
    std::fs::create_dir(bench.path("strange")).unwrap();
    let strange = bench.line(&format!("{RUN} --time 1 --prepared strange"));
    assert_eq!(strange.status.code(), Some(2));
    assert!(stderr(&strange).contains("no prepared copy"), "{}", stderr(&strange));
}

#[test]
fn limits_hold_for_the_server_and_go_with_it() {
    if !has_mariadb() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: limits need root");
        return;
    }
    let bench = Bench::new();
    let before = all_groups();
    let line = format!("{RUN} --time 4 --quiet --server-memory 1G --server-cpus 0.5");
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut child = bench.command(&words).stdout(Stdio::null()).spawn().unwrap();
    let mut seen = Vec::new();
    while child.try_wait().unwrap().is_none() {
        for group in all_groups().into_iter().filter(|group| !before.contains(group)) {
            let inside = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
            if inside.split_whitespace().next().is_some() {
                let read = |name: &str| std::fs::read_to_string(group.join(name)).ok();
                let limits = ["memory.max", "memory.limit_in_bytes", "cpu.cfs_quota_us", "cpu.max"];
                seen.extend(limits.into_iter().filter_map(read));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if !child.wait().unwrap().success() {
        let said = stderr(&bench.line(&line));
        assert!(said.contains("--server-memory") || said.contains("--server-cpus"), "{said}");
        eprintln!("skipped: {said}");
        return;
    }
    let held = |start: &str| seen.iter().any(|limit| limit.starts_with(start));
    assert!(held("1073741824") && held("50000"), "{seen:?}");
    assert_eq!(all_groups(), before);
    for (limit, why) in [("--server-io iops=5", "is no limit"), ("--server-cpus 0", "range")] {
        let refused = bench.line(&format!("{RUN} {limit}"));
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(why), "{}", stderr(&refused));
    }
}

#[test]
fn a_user_gets_a_server_and_is_told_what_limits_need() {
    let bench = Bench::new();
    if !has_mariadb() || !bench.admits_nobody() {
        return;
    }
    let run = |more: &str| bench.as_nobody(&format!("{RUN} --time 1 {more}")).output().unwrap();
    let plain = run("--json --prepared kept");
    assert!(completed(&document(&plain, "tpcc")) > 0.0);
    for limit in ["--server-memory 1G", "--server-cpus 1", "--server-io wiops=500"] {
        let refused = run(limit);
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(3), "{said}");
        let option = limit.split(' ').next().unwrap();
        assert!(said.contains(option), "{said}");
        let tells = ["run it as root", "control groups", "no block device"];
        assert!(tells.iter().any(|fix| said.contains(fix)), "{said}");
    }
    assert!(!bench.path("home/s").exists());
}

#[test]
fn what_a_killed_run_leaves_of_its_server_is_removed() {
    if !has_mariadb() {
        return;
    }
    let bench = Bench::new();
    let before = all_groups();
    let limits = match rustix::process::geteuid().is_root() {
        true => "--server-memory 1G --server-cpus 1",
        false => "",
    };
    let line = format!("{RUN} --time 60 --quiet --prepared kept {limits}");
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut hits = 0;
    // The data are being made; the copy's server runs; so does the server of the run, soon and
    // later.
    let (making, made, running) = ("server_directory", "database_server", "iostrata-runs");
    let moments = [(making, 150), (made, 100), (running, 300)];
    let more = [(making, 900), (made, 700), (running, 3_000)];
    for (seen, later_ms) in moments.into_iter().chain(more.into_iter().filter(|_| is_soak())) {
        let _of_the_one_before = std::fs::remove_dir_all(bench.path("iostrata-runs"));
        let mut child = bench.command(&words).stdout(Stdio::null()).spawn().unwrap();
        wait_until(seen, 10, || bench.path(seen).exists() || bench.journal().contains(seen));
        std::thread::sleep(Duration::from_millis(later_ms));
        let when = format!("{seen}, and {later_ms} ms later");
        assert!(child.try_wait().unwrap().is_none(), "{when}: it has ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let left = bench.path("s").exists() || bench.path("kept.new").exists();
        hits += u32::from(left);
        let restored = bench.line("restore");
        assert!(restored.status.success(), "{when}: {}", stderr(&restored));
        assert!(!bench.path("s").exists() && !bench.path("kept.new").exists(), "{when}");
        assert_eq!(all_groups(), before, "{when}: {}", stdout(&restored));
        assert_eq!(naming(&bench.path("s")), [""; 0], "{when}");
        // Whole or not at all.
        if bench.path("kept").exists() {
            assert!(bench.path("kept/prepared.txt").is_file(), "{when}");
            assert!(bench.path("kept/data/ibdata1").is_file(), "{when}");
        }
    }
    assert!(hits >= 3, "{hits} kills hit a run with a server");
    let line = format!("{RUN} --time 1 --prepared kept --json");
    assert!(completed(&document(&bench.line(&line), "tpcc")) > 0.0);
}
