//! The parts of a sample that rest on the samples before it: counts that a server reports in parts
//! or in other units, and its start.
//!
//! Invariant: pure; no count goes back.

use iostrata_database::target::TargetSample;

use super::status_reply::StatusReply;
use super::transaction_count::{TransactionCount, TransactionCounters};
use crate::flavour::ServerVersion;

/// Counts from one sample to the next.
#[derive(Debug, Default)]
pub(crate) struct SampleCounts {
    start: StartTime,
    transactions: TransactionCount,
    purge: PurgeCount,
    furious: FuriousCount,
}

impl SampleCounts {
    /// A server's reply, as a sample. `own` is what the queries added to `Handler_commit`.
    pub(crate) fn sample(
        &mut self,
        told: &StatusReply,
        version: &ServerVersion,
        own: u64,
    ) -> TargetSample {
        let sample = told.sample(version);
        let clock = told.now_s.zip(told.status("Uptime"));
        let age = sample.checkpoint_age_bytes.zip(sample.checkpoint_age_async_bytes);
        TargetSample {
            started_s: clock.map(|(now_s, up_s)| self.start.of(now_s, up_s, told.took_s)),
            transactions: self.transactions.count(TransactionCounters::of(told), own),
            purged: self.purge.count(told.kept_commits(), told.history_beside_metrics()),
            furious_flushes: self
                .furious
                .count(told.furious_batches(), age.is_some_and(|(age, from)| age >= from)),
            ..sample
        }
    }
}

/// Counts what was purged since the first query.
#[derive(Debug, Default)]
pub(crate) struct PurgeCount {
    last: Option<(u64, u64)>,
    /// May be a few behind, where length and commits are not of one moment.
    purged: i64,
    total: u64,
}

impl PurgeCount {
    /// Commits with old row versions so far, and the length of the history.
    pub(crate) fn count(&mut self, commits: Option<u64>, history: Option<u64>) -> Option<u64> {
        let Some((commits, history)) = commits.zip(history) else {
            // What is purged is unknown until both are reported again.
            self.last = None;
            return None;
        };
        let last = self.last.replace((commits, history));
        // A counter that went back is of another start.
        if let Some((last, length)) = last.filter(|(last, _)| *last <= commits) {
            let added = i64::try_from(commits - last).unwrap_or(i64::MAX);
            let grown = history.cast_signed().wrapping_sub(length.cast_signed());
            self.purged = self.purged.saturating_add(added).saturating_sub(grown);
        }
        self.total = self.total.max(u64::try_from(self.purged).unwrap_or(0));
        Some(self.total)
    }
}

/// Counts since it was first reported.
#[derive(Debug, Default)]
pub(crate) struct FuriousCount {
    last: Option<u64>,
    is_going: bool,
    total: u64,
}

impl FuriousCount {
    /// Batches so far, and whether the age is where pages are flushed as fast as possible.
    pub(crate) fn count(&mut self, batches: Option<u64>, is_urgent: bool) -> Option<u64> {
        let Some(batches) = batches else {
            (self.last, self.is_going) = (None, false);
            return None;
        };
        if let Some(last) = self.last.replace(batches) {
            // A counter that went back was reset.
            let more = batches.checked_sub(last).unwrap_or(batches);
            self.total += u64::from(more > 0 && !self.is_going);
            self.is_going = more > 0 || (self.is_going && is_urgent);
        }
        Some(self.total)
    }
}

/// So much lies between whole seconds that were rounded one way and the other.
const ROUNDED_S: u64 = 2;

/// The start that is known.
#[derive(Clone, Copy, Debug)]
struct Start {
    told_s: u64,
    earliest_s: u64,
    latest_s: u64,
}

/// The start of a server, as its uptime gives it.
#[derive(Debug, Default)]
pub(crate) struct StartTime {
    known: Option<Start>,
}

impl StartTime {
    /// The start in seconds since 1970, from the server's time, how long it is up, and how long
    /// reading both took.
    pub(crate) fn of(&mut self, now_s: u64, uptime_s: u64, took_s: u64) -> u64 {
        let latest_s = now_s.saturating_sub(uptime_s);
        let earliest_s = latest_s.saturating_sub(took_s);
        let is_same = |start: &Start| {
            earliest_s <= start.latest_s + ROUNDED_S && start.earliest_s <= latest_s + ROUNDED_S
        };
        let start = match self.known.filter(is_same) {
            Some(start) => Start {
                told_s: start.told_s,
                earliest_s: start.earliest_s.max(earliest_s),
                latest_s: start.latest_s.min(latest_s),
            },
            None => Start { told_s: self.told_apart(latest_s), earliest_s, latest_s },
        };
        self.known = Some(start);
        start.told_s
    }

    /// Those who compare two samples take starts that lie this close for one.
    fn told_apart(&self, start_s: u64) -> u64 {
        let before = self.known.map(|start| start.told_s);
        let near = before.filter(|before| before.abs_diff(start_s) <= ROUNDED_S);
        near.map_or(start_s, |before| before + ROUNDED_S + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(u64, u64)]) -> Vec<u64> {
        let mut count = PurgeCount::default();
        all.iter()
            .map(|(commits, history)| count.count(Some(*commits), Some(*history)).unwrap())
            .collect()
    }

    #[test]
    fn what_came_and_is_not_there_was_purged() {
        // Counted from when the counter was switched on, with a history of before.
        assert_eq!(counts(&[(0, 2_000), (100, 2_000), (300, 1_500)]), [0, 100, 800]);
        // While purge is held back, all that comes stays.
        assert_eq!(counts(&[(0, 10), (400, 410), (800, 810), (800, 10)]), [0, 0, 0, 800]);
    }

    #[test]
    fn it_never_goes_back() {
        // The length may be read after the commits.
        assert_eq!(counts(&[(50, 5), (60, 5), (60, 9), (70, 5)]), [0, 10, 10, 20]);
        // After a restart it counts from 0 again.
        assert_eq!(counts(&[(50, 5), (60, 5), (3, 400), (13, 400)]), [0, 10, 10, 20]);
    }

    #[test]
    fn what_is_not_told_is_not_counted() {
        let mut count = PurgeCount::default();
        assert_eq!(count.count(None, Some(9)), None);
        assert_eq!(count.count(Some(40), Some(9)), Some(0));
        assert_eq!(count.count(Some(50), Some(9)), Some(10));
        assert_eq!(count.count(None, Some(9)), None);
        assert_eq!(count.count(Some(90), Some(9)), Some(10));
        assert_eq!(count.count(Some(95), Some(9)), Some(15));
    }

    fn counts_of_reads(all: &[(u64, bool)]) -> Vec<u64> {
        let mut count = FuriousCount::default();
        all.iter().map(|(batches, urgent)| count.count(Some(*batches), *urgent).unwrap()).collect()
    }

    #[test]
    fn batches_without_a_pause_are_one_flush() {
        let calm = |batches: u64| (batches, false);
        let all = [7, 7, 9, 12, 40, 40, 40, 41, 41].map(calm);
        assert_eq!(counts_of_reads(&all), [0, 0, 1, 1, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn a_long_batch_is_no_pause() {
        let all = [
            (0, true),
            (1, true),
            (1, true),
            (2, true),
            (2, true),
            (2, false),
            (3, true),
            (4, false),
        ];
        assert_eq!(counts_of_reads(&all), [0, 1, 1, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn one_that_is_switched_off_is_not_told_and_goes_on_later() {
        let mut count = FuriousCount::default();
        assert_eq!(count.count(None, true), None);
        assert_eq!(count.count(Some(5), true), Some(0));
        assert_eq!(count.count(Some(6), true), Some(1));
        assert_eq!(count.count(None, true), None);
        assert_eq!(count.count(Some(0), true), Some(1));
        assert_eq!(count.count(Some(2), true), Some(2));
        assert_eq!(count.count(Some(1), false), Some(2), "began anew, and goes on");
    }

    #[test]
    fn a_slow_answer_is_no_other_start() {
        let mut start = StartTime::default();
        assert_eq!(start.of(10_000, 9_000, 0), 1_000);
        // Queried at 10,001 and answered 20 s later; then fast again, off by a second.
        assert_eq!(start.of(10_021, 9_001, 20), 1_000);
        assert_eq!(start.of(10_023, 9_022, 0), 1_000);
        // The first answer may be the slow one.
        let mut start = StartTime::default();
        assert_eq!(start.of(10_020, 9_000, 20), 1_020);
        assert_eq!(start.of(10_021, 9_021, 0), 1_020);
    }

    #[test]
    fn another_start_is_told_however_slow_the_answers_are() {
        let mut start = StartTime::default();
        assert_eq!(start.of(10_000, 9_000, 0), 1_000);
        assert_eq!(start.of(10_010, 3, 0), 10_007);
        assert_eq!(start.of(10_012, 5, 1), 10_007);
        // Up again since 10,030, queried at 10,033, answered at 10,043.
        assert_eq!(start.of(10_043, 3, 10), 10_040);
        // What the slow answers of one start left open is narrowed by the fast ones.
        assert_eq!(start.of(10_044, 14, 0), 10_040);
        assert_eq!(start.of(10_050, 12, 0), 10_043, "three seconds from the one before");
    }
}
