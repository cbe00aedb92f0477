//! Cutting full pages.

use iostrata_engine::page::{PageEdit, PageKind, PageSize, PageView, Record, Split, cells_of};
use iostrata_innodb::{NO_PAGE, PageNo};
use proptest::prelude::*;

use crate::page::twin::{Twin, fits};

/// Cuts the page for a row and puts the row on the side that the cut returns.
fn cut_and_insert(twin: &mut Twin, key: &[u8], value: &[u8]) -> (Split, usize, usize) {
    let slot = twin.view().find(key).unwrap_err();
    let split = twin.view().split_for(slot, key.len(), value.len()).unwrap();
    let count = twin.view().count();
    assert!(split.from >= 1 && split.from < count);
    let mut buffer = Vec::new();
    let image =
        Record::image_of_part(&twin.view(), split.from..count, NO_PAGE, NO_PAGE, &mut buffer);
    let mut right = vec![0; twin.view().size().bytes()];
    let mut right = PageEdit::new(&mut right);
    image.apply(&mut right, PageNo(9)).unwrap();
    twin.apply(&Record::Truncate { from: split.from }).unwrap();
    if split.is_right {
        let slot = slot - split.from;
        Record::Insert { slot, flags: 0, key, value }.apply(&mut right, PageNo(9)).unwrap();
    } else {
        twin.apply(&Record::Insert { slot, flags: 0, key, value }).unwrap();
    }
    assert_eq!(right.view().verify_structure(), Ok(()));
    (split, twin.view().used_bytes(), right.view().used_bytes())
}

proptest! {
    #![proptest_config(crate::page::twin::cases(300))]

    #[test]
    fn the_row_that_did_not_fit_fits_after_the_cut(
        is_inner in any::<bool>(),
        size in prop::sample::select(vec![PageSize::MIN, PageSize::DEFAULT]),
        rows in prop::collection::vec((any::<u64>(), 0.0f64..1.0, 0u8..3), 3..400),
    ) {
        let kind = if is_inner { PageKind::Inner } else { PageKind::Leaf };
        let mut twin = Twin::new(size, kind);
        if is_inner {
            twin.insert(&[], &[0; 8]).unwrap();
        }
        let mut rows = rows.into_iter().cycle().zip(0u64..);
        loop {
            let Some(((number, share, class), nonce)) = rows.next() else { unreachable!() };
            let mut key = (number ^ nonce << 40).to_be_bytes().to_vec();
            let mut value = vec![1; 8];
            let share = if class == 0 { 1.0 } else { share / 4.0 };
            if is_inner {
                key.resize((size.key_bytes_max() as f64 * share) as usize + 8, 7);
                key.truncate(size.key_bytes_max());
            } else {
                value.resize(((size.row_bytes_max() - 8) as f64 * share) as usize, 7);
            }
            if twin.view().find(&key).is_ok() {
                continue;
            }
            if fits(&twin.view(), key.len(), value.len()) {
                twin.insert(&key, &value).unwrap();
                continue;
            }
            let (_, left, right) = cut_and_insert(&mut twin, &key, &value);
            let body = size.body_bytes();
            prop_assert!(left <= body && right <= body);
            break;
        }
    }
}

fn fill(twin: &mut Twin, numbers: impl Iterator<Item = u32>) -> u32 {
    for number in numbers {
        if !fits(&twin.view(), 4, 60) {
            return number;
        }
        twin.insert(&number.to_be_bytes(), &[0; 60]).unwrap();
    }
    unreachable!("the page never filled")
}

#[test]
fn ascending_rows_leave_full_pages_behind() {
    for size in PageSize::ALL {
        let mut twin = Twin::new(size, PageKind::Leaf);
        let next = fill(&mut twin, 0..);
        let count = twin.view().count();
        assert_eq!(twin.view().split_point(), count - 1);
        let (split, left, _) = cut_and_insert(&mut twin, &next.to_be_bytes(), &[0; 60]);
        assert_eq!(split, Split { from: count - 1, is_right: true });
        assert!(left > size.body_bytes() * 9 / 10);
        // Not when the row goes elsewhere.
        let mut twin = Twin::new(size, PageKind::Leaf);
        fill(&mut twin, 1..);
        let (split, left, right) = cut_and_insert(&mut twin, &[0; 4], &[0; 60]);
        assert!(split.from.abs_diff(count / 2) <= 1 && left.abs_diff(right) < 300, "{split:?}");
    }
}

#[test]
fn other_orders_are_cut_in_the_middle() {
    let mut twin = Twin::new(PageSize::MIN, PageKind::Leaf);
    fill(&mut twin, (0..1000).map(|number| number * 7919 % 1000));
    let count = twin.view().count();
    let from = twin.view().split_point();
    assert!(from.abs_diff(count / 2) <= 1, "{from} of {count}");
    // By bytes, not by number.
    let mut twin = Twin::new(PageSize::MIN, PageKind::Leaf);
    for (key, len) in [(4u8, 300), (1, 1500), (3, 300), (2, 300), (0, 1000)] {
        twin.insert(&[key], &vec![0; len]).unwrap();
    }
    assert_eq!(twin.view().split_point(), 1);
    assert_eq!(Twin::new(PageSize::MIN, PageKind::Leaf).view().split_point(), 0);
    twin.apply(&Record::Truncate { from: 1 }).unwrap();
    assert_eq!(twin.view().split_point(), 1);
    assert_eq!(twin.view().split_for(0, 1, 1), None, "one row cannot be cut");
}

#[test]
fn cells_of_a_range_are_its_rows() {
    let mut twin = Twin::new(PageSize::MIN, PageKind::Leaf);
    fill(&mut twin, 0..);
    let mut buffer = vec![1, 2, 3];
    let view = PageView::new(twin.view().bytes());
    let count = view.count();
    let cells: Vec<_> = cells_of(&view, 3..6, &mut buffer).into_iter().collect();
    assert_eq!(cells, (3..6).map(|slot| Ok(view.cell(slot))).collect::<Vec<_>>());
    assert!(cells_of(&view, count..count + 3, &mut Vec::new()).bytes().is_empty());
}
