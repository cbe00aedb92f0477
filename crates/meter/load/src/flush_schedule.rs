//! When a worker flushes, and which file.
//!
//! Invariant: a flush covers only writes that have completed, so the worker starts no request while
//! a flush is due, waits for those in flight, then flushes file by file.

use iostrata_plan::{Flush, FlushCount, FlushScope};

use crate::clock::Ticks;

/// One worker's turn-taking between requests and flushes.
#[derive(Clone, Debug)]
pub(crate) struct FlushSchedule {
    flush: Option<Flush>,
    files: u32,
    counted: u32,
    last_file: u32,
    /// Files still to flush in this turn.
    due: Option<(u32, u32)>,
    dirty_since: Option<Ticks>,
}

impl FlushSchedule {
    pub(crate) fn new(flush: Option<Flush>, files: u32) -> Self {
        Self { flush, files, counted: 0, last_file: 0, due: None, dirty_since: None }
    }

    /// Takes note of a request that was started; `since` is its scheduled or actual start.
    #[inline]
    pub(crate) fn started(&mut self, writes: bool, file: u32, since: Ticks) {
        let Some(flush) = self.flush else { return };
        if writes {
            self.last_file = file;
            self.dirty_since.get_or_insert(since);
        }
        if writes || flush.count == FlushCount::Requests {
            self.counted += 1;
        }
        if self.counted >= flush.every {
            self.counted = 0;
            self.due = Some(match flush.scope {
                FlushScope::File => (self.last_file, self.last_file + 1),
                FlushScope::All => (0, self.files),
            });
        }
    }

    /// Whether a flush is due, so that no request may start.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// The next file to flush, and the start of the first write that the flush covers.
    pub(crate) fn next(&mut self) -> Option<(u32, Option<Ticks>)> {
        let (file, end) = self.due?;
        let since = self.dirty_since;
        if file + 1 < end {
            self.due = Some((file + 1, end));
        } else {
            self.due = None;
            self.dirty_since = None;
        }
        Some((file, since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_plan::FlushMethod;

    fn schedule(every: u32, scope: FlushScope, count: FlushCount) -> FlushSchedule {
        FlushSchedule::new(Some(Flush { method: FlushMethod::Fsync, every, scope, count }), 3)
    }

    #[test]
    fn the_file_just_written_is_flushed_after_every_n_writes() {
        let mut schedule = schedule(2, FlushScope::File, FlushCount::Writes);
        schedule.started(true, 0, 10);
        schedule.started(false, 1, 11);
        assert!(!schedule.is_due(), "a read does not count");
        schedule.started(true, 2, 12);
        assert_eq!(schedule.next(), Some((2, Some(10))));
        assert_eq!(schedule.next(), None);
        schedule.started(true, 1, 20);
        schedule.started(true, 1, 21);
        assert_eq!(schedule.next(), Some((1, Some(20))));
    }

    #[test]
    fn scope_all_flushes_every_file_in_turn() {
        let mut schedule = schedule(1, FlushScope::All, FlushCount::Requests);
        schedule.started(false, 0, 10);
        let files: Vec<u32> =
            std::iter::from_fn(|| schedule.next()).map(|(file, _)| file).collect();
        assert_eq!(files, [0, 1, 2]);
    }
}
