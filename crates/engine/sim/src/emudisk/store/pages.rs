//! Cuts a range of bytes at the borders of pages.

use std::ops::Range;

use super::PAGE_BYTES;

/// The part of a range that lies in one page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PagePart {
    /// Which page.
    pub page: u64,
    /// Bytes within the page.
    pub within: Range<usize>,
    /// Bytes within the whole range.
    pub of_range: Range<usize>,
}

impl PagePart {
    /// Whether it is the whole page.
    pub(super) fn is_whole(&self) -> bool {
        self.within.len() as u64 == PAGE_BYTES
    }
}

/// Parts of `bytes` bytes from `at`, in order.
pub(super) fn parts(at: u64, bytes: u64) -> impl Iterator<Item = PagePart> {
    let end = at + bytes;
    let mut next = at;
    std::iter::from_fn(move || {
        (next < end).then(|| {
            let page = next / PAGE_BYTES;
            let from = next;
            let to = end.min((page + 1) * PAGE_BYTES);
            next = to;
            let first = page * PAGE_BYTES;
            PagePart {
                page,
                within: (from - first) as usize..(to - first) as usize,
                of_range: (from - at) as usize..(to - at) as usize,
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_pages() {
        let cut: Vec<PagePart> = parts(4000, 4300).collect();
        assert_eq!(
            cut,
            [
                PagePart { page: 0, within: 4000..4096, of_range: 0..96 },
                PagePart { page: 1, within: 0..4096, of_range: 96..4192 },
                PagePart { page: 2, within: 0..108, of_range: 4192..4300 },
            ]
        );
        assert!(!cut[0].is_whole() && cut[1].is_whole());
        assert_eq!(parts(5, 0).count(), 0);
    }
}
