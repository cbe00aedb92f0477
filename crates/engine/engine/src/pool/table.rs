//! The page table: one word per page, flat by the dense page number.
//!
//! Invariant: an entry, once given out, stays where it is while the pool lives. The table grows by
//! chunks when a page of a new chunk is first asked for. A page number beyond every file is
//! refused, so that a broken link costs an error and not the memory of the machine.

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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::Ordering;

    use super::*;

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
}
