//! When a worker flushes, and which file.
//!
//! Invariant: a flush covers only writes that have completed, so the worker starts no request while
//! a flush is due, waits for those in flight, then flushes file by file.

use iostrata_io::OpKind;
use iostrata_plan::{Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec};

use crate::clock::Ticks;
use crate::generator::Request;

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
    /// What of each file was written since its last flush, first byte and end; empty where files
    /// are flushed whole.
    written: Box<[(u64, u64)]>,
}

/// Nothing of a file.
const NOTHING: (u64, u64) = (u64::MAX, 0);

impl FlushSchedule {
    pub(crate) fn of(spec: &IoSpec) -> Self {
        let flush = spec.flush;
        let in_ranges =
            flush.is_some_and(|flush| matches!(flush.method, FlushMethod::SyncFileRange(_)));
        let ranges = if in_ranges && spec.api != IoApi::Null { spec.files as usize } else { 0 };
        let written = vec![NOTHING; ranges].into_boxed_slice();
        let files = spec.files;
        Self { flush, files, counted: 0, last_file: 0, due: None, dirty_since: None, written }
    }

    /// Takes note of a request that was started; `since` is its scheduled or actual start.
    #[inline]
    pub(crate) fn started(
        &mut self,
        Request { kind, file, offset }: Request,
        len: u32,
        since: Ticks,
    ) {
        let Some(flush) = self.flush else { return };
        let writes = kind == OpKind::Write;
        if writes {
            self.last_file = file;
            self.dirty_since.get_or_insert(since);
            if let Some((first, end)) = self.written.get_mut(file as usize) {
                *first = offset.min(*first);
                *end = (offset + u64::from(len)).max(*end);
            }
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

    /// The next flush, the bytes of its range, and the start of the first write that it covers.
    pub(crate) fn next(&mut self) -> Option<(Request, u32, Option<Ticks>)> {
        let (file, end) = self.due?;
        let since = self.dirty_since;
        let (offset, len) = self.written.get_mut(file as usize).map_or((0, 0), |written| {
            let (first, end) = std::mem::replace(written, NOTHING);
            // A range that is longer than a request can hold goes up to the end of the file.
            (first, u32::try_from(end.saturating_sub(first)).unwrap_or(0))
        });
        if file + 1 < end {
            self.due = Some((file + 1, end));
        } else {
            self.due = None;
            self.dirty_since = None;
        }
        Some((Request { kind: OpKind::Sync, file, offset }, len, since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_plan::RangeSteps;

    fn schedule(
        method: FlushMethod,
        every: u32,
        scope: FlushScope,
        count: FlushCount,
    ) -> FlushSchedule {
        let mut spec = IoSpec::new("x");
        spec.files = 3;
        spec.flush = Some(Flush { method, every, scope, count });
        FlushSchedule::of(&spec)
    }

    fn start(schedule: &mut FlushSchedule, kind: OpKind, file: u32, offset: u64, since: Ticks) {
        schedule.started(Request { kind, file, offset }, 4096, since);
    }

    fn flushed(schedule: &mut FlushSchedule) -> Option<(u32, Option<Ticks>)> {
        schedule.next().map(|(request, _, since)| (request.file, since))
    }

    #[test]
    fn the_file_just_written_is_flushed_after_every_n_writes() {
        let mut schedule = schedule(FlushMethod::Fsync, 2, FlushScope::File, FlushCount::Writes);
        start(&mut schedule, OpKind::Write, 0, 0, 10);
        start(&mut schedule, OpKind::Read, 1, 0, 11);
        assert!(!schedule.is_due(), "a read does not count");
        start(&mut schedule, OpKind::Write, 2, 0, 12);
        assert_eq!(flushed(&mut schedule), Some((2, Some(10))));
        assert_eq!(flushed(&mut schedule), None);
        start(&mut schedule, OpKind::Write, 1, 0, 20);
        start(&mut schedule, OpKind::Write, 1, 0, 21);
        assert_eq!(flushed(&mut schedule), Some((1, Some(20))));
    }

    #[test]
    fn scope_all_flushes_every_file_in_turn() {
        let mut schedule = schedule(FlushMethod::Fsync, 1, FlushScope::All, FlushCount::Requests);
        start(&mut schedule, OpKind::Read, 0, 0, 10);
        let files: Vec<u32> =
            std::iter::from_fn(|| flushed(&mut schedule)).map(|(file, _)| file).collect();
        assert_eq!(files, [0, 1, 2]);
    }

    #[test]
    fn a_range_is_what_was_written_since_the_last_one() {
        let range = FlushMethod::SyncFileRange(RangeSteps { write: true, ..RangeSteps::default() });
        let mut schedule = schedule(range, 2, FlushScope::File, FlushCount::Writes);
        let of =
            |schedule: &mut FlushSchedule| schedule.next().map(|(at, len, _)| (at.offset, len));
        start(&mut schedule, OpKind::Write, 1, 40_960, 1);
        start(&mut schedule, OpKind::Read, 1, 0, 2);
        start(&mut schedule, OpKind::Write, 1, 8192, 3);
        assert_eq!(of(&mut schedule), Some((8192, 36_864)));
        start(&mut schedule, OpKind::Write, 1, 4096, 4);
        start(&mut schedule, OpKind::Write, 1, 8192, 5);
        assert_eq!(of(&mut schedule), Some((4096, 8192)));
        start(&mut schedule, OpKind::Write, 1, 0, 6);
        start(&mut schedule, OpKind::Write, 1, 1 << 33, 7);
        assert_eq!(of(&mut schedule), Some((0, 0)), "up to the end of the file");
    }
}
