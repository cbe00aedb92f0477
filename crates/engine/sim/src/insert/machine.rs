//! The program that inserts, the reader beside it, and everything below them, in virtual time.
//!
//! Invariant: events happen in the order of time; what is due is let happen before anything is
//! asked at a later moment. The row that is inserted goes on only when every page is changed.

use super::layout::{READER_BYTES, READER_TABLE_BYTES, TOUCHES, TableFiles};
use super::prefill::Prefill;
use crate::cache::{Access, PAGE_BYTES, PageCache, WRITER, Waits};
use crate::iostat::QueueCounters;
use crate::queue::{Bio, BlockQueue, Completed, Direction, Offered, Submitter};
use iostrata_stats::Random;

/// CPU time of a row: 2.06 % user and 5.32 % system of eight cores, while 41 million rows came in
/// 1.5 hours.
pub const ROW_CPU_NS: u64 = (((2.06 + 5.32) / 100.0 * 8.0) * 1e9 * 5_400.0 / 41e6) as u64;

const READER: Submitter = Submitter(3);
/// Longest time that rows are inserted without a look at the rest.
const UNSEEN_NS: u64 = 20_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriterState {
    /// On the CPU until then.
    Runs(u64),
    Waits(Waits),
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    bio: Bio,
    since_ns: u64,
}

/// What was counted up to a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) counters: QueueCounters,
    pub(super) rows: u64,
    pub(super) pages_written: u64,
    pub(super) pages_dirtied: u64,
    pub(super) reads: usize,
}

impl Snapshot {
    fn and(&self, other: &Self) -> Self {
        self.with(other, |a, b| a + b, |a, b| a + b)
    }

    fn less(&self, other: &Self) -> Self {
        self.with(other, |a, b| a - b, |a, b| a - b)
    }

    fn times(&self, times: f64) -> Self {
        let scaled = |a: u64, _| (a as f64 * times).round() as u64;
        self.with(self, scaled, |a, _| (a as f64 * times).round() as u128)
    }

    fn with(
        &self,
        other: &Self,
        each: impl Fn(u64, u64) -> u64,
        wide: impl Fn(u128, u128) -> u128,
    ) -> Self {
        Self {
            counters: self.counters.with(&other.counters, &each, wide),
            rows: each(self.rows, other.rows),
            pages_written: each(self.pages_written, other.pages_written),
            pages_dirtied: each(self.pages_dirtied, other.pages_dirtied),
            // Latencies are kept one by one; those of what is skipped are not made up.
            reads: self.reads,
        }
    }
}

/// Everything.
pub(super) struct Machine {
    queue: BlockQueue,
    cache: PageCache,
    layout: TableFiles,
    random: Random,
    now_ns: u64,
    rows: u64,
    touches: [u32; TOUCHES],
    touched: usize,
    writer: WriterState,
    reading: Option<Reading>,
    latencies_ns: Vec<u64>,
    completed: Vec<Completed>,
    /// What was skipped, as if it had been counted.
    skipped: Snapshot,
    pages_skipped: u64,
}

impl Machine {
    /// A machine at the moment 0: nothing is dirty, the first row is about to come.
    pub(super) fn new(
        queue: BlockQueue,
        cache: PageCache,
        layout: TableFiles,
        has_reader: bool,
        seed: u64,
    ) -> Self {
        let mut random = Random::new(seed);
        let touches = layout.touches(0, &mut random);
        let mut machine = Self {
            queue,
            cache,
            layout,
            random,
            now_ns: 0,
            rows: 0,
            touches,
            touched: 0,
            writer: WriterState::Runs(ROW_CPU_NS),
            reading: None,
            latencies_ns: Vec::new(),
            completed: Vec::new(),
            skipped: Snapshot::default(),
            pages_skipped: 0,
        };
        if has_reader {
            machine.read_next();
        }
        machine
    }

    /// Begins in the middle of a load.
    pub(super) fn prefill(&mut self, prefill: Prefill) {
        let (pages, position) = prefill.pages(self.layout.index_pages(), &mut self.random);
        self.cache.prefill(&pages, position);
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Pages that are dirty or on their way.
    pub(super) fn unwritten(&self) -> u64 {
        let counts = self.cache.counts();
        u64::from(counts.dirty) + u64::from(counts.under_write)
    }

    pub(super) fn snapshot(&mut self) -> Snapshot {
        let seen = Snapshot {
            counters: self.queue.counters(self.now_ns),
            rows: self.rows,
            pages_written: self.cache.counts().written,
            pages_dirtied: self.cache.counts().dirtied,
            reads: self.latencies_ns.len(),
        };
        seen.and(&self.skipped)
    }

    /// Commits so far; absent without a journal.
    pub(super) fn commits(&self) -> Option<u64> {
        self.cache.commits()
    }

    /// Pages of a commit that waits for room in the queue.
    pub(super) fn backlog(&self) -> u64 {
        self.cache.backlog()
    }

    /// Skips so many pages of the backlog, as if each took what those between the snapshots took:
    /// the queue stands still, and rows come in as they did.
    pub(super) fn skip(&mut self, pages: u64, since: &Snapshot, until: &Snapshot) {
        let sample = until.less(since);
        let times = pages as f64 / sample.pages_written.max(1) as f64;
        let takes_ns = (sample.counters.at_ns as f64 * times) as u64;
        let skipped = self.cache.skip(pages, takes_ns);
        let times = skipped as f64 / sample.pages_written.max(1) as f64;
        self.pages_skipped += skipped;
        let rows = (sample.rows as f64 * times).round() as u64;
        for _ in 0..rows {
            self.insert_unseen();
        }
        let mut all = sample.times(times);
        // These were counted where they happened.
        (all.rows, all.pages_written, all.pages_dirtied) = (0, 0, 0);
        self.skipped = self.skipped.and(&all);
    }

    /// Inserts a row of which nothing in the backlog is touched.
    fn insert_unseen(&mut self) {
        for page in self.layout.touches(self.rows, &mut self.random) {
            if !self.cache.is_in_backlog(page) {
                self.cache.write(self.now_ns, page, true, &mut self.queue);
            }
        }
        self.rows += 1;
    }

    /// Pages that went through the queue and the drive.
    pub(super) fn pages_seen(&self) -> u64 {
        self.cache.counts().written - self.pages_skipped
    }

    /// Reads of the reader so far.
    pub(super) fn reads(&self) -> usize {
        self.latencies_ns.len()
    }

    /// How long the reads took that were done since a snapshot, in ns.
    pub(super) fn latencies_ns(&self, since: &Snapshot) -> &[u64] {
        &self.latencies_ns[since.reads..]
    }

    /// Lets the next thing happen, but nothing after `until_ns`.
    pub(super) fn step(&mut self, until_ns: u64) {
        let events = self.queue.next_event_ns().into_iter().chain(self.cache.next_event_ns());
        let event_ns = events.min().unwrap_or(u64::MAX).min(until_ns);
        if let WriterState::Runs(at_ns) = self.writer
            && at_ns < event_ns
        {
            self.insert_until(event_ns.min(at_ns + UNSEEN_NS));
        } else {
            self.now_ns = self.now_ns.max(event_ns);
            self.complete();
            self.wake();
        }
        self.cache.run(self.now_ns, &mut self.queue);
        if let WriterState::Waits(waits) = self.writer
            && self.cache.is_over(waits)
        {
            self.touch();
        }
    }

    /// Inserts the rows that are ready before `until_ns`.
    fn insert_until(&mut self, until_ns: u64) {
        while let WriterState::Runs(at_ns) = self.writer
            && at_ns < until_ns
        {
            // Moments of the queue may lie ahead of a row that was ready while it was looked at.
            self.now_ns = self.now_ns.max(at_ns);
            self.touch();
        }
    }

    /// Changes what is left of the row's pages, as far as it can.
    fn touch(&mut self) {
        while let Some(&page) = self.touches.get(self.touched) {
            let is_whole = self.layout.is_added(page);
            match self.cache.write(self.now_ns, page, is_whole, &mut self.queue) {
                Access::Done => self.touched += 1,
                Access::Waits(waits) => {
                    self.writer = WriterState::Waits(waits);
                    if let Waits::Read(page) = waits {
                        self.fetch(page);
                    }
                    return;
                }
            }
        }
        self.rows += 1;
        self.touches = self.layout.touches(self.rows, &mut self.random);
        self.touched = 0;
        self.writer = WriterState::Runs(self.now_ns + ROW_CPU_NS);
    }

    /// Reads a missing page for the writer.
    fn fetch(&mut self, page: u32) {
        let at_bytes = self.cache.at_bytes(page);
        let bio = Bio { direction: Direction::Read, at_bytes, bytes: PAGE_BYTES as u32 };
        // Asleep, it is woken and comes back here through the page that is still missing.
        self.queue.offer(self.now_ns, bio, WRITER);
    }

    fn complete(&mut self) {
        let mut completed = std::mem::take(&mut self.completed);
        self.queue.advance(self.now_ns, &mut completed);
        for one in completed.drain(..) {
            match one.direction {
                Direction::Write => self.cache.completed(&one),
                Direction::Read => self.has_read(&one),
            }
        }
        self.completed = completed;
    }

    fn has_read(&mut self, one: &Completed) {
        if let WriterState::Waits(Waits::Read(page)) = self.writer
            && one.at_bytes == self.cache.at_bytes(page)
        {
            self.cache.has_read(page);
            self.touch();
        } else if let Some(reading) = self.reading.take() {
            self.latencies_ns.push(one.at_ns - reading.since_ns);
            self.read_next();
        }
    }

    fn wake(&mut self) {
        while let Some(who) = self.queue.wake(self.now_ns) {
            match who {
                WRITER => self.touch(),
                READER => self.read(),
                _ => {
                    self.cache.woken(who);
                    self.cache.run(self.now_ns, &mut self.queue);
                }
            }
        }
    }

    fn read_next(&mut self) {
        let places = READER_TABLE_BYTES / u64::from(READER_BYTES);
        let place = self.random.below(places) * u64::from(READER_BYTES);
        let at_bytes = self.layout.reader_at_bytes() + place;
        let bio = Bio { direction: Direction::Read, at_bytes, bytes: READER_BYTES };
        self.reading = Some(Reading { bio, since_ns: self.now_ns });
        self.read();
    }

    fn read(&mut self) {
        if let Some(Reading { bio, .. }) = self.reading
            && self.queue.offer(self.now_ns, bio, READER) == Offered::Sleeps
        {
            // Woken, it offers the same again.
        }
    }
}
