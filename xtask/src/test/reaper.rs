//! The process around each test process, which ends what that leaves running.
//!
//! Purpose: a test that fails, is killed or exceeds its time takes its loads, servers and helpers
//! along, and so does the suite when it is killed.
//! Invariant: standard input is a pipe whose other end the suite holds, so that it closes with the
//! suite at the latest; whatever loses its parent below becomes a child of this process, which ends
//! when it has none left.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

/// The chore that this is.
pub const WORD: &str = "reap";

/// So long may what is left take to put back what it has changed.
const GRACE: Duration = Duration::from_secs(5);
/// After this the suite goes on: what is left does not even end when it is killed.
pub const GRACE_MAX: Duration = Duration::from_secs(20);

/// Begins the last line of standard error: the processor time of all that ran, in seconds.
const PROCESSOR_S: &str = "processor time in seconds: ";

/// What the process waits for.
enum WakeUp {
    /// The test process has ended.
    Ended(i32),
    /// Standard input is closed.
    Closed,
}

/// The share of the processors that a test gets while others want them too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// As any program.
    Usual,
    /// A third of that (nice 5).
    Low,
}

impl Priority {
    /// The words before the program.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::Low => &["nice", "-n", "5"],
        }
    }
}

/// The same command with this process around it.
pub fn around(command: &Command, priority: Priority) -> Command {
    let words = priority.words().iter().map(OsStr::new).chain([command.get_program()]);
    let words = words.chain(command.get_args());
    // This file may have been replaced by a newer build.
    let mut reaper = Command::new("/proc/self/exe");
    #[cfg(not(test))]
    reaper.arg(WORD).args(words);
    #[cfg(test)]
    tests::as_test(&mut reaper, words);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => reaper.env(name, value),
            None => reaper.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        reaper.current_dir(dir);
    }
    // An interrupt from the terminal ends the suite, and that closes the pipe.
    reaper.process_group(0).stdin(Stdio::piped());
    reaper
}

/// Runs a program with its arguments. Gives its code; a signal that ended it ends this process too.
///
/// # Errors
/// When it cannot be started.
pub fn run(words: &[String]) -> Result<u8> {
    let (program, arguments) = words.split_first().context("reap: name a program")?;
    set_child_subreaper(Some(getpid()))?;
    let child = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    let child = child.with_context(|| format!("cannot start {program}"))?.id();
    let (events, received) = mpsc::channel();
    let closed = events.clone();
    thread::spawn(move || {
        // However the pipe ends, it is closed.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        let _ = closed.send(WakeUp::Closed);
    });
    let reaping = thread::spawn(move || reap(child, &events));
    let ended = received.recv()?;
    if matches!(ended, WakeUp::Closed) {
        print_running();
    }
    end_the_rest(|| reaping.is_finished(), matches!(ended, WakeUp::Ended(_)));
    eprintln!("{PROCESSOR_S}{:.2}", processor_s().unwrap_or(0.0));
    match ended {
        WakeUp::Ended(status) => Ok(code_of(ExitStatus::from_raw(status))),
        WakeUp::Closed => Ok(1),
    }
}

/// Takes the processor time off what a test process printed; zero where this process was killed.
pub fn take_processor_s(stderr: &mut String) -> f64 {
    let Some(at) = stderr.rfind(PROCESSOR_S) else { return 0.0 };
    let line = stderr.split_off(at);
    line[PROCESSOR_S.len()..].trim().parse().unwrap_or(0.0)
}

/// The processor time of all children that have ended, and of theirs.
fn processor_s() -> Option<f64> {
    let fields = stat(Path::new("/proc/self"))?;
    // `cutime` and `cstime` of proc(5), in ticks.
    let ticks = |number: usize| fields.get(number - FIRST_FIELD)?.parse::<f64>().ok();
    Some((ticks(16)? + ticks(17)?) / rustix::param::clock_ticks_per_second() as f64)
}

/// The number of the first field that [`stat`] gives.
const FIRST_FIELD: usize = 3;

/// The fields of a process or thread in `stat` from its state on. The one before is its name in
/// brackets, which may hold blanks and brackets.
fn stat(of: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(of.join("stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

/// Takes note of every child's end, at once: others look whether it is still there.
fn reap(child: u32, events: &Sender<WakeUp>) {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() as u32 == child => {
                // Without a receiver this process is at its end.
                let _ = events.send(WakeUp::Ended(status.as_raw()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Signals what is left to end, and kills it after a while.
fn end_the_rest(mut is_done: impl FnMut() -> bool, is_told: bool) {
    let (begin, mut asked) = (Instant::now(), Vec::new());
    while !is_done() && begin.elapsed() < GRACE_MAX {
        for pid in descendants(std::process::id()) {
            let is_new = !asked.contains(&pid);
            if is_new {
                asked.push(pid);
                if is_told {
                    eprintln!("left running by the test, and ended: {}", line_of(pid));
                }
            }
            let signal = if begin.elapsed() < GRACE { Signal::TERM } else { Signal::KILL };
            if let Some(pid) = Pid::from_raw(pid as i32)
                && (is_new || signal == Signal::KILL)
            {
                // One that has ended meanwhile needs no signal.
                let _ = kill_process(pid, signal);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Prints what runs when the time of a test is over, and what each of its threads waits for: that
/// is all that is left of a hang.
fn print_running() {
    for pid in descendants(std::process::id()) {
        eprintln!("running when its time was over: process {pid}: {}", line_of(pid));
        let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads.map(|entry| entry.path()) {
            let read = |file| fs::read_to_string(thread.join(file)).unwrap_or_default();
            let (name, place) = (read("comm"), read("wchan"));
            let state = stat(&thread).and_then(|fields| fields.into_iter().next());
            // Without a place of the kernel it runs, or this user may not see it.
            let place = if place.is_empty() || place == "0" { "no place known" } else { &place };
            let state = state.as_deref().unwrap_or("?");
            eprintln!("  thread {}: {state} in {place}", name.trim());
        }
    }
}

/// The command line of a process.
fn line_of(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned()
}

/// The code with which a process ended; ends this one where it was a signal.
fn code_of(status: ExitStatus) -> u8 {
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        let _ = kill_process(getpid(), signal);
        // Another thread may get it.
        thread::sleep(GRACE);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The processes that a process has started, and those that they have.
pub fn descendants(of: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = numbers.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![of];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| pid));
        at += 1;
    }
    found.split_off(1)
}

fn parent(pid: u32) -> Option<u32> {
    let fields = stat(&Path::new("/proc").join(pid.to_string()))?;
    fields.get(4 - FIRST_FIELD)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Child;

    /// The words of a child of these tests.
    const WORDS: &str = "IOSTRATA_TEST_REAPED";

    /// Makes the command one that runs [`reaps`] of this binary.
    pub fn as_test<'a>(reaper: &mut Command, words: impl Iterator<Item = &'a OsStr>) {
        let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
        reaper.args(["--exact", "test::reaper::tests::reaps", "--nocapture"]);
        reaper.env(WORDS, words.join("\n"));
    }

    /// What the other tests run as a process of its own.
    #[test]
    fn reaps() {
        let Ok(words) = std::env::var(WORDS) else { return };
        let words: Vec<String> = words.split('\n').map(str::to_owned).collect();
        std::process::exit(run(&words).unwrap().into());
    }

    /// A shell that writes numbers of processes to a file, and the reaper around it.
    struct Reaped {
        child: Child,
        dir: std::path::PathBuf,
    }

    impl Reaped {
        fn start(name: &str, script: &str) -> Self {
            let dir = std::env::temp_dir().join(format!("iostrata-{name}-{}", std::process::id()));
            fs::create_dir_all(&dir).unwrap();
            let mut shell = Command::new("sh");
            shell.args(["-c", script]).current_dir(&dir).env("TERM", "dumb");
            let mut reaper = around(&shell, Priority::Usual);
            let child = reaper.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            Self { child, dir }
        }

        /// The numbers, once there are so many.
        fn pids(&self, count: usize) -> Vec<String> {
            loop {
                let text = fs::read_to_string(self.dir.join("pids")).unwrap_or_default();
                let pids: Vec<String> = text.lines().map(str::to_owned).collect();
                if pids.len() == count && text.ends_with('\n') {
                    return pids;
                }
                thread::sleep(Duration::from_millis(5));
            }
        }

        /// Its exit status and output, once none of these is left.
        fn ended(mut self, pids: &[String]) -> (ExitStatus, String) {
            let mut said = String::new();
            // Waiting would close it.
            let _pipe = self.child.stdin.take();
            let status = self.child.wait().unwrap();
            self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            for pid in pids {
                assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} lives on: {said}");
            }
            fs::remove_dir_all(&self.dir).unwrap();
            (status, said)
        }
    }

    #[test]
    fn what_a_test_leaves_running_ends_with_it() {
        // One stays its child, one loses its parent, one is the shell itself.
        let script = "sleep 600 & echo $! >> pids; setsid sh -c 'sleep 601 & echo $! >> pids'; \
                      echo $$ >> pids; exit 7";
        let reaped = Reaped::start("left", script);
        let pids = reaped.pids(3);
        let (status, said) = reaped.ended(&pids);
        assert_eq!(status.code(), Some(7), "{said}");
        assert!(said.matches("left running by the test, and ended: ").count() >= 2, "{said}");
    }

    #[test]
    fn what_ignores_the_request_is_killed_and_a_signal_is_passed_on() {
        let script = "(trap '' TERM; while :; do sleep 1; done) & echo $! >> pids; sleep 0.2; \
                      kill -ABRT $$";
        let reaped = Reaped::start("deaf", script);
        let pids = reaped.pids(1);
        let (status, said) = reaped.ended(&pids);
        assert!(status.to_string().contains("SIGABRT"), "{status} {said}");
    }

    #[test]
    fn the_processor_time_of_what_ran_closes_its_output() {
        let script = "echo first >&2; echo $$ > pids; sh -c 'i=0; while [ $i -lt 100000 ]; do \
                      i=$((i+1)); done'";
        let reaped = Reaped::start("processor", script);
        let pids = reaped.pids(1);
        let (_, mut said) = reaped.ended(&pids);
        let seconds = take_processor_s(&mut said);
        assert!(seconds > 0.0, "{said}");
        assert!(!said.contains(PROCESSOR_S) && said.starts_with("first"), "{said}");
        assert_eq!(take_processor_s(&mut said), 0.0);
    }

    #[test]
    fn a_low_priority_is_five_nicer() {
        let niceness = |priority| {
            let output = around(&Command::new("nice"), priority).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            text.lines().find_map(|line| line.parse::<i32>().ok()).unwrap()
        };
        assert_eq!(niceness(Priority::Low), niceness(Priority::Usual) + 5);
    }

    #[test]
    fn everything_ends_with_the_suite() {
        let script = "sleep 602 & echo $! >> pids; echo $$ >> pids; wait";
        let mut reaped = Reaped::start("suite", script);
        let pids = reaped.pids(2);
        // On a busy machine the first has not gone to sleep yet.
        let stat = || fs::read_to_string(format!("/proc/{}/stat", pids[0])).unwrap();
        while !stat().contains("(sleep) S") {
            thread::sleep(Duration::from_millis(5));
        }
        drop(reaped.child.stdin.take());
        let (status, said) = reaped.ended(&pids);
        assert!(!status.success());
        // What ran then is known afterwards, with what its threads waited for.
        let running = "running when its time was over: process ";
        assert_eq!(said.matches(running).count(), 2, "{said}");
        assert!(said.contains("sleep 602") && said.contains("thread sleep: S in "), "{said}");
    }
}
