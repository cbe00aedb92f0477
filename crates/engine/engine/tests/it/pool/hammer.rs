//! Many threads in a small pool: nothing torn, nothing lost, no checkpoint too far.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use iostrata_engine::EngineError;
use iostrata_engine::pool::Pool;
use iostrata_innodb::{Lsn, PageNo};

use crate::pool::support::*;

/// A redo that remembers where each page changed last before any LSN.
struct Redo {
    end: AtomicU64,
    changes: Vec<Mutex<Vec<u64>>>,
}

impl Redo {
    fn lsn(&self) -> Lsn {
        Lsn(self.end.load(Ordering::Acquire))
    }

    /// Where the change begins, and its end.
    fn append(&self, page: u64) -> (u64, u64) {
        let mut changes = self.changes[page as usize].lock().unwrap();
        let start = self.end.fetch_add(8, Ordering::AcqRel);
        changes.push(start);
        (start, start + 8)
    }
}

struct Field {
    pool: Arc<Pool>,
    source: Arc<MemorySource>,
    cleaner: Arc<InlineCleaner>,
    redo: Redo,
    /// What each page holds; changed under its exclusive latch.
    numbers: Vec<AtomicU64>,
    is_over: AtomicBool,
}

impl Field {
    fn new(frames: usize, pages: u64) -> Self {
        let (pool, source, cleaner) = pool(frames);
        let changes = (0..pages).map(|_| Mutex::default()).collect();
        let redo = Redo { end: AtomicU64::new(64), changes };
        let numbers = (0..pages).map(|_| AtomicU64::new(0)).collect();
        Self { pool, source, cleaner, redo, numbers, is_over: AtomicBool::new(false) }
    }

    fn pages(&self) -> u64 {
        self.numbers.len() as u64
    }

    fn write(&self, page: u64) -> Result<(), EngineError> {
        let pin = self.pool.pin(PageNo(page))?;
        let mut bytes = pin.exclusive();
        let before = stamp(&bytes);
        assert_eq!(before, self.numbers[page as usize].load(Ordering::Relaxed), "page {page}");
        bytes.mark_dirty(self.redo.lsn());
        let (start, end) = self.redo.append(page);
        fill(&mut bytes, start, end);
        self.numbers[page as usize].store(start, Ordering::Relaxed);
        Ok(())
    }

    fn read(&self, page: u64) -> Result<(), EngineError> {
        let bytes = self.pool.pin(PageNo(page))?.shared();
        let number = stamp(&bytes);
        assert_eq!(number, self.numbers[page as usize].load(Ordering::Relaxed), "page {page}");
        Ok(())
    }

    /// Two latches at once, in page order, the second only if it is there.
    fn read_two(&self, page: u64) -> Result<(), EngineError> {
        let first = self.pool.pin(PageNo(page))?.shared();
        if let Some(pin) = self.pool.try_pin(PageNo(page + 1)) {
            let second = pin.shared();
            let number = self.numbers[page as usize + 1].load(Ordering::Relaxed);
            assert_eq!(stamp(&second), number);
        }
        assert_eq!(stamp(&first), self.numbers[page as usize].load(Ordering::Relaxed));
        Ok(())
    }

    fn work(&self, seed: u64) {
        let mut dice = Dice(seed * 7919 + 1);
        while !self.is_over.load(Ordering::Relaxed) {
            // Some pages are much hotter than others.
            let bound = if dice.below(2) == 0 { 6 } else { self.made_from() - 1 };
            let page = dice.below(bound);
            let made = self.made_from() + dice.below(self.pages() - self.made_from());
            let result = match dice.below(16) {
                0..6 => self.write(page),
                6 => self.read_two(page),
                7 => {
                    self.pool.prefetch(&[PageNo(page), PageNo(made)]);
                    Ok(())
                }
                8 => self.make(made),
                9 => self.pool.pin(PageNo(made)).map(|pin| _ = stamp(&pin.shared())),
                _ => self.read(page),
            };
            result.unwrap();
        }
    }

    /// Pages from here on are only ever created, never read.
    fn made_from(&self) -> u64 {
        self.pages() * 9 / 10
    }

    /// As the engine makes a page: without looking at what it holds.
    fn make(&self, page: u64) -> Result<(), EngineError> {
        let mut bytes = self.pool.create(PageNo(page))?.exclusive();
        bytes.mark_dirty(self.redo.lsn());
        let (start, end) = self.redo.append(page);
        fill(&mut bytes, start, end);
        self.numbers[page as usize].store(start, Ordering::Relaxed);
        Ok(())
    }

    fn clean(&self, seed: u64) {
        let mut dice = Dice(seed * 104_729 + 1);
        while !self.is_over.load(Ordering::Relaxed) {
            let mut taken = Vec::new();
            if dice.below(2) == 0 {
                self.pool.collect_oldest(5, self.redo.lsn(), &mut taken);
            } else {
                self.pool.collect_cold(5, &mut taken);
            }
            if dice.below(4) == 0 {
                self.pool.not_flushed(taken);
            } else {
                self.cleaner.write(&self.pool, taken);
            }
            self.pool.evict(dice.below(3) as usize);
            thread::yield_now();
        }
    }

    /// A checkpoint may not pass a change that is not on the disk.
    fn checkpoint(&self) -> u64 {
        let end = self.redo.lsn();
        let upto = self.pool.dirty.oldest().map_or(end, |oldest| oldest.min(end));
        for page in 0..self.pages() {
            let last = {
                let changes = self.redo.changes[page as usize].lock().unwrap();
                let before = changes.partition_point(|start| *start < upto.0);
                before.checked_sub(1).map(|at| changes[at])
            };
            let Some(start) = last else { continue };
            let on_disk = self.source.lsn(PageNo(page));
            assert!(on_disk > start, "page {page}: {start} < {} but disk {on_disk}", upto.0);
        }
        upto.0
    }

    fn run(&self, threads: u64, time: Duration) {
        let end = Instant::now() + time;
        let mut checkpoints = 0;
        thread::scope(|scope| {
            let _over = Over(&self.is_over);
            let workers: Vec<_> = (0..threads)
                .map(|seed| scope.spawn(move || self.guarded(|| self.work(seed + 1))))
                .chain((0..2).map(|seed| scope.spawn(move || self.guarded(|| self.clean(seed)))))
                .collect();
            let mut last = 0;
            while Instant::now() < end && !self.is_over.load(Ordering::Relaxed) {
                let upto = self.checkpoint();
                checkpoints += u64::from(upto > last);
                last = upto.max(last);
                thread::sleep(Duration::from_micros(200));
            }
            self.is_over.store(true, Ordering::Relaxed);
            for worker in workers {
                worker.join().unwrap();
            }
        });
        assert!(checkpoints > 3, "{checkpoints}");
        self.finish();
    }

    fn guarded(&self, work: impl FnOnce()) {
        let _over = Over(&self.is_over);
        work();
    }

    fn finish(&self) {
        for page in 0..self.pages() {
            self.read(page).unwrap();
        }
        let mut rest = Vec::new();
        self.pool.collect_oldest(usize::MAX, Lsn(u64::MAX), &mut rest);
        self.cleaner.write(&self.pool, rest);
        assert_eq!((self.pool.dirty.pages(), self.pool.dirty.oldest()), (0, None));
        for page in 0..self.pages() {
            let number = self.numbers[page as usize].load(Ordering::Relaxed);
            assert_eq!(self.source.stamp(PageNo(page)), number);
        }
        self.pool.evict(self.pool.frames.len());
        assert_eq!(self.pool.queues.free(), self.pool.frames.len());
    }
}

/// Ends the others when one panics.
struct Over<'f>(&'f AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn time() -> Duration {
    let is_long = std::env::var_os("IOSTRATA_SOAK").is_some();
    Duration::from_millis(if is_long { 60_000 } else { 700 })
}

#[test]
fn nothing_is_torn_or_lost_in_a_small_pool() {
    Field::new(24, 60).run(8, time());
}

#[test]
fn nothing_is_torn_or_lost_by_many_threads() {
    Field::new(80, 120).run(30, time());
}

#[test]
fn nothing_is_torn_or_lost_where_all_pages_fit() {
    Field::new(64, 40).run(6, time());
}
