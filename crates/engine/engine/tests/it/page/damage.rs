//! Damaged pages and damaged records: found, and never more than that.

use iostrata_engine::page::{
    ApplyFault, PageEdit, PageFault, PageKind, PageSize, PageView, Record, layout,
};
use iostrata_innodb::PageNo;
use proptest::prelude::*;

use crate::page::fuzz::{fuzz_page, fuzz_records};
use crate::page::twin::{NO, Twin, fits};

/// A sealed page with some rows and some dead bytes.
fn sealed(size: PageSize, kind: PageKind) -> Vec<u8> {
    let mut twin = Twin::new(size, kind);
    for number in 0..60u32 {
        let key = if kind == PageKind::Inner && number == 0 {
            Vec::new()
        } else {
            [b"district/".as_slice(), &(number * 7 % 64).to_be_bytes()].concat()
        };
        twin.insert(&key, &[number as u8; 8]).unwrap();
    }
    for slot in [50, 20, 3] {
        twin.apply(&Record::Delete { slot }).unwrap();
    }
    let mut page = twin.view().bytes().to_vec();
    PageEdit::new(&mut page).seal();
    page
}

#[test]
fn every_flipped_byte_is_caught() {
    for size in PageSize::ALL {
        let mut page = sealed(size, PageKind::Leaf);
        assert_eq!(PageView::new(&page).verify(NO), Ok(()));
        let step = if size <= PageSize::DEFAULT { 1 } else { 7 };
        for at in (0..page.len()).step_by(step) {
            let bit = 1 << (at % 8);
            page[at] ^= bit;
            let found = PageView::new(&page).verify(NO);
            assert!(matches!(found, Err(PageFault::Checksum { .. })), "byte {at}: {found:?}");
            page[at] ^= bit;
        }
        assert_eq!(PageView::new(&page).verify(NO), Ok(()));
        let other = PageView::new(&page).verify(PageNo(43));
        assert_eq!(other, Err(PageFault::OtherPage { page: PageNo(43), found: NO }));
    }
}

#[test]
fn a_torn_page_and_a_blank_page_are_told_apart() {
    let new = sealed(PageSize::MIN, PageKind::Leaf);
    for sectors in 1..8 {
        let mut torn = vec![0; new.len()];
        torn[..sectors * 512].copy_from_slice(&new[..sectors * 512]);
        assert!(matches!(PageView::new(&torn).verify(NO), Err(PageFault::Checksum { .. })));
    }
    let blank = vec![0; new.len()];
    assert_eq!(PageView::new(&blank).verify(NO), Err(PageFault::Blank { page: NO }));
}

/// The page with other bytes at an offset, sealed again: only the shape reveals it.
fn resealed(page: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut page = page.to_vec();
    page[at..at + bytes.len()].copy_from_slice(bytes);
    PageEdit::new(&mut page).seal();
    page
}

#[test]
fn an_impossible_shape_is_found_behind_a_right_checksum() {
    let page = sealed(PageSize::MIN, PageKind::Leaf);
    let found = |at: usize, bytes: &[u8]| PageView::new(&resealed(&page, at, bytes)).verify(NO);
    for (kind, level) in [(9, 0), (1, 0), (2, 3), (4, 1)] {
        let fault = PageFault::Kind { page: NO, kind, level };
        assert_eq!(found(layout::AT_KIND, &[kind, level]), Err(fault));
    }
    for at in [layout::AT_FLAGS, layout::AT_RESERVED] {
        assert_eq!(found(at, &[1]), Err(PageFault::Reserved { page: NO }));
    }
    for (at, bytes) in [
        (layout::AT_COUNT, &[0xff, 0x01][..]),
        (layout::AT_HEAP_TOP, &[64, 0, 0, 0]),
        (layout::AT_HEAP_TOP, &[1, 0x10, 0, 0]),
        (layout::AT_GARBAGE, &[0, 0x10, 0, 0]),
        (layout::AT_PREFIX, &[1, 2]),
        (layout::AT_KIND, &[PageKind::Super as u8]),
    ] {
        let fault = found(at, bytes);
        assert!(matches!(fault, Err(PageFault::Header { .. })), "{at} {bytes:?}: {fault:?}");
    }
    for (cell, key_len) in [(4095u16, 13u16), (64, 13), (4000, 97), (4000, u16::MAX)] {
        let slot = [cell.to_le_bytes(), key_len.to_le_bytes()].concat();
        let fault = found(layout::HEADER_BYTES + 5 * layout::SLOT_BYTES, &slot);
        let expected = PageFault::Bounds { page: NO, slot: 5, cell: usize::from(cell) };
        assert_eq!(fault, Err(expected), "{cell} {key_len}");
    }
}

#[test]
fn a_child_of_another_length_is_found() {
    let page = sealed(PageSize::MIN, PageKind::Inner);
    let slot = layout::HEADER_BYTES + 4 * layout::SLOT_BYTES;
    let cell = usize::from(u16::from_le_bytes([page[slot], page[slot + 1]]));
    let page = resealed(&page, cell + layout::CELL_AT_VALUE_LEN, &7u16.to_le_bytes());
    let fault = PageView::new(&page).verify(NO);
    assert_eq!(fault, Err(PageFault::Entry { page: NO, slot: 4 }));
}

#[test]
fn the_deep_check_finds_what_bounds_do_not_show() {
    let page = sealed(PageSize::MIN, PageKind::Leaf);
    let slot = |slot: usize| layout::HEADER_BYTES + slot * layout::SLOT_BYTES;
    let deep = |page: &[u8]| {
        assert_eq!(PageView::new(page).verify(NO), Ok(()));
        PageView::new(page).verify_structure()
    };
    assert_eq!(deep(&page), Ok(()));
    let garbage = resealed(&page, layout::AT_GARBAGE, &[1, 0, 0, 0]);
    assert!(matches!(deep(&garbage), Err(PageFault::Garbage { counted: 1, .. })));
    let swapped = [&page[slot(7)..slot(8)], &page[slot(6)..slot(7)]].concat();
    let order = PageFault::Order { page: NO, slot: 7 };
    assert_eq!(deep(&resealed(&page, slot(6), &swapped)), Err(order));
    let head = PageFault::Head { page: NO, slot: 9 };
    assert_eq!(deep(&resealed(&page, slot(9) + layout::SLOT_AT_HEAD, &[99])), Err(head));
    let prefix = resealed(&page, layout::AT_PREFIX, &[3, 0]);
    assert!(matches!(deep(&prefix), Err(PageFault::Head { slot: 0, .. })));
    let cell = usize::from(u16::from_le_bytes([page[slot(9)], page[slot(9) + 1]]));
    for flag in [layout::FLAG_VERSIONED, layout::FLAG_TOMBSTONE] {
        let flagged = resealed(&page, cell, &[flag]);
        assert_eq!(deep(&flagged), Err(PageFault::Entry { page: NO, slot: 9 }));
    }
    // A value that reaches into the cell above it.
    let longer = resealed(&page, cell + layout::CELL_AT_VALUE_LEN, &60u16.to_le_bytes());
    assert!(matches!(deep(&longer), Err(PageFault::Overlap { .. })));
    let large = resealed(&page, cell + layout::CELL_AT_VALUE_LEN, &3000u16.to_le_bytes());
    assert!(PageView::new(&large).verify_structure().is_err());
}

#[test]
fn room_that_a_damaged_header_promises_is_not_taken() {
    let mut page = sealed(PageSize::MIN, PageKind::Leaf);
    let insert = |page: &mut Vec<u8>, key: u8| {
        let value = &[1; 500];
        let mut edit = PageEdit::new(page);
        let slot = edit.view().find(&[key]).unwrap_err();
        Record::Insert { slot, flags: 0, key: &[key], value }.apply(&mut edit, NO)
    };
    let mut key = 0;
    while fits(&PageView::new(&page), 1, 500) {
        insert(&mut page, key).unwrap();
        key += 1;
    }
    assert!(matches!(insert(&mut page, key), Err(ApplyFault::Full { .. })));
    let top = u32::from_le_bytes(page[layout::AT_HEAP_TOP..][..4].try_into().unwrap());
    let mut page = resealed(&page, layout::AT_GARBAGE, &(4096 - top).to_le_bytes());
    let before = page.clone();
    assert_eq!(PageView::new(&page).verify(NO), Ok(()));
    assert_eq!(insert(&mut page, key), Err(ApplyFault::Damaged { page: NO }));
    assert!(page == before);
}

#[test]
fn very_short_inputs_are_taken() {
    for bytes in [&[][..], &[0], &[0, 3], &[0, 4], &[9, 9, 9], &[255; 5]] {
        fuzz_page(bytes);
        fuzz_records(bytes);
    }
}

fn mutation() -> impl Strategy<Value = Vec<(usize, u8)>> {
    let near = (0usize..600, any::<u8>());
    let far = (0usize..PageSize::MIN.bytes(), any::<u8>());
    prop::collection::vec(prop_oneof![3 => near, 1 => far], 1..12)
}

/// Records that mostly decode, for one page.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let record = (1u8..14, prop::collection::vec(prop_oneof![0u8..12, any::<u8>()], 0..24))
        .prop_map(|(tag, rest)| [&[tag, 1][..], &rest].concat());
    prop::collection::vec(record, 0..30).prop_map(|records| records.concat())
}

proptest! {
    #![proptest_config(crate::page::twin::cases(300))]

    #[test]
    fn arbitrary_bytes_are_no_page_but_no_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        times in 1usize..60,
    ) {
        fuzz_page(&bytes.repeat(times));
    }

    #[test]
    fn damaged_pages_are_read_and_changed_without_panic(
        is_inner in any::<bool>(),
        changes in mutation(),
    ) {
        let kind = if is_inner { PageKind::Inner } else { PageKind::Leaf };
        let mut page = sealed(PageSize::MIN, kind);
        for (at, byte) in changes {
            page[at] = byte;
        }
        fuzz_page(&page);
    }

    #[test]
    fn damaged_headers_are_read_and_changed_without_panic(
        fields in prop::collection::vec((0usize..64, any::<u8>()), 1..6),
        size in prop::sample::select(PageSize::ALL.to_vec()),
    ) {
        let mut page = sealed(size, PageKind::Leaf);
        for (at, byte) in fields {
            page[at] = byte;
        }
        fuzz_page(&page);
    }

    #[test]
    fn arbitrary_bytes_are_records_or_faults(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        body in body(),
    ) {
        fuzz_records(&bytes);
        fuzz_records(&body);
    }
}
