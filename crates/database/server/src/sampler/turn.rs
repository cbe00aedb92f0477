//! When a query runs again whose answer takes the longer, the more sessions, transactions or tables
//! a server has.
//!
//! Invariant: it takes at most its share of the time, except for the first answers, which are
//! needed for any rate. The time of the quickest of the last answers counts: a server that is busy
//! for a moment answers late, and that is when samples matter most.

use std::time::{Duration, Instant};

/// Answers of which the quickest counts.
const LAST: usize = 3;

/// The turns of one question.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The next query runs after this many times the time that an answer took.
    rest: u32,
    /// The least and the most that passes.
    least: Duration,
    most: Duration,
    /// Answers that are queried as soon as they are wanted.
    at_once: u32,
    took: [Duration; LAST],
    asked: u32,
    due: Option<Instant>,
}

impl Turn {
    /// A query that may take one part in `rest` of the time, and runs `at_once` times without
    /// waiting.
    pub(crate) const fn new(rest: u32, at_once: u32) -> Self {
        let took = [Duration::ZERO; LAST];
        let (least, most) = (Duration::ZERO, Duration::MAX);
        Self { rest, least, most, at_once, took, asked: 0, due: None }
    }

    /// The same with bounds of what passes from one turn to the next.
    pub(crate) const fn within(self, least: Duration, most: Duration) -> Self {
        Self { least, most, ..self }
    }

    /// Whether it is time.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }

    /// It was queried, and how long the answer took.
    pub(crate) fn answered(&mut self, now: Instant, took: Duration) {
        self.took[self.asked as usize % LAST] = took;
        self.asked = self.asked.wrapping_add(1).max(1);
        let known = (self.asked as usize).min(LAST);
        let quickest = self.took.iter().take(known).min().copied().unwrap_or_default();
        let rest = quickest.saturating_mul(self.rest).clamp(self.least, self.most);
        self.due = if self.asked >= self.at_once { now.checked_add(rest) } else { None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_slow_answer_is_asked_for_seldom_and_one_late_answer_changes_nothing() {
        let (mut turn, now) = (Turn::new(100, 3), Instant::now());
        for _ in 0..2 {
            turn.answered(now, 20 * MS);
            assert!(turn.is_due(now), "rates need two");
        }
        turn.answered(now, 20 * MS);
        assert!(!turn.is_due(now + 1_999 * MS) && turn.is_due(now + 2_000 * MS));
        turn.answered(now, 900 * MS);
        assert!(turn.is_due(now + 2_000 * MS), "the server was busy");
        for _ in 0..2 {
            turn.answered(now, 900 * MS);
        }
        assert!(!turn.is_due(now + 89_999 * MS) && turn.is_due(now + 90_000 * MS));
    }

    #[test]
    fn bounds_hold() {
        let now = Instant::now();
        let mut turn = Turn::new(100, 0).within(500 * MS, 5_000 * MS);
        turn.answered(now, MS);
        assert!(!turn.is_due(now + 499 * MS) && turn.is_due(now + 500 * MS));
        for _ in 0..LAST {
            turn.answered(now, 1_000 * MS);
        }
        assert!(!turn.is_due(now + 4_999 * MS) && turn.is_due(now + 5_000 * MS));
    }
}
