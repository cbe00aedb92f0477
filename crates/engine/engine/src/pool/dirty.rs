//! Which frames are dirty, since which LSN, which are being written, and their pages on the way to
//! disk.
//!
//! Invariants: a frame that is dirty counts at its `dirty_at`, one being written at the LSN it was
//! taken with, one that is both counts twice; [`Dirty::oldest`] is the least of all of them. A
//! frame is ready to be taken while it is dirty, not being written and not picked. What is taken
//! for writing is a copy made under the latch; until it is reported written or not written its LSN
//! counts in `oldest`, and the page is neither taken again nor evicted.
//! One short lock guards the whole; a change of a page that is dirty already needs no lock, and
//! neither does a query of the pages' ages.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence};

use iostrata_innodb::{Lsn, PageNo};
use iostrata_io::disk::Aligned;

use crate::page::PageView;
use crate::pool::Pool;
use crate::pool::frames::{Frame, Frames, NEVER};
use crate::pool::queues::{Links, List};
use crate::pool::table::Word;
use crate::sync::locked;

/// In `Frame::held`: changed since it was last taken for writing.
pub const DIRTY: u32 = 1;
/// In `Frame::held`: being written.
pub const FLYING: u32 = 2;
/// In `Frame::held`: picked by a collector, not taken yet.
const PICKED: u32 = 4;

pub struct Dirty {
    set: Mutex<Set>,
    ages: AgeCounts,
    held: AtomicUsize,
    flying: AtomicUsize,
}

/// Two nodes per frame: its number while it is dirty, beyond all frames while it is being written.
struct Set {
    bucket_bytes: u64,
    frames: u32,
    at: Vec<u64>,
    links: Links,
    buckets: BTreeMap<u64, Bucket>,
}

/// The frames whose LSN lies in one stretch of the redo.
struct Bucket {
    ready: List,
    rest: List,
    least: u64,
    /// The least may have left.
    is_stale: bool,
}

impl Default for Bucket {
    fn default() -> Self {
        Self { ready: List::default(), rest: List::default(), least: NEVER, is_stale: false }
    }
}

impl Dirty {
    pub fn new(frames: usize, bucket_bytes: u64) -> Self {
        let bucket_bytes = bucket_bytes.max(1);
        let set = Set {
            bucket_bytes,
            frames: frames as u32,
            at: vec![NEVER; 2 * frames],
            links: Links::new(2 * frames),
            buckets: BTreeMap::new(),
        };
        let ages = AgeCounts::new(bucket_bytes);
        let (held, flying) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { set: Mutex::new(set), ages, held, flying }
    }

    /// A frame whose latch the caller holds exclusively changes from `at` on.
    #[inline]
    pub fn mark(&self, frame: &Frame, at: Lsn) {
        // Under the exclusive latch no other thread takes the mark away, so an older one covers
        // this change.
        if frame.dirty_at.load(Ordering::Relaxed) > at.0 {
            self.mark_slowly(frame, at.0);
        }
    }

    #[cold]
    fn mark_slowly(&self, frame: &Frame, at: u64) {
        let mut set = locked(&self.set);
        let was = set.state(frame);
        let earliest = was.dirty.map_or(at, |since| since.min(at));
        self.change(&mut set, frame, was, State { dirty: Some(earliest), ..was });
    }

    /// Picks up to `max` ready frames out of the buckets that begin below `until`, oldest first.
    /// No other thread picks them until they are given to [`Self::take`] or [`Self::unpick`].
    pub fn pick(&self, frames: &Frames, max: usize, until: Lsn, out: &mut Vec<u32>) {
        let mut set = locked(&self.set);
        let mut from = 0;
        while out.len() < max {
            let Some((key, index)) = set.first_ready(from, until.0) else { return };
            from = key;
            let frame = frames.get(index);
            let was = set.state(frame);
            self.change(&mut set, frame, was, State { is_picked: true, ..was });
            out.push(index);
        }
    }

    /// A picked frame that could not be taken now may be picked again.
    pub fn unpick(&self, frame: &Frame) {
        let mut set = locked(&self.set);
        let was = set.state(frame);
        self.change(&mut set, frame, was, State { is_picked: false, ..was });
    }

    /// From dirty to being written; the caller holds the frame's latch. False when there is nothing
    /// to write or it is being written.
    pub fn take(&self, frame: &Frame) -> bool {
        let mut set = locked(&self.set);
        let was = set.state(frame);
        if was.dirty.is_none() || was.flying.is_some() {
            return false;
        }
        let now = State { dirty: None, flying: was.dirty, is_picked: false };
        self.change(&mut set, frame, was, now);
        true
    }

    /// What was taken is written: clean unless changed meanwhile.
    pub fn land(&self, frame: &Frame) {
        let mut set = locked(&self.set);
        let was = set.state(frame);
        assert!(was.flying.is_some(), "frame {} was reported written twice", frame.index);
        self.change(&mut set, frame, was, State { flying: None, ..was });
    }

    /// What was taken is not written: dirty again since the old LSN.
    pub fn turn_back(&self, frame: &Frame) {
        let mut set = locked(&self.set);
        let was = set.state(frame);
        assert!(was.flying.is_some(), "frame {} was reported unwritten twice", frame.index);
        let dirty = was.flying.into_iter().chain(was.dirty).min();
        self.change(&mut set, frame, was, State { dirty, flying: None, ..was });
    }

    /// The least LSN of all that is dirty or being written.
    pub fn oldest(&self) -> Option<Lsn> {
        let mut set = locked(&self.set);
        let oldest = set.oldest();
        self.ages.set_oldest(oldest);
        oldest.map(Lsn)
    }

    /// As [`Dirty::oldest`], without the lock: that, or less by a part of a bucket.
    pub fn oldest_seen(&self) -> Option<Lsn> {
        self.ages.oldest()
    }

    /// Members by the LSN at which their bucket begins, oldest first; without the lock.
    pub fn histogram(&self) -> Vec<(Lsn, u32)> {
        self.ages.read()
    }

    /// Pages that are dirty or being written.
    pub fn pages(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub fn flying(&self) -> usize {
        self.flying.load(Ordering::Relaxed)
    }

    /// The one place where a frame's state changes.
    fn change(&self, set: &mut Set, frame: &Frame, was: State, now: State) {
        if was == now {
            return;
        }
        set.leave(frame.index, was);
        set.enter(frame.index, now);
        if was.lsns() != now.lsns() {
            let [left, came] = [was, now].map(|state| state.lsns().into_iter().flatten());
            self.ages.moved(left, came, set.span(), || set.rows());
            self.ages.set_oldest(set.buckets.first_key_value().map(|(_, first)| first.least));
        }
        frame.dirty_at.store(now.dirty.unwrap_or(NEVER), Ordering::Relaxed);
        // Released, so that a thread that sees a clean frame sees all that made it clean.
        frame.held.store(now.held(), Ordering::Release);
        shift(&self.held, was.held() & (DIRTY | FLYING) != 0, now.held() & (DIRTY | FLYING) != 0);
        shift(&self.flying, was.flying.is_some(), now.flying.is_some());
    }
}

fn shift(count: &AtomicUsize, was: bool, is: bool) {
    match (was, is) {
        (false, true) => _ = count.fetch_add(1, Ordering::Relaxed),
        (true, false) => _ = count.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
}

/// What one frame is, by the LSNs it counts at.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    dirty: Option<u64>,
    flying: Option<u64>,
    is_picked: bool,
}

impl State {
    fn held(self) -> u32 {
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        bit(self.dirty.is_some(), DIRTY)
            | bit(self.flying.is_some(), FLYING)
            | bit(self.is_picked, PICKED)
    }

    fn lsns(self) -> [Option<u64>; 2] {
        [self.dirty, self.flying]
    }

    fn is_ready(self) -> bool {
        self.held() == DIRTY
    }
}

impl Set {
    /// Where the first bucket begins, and the last.
    fn span(&self) -> BucketEnds {
        let (first, last) = (self.buckets.first_key_value()?, self.buckets.last_key_value()?);
        Some((first.0 * self.bucket_bytes, last.0 * self.bucket_bytes))
    }

    /// Members by the LSN at which their bucket begins.
    fn rows(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let members = |bucket: &Bucket| (bucket.ready.len() + bucket.rest.len()) as u32;
        self.buckets.iter().map(move |(key, bucket)| (key * self.bucket_bytes, members(bucket)))
    }

    fn state(&self, frame: &Frame) -> State {
        let held = frame.held.load(Ordering::Relaxed);
        let at = |bit: u32, node: u32| (held & bit != 0).then(|| self.at[node as usize]);
        State {
            dirty: at(DIRTY, frame.index),
            flying: at(FLYING, frame.index + self.frames),
            is_picked: held & PICKED != 0,
        }
    }

    fn enter(&mut self, frame: u32, state: State) {
        if let Some(at) = state.dirty {
            self.insert(frame, at, state.is_ready());
        }
        if let Some(at) = state.flying {
            self.insert(frame + self.frames, at, false);
        }
    }

    fn leave(&mut self, frame: u32, state: State) {
        if state.dirty.is_some() {
            self.remove(frame, state.is_ready());
        }
        if state.flying.is_some() {
            self.remove(frame + self.frames, false);
        }
    }

    fn insert(&mut self, node: u32, at: u64, is_ready: bool) {
        self.at[node as usize] = at;
        let bucket = self.buckets.entry(at / self.bucket_bytes).or_default();
        let list = if is_ready { &mut bucket.ready } else { &mut bucket.rest };
        self.links.push_newest(list, node);
        if at <= bucket.least {
            bucket.least = at;
            bucket.is_stale = false;
        }
    }

    fn remove(&mut self, node: u32, is_ready: bool) {
        let at = self.at[node as usize];
        let key = at / self.bucket_bytes;
        let Some(bucket) = self.buckets.get_mut(&key) else {
            panic!("a dirty frame is in no bucket");
        };
        let list = if is_ready { &mut bucket.ready } else { &mut bucket.rest };
        self.links.remove(list, node);
        bucket.is_stale |= at == bucket.least;
        if bucket.ready.len() + bucket.rest.len() == 0 {
            self.buckets.remove(&key);
        }
    }

    /// The first ready frame in the buckets from this key on that begin below `until`.
    fn first_ready(&self, from: u64, until: u64) -> Option<(u64, u32)> {
        let below = |key: &u64| *key * self.bucket_bytes < until;
        let buckets = self.buckets.range(from..).take_while(|(key, _)| below(key));
        buckets.map(|(key, bucket)| Some((*key, bucket.ready.oldest()?))).find_map(|found| found)
    }

    /// Exact: the first bucket is looked through when its least member may have left.
    fn oldest(&mut self) -> Option<u64> {
        let mut first = self.buckets.first_entry()?;
        let bucket = first.get_mut();
        if bucket.is_stale {
            let members = self.links.nodes(&bucket.ready).chain(self.links.nodes(&bucket.rest));
            bucket.least = members.map(|node| self.at[node as usize]).min().unwrap_or(NEVER);
            bucket.is_stale = false;
        }
        Some(bucket.least)
    }
}

/// Slots, used in turns: sixteen times what the redo spans when the engine opens. Where it has
/// grown beyond them they become wider.
const SLOTS: u64 = 4096;

/// The least and the greatest bucket that has a page, by the LSN at which it begins.
type BucketEnds = Option<(u64, u64)>;

/// How many pages are dirty since when, for readers without the lock of the dirty set.
///
/// It changes under that lock only, and agrees with the set whenever the lock is free, in slots
/// as wide as its buckets or a power of two times as wide. A reader may meanwhile see a
/// page in two slots or in none: that is good enough to decide what to write, and for nothing else.
struct AgeCounts {
    /// Odd while the slots are rearranged.
    layouts: AtomicU64,
    slot_bytes: AtomicU64,
    /// First slot in use, and the one behind the last.
    first: AtomicU64,
    end: AtomicU64,
    oldest: AtomicU64,
    counts: Box<[AtomicU32]>,
}

impl AgeCounts {
    pub fn new(slot_bytes: u64) -> Self {
        let [layouts, first, end] = [const { AtomicU64::new(0) }; 3];
        let (slot_bytes, oldest) = (AtomicU64::new(slot_bytes), AtomicU64::new(NEVER));
        let counts = (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
        Self { layouts, slot_bytes, first, end, oldest, counts }
    }

    /// The holder's side: pages that are in `span` now have left here and have come there; `all`
    /// gives every bucket with its pages.
    pub fn moved<B: Iterator<Item = (u64, u32)>>(
        &self,
        left: impl Iterator<Item = u64>,
        came: impl Iterator<Item = u64>,
        span: BucketEnds,
        all: impl FnOnce() -> B,
    ) {
        let slot_bytes = self.slot_bytes.load(Relaxed);
        if let Some(wider_bytes) = wide_enough(slot_bytes, span) {
            return self.lay_out(wider_bytes, span, all());
        }
        left.for_each(|at| _ = self.slot(at / slot_bytes).fetch_sub(1, Relaxed));
        came.for_each(|at| _ = self.slot(at / slot_bytes).fetch_add(1, Relaxed));
        self.set_span(slot_bytes, span);
    }

    /// The holder's side: the least LSN, or one that is below it and in the same bucket.
    pub fn set_oldest(&self, oldest: Option<u64>) {
        self.oldest.store(oldest.unwrap_or(NEVER), Relaxed);
    }

    fn lay_out(&self, slot_bytes: u64, span: BucketEnds, all: impl Iterator<Item = (u64, u32)>) {
        self.layouts.fetch_add(1, Relaxed);
        fence(Release);
        self.slot_bytes.store(slot_bytes, Relaxed);
        self.counts.iter().for_each(|count| count.store(0, Relaxed));
        for (at, pages) in all {
            self.slot(at / slot_bytes).fetch_add(pages, Relaxed);
        }
        self.set_span(slot_bytes, span);
        self.layouts.fetch_add(1, Release);
    }

    fn set_span(&self, slot_bytes: u64, span: BucketEnds) {
        let (first, end) = span.map_or((0, 0), |(a, b)| (a / slot_bytes, b / slot_bytes + 1));
        self.first.store(first, Relaxed);
        self.end.store(end, Relaxed);
    }

    fn slot(&self, number: u64) -> &AtomicU32 {
        &self.counts[(number % SLOTS) as usize]
    }

    /// As [`AgeCounts::set_oldest`] set it last.
    pub fn oldest(&self) -> Option<Lsn> {
        Some(self.oldest.load(Relaxed)).filter(|at| *at != NEVER).map(Lsn)
    }

    /// Pages by the LSN at which their slot begins, oldest first; empty slots are left out.
    pub fn read(&self) -> Vec<(Lsn, u32)> {
        loop {
            let layout = self.layouts.load(Acquire);
            let found = self.look();
            // What was read above is read before this.
            fence(Acquire);
            if layout.is_multiple_of(2) && self.layouts.load(Relaxed) == layout {
                return found;
            }
            std::thread::yield_now();
        }
    }

    fn look(&self) -> Vec<(Lsn, u32)> {
        let [slot_bytes, first, end] =
            [&self.slot_bytes, &self.first, &self.end].map(|cell| cell.load(Relaxed));
        let slots = (first..end).take(SLOTS as usize);
        let row = |slot| (Lsn(slot * slot_bytes), self.slot(slot).load(Relaxed));
        slots.map(row).filter(|(_, pages)| *pages > 0).collect()
    }
}

/// Bytes of slots in which the span has its place; nothing when that is so already.
fn wide_enough(slot_bytes: u64, span: BucketEnds) -> Option<u64> {
    let (first, last) = span?;
    let fits = |bytes: &u64| last / bytes - first / bytes < SLOTS;
    let widths = std::iter::successors(Some(slot_bytes), |bytes| bytes.checked_mul(2));
    widths.into_iter().find(fits).filter(|bytes| *bytes > slot_bytes)
}

/// Picked between two takings of the lock.
const PICKS: usize = 64;

/// A copy of a page, to be written. Its parts may be taken apart and put together again.
#[must_use = "a page taken for writing must be reported by `flushed` or `not_flushed`"]
#[derive(Debug)]
pub struct PageFlush {
    pub page: PageNo,
    /// The page's newest change: must be durable in the redo before the page is written.
    pub lsn: Lsn,
    /// The page as it was; its checksum is not sealed. Reported back, the buffer is used again.
    pub bytes: Aligned,
    pub flight: Flight,
}

/// What the pool must know again when the writing has ended.
#[must_use = "a page taken for writing must be reported by `flushed` or `not_flushed`"]
#[derive(Debug)]
pub struct Flight {
    frame: u32,
}

impl Pool {
    /// Takes up to `max` dirty pages for writing, the oldest first, out of all buckets of the redo
    /// that begin below `until`; so the pages of a whole bucket, though some may be younger than
    /// `until`. Skips pages that are latched exclusively or being written.
    pub fn collect_oldest(&self, max: usize, until: Lsn, out: &mut Vec<PageFlush>) {
        let (mut picked, mut skipped) = (Vec::new(), Vec::new());
        let end = out.len().saturating_add(max);
        while out.len() < end {
            self.dirty.pick(&self.frames, PICKS.min(end - out.len()), until, &mut picked);
            if picked.is_empty() {
                break;
            }
            for index in picked.drain(..) {
                match self.take_copy(index) {
                    Some(copy) => out.push(copy),
                    None => skipped.push(index),
                }
            }
        }
        for index in skipped {
            self.dirty.unpick(self.frames.get(index));
        }
    }

    /// Takes one page for writing if it is dirty, here and not latched; whether it was.
    pub fn collect_page(&self, page: PageNo, out: &mut Vec<PageFlush>) -> bool {
        let Some(entry) = self.table.existing(page) else { return false };
        let word = Word(entry.load(Ordering::Relaxed));
        if !word.is_resident() {
            return false;
        }
        let frame = self.frames.get(word.frame());
        if frame.held.load(Ordering::Relaxed) & (DIRTY | FLYING) != DIRTY {
            return false;
        }
        // The frame may hold another page by now: then that one is not wanted.
        let taken = self.take_copy(word.frame());
        let is_taken = taken.as_ref().is_some_and(|taken| taken.page == page);
        match taken {
            Some(taken) if !is_taken => self.not_flushed(vec![taken]),
            taken => out.extend(taken),
        }
        is_taken
    }

    /// Takes up to `max` dirty pages at the cold end for writing, so that they can be evicted
    /// afterwards. Only when there is none of these, pages that would have stayed.
    pub fn collect_cold(&self, max: usize, out: &mut Vec<PageFlush>) {
        let mut cold = Vec::new();
        self.queues.cold(max.saturating_mul(4).saturating_add(256), &mut cold);
        let end = out.len().saturating_add(max);
        let mut warm = Vec::new();
        for index in cold {
            if out.len() >= end {
                return;
            }
            match self.uses_of_dirty(index) {
                None => {}
                Some(0) => out.extend(self.take_copy(index)),
                Some(_) => warm.push(index),
            }
        }
        let is_fruitless = out.len() + max == end;
        for index in warm {
            if !is_fruitless || out.len() >= end {
                return;
            }
            out.extend(self.take_copy(index));
        }
    }

    /// None when writing it would not free its frame.
    fn uses_of_dirty(&self, index: u32) -> Option<u32> {
        let frame = self.frames.get(index);
        if frame.held.load(Ordering::Relaxed) & DIRTY == 0 {
            return None;
        }
        let page = PageNo(frame.page.load(Ordering::Relaxed));
        let word = Word(self.table.existing(page)?.load(Ordering::Relaxed));
        (word.is_resident() && word.pins() == 0).then(|| word.uses())
    }

    /// Takes what is in this frame if it can be latched at once and is to be written.
    fn take_copy(&self, index: u32) -> Option<PageFlush> {
        let frame = self.frames.get(index);
        let page = PageNo(frame.page.load(Ordering::Relaxed));
        let shared = self.pin_quietly(page, index)?.try_shared().ok()?;
        if !self.dirty.take(frame) {
            return None;
        }
        let mut bytes = self.buffers.take();
        bytes.copy_from_slice(&shared);
        drop(shared);
        let lsn = PageView::new(&bytes).lsn();
        Some(PageFlush { page, lsn, bytes, flight: Flight { frame: index } })
    }

    /// These are written and durable: clean, unless changed meanwhile.
    pub fn flushed(&self, written: Vec<PageFlush>) {
        for PageFlush { bytes, flight, .. } in written {
            self.dirty.land(self.frames.get(flight.frame));
            self.buffers.give(bytes);
        }
    }

    /// These are not written: dirty again since the LSN they had.
    pub fn not_flushed(&self, unwritten: Vec<PageFlush>) {
        for PageFlush { bytes, flight, .. } in unwritten {
            self.dirty.turn_back(self.frames.get(flight.frame));
            self.buffers.give(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageSize;

    #[test]
    fn asking_for_ages_waits_for_no_lock() {
        let frames = Frames::new(PageSize::new(4096).unwrap(), 4);
        let dirty = Dirty::new(4, 16);
        for (index, at) in [(0, 5), (1, 7), (2, 40)] {
            dirty.mark(frames.get(index), Lsn(at));
        }
        let held = locked(&dirty.set);
        assert_eq!(dirty.histogram(), [(Lsn(0), 2), (Lsn(32), 1)]);
        assert_eq!(dirty.oldest_seen(), Some(Lsn(5)));
        drop(held);
        let clean = |frame| {
            assert!(dirty.take(frame));
            dirty.land(frame);
        };
        clean(frames.get(0));
        assert_eq!(dirty.oldest_seen(), Some(Lsn(5)), "below the oldest, in its bucket");
        assert_eq!((dirty.oldest(), dirty.oldest_seen()), (Some(Lsn(7)), Some(Lsn(7))));
        clean(frames.get(1));
        assert_eq!(dirty.oldest_seen(), Some(Lsn(40)), "another bucket");
        clean(frames.get(2));
        assert_eq!((dirty.oldest_seen(), dirty.histogram()), (None, vec![]));
    }

    /// The set as it should be seen, by bucket of 16 bytes.
    #[derive(Default)]
    struct Buckets(BTreeMap<u64, u32>);

    impl Buckets {
        fn change(&mut self, seen: &AgeCounts, left: Option<u64>, came: Option<u64>) {
            for at in left.iter().map(|at| at / 16 * 16) {
                let pages = self.0.get_mut(&at).unwrap();
                *pages -= 1;
                self.0.retain(|_, pages| *pages > 0);
            }
            came.iter().for_each(|at| *self.0.entry(at / 16 * 16).or_default() += 1);
            let span = self.0.keys().next().copied().zip(self.0.keys().next_back().copied());
            let all = || self.0.iter().map(|(at, pages)| (*at, *pages));
            seen.moved(left.into_iter(), came.into_iter(), span, all);
        }
    }

    #[test]
    fn it_follows_the_set_through_more_slots_than_there_are() {
        let (seen, mut set) = (AgeCounts::new(16), Buckets::default());
        let step = 5 * 16;
        for turn in 0..3 * SLOTS {
            let at = turn * step + 3;
            let left = turn.checked_sub(100).map(|before| before * step + 3);
            set.change(&seen, left, Some(at));
        }
        let expected: Vec<_> = set.0.iter().map(|(at, pages)| (Lsn(*at), *pages)).collect();
        assert_eq!((seen.read(), seen.slot_bytes.load(Relaxed)), (expected, 16));
    }

    #[test]
    fn where_the_redo_has_grown_slots_become_wider_and_lose_no_page() {
        let (seen, mut set) = (AgeCounts::new(16), Buckets::default());
        for turn in 0..3 * SLOTS {
            set.change(&seen, None, Some(turn * 16));
        }
        let found = seen.read();
        assert_eq!(seen.slot_bytes.load(Relaxed), 64);
        assert_eq!(found.len() as u64, 3 * SLOTS / 4);
        assert!(found.iter().zip(0..).all(|(row, at)| *row == (Lsn(64 * at), 4)), "{found:?}");
        for turn in 0..3 * SLOTS {
            set.change(&seen, Some(turn * 16), None);
        }
        assert_eq!(seen.read(), []);
    }

    #[test]
    fn a_reader_sees_one_layout_while_slots_are_laid_out() {
        let seen = AgeCounts::new(16);
        let wide = SLOTS * 16;
        seen.moved([].into_iter(), [0].into_iter(), Some((0, 0)), || [].into_iter());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for doubling in 0..30 {
                    let last = wide << doubling;
                    let all = || [(0, 1), (last, 1)].into_iter();
                    seen.moved([].into_iter(), [].into_iter(), Some((0, last)), all);
                }
            });
            loop {
                let found = seen.read();
                let last = found.last().map_or(0, |(at, _)| at.0);
                assert!(found.len() <= 2 && found[0] == (Lsn(0), 1), "{found:?}");
                assert!(last == 0 || last.is_power_of_two(), "{found:?}");
                if last == wide << 29 {
                    break;
                }
            }
        });
    }
}
