//! What every window has, whatever its workers do: they start together, one thread decides when it
//! ends and waits for them; its observers, and what surrounds it.
//!
//! Invariant: all workers see the same start and the same end. A window of exact length ends then
//! and only then, unless it is interrupted or its workers end it. It does not depend on the kind of
//! load and computes no figure.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iostrata_plan::OpKind;
use iostrata_stats::{Stop, StoppingRule, choose_cut};

use crate::clock::{Clock, Ticks};
use crate::error::LoadError;
use crate::figures::WindowFigures;
use crate::shared_stats::{SharedStats, WorkerState, start_poll};
use crate::tally::Slices;
use crate::transactions::LiveFigures;

/// How often the controller checks the window.
const LOOK: Duration = Duration::from_millis(4);
/// Slices before the planned end of a window at which it is decided whether it needs to be longer.
const END_NOTICE: usize = 10;
/// Slices before the present one that workers may not have posted yet.
const UNPOSTED: usize = 2;
/// Workers get the start time at least this long before it,
const NOTICE_NS: u64 = 2_000_000;
/// and so many of their looks.
const NOTICE_LOOKS: u32 = 2;
/// Segments that can be cut as warm-up begin at these parts of the longest window.
const WARM_UP_PARTS: [u32; 6] = [64, 32, 16, 12, 8, 4];

/// The slices at which segments begin where a warm-up is found in so many.
pub(crate) fn warm_up_cuts(slices: u32) -> Vec<usize> {
    let mut cuts = vec![0];
    cuts.extend(WARM_UP_PARTS.map(|part| (slices / part) as usize));
    cuts.dedup();
    cuts
}

/// Groups of slices in which a warm-up of transactions is looked for: there may be fewer of them
/// than slices, and a slice without any is no stall. Every part of [`WARM_UP_PARTS`] is whole.
const WARM_UP_GROUPS: usize = 192;

/// Where the warm-up of transactions ends: one of [`warm_up_cuts`] of so many slices.
pub(crate) fn transactions_warm_up(counts: &[f64], slices: u32) -> usize {
    let group = (slices as usize / WARM_UP_GROUPS).max(1);
    let groups: Vec<f64> = counts.chunks_exact(group).map(|group| group.iter().sum()).collect();
    let cuts = warm_up_cuts(slices);
    let in_groups: Vec<usize> = cuts.iter().map(|cut| (cut + group / 2) / group).collect();
    let found = choose_cut(&groups, &in_groups);
    let at = in_groups.iter().position(|cut| *cut == found);
    at.map_or(0, |at| cuts[at])
}

/// How long a window is.
#[derive(Clone, Debug)]
pub(crate) enum Length {
    /// All slices.
    Exact,
    /// Exactly so many slices behind a warm-up that is found in the first ones of them.
    Behind {
        /// Slices that count.
        slices: u32,
    },
    /// Until it is precise enough.
    Precise {
        /// What decides that.
        rule: StoppingRule,
        /// Slices after which the window ends, unless its operations are slow.
        planned: u32,
    },
}

/// How a window went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowEnd {
    /// Whether a signal ended it.
    pub interrupted: bool,
    /// Where its warm-up was found to end, if that had to be known meanwhile.
    pub cut_slice: Option<usize>,
}

/// What is done at every look at an open window; true ends it.
type AtLook<'a> = &'a mut dyn FnMut(&mut dyn WindowObserver, f64) -> bool;

/// A window that is about to be measured.
pub(crate) struct Controller<C> {
    pub shared: SharedStats,
    pub clock: C,
    pub length: Length,
    /// Workers of the stream that decides when the window ends.
    pub main_workers: Vec<u32>,
    /// What they do.
    pub main_kinds: Vec<OpKind>,
}

impl<C: Clock> Controller<C> {
    /// Starts a thread for each worker, opens the window when all are ready, and waits for them.
    pub(crate) fn run<T: Send>(
        &self,
        work: impl Fn(u32) -> Result<T, LoadError> + Sync,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
        at_look: AtLook<'_>,
    ) -> Result<(Vec<T>, WindowEnd), LoadError> {
        let workers = self.shared.layout().workers;
        std::thread::scope(|scope| {
            let mut handles = Vec::with_capacity(workers as usize);
            let mut spawned = Ok(());
            for worker in 0..workers {
                let named = std::thread::Builder::new().name(format!("worker-{worker}"));
                let work = &work;
                match named.spawn_scoped(scope, move || work(worker)) {
                    Ok(handle) => handles.push(handle),
                    Err(source) => {
                        spawned = Err(LoadError::Spawn { worker, workers, source });
                        break;
                    }
                }
            }
            let all_ready = spawned.is_ok() && self.wait_until_ready();
            let conducted = self.conduct(all_ready, surroundings, observer, at_look);
            let outcomes: Result<Vec<T>, LoadError> = handles
                .into_iter()
                .zip(0..)
                .map(|(handle, worker)| match handle.join() {
                    Ok(outcome) => outcome,
                    Err(panic) => {
                        Err(LoadError::WorkerPanicked { worker, why: panic_text(&*panic) })
                    }
                })
                .collect();
            spawned.and(outcomes).map(|outcomes| (outcomes, conducted))
        })
    }

    /// Waits until no worker is starting; false when one has already ended, which is a failure.
    fn wait_until_ready(&self) -> bool {
        let is_any = |state| {
            let mut numbers = 0..self.shared.layout().workers;
            numbers.any(|number| self.shared.state(number) == state)
        };
        loop {
            let is_starting = is_any(WorkerState::Starting);
            if is_any(WorkerState::Done) {
                return false;
            }
            if !is_starting {
                return true;
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    /// Whether every worker has ended by itself.
    fn all_done(&self) -> bool {
        let mut numbers = 0..self.shared.layout().workers;
        numbers.all(|number| self.shared.state(number) == WorkerState::Done)
    }

    /// Opens the window and ends it when it is time.
    fn conduct(
        &self,
        all_ready: bool,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn WindowObserver,
        at_look: AtLook<'_>,
    ) -> WindowEnd {
        let mut conducted = WindowEnd::default();
        if !all_ready {
            self.shared.post_start(self.clock.now().max(1));
            self.shared.post_stop_after(1);
            return conducted;
        }
        observer.opened();
        let looks = start_poll(self.shared.layout().workers) * NOTICE_LOOKS;
        let notice_ns = NOTICE_NS.max(looks.as_nanos() as u64);
        let start = self.clock.now() + self.clock.ticks_in(notice_ns);
        self.shared.post_start(start);
        self.shared.post_stop_after(u64::from(self.shared.layout().slices));
        let mut next_check = match &self.length {
            Length::Precise { rule, .. } => rule.next_check(0),
            Length::Exact | Length::Behind { .. } => 0,
        };
        loop {
            // The end may come closer at any moment.
            let left_ns = self.clock.to_ns(self.shared.stop().saturating_sub(self.clock.now()));
            std::thread::sleep(LOOK.min(Duration::from_nanos(left_ns + 10_000)));
            let are_done = self.all_done();
            let now = self.clock.now();
            // The last look is one after the end: it sees the last second.
            let is_over = are_done || now >= self.shared.stop();
            let open_s = self.clock.to_ns(now.saturating_sub(start)) as f64 * 1e-9;
            observer.open(open_s);
            let mut ends = at_look(observer, open_s) || are_done;
            if !conducted.interrupted && surroundings.interrupted.load(Ordering::Relaxed) {
                conducted.interrupted = true;
                ends = true;
            }
            if ends {
                self.shared.post_stop_soon(self.clock.now());
            }
            if !are_done {
                self.look(start, &mut next_check, &mut conducted.cut_slice);
            }
            if is_over {
                break;
            }
        }
        observer.closed();
        conducted
    }

    /// Decides at a look whether the window ends, and when.
    pub(crate) fn look(&self, start: Ticks, next_check: &mut usize, cut_slice: &mut Option<usize>) {
        match &self.length {
            Length::Exact => {}
            Length::Behind { slices } => {
                let posted = self.posted(start);
                if cut_slice.is_none() && posted + END_NOTICE >= *slices as usize {
                    let cut = self.cut_in(posted.min(*slices as usize), *slices);
                    *cut_slice = Some(cut);
                    self.shared.post_stop_after(cut as u64 + u64::from(*slices));
                }
            }
            Length::Precise { rule, planned } => {
                *next_check = self.check(start, rule, *next_check);
                self.end_as_planned(start, *planned as usize);
            }
        }
    }

    /// Where the warm-up ends by the first so many slices.
    fn cut_in(&self, posted: usize, slices: u32) -> usize {
        transactions_warm_up(&self.main_slices(posted).counts(|_| true), slices)
    }

    /// Slices that every worker has posted: one counts as posted once the one after the next has
    /// begun.
    fn posted(&self, start: Ticks) -> usize {
        let begun = self.clock.now().saturating_sub(start) / self.shared.layout().slice_ticks;
        (begun as usize).saturating_sub(UNPOSTED)
    }

    /// Ends the window early if it is time to look and the main stream is precise enough.
    fn check(&self, start: Ticks, rule: &StoppingRule, next_check: usize) -> usize {
        // On a busy machine this thread may look after the last slice has ended.
        if self.posted(start) < next_check || next_check > self.shared.layout().slices as usize {
            return next_check;
        }
        let slices = self.main_slices(next_check);
        let counts = slices.counts(|_| true);
        if self.is_long_enough(&slices) && rule.decide(&counts) == Stop::Enough {
            self.shared.post_stop_soon(self.clock.now());
        }
        rule.next_check(next_check)
    }

    /// Ends a window whose time is up, unless its operations are so slow that it needs more.
    fn end_as_planned(&self, start: Ticks, planned: usize) {
        let (posted, most) = (self.posted(start), self.shared.layout().slices as usize);
        let is_up = planned < most && posted + END_NOTICE >= planned;
        if is_up && self.is_long_enough(&self.main_slices(posted.min(most))) {
            // One that had to go on ends with the present slice, not at a moment that is past: what
            // a slow request was waited for counts.
            self.shared.post_stop_after(planned.max(posted + UNPOSTED + 1) as u64);
        }
    }

    /// Whether these slices last long enough for operations as slow as theirs.
    fn is_long_enough(&self, slices: &Slices) -> bool {
        let slice_ns = self.clock.to_ns(self.shared.layout().slice_ticks) as f64;
        slices.window_ns_min().is_some_and(|least| slices.len as f64 * slice_ns >= least)
    }

    /// Tallies of the first slices of the stream that decides.
    fn main_slices(&self, len: usize) -> Slices {
        self.shared.slices(&self.main_workers, &self.main_kinds, len)
    }

    /// Slices that the window had in the end.
    pub(crate) fn used_slices(&self) -> usize {
        let layout = self.shared.layout();
        let start = self.shared.start().unwrap_or_default();
        let used = self.shared.stop().saturating_sub(start) / layout.slice_ticks;
        used.min(u64::from(layout.slices)) as usize
    }

    /// Seconds of one slice.
    pub(crate) fn slice_s(&self) -> f64 {
        let layout = self.shared.layout();
        self.clock.to_ns(layout.slice_ticks * u64::from(layout.slices)) as f64 * 1e-9
            / f64::from(layout.slices)
    }

    /// Seconds from the start until a worker began to read back what it had written.
    pub(crate) fn reads_back_s(&self, worker: u32) -> Option<f64> {
        let after = self.shared.reads_back(worker);
        (after > 0).then(|| self.clock.to_ns(after) as f64 * 1e-9)
    }

    /// Seconds from the start to the end of a worker's part; 0 where it failed to report that time.
    pub(crate) fn ended_s(&self, worker: u32) -> f64 {
        self.clock.to_ns(self.shared.ended(worker)) as f64 * 1e-9
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

/// Is called when the window opens and closes.
pub trait WindowObserver {
    /// Called just before the window opens.
    fn opened(&mut self);
    /// Called every few milliseconds while it is open, with the seconds since it opened.
    fn open(&mut self, elapsed_s: f64);
    /// Called once when the warm-up of transactions is over.
    fn warmed_up(&mut self) {}
    /// Called once a second while transactions run.
    fn live(&mut self, _figures: &LiveFigures) {}
    /// Called just after the window closed.
    fn closed(&mut self);
}

/// No observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl WindowObserver for NoObserver {
    fn opened(&mut self) {}
    fn open(&mut self, _elapsed_s: f64) {}
    fn closed(&mut self) {}
}

/// Receives the figures so far, again and again while a window is open.
#[derive(Clone, Copy)]
pub struct Interim<'a> {
    /// How often.
    pub every: Duration,
    /// Takes them.
    pub on: &'a (dyn Fn(WindowFigures) + Sync),
}

impl std::fmt::Debug for Interim<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interim").field("every", &self.every).finish_non_exhaustive()
    }
}

/// What surrounds a window.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// Set by a signal: the window ends soon and what was measured is kept.
    pub interrupted: &'a AtomicBool,
    /// This program, for workers that are processes.
    pub program: Option<PathBuf>,
}
