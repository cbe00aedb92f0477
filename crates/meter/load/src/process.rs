//! Workers as processes: the program runs itself again, since forking after threads is not safe.
//!
//! Invariant: a child that outlives its parent ends with it (its standard input closes and the
//! parent-death signal fires); it writes nothing but its answer to standard output.

use std::io::{self, BufRead, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::clock::ClockFacts;
use crate::error::LoadError;
use crate::job::Job;
use crate::outcome::JobOutcome;
use crate::shared_stats::{SharedStats, StatsLayout};

/// The hidden subcommand under which the program runs as a worker.
pub const WORKER_COMMAND: &str = "__worker";

/// What a worker process is told, in one line of JSON; parent and child are the same program, so
/// that the form needs no version.
#[derive(Serialize, Deserialize)]
struct Order {
    job: Job,
    layout: StatsLayout,
    clock: ClockFacts,
    /// The descriptor number under which the child finds the shared statistics.
    shared_fd: i32,
    /// The process that gives the order.
    parent: u32,
}

/// What it answers.
#[derive(Serialize, Deserialize)]
struct Answer(Result<JobOutcome, String>);

/// Runs one job in a child process and waits for its answer.
pub(crate) fn run_in_child(
    program: &Path,
    job: &Job,
    workers: u32,
    shared: &SharedStats,
    clock: &ClockFacts,
) -> Result<JobOutcome, LoadError> {
    let spawn = |source| LoadError::Spawn { worker: job.number, workers, source };
    // The descriptor is duplicated without close-on-exec, so that the child inherits it.
    let inherited = rustix::io::dup(shared.file()).map_err(|errno| spawn(errno.into()))?;
    let order = Order {
        job: job.clone(),
        layout: shared.layout().clone(),
        clock: clock.clone(),
        shared_fd: inherited.as_fd().as_raw_fd(),
        parent: std::process::id(),
    };
    let mut child = Command::new(program)
        .arg(WORKER_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(spawn)?;
    let lost = |why: String| LoadError::WorkerLost { worker: job.number, why };
    send(&mut child, &order).map_err(|error| lost(error.to_string()))?;
    let output = child.wait_with_output().map_err(|error| lost(error.to_string()))?;
    let last_words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match serde_json::from_slice(&output.stdout) {
        Ok(Answer(Ok(outcome))) => Ok(outcome),
        Ok(Answer(Err(why))) => Err(lost(why)),
        Err(_) => Err(lost(format!("{} {last_words}", output.status))),
    }
}

fn send(child: &mut Child, order: &Order) -> io::Result<()> {
    let Some(stdin) = child.stdin.as_mut() else { return Ok(()) };
    serde_json::to_writer(&mut *stdin, order)?;
    stdin.write_all(b"\n")?;
    stdin.flush()
}

/// The whole life of a worker process: order on standard input, answer on standard output.
///
/// # Errors
/// When the order cannot be read or the answer not be written: the parent is gone.
pub fn worker_main() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let mut line = String::new();
    io::stdin().lock().take(1 << 24).read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line)?;
    check_parent(order.parent)?;
    let answer = Answer(carry_out(order));
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &answer)?;
    out.flush()
}

/// A parent that was killed before the signal of its death was asked for sends none.
fn check_parent(expected: u32) -> io::Result<()> {
    if std::os::unix::process::parent_id() == expected {
        return Ok(());
    }
    Err(io::Error::other("the process that gave the order is gone"))
}

fn carry_out(order: Order) -> Result<JobOutcome, String> {
    let file = crate::inherited::take(order.shared_fd);
    let shared = SharedStats::inherited(file, order.layout).map_err(|error| error.to_string())?;
    order.job.run(&shared, &order.clock).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_whose_parent_is_gone_does_nothing() {
        assert!(check_parent(std::os::unix::process::parent_id()).is_ok());
        assert!(check_parent(std::process::id()).is_err());
    }
}
