//! `tpcc` on a private MariaDB that has no room, from the beginning or before long.

use std::io::Write;

use serde_json::Value;

use crate::harness::{Bench, completed, number, stderr, stdout, usual_or_soak};
use crate::server::Private;

/// A small file system in memory, unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// None where this user may mount nothing, which it prints.
    fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(dir.path())
            .output();
        if !mount.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: needs root, to mount a small file system");
            return None;
        }
        Some(Self(dir))
    }

    /// Fills it up to so many bytes.
    fn leave(&self, bytes: u64) {
        let mut filler = std::fs::File::create(self.0.path().join("filler")).unwrap();
        let part = vec![1_u8; 1 << 20];
        while filler.write_all(&part).is_ok() {}
        filler.set_len(filler.metadata().unwrap().len() - bytes).unwrap();
    }
}

impl SmallDisk {
    /// Makes room again: a server that finds none may not end.
    fn make_room(&self) {
        std::fs::remove_file(self.0.path().join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted =
            std::process::Command::new("umount").arg("--lazy").arg(self.0.path()).status();
        let is_gone = unmounted.is_ok_and(|status| status.success());
        assert!(
            is_gone || std::thread::panicking(),
            "{} is still mounted",
            self.0.path().display()
        );
    }
}

#[test]
fn an_engine_that_does_not_fit_is_refused_and_leaves_nothing() {
    let Some(disk) = SmallDisk::mount("48m") else { return };
    let bench = Bench::new();
    let dir = disk.0.path().join("db");
    let target = format!("--target engine:{}", dir.display());
    let output = bench.line(&format!("oltp read_write prepare {target} --table-size 1000"));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("128 MiB of redo") && said.contains("are free there"), "{said}");
    assert!(!dir.exists(), "nothing is made");
    // Where the estimate fits but the files do not, it fails half-way, and removes what it has
    // made.
    let small = "--engine redo_log_capacity=16M --engine autoextend_increment=64K";
    let filler = "--engine data_files=4";
    disk.leave(8 << 20);
    let output = bench.line(&format!("oltp read_write prepare {target} {small} {filler}"));
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(!dir.exists(), "nothing is left");
    disk.make_room();
    let small = format!("{small} --table-size 1000");
    let output = bench.line(&format!("oltp read_write prepare {target} {small}"));
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("16 MiB of redo (redo_log_capacity)"), "{}", stderr(&output));
}

#[test]
fn a_server_without_room_is_told_with_its_fix() {
    let Some(disk) = SmallDisk::mount("400m") else { return };
    let options = ["--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M"];
    let dir = tempfile::tempdir_in(disk.0.path()).unwrap();
    let Some(private) = Private::start_in(dir, &options) else { return };
    disk.leave(24 << 20);
    let bench = Bench::new();
    let target = private.target("root", "tpcc");
    let output = bench.line(&format!("tpcc prepare --target {target} --warehouses 2 --quiet"));
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for word in ["mysql://", "make room where the server keeps its data"] {
        assert!(said.contains(word), "{word} is missing in {said}");
    }
    disk.make_room();
    drop(private.end());
}

#[test]
fn a_disk_that_fills_up_during_a_run_shows_in_its_errors() {
    let Some(disk) = SmallDisk::mount("500m") else { return };
    let options = ["--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M"];
    let dir = tempfile::tempdir_in(disk.0.path()).unwrap();
    let Some(private) = Private::start_in(dir, &options) else { return };
    let bench = Bench::new();
    let target = private.target("root", "tpcc");
    let prepared = bench.line(&format!("tpcc prepare --target {target} --warehouses 1 --quiet"));
    assert!(prepared.status.success(), "{}", stderr(&prepared));
    disk.leave(1 << 20);
    let time = usual_or_soak(5, 12);
    let line = format!("tpcc run --target {target} --threads 4 --time {time} --warmup-time 0");
    let output = bench.line(&format!("{line} --json"));
    let said = stderr(&output);
    let run: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert!(number(&run, "/errors/1114") > 0.0, "{}: {said}", run["errors"]);
    assert!(completed(&run) > 0.0, "{}", run["completed"]);
    // What was done on a full disk is no measurement.
    assert_eq!(output.status.code(), Some(3), "{said}");
    // Some versions of the server end when nothing is left.
    let fixes = ["make room where the server keeps its data", "see whether the target still runs"];
    assert!(fixes.iter().any(|fix| said.contains(fix)), "{said}");
    disk.make_room();
    drop(private.end());
}
