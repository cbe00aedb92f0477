//! What trees do with images: split, grow a root, merge.

use iostrata_engine::page::{
    Cell, Cells, PageEdit, PageKind, PageSize, PageView, Record, cells_of, row_bytes,
    shortest_separator,
};
use iostrata_innodb::{NO_PAGE, PageNo, TableId};

use crate::page::twin::{Twin, rows_of};

const RIGHT: PageNo = PageNo(77);

fn filled(kind: PageKind, rows: u32) -> Twin {
    let mut twin = Twin::new(PageSize::MIN, kind);
    for number in 0..rows {
        let key = format!("table/{:05}", number * 37 % rows);
        let key = if kind == PageKind::Inner && number == 0 { "" } else { &key };
        twin.insert(key.as_bytes(), &u64::from(number).to_le_bytes()).unwrap();
    }
    twin
}

/// Applies a record to a page of its own.
fn page_of(record: &Record<'_>, no: PageNo) -> Vec<u8> {
    let mut page = vec![0xcc; PageSize::MIN.bytes()];
    let mut edit = PageEdit::new(&mut page);
    record.apply(&mut edit, no).unwrap();
    assert_eq!(edit.view().verify_structure(), Ok(()));
    page
}

#[test]
fn a_leaf_is_split_and_merged_back() {
    let mut left = filled(PageKind::Leaf, 90);
    let rows = left.rows();
    let from = left.view().split_point();
    let mut buffer = Vec::new();
    let view = left.view();
    let image =
        Record::image_of_part(&view, from..view.count(), view.page_no(), NO_PAGE, &mut buffer);
    let mut right = page_of(&image, RIGHT);
    left.apply(&Record::Truncate { from }).unwrap();
    left.apply(&Record::SetRight(RIGHT)).unwrap();
    {
        let (left, right) = (left.view(), PageView::new(&right));
        assert_eq!((left.right(), right.left()), (RIGHT, left.page_no()));
        assert_eq!((right.table(), right.kind(), right.level()), (TableId(7), PageKind::Leaf, 0));
        assert_eq!([rows_of(&left), rows_of(&right)].concat(), rows);
        let separator = shortest_separator(left.key(left.count() - 1), right.key(0));
        assert!(separator > left.key(left.count() - 1) && separator <= right.key(0));
        assert!(left.free_bytes() >= right.used_bytes());
    }
    let cells = cells_of(&PageView::new(&right), 0..usize::MAX, &mut buffer);
    left.apply(&Record::Splice { at: from, cells }).unwrap();
    let (kind, level, table) = (PageKind::Free, 0, TableId(0));
    Record::Init { kind, level, table, left: NO_PAGE, right: NO_PAGE }
        .apply(&mut PageEdit::new(&mut right), RIGHT)
        .unwrap();
    assert_eq!(left.rows(), rows);
    assert_eq!(PageView::new(&right).verify_structure(), Ok(()));
}

#[test]
fn an_inner_page_is_split_and_merged_back() {
    let mut left = filled(PageKind::Inner, 90);
    let rows = left.rows();
    let from = left.view().split_point();
    let separator = left.view().key(from).to_vec();
    let mut buffer = Vec::new();
    let image = Record::image_of_part(&left.view(), from..90, NO_PAGE, NO_PAGE, &mut buffer);
    let right = page_of(&image, RIGHT);
    let right = PageView::new(&right);
    left.apply(&Record::Truncate { from }).unwrap();
    assert_eq!((right.key(0), right.count()), (&[][..], 90 - from));
    assert_eq!(right.child_for(&separator).0, 0);
    let needed = right.used_bytes() + separator.len();
    assert!(needed <= left.view().free_bytes());
    // Its first row takes the separator from above for its key.
    let mut bytes = Vec::new();
    Cell { key: &separator, ..right.cell(0) }.push_to(&mut bytes);
    bytes.extend_from_slice(cells_of(&right, 1..right.count(), &mut Vec::new()).bytes());
    left.apply(&Record::Splice { at: from, cells: Cells::new(&bytes) }).unwrap();
    assert_eq!(left.rows(), rows);
}

#[test]
fn a_root_grows() {
    let mut root = filled(PageKind::Leaf, 90);
    let rows = root.rows();
    let mut buffer = Vec::new();
    let image = Record::image_of_part(&root.view(), 0..90, NO_PAGE, NO_PAGE, &mut buffer);
    let child = page_of(&image, RIGHT);
    let child = PageView::new(&child);
    assert_eq!((rows_of(&child), child.left(), child.right()), (rows, NO_PAGE, NO_PAGE));
    let (kind, level, table) = (PageKind::Inner, 1, root.view().table());
    let init = Record::Init { kind, level, table, left: NO_PAGE, right: NO_PAGE };
    root.apply(&init).unwrap();
    root.insert(&[], &RIGHT.0.to_le_bytes()).unwrap();
    root.insert(b"table/00045", &78u64.to_le_bytes()).unwrap();
    assert_eq!(root.view().child_for(b"table/00044"), (0, RIGHT));
    assert_eq!(root.view().child_for(b"table/00045"), (1, PageNo(78)));
    assert_eq!(root.view().used_bytes(), row_bytes(0, 8) + row_bytes(11, 8));
}

#[test]
fn an_empty_inner_page_has_no_child() {
    let twin = Twin::new(PageSize::MIN, PageKind::Inner);
    assert_eq!(twin.view().child_for(b"any"), (0, NO_PAGE));
}
