//! Real servers that run out of disk or processors, and the cause that is named.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::channel;
use std::thread;

use iostrata_database::target::Value;
use iostrata_run::StallCause;
use tempfile::TempDir;

use crate::causes::{AT_S, ROWS, SESSIONS, UPDATE, WATCHED_S, begin, programs};
use crate::stage::{PAUSE, Then, Worker};
use crate::stalls::assert_named;

/// A file system of its own, of memory.
struct Mount(PathBuf, #[allow(dead_code, reason = "removed with it")] TempDir);

impl Mount {
    fn new() -> Option<Self> {
        let dir = TempDir::with_prefix("io-").unwrap();
        let path = dir.path().canonicalize().unwrap();
        let words = ["-t", "tmpfs", "-o", "size=300m", "tmpfs"];
        let mounted = Command::new("mount").args(words).arg(&path).status();
        mounted.is_ok_and(|status| status.success()).then(|| Self(path, dir))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _is_lazy = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Writes until there is no room.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
}

#[test]
fn a_binlog_without_room_is_named() {
    let test = "a_binlog_without_room_is_named";
    for program in programs(test) {
        let Some(mount) = Mount::new() else {
            eprintln!("skipped: {test}: a file system cannot be mounted");
            return;
        };
        if !program.version.is_mariadb && !program.version.is_from(8, 1) {
            eprintln!("skipped: {test}: {} does not show who waits for room", program.version);
            continue;
        }
        let log = format!("--log-bin={}/b", mount.0.display());
        let mut stage = begin(program, test, &[&log, "--sync-binlog=0"]);
        // They end with the server, which waits a minute for room.
        for n in 0..SESSIONS {
            let target = stage.target();
            thread::spawn(move || {
                let mut worker = Worker::open(&target, &[UPDATE], true);
                let mut id = n as i64;
                while worker.try_run(0, &[Value::Int(1 + id % ROWS as i64)]) {
                    id += 7;
                    // An even load is enough to see that it stops.
                    thread::sleep(PAUSE);
                }
            });
        }
        let big = mount.0.join("big");
        let then = Then::after(AT_S, move |_| fill(&big));
        let cause = StallCause::DiskFull;
        let all = stage.watch_for(Some(cause), WATCHED_S, Some(then));
        stage.kill();
        assert_named(&all, cause);
    }
}

#[test]
fn a_processor_quota_that_runs_out_is_named() {
    let test = "a_processor_quota_that_runs_out_is_named";
    for program in programs(test).into_iter().take(1) {
        // Room in the redo for all that is written meanwhile: its end is another cause.
        let options = ["--innodb-log-file-size=2G"];
        let Some((mut stage, quota)) = begin(program, test, &options).with_quota(8_000) else {
            return;
        };
        stage.load_evenly(SESSIONS, UPDATE, ROWS);
        let before = std::fs::read_to_string(&quota).unwrap();
        let file = quota.clone();
        let then = Then::after(AT_S, move |_| {
            let text = if file.ends_with("cpu.max") { "5000 100000" } else { "5000" };
            std::fs::write(&file, text).unwrap();
        });
        let cause = StallCause::Processors;
        let all = stage.watch_for(Some(cause), WATCHED_S, Some(then));
        std::fs::write(&quota, before.trim()).unwrap();
        assert_named(&all, cause);
    }
}

/// Programs that do nothing but run, each for half a minute of a processor at most.
struct Spinners(Vec<Child>);

impl Spinners {
    fn start(count: usize) -> Self {
        let mut spin = Command::new("sh");
        spin.args(["-c", "ulimit -t 30; while :; do :; done"]);
        Self((0..count).map(|_| spin.spawn().unwrap()).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for one in &mut self.0 {
            let _gone = one.kill();
            let _reaped = one.wait();
        }
    }
}

#[test]
fn processors_that_others_take_are_named() {
    let test = "processors_that_others_take_are_named";
    for program in programs(test).into_iter().take(1) {
        let options = ["--innodb-log-file-size=2G"];
        // A quota that binds nothing; what counts is how little weight the group has.
        let Some((mut stage, quota)) = begin(program, test, &options).with_quota(8_000) else {
            return;
        };
        let group = quota.parent().unwrap();
        let (file, little) = match group.join("cpu.weight") {
            file if file.exists() => (file, "10"),
            _ => (group.join("cpu.shares"), "128"),
        };
        stage.load(SESSIONS, UPDATE, ROWS);
        let cores = thread::available_parallelism().unwrap().get();
        let cause = StallCause::Processors;
        let (send, spinners) = channel();
        // Until then it has its usual weight, whatever else runs on this machine.
        let then = Then::after(AT_S, move |_| {
            std::fs::write(&file, little).unwrap();
            send.send(Spinners::start(2 * cores)).unwrap();
        });
        let all = stage.watch_for(Some(cause), WATCHED_S, Some(then));
        drop(spinners.try_recv());
        assert_named(&all, cause);
    }
}
