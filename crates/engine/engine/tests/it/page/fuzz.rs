//! Reads everything there is to read from arbitrary bytes, and changes what can be changed: for a
//! fuzzer, whose targets include this file, and for random bytes.
//!
//! Invariant: they return. A panic is a bug of the module `page`.

use iostrata_engine::page::{
    Cells, Hunks, PageEdit, PageKind, PageSize, PageView, Record, cells_of,
};
use iostrata_innodb::{Lsn, NO_PAGE, PageNo, TableId};

/// Takes the bytes for a page, of the size that their number allows, reads all of it and applies
/// every kind of record to copies of it.
pub fn fuzz_page(bytes: &[u8]) {
    let fitting = PageSize::ALL.into_iter().rev().find(|size| size.bytes() <= bytes.len());
    let mut page = bytes.to_vec();
    page.resize(fitting.unwrap_or(PageSize::MIN).bytes(), 0);
    read(&PageView::new(&page));
    let view = PageView::new(&page);
    let no = view.page_no();
    let mut buffer = Vec::new();
    let is_sound = view.verify_structure().is_ok();
    let mut image = Vec::new();
    let whole = Record::image_of(&view, &mut image);
    let cells = cells_of(&view, 0..view.count(), &mut buffer);
    let draw = |at: usize| bytes.get(at % bytes.len().max(1)).copied().map_or(0, usize::from);
    for round in 0..4 {
        let slot = if round == 0 { 0 } else { draw(round) % (view.count() + 1) };
        let key = if slot < view.count() {
            view.key(slot)
        } else {
            &bytes[..draw(9).min(4).min(bytes.len())]
        };
        let value = &bytes[..draw(round + 4).min(bytes.len())];
        for record in some_records(slot, key, value, cells) {
            attempt(&record, &mut page.clone(), no, is_sound);
        }
        if slot < view.count() {
            revise(&view, slot, value, is_sound);
        }
        attempt(&whole, &mut page.clone(), no, is_sound);
    }
}

fn some_records<'a>(
    slot: usize,
    key: &'a [u8],
    value: &'a [u8],
    cells: Cells<'a>,
) -> [Record<'a>; 13] {
    let child = &[7; 8];
    let bit = slot as u32;
    [
        Record::Insert { slot, flags: value.first().copied().unwrap_or(4), key, value },
        Record::Insert { slot, flags: 0, key: value, value: child },
        Record::Insert { slot, flags: 0, key, value: &[1; 2000] },
        Record::Delete { slot },
        Record::Replace { slot, value },
        Record::Replace { slot, value: &[1; 1500] },
        Record::Revise { slot, flags: 0, len: key.len(), hunks: Hunks::new(value) },
        Record::Truncate { from: slot },
        Record::Splice { at: slot, cells },
        Record::SetLeft(PageNo(3)),
        Record::SetBits { from: bit, count: 9, set: true },
        Record::SetBits { from: bit, count: 1, set: false },
        Record::SetSuper { at: slot, bytes: value },
    ]
}

/// What differs between a row's value and another one gives that one.
fn revise(view: &PageView<'_>, slot: usize, value: &[u8], is_sound: bool) {
    let (first, second) = value.split_at(value.len() / 3);
    let mut out = Vec::new();
    let hunks = Hunks::between(view.value(slot), [first, second], &mut out);
    let (flags, len, no) = (value.first().copied().unwrap_or(4), value.len(), view.page_no());
    let mut page = view.bytes().to_vec();
    let record = Record::Revise { slot, flags, len, hunks };
    attempt(&record, &mut page, no, is_sound);
    let is_done = is_sound && record.apply(&mut PageEdit::new(&mut page), no).is_ok();
    if is_done {
        let cell = PageView::new(&page).cell(slot);
        assert!(cell.flags == flags && cell.value == value, "{record:?} gave another row");
    }
}

/// Takes the bytes for the body of a redo frame, decodes all records, encodes them again and
/// applies them to pages that are sound and must stay so.
pub fn fuzz_records(bytes: &[u8]) {
    let mut rest = bytes;
    let mut pages =
        [PageKind::Leaf, PageKind::Inner, PageKind::Space, PageKind::Super].map(|kind| {
            let mut page = vec![0; PageSize::MIN.bytes()];
            let level = u8::from(kind == PageKind::Inner);
            PageEdit::new(&mut page).format(kind, level, TableId(1), PageNo(1), NO_PAGE, NO_PAGE);
            page
        });
    while let Ok((no, record, taken)) = Record::decode(rest) {
        let mut again = Vec::new();
        record.encode(no, &mut again);
        let (consumed, after) = rest.split_at(taken);
        assert!(again == consumed, "{record:?} has two encodings");
        for page in &mut pages {
            attempt(&record, page, PageNo(1), true);
        }
        rest = after;
    }
}

/// A record changes a page wholly or not at all, and leaves a sound page sound.
fn attempt(record: &Record<'_>, page: &mut [u8], no: PageNo, is_sound: bool) {
    let before = page.to_vec();
    let mut edit = PageEdit::new(page);
    match record.apply(&mut edit, no) {
        Err(_) => assert!(edit.bytes() == before, "{record:?} failed and changed the page"),
        Ok(()) if is_sound || record.starts_page() => {
            let found = edit.view().verify_structure();
            assert!(found.is_ok(), "{record:?} left a page that is {found:?}");
        }
        Ok(()) => read(&edit.view()),
    }
}

/// Calls every reader.
fn read(page: &PageView<'_>) {
    let count = page.count();
    let mut sum = page.verify(page.page_no()).is_ok() as usize;
    sum += page.verify_shape(page.page_no()).is_ok() as usize;
    sum += page.verify_structure().is_ok() as usize;
    sum += page.free_bytes() + page.used_bytes() + page.gap_bytes() + page.split_point();
    for slot in (0..count).step_by(count / 300 + 1) {
        let cell = page.cell(slot);
        sum += cell.key.len() + cell.value.len() + usize::from(cell.flags);
        sum += page.find(cell.key).unwrap_or_else(|slot| slot) + page.row_bytes(slot);
        sum += page.child_for(cell.key).0 + page.child(slot).0 as usize % 2;
    }
    for key in [&[][..], &[0], &[255; 9], b"key", page.body()] {
        assert!(page.find(key).unwrap_or_else(|slot| slot) <= count, "a slot beyond the count");
        sum += page.child_for(key).0;
    }
    if let Some(split) = page.split_for(count / 2, 5, 50) {
        assert!(split.from >= 1 && split.from < count, "a cut outside of the page");
    }
    sum += page.bits_set_in(0..u32::MAX) as usize + page.bits_set_in(7..5000) as usize;
    sum += page.first_clear(100).map_or(0, |bit| bit as usize) + usize::from(page.bit(u32::MAX));
    sum += usize::from(page.lsn() > Lsn(0)) + usize::from(page.left() < page.right());
    sum += page.table().0 as usize % 2 + format!("{page:?}").len();
    std::hint::black_box(sum);
}
