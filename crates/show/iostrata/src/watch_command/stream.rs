//! The samples of all targets as they come, each target on a thread of its own.
//!
//! Invariant: a target that does not answer holds up no other. The first sample of each is taken
//! before the stream begins, so that a target that cannot be watched ends the command; of several,
//! one that does not answer is tried again.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use iostrata_database::watch::WatchStep;
use iostrata_run::{FIGURES, FigureKind, StallCommand, WatchDocument, WatchSample, WatchTarget};
use iostrata_show::metrics::Board;
use iostrata_study::{Listener, SamplePace};

use super::recorder::Recorder;
use super::source::Source;
use super::stall_hook::StallHook;
use crate::args::WatchArgs;
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// How long to wait for a sample before signals are checked.
const LOOK: Duration = Duration::from_millis(100);

/// An engine has published again by then.
const PUBLISHED: Duration = Duration::from_millis(1_500);

/// A sample of one of the targets.
#[derive(Clone, Debug)]
pub struct TargetUpdate {
    /// Its place among the targets.
    pub target: usize,
    /// What it came to.
    pub watched: WatchStep,
    /// Whether it is the first of its target, which has no rates.
    pub is_first: bool,
}

/// What came next.
#[derive(Debug)]
pub enum Next {
    /// A sample.
    Sample(Box<TargetUpdate>),
    /// Nothing yet: time for a view to look at its keys.
    Nothing,
    /// Nothing more: the time is over, or a signal came.
    End,
}

/// The samples of all targets.
pub struct Stream<'a> {
    /// What is watched, in the order in which it was named.
    pub targets: Vec<WatchTarget>,
    first: VecDeque<TargetUpdate>,
    receiver: Receiver<TargetUpdate>,
    interruption: Interruption,
    recorder: Option<Recorder<'a>>,
    board: Option<Arc<Mutex<Board>>>,
    hook: Option<StallHook>,
}

/// When samples are taken.
#[derive(Clone, Copy)]
struct Schedule {
    pace: SamplePace,
    interval: Duration,
    /// After which no sample is taken.
    until: Option<Duration>,
    /// Whether one sample with rates is all that is wanted.
    is_once: bool,
}

impl<'a> Stream<'a> {
    /// Takes the first sample of each target and begins.
    ///
    /// # Errors
    /// A target that refuses its first sample, where it is the only one.
    pub fn begin(
        mut sources: Vec<Source>,
        args: &WatchArgs,
        keeper: Option<&'a mut (dyn Listener + Send)>,
        interruption: &Interruption,
    ) -> Result<Self, ExitError> {
        let until = if args.once { Some(args.interval) } else { args.time };
        let pace = SamplePace::new(Instant::now(), args.interval, args.interval);
        let schedule = Schedule { pace, interval: args.interval, until, is_once: args.once };
        let is_one = sources.len() == 1;
        let mut first = VecDeque::new();
        for (target, source) in sources.iter_mut().enumerate() {
            let watched = source.take(&schedule.pace);
            let error = watched.sample.error.clone();
            if let Some(error) = error.clone().filter(|_| is_one) {
                return Err(ExitError::NotHere(error));
            }
            if error.is_none() && tells_nothing(&watched.sample) {
                let WatchTarget { name, flavour, version, .. } = source.target();
                return Err(ExitError::NotHere(format!(
                    "{name}: {flavour} {version} reports no InnoDB status; name a MySQL, MariaDB or \
                     Percona Server"
                )));
            }
            source.note_missing();
            first.push_back(TargetUpdate { target, watched, is_first: true });
        }
        let targets: Vec<WatchTarget> = sources.iter().map(|one| one.target().clone()).collect();
        let (sender, receiver) = channel();
        for (target, source) in sources.into_iter().enumerate() {
            let sender = sender.clone();
            let thread = Builder::new().name("watch".to_owned());
            let spawned = thread.spawn(move || sample(source, target, schedule, &sender));
            spawned
                .map_err(|error| ExitError::NotHere(format!("cannot start a thread: {error}")))?;
        }
        let keeps = is_one && (args.record.is_some() || args.printing.json);
        let mut recorder = keeps.then(|| Recorder::new(keeper));
        if let (Some(recorder), [target]) = (&mut recorder, &targets[..]) {
            let begun = recorder.begin(target);
            begun.map_err(|error| ExitError::NotHere(error.to_string()))?;
        }
        let interruption = interruption.clone();
        let hook = args.on_stall.as_ref();
        let hook = hook.map(|line| StallHook::new(line, args.record.as_deref(), targets.len()));
        Ok(Self { targets, first, receiver, interruption, recorder, board: None, hook })
    }

    /// From now on a board takes every sample.
    pub fn export_to(&mut self, board: Arc<Mutex<Board>>) {
        self.board = Some(board);
    }

    /// Set by a signal that ends it.
    pub fn stop_flag(&self) -> &Arc<AtomicBool> {
        self.interruption.flag()
    }

    /// The next sample, if one comes soon.
    pub fn next(&mut self) -> Next {
        if self.interruption.is_set() {
            return Next::End;
        }
        let arrived = match self.first.pop_front() {
            Some(first) => Ok(first),
            None => self.receiver.recv_timeout(LOOK),
        };
        match arrived {
            Ok(mut arrived) => {
                if self.targets.len() > 1 {
                    let name = self.targets.get(arrived.target).map(|target| target.name.clone());
                    arrived.watched.sample.target = name;
                }
                if let Some(recorder) = &mut self.recorder {
                    recorder.take(&arrived.watched);
                }
                if let Some(hook) = &mut self.hook {
                    let name = self.targets.get(arrived.target).map(|target| target.name.as_str());
                    hook.take(arrived.target, name.unwrap_or_default(), &arrived.watched);
                }
                if let Some(board) = &self.board {
                    let mut board = board.lock().unwrap_or_else(PoisonError::into_inner);
                    board.take(arrived.target, &arrived.watched);
                }
                Next::Sample(Box::new(arrived))
            }
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// What became of the commands that were run when stalls began; one that still runs is ended.
    pub fn stall_commands(&mut self) -> Vec<StallCommand> {
        self.hook.as_mut().map(StallHook::end).unwrap_or_default()
    }

    /// Everything that came, where it is kept.
    pub fn document(&self) -> Option<WatchDocument> {
        let target = self.targets.first()?.clone();
        Some(self.recorder.as_ref()?.document(target))
    }
}

/// Whether there is nothing to show.
fn tells_nothing(sample: &WatchSample) -> bool {
    let mut gauges = FIGURES.iter().filter(|one| matches!(one.kind, FigureKind::Gauge(_)));
    gauges.all(|one| (one.of)(sample).is_none())
}

/// Whether it has rates: those of a first sample are missing.
fn has_rates(sample: &WatchSample) -> bool {
    let mut counters = FIGURES.iter().filter(|one| matches!(one.kind, FigureKind::Counter(_)));
    counters.any(|one| (one.of)(sample).is_some())
}

/// Takes samples until the time is over or the receiver is gone.
fn sample(mut source: Source, target: usize, schedule: Schedule, to: &Sender<TargetUpdate>) {
    let Schedule { mut pace, interval, until, is_once } = schedule;
    let is_over = |due: Duration| until.is_some_and(|until| due > until + interval / 2);
    let wait = |time| {
        sleep(time);
        true
    };
    // What an engine publishes every second may not be new yet.
    let until_new = pace.due() + PUBLISHED;
    while !is_over(pace.due()) {
        let Some(mut watched) = source.next(&mut pace, wait) else { return };
        while is_once && !has_rates(&watched.sample) && watched.sample.t_s < until_new.as_secs_f64()
        {
            sleep(LOOK);
            watched = source.take(&pace);
        }
        if to.send(TargetUpdate { target, watched, is_first: false }).is_err() {
            return;
        }
    }
}
