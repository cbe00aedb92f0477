//! Commits that purge is done with: those that were added to the history and are not in it.
//!
//! Invariant: pure; the count never goes back. MySQL does not keep commits that only inserted, so
//! that it is done with them at once; MariaDB keeps them.

/// Counts what was purged since it was first asked.
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
            // Nobody knows what is purged until it is told again.
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
        // Counted from when the counter was switched on, beside a history of before.
        assert_eq!(counts(&[(0, 2_000), (100, 2_000), (300, 1_500)]), [0, 100, 800]);
        // While purge is held back, all that comes stays.
        assert_eq!(counts(&[(0, 10), (400, 410), (800, 810), (800, 10)]), [0, 0, 0, 800]);
    }

    #[test]
    fn it_never_goes_back() {
        // The length may be read after the commits.
        assert_eq!(counts(&[(50, 5), (60, 5), (60, 9), (70, 5)]), [0, 10, 10, 20]);
        // After a restart it counts anew.
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
}
