//! A sample of the target per second while a window is open, for the causes of its stalls.
//!
//! Invariant: it runs on a thread and a connection of its own, and ends with the window. What it
//! costs is kept. It decides nothing about the run: a target that does not tell is not asked.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use iostrata_run::{Replicate, SamplerCost};
use iostrata_study::{Watcher, transaction_stalls};
use iostrata_target::{Sampled, Sampler, Stalled, Target, stall_cause};

use crate::display::Display;

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
    /// Samples of a target, where it gives any.
    pub fn of(target: &dyn Target, display: &Display) -> Self {
        let sampler = target.sampler().unwrap_or_else(|error| {
            display.note(&format!("causes of stalls will be unknown: {error}"));
            None
        });
        Self { sampler, running: None, samples: Samples::default() }
    }

    /// Names the stalls of a replicate, which this has watched.
    pub fn explain(&self, replicate: &mut Replicate, sessions: u32) {
        let cause =
            |from_s, to_s| stall_cause(&self.samples.all, Stalled { from_s, to_s, sessions });
        let (stalls, sampler) = (transaction_stalls(replicate, &cause), self.samples.cost());
        let stream = replicate.streams.first_mut();
        if let Some(counts) = stream.and_then(|stream| stream.transactions.as_mut()) {
            (counts.stalls, counts.sampler) = (stalls, sampler);
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
