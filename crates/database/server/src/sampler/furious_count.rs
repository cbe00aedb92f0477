//! How often pages began to be written at any price.
//!
//! Servers count the batches of such a flush, and one has as many as it takes. It begins with the
//! first batch after an interval without any. Batches of a slow device are further apart than
//! samples, so that it goes on as well while the checkpoint age is where pages are flushed as fast
//! as possible. Invariant: pure; the count never goes back.

/// Counts from when it was first told.
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
            // A counter that went back began anew.
            let more = batches.checked_sub(last).unwrap_or(batches);
            self.total += u64::from(more > 0 && !self.is_going);
            self.is_going = more > 0 || (self.is_going && is_urgent);
        }
        Some(self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(u64, bool)]) -> Vec<u64> {
        let mut count = FuriousCount::default();
        all.iter().map(|(batches, urgent)| count.count(Some(*batches), *urgent).unwrap()).collect()
    }

    #[test]
    fn batches_without_a_pause_are_one_flush() {
        let calm = |batches: u64| (batches, false);
        let all = [7, 7, 9, 12, 40, 40, 40, 41, 41].map(calm);
        assert_eq!(counts(&all), [0, 0, 1, 1, 1, 1, 1, 2, 2]);
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
        assert_eq!(counts(&all), [0, 1, 1, 1, 1, 1, 2, 2]);
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
}
