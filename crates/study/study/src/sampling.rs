//! Samples of a target at an even pace, and those of a window, for the causes of its stalls; what a
//! database uses meanwhile.
//!
//! Invariant: those of a window are taken on a thread and a connection of their own, which end with
//! the window. What they cost is kept. They decide nothing about the run: a target that reports
//! nothing is not queried.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use iostrata_database::target::{
    Sampler, StallSample, StallSpan, Target, TargetSample, stall_cause,
};
use iostrata_database::watch::{OnHost, TimedSample};
use iostrata_run::{Replicate, ResourceUse, SampleSpan, SamplerCost, StallCause, TargetCourse};

use crate::{Watcher, transaction_stalls};

/// From one sample to the next.
const EVERY: Duration = Duration::from_secs(1);

/// Samples a target at an even pace.
#[derive(Clone, Copy, Debug)]
pub struct SamplePace {
    began: Instant,
    every: Duration,
    /// When the next one is due, since the beginning.
    due: Duration,
}

impl SamplePace {
    /// The next sample is due after `first`, and then one each `every`; times count from `began`.
    pub fn new(began: Instant, every: Duration, first: Duration) -> Self {
        Self { began, every, due: first }
    }

    /// When the next sample is due, since the beginning.
    pub fn due(&self) -> Duration {
        self.due
    }

    /// Takes a sample at once.
    pub fn ask(&self, sampler: &mut dyn Sampler) -> TimedSample {
        let before = self.began.elapsed();
        let sample = sampler.sample();
        let took = self.began.elapsed().saturating_sub(before);
        TimedSample {
            at_s: before.as_secs_f64(),
            sample,
            sample_us: took.as_secs_f64() * 1e6,
            on_host: OnHost::default(),
        }
    }

    /// Takes a sample once it is due; nothing where `wait`, which waits for so long, returns that
    /// it is over. A late sample is not made up for.
    pub fn next(
        &mut self,
        sampler: &mut dyn Sampler,
        wait: impl FnOnce(Duration) -> bool,
    ) -> Option<TimedSample> {
        if !wait(self.due.saturating_sub(self.began.elapsed())) {
            return None;
        }
        let asked = self.ask(sampler);
        self.due = (self.due + self.every).max(self.began.elapsed());
        Some(asked)
    }
}

/// Codes of targets whose disk, or table space, is full.
const NO_SPACE: [&str; 3] = ["no_space", "1021", "1114"];

/// A full disk, as failed transactions report it; samples do not show it.
fn out_of_space(replicate: &Replicate) -> Option<String> {
    let counts = replicate.streams.first()?.transactions.as_ref()?;
    let (code, count) = NO_SPACE.iter().find_map(|code| counts.errors.get_key_value(*code))?;
    Some(format!("{count} transactions of the window failed for lack of disk space ({code})"))
}

/// What a window's samples are taken with, and what they came to.
pub struct Sampling {
    sampler: Option<Box<dyn Sampler>>,
    running: Option<SamplerThread>,
    samples: Samples,
}

struct SamplerThread {
    /// Dropped to end it.
    stop: Sender<()>,
    thread: JoinHandle<Samples>,
}

#[derive(Default)]
struct Samples {
    all: Vec<StallSample>,
    /// How long each took, in microseconds.
    took_us: Vec<f64>,
}

impl Sampling {
    /// Samples of a target, where it gives any; `note` gets why it does not.
    pub fn of(target: &dyn Target, note: &mut dyn FnMut(&str)) -> Self {
        let sampler = target.sampler().unwrap_or_else(|error| {
            note(&format!("causes of stalls will be unknown: {error}"));
            None
        });
        Self { sampler, running: None, samples: Samples::default() }
    }

    /// Names the stalls of a replicate, which this has watched, and adds what else was seen.
    pub fn explain(&self, replicate: &mut Replicate, sessions: u32) {
        let full = out_of_space(replicate);
        let cause = |from_s, to_s| {
            let found = stall_cause(&self.samples.all, StallSpan { from_s, to_s, sessions });
            match &full {
                Some(evidence) if found.0 == StallCause::Unknown => {
                    (StallCause::DiskFull, evidence.clone())
                }
                _ => found,
            }
        };
        let (stalls, sampler) = (transaction_stalls(replicate, &cause), self.samples.cost());
        let stream = replicate.streams.first_mut();
        if let Some(counts) = stream.and_then(|stream| stream.transactions.as_mut()) {
            (counts.stalls, counts.sampler) = (stalls, sampler);
            counts.course = self.samples.course();
        }
    }
}

impl Watcher for Sampling {
    fn opened(&mut self) {
        let Some(sampler) = self.sampler.take() else { return };
        let (stop, stopped) = channel();
        let thread = Builder::new().name("sampler".to_owned());
        // Without a thread there are no samples, and the stalls have no cause.
        let started = thread.spawn(move || sample(sampler, &stopped)).ok();
        self.running = started.map(|thread| SamplerThread { stop, thread });
    }

    fn closed(&mut self) {
        if let Some(SamplerThread { stop, thread }) = self.running.take() {
            drop(stop);
            self.samples = thread.join().unwrap_or_default();
        }
    }
}

/// Takes samples until it is stopped.
fn sample(mut sampler: Box<dyn Sampler>, stopped: &Receiver<()>) -> Samples {
    let mut pace = SamplePace::new(Instant::now(), EVERY, Duration::ZERO);
    let mut samples = Samples::default();
    let goes_on = |wait| stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
    while let Some(asked) = pace.next(sampler.as_mut(), goes_on) {
        let sample = asked.sample.map_err(|error| error.code);
        samples.all.push(StallSample { at_s: asked.at_s, sample });
        samples.took_us.push(asked.sample_us);
    }
    samples
}

impl Samples {
    /// The figures of the samples over the window as a whole.
    fn course(&self) -> Option<TargetCourse> {
        let seen = |one: &StallSample| Some((one.at_s, one.sample.clone().ok()?));
        let all: Vec<(f64, TargetSample)> = self.all.iter().filter_map(seen).collect();
        let ((from_s, first), (to_s, last)) = (all.first()?, all.last()?);
        let span = SampleSpan::between(first, last, to_s - from_s);
        let for_redo = span.per(|one| one.pages_flushed_for_redo, |one| one.pages_flushed);
        let age_pct = |(_, one): &(f64, TargetSample)| SampleSpan::first(one).checkpoint_age_pct();
        let ages: Vec<f64> = all.iter().filter_map(age_pct).collect();
        let history = all.iter().filter_map(|(_, one)| one.history_list_length);
        Some(TargetCourse {
            redo_bytes_per_s: span.per_s(|one| one.redo_end_bytes),
            pages_dirtied_per_s: span.pages_dirtied().map(|pages| (pages / span.seconds).max(0.0)),
            furious_flushes: span.grown(|one| one.furious_flushes),
            flushed_for_redo_pct: for_redo.map(|share| 100.0 * share),
            checkpoint_age_pct_mean: mean(&ages),
            checkpoint_age_pct_max: ages.iter().copied().reduce(f64::max),
            history_list_length_max: history.max(),
            history_list_length_end: last.history_list_length,
        })
    }

    fn cost(&self) -> Option<SamplerCost> {
        let us = &self.took_us;
        (!us.is_empty()).then(|| SamplerCost {
            samples: us.len() as u64,
            failed: self.all.iter().filter(|one| one.sample.is_err()).count() as u64,
            sample_us_mean: us.iter().sum::<f64>() / us.len() as f64,
            sample_us_max: us.iter().copied().fold(0.0, f64::max),
        })
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

// What a database uses while a window is open.

/// Reads what a database has used when a window opens and when it closes.
pub(crate) struct UseWatch<'a> {
    used: &'a dyn Fn() -> ResourceUse,
    opened: ResourceUse,
    closed: ResourceUse,
}

impl<'a> UseWatch<'a> {
    /// `used` returns what was used so far.
    pub fn new(used: &'a dyn Fn() -> ResourceUse) -> Self {
        let nothing = ResourceUse::default();
        Self { used, opened: nothing, closed: nothing }
    }

    /// What was used in the window.
    pub fn used(&self) -> ResourceUse {
        self.closed.since(&self.opened)
    }
}

impl Watcher for UseWatch<'_> {
    fn opened(&mut self) {
        self.opened = (self.used)();
    }

    fn closed(&mut self) {
        self.closed = (self.used)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_say_what_a_window_asked_of_the_storage() {
        let sample = |at_s: f64, redo: u64, flushed: u64, dirty: u64, age: u64| StallSample {
            at_s,
            sample: Ok(TargetSample {
                redo_end_bytes: Some(redo),
                pages_flushed: Some(flushed),
                dirty_pages: Some(dirty),
                checkpoint_age_bytes: Some(age),
                checkpoint_age_limit_bytes: Some(1000),
                pages_flushed_for_redo: Some(flushed / 2),
                furious_flushes: Some(flushed / 100),
                ..TargetSample::default()
            }),
        };
        let refused = StallSample { at_s: 1.0, sample: Err("gone".to_owned()) };
        let all = vec![sample(0.0, 500, 50, 40, 100), refused, sample(2.0, 2500, 250, 60, 700)];
        let course = Samples { all, took_us: Vec::new() }.course().unwrap();
        assert_eq!(course.redo_bytes_per_s, Some(1000.0));
        assert_eq!(course.pages_dirtied_per_s, Some(110.0), "200 flushed, 20 more are dirty");
        assert_eq!((course.furious_flushes, course.flushed_for_redo_pct), (Some(2), Some(50.0)));
        assert_eq!(
            (course.checkpoint_age_pct_mean, course.checkpoint_age_pct_max),
            (Some(40.0), Some(70.0))
        );
        assert_eq!(course.history_list_length_max, None, "what is not told is absent");
        assert_eq!(Samples::default().course(), None);
    }

    /// Reports nothing.
    struct Silent;

    impl Sampler for Silent {
        fn sample(&mut self) -> Result<TargetSample, iostrata_database::target::TargetError> {
            Ok(TargetSample::default())
        }
    }

    #[test]
    fn a_sample_that_took_long_is_not_made_up_for() {
        let late = Duration::from_secs(10);
        let Some(began) = Instant::now().checked_sub(late) else { return };
        let mut pace = SamplePace::new(began, EVERY, EVERY);
        let asked = pace.next(&mut Silent, |wait| wait.is_zero()).unwrap();
        assert!(asked.at_s >= 10.0 && asked.sample.is_ok());
        assert!(pace.due() >= late, "the nine in between are left out: {:?}", pace.due());
        let due = pace.due();
        assert!(pace.next(&mut Silent, |_| false).is_none(), "it is over");
        assert_eq!(pace.due(), due);
    }
}
