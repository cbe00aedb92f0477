//! Contents in memory.
//!
//! Invariant: a page that is kept is not all zeros.

use std::collections::HashMap;
use std::ops::Range;

use super::pages::parts;
use super::{PAGE, PAGE_BYTES};

#[derive(Debug)]
pub(super) struct Memory {
    pages: HashMap<u64, Box<[u8; PAGE]>>,
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

impl Memory {
    pub(super) fn new() -> Self {
        Self { pages: HashMap::new() }
    }

    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Pages that a write could add.
    pub(super) fn missing(&self, at: u64, bytes: usize) -> u64 {
        parts(at, bytes as u64).filter(|part| !self.pages.contains_key(&part.page)).count() as u64
    }

    pub(super) fn read(&self, at: u64, into: &mut [u8]) {
        for part in parts(at, into.len() as u64) {
            let into = &mut into[part.of_range.clone()];
            match self.pages.get(&part.page) {
                Some(page) => into.copy_from_slice(&page[part.within.clone()]),
                None => into.fill(0),
            }
        }
    }

    pub(super) fn write(&mut self, at: u64, from: &[u8]) {
        for part in parts(at, from.len() as u64) {
            let from = &from[part.of_range.clone()];
            if !is_zero(from) {
                let page = self.pages.entry(part.page).or_insert_with(|| Box::new([0; PAGE]));
                page[part.within.clone()].copy_from_slice(from);
            } else if part.is_whole() {
                self.pages.remove(&part.page);
            } else if let Some(page) = self.pages.get_mut(&part.page) {
                page[part.within.clone()].fill(0);
                if is_zero(&page[..]) {
                    self.pages.remove(&part.page);
                }
            }
        }
    }

    pub(super) fn zero(&mut self, range: Range<u64>) {
        let whole = range.start.div_ceil(PAGE_BYTES)..range.end / PAGE_BYTES;
        if whole.is_empty() {
            return self.write(range.start, &vec![0; (range.end - range.start) as usize]);
        }
        let before = whole.start * PAGE_BYTES - range.start;
        let after = range.end - whole.end * PAGE_BYTES;
        self.write(range.start, &vec![0; before as usize]);
        self.write(whole.end * PAGE_BYTES, &vec![0; after as usize]);
        if whole.end - whole.start > self.pages() {
            self.pages.retain(|page, _| !whole.contains(page));
        } else {
            for page in whole {
                self.pages.remove(&page);
            }
        }
    }
}
