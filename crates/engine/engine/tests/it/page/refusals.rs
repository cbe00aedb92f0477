//! What apply refuses, and why. The twin sees to it that nothing changes then.

use iostrata_engine::page::{
    ApplyFault, Cell, CellFault, Cells, Hunks, PageEdit, PageKind, PageSize, Record, RowTooLarge,
    Version, cell_bytes, layout, row_bytes,
};
use iostrata_innodb::{NO_PAGE, PageNo, TableId};

use crate::page::twin::{NO, Twin, fits, fits_replace};

fn insert<'a>(slot: usize, key: &'a [u8], value: &'a [u8]) -> Record<'a> {
    Record::Insert { slot, flags: 0, key, value }
}

#[test]
fn keys_go_where_they_belong() {
    let mut twin = Twin::new(PageSize::MIN, PageKind::Leaf);
    twin.insert(b"b", b"").unwrap();
    twin.insert(b"d", b"").unwrap();
    for (slot, key) in [(0, b"b"), (0, b"c"), (1, b"a"), (1, b"b"), (1, b"d"), (2, b"d"), (2, b"a")]
    {
        let fault = twin.apply(&insert(slot, key, b""));
        assert_eq!(fault, Err(ApplyFault::Order { page: NO, slot }), "{slot} {key:?}");
    }
    let mut cells = Vec::new();
    for key in [b"c", b"e"] {
        Cell { flags: 0, key, value: b"" }.push_to(&mut cells);
    }
    for at in [0, 1, 2] {
        let fault = twin.apply(&Record::Splice { at, cells: Cells::new(&cells) });
        assert!(matches!(fault, Err(ApplyFault::Order { .. })), "{at}");
    }
    let (kind, table, left, right) = (PageKind::Leaf, TableId(1), NO_PAGE, NO_PAGE);
    Cell { flags: 0, key: b"e", value: b"" }.push_to(&mut cells);
    let fault = twin.apply(&Record::Image { kind, level: 0, table, left, right, body: &cells });
    assert_eq!(fault, Err(ApplyFault::Order { page: NO, slot: 2 }));
}

#[test]
fn slots_values_and_pages_must_exist() {
    let mut twin = Twin::new(PageSize::MIN, PageKind::Leaf);
    twin.insert(b"b", b"value").unwrap();
    let no_slot = |slot| Err(ApplyFault::NoSlot { page: NO, slot, count: 1 });
    assert_eq!(twin.apply(&insert(2, b"c", b"")), no_slot(2));
    assert_eq!(twin.apply(&Record::Delete { slot: 1 }), no_slot(1));
    assert_eq!(twin.apply(&Record::Replace { slot: 1, value: b"" }), no_slot(1));
    let hunks = Hunks::new(&[]);
    assert_eq!(twin.apply(&Record::Revise { slot: 1, flags: 0, len: 0, hunks }), no_slot(1));
    assert_eq!(twin.apply(&Record::Truncate { from: 2 }), no_slot(2));
    assert_eq!(twin.apply(&Record::Splice { at: 2, cells: Cells::new(&[]) }), no_slot(2));
    let mut page = twin.view().bytes().to_vec();
    let fault = Record::Delete { slot: 0 }.apply(&mut PageEdit::new(&mut page), PageNo(1));
    assert_eq!(fault, Err(ApplyFault::OtherPage { page: PageNo(1), found: NO }));
}

#[test]
fn kinds_have_their_own_records_and_levels() {
    let bits = Record::SetBits { from: 0, count: 1, set: true };
    let bytes = Record::SetSuper { at: 0, bytes: b"a" };
    let rows = [insert(0, b"", &[0; 8]), Record::Delete { slot: 0 }, Record::SetLeft(PageNo(1))];
    for kind in [PageKind::Free, PageKind::Leaf, PageKind::Inner, PageKind::Space, PageKind::Super]
    {
        let mut twin = Twin::new(PageSize::MIN, kind);
        let wrong = Err(ApplyFault::WrongKind { page: NO, kind });
        let is_wrong = |result| result == wrong;
        assert_eq!(is_wrong(twin.apply(&bits)), kind != PageKind::Space);
        assert_eq!(is_wrong(twin.apply(&bytes)), kind != PageKind::Super);
        for record in rows {
            assert_eq!(is_wrong(twin.apply(&record)), !kind.is_slotted(), "{kind:?} {record:?}");
        }
        let level = u8::from(kind != PageKind::Inner);
        let (table, left, right) = (TableId(1), NO_PAGE, NO_PAGE);
        let level_fault = Err(ApplyFault::WrongLevel { page: NO, kind, level });
        assert_eq!(twin.apply(&Record::Init { kind, level, table, left, right }), level_fault);
        let body = &[];
        let image = Record::Image { kind, level, table, left, right, body };
        assert_eq!(twin.apply(&image), level_fault);
    }
    let (level, table, left, right) = (0, TableId(1), NO_PAGE, NO_PAGE);
    let body = &[1; 4033][..];
    for (kind, len) in [(PageKind::Free, 0), (PageKind::Space, 4032), (PageKind::Super, 4032)] {
        let mut twin = Twin::new(PageSize::MIN, PageKind::Leaf);
        let fault = twin.apply(&Record::Image { kind, level, table, left, right, body });
        assert_eq!(fault, Err(ApplyFault::OutOfRange { page: NO, from: 0, count: 4033, len }));
    }
}

#[test]
fn rows_are_those_of_the_page_s_kind() {
    let mut leaf = Twin::new(PageSize::MIN, PageKind::Leaf);
    let (versioned, tombstone) = (layout::FLAG_VERSIONED, layout::FLAG_TOMBSTONE);
    let entry = |slot| Err(ApplyFault::Entry { page: NO, slot });
    let header = Version { number: 7, older: 9 }.to_bytes();
    let longer = [&b"v"[..], &header].concat();
    // Too short for a version, tombstones without one or with a value before it.
    for (flags, value) in [
        (versioned | 4, &b""[..]),
        (versioned, &header[1..]),
        (tombstone, b""),
        (tombstone, &header),
        (versioned | tombstone, b""),
        (versioned | tombstone, &longer),
    ] {
        let insert = Record::Insert { slot: 0, flags, key: b"", value };
        assert_eq!(leaf.apply(&insert), entry(0), "{flags} {value:?}");
    }
    for (flags, value, payload) in [
        (4, &b"v"[..], &b"v"[..]),
        (versioned | 4, &longer, b"v"),
        (versioned, &header, b""),
        (versioned | tombstone, &header, b""),
    ] {
        leaf.apply(&Record::Insert { slot: 0, flags, key: b"", value }).unwrap();
        let cell = leaf.view().cell(0);
        let version = cell.version();
        assert_eq!((cell.flags, cell.payload()), (flags, payload));
        assert_eq!(version.is_some(), flags & versioned != 0);
        assert!(version.is_none_or(|version| version == Version { number: 7, older: 9 }));
        assert_eq!(leaf.view().verify_structure(), Ok(()));
        if cell.is_versioned() {
            let shorter = Record::Replace { slot: 0, value: &header[1..] };
            assert_eq!(leaf.apply(&shorter), entry(0));
        }
        leaf.apply(&Record::Delete { slot: 0 }).unwrap();
    }

    let mut inner = Twin::new(PageSize::MIN, PageKind::Inner);
    assert_eq!(inner.apply(&insert(0, b"a", &[0; 8])), entry(0));
    assert_eq!(inner.apply(&insert(0, b"", &[0; 7])), entry(0));
    for flags in [versioned, tombstone, versioned | tombstone] {
        let child = Record::Insert { slot: 0, flags, key: b"", value: &[1; 8] };
        assert_eq!(inner.apply(&child), entry(0), "{flags}");
    }
    inner.apply(&insert(0, b"", &[1; 8])).unwrap();
    assert_eq!(inner.apply(&insert(1, b"", &[1; 8])), entry(1));
    assert_eq!(inner.apply(&Record::Replace { slot: 0, value: &[0; 9] }), entry(0));
    let mut cells = Vec::new();
    Cell { flags: 0, key: b"a", value: &[0; 8] }.push_to(&mut cells);
    assert_eq!(inner.apply(&Record::Splice { at: 0, cells: Cells::new(&cells) }), entry(0));
    inner.apply(&Record::Splice { at: 1, cells: Cells::new(&cells) }).unwrap();
}

#[test]
fn damaged_cells_are_refused_whole() {
    let mut twin = Twin::new(PageSize::MIN, PageKind::Leaf);
    let mut cells = Vec::new();
    for key in [b"a", b"b"] {
        Cell { flags: 0, key, value: b"value" }.push_to(&mut cells);
    }
    for cut in 1..cells.len() {
        let result = twin.apply(&Record::Splice { at: 0, cells: Cells::new(&cells[..cut]) });
        if cut == cells.len() / 2 {
            result.unwrap();
            twin.apply(&Record::Truncate { from: 0 }).unwrap();
        } else {
            let fault = ApplyFault::Cells { page: NO, fault: CellFault::CutShort };
            assert_eq!(result, Err(fault), "{cut}");
        }
    }
}

#[test]
fn an_image_that_is_larger_than_the_page_is_refused() {
    for size in PageSize::ALL {
        let mut twin = Twin::new(size, PageKind::Leaf);
        let largest = vec![1; size.row_bytes_max() - 1];
        let mut body = Vec::new();
        for key in [b"a", b"b"] {
            Cell { flags: 0, key, value: &largest }.push_to(&mut body);
        }
        let (kind, table, left, right) = (PageKind::Leaf, TableId(1), NO_PAGE, NO_PAGE);
        let image = Record::Image { kind, level: 0, table, left, right, body: &body };
        twin.apply(&image).unwrap();
        assert!(twin.view().free_bytes() < row_bytes(0, 0));
        Cell { flags: 0, key: b"c", value: b"" }.push_to(&mut body);
        let (needed, free) = (2 * row_bytes(1, largest.len()) + row_bytes(1, 0), size.body_bytes());
        let full = Err(ApplyFault::Full { page: NO, needed, free });
        let image = Record::Image { kind, level: 0, table, left, right, body: &body };
        assert_eq!(twin.apply(&image), full);
    }
}

#[test]
fn limits_hold_to_the_byte_in_every_size() {
    for size in PageSize::ALL {
        let mut twin = Twin::new(size, PageKind::Leaf);
        let (key_max, row_max) = (size.key_bytes_max(), size.row_bytes_max());
        let key = vec![b'k'; key_max + 1];
        let value = vec![b'v'; row_max + 1];
        let limit = RowTooLarge::Key { bytes: key_max + 1, bytes_max: key_max };
        assert!(!fits(&twin.view(), key.len(), 0));
        assert_eq!(twin.insert(&key, b""), Err(ApplyFault::Row { page: NO, limit }));
        let limit = RowTooLarge::Row { bytes: row_max + 1, bytes_max: row_max };
        assert!(!fits(&twin.view(), 0, value.len()));
        assert_eq!(twin.insert(b"", &value), Err(ApplyFault::Row { page: NO, limit }));
        assert!(fits(&twin.view(), key_max, row_max - key_max));
        twin.insert(&key[1..], &value[..row_max - key_max]).unwrap();
        assert!(!fits_replace(&twin.view(), 0, row_max - key_max + 1));
        twin.insert(b"", &value[1..]).unwrap();
        assert_eq!(twin.view().count(), 2, "two largest rows fit");
        // What is left is exact, too.
        twin.apply(&Record::Delete { slot: 0 }).unwrap();
        let free = twin.view().free_bytes();
        let fitting = free - row_bytes(1, 0);
        let full = ApplyFault::Full { page: NO, needed: free + 1, free };
        let result = twin.apply(&insert(0, b"a", &vec![1; fitting + 1]));
        assert!(result == Err(full) || matches!(result, Err(ApplyFault::Row { .. })));
        let half = fitting / 2;
        twin.apply(&insert(0, b"a", &vec![1; half])).unwrap();
        let rest = twin.view().free_bytes() - row_bytes(1, 0);
        twin.apply(&insert(1, b"b", &vec![1; rest])).unwrap();
        assert_eq!(twin.view().free_bytes(), 0);
        assert!(!fits(&twin.view(), 0, 0));
        assert!(fits_replace(&twin.view(), 1, rest) && !fits_replace(&twin.view(), 1, rest + 1));
        twin.apply(&Record::Replace { slot: 0, value: &vec![2; half - 1] }).unwrap();
        twin.apply(&Record::Replace { slot: 1, value: &vec![3; rest + 1] }).unwrap();
        assert_eq!(twin.view().free_bytes(), 0, "the last byte is used");
        let free = cell_bytes(1, rest + 1);
        let full = Err(ApplyFault::Full { page: NO, needed: free + 1, free });
        assert_eq!(twin.apply(&Record::Replace { slot: 1, value: &vec![3; rest + 2] }), full);
        assert!(twin.view().value(0).iter().all(|byte| *byte == 2));
    }
}
