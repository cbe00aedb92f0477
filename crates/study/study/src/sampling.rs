//! A sample of the target per second while a window is open, for the causes of its stalls.
//!
//! Invariant: it runs on a thread and a connection of its own, and ends with the window. What it
//! costs is kept. It decides nothing about the run: a target that does not tell is not asked.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use iostrata_run::{Replicate, SamplerCost, TargetCourse};
use iostrata_target::{Sampled, Sampler, Stalled, Target, TargetSample, stall_cause};

use crate::{Watcher, transaction_stalls};

/// From one sample to the next.
const EVERY: Duration = Duration::from_secs(1);

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
    all: Vec<Sampled>,
    /// How long each took.
    took: Vec<Duration>,
}

impl Sampling {
    /// Samples of a target, where it gives any; `note` hears why it does not.
    pub fn of(target: &dyn Target, note: &mut dyn FnMut(&str)) -> Self {
        let sampler = target.sampler().unwrap_or_else(|error| {
            note(&format!("causes of stalls will be unknown: {error}"));
            None
        });
        Self { sampler, running: None, samples: Samples::default() }
    }

    /// Names the stalls of a replicate, which this has watched, and says what else was seen.
    pub fn explain(&self, replicate: &mut Replicate, sessions: u32) {
        let cause =
            |from_s, to_s| stall_cause(&self.samples.all, Stalled { from_s, to_s, sessions });
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
    let (opened, mut samples) = (Instant::now(), Samples::default());
    let mut due = Duration::ZERO;
    loop {
        let wait = due.saturating_sub(opened.elapsed());
        if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            return samples;
        }
        let before = opened.elapsed();
        let sample = sampler.sample().map_err(|error| error.code);
        let after = opened.elapsed();
        samples.all.push(Sampled { at_s: before.as_secs_f64(), sample });
        samples.took.push(after.saturating_sub(before));
        // One that took long is not made up for.
        due = (due + EVERY).max(after);
    }
}

impl Samples {
    /// What the samples say of the window as a whole.
    fn course(&self) -> Option<TargetCourse> {
        let seen = |one: &Sampled| Some((one.at_s, one.sample.clone().ok()?));
        let all: Vec<(f64, TargetSample)> = self.all.iter().filter_map(seen).collect();
        let ((from_s, first), (to_s, last)) = (all.first()?, all.last()?);
        let grown = |of: fn(&TargetSample) -> Option<u64>| of(last)?.checked_sub(of(first)?);
        let per_s = |count: f64| (to_s > from_s).then(|| count / (to_s - from_s));
        // What became dirty was flushed meanwhile, or is dirty now and was not before.
        let dirtied = || {
            let more = last.dirty_pages? as f64 - first.dirty_pages? as f64;
            per_s((grown(|one| one.pages_flushed)? as f64 + more).max(0.0))
        };
        let for_redo = || {
            let all = grown(|one| one.pages_flushed).filter(|pages| *pages > 0)?;
            Some(100.0 * grown(|one| one.pages_flushed_for_redo)? as f64 / all as f64)
        };
        let age_pct = |one: &TargetSample| {
            let limit = one.checkpoint_age_limit_bytes.filter(|limit| *limit > 0)?;
            Some(100.0 * one.checkpoint_age_bytes? as f64 / limit as f64)
        };
        let ages: Vec<f64> = all.iter().filter_map(|(_, one)| age_pct(one)).collect();
        let history = all.iter().filter_map(|(_, one)| one.history_list_length);
        Some(TargetCourse {
            redo_bytes_per_s: grown(|one| one.redo_end_bytes).and_then(|of| per_s(of as f64)),
            pages_dirtied_per_s: dirtied(),
            furious_flushes: grown(|one| one.furious_flushes),
            flushed_for_redo_pct: for_redo(),
            checkpoint_age_pct_mean: mean(&ages),
            checkpoint_age_pct_max: ages.iter().copied().reduce(f64::max),
            history_list_length_max: history.max(),
            history_list_length_end: last.history_list_length,
        })
    }

    fn cost(&self) -> Option<SamplerCost> {
        let us: Vec<f64> = self.took.iter().map(|took| took.as_secs_f64() * 1e6).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_say_what_a_window_asked_of_the_storage() {
        let sample = |at_s: f64, redo: u64, flushed: u64, dirty: u64, age: u64| Sampled {
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
        let refused = Sampled { at_s: 1.0, sample: Err("gone".to_owned()) };
        let all = vec![sample(0.0, 500, 50, 40, 100), refused, sample(2.0, 2500, 250, 60, 700)];
        let course = Samples { all, took: Vec::new() }.course().unwrap();
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
}
