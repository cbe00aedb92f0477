//! Where the files lie, and which pages a row touches.
//!
//! Rules, from the MyISAM part of the MySQL 5.1 manual and the post's table: four indexes (one of
//! them rising, three random) in blocks of 1,024 bytes (`myisam_block_size`), written to the page
//! cache after every statement as keys are not delayed; rows in the data file in order; the head of
//! the index file after every statement. A random key lands in any page of the index file with the
//! same chance, because blocks of all four indexes lie in it in the order of splits.
//! It leaves out inner nodes (they change with splits only) and the free space of old tables.

use super::plan::{INDEX_BYTES_PER_ROW, index_bytes};
use crate::cache::PAGE_BYTES;
use iostrata_stats::Random;

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
pub(super) const TOUCHES: usize = RANDOM_KEYS + 3;

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
    pub(super) fn index_pages(&self) -> u32 {
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

    pub(super) fn reader_at_bytes(&self) -> u64 {
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
    pub(super) fn is_added(&self, page: u32) -> bool {
        page > self.index_pages
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
}
