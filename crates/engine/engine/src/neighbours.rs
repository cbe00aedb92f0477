//! Dirty pages beside those that are written anyway: `flush_neighbors`.
//!
//! Invariant: a neighbour lies beside its page in the same data file and in the same extent of 64
//! pages there; each page is taken once. Neighbours count as what is ordered: no more pages are
//! taken than without them, but others. On disks without seeks it only costs: the default is none.

use iostrata_innodb::{Lsn, PageNo};

use crate::pool::Flushing;
use crate::storage::Storage;

const EXTENT_PAGES: u64 = 64;

/// Takes up to `most` pages into the empty `taken`: the oldest with changes before `until`, each
/// with its neighbours as `flush_neighbors` says.
pub(crate) fn take_oldest(storage: &Storage, most: usize, until: Lsn, taken: &mut Vec<Flushing>) {
    let mode = storage.settings.load().flush_neighbors;
    if mode == 0 {
        return storage.pool.collect_oldest(most, until, taken);
    }
    while taken.len() < most {
        let at = taken.len();
        storage.pool.collect_oldest(1, until, taken);
        let Some(page) = taken.get(at).map(|oldest| oldest.page) else { return };
        take_beside(storage, page, (mode, most), taken);
    }
}

/// Takes the neighbours of one page, until `most` are taken in all.
fn take_beside(
    storage: &Storage,
    page: PageNo,
    (mode, most): (u32, usize),
    taken: &mut Vec<Flushing>,
) {
    for downward in [true, false] {
        for next in beside(page, storage.data_files, downward) {
            if taken.len() >= most {
                return;
            }
            let is_taken = storage.pool.collect_page(next, taken);
            if mode == 1 && !is_taken {
                break;
            }
        }
    }
}

/// The pages of the same extent of the same file, going away from `page`.
fn beside(page: PageNo, data_files: u64, downward: bool) -> impl Iterator<Item = PageNo> {
    let (file, place) = (page.0 % data_files, page.0 / data_files);
    let first = place - place % EXTENT_PAGES;
    let count = if downward { place - first } else { first + EXTENT_PAGES - 1 - place };
    (1..=count).map(move |distance| {
        let place = if downward { place - distance } else { place + distance };
        PageNo(place * data_files + file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_lie_in_one_extent_of_one_file() {
        // Page 266 is place 66 of file 2: the third page of the second extent.
        let down: Vec<u64> = beside(PageNo(266), 4, true).map(|page| page.0).collect();
        assert_eq!(down, [262, 258]);
        let up: Vec<u64> = beside(PageNo(266), 4, false).map(|page| page.0).collect();
        assert_eq!((up.len(), up[0], up[60]), (61, 270, 127 * 4 + 2));
        assert_eq!(beside(PageNo(0), 1, true).count(), 0);
        assert_eq!(beside(PageNo(63), 1, false).count(), 0);
    }
}
