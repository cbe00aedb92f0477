//! Rows revised as differences: what the hunks hold, and the value after them.

use iostrata_engine::page::{
    ApplyFault, Cell, CellFault, Hunks, PageKind, PageSize, Record, Version, layout,
};
use iostrata_innodb::PageNo;
use proptest::prelude::*;

use crate::page::twin::{NO, Twin};

/// Number and older of a stock row's version, and the fields that a new order changes.
pub struct Stock {
    pub version: Version,
    pub quantity: u16,
    pub ytd: u32,
    pub orders: u16,
}

impl Stock {
    /// The payload's 306 bytes: item, warehouse, quantity, ten districts of 24 bytes, what was
    /// sold, orders, remote orders, 48 bytes of data.
    pub fn payload(&self) -> Vec<u8> {
        let mut row = [7_u32.to_le_bytes(), 3_u32.to_le_bytes()].concat();
        row.extend(self.quantity.to_le_bytes());
        (0..10_u8).for_each(|district| row.extend([b'a' + district; 24]));
        row.extend(self.ytd.to_le_bytes());
        row.extend(self.orders.to_le_bytes());
        row.extend(0_u16.to_le_bytes());
        row.extend([b'd'; 48]);
        assert_eq!(row.len(), 306);
        row
    }

    pub fn value(&self) -> Vec<u8> {
        [&self.payload()[..], &self.version.to_bytes()].concat()
    }
}

/// A row before and after a new order.
pub fn sold() -> [Stock; 2] {
    let version = |number, older| Version { number, older };
    let before = version(0x0012_3456, 0x0001_0203_0405);
    let after = version(0x0065_4321, 0x0002_0304_0506);
    [
        Stock { version: before, quantity: 0x0160, ytd: 0x0403_0201, orders: 0x01ff },
        Stock { version: after, quantity: 0x0059, ytd: 0x0807_0605, orders: 0x0200 },
    ]
}

#[test]
fn a_stock_row_takes_34_bytes_of_redo() {
    let [before, after] = sold();
    let (mut out, mut log) = (Vec::new(), Vec::new());
    let (payload, version) = (after.payload(), after.version.to_bytes());
    let hunks = Hunks::between(&before.value(), [&payload, &version], &mut out);
    let quantity = [&[8, 2][..], &[0x59, 0]].concat();
    let sold = [&[0xf0, 1, 6][..], &[5, 6, 7, 8, 0, 2]].concat();
    let number = [&[50, 3][..], &[0x21, 0x43, 0x65]].concat();
    let older = [&[5, 5][..], &[6, 5, 4, 3, 2]].concat();
    assert_eq!(hunks.bytes(), [quantity, sold, number, older].concat());
    let revise = Record::Revise { slot: 20, flags: 1, len: 322, hunks };
    revise.encode(PageNo(1_000_000), &mut log);
    // 9 for number, page, slot, flags, length and the hunks' length; 25 for the hunks.
    assert_eq!(log.len(), 34);
}

/// A leaf with a row before, the row, and one behind it.
fn leaf(flags: u8, value: &[u8]) -> Twin {
    let mut twin = Twin::new(PageSize::MIN, PageKind::Leaf);
    twin.insert(b"a", b"before").unwrap();
    twin.insert(b"c", b"behind").unwrap();
    twin.apply(&Record::Insert { slot: 1, flags, key: b"b", value }).unwrap();
    twin
}

/// Revises the middle row and checks it and its neighbours.
fn revise(twin: &mut Twin, flags: u8, new: [&[u8]; 2]) {
    let (old, mut out) = (twin.view().value(1).to_vec(), Vec::new());
    let (len, hunks) = (new[0].len() + new[1].len(), Hunks::between(&old, new, &mut out));
    twin.apply(&Record::Revise { slot: 1, flags, len, hunks }).unwrap();
    let view = twin.view();
    assert_eq!(view.cell(1), Cell { flags, key: b"b", value: &new.concat() });
    assert_eq!(
        (view.row(0), view.row(2)),
        ((&b"a"[..], &b"before"[..]), (&b"c"[..], &b"behind"[..]))
    );
}

#[test]
fn a_row_gains_and_loses_versions() {
    let (versioned, tombstone) = (layout::FLAG_VERSIONED, layout::FLAG_TOMBSTONE);
    let header = |number| Version { number, older: number << 30 }.to_bytes();
    let mut twin = leaf(4, b"payload");
    revise(&mut twin, versioned, [b"payload", &header(1)]);
    revise(&mut twin, versioned, [b"another payload", &header(2)]);
    revise(&mut twin, versioned | tombstone, [b"", &header(3)]);
    assert!(twin.view().cell(1).is_tombstone());
    revise(&mut twin, versioned | tombstone, [b"", &header(3)]);
    revise(&mut twin, versioned, [b"returned", &header(4)]);
    revise(&mut twin, 0, [b"", b"returned"]);
    assert_eq!(twin.view().cell(1).version(), None);
    revise(&mut twin, 0, [b"", b""]);
    assert_eq!(twin.view().used_bytes(), 3 * layout::row_bytes(1, 0) + 12);
}

#[test]
fn flags_must_fit_the_value_and_the_page() {
    let header = Version { number: 1, older: 2 }.to_bytes();
    let mut leaf = leaf(1, &header);
    let revise =
        |slot, flags, len| Record::Revise { slot, flags, len, hunks: Hunks::new(b"\x00\x01x") };
    for (flags, len) in [(1, 15), (2, 16), (3, 15), (2, 1)] {
        let fault = leaf.apply(&revise(1, flags, len));
        assert_eq!(fault, Err(ApplyFault::Entry { page: NO, slot: 1 }), "{flags} {len}");
    }
    leaf.apply(&revise(1, 3, 16)).unwrap();
    leaf.apply(&revise(1, 0, 15)).unwrap();
    let fault = leaf.apply(&revise(1, 0, 3000));
    assert!(matches!(fault, Err(ApplyFault::Row { page: NO, .. })), "{fault:?}");
    let mut inner = Twin::new(PageSize::MIN, PageKind::Inner);
    inner.insert(b"", &[1; 8]).unwrap();
    inner.apply(&revise(0, 4, 8)).unwrap();
    assert_eq!(inner.view().child(0), PageNo(0x0101_0101_0101_0178));
    for (flags, len) in [(0, 7), (1, 8), (2, 8)] {
        let fault = inner.apply(&revise(0, flags, len));
        assert_eq!(fault, Err(ApplyFault::Entry { page: NO, slot: 0 }), "{flags} {len}");
    }
}

#[test]
fn hunks_that_do_not_fit_are_refused() {
    let mut twin = leaf(0, b"value");
    let mut attempt = |len, hunks| {
        let hunks = Hunks::new(hunks);
        twin.apply(&Record::Revise { slot: 1, flags: 0, len, hunks })
    };
    let uncovered = |at| Err(ApplyFault::Uncovered { page: NO, slot: 1, at });
    assert_eq!(attempt(6, b""), uncovered(5));
    assert_eq!(attempt(7, b"\x05\x01x"), uncovered(6));
    assert_eq!(attempt(7, b"\x06\x01x"), uncovered(5));
    assert_eq!(attempt(9, b"\x05\x01x\x01\x02yz"), uncovered(6));
    let range = |from, count, len| Err(ApplyFault::OutOfRange { page: NO, from, count, len });
    assert_eq!(attempt(4, b"\x03\x02xy"), range(3, 2, 4));
    assert_eq!(attempt(5, b"\x06\x00"), range(6, 0, 5));
    assert_eq!(attempt(5, b"\x04\x01x\x01\x00"), range(6, 0, 5));
    let damaged = |fault| Err(ApplyFault::Hunks { page: NO, fault });
    assert_eq!(attempt(5, b"\x01"), damaged(CellFault::CutShort));
    assert_eq!(attempt(5, b"\x01\x02x"), damaged(CellFault::CutShort));
    assert_eq!(attempt(5, b"\x00\x01x\x80\x00"), damaged(CellFault::Number));
    assert_eq!(attempt(5, b"\x00\x01x\xff\xff\x7f\x00"), damaged(CellFault::Number));
    assert_eq!(attempt(4, b"\x00\x01V\x02\x01U"), Ok(()));
    assert_eq!(twin.view().value(1), b"ValU");
}

#[test]
fn only_the_bytes_that_differ_change() {
    let mut twin = leaf(4, b"a value that keeps its place");
    let before = twin.view().bytes().to_vec();
    let at = before.windows(7).position(|part| part == b"a value").unwrap();
    revise(&mut twin, 8, [b"a value ", b"THAT keeps its place"]);
    let mut expected = before;
    expected[at + 8..at + 12].copy_from_slice(b"THAT");
    expected[at - 4] = 8;
    assert!(twin.view().bytes() == expected);
}

#[test]
fn a_growing_row_moves_or_has_the_page_compacted() {
    let mut twin = leaf(4, &[1; 500]);
    let filler = twin.view().gap_bytes() - layout::row_bytes(1, 0) - 700;
    let (first, second) = (vec![2; filler / 2], vec![3; filler - filler / 2]);
    twin.insert(b"d", &first).unwrap();
    twin.insert(b"e", &second[layout::row_bytes(1, 0)..]).unwrap();
    let gap = twin.view().gap_bytes();
    revise(&mut twin, 8, [&[1; 500], &[9; 50]]);
    assert_eq!(twin.view().gap_bytes(), gap - layout::cell_bytes(1, 550), "it moved");
    revise(&mut twin, 16, [&[1; 490], &[8; 160]]);
    assert_eq!(twin.view().gap_bytes(), twin.view().free_bytes(), "it was compacted");
    let most = 650 + twin.view().free_bytes();
    let new = vec![8; most + 1];
    let mut out = Vec::new();
    let hunks = Hunks::between(twin.view().value(1), [&new, b""], &mut out);
    let free = layout::cell_bytes(1, most);
    let full = Err(ApplyFault::Full { page: NO, needed: free + 1, free });
    assert_eq!(twin.apply(&Record::Revise { slot: 1, flags: 0, len: most + 1, hunks }), full);
    revise(&mut twin, 0, [&new[..most], b""]);
    assert_eq!(twin.view().free_bytes(), 0, "the last byte is used");
}

/// Applies hunks, byte by byte.
fn said(old: &[u8], len: usize, mut hunks: &[u8]) -> Option<Vec<u8>> {
    let mut new: Vec<Option<u8>> = old.iter().map(|byte| Some(*byte)).take(len).collect();
    new.resize(len, None);
    let mut at = 0;
    while !hunks.is_empty() {
        let [kept, count] = [number(&mut hunks)?, number(&mut hunks)?];
        at += kept;
        new.get(..at)?;
        for byte in hunks.split_off(..count)? {
            *new.get_mut(at)? = Some(*byte);
            at += 1;
        }
    }
    new.into_iter().collect()
}

fn number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in [0, 7, 14] {
        let byte = *bytes.split_off_first()?;
        number |= usize::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            let is_shortest = byte > 0 || shift == 0;
            return (is_shortest && number <= layout::PAGE_BYTES_MAX).then_some(number);
        }
    }
    None
}

fn push(out: &mut Vec<u8>, number: usize) {
    if number >= 0x80 {
        out.push(number as u8 | 0x80);
    }
    out.push(if number >= 0x80 { number >> 7 } else { number } as u8);
}

/// Hunks with nothing clever about how they are found. Values are shorter than 16 KiB.
fn hunks_between(old: &[u8], new: &[u8]) -> Vec<u8> {
    let differs = (0..new.len()).filter(|at| old.get(*at) != Some(&new[*at]));
    let mut found: Vec<(usize, usize)> = Vec::new();
    for at in differs {
        match found.last_mut() {
            Some((_, end)) if at <= *end + 2 => *end = at + 1,
            _ => found.push((at, at + 1)),
        }
    }
    let (mut out, mut last) = (Vec::new(), 0);
    for (start, end) in found {
        push(&mut out, start - last);
        push(&mut out, end - start);
        out.extend_from_slice(&new[start..end]);
        last = end;
    }
    out
}

/// An old and a new value that mostly have much in common, and where the new one is cut in two.
fn values() -> impl Strategy<Value = (Vec<u8>, Vec<u8>, usize)> {
    let byte = prop_oneof![8 => 0u8..3, 1 => any::<u8>()];
    let old = prop::collection::vec(byte.clone(), 0..600);
    let edits = prop::collection::vec((0usize..600, 1usize..20, any::<u8>()), 0..12);
    let tail = prop::collection::vec(byte, 0..300);
    (old, edits, 0usize..700, tail, any::<prop::sample::Index>()).prop_map(
        |(old, edits, kept, tail, cut)| {
            let mut new = old.clone();
            new.truncate(kept);
            if kept > 200 {
                new.extend_from_slice(&tail[..tail.len() * usize::from(kept > 600)]);
            }
            for (at, count, byte) in edits {
                new.iter_mut().skip(at).take(count).for_each(|old| *old ^= byte);
            }
            let cut = cut.index(new.len() + 1);
            (old, new, cut)
        },
    )
}

/// Hunks that are mostly valid, and a length near theirs.
fn arbitrary_hunks() -> impl Strategy<Value = (Vec<u8>, usize)> {
    let hunk = (0usize..9, prop::collection::vec(any::<u8>(), 0..6), 0usize..200);
    let hunks = prop::collection::vec(hunk, 0..5).prop_map(|hunks| {
        let mut out = Vec::new();
        for (kept, bytes, far) in hunks {
            push(&mut out, if far < 180 { kept } else { far });
            push(&mut out, bytes.len() + usize::from(far == 0));
            out.extend(bytes);
        }
        out
    });
    let noise = prop::collection::vec(any::<u8>(), 0..20);
    (prop_oneof![6 => hunks, 1 => noise], prop_oneof![0usize..30, 0usize..300])
}

proptest! {
    #![proptest_config(crate::page::twin::cases(400))]

    #[test]
    fn revising_is_deleting_and_inserting((old, new, cut) in values(), flags in 0u8..16) {
        let flags = flags << 2;
        let (mut one, mut other) = (leaf(4, &old), leaf(4, &old));
        revise(&mut one, flags, [&new[..cut], &new[cut..]]);
        other.apply(&Record::Delete { slot: 1 }).unwrap();
        other.apply(&Record::Insert { slot: 1, flags, key: b"b", value: &new }).unwrap();
        prop_assert_eq!(one.rows(), other.rows());
        prop_assert_eq!(one.view().cell(1).flags, other.view().cell(1).flags);
        prop_assert_eq!(one.view().used_bytes(), other.view().used_bytes());
        prop_assert_eq!(one.view().free_bytes(), other.view().free_bytes());
    }

    #[test]
    fn hunks_are_those_found_byte_by_byte((old, new, cut) in values(), rest in any::<u8>()) {
        let mut out = vec![rest; 9];
        let hunks = Hunks::between(&old, [&new[..cut], &new[cut..]], &mut out);
        prop_assert_eq!(hunks.bytes(), hunks_between(&old, &new));
        prop_assert!(hunks.bytes().len() <= new.len() + 3);
        prop_assert_eq!(said(&old, new.len(), hunks.bytes()), Some(new));
    }

    #[test]
    fn arbitrary_hunks_do_what_they_say_or_nothing(
        old in prop::collection::vec(any::<u8>(), 0..30),
        (hunks, len) in arbitrary_hunks(),
    ) {
        let mut twin = leaf(4, &old);
        let before = twin.rows();
        let record = Record::Revise { slot: 1, flags: 8, len, hunks: Hunks::new(&hunks) };
        let result = twin.apply(&record);
        let expected = said(&old, len, &hunks);
        prop_assert_eq!(result.is_ok(), expected.is_some(), "{:?}", result);
        let value = expected.unwrap_or_else(|| old.clone());
        let rows = twin.rows();
        prop_assert_eq!(&rows[1], &(b"b".to_vec(), value));
        prop_assert_eq!((&rows[0], &rows[2]), (&before[0], &before[2]));
    }
}
