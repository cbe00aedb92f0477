//! What the workers of a window of transactions share apart from the statistics, and its present
//! rates, for the live display.
//!
//! Invariant: whatever workers share is written rarely, or by one worker each.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::transactions::agenda::Agenda;
use crate::transactions::source::{FailedTransaction, Reach};

/// What all workers share.
pub(crate) struct Crew {
    /// What is due next; absent in a closed loop.
    pub agenda: Option<Agenda>,
    /// Terminals, where they are apart from slots.
    pub homes: Option<u32>,
    /// Seed of every random choice.
    pub seed: u64,
    /// What happens at the moment.
    pub live: Live,
    /// Whether more arrived than could wait.
    pub is_overloaded: AtomicBool,
    /// Workers.
    pub workers: u32,
    /// Sessions that are gone.
    pub gone: LostSessions,
    /// What failed.
    pub failures: Failures,
    /// The number of transactions to run, if bounded.
    pub events: Option<Events>,
}

/// Transactions of a window that ends after so many.
pub(crate) struct Events {
    most: u64,
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Events {
    /// So many.
    pub(crate) fn new(most: u64) -> Self {
        Self { most, begun: AtomicU64::new(0), ended: AtomicU64::new(0) }
    }

    /// Whether one more may begin.
    pub(crate) fn begin(&self) -> bool {
        self.begun.fetch_add(1, Ordering::Relaxed) < self.most
    }

    /// One has ended; whether it was the last.
    pub(crate) fn end(&self) -> bool {
        self.ended.fetch_add(1, Ordering::Relaxed) + 1 == self.most
    }
}

/// The target's errors of transactions that failed.
#[derive(Default)]
pub(crate) struct Failures {
    words: Mutex<FirstWords>,
    /// Codes that end nothing; `all` for every one.
    ignored: Vec<String>,
}

#[derive(Default)]
struct FirstWords {
    /// The first message of each code.
    by_code: BTreeMap<String, String>,
    /// The code after which nothing could be done any more.
    ended_by: Option<String>,
    /// The first code that speaks against the window.
    spoiled_by: Option<String>,
}

impl Failures {
    fn lock(&self) -> std::sync::MutexGuard<'_, FirstWords> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of which some end nothing.
    pub(crate) fn ignoring(codes: &[String]) -> Self {
        Self { ignored: codes.to_vec(), ..Self::default() }
    }

    /// Whether failures with this code end nothing.
    pub(crate) fn ignores(&self, code: &str) -> bool {
        self.ignored.iter().any(|one| one == code || one == "all")
    }

    /// A transaction failed; what is over with it.
    pub(crate) fn add(&self, failed: &FailedTransaction) -> Reach {
        let mut words = self.lock();
        if !words.by_code.contains_key(&failed.code) {
            words.by_code.insert(failed.code.clone(), failed.text.clone());
        }
        let code = match failed.reach {
            Reach::Session => return Reach::Session,
            _ if self.ignores(&failed.code) => return Reach::Transaction,
            Reach::Run => &mut words.ended_by,
            Reach::Window => &mut words.spoiled_by,
            Reach::Transaction => return Reach::Transaction,
        };
        code.get_or_insert_with(|| failed.code.clone());
        failed.reach
    }

    /// The code after which nothing could be done any more, and its message.
    pub(crate) fn ended_by(&self) -> Option<(String, String)> {
        let words = self.lock();
        let code = words.ended_by.clone()?;
        let text = words.by_code.get(&code).cloned().unwrap_or_default();
        Some((code, text))
    }

    /// The code that speaks against the window, however many were done.
    pub(crate) fn spoiled_by(&self) -> Option<String> {
        self.lock().spoiled_by.clone()
    }

    /// The message of a code.
    pub(crate) fn text(&self, code: &str) -> String {
        self.lock().by_code.get(code).cloned().unwrap_or_default()
    }
}

/// How many sessions are gone, and why.
pub(crate) struct LostSessions {
    sessions: u32,
    gone: AtomicU32,
    code: Mutex<String>,
}

impl LostSessions {
    /// None of so many.
    pub(crate) fn new(sessions: u32) -> Self {
        Self { sessions, gone: AtomicU32::new(0), code: Mutex::default() }
    }

    /// A session is gone.
    pub(crate) fn add(&self, code: &str) {
        self.gone.fetch_add(1, Ordering::Relaxed);
        self.note(code);
    }

    /// Records the code of an error of the target.
    pub(crate) fn note(&self, code: &str) {
        let mut last = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        code.clone_into(&mut last);
    }

    /// A session is back.
    pub(crate) fn remove(&self) {
        self.gone.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether none is left.
    pub(crate) fn are_all(&self) -> bool {
        self.gone.load(Ordering::Relaxed) >= self.sessions
    }

    /// The number of sessions.
    pub(crate) fn sessions(&self) -> u32 {
        self.sessions
    }

    /// The target's last error code.
    pub(crate) fn code(&self) -> String {
        self.code.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

// The present rates of a window of transactions, for the live display.
//
// Invariants: each worker counts in memory of its own, so that counting takes no lock and never
// waits; figures are made by the reader. They are rough (a latency is within 7 %) and no
// part of what is measured.

/// Parts of each power of two.
const PARTS: u64 = 8;
const PARTS_BITS: u32 = PARTS.trailing_zeros();
/// Powers of two of a microsecond, up to an hour and more.
const POWERS: usize = 33;
const BUCKETS: usize = POWERS * PARTS as usize;

/// What happened in the last second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiveFigures {
    /// Seconds since the window opened.
    pub at_s: f64,
    /// Whether nothing is counted yet, because a warm-up of given length goes on.
    pub is_warm_up: bool,
    /// Transactions per second.
    pub tps: f64,
    /// The requested percentile of their latency, from the schedule where there is one; absent
    /// where nothing completed. In microseconds.
    pub percentile_us: Option<f64>,
    /// Transactions that failed, per second.
    pub errors_per_s: f64,
}

/// Counters of one worker.
struct Counters {
    latencies: [AtomicU64; BUCKETS],
    errors: AtomicU64,
}

/// Counters of all workers.
pub(crate) struct Live(Box<[Counters]>);

/// What was there at the last look.
pub(crate) struct LastLook {
    /// In percent.
    percentile: f64,
    at_s: f64,
    latencies: Vec<u64>,
    errors: u64,
}

/// The bucket of a latency.
fn bucket_of(latency_ns: u64) -> usize {
    let us = (latency_ns / 1000).max(1);
    let power = us.ilog2();
    // The bits behind the first one, as far as they count.
    let part = match power.checked_sub(PARTS_BITS) {
        Some(shift) => (us >> shift) & (PARTS - 1),
        None => (us << (PARTS_BITS - power)) & (PARTS - 1),
    };
    (power as usize * PARTS as usize + part as usize).min(BUCKETS - 1)
}

/// The middle of a bucket in microseconds.
fn middle_us(bucket: usize) -> f64 {
    let (power, part) = (bucket / PARTS as usize, bucket % PARTS as usize);
    (1.0 + (part as f64 + 0.5) / PARTS as f64) * 2.0_f64.powi(power as i32)
}

impl Live {
    pub(crate) fn new(workers: u32) -> Self {
        let counters = |_| Counters {
            latencies: [const { AtomicU64::new(0) }; BUCKETS],
            errors: AtomicU64::new(0),
        };
        Self((0..workers).map(counters).collect())
    }

    /// Counts a transaction of a worker. Only that worker may call it.
    #[inline]
    pub(crate) fn record(&self, worker: u32, latency_ns: u64) {
        let counter = &self.0[worker as usize].latencies[bucket_of(latency_ns)];
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }

    /// Counts a failure of a worker. Only that worker may call it.
    pub(crate) fn fail(&self, worker: u32) {
        let counter = &self.0[worker as usize].errors;
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }

    fn sums(&self) -> (Vec<u64>, u64) {
        let of = |bucket: usize| self.0.iter().map(|one| one.latencies[bucket].load(Relaxed)).sum();
        let errors = self.0.iter().map(|one| one.errors.load(Relaxed)).sum();
        ((0..BUCKETS).map(of).collect(), errors)
    }
}

impl LastLook {
    /// Before the first look.
    pub(crate) fn new(percentile: f64) -> Self {
        Self { percentile, at_s: 0.0, latencies: vec![0; BUCKETS], errors: 0 }
    }

    /// Whether it is time to look again.
    pub(crate) fn is_due(&self, at_s: f64) -> bool {
        at_s - self.at_s >= 1.0
    }

    /// What happened since the last look.
    pub(crate) fn look(&mut self, live: &Live, at_s: f64) -> LiveFigures {
        let passed_s = (at_s - self.at_s).max(f64::MIN_POSITIVE);
        let (latencies, errors) = live.sums();
        let new: Vec<u64> =
            latencies.iter().zip(&self.latencies).map(|(now, then)| now - then).collect();
        let count: u64 = new.iter().sum();
        let failed = errors - self.errors;
        (self.at_s, self.latencies, self.errors) = (at_s, latencies, errors);
        let rank = (count as f64 * self.percentile / 100.0).ceil() as u64;
        let mut below = 0;
        let reached = new.iter().position(|one| {
            below += one;
            below >= rank
        });
        LiveFigures {
            at_s,
            is_warm_up: false,
            tps: count as f64 / passed_s,
            percentile_us: reached.filter(|_| count > 0).map(middle_us),
            errors_per_s: failed as f64 / passed_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_as_good_as_it_says() {
        for us in (1..2_000_u64).chain([10_000, 123_456, 5_000_000, 3_600_000_000]) {
            let found = middle_us(bucket_of(us * 1000));
            let error = (found / us as f64 - 1.0).abs();
            assert!(error < 0.07 || us < PARTS, "{us} us is shown as {found}");
        }
        assert_eq!(bucket_of(0), bucket_of(1));
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_look_tells_of_what_came_since_the_last_one() {
        let (live, mut last) = (Live::new(2), LastLook::new(95.0));
        (0..95).for_each(|_| live.record(0, 1_000_000));
        (0..5).for_each(|_| live.record(1, 50_000_000));
        live.fail(1);
        assert!(!last.is_due(0.9) && last.is_due(1.0));
        let first = last.look(&live, 1.0);
        assert_eq!((first.tps, first.errors_per_s), (100.0, 1.0));
        assert!((first.percentile_us.unwrap() / 1000.0 - 1.0).abs() < 0.07, "{first:?}");
        let second = last.look(&live, 3.0);
        assert_eq!((second.tps, second.percentile_us, second.errors_per_s), (0.0, None, 0.0));
        (0..2).for_each(|_| live.record(1, 50_000_000));
        let third = last.look(&live, 4.0);
        assert!((third.percentile_us.unwrap() / 50_000.0 - 1.0).abs() < 0.07, "{third:?}");
    }
}
