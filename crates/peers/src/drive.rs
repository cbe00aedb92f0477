//! Threads that do one thing over and over, and what came of it, slice by slice.
//!
//! Purpose: the same closed loop for every engine and workload.
//! Invariants: all threads are ready before the clock starts; an operation counts in the slice in
//! which it ended, and only within the window; a slice without any counts as 0, so a stall shows.
//! One reading of the clock per tick.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

use iostrata_stats::LatencyHistogram;

use crate::counters::{Counters, Reading};
use crate::error::PeerError;

/// Length of a slice of time.
pub const SLICE: Duration = Duration::from_millis(50);

/// What one thread does.
pub trait Work {
    /// Does some of it and reports by `tick` how many operations it ended, once or more; it returns
    /// soon after a tick has answered to break.
    ///
    /// # Errors
    /// When the engine refuses or its data is wrong.
    fn step(&mut self, tick: &mut Tick<'_>) -> Result<ControlFlow<()>, PeerError>;
}

/// Counts operations that have just ended.
pub type Tick<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// When to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Time that is not counted, before.
    pub warmup: Duration,
    /// Time that is counted; whole slices of it are.
    pub length: Duration,
}

impl Window {
    /// Slices in it.
    pub fn slices(self) -> usize {
        (self.length.as_millis() / SLICE.as_millis()) as usize
    }
}

/// What came of it.
#[derive(Clone)]
pub struct Course {
    /// Operations in each slice, all threads.
    pub slices: Vec<u64>,
    /// Time from each tick to the next: of commits, their latency.
    pub latency: LatencyHistogram,
    /// What the system counted meanwhile.
    pub passed: Reading,
    /// Ticks of each thread, warm-up included.
    pub ticks: Vec<u64>,
    /// Threads.
    pub threads: usize,
}

impl Course {
    /// Operations within the window.
    pub fn operations(&self) -> u64 {
        self.slices.iter().sum()
    }
}

/// Where and how long.
pub struct Drive<'a> {
    /// Threads.
    pub threads: usize,
    /// When to count.
    pub window: Window,
    /// What the system counts.
    pub counters: &'a Counters,
    /// Set when a signal came.
    pub stop: &'a AtomicBool,
}

/// What one thread brings home.
struct ThreadTotals {
    slices: Vec<u64>,
    latency: LatencyHistogram,
    ticks: u64,
}

impl Drive<'_> {
    /// Runs the work that `begin` makes in each thread; `watch` is called about once per slice.
    ///
    /// # Errors
    /// The first error of any thread; `Interrupted` when a signal came.
    pub fn run<'s>(
        &self,
        begin: &(dyn Fn(usize) -> Result<Box<dyn Work + 's>, PeerError> + Sync),
        watch: &mut dyn FnMut(Duration),
    ) -> Result<Course, PeerError> {
        let start = OnceLock::new();
        let (ready, go) = (Barrier::new(self.threads + 1), Barrier::new(self.threads + 1));
        let failed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|thread| {
                    let (start, ready, go, failed) = (&start, &ready, &go, &failed);
                    scope.spawn(move || {
                        let work = begin(thread);
                        ready.wait();
                        go.wait();
                        let start = *start.get_or_init(Instant::now);
                        let tally = work.and_then(|work| self.repeat(work, start, failed));
                        if tally.is_err() {
                            failed.store(true, Ordering::SeqCst);
                        }
                        tally
                    })
                })
                .collect();
            ready.wait();
            let start = *start.get_or_init(|| Instant::now() + self.window.warmup);
            go.wait();
            let passed = self.count(start, &failed, watch);
            let tallies = threads
                .into_iter()
                .map(|thread| thread.join().map_err(|_| PeerError::Panicked)?)
                .collect::<Result<Vec<ThreadTotals>, PeerError>>()?;
            if self.stop.load(Ordering::SeqCst) {
                return Err(PeerError::Interrupted);
            }
            Ok(self.gathered(tallies, passed))
        })
    }

    /// One thread's loop.
    fn repeat(
        &self,
        mut work: Box<dyn Work + '_>,
        start: Instant,
        failed: &AtomicBool,
    ) -> Result<ThreadTotals, PeerError> {
        let slices = vec![0; self.window.slices()];
        let mut tally = ThreadTotals { slices, latency: LatencyHistogram::new(), ticks: 0 };
        let end = start + SLICE * self.window.slices() as u32;
        let mut before = Instant::now();
        let mut tick = |operations: u64| {
            let now = Instant::now();
            tally.ticks += 1;
            if let Some(since) = now.checked_duration_since(start) {
                let at = (since.as_nanos() / SLICE.as_nanos()) as usize;
                if let Some(slice) = tally.slices.get_mut(at) {
                    *slice += operations;
                    let latency = now.duration_since(before).as_nanos();
                    tally.latency.record_ns(u64::try_from(latency).unwrap_or(u64::MAX));
                }
            }
            before = now;
            let asked = failed.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed);
            if now >= end || asked { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        while work.step(&mut tick)?.is_continue() {}
        Ok(tally)
    }

    /// Waits for the window to pass; what the system counted within it.
    fn count(
        &self,
        start: Instant,
        failed: &AtomicBool,
        watch: &mut dyn FnMut(Duration),
    ) -> Reading {
        std::thread::sleep(start.saturating_duration_since(Instant::now()));
        let before = self.counters.read();
        for slice in 0..self.window.slices() as u32 {
            if failed.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed) {
                break;
            }
            watch(SLICE * slice);
            let next = start + SLICE * (slice + 1);
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        self.counters.read().since(before)
    }

    fn gathered(&self, tallies: Vec<ThreadTotals>, passed: Reading) -> Course {
        let mut course = Course {
            slices: vec![0; self.window.slices()],
            latency: LatencyHistogram::new(),
            passed,
            ticks: Vec::new(),
            threads: self.threads,
        };
        for tally in tallies {
            course.slices.iter_mut().zip(&tally.slices).for_each(|(sum, one)| *sum += one);
            course.latency.merge(&tally.latency);
            course.ticks.push(tally.ticks);
        }
        course
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    struct Pause {
        left: Option<u32>,
    }

    impl Work for Pause {
        fn step(&mut self, tick: &mut Tick<'_>) -> Result<ControlFlow<()>, PeerError> {
            std::thread::sleep(Duration::from_millis(1));
            if let Some(left) = &mut self.left {
                *left -= 1;
                if *left == 0 {
                    return Err(PeerError::NotBuilt { engine: "none" });
                }
            }
            Ok(tick(3))
        }
    }

    fn drive(left: Option<u32>, stop: bool) -> (Result<Course, PeerError>, u32) {
        let counters = Counters::of(Path::new("/"));
        let stop = AtomicBool::new(stop);
        let length = Duration::from_millis(200);
        let window = Window { warmup: Duration::from_millis(20), length };
        let drive = Drive { threads: 2, window, counters: &counters, stop: &stop };
        let mut watched = 0;
        let begin = |thread: usize| -> Result<Box<dyn Work>, PeerError> {
            Ok(Box::new(Pause { left: left.filter(|_| thread == 1) }))
        };
        let course = drive.run(&begin, &mut |_| watched += 1);
        (course, watched)
    }

    #[test]
    fn what_ends_within_the_window_counts() {
        let (course, watched) = drive(None, false);
        let course = course.unwrap();
        assert_eq!((course.slices.len(), watched, course.threads), (4, 4, 2));
        assert_eq!(course.operations(), 3 * course.latency.count());
        let ticks: u64 = course.ticks.iter().sum();
        assert!(ticks > course.latency.count(), "the warm-up does not count");
        assert!(course.operations() > 0);
    }

    #[test]
    fn an_error_or_a_signal_ends_all_threads() {
        let (failed, _) = drive(Some(2), false);
        assert!(matches!(failed, Err(PeerError::NotBuilt { .. })));
        assert!(matches!(drive(None, true).0, Err(PeerError::Interrupted)));
    }
}
