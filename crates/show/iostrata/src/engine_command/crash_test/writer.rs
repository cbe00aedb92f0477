//! The writing process, as seen from the test.
//!
//! Invariant: everything it said before it ended is heard.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::oracle::THREADS;
use super::worker::CLOSED;
use crate::exit_error::ExitError;

/// How often it is asked whether it has ended.
const POLL: Duration = Duration::from_millis(5);

/// What a writer acknowledged: the last commit of each thread stands for all before it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heard {
    pub last: [u64; THREADS as usize],
    /// Why the last one ended before it was killed.
    pub ended: Option<String>,
    /// Seconds of its closes under load, one after the other.
    pub closes_s: Vec<f64>,
}

impl Heard {
    /// Adds what a writer said that came after.
    pub fn go_on(&mut self, later: Heard) {
        self.ended = later.ended;
        self.closes_s.extend(later.closes_s);
        for (last, later) in self.last.iter_mut().zip(later.last) {
            // One that was cut off early has said nothing.
            *last = later.max(*last);
        }
    }
}

/// A running writer.
pub struct Writer {
    child: Child,
    listener: JoinHandle<()>,
    heard: Arc<Mutex<Heard>>,
}

impl Writer {
    /// Starts it on a directory. It ends only where it has to close the engine after a while.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(
        directory: &Path,
        seed: u64,
        close_after_ms: Option<u64>,
    ) -> Result<Self, ExitError> {
        let failed =
            |error: std::io::Error| ExitError::NotHere(format!("cannot start it: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["engine", "crash-worker"])
            .arg(directory)
            .args(["--seed", &seed.to_string()])
            .args(close_after_ms.map(|ms| format!("--close-after-ms={ms}")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let Some(out) = child.stdout.take() else {
            return Err(ExitError::Bug("a piped stdout is missing".to_owned()));
        };
        let heard = Arc::default();
        let hears = Arc::clone(&heard);
        let listener = std::thread::spawn(move || listen(BufReader::new(out), &hears));
        Ok(Self { child, listener, heard })
    }

    /// Does something while the whole process stands still. Gives what it had acknowledged by then;
    /// nothing is done when it has ended.
    ///
    /// # Errors
    /// When it cannot be stopped, and those of what is done.
    pub fn paused(
        &self,
        during: impl FnOnce() -> Result<(), ExitError>,
    ) -> Result<Option<Heard>, ExitError> {
        let failed =
            |error: rustix::io::Errno| ExitError::NotHere(format!("cannot stop it: {error}"));
        let process = Pid::from_child(&self.child);
        kill_process(process, Signal::STOP).map_err(failed)?;
        // Its end is left for who asks for it.
        let until = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(process), until).map_err(failed)?;
        if !status.is_some_and(|status| status.stopped()) {
            return Ok(None);
        }
        let done = during();
        let heard = lock(&self.heard).clone();
        kill_process(process, Signal::CONT).map_err(failed)?;
        done.map(|()| Some(heard))
    }

    /// Lets it end by itself. What keeps it from that within the patience stands in `ended`; it is
    /// killed then.
    pub fn end(mut self, patience: Duration) -> Heard {
        let until = Instant::now() + patience;
        let mut status = None;
        while status.is_none() && Instant::now() < until {
            std::thread::sleep(POLL);
            status = self.child.try_wait().ok().flatten();
        }
        let mut heard = self.kill();
        match status {
            None => heard.ended = Some(format!("not within {} s", patience.as_secs())),
            Some(status) if status.success() => heard.ended = None,
            Some(_failed) => {}
        }
        heard
    }

    /// Kills it at once and gives what it had acknowledged.
    pub fn kill(mut self) -> Heard {
        let is_ended = matches!(self.child.try_wait(), Ok(Some(_)));
        let _ended_before = self.child.kill();
        let _reaped = self.child.wait();
        let _listened = self.listener.join();
        let mut heard = std::mem::take(&mut *lock(&self.heard));
        if is_ended {
            let mut why = String::new();
            let _unreadable =
                self.child.stderr.take().map(|mut said| said.read_to_string(&mut why));
            heard.ended = Some(why.trim().to_owned());
        }
        heard
    }
}

fn lock(heard: &Mutex<Heard>) -> std::sync::MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(out: impl BufRead, heard: &Mutex<Heard>) {
    for line in out.lines().map_while(Result::ok) {
        let Some((thread, commit)) = line.split_once(' ') else { continue };
        let mut heard = lock(heard);
        if thread == CLOSED {
            heard.closes_s.extend(commit.parse::<f64>());
            continue;
        }
        let (Ok(thread), Ok(commit)) = (thread.parse::<usize>(), commit.parse()) else { continue };
        if let Some(last) = heard.last.get_mut(thread) {
            *last = commit;
        }
    }
}
