//! What tests of `tune` and `watch` share: a server that its load presses, and programs that run
//! beside a test.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Child, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use iostrata_change::spawn_for_life;
use iostrata_database::target::Target;
use iostrata_server::private::ServerProgram;
use iostrata_server::{Credentials, ServerAddress, ServerTarget};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Bench, is_soak, stderr, wait_for_end, wait_until};
use crate::server::{Private, programs};

/// A server that has to be tuned under [`load`], also on a slow machine: its redo goes round within
/// some ten seconds, more pages become dirty meanwhile than it writes by itself.
pub fn pressed_of(program: ServerProgram, more: &[&str]) -> Private {
    let redo = match (program.version.is_mariadb, program.version.number.0) {
        // It makes more redo of the same.
        (false, 8..) => "--innodb-redo-log-capacity=64M",
        // It has two files.
        (false, _) => "--innodb-log-file-size=26M",
        (true, _) => "--innodb-log-file-size=24M",
    };
    let options = [
        redo,
        "--innodb-buffer-pool-size=128M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-io-capacity=100",
        "--innodb-io-capacity-max=100",
    ];
    Private::of(program, tempfile::tempdir().unwrap(), &[&options, more].concat(), &[])
}

/// Such a server of the first installed program; none where none is installed, which it prints.
pub fn pressed(more: &[&str]) -> Option<Private> {
    let program = programs().into_iter().next()?;
    Some(pressed_of(ServerProgram::find(&program).unwrap(), more))
}

/// The settings of the server's engine, as it reports them.
pub fn settings(private: &Private) -> BTreeMap<String, String> {
    let address: ServerAddress = private.target("root", "").parse().unwrap();
    let address = Credentials::default().complete(address).unwrap();
    let facts = ServerTarget::open(address, None).unwrap().facts().unwrap();
    facts.settings.into_iter().filter(|(name, _)| name.starts_with("innodb_")).collect()
}

/// A program that is ended with its value at the latest, so that a test that fails leaves none.
/// What it prints goes to files, which take any amount: on a pipe that nothing reads a program
/// would wait for ever once it is full.
pub struct Running {
    child: Child,
    /// Its stdout and its stderr, where the test has not named a file for it.
    printed: [Option<File>; 2],
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
            let until = Instant::now() + Duration::from_secs(30);
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
                sleep(Duration::from_millis(5));
            }
            let _gone = self.child.kill();
            let _reaped = self.child.wait();
        }
    }
}

/// Starts the program, which ends with this process at the latest: the load of a server that tests
/// share outlives the thread of the first.
pub fn start(bench: &Bench, line: &str) -> Running {
    start_with(bench, line, [None, None])
}

/// The same, with its stderr in a file of this name, to be read while it runs.
pub fn start_told(bench: &Bench, line: &str, said: &str) -> Running {
    start_with(bench, line, [None, Some(said)])
}

/// The same, with what it prints in a file of this name.
pub fn start_printing(bench: &Bench, line: &str, printed: &str) -> Running {
    start_with(bench, line, [Some(printed), None])
}

fn start_with(bench: &Bench, line: &str, named: [Option<&str>; 2]) -> Running {
    let mut command = bench.command(&line.split_whitespace().collect::<Vec<_>>());
    let printed = named.map(|name| name.is_none().then(|| tempfile::tempfile().unwrap()));
    let file = |at: usize| match (named[at], &printed[at]) {
        (Some(name), _) => File::create(bench.path(name)).unwrap(),
        (None, own) => own.as_ref().unwrap().try_clone().unwrap(),
    };
    command.stdout(file(0)).stderr(file(1));
    Running { child: spawn_for_life(command).unwrap(), printed }
}

impl Running {
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// How it ended, by itself.
    pub fn wait(mut self) -> Output {
        let status = wait_for_end(&mut self.child, "it ends by itself");
        let [stdout, stderr] = self.printed.each_mut().map(|file| {
            let mut text = Vec::new();
            if let Some(file) = file {
                file.rewind().unwrap();
                file.read_to_end(&mut text).unwrap();
            }
            text
        });
        Output { status, stdout, stderr }
    }
}

pub fn end(running: Running, signal: Signal) -> Output {
    running.signal(signal);
    running.wait()
}

/// Changes 600 of 200,000 rows per second until it is ended: most of their pages within the time in
/// which the redo of [`pressed`] goes round.
pub fn load(bench: &Bench, private: &Private) -> Running {
    load_at(bench, &private.target("root", "oltp"), 200_000, 600)
}

/// Changes so many of so many rows in the database of a server.
pub fn load_at(bench: &Bench, target: &str, rows: u32, per_s: u32) -> Running {
    let tables = format!("--tables 1 --table-size {rows}");
    let made = bench.line(&format!("oltp update_index prepare --target {target} {tables} --quiet"));
    assert!(made.status.success(), "{}", stderr(&made));
    let run = format!("oltp update_index run --target {target} {tables} --threads 4 --quiet");
    let rate = format!("--rate {per_s} --max-queue 100 --on-overload drop");
    start(bench, &format!("{run} --warmup-time 0 --time 3600 {rate}"))
}

/// Waits until the settings of a server differ from those before; in the long form they are moved
/// some more times.
pub fn wait_until_tuned(private: &Private, before: &BTreeMap<String, String>) {
    wait_until("the server is tuned", 100, || settings(private) != *before);
    if is_soak() {
        sleep(Duration::from_secs(6));
        assert_ne!(settings(private), *before, "it is still tuned");
    }
}
