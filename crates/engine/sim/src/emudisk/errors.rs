//! Requests that fail although the disk could answer, because it was asked to.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use iostrata_stats::Random;

/// A million, of which the rate is a part.
const MILLION: u64 = 1_000_000;

/// What fails.
#[derive(Debug)]
pub(crate) struct Errors {
    /// Whether anything does; looked at first, so that a sound disk pays nothing.
    are_asked_for: AtomicBool,
    wanted: Mutex<Wanted>,
    injected: AtomicU64,
}

#[derive(Debug)]
struct Wanted {
    range: Option<Range<u64>>,
    per_million: u64,
    random: Random,
}

impl Errors {
    pub(crate) fn new(seed: u64) -> Self {
        let wanted = Wanted { range: None, per_million: 0, random: Random::new(seed) };
        Self {
            are_asked_for: AtomicBool::new(false),
            wanted: Mutex::new(wanted),
            injected: AtomicU64::new(0),
        }
    }

    /// How many requests failed for it.
    pub(crate) fn injected(&self) -> u64 {
        self.injected.load(Ordering::Relaxed)
    }

    pub(crate) fn set_range(&self, range: Option<Range<u64>>) {
        self.set(|wanted| wanted.range = range);
    }

    pub(crate) fn set_rate(&self, per_million: u32) {
        self.set(|wanted| wanted.per_million = per_million.into());
    }

    fn set(&self, change: impl FnOnce(&mut Wanted)) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut wanted);
        let any = wanted.range.is_some() || wanted.per_million > 0;
        self.are_asked_for.store(any, Ordering::Release);
    }

    /// Whether a request on these bytes fails; counted when it does.
    pub(crate) fn hit(&self, bytes: Range<u64>) -> bool {
        if !self.are_asked_for.load(Ordering::Acquire) {
            return false;
        }
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let touches = |bad: &Range<u64>| bytes.start < bad.end && bad.start < bytes.end;
        let is_hit = wanted.range.as_ref().is_some_and(touches)
            || wanted.random.below(MILLION) < wanted.per_million;
        self.injected.fetch_add(is_hit.into(), Ordering::Relaxed);
        is_hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_fails() {
        let errors = Errors::new(1);
        assert!(!errors.hit(0..u64::MAX));
        errors.set_range(Some(4096..8192));
        let hits = [0..4096, 4095..4097, 5000..5001, 8191..9000, 8192..9000];
        assert_eq!(hits.map(|bytes| errors.hit(bytes)), [false, true, true, true, false]);
        errors.set_range(None);
        errors.set_rate(500_000);
        let hits = (0..1000).filter(|at| errors.hit(*at..at + 1)).count();
        assert!((400..600).contains(&hits), "{hits} of 1000 at half");
        errors.set_rate(0);
        assert!(!errors.hit(4096..8192));
        assert_eq!(errors.injected(), 3 + hits as u64);
    }
}
