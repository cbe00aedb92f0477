//! In which order pages leave, and how: S3-FIFO, a small and a main queue, and the frames with no
//! page.
//!
//! Invariants: a frame is free, in one queue, drawn by a thread that decides about it, or on its
//! way in. New pages go through the small queue; those that prove to be used again, or come back
//! soon after they left, go to the main queue, where each proof of use saves them once. So a scan
//! passes through the small queue and leaves the main one alone. A hit changes nothing here and
//! takes no lock. A page leaves only without pins, clean and not being written; that is checked
//! again after its entry was made busy, when no thread can change it any more. Nothing here waits
//! for a page or reads one. After "FIFO queues are all you need for cache eviction" (Yang et al.,
//! SOSP 2023); the uses count only some time after the arrival, so that a scan's many touches of
//! one page prove nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use iostrata_innodb::{Counter, PageNo};

use crate::pool::Pool;
use crate::pool::frames::Frame;
use crate::pool::table::Word;
use crate::sync::locked;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameQueue {
    /// Free, drawn, or on its way in.
    Nowhere,
    /// Not proven to be used again.
    Small,
    Main,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Back {
    /// To the cold end, where it was.
    Cold(FrameQueue),
    /// To the far end.
    Warm(FrameQueue),
}

pub struct Queues {
    inner: Mutex<Inner>,
    frames: usize,
    free: AtomicUsize,
    freed: AtomicU64,
    arrivals: AtomicU32,
    small_target: AtomicUsize,
}

struct Inner {
    free: Vec<u32>,
    links: Links,
    small: List,
    main: List,
    places: Vec<FrameQueue>,
}

/// Frames of each queue that were drawn, found pinned and put back.
#[derive(Clone, Copy, Debug, Default)]
pub struct PinnedFrames {
    pub small: usize,
    pub main: usize,
}

impl Queues {
    pub fn new(frames: usize, old_pct: u32) -> Self {
        let inner = Inner {
            free: (0..frames as u32).rev().collect(),
            links: Links::new(frames),
            small: List::default(),
            main: List::default(),
            places: vec![FrameQueue::Nowhere; frames],
        };
        let queues = Self {
            inner: Mutex::new(inner),
            frames,
            free: AtomicUsize::new(frames),
            freed: AtomicU64::new(0),
            arrivals: AtomicU32::new(1),
            small_target: AtomicUsize::new(0),
        };
        queues.set_old_pct(old_pct);
        queues
    }

    pub fn set_old_pct(&self, old_pct: u32) {
        let target = self.frames * old_pct.clamp(5, 95) as usize / 100;
        self.small_target.store(target.max(1), Ordering::Relaxed);
    }

    pub fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }

    pub fn freed(&self) -> u64 {
        self.freed.load(Ordering::Relaxed)
    }

    /// The clock of the replacement: pages that came in.
    #[inline]
    pub fn arrivals(&self) -> u32 {
        self.arrivals.load(Ordering::Relaxed)
    }

    /// Whether a use now counts for a page that is used since `since`.
    #[inline]
    pub fn counts_use(&self, since: u32) -> bool {
        let gap = self.small_target.load(Ordering::Relaxed) / 8;
        self.arrivals().wrapping_sub(since) as usize >= gap
    }

    /// Whether a page that was evicted at `stamp` (0: never) comes back soon.
    pub fn is_back_soon(&self, stamp: u32) -> bool {
        let window = self.frames - self.small_target.load(Ordering::Relaxed).min(self.frames);
        stamp != 0 && (self.arrivals().wrapping_sub(stamp) as usize) < window
    }

    pub fn take_free(&self) -> Option<u32> {
        if self.free() == 0 {
            return None;
        }
        let mut inner = locked(&self.inner);
        let frame = inner.free.pop()?;
        self.free.store(inner.free.len(), Ordering::Relaxed);
        Some(frame)
    }

    pub fn give_free(&self, frames: &[u32]) {
        let mut inner = locked(&self.inner);
        inner.free.extend_from_slice(frames);
        self.free.store(inner.free.len(), Ordering::Relaxed);
        self.freed.fetch_add(frames.len() as u64, Ordering::Relaxed);
    }

    pub fn arrive(&self, frame: u32, place: FrameQueue) {
        let mut inner = locked(&self.inner);
        inner.put(frame, Back::Warm(place));
        // 0 means never.
        let next = self.arrivals().wrapping_add(1).max(1);
        self.arrivals.store(next, Ordering::Relaxed);
    }

    /// Draws up to `max` frames that are next to go, with the queue they were in. `held_back`
    /// frames drawn from the small queue before will go back to its cold end. A queue in which no
    /// more frames are left than were found pinned in it gives none: the other one may.
    pub fn draw(
        &self,
        max: usize,
        held_back: usize,
        pinned: PinnedFrames,
        out: &mut Vec<(u32, FrameQueue)>,
    ) {
        let target = self.small_target.load(Ordering::Relaxed);
        let mut inner = locked(&self.inner);
        while out.len() < max {
            let is_long = inner.small.len() + held_back > target;
            let has_small = inner.small.len() > pinned.small;
            let place = match (has_small, inner.main.len() > pinned.main) {
                (false, false) => return,
                (false, true) => FrameQueue::Main,
                (true, false) => FrameQueue::Small,
                _ if is_long => FrameQueue::Small,
                _ => FrameQueue::Main,
            };
            let Some(frame) = inner.pop(place) else { return };
            out.push((frame, place));
        }
    }

    /// Drawn frames that keep their pages. Those for the cold end keep the order given.
    pub fn put_back(&self, frames: &mut Vec<(u32, Back)>) {
        let mut inner = locked(&self.inner);
        // From the last to the first, as each is put in front of the one before it.
        for (frame, back) in frames.drain(..).rev() {
            inner.put(frame, back);
        }
    }

    /// Lists frames at the cold end without drawing them: up to `depth` of the queue whose turn it
    /// is and a quarter as many of the other.
    pub fn cold(&self, depth: usize, out: &mut Vec<u32>) {
        let target = self.small_target.load(Ordering::Relaxed);
        let inner = locked(&self.inner);
        let (first, second) = if inner.small.len() > target || inner.main.len() == 0 {
            (&inner.small, &inner.main)
        } else {
            (&inner.main, &inner.small)
        };
        out.extend(inner.links.nodes(first).take(depth));
        out.extend(inner.links.nodes(second).take(depth / 4));
    }
}

impl Inner {
    fn pop(&mut self, place: FrameQueue) -> Option<u32> {
        let list = if place == FrameQueue::Main { &mut self.main } else { &mut self.small };
        let frame = self.links.pop_oldest(list)?;
        self.places[frame as usize] = FrameQueue::Nowhere;
        Some(frame)
    }

    fn put(&mut self, frame: u32, back: Back) {
        let (Back::Cold(place) | Back::Warm(place)) = back;
        assert!(
            self.places[frame as usize] == FrameQueue::Nowhere,
            "frame {frame} is in two queues"
        );
        self.places[frame as usize] = place;
        let list = if place == FrameQueue::Main { &mut self.main } else { &mut self.small };
        match back {
            Back::Cold(_) => self.links.push_oldest(list, frame),
            Back::Warm(_) => self.links.push_newest(list, frame),
        }
    }
}

pub const NONE: u32 = u32::MAX;

/// Where the nodes' neighbours are kept.
pub struct Links {
    older: Vec<u32>,
    newer: Vec<u32>,
}

/// One list, from the oldest to the newest.
#[derive(Clone, Copy, Debug)]
pub struct List {
    oldest: u32,
    newest: u32,
    len: usize,
}

impl Default for List {
    fn default() -> Self {
        Self { oldest: NONE, newest: NONE, len: 0 }
    }
}

impl List {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }
}

impl Links {
    pub fn new(nodes: usize) -> Self {
        Self { older: vec![NONE; nodes], newer: vec![NONE; nodes] }
    }

    fn newer(&self, node: u32) -> Option<u32> {
        let next = self.newer[node as usize];
        (next != NONE).then_some(next)
    }

    /// A list's nodes, oldest first.
    pub fn nodes(&self, list: &List) -> impl Iterator<Item = u32> {
        std::iter::successors(list.oldest(), |node| self.newer(*node))
    }

    pub fn push_newest(&mut self, list: &mut List, node: u32) {
        self.older[node as usize] = list.newest;
        self.newer[node as usize] = NONE;
        match list.newest {
            NONE => list.oldest = node,
            newest => self.newer[newest as usize] = node,
        }
        list.newest = node;
        list.len += 1;
    }

    pub fn push_oldest(&mut self, list: &mut List, node: u32) {
        self.newer[node as usize] = list.oldest;
        self.older[node as usize] = NONE;
        match list.oldest {
            NONE => list.newest = node,
            oldest => self.older[oldest as usize] = node,
        }
        list.oldest = node;
        list.len += 1;
    }

    pub fn remove(&mut self, list: &mut List, node: u32) {
        let (older, newer) = (self.older[node as usize], self.newer[node as usize]);
        match older {
            NONE => list.oldest = newer,
            older => self.newer[older as usize] = newer,
        }
        match newer {
            NONE => list.newest = older,
            newer => self.older[newer as usize] = older,
        }
        list.len -= 1;
    }

    pub fn pop_oldest(&mut self, list: &mut List) -> Option<u32> {
        let node = list.oldest()?;
        self.remove(list, node);
        Some(node)
    }
}

/// Frames decided about between two takings of the lock.
const DRAWN_MAX: usize = 32;
/// A page with the most uses goes at its fifth turn.
const TURNS_MAX: usize = 5;

enum Verdict {
    Gone,
    /// Or on its way in or out.
    Pinned,
    Stays(Back),
}

impl Pool {
    /// Evicts up to `max` clean pages at the cold end; their frames are free. Returns how many.
    /// Examines a bounded number of frames, each at most a few times.
    pub fn evict(&self, max: usize) -> usize {
        let few = max.saturating_mul(16).saturating_add(64);
        let mut looks = few.min(TURNS_MAX * self.frames.len());
        let (mut drawn, mut warm, mut cold) = (Vec::new(), Vec::new(), Vec::new());
        let mut freed: Vec<u32> = Vec::new();
        let (mut gone, mut held_back, mut pinned) = (0, 0, PinnedFrames::default());
        while gone < max && looks > 0 {
            drawn.clear();
            let most = (max - gone).min(DRAWN_MAX).min(looks);
            self.queues.draw(most, held_back, pinned, &mut drawn);
            if drawn.is_empty() {
                break;
            }
            looks -= drawn.len();
            for (index, place) in drawn.drain(..) {
                match self.judge(index, place) {
                    Verdict::Gone => freed.push(index),
                    Verdict::Pinned => {
                        warm.push((index, Back::Warm(place)));
                        match place {
                            FrameQueue::Small => pinned.small += 1,
                            FrameQueue::Main => pinned.main += 1,
                            FrameQueue::Nowhere => {}
                        }
                    }
                    Verdict::Stays(back @ Back::Warm(_)) => warm.push((index, back)),
                    Verdict::Stays(back @ Back::Cold(from)) => {
                        held_back += usize::from(from == FrameQueue::Small);
                        cold.push((index, back));
                    }
                }
            }
            gone += freed.len();
            self.queues.give_free(&freed);
            freed.clear();
            self.queues.put_back(&mut warm);
        }
        self.queues.put_back(&mut cold);
        gone
    }

    /// Decides about a frame that this thread has drawn.
    fn judge(&self, index: u32, place: FrameQueue) -> Verdict {
        let frame = self.frames.get(index);
        let page = PageNo(frame.page.load(Ordering::Relaxed));
        let Some(entry) = self.table.existing(page) else {
            panic!("frame {index} holds page {} that has no entry", page.0);
        };
        let mut word = Word(entry.load(Ordering::Acquire));
        loop {
            if !word.is_resident() || word.pins() > 0 {
                return Verdict::Pinned;
            }
            debug_assert_eq!(word.frame(), index);
            let next = match (place, word.uses()) {
                (_, 0) if is_held(frame) => return Verdict::Stays(Back::Cold(place)),
                (_, 0) => Word::busy(),
                (FrameQueue::Main, _) => word.used_less(),
                (_, _) => word.unused(),
            };
            match entry.compare_exchange(word.0, next.0, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) if next.is_busy() => return self.leave(frame, page, entry, word, place),
                Ok(_) => {
                    if place == FrameQueue::Small {
                        self.counts.add(Counter::BufferPoolPagesMadeYoung, 1);
                    }
                    return Verdict::Stays(Back::Warm(FrameQueue::Main));
                }
                Err(now) => word = Word(now),
            }
        }
    }

    /// No thread can pin the page now. What was done to it while it could be pinned is seen.
    fn leave(
        &self,
        frame: &Frame,
        page: PageNo,
        entry: &AtomicU64,
        was: Word,
        place: FrameQueue,
    ) -> Verdict {
        if is_held(frame) {
            self.waiting.end(page, entry, was, Ok(()));
            return Verdict::Stays(Back::Cold(place));
        }
        if was.is_unread() {
            self.counts.add(Counter::BufferPoolReadAheadEvicted, 1);
        }
        self.counts.add(Counter::BufferPoolPagesEvicted, 1);
        self.read_copies.forget(frame.index);
        self.waiting.end(page, entry, Word::absent(self.queues.arrivals()), Ok(()));
        Verdict::Gone
    }
}

/// Dirty or being written.
fn is_held(frame: &Frame) -> bool {
    frame.held.load(Ordering::Acquire) != 0
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use iostrata_innodb::Lsn;
    use proptest::prelude::*;

    use super::*;
    use crate::page::PageSize;
    use crate::pool::{Nothing, PoolSettings};

    fn order(links: &Links, list: &List) -> Vec<u32> {
        links.nodes(list).collect()
    }

    proptest! {
        #[test]
        fn lists_keep_their_order(steps in prop::collection::vec((0..4_u8, 0..12_u32), 0..200)) {
            let (mut links, mut list) = (Links::new(12), List::default());
            let mut model: VecDeque<u32> = VecDeque::new();
            for (what, node) in steps {
                let place = model.iter().position(|one| *one == node);
                match (what, place) {
                    (0, None) => { links.push_newest(&mut list, node); model.push_back(node) }
                    (1, None) => { links.push_oldest(&mut list, node); model.push_front(node) }
                    (2, Some(at)) => { links.remove(&mut list, node); model.remove(at); }
                    (3, _) => prop_assert_eq!(links.pop_oldest(&mut list), model.pop_front()),
                    _ => {}
                }
                prop_assert_eq!(order(&links, &list), Vec::from(model.clone()));
                prop_assert_eq!(list.len(), model.len());
            }
        }
    }

    #[test]
    fn a_page_changed_before_its_entry_was_busy_stays() {
        let settings = PoolSettings::new(PageSize::new(4096).unwrap(), 4);
        let pool = Pool::new(settings, Arc::default(), Arc::new(Nothing), Arc::new(Nothing));
        let page = PageNo(3);
        let index = pool.pin(page).unwrap().frame().index;
        let entry = pool.table.entry(page).unwrap();
        // Found clean at this moment; then another thread changes it and lets it go.
        let was = Word(entry.load(Ordering::Relaxed));
        pool.pin(page).unwrap().exclusive().mark_dirty(Lsn(5));
        entry.store(Word::busy().0, Ordering::Relaxed);
        let verdict = pool.leave(pool.frames.get(index), page, entry, was, FrameQueue::Small);
        assert!(matches!(verdict, Verdict::Stays(Back::Cold(FrameQueue::Small))));
        assert_eq!(Word(entry.load(Ordering::Relaxed)), was);
        assert_eq!(pool.try_pin(page).unwrap().frame().index, index);
    }

    #[test]
    fn writers_pin_a_page_only_in_the_frame_they_mean() {
        let settings = PoolSettings::new(PageSize::new(4096).unwrap(), 4);
        let pool = Pool::new(settings, Arc::default(), Arc::new(Nothing), Arc::new(Nothing));
        let index = pool.pin(PageNo(3)).unwrap().frame().index;
        assert!(pool.pin_quietly(PageNo(3), index).is_some());
        assert!(pool.pin_quietly(PageNo(3), index + 1).is_none());
        assert!(pool.pin_quietly(PageNo(4), index).is_none());
    }
}
