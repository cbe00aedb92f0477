//! The page table: one word per page, flat by the dense page number.
//!
//! Invariant: an entry, once given out, stays where it is while the pool lives. The table grows by
//! chunks when a page of a new chunk is first requested. A page number beyond every file is
//! refused, so that a broken link costs an error and not the memory of the machine.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use iostrata_innodb::PageNo;

use crate::error::EngineError;

const CHUNK_BITS: u32 = 13;
const CHUNK_PAGES: u64 = 1 << CHUNK_BITS;
/// Directories double in size: 1, 2, 4, ... chunks.
const DIRECTORIES: usize = 21;
/// Page numbers from here on are refused: 64 TiB of pages of 4 KiB.
const PAGES_MAX: u64 = ((1 << DIRECTORIES) - 1) * CHUNK_PAGES;

type Chunk = Box<[AtomicU64]>;
type Directory = Box<[OnceLock<Chunk>]>;

pub struct PageTable {
    directories: [OnceLock<Directory>; DIRECTORIES],
}

impl PageTable {
    pub fn new() -> Self {
        Self { directories: [const { OnceLock::new() }; DIRECTORIES] }
    }

    /// The entry of a page; made when it is the first of its chunk.
    #[inline]
    pub fn entry(&self, page: PageNo) -> Result<&AtomicU64, EngineError> {
        match self.existing(page) {
            Some(entry) => Ok(entry),
            None => self.grown(page),
        }
    }

    /// The entry of a page if its chunk was ever needed.
    #[inline]
    pub fn existing(&self, page: PageNo) -> Option<&AtomicU64> {
        if page.0 >= PAGES_MAX {
            return None;
        }
        let (directory, chunk, slot) = place(page);
        self.directories[directory].get()?[chunk].get()?.get(slot)
    }

    #[cold]
    fn grown(&self, page: PageNo) -> Result<&AtomicU64, EngineError> {
        if page.0 >= PAGES_MAX {
            let last = PAGES_MAX - 1;
            let problem = format!("no file can hold it, the last possible one is {last}");
            return Err(EngineError::corrupt(page, problem));
        }
        let (directory, chunk, slot) = place(page);
        let chunks = self.directories[directory]
            .get_or_init(|| (0..1_usize << directory).map(|_| OnceLock::new()).collect());
        let entries =
            chunks[chunk].get_or_init(|| (0..CHUNK_PAGES).map(|_| AtomicU64::new(0)).collect());
        Ok(&entries[slot])
    }
}

/// Directory, chunk in it, slot in that.
#[inline]
fn place(page: PageNo) -> (usize, usize, usize) {
    let chunk = (page.0 >> CHUNK_BITS) + 1;
    let directory = chunk.ilog2();
    let inner = chunk - (1 << directory);
    (directory as usize, inner as usize, (page.0 & (CHUNK_PAGES - 1)) as usize)
}

const STATE: u64 = 0b11;
const ABSENT: u64 = 0;
const BUSY: u64 = 1;
const RESIDENT: u64 = 2;
const USES_SHIFT: u32 = 2;
const USES: u64 = 0b11 << USES_SHIFT;
/// A thread waits for the end of the busy state.
pub const WAITED: u64 = 1 << 4;
const UNREAD: u64 = 1 << 5;
const PINS_SHIFT: u32 = 8;
pub const PIN: u64 = 1 << PINS_SHIFT;
const PINS: u64 = 0xff_ffff << PINS_SHIFT;
const HIGH_SHIFT: u32 = 32;
/// More pins on one page than threads and guards can ever hold.
const PINS_MAX: u32 = 0x7f_ffff;

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// Not resident; `stamp` is when it was evicted (0: never).
    pub fn absent(stamp: u32) -> Self {
        Self(ABSENT | u64::from(stamp) << HIGH_SHIFT)
    }

    /// Being loaded or leaving, without waiters.
    pub fn busy() -> Self {
        Self(BUSY)
    }

    /// In this frame, with so many pins and nothing known of its use.
    pub fn resident(frame: u32, pins: u32) -> Self {
        Self(RESIDENT | u64::from(pins) << PINS_SHIFT | u64::from(frame) << HIGH_SHIFT)
    }

    #[inline]
    pub fn is_absent(self) -> bool {
        self.0 & STATE == ABSENT
    }

    #[inline]
    pub fn is_busy(self) -> bool {
        self.0 & STATE == BUSY
    }

    #[inline]
    pub fn is_resident(self) -> bool {
        self.0 & STATE == RESIDENT
    }

    pub fn is_waited_for(self) -> bool {
        self.0 & WAITED != 0
    }

    #[inline]
    pub fn frame(self) -> u32 {
        (self.0 >> HIGH_SHIFT) as u32
    }

    /// Of an absent page: when it was evicted.
    pub fn stamp(self) -> u32 {
        (self.0 >> HIGH_SHIFT) as u32
    }

    #[inline]
    pub fn pins(self) -> u32 {
        ((self.0 & PINS) >> PINS_SHIFT) as u32
    }

    /// How often it proved to be used again, up to 3.
    #[inline]
    pub fn uses(self) -> u32 {
        ((self.0 & USES) >> USES_SHIFT) as u32
    }

    /// Read ahead and not used yet.
    #[inline]
    pub fn is_unread(self) -> bool {
        self.0 & UNREAD != 0
    }

    /// Whether the count of uses can grow.
    #[inline]
    pub fn is_used_most(self) -> bool {
        self.0 & USES == USES
    }

    #[inline]
    pub fn pinned(self) -> Self {
        assert!(
            self.pins() < PINS_MAX,
            "pins of one page without end: a guard is leaked in a loop"
        );
        Self(self.0 + PIN)
    }

    #[inline]
    pub fn used(self) -> Self {
        if self.is_used_most() { self } else { Self(self.0 + (1 << USES_SHIFT)) }
    }

    pub fn used_less(self) -> Self {
        if self.uses() == 0 { self } else { Self(self.0 - (1 << USES_SHIFT)) }
    }

    pub fn unused(self) -> Self {
        Self(self.0 & !USES)
    }

    #[inline]
    pub fn with_unread(self, unread: bool) -> Self {
        Self(if unread { self.0 | UNREAD } else { self.0 & !UNREAD })
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = ["absent", "busy", "resident", "?"][(self.0 & STATE) as usize];
        let (pins, uses, high) = (self.pins(), self.uses(), self.frame());
        write!(out, "{state} pins {pins} uses {uses} high {high} flags {:x}", self.0 & 0xf0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::Ordering;

    use super::{Word, *};

    #[test]
    fn every_page_has_one_place_of_its_own() {
        let mut seen = HashSet::new();
        for page in (0..10 * CHUNK_PAGES).chain(PAGES_MAX - 3..PAGES_MAX) {
            let at = place(PageNo(page));
            assert!(at.0 < DIRECTORIES && at.1 < 1 << at.0 && at.2 < CHUNK_PAGES as usize);
            assert!(seen.insert(at), "{page}");
        }
    }

    #[test]
    fn entries_stay_and_wild_numbers_are_refused() {
        let table = PageTable::new();
        assert!(table.existing(PageNo(5)).is_none());
        table.entry(PageNo(5)).unwrap().store(9, Ordering::Relaxed);
        table.entry(PageNo(5 + 3 * CHUNK_PAGES)).unwrap();
        assert_eq!(table.existing(PageNo(5)).unwrap().load(Ordering::Relaxed), 9);
        for page in [PAGES_MAX, u64::MAX] {
            assert!(table.existing(PageNo(page)).is_none());
            assert!(matches!(table.entry(PageNo(page)), Err(EngineError::Corrupt { .. })));
        }
        table.entry(PageNo(PAGES_MAX - 1)).unwrap();
    }

    #[test]
    fn parts_do_not_touch_each_other() {
        let mut word = Word::resident(u32::MAX, 1).with_unread(true);
        for _ in 0..9 {
            word = word.used().pinned();
        }
        assert_eq!((word.frame(), word.pins(), word.uses()), (u32::MAX, 10, 3));
        assert!(word.is_unread() && word.is_resident() && !word.is_waited_for());
        word = word.used_less().with_unread(false);
        assert_eq!((word.frame(), word.pins(), word.uses()), (u32::MAX, 10, 2));
        assert_eq!(word.unused().uses(), 0);
        assert!(!word.is_unread() && word.is_resident());
        assert!(Word::absent(7).is_absent() && Word::busy().is_busy());
        assert_eq!(Word::absent(7).stamp(), 7);
        assert!(Word(0).is_absent());
    }
}
