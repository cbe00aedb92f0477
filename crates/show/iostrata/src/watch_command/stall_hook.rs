//! `--on-stall COMMAND`: a command of the user's, run once when a target begins to stall.
//!
//! Invariants: one at a time, each ended after [`LIMIT`]; what it prints is discarded, so that no
//! view is disturbed; its failure is kept and reported at the end, and ends nothing. It dies with
//! this process.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf, absolute};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime};

use iostrata_change::end_with_starter;
use iostrata_database::watch::WatchStep;
use iostrata_run::{StallCommand, TransactionStall};
use rustix::process::{Pid, Signal, kill_process_group};

/// How long one may run.
const LIMIT: Duration = Duration::from_secs(60);
/// How long one that is to end has for it.
const GRACE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(50);
/// Runs that are kept.
const KEPT_MAX: usize = 100;

/// Runs the command of a user.
pub struct StallHook {
    command: String,
    recording: Option<PathBuf>,
    /// By target, the start of the stall that was last seen.
    seen: Vec<Option<f64>>,
    running: Option<CommandRun>,
    done: Vec<StallCommand>,
}

/// A command that runs; dropping `_stop` ends it.
struct CommandRun {
    of: StallCommand,
    _stop: Sender<()>,
    ended: Receiver<(String, bool, f64)>,
}

impl StallHook {
    /// A hook for so many targets.
    pub fn new(command: &str, recording: Option<&Path>, targets: usize) -> Self {
        let recording = recording.map(|dir| absolute(dir).unwrap_or_else(|_| dir.to_owned()));
        let seen = vec![None; targets];
        Self { command: command.to_owned(), recording, seen, running: None, done: Vec::new() }
    }

    /// Takes a sample of a target: starts the command where a stall began.
    pub fn take(&mut self, target: usize, name: &str, watched: &WatchStep) {
        self.collect(false);
        let going = watched.stall.as_ref().filter(|_| watched.sample.stalled);
        let (Some(stall), Some(seen)) = (going, self.seen.get_mut(target)) else { return };
        if seen.replace(stall.t_s) == Some(stall.t_s) {
            return;
        }
        let of = StallCommand {
            target: name.to_owned(),
            stall_t_s: stall.t_s,
            ..StallCommand::default()
        };
        if self.running.is_some() {
            let ended = "not run: the one before still ran".to_owned();
            return self.keep(StallCommand { ended, ..of });
        }
        let since_s = watched.sample.t_s - stall.t_s;
        match self.start(&of, stall, since_s) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                let ended = format!("not run: cannot be started: {error}");
                self.keep(StallCommand { ended, ..of });
            }
        }
    }

    fn start(
        &self,
        of: &StallCommand,
        stall: &TransactionStall,
        since_s: f64,
    ) -> std::io::Result<CommandRun> {
        let since = Duration::try_from_secs_f64(since_s).unwrap_or_default();
        let began = SystemTime::now().checked_sub(since).unwrap_or(SystemTime::now());
        let began = jiff::Timestamp::try_from(began).unwrap_or_default();
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.command])
            .env("IOSTRATA_TARGET", &of.target)
            .env("IOSTRATA_STALL_BEGAN", began.to_string())
            .env("IOSTRATA_STALL_T_S", format!("{:.3}", stall.t_s))
            .env("IOSTRATA_STALL_CAUSE", stall.cause.to_string())
            .env("IOSTRATA_STALL_EVIDENCE", &stall.evidence)
            .env("IOSTRATA_RECORDING", self.recording.as_deref().unwrap_or(Path::new("")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        end_with_starter(&mut command, Signal::KILL);
        let ((stop, stopped), (send, ended)) = (channel(), channel());
        let run = move || {
            let began = Instant::now();
            let (how, is_sound) = match command.spawn() {
                Ok(child) => wait(child, began, &stopped),
                Err(error) => (format!("cannot be started: {error}"), false),
            };
            // The receiver is gone once watching is over.
            let _gone: Result<(), _> = send.send((how, is_sound, began.elapsed().as_secs_f64()));
        };
        thread::Builder::new().name("on-stall".to_owned()).spawn(run)?;
        Ok(CommandRun { of: of.clone(), _stop: stop, ended })
    }

    /// Takes in what ended; where watching is over, what runs is ended.
    fn collect(&mut self, is_over: bool) {
        let Some(CommandRun { of, _stop, ended }) = self.running.take() else { return };
        let told = if is_over {
            drop(_stop);
            ended.recv().ok()
        } else {
            match ended.try_recv() {
                Err(std::sync::mpsc::TryRecvError::Empty) => {
                    self.running = Some(CommandRun { of, _stop, ended });
                    return;
                }
                told => told.ok(),
            }
        };
        let (ended, is_sound, took_s) = told.unwrap_or_default();
        self.keep(StallCommand { ended, is_sound, took_s: Some(took_s), ..of });
    }

    fn keep(&mut self, one: StallCommand) {
        if self.done.len() < KEPT_MAX {
            self.done.push(one);
        }
    }

    /// Every run, once watching is over; what still runs is ended.
    pub fn end(&mut self) -> Vec<StallCommand> {
        self.collect(true);
        std::mem::take(&mut self.done)
    }
}

/// How a command ended, and whether well.
fn wait(mut child: Child, began: Instant, stopped: &Receiver<()>) -> (String, bool) {
    let said = |status: ExitStatus| (status.to_string(), status.success());
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return said(status),
            Ok(None) => {}
            Err(error) => return (format!("cannot be waited for: {error}"), false),
        }
        let is_over = stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Disconnected);
        if is_over || began.elapsed() >= LIMIT {
            end(&mut child);
            let why = if is_over { "watching was over" } else { "it ran for 60 s" };
            return (format!("ended: {why}"), false);
        }
        sleep(LOOK);
    }
}

/// Ends a command with all that it started.
fn end(child: &mut Child) {
    let group = Pid::from_child(child);
    let began = Instant::now();
    let _gone = kill_process_group(group, Signal::TERM);
    while began.elapsed() < GRACE && matches!(child.try_wait(), Ok(None)) {
        sleep(LOOK);
    }
    let _gone = kill_process_group(group, Signal::KILL);
    let _reaped = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_run::WatchSample;

    fn stalling(stall_t_s: f64) -> WatchStep {
        let stall = TransactionStall { t_s: stall_t_s, ..TransactionStall::default() };
        let sample = WatchSample { t_s: stall_t_s + 1.0, stalled: true, ..WatchSample::default() };
        WatchStep { sample, stall: Some(stall), ..WatchStep::default() }
    }

    fn until_ended(hook: &mut StallHook) {
        while hook.running.is_some() {
            hook.collect(false);
            sleep(LOOK);
        }
    }

    #[test]
    fn a_command_runs_once_per_stall_and_knows_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("seen");
        let line = format!(
            "echo $IOSTRATA_TARGET $IOSTRATA_STALL_T_S $IOSTRATA_STALL_CAUSE \
             $IOSTRATA_RECORDING $IOSTRATA_STALL_BEGAN >> {}",
            file.display()
        );
        let mut hook = StallHook::new(&line, Some(Path::new("/RUN")), 2);
        for _ in 0..2 {
            hook.take(0, "mysql://a", &stalling(7.0));
            until_ended(&mut hook);
        }
        hook.take(1, "mysql://b", &stalling(7.0));
        until_ended(&mut hook);
        let seen = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = seen.lines().collect();
        assert_eq!(lines.len(), 2, "{seen}");
        assert!(lines[0].starts_with("mysql://a 7.000 unknown /RUN 20"), "{seen}");
        assert!(lines[1].starts_with("mysql://b 7.000"), "{seen}");
        assert!(hook.end().iter().all(|one| one.is_sound));
    }

    #[test]
    fn one_runs_at_a_time_and_what_fails_or_goes_on_is_kept() {
        let mut hook = StallHook::new("sleep 600 & wait", None, 1);
        hook.take(0, "a", &stalling(1.0));
        hook.take(0, "a", &stalling(20.0));
        let done = hook.end();
        let ended: Vec<&str> = done.iter().map(|one| one.ended.as_str()).collect();
        assert_eq!(ended, ["not run: the one before still ran", "ended: watching was over"]);
        let mut hook = StallHook::new("exit 3", None, 1);
        hook.take(0, "a", &stalling(1.0));
        until_ended(&mut hook);
        let done = hook.end();
        assert!(done[0].ended.contains('3') && !done[0].is_sound, "{done:?}");
    }
}
