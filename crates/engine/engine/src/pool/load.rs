//! How an absent page comes into the pool.
//!
//! Invariant: a thread that makes an entry busy ends that, also when reading fails or panics: the
//! page is then resident, or absent and every waiter has the error. A frame that is being filled is
//! in no queue, and known only to the thread that fills it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::yield_now;

use iostrata_innodb::{Counter, PageNo};

use crate::error::{EngineError, RequestError};
use crate::pool::frames::ExclusiveLatch;
use crate::pool::guard::Pin;
use crate::pool::latch::Pause;
use crate::pool::queues::FrameQueue;
use crate::pool::table::{WAITED, Word};
use crate::pool::{Pool, ReadAheadPage};
use crate::sync::locked;

/// While pages are being written, so many requests for free frames count as one: it is worth trying
/// more often.
const PATIENCE: u32 = 50;
const AHEAD_MAX: usize = 64;

/// An entry made busy by this thread.
struct Claim<'p> {
    pool: &'p Pool,
    entry: &'p AtomicU64,
    page: PageNo,
    /// When the page was evicted.
    stamp: u32,
    frame: Option<u32>,
    /// The outcome for waiters if it fails.
    failure: Outcome,
    has_ended: bool,
}

impl Pool {
    /// The content of the page does not matter: the caller will format it under the exclusive
    /// latch. A new page is zeros; a page that is resident keeps its bytes, its dirtiness and its
    /// LSN until then, so that a flush meanwhile writes what was there. The caller holds no latch.
    pub fn create(&self, page: PageNo) -> Result<Pin<'_>, EngineError> {
        self.requests.count();
        let entry = self.table.entry(page)?;
        loop {
            if let Some(pin) = self.pin_resident(entry, page) {
                self.bump_page_version(pin.frame());
                self.counts.add(Counter::PagesCreated, 1);
                return Ok(pin);
            }
            match self.claim(entry, page) {
                Some(claim) => return claim.create(),
                // Another thread's failed read does not matter to one that needs no read.
                None => _ = self.waiting.wait(page, entry),
            }
        }
    }

    #[cold]
    pub(crate) fn pin_absent<'p>(
        &'p self,
        entry: &'p AtomicU64,
        page: PageNo,
    ) -> Result<Pin<'p>, EngineError> {
        loop {
            if let Some(claim) = self.claim(entry, page) {
                return claim.read();
            }
            if let Some(pin) = self.pin_resident(entry, page) {
                return Ok(pin);
            }
            self.read_waits.fetch_add(1, Ordering::Relaxed);
            self.waiting.wait(page, entry)?;
        }
    }

    fn claim<'p>(&'p self, entry: &'p AtomicU64, page: PageNo) -> Option<Claim<'p>> {
        let word = Word(entry.load(Ordering::Relaxed));
        if !word.is_absent() {
            return None;
        }
        let busy = Word::busy().0;
        entry.compare_exchange(word.0, busy, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let (stamp, frame, failure) = (word.stamp(), None, Ok(()));
        Some(Claim { pool: self, entry, page, stamp, frame, failure, has_ended: false })
    }

    /// A frame for this page. Calls the supply as long as that helps.
    fn free_frame(&self) -> Result<u32, EngineError> {
        let tries_max = self.settings.tries_max.saturating_mul(PATIENCE);
        let (mut tries, mut freed) = (0_u32, self.queues.freed());
        loop {
            if let Some(frame) = self.free_frame_at_once() {
                return Ok(frame);
            }
            if tries >= tries_max {
                return Err(self.exhausted());
            }
            self.counts.add(Counter::BufferPoolWaitFree, 1);
            let weight = if self.dirty.flying() > 0 { 1 } else { PATIENCE };
            self.supply.free_wanted();
            // Another thread that took what became free will not always be the first.
            let before = std::mem::replace(&mut freed, self.queues.freed());
            if freed == before {
                tries = tries.saturating_add(weight);
                yield_now();
            } else {
                tries = 0;
            }
        }
    }

    /// A free frame, or one of a clean page at the cold end.
    fn free_frame_at_once(&self) -> Option<u32> {
        self.queues.take_free().or_else(|| {
            let few = (self.frames.len() / 64).clamp(1, 8);
            self.evict(few);
            self.queues.take_free()
        })
    }

    fn exhausted(&self) -> EngineError {
        let is_pinned = |index: &u32| {
            let of = PageNo(self.frames.get(*index).page.load(Ordering::Relaxed));
            let word = self.table.existing(of).map(|entry| Word(entry.load(Ordering::Relaxed)));
            word.is_some_and(|word| word.is_resident() && word.frame() == *index && word.pins() > 0)
        };
        let pinned = (0..self.frames.len() as u32).filter(is_pinned).count();
        let (frames, dirty) = (self.frames.len(), self.dirty.pages());
        RequestError::PoolExhausted { frames, pinned, dirty }.into()
    }

    /// Reads pages ahead that are absent, as far as frames are free or can be made free at once.
    /// Pages that cannot be read stay absent.
    pub fn prefetch(&self, pages: &[PageNo]) {
        self.read_together(pages, Purpose::Ahead);
    }

    /// Reads absent pages that are about to be pinned, many in flight: as [`Pool::prefetch`], but
    /// they count as requested, not as read ahead.
    pub fn fetch(&self, pages: &[PageNo]) {
        self.read_together(pages, Purpose::Demand);
    }

    fn read_together(&self, pages: &[PageNo], purpose: Purpose) {
        let at_once = AHEAD_MAX.min(self.frames.len() / 4).max(1);
        for pages in pages.chunks(at_once) {
            let mut claims: Vec<Claim<'_>> = Vec::new();
            let mut has_frames = true;
            for page in pages {
                match self.claim_ahead(*page) {
                    Ok(claim) => claims.extend(claim),
                    Err(NoFrame) => {
                        has_frames = false;
                        break;
                    }
                }
            }
            self.read_claimed(claims, purpose);
            if !has_frames {
                return;
            }
        }
    }

    /// None when the page is there, or on its way, or impossible.
    fn claim_ahead(&self, page: PageNo) -> Result<Option<Claim<'_>>, NoFrame> {
        let Ok(entry) = self.table.entry(page) else { return Ok(None) };
        if !Word(entry.load(Ordering::Relaxed)).is_absent() {
            return Ok(None);
        }
        let frame = self.free_frame_at_once().ok_or(NoFrame)?;
        let Some(mut claim) = self.claim(entry, page) else {
            self.queues.give_free(&[frame]);
            return Ok(None);
        };
        claim.frame = Some(frame);
        Ok(Some(claim))
    }

    fn read_claimed(&self, claims: Vec<Claim<'_>>, purpose: Purpose) {
        if claims.is_empty() {
            return;
        }
        let want = |claim: &Claim<'_>| ReadAheadPage {
            page: claim.page,
            bytes: self.buffers.take(),
            result: Ok(()),
        };
        let mut wanted: Vec<ReadAheadPage> = claims.iter().map(want).collect();
        self.source.read_many(&mut wanted);
        for (claim, one) in claims.into_iter().zip(wanted) {
            claim.end_together(one, purpose);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Ahead,
    Demand,
}

struct NoFrame;

impl<'p> Claim<'p> {
    /// Reads the page. It gets its frame first, so that no read is in vain.
    fn read(mut self) -> Result<Pin<'p>, EngineError> {
        let frame = self.take_frame()?;
        let mut buffer = self.pool.buffers.take();
        let result = self.pool.source.read(self.page, &mut buffer);
        if let Err(error) = self.fill(frame, &buffer, result) {
            self.pool.buffers.give(buffer);
            return Err(error);
        }
        self.pool.buffers.give(buffer);
        self.pool.counts.add(Counter::BufferPoolReads, 1);
        Ok(self.install(frame))
    }

    fn create(mut self) -> Result<Pin<'p>, EngineError> {
        let frame = self.take_frame()?;
        ExclusiveLatch::new(self.pool.frames.get(frame)).bytes_mut().fill(0);
        self.pool.counts.add(Counter::PagesCreated, 1);
        Ok(self.install(frame))
    }

    fn end_together(mut self, one: ReadAheadPage, purpose: Purpose) {
        let Some(frame) = self.frame else { return };
        let filled = self.fill(frame, &one.bytes, one.result);
        self.pool.buffers.give(one.bytes);
        if filled.is_ok() {
            let is_ahead = purpose == Purpose::Ahead;
            let read = Counter::BufferPoolReads;
            self.pool.counts.add(if is_ahead { Counter::BufferPoolReadAhead } else { read }, 1);
            self.end(frame, Word::resident(frame, 0).with_unread(is_ahead));
        }
    }

    fn take_frame(&mut self) -> Result<u32, EngineError> {
        match self.pool.free_frame() {
            Ok(frame) => {
                self.frame = Some(frame);
                Ok(frame)
            }
            Err(error) => {
                self.failure = Err(error.clone());
                Err(error)
            }
        }
    }

    fn fill(
        &mut self,
        frame: u32,
        from: &[u8],
        result: Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        self.failure = result.clone();
        result?;
        ExclusiveLatch::new(self.pool.frames.get(frame)).bytes_mut().copy_from_slice(from);
        Ok(())
    }

    /// The page is there, pinned once.
    fn install(self, frame: u32) -> Pin<'p> {
        let (pool, entry, page) = (self.pool, self.entry, self.page);
        self.end(frame, Word::resident(frame, 1));
        Pin::counted(pool, entry, pool.frames.get(frame), page)
    }

    fn end(mut self, index: u32, word: Word) {
        let (pool, frame) = (self.pool, self.pool.frames.get(index));
        frame.page.store(self.page.0, Ordering::Relaxed);
        frame.since.store(pool.queues.arrivals(), Ordering::Relaxed);
        pool.bump_page_version(frame);
        let is_back = !word.is_unread() && pool.queues.is_back_soon(self.stamp);
        if is_back {
            pool.counts.add(Counter::BufferPoolPagesMadeYoung, 1);
        }
        self.has_ended = true;
        pool.waiting.end(self.page, self.entry, word, Ok(()));
        pool.queues.arrive(index, if is_back { FrameQueue::Main } else { FrameQueue::Small });
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        if let Some(frame) = self.frame {
            self.pool.queues.give_free(&[frame]);
        }
        let failure = std::mem::replace(&mut self.failure, Ok(()));
        self.pool.waiting.end(self.page, self.entry, Word::absent(self.stamp), failure);
    }
}

const ROOMS: usize = 64;

/// How a busy state ended: the page may be looked up again, or cannot be read.
pub type Outcome = Result<(), EngineError>;

/// One busy state that threads wait for.
#[derive(Default)]
struct Wait {
    outcome: Mutex<Option<Outcome>>,
    told: Condvar,
}

type Room = Mutex<Vec<(PageNo, Arc<Wait>)>>;

pub struct LoadWaits {
    rooms: Vec<Room>,
}

impl LoadWaits {
    pub fn new() -> Self {
        Self { rooms: (0..ROOMS).map(|_| Mutex::default()).collect() }
    }

    /// Waits while the entry is busy.
    pub fn wait(&self, page: PageNo, entry: &AtomicU64) -> Outcome {
        let mut pause = Pause::default();
        while pause.wait() {
            if !Word(entry.load(Ordering::Acquire)).is_busy() {
                return Ok(());
            }
        }
        match self.join(page, entry) {
            Some(wait) => wait.sleep(),
            None => Ok(()),
        }
    }

    /// The wait for this page, marked in the entry; none when it is not busy any more.
    fn join(&self, page: PageNo, entry: &AtomicU64) -> Option<Arc<Wait>> {
        let mut room = locked(self.room(page));
        let mark = |word| Word(word).is_busy().then_some(word | WAITED);
        entry.fetch_update(Ordering::Acquire, Ordering::Acquire, mark).ok()?;
        if let Some((_, wait)) = room.iter().find(|(of, _)| *of == page) {
            return Some(Arc::clone(wait));
        }
        let wait = Arc::new(Wait::default());
        room.push((page, Arc::clone(&wait)));
        Some(wait)
    }

    /// Ends a busy state: the entry becomes `next`, and waiters get the outcome.
    pub fn end(&self, page: PageNo, entry: &AtomicU64, next: Word, outcome: Outcome) {
        let was = Word(entry.swap(next.0, Ordering::AcqRel));
        assert!(was.is_busy(), "page {} was {was:?} when its busy state ended", page.0);
        if was.is_waited_for() {
            self.tell(page, outcome);
        }
    }

    #[cold]
    fn tell(&self, page: PageNo, outcome: Outcome) {
        let wait = {
            let mut room = locked(self.room(page));
            let found = room.iter().position(|(of, _)| *of == page);
            found.map(|at| room.swap_remove(at).1)
        };
        // Absent if a busy state of the same page that ended just before reported to these, too.
        if let Some(wait) = wait {
            *locked(&wait.outcome) = Some(outcome);
            wait.told.notify_all();
        }
    }

    fn room(&self, page: PageNo) -> &Room {
        &self.rooms[(page.0 % ROOMS as u64) as usize]
    }
}

impl Wait {
    fn sleep(&self) -> Outcome {
        let told = self.told.wait_while(locked(&self.outcome), |outcome| outcome.is_none());
        told.unwrap_or_else(PoisonError::into_inner).clone().unwrap_or(Ok(()))
    }
}
