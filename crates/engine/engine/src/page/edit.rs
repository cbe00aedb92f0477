//! Changing a page.
//!
//! Purpose: the mutable view. To the outside it offers what the log does not carry: formatting,
//! the LSN, the checksum. Rows change through [`Record::apply`](crate::page::Record::apply) alone.
//! Invariant: as total as [`PageView`].

use std::ops::Range;

use iostrata_innodb::{Lsn, PageNo, TableId};

use super::layout::{
    AT_APPENDS, AT_COUNT, AT_CRC, AT_GARBAGE, AT_HEAP_TOP, AT_KIND, AT_LEFT, AT_LEVEL, AT_LSN,
    AT_PAGE_NO, AT_PREFIX, AT_RIGHT, AT_TABLE, PageKind, PageSize, is_page_bytes, narrow, put,
};
use super::view::{PageView, computed_crc};

/// The bytes of one page, to change.
pub struct PageEdit<'a> {
    bytes: &'a mut [u8],
}

impl<'a> PageEdit<'a> {
    /// The page in `bytes`, which must be as long as a page.
    ///
    /// # Panics
    /// When no [`PageSize`] has this length: the caller mistook the buffer.
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Self {
        assert!(is_page_bytes(bytes.len()), "a buffer of {} bytes is no page", bytes.len());
        Self { bytes }
    }

    #[inline]
    pub fn view(&self) -> PageView<'_> {
        PageView::measured(self.bytes)
    }

    /// Makes it an empty page: every byte is written, the LSN is 0.
    pub fn format(
        &mut self,
        kind: PageKind,
        level: u8,
        table: TableId,
        page_no: PageNo,
        left: PageNo,
        right: PageNo,
    ) {
        self.bytes.fill(0);
        put(self.bytes, AT_KIND, &[kind as u8]);
        put(self.bytes, AT_LEVEL, &[level]);
        put(self.bytes, AT_TABLE, &table.0.to_le_bytes());
        put(self.bytes, AT_PAGE_NO, &page_no.0.to_le_bytes());
        self.set_left(left);
        self.set_right(right);
        if kind.is_slotted() {
            self.set_heap_top(self.bytes.len());
        }
    }

    /// Stamps the end of the redo frame that changed the page last.
    #[inline]
    pub fn set_lsn(&mut self, lsn: Lsn) {
        put(self.bytes, AT_LSN, &lsn.0.to_le_bytes());
    }

    /// Writes the checksum, after everything else and before the page goes to a file.
    #[inline]
    pub fn seal(&mut self) {
        let crc = computed_crc(self.bytes);
        put(self.bytes, AT_CRC, &crc.to_le_bytes());
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    #[inline]
    pub(crate) fn set_left(&mut self, left: PageNo) {
        put(self.bytes, AT_LEFT, &left.0.to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_right(&mut self, right: PageNo) {
        put(self.bytes, AT_RIGHT, &right.0.to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_count(&mut self, count: usize) {
        put(self.bytes, AT_COUNT, &narrow(count).to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_heap_top(&mut self, at: usize) {
        put(self.bytes, AT_HEAP_TOP, &(at as u32).to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_garbage(&mut self, bytes: usize) {
        put(self.bytes, AT_GARBAGE, &(bytes as u32).to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_prefix_len(&mut self, bytes: usize) {
        put(self.bytes, AT_PREFIX, &narrow(bytes).to_le_bytes());
    }

    #[inline]
    pub(crate) fn set_appends(&mut self, inserts: usize) {
        let inserts = inserts.min(usize::from(u16::MAX));
        put(self.bytes, AT_APPENDS, &narrow(inserts).to_le_bytes());
    }
}

/// The readers of [`PageView`], so that an edit reads like a view.
macro_rules! readers {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        impl PageEdit<'_> {
            $(
                #[doc = concat!("See [`PageView::", stringify!($name), "`].")]
                #[inline]
                pub fn $name(&self, $($argument: $kind),*) -> $result {
                    self.view().$name($($argument),*)
                }
            )*
        }
    };
}

readers! {
    bytes() -> &[u8];
    size() -> PageSize;
    kind() -> PageKind;
    count() -> usize;
    page_no() -> PageNo;
    key(slot: usize) -> &[u8];
    bit(bit: u32) -> bool;
    bits_set_in(bits: Range<u32>) -> u32;
}

// The Space page: one bit for each of a run of pages.
//
// Invariant: bit n is bit n % 8, counted from the least significant, of byte n / 8 behind the
// header; it is set when the page is in use. Which page bit 0 stands for is the caller's
// business.

impl PageView<'_> {
    /// Whether a bit is set; bits beyond [`space_bits`](super::PageSize::space_bits) are not.
    #[inline]
    pub fn bit(&self, bit: u32) -> bool {
        let byte = self.body().get(bit as usize / 8).copied().unwrap_or(0);
        byte >> (bit % 8) & 1 == 1
    }

    pub fn bits_set_in(&self, bits: Range<u32>) -> u32 {
        let end = bits.end.min(self.size().space_bits());
        let first = bits.start / 64;
        let words = self.body().as_chunks().0;
        let range = words.get(first as usize..end.div_ceil(64) as usize).unwrap_or_default();
        (first..)
            .zip(range)
            .map(|(at, word)| {
                (u64::from_le_bytes(*word) & mask(bits.start, end, at * 64)).count_ones()
            })
            .sum()
    }

    /// The first bit at or behind `from` that is not set.
    pub fn first_clear(&self, from: u32) -> Option<u32> {
        let words = self.body().as_chunks().0;
        let first = from / 64;
        let mut hidden = !mask(from, u32::MAX, first * 64);
        for (at, word) in (first..).zip(words.get(first as usize..)?) {
            let clear = !(u64::from_le_bytes(*word) | std::mem::take(&mut hidden));
            if clear != 0 {
                return Some(at * 64 + clear.trailing_zeros());
            }
        }
        None
    }
}

/// The bits of the word that begins at bit `base` that lie in `start..end`.
fn mask(start: u32, end: u32, base: u32) -> u64 {
    let below = start.saturating_sub(base);
    let above = base.saturating_add(64).saturating_sub(end);
    if below >= 64 || above >= 64 {
        return 0;
    }
    (u64::MAX << below) & (u64::MAX >> above)
}

/// Sets or clears bits. They lie within the body.
pub(crate) fn write_bits(body: &mut [u8], bits: Range<u32>, set: bool) {
    let (words, _) = body.as_chunks_mut();
    for at in bits.start / 64..bits.end.div_ceil(64) {
        let mask = mask(bits.start, bits.end, at * 64);
        if let Some(word) = words.get_mut(at as usize) {
            let old = u64::from_le_bytes(*word);
            *word = (if set { old | mask } else { old & !mask }).to_le_bytes();
        }
    }
}
