//! Statistics that all workers of a window share: its start and end, what each has done by slice,
//! and what each shows of itself while the window is open.
//!
//! Invariant: a worker's words are written by that worker only, so relaxed stores suffice; a slice
//! is posted once, after it ended. A window ends on the edge of a slice, and never before a slice
//! that a worker has begun, so that counts, histograms and slices agree to the request: its end and
//! the slices begun share one word, however late an end is posted.

use std::io;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use std::time::Duration;

use iostrata_plan::{OpKind, PerKind};
use iostrata_stats::{Latencies, LatencyHistogram};

use crate::clock::Ticks;
use crate::detail::{CLASSES, RequestDetail};
use crate::region::Region;
use crate::segment::{KindSegment, Segment};
use crate::tally::{SliceTally, Slices, Tally};
use crate::usage::ThreadUse;

const START: usize = 0;
/// How many slices the window has, and how many of them some worker has begun.
const SLICES: usize = 1;
/// How many snapshots were requested of workers.
const ASKED: usize = 2;
const HEAD_WORDS: usize = 8;
const WORKER_STATE: usize = 0;
const WORKER_WRITTEN: usize = 1;
const WORKER_ENDED: usize = 2;
/// A worker's flow and its weight in it, 0 where it has none now; and its requests of that flow.
const WORKER_FLOW: usize = 3;
const WORKER_FLOWED: usize = 4;
/// When a worker began to read back what it had written.
const WORKER_READS_BACK: usize = 5;
/// Whether a worker was ordered to end by itself.
const WORKER_TOLD: usize = 6;
const WORKER_HEAD_WORDS: usize = 8;
/// Words of one kind of operation in a slice: a count, and sums of service, response and
/// submission.
const TALLY_WORDS: usize = 4;

/// A worker that is ready waits at least this long between two looks for the start.
const START_POLL_MIN: Duration = Duration::from_micros(200);
/// All workers together look at most this often: hundreds that look all the time leave no processor
/// to those that are not ready yet.
const START_POLLS_PER_S: u32 = 20_000;

/// How long each of so many workers waits between two looks for the start.
pub(crate) fn start_poll(workers: u32) -> Duration {
    (Duration::from_secs(1) * workers / START_POLLS_PER_S).max(START_POLL_MIN)
}

/// The slices of a window that has no end yet.
const NO_END: u32 = u32::MAX;

/// The fields of the word [`SLICES`].
#[derive(Clone, Copy)]
struct Bounds {
    end: u32,
    begun: u32,
}

impl Bounds {
    fn of(word: u64) -> Self {
        Self { end: (word >> 32) as u32, begun: word as u32 }
    }

    fn word(self) -> u64 {
        u64::from(self.end) << 32 | u64::from(self.begun)
    }
}

/// How they are laid out; a worker process gets it from its parent.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct StatsLayout {
    /// Workers of all streams.
    pub workers: u32,
    /// Slices in the longest window.
    pub slices: u32,
    /// Length of a slice.
    pub slice_ticks: Ticks,
    /// Kinds of operations of all streams.
    pub kinds: Vec<OpKind>,
    /// Whether workers post a snapshot on request.
    pub shown: bool,
}

impl StatsLayout {
    fn slice_words(&self) -> usize {
        self.kinds.len() * TALLY_WORDS
    }

    fn worker_words(&self) -> usize {
        WORKER_HEAD_WORDS + self.slices as usize * self.slice_words() + self.shown_words()
    }

    fn shown_words(&self) -> usize {
        if self.shown { words_of(self.kinds.len()) } else { 0 }
    }

    fn words(&self) -> usize {
        HEAD_WORDS + self.workers as usize * self.worker_words()
    }
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerState {
    Starting = 0,
    Ready = 1,
    Done = 2,
}

/// The shared statistics. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct SharedStats {
    region: Arc<Region>,
    layout: StatsLayout,
}

impl SharedStats {
    pub(crate) fn new(layout: StatsLayout) -> io::Result<Self> {
        let shared = Self { region: Arc::new(Region::new(layout.words())?), layout };
        shared.words()[SLICES].store(Bounds { end: NO_END, begun: 0 }.word(), Relaxed);
        Ok(shared)
    }

    pub(crate) fn inherited(file: OwnedFd, layout: StatsLayout) -> io::Result<Self> {
        Ok(Self { region: Arc::new(Region::map(file, layout.words())?), layout })
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.region.file()
    }

    pub(crate) fn layout(&self) -> &StatsLayout {
        &self.layout
    }

    fn words(&self) -> &[AtomicU64] {
        self.region.words()
    }

    /// Posts the start; workers that are ready begin at that moment.
    pub(crate) fn post_start(&self, start: Ticks) {
        assert!(start > 0, "0 means that no start is posted");
        self.words()[START].store(start, Release);
    }

    /// The start, once posted.
    pub(crate) fn start(&self) -> Option<Ticks> {
        let start = self.words()[START].load(Acquire);
        (start > 0).then_some(start)
    }

    /// Waits until the start is posted.
    pub(crate) fn wait_for_start(&self) -> Ticks {
        loop {
            if let Some(start) = self.start() {
                return start;
            }
            std::thread::sleep(start_poll(self.layout.workers));
        }
    }

    /// Ends the window at the first edge after `now`, or earlier if an earlier end is posted, or
    /// with the last slice that a worker has begun.
    pub(crate) fn post_stop_soon(&self, now: Ticks) {
        let start = self.words()[START].load(Acquire);
        let slices = now.saturating_sub(start) / self.layout.slice_ticks + 1;
        self.post_stop_after(slices);
    }

    /// Ends the window after this many slices, or earlier if an earlier end is posted, or with the
    /// last slice that a worker has begun: time may have passed since the caller read it.
    pub(crate) fn post_stop_after(&self, slices: u64) {
        let wanted = slices.min(u64::from(self.layout.slices)) as u32;
        let _before = self.words()[SLICES].fetch_update(AcqRel, Acquire, |word| {
            let Bounds { end, begun } = Bounds::of(word);
            Some(Bounds { end: end.min(wanted.max(begun)), begun }.word())
        });
    }

    /// Lets a worker begin a slice; false when the window ends before it.
    pub(crate) fn begin_slice(&self, slice: usize) -> bool {
        let entered = self.words()[SLICES].fetch_update(AcqRel, Acquire, |word| {
            let Bounds { end, begun } = Bounds::of(word);
            ((slice as u64) < u64::from(end))
                .then(|| Bounds { end, begun: begun.max(slice as u32 + 1) }.word())
        });
        entered.is_ok()
    }

    /// The end; far away while none is posted.
    #[inline]
    pub(crate) fn stop(&self) -> Ticks {
        let Bounds { end, .. } = Bounds::of(self.words()[SLICES].load(Acquire));
        if end == NO_END {
            return Ticks::MAX;
        }
        self.words()[START].load(Acquire) + u64::from(end) * self.layout.slice_ticks
    }

    fn worker_base(&self, worker: u32) -> usize {
        assert!(worker < self.layout.workers, "worker {worker} of {}", self.layout.workers);
        HEAD_WORDS + worker as usize * self.layout.worker_words()
    }

    pub(crate) fn post_state(&self, worker: u32, state: WorkerState) {
        self.words()[self.worker_base(worker) + WORKER_STATE].store(state as u64, Release);
    }

    pub(crate) fn state(&self, worker: u32) -> WorkerState {
        match self.words()[self.worker_base(worker) + WORKER_STATE].load(Acquire) {
            0 => WorkerState::Starting,
            1 => WorkerState::Ready,
            _ => WorkerState::Done,
        }
    }

    pub(crate) fn post_written(&self, worker: u32, bytes: u64) {
        self.words()[self.worker_base(worker) + WORKER_WRITTEN].store(bytes, Relaxed);
    }

    /// Bytes a worker has written, counting those outside the window.
    pub(crate) fn written(&self, worker: u32) -> u64 {
        self.words()[self.worker_base(worker) + WORKER_WRITTEN].load(Relaxed)
    }

    /// Posts that a worker has a weight in a flow from now on, and how many requests it has made of
    /// it; the weight is 0 when it has ended.
    pub(crate) fn post_flow(&self, worker: u32, id: u32, weight: u32, requests: u64) {
        let words = &self.words()[self.worker_base(worker)..];
        words[WORKER_FLOWED].store(requests, Relaxed);
        words[WORKER_FLOW].store(u64::from(id) << 32 | u64::from(weight), Relaxed);
    }

    /// The weights and the requests of all that have one in a flow.
    pub(crate) fn flow(&self, id: u32) -> (u64, u64) {
        let mut sums = (0, 0);
        for worker in 0..self.layout.workers {
            let words = &self.words()[self.worker_base(worker)..];
            let flow = words[WORKER_FLOW].load(Relaxed);
            if flow >> 32 == u64::from(id) && flow as u32 > 0 {
                sums.0 += u64::from(flow as u32);
                sums.1 += words[WORKER_FLOWED].load(Relaxed);
            }
        }
        sums
    }

    /// Orders a worker to end, whatever the others do.
    pub(crate) fn tell_to_end(&self, worker: u32) {
        self.words()[self.worker_base(worker) + WORKER_TOLD].store(1, Relaxed);
    }

    /// Whether a worker was ordered to end.
    pub(crate) fn is_told_to_end(&self, worker: u32) -> bool {
        self.words()[self.worker_base(worker) + WORKER_TOLD].load(Relaxed) != 0
    }

    /// Posts when a worker began to read back what it had written, in ticks from the start; of one
    /// that writes again behind that, as if all of its reading back came last.
    pub(crate) fn post_reads_back(&self, worker: u32, after: Ticks) {
        self.words()[self.worker_base(worker) + WORKER_READS_BACK].store(after, Release);
    }

    /// Ticks from the start until a worker began to read back; 0 while it has not.
    pub(crate) fn reads_back(&self, worker: u32) -> Ticks {
        self.words()[self.worker_base(worker) + WORKER_READS_BACK].load(Acquire)
    }

    /// Posts when a worker's part of the window ended, in ticks from the start.
    pub(crate) fn post_ended(&self, worker: u32, after: Ticks) {
        self.words()[self.worker_base(worker) + WORKER_ENDED].store(after, Release);
    }

    /// Ticks from the start to the end of a worker's part; 0 while it has not ended, or never
    /// began.
    pub(crate) fn ended(&self, worker: u32) -> Ticks {
        self.words()[self.worker_base(worker) + WORKER_ENDED].load(Acquire)
    }

    /// Requests a snapshot of all workers.
    pub(crate) fn ask_to_show(&self) {
        self.words()[ASKED].fetch_add(1, Release);
    }

    /// How many snapshots were requested; `None` where workers post none.
    pub(crate) fn asked(&self) -> Option<u64> {
        self.layout.shown.then(|| self.words()[ASKED].load(Acquire))
    }

    /// Shows what a worker has, which covers so many slices.
    pub(crate) fn show(&self, worker: u32, slices: usize, segments: &[Segment]) {
        write(self.shown_of(worker), &self.layout.kinds, slices, segments);
    }

    /// What a worker showed last, with the slices that it covers.
    pub(crate) fn shown(&self, worker: u32) -> Option<(usize, Segment)> {
        read(self.shown_of(worker), &self.layout.kinds)
    }

    fn shown_of(&self, worker: u32) -> &[AtomicU64] {
        let end = self.worker_base(worker) + self.layout.worker_words();
        &self.words()[end - self.layout.shown_words()..end]
    }

    /// Posts a slice that ended.
    pub(crate) fn post_slice(&self, worker: u32, slice: usize, tally: &SliceTally) {
        let words = self.words()[self.slice_base(worker, slice)..].chunks_exact(TALLY_WORDS);
        for (words, kind) in words.zip(&self.layout.kinds) {
            let Tally { count, service_ns, response_ns, submission_ns } = tally[*kind as usize];
            words[0].store(count, Relaxed);
            words[1].store(service_ns, Relaxed);
            words[2].store(response_ns, Relaxed);
            words[3].store(submission_ns, Relaxed);
        }
    }

    /// What a worker posted for one kind of operation in a slice; zeroes while it has not.
    pub(crate) fn tally(&self, worker: u32, slice: usize, kind: OpKind) -> Tally {
        let Some(at) = self.layout.kinds.iter().position(|one| *one == kind) else {
            return Tally::default();
        };
        let words = &self.words()[self.slice_base(worker, slice) + at * TALLY_WORDS..];
        Tally {
            count: words[0].load(Relaxed),
            service_ns: words[1].load(Relaxed),
            response_ns: words[2].load(Relaxed),
            submission_ns: words[3].load(Relaxed),
        }
    }

    /// Tallies of these kinds in the first slices, summed over workers.
    pub(crate) fn slices(&self, workers: &[u32], kinds: &[OpKind], len: usize) -> Slices {
        let tally = |kind: OpKind, slice: usize| {
            let mut sum = Tally::default();
            workers.iter().for_each(|worker| sum.add(self.tally(*worker, slice, kind)));
            sum
        };
        let column = |&kind: &OpKind| (kind, (0..len).map(|slice| tally(kind, slice)).collect());
        Slices { len, kinds: kinds.iter().map(column).collect() }
    }

    /// Tallies of a worker, so many slices together. A last, shorter group is left out.
    pub(crate) fn grouped(
        &self,
        worker: u32,
        kinds: impl Iterator<Item = OpKind>,
        slices: Range<usize>,
        group: usize,
    ) -> PerKind<Vec<Tally>> {
        let sum = |kind: OpKind, first: usize| {
            let mut sum = Tally::default();
            (first..first + group).for_each(|slice| sum.add(self.tally(worker, slice, kind)));
            sum
        };
        let groups = slices.len() / group;
        let firsts = || (0..groups).map(|at| slices.start + at * group);
        kinds.map(|kind| (kind, firsts().map(|first| sum(kind, first)).collect())).collect()
    }

    fn slice_base(&self, worker: u32, slice: usize) -> usize {
        assert!(slice < self.layout.slices as usize, "slice {slice} of {}", self.layout.slices);
        self.worker_base(worker) + WORKER_HEAD_WORDS + slice * self.layout.slice_words()
    }
}

// What a worker shows of itself while the window is open.
//
// Purpose: workers keep their histograms to themselves, and some are processes; figures are
// requested while the window is open, and each worker copies what it has into shared words at its
// next slice.
// Invariants: what is shown covers whole slices, so that it agrees with the tallies that are
// posted; copying allocates nothing, and happens only on request.

/// Odd while the words are written.
const SEQUENCE: usize = 0;
/// How many slices of the window are covered.
const SHOWN_SLICES: usize = 1;
const USED: usize = 2;
const PACING: usize = 7;
const CLASSED: usize = 8;
const KINDS: usize = CLASSED + 3 * CLASSES;
/// Words of a kind: its bytes, and histograms of service, submission and completion.
const KIND_WORDS: usize = 1 + 3 * LatencyHistogram::WORDS;
/// How often a reader begins again when a worker wrote meanwhile.
const READS_MAX: usize = 1_000;

/// Words of a worker that does these kinds of operations.
fn words_of(kinds: usize) -> usize {
    KINDS + kinds * KIND_WORDS
}

/// Copies what segments of a worker hold, which cover so many slices.
pub(crate) fn write(words: &[AtomicU64], kinds: &[OpKind], slices: usize, segments: &[Segment]) {
    let sequence = words[SEQUENCE].load(Relaxed);
    words[SEQUENCE].store(sequence + 1, Relaxed);
    fence(Release);
    words[SHOWN_SLICES..].iter().for_each(|word| word.store(0, Relaxed));
    words[SHOWN_SLICES].store(slices as u64, Relaxed);
    let mut used = ThreadUse::default();
    for segment in segments {
        used.add(segment.cpu);
        add(&words[PACING], segment.pacing_ns);
        if let Some(detail) = &segment.detail {
            let counts = detail.depths.iter().chain(&detail.submissions).chain(&detail.completions);
            words[CLASSED..].iter().zip(counts).for_each(|(word, count)| add(word, *count));
        }
        for (words, kind) in words[KINDS..].chunks_exact(KIND_WORDS).zip(kinds) {
            let Some(of_kind) = &segment.kinds[*kind] else { continue };
            add(&words[0], of_kind.bytes);
            let detail = segment.detail.as_deref();
            let histograms = [
                Some(&of_kind.latencies.service),
                detail.and_then(|detail| detail.submission[*kind].as_ref()),
                detail.and_then(|detail| detail.completion[*kind].as_ref()),
            ];
            let areas = words[1..].chunks_exact(LatencyHistogram::WORDS);
            areas.zip(histograms).for_each(|(area, one)| add_histogram(area, one));
        }
    }
    for (word, value) in words[USED..].iter().zip([
        used.user_s.to_bits(),
        used.sys_s.to_bits(),
        used.context_switches,
        used.major_faults,
        used.minor_faults,
    ]) {
        word.store(value, Relaxed);
    }
    words[SEQUENCE].store(sequence + 2, Release);
}

fn add(word: &AtomicU64, more: u64) {
    word.store(word.load(Relaxed) + more, Relaxed);
}

fn add_histogram(area: &[AtomicU64], histogram: Option<&LatencyHistogram>) {
    for (index, value) in histogram.into_iter().flat_map(LatencyHistogram::words) {
        match index {
            LatencyHistogram::MAX_WORD => {
                area[index].store(area[index].load(Relaxed).max(value), Relaxed);
            }
            _ => add(&area[index], value),
        }
    }
}

/// What a worker showed last, as one segment that begins at slice 0, and the slices it covers.
/// `None` before it showed anything.
pub(crate) fn read(words: &[AtomicU64], kinds: &[OpKind]) -> Option<(usize, Segment)> {
    for _ in 0..READS_MAX {
        let sequence = words[SEQUENCE].load(Acquire);
        if sequence == 0 {
            return None;
        }
        let shown = segment(words, kinds);
        fence(Acquire);
        if sequence.is_multiple_of(2) && words[SEQUENCE].load(Relaxed) == sequence {
            return Some((words[SHOWN_SLICES].load(Relaxed) as usize, shown));
        }
    }
    None
}

fn segment(words: &[AtomicU64], kinds: &[OpKind]) -> Segment {
    let word = |at: usize| words[at].load(Relaxed);
    let mut detail = RequestDetail::default();
    let RequestDetail { depths, submissions, completions, .. } = &mut detail;
    let counts = depths.iter_mut().chain(submissions).chain(completions);
    counts.zip(CLASSED..).for_each(|(count, at)| *count = word(at));
    let mut shown = Segment {
        cpu: ThreadUse {
            user_s: f64::from_bits(word(USED)),
            sys_s: f64::from_bits(word(USED + 1)),
            context_switches: word(USED + 2),
            major_faults: word(USED + 3),
            minor_faults: word(USED + 4),
        },
        pacing_ns: word(PACING),
        ..Segment::default()
    };
    for (words, kind) in words[KINDS..].chunks_exact(KIND_WORDS).zip(kinds) {
        let mut areas = words[1..].chunks_exact(LatencyHistogram::WORDS);
        let mut next = || {
            let area = areas.next().unwrap_or_default();
            LatencyHistogram::of_words(|at| area[at].load(Relaxed))
        };
        let [service, submission, completion] = [next(), next(), next()];
        let latencies = Latencies { service, response: None };
        shown.kinds.insert(*kind, KindSegment { latencies, bytes: words[0].load(Relaxed) });
        if !submission.is_empty() {
            detail.submission.insert(*kind, submission);
            detail.completion.insert(*kind, completion);
        }
    }
    shown.detail = Some(Box::new(detail));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_workers_that_wait_leave_the_processors_alone() {
        for workers in [1, 4, 64, 512, 4096] {
            let polls_per_s = f64::from(workers) / start_poll(workers).as_secs_f64();
            assert!(polls_per_s < 20_001.0, "{workers} workers look {polls_per_s} times a second");
        }
        assert_eq!(start_poll(1), Duration::from_micros(200), "a few begin at once");
    }

    #[test]
    fn a_window_ends_on_an_edge_and_only_ever_earlier() {
        let shared = SharedStats::new(StatsLayout {
            workers: 1,
            slices: 100,
            slice_ticks: 10,
            kinds: OpKind::OF_FILES.to_vec(),
            shown: false,
        })
        .unwrap();
        assert_eq!(shared.start(), None);
        shared.post_start(1000);
        assert_eq!((shared.start(), shared.stop()), (Some(1000), u64::MAX));
        shared.post_stop_after(5000);
        assert_eq!(shared.stop(), 2000, "a window is never longer than its slices");
        shared.post_stop_soon(1234);
        assert_eq!(shared.stop(), 1240);
        shared.post_stop_soon(1500);
        assert_eq!(shared.stop(), 1240);
    }

    #[test]
    fn an_end_that_is_posted_late_cuts_off_no_slice_that_was_begun() {
        let shared = SharedStats::new(StatsLayout {
            workers: 2,
            slices: 100,
            slice_ticks: 10,
            kinds: OpKind::OF_FILES.to_vec(),
            shown: false,
        })
        .unwrap();
        shared.post_start(1000);
        assert!((0..8).all(|slice| shared.begin_slice(slice)));
        // The thread that posts it read the clock in slice 2 and was preempted since.
        shared.post_stop_soon(1020);
        assert_eq!(shared.stop(), 1080);
        assert!(shared.begin_slice(7), "the others still come that far");
        assert!(!shared.begin_slice(8));
        shared.post_stop_soon(1000);
        assert_eq!(shared.stop(), 1080);
    }

    #[test]
    fn workers_do_not_touch_each_other() {
        let shared = SharedStats::new(StatsLayout {
            workers: 3,
            slices: 4,
            slice_ticks: 10,
            kinds: OpKind::OF_FILES.to_vec(),
            shown: false,
        })
        .unwrap();
        let one = Tally { count: 1, service_ns: 2, response_ns: 3, submission_ns: 4 };
        let tally = [one; OpKind::COUNT];
        shared.post_slice(1, 3, &tally);
        shared.post_written(1, 77);
        shared.post_state(1, WorkerState::Ready);
        let all = |worker, slice| OpKind::OF_FILES.map(|kind| shared.tally(worker, slice, kind));
        assert_eq!(all(1, 3), tally[..3]);
        for worker in [0, 2] {
            assert_eq!(shared.state(worker), WorkerState::Starting);
            assert_eq!(shared.written(worker), 0);
            for slice in 0..4 {
                assert_eq!(all(worker, slice), [Tally::default(); 3]);
            }
        }
    }
}

#[cfg(test)]
mod shown_tests {
    use super::*;
    use crate::segment::HistogramNeeds;

    #[test]
    fn what_was_written_is_read_whatever_was_there_before() {
        let kinds = [OpKind::Read, OpKind::Write];
        let words: Vec<AtomicU64> = (0..words_of(kinds.len())).map(|_| AtomicU64::new(0)).collect();
        assert!(read(&words, &kinds).is_none());
        let recorded = HistogramNeeds {
            kinds: kinds.to_vec(),
            scheduled: false,
            detail: true,
            is_apart: true,
        };
        let mut segments = [Segment::new(0, &recorded), Segment::new(5, &recorded)];
        for (at, segment) in segments.iter_mut().enumerate() {
            segment.record(OpKind::Read, 1_000 + at as u64, 0);
            segment.add_bytes(OpKind::Read, 512);
            segment.pacing_ns = 3;
            segment.cpu.context_switches = 7;
            let detail = segment.detail.as_mut().unwrap();
            detail.record(OpKind::Read, 400, 600);
            detail.depths[2] += 1;
        }
        write(&words, &kinds, 9, &segments);
        write(&words, &kinds, 11, &segments);
        let (slices, shown) = read(&words, &kinds).unwrap();
        let mut sum = Segment::default();
        segments.iter().for_each(|segment| sum.merge(segment));
        assert_eq!((slices, shown.pacing_ns, shown.cpu), (11, 6, sum.cpu));
        let latencies = |segment: &Segment, kind: OpKind| {
            segment.kinds[kind].as_ref().map(|one| (one.latencies.clone(), one.bytes))
        };
        for kind in kinds {
            assert_eq!(latencies(&shown, kind), latencies(&sum, kind));
        }
        let (shown, sum) = (shown.detail.unwrap(), sum.detail.unwrap());
        assert_eq!(shown.submission[OpKind::Read], sum.submission[OpKind::Read]);
        assert_eq!(shown.completion[OpKind::Read], sum.completion[OpKind::Read]);
        assert_eq!(shown.depths, sum.depths);
    }
}
