//! The program that inserts, the concurrent reader, and everything below them, in virtual time:
//! where the files lie, which pages a row touches, and what is dirty when a simulation begins.
//!
//! Rules, from the MyISAM part of the MySQL 5.1 manual and the post's table: four indexes (one of
//! them rising, three random) in blocks of 1,024 bytes (`myisam_block_size`), written to the page
//! cache after every statement as keys are not delayed; rows in the data file in order; the head of
//! the index file after every statement. A random key lands in any page of the index file with the
//! same chance, because blocks of all four indexes lie in it in the order of splits. Inner nodes
//! (they change with splits only) and the free space of old tables are left out. A load that fills
//! memory with dirty pages takes minutes to get there; it begins there instead.
//! Invariants: events happen in the order of time; what is due happens before anything is requested
//! at a later moment. The row that is inserted goes on only when every page is changed. What is
//! made up at the beginning is what the load itself would hold: a journal's pages in any order, a
//! sweep's so that a page is the likelier dirty the longer ago the sweep passed it.

use iostrata_stats::Random;

use super::{INDEX_BYTES_PER_ROW, index_bytes};
use crate::cache::{Access, CachePlan, PAGE_BYTES, PageCache, Submission, WRITER, Waits};
use crate::iostat::QueueCounters;
use crate::queue::{Bio, BlockQueue, Completion, Direction, OfferOutcome, Submitter};

/// Bytes of a row in the data file: a header of 4, a byte for NULLs, four integers, 40 characters
/// and their length, rounded up to 4.
pub const DATA_BYTES_PER_ROW: u64 = 64;
/// Bytes of the reader's table.
pub const READER_TABLE_BYTES: u64 = 4 << 30;
/// Bytes of one of its reads.
pub const READER_BYTES: u32 = 16 * 1024;

/// Pages that the data file and the end of the index go through before they start over; they hold
/// what is added within minutes.
const ADDED_PAGES: u32 = 1 << 16;
/// Random indexes.
const RANDOM_KEYS: usize = 3;
/// Pages that a row touches.
const TOUCHES: usize = RANDOM_KEYS + 3;

/// The pages of the table's files: the head of the index, the index, its growing end, the data.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableFiles {
    index_pages: u32,
    rows: u64,
}

impl TableFiles {
    pub(super) fn new(rows: u64) -> Self {
        Self { index_pages: index_bytes(rows).div_ceil(PAGE_BYTES).max(1) as u32, rows }
    }

    /// Pages of the index as it is, which lie from page 1 on.
    fn index_pages(&self) -> u32 {
        self.index_pages
    }

    /// Pages of all files.
    pub(super) fn pages(&self) -> u32 {
        1 + self.index_pages + 2 * ADDED_PAGES
    }

    /// Bytes of all files and of the reader's table behind them.
    pub(super) fn bytes(&self) -> u64 {
        self.reader_at_bytes() + READER_TABLE_BYTES
    }

    fn reader_at_bytes(&self) -> u64 {
        (u64::from(self.pages()) * PAGE_BYTES).next_multiple_of(u64::from(READER_BYTES))
    }

    /// The pages that the row touches that comes after `added` others, in order. All but the page
    /// of the data file must have been in memory.
    pub(super) fn touches(&self, added: u64, random: &mut Random) -> [u32; TOUCHES] {
        let rows = self.rows + added;
        let data = (rows * DATA_BYTES_PER_ROW / PAGE_BYTES) % u64::from(ADDED_PAGES);
        let end = (rows as f64 * INDEX_BYTES_PER_ROW) as u64 / PAGE_BYTES % u64::from(ADDED_PAGES);
        let added_at = 1 + self.index_pages;
        let mut touches = [0; TOUCHES];
        touches[0] = added_at + ADDED_PAGES + data as u32;
        for touch in &mut touches[1..=RANDOM_KEYS] {
            *touch = 1 + random.below(u64::from(self.index_pages)) as u32;
        }
        touches[TOUCHES - 2] = added_at + end as u32;
        touches
    }

    /// Whether the page holds only what is written now, so that it need not be read before.
    fn is_added(&self, page: u32) -> bool {
        page > self.index_pages
    }
}

/// Part of the index that is dirty when the limit does not bound it.
const INDEX_PART_MAX: f64 = 0.95;

/// How much is dirty at first, and in which way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Prefill {
    /// Nothing: the load gets to its course within seconds.
    Nothing,
    /// So many pages of the running transaction.
    Transaction(u32),
    /// So many pages in front of a sweep.
    Sweep(u32),
}

impl Prefill {
    /// What suits a load on a queue that holds so many requests.
    pub(super) fn of(plan: &CachePlan, layout: &TableFiles, nr_requests: u32) -> Self {
        let index = f64::from(layout.index_pages());
        let most = (index * INDEX_PART_MAX).min(f64::from(plan.dirty_pages_max - 8));
        match plan.submission {
            Submission::Unsorted => {
                // A commit that finds room for all its requests stops no insert, and rows come in
                // until the limit; any other stops them within moments. Pages come in any order, so
                // that half of the index makes more requests than all of it.
                let at_most = most.min(index / 2.0);
                let requests = at_most * (1.0 - at_most / index);
                match requests < f64::from(nr_requests) {
                    true => Self::Transaction(most as u32),
                    false => Self::Nothing,
                }
            }
            Submission::InodeOrdered if most > f64::from(plan.background_pages) => {
                Self::Sweep(most as u32)
            }
            Submission::InodeOrdered => Self::Nothing,
        }
    }

    /// The pages in order, and where a sweep goes on.
    pub(super) fn pages(self, index_pages: u32, random: &mut Random) -> (Vec<u32>, u32) {
        match self {
            Self::Nothing => (Vec::new(), 0),
            Self::Transaction(count) => (transaction(count, index_pages, random), 0),
            Self::Sweep(count) => sweep(count, index_pages, random),
        }
    }
}

/// So many different pages in any order.
fn transaction(count: u32, index_pages: u32, random: &mut Random) -> Vec<u32> {
    let mut pages: Vec<u32> = (1..=index_pages).collect();
    for place in 0..count {
        let other = u64::from(place) + random.below(u64::from(index_pages - place));
        pages.swap(place as usize, other as usize);
    }
    pages.truncate(count as usize);
    pages
}

/// Pages dirtied evenly since the sweep passed them: `1 - exp(-rate x)` of the pages that it passed
/// a part `x` of its way ago, with the rate that makes them as many as there are.
fn sweep(count: u32, index_pages: u32, random: &mut Random) -> (Vec<u32>, u32) {
    let part = f64::from(count) / f64::from(index_pages);
    let mean = |rate: f64| 1.0 - (1.0 - (-rate).exp()) / rate;
    let (mut low, mut high) = (1e-6, 1e4);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if mean(middle) < part { low = middle } else { high = middle }
    }
    let position = 1 + random.below(u64::from(index_pages)) as u32;
    let is_dirty = |page: &u32| {
        let ago = (position + index_pages - page) % index_pages;
        let ago = f64::from(ago) / f64::from(index_pages);
        random.uniform() < 1.0 - (-low * ago).exp()
    };
    ((1..=index_pages).filter(is_dirty).take(count as usize).collect(), position)
}

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
    completed: Vec<Completion>,
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
            // Moments of the queue may lie ahead of a row that was ready meanwhile.
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

    fn has_read(&mut self, one: &Completion) {
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
            && self.queue.offer(self.now_ns, bio, READER) == OfferOutcome::Sleeps
        {
            // Woken, it offers the same again.
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_touches_three_random_pages_and_the_ends() {
        let layout = TableFiles::new(13_000_000);
        let mut random = Random::new(1);
        let mut seen = 0u64;
        for added in 0..10_000 {
            let [data, keys @ .., end, head] = layout.touches(added, &mut random);
            assert!(layout.is_added(data) && layout.is_added(end) && data > end);
            assert!(keys.iter().all(|&key| key > 0 && !layout.is_added(key)));
            assert_eq!(head, 0);
            assert!([data, end].iter().all(|&page| page < layout.pages()));
            seen += u64::from(keys[1]);
        }
        let mean = seen as f64 / 10_000.0;
        assert!((mean / f64::from(layout.index_pages) - 0.5).abs() < 0.02, "{mean}");
        assert_eq!(layout.index_pages, index_bytes(13_000_000).div_ceil(4096) as u32);
    }

    #[test]
    fn the_ends_grow_with_the_rows() {
        let layout = TableFiles::new(0);
        let mut random = Random::new(1);
        let first = layout.touches(0, &mut random);
        let later = layout.touches(64_000, &mut random);
        assert_eq!(later[0] - first[0], 1_000, "64 rows of 64 bytes fill a page");
        assert_eq!(later[TOUCHES - 2] - first[TOUCHES - 2], 913, "58.4 bytes of index a row");
    }

    #[test]
    fn a_transaction_has_each_page_once_in_no_order() {
        let mut pages = transaction(5_000, 10_000, &mut Random::new(1));
        assert!(!pages.is_sorted());
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 5_000);
        assert!(pages[0] > 0 && pages[4_999] <= 10_000);
    }

    #[test]
    fn a_sweep_has_most_in_front_and_none_behind() {
        let (pages, position) = sweep(50_000, 100_000, &mut Random::new(3));
        assert!(pages.len().abs_diff(50_000) < 1_000, "{}", pages.len());
        let near = |from: u32| {
            let is_near = |page: &&u32| (**page + 100_000 - from) % 100_000 < 5_000;
            pages.iter().filter(is_near).count()
        };
        let (ahead, behind) = (near(position), near((position + 95_000) % 100_000));
        assert!(behind < 600 && ahead > 3_000, "{behind} {ahead}");
    }
}
