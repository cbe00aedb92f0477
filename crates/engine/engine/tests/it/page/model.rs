//! A page against an ordered map, by records only.

use std::collections::BTreeMap;

use iostrata_engine::page::{
    ApplyFault, Cell, Cells, Hunks, PageKind, PageSize, Record, cells_of, row_bytes,
};
use proptest::prelude::*;

use crate::page::twin::{Twin, fits, fits_replace};

#[derive(Clone, Debug)]
enum Change {
    Put {
        key: Vec<u8>,
        value: Vec<u8>,
    },
    Delete {
        pick: usize,
    },
    Replace {
        pick: usize,
        value: Vec<u8>,
    },
    /// Another value as a difference: what is kept of the old one, new bytes behind it.
    Revise {
        pick: usize,
        kept: usize,
        value: Vec<u8>,
    },
    Truncate {
        pick: usize,
    },
    /// The tail goes and comes back.
    Return {
        pick: usize,
    },
    /// Rows between two neighbours.
    Splice {
        pick: usize,
        tails: Vec<Vec<u8>>,
        value: Vec<u8>,
    },
    Image,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => 0u8..3, 1 => any::<u8>()];
    let plain = prop::collection::vec(byte.clone(), 0..9);
    let prefixed = prop::collection::vec(byte, 0..6)
        .prop_map(|tail| [b"warehouse-1/district-3/".as_slice(), &tail].concat());
    prop_oneof![5 => plain, 4 => prefixed, 1 => prop::collection::vec(1u8..3, 300..600)]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..40),
        2 => (any::<u8>(), 40usize..400).prop_map(|(byte, len)| vec![byte; len]),
        1 => (any::<u8>(), 400usize..2200).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let tails = prop::collection::btree_set(prop::collection::vec(any::<u8>(), 1..4), 0..9);
    let short = prop::collection::vec(any::<u8>(), 0..30);
    prop_oneof![
        12 => (key(), value()).prop_map(|(key, value)| Change::Put { key, value }),
        3 => any::<usize>().prop_map(|pick| Change::Delete { pick }),
        3 => (any::<usize>(), value()).prop_map(|(pick, value)| Change::Replace { pick, value }),
        4 => (any::<usize>(), 0usize..400, value())
            .prop_map(|(pick, kept, value)| Change::Revise { pick, kept, value }),
        1 => any::<usize>().prop_map(|pick| Change::Truncate { pick }),
        1 => any::<usize>().prop_map(|pick| Change::Return { pick }),
        1 => (any::<usize>(), tails, short).prop_map(|(pick, tails, value)| {
            Change::Splice { pick, tails: tails.into_iter().collect(), value }
        }),
        1 => Just(Change::Image),
    ]
}

/// Flags that a row keeps for life; the first two bits describe the value.
fn flags_of(key: &[u8]) -> u8 {
    (key.len() as u8).rotate_left(4) & !3
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn pick_key(rows: &Rows, pick: usize) -> Option<(usize, Vec<u8>)> {
    let slot = pick.checked_rem(rows.len())?;
    rows.keys().nth(slot).map(|key| (slot, key.clone()))
}

/// Changes the page and the map alike.
fn make(twin: &mut Twin, rows: &mut Rows, change: Change) {
    match change {
        Change::Put { key, value } => put(twin, rows, key, value),
        Change::Delete { pick } => {
            let Some((slot, key)) = pick_key(rows, pick) else { return };
            twin.apply(&Record::Delete { slot }).unwrap();
            rows.remove(&key);
        }
        Change::Replace { pick, value } => {
            let Some((_, key)) = pick_key(rows, pick) else { return };
            put(twin, rows, key, value);
        }
        Change::Revise { pick, kept, value } => revise(twin, rows, pick, kept, &value),
        Change::Truncate { pick } => {
            let from = pick % (rows.len() + 1);
            twin.apply(&Record::Truncate { from }).unwrap();
            *rows = std::mem::take(rows).into_iter().take(from).collect();
        }
        Change::Return { pick } => {
            let from = pick % (rows.len() + 1);
            let mut bytes = Vec::new();
            let cells = cells_of(&twin.view(), from..usize::MAX, &mut bytes);
            twin.apply(&Record::Truncate { from }).unwrap();
            twin.apply(&Record::Splice { at: from, cells }).unwrap();
        }
        Change::Splice { pick, tails, value } => splice(twin, rows, pick, &tails, &value),
        Change::Image => {
            let mut buffer = Vec::new();
            let page = twin.view().bytes().to_vec();
            let view = iostrata_engine::page::PageView::new(&page);
            let record = Record::image_of(&view, &mut buffer);
            twin.apply(&record).unwrap();
            let after = twin.view();
            assert_eq!((after.left(), after.right()), (view.left(), view.right()));
            assert_eq!((after.level(), after.table()), (view.level(), view.table()));
            assert_eq!(after.gap_bytes(), after.free_bytes(), "an image has no dead bytes");
        }
    }
}

/// An Insert or a Replace: done exactly when the page reports that it fits.
fn put(twin: &mut Twin, rows: &mut Rows, key: Vec<u8>, value: Vec<u8>) {
    let view = twin.view();
    let (fits, result) = match view.find(&key) {
        Ok(slot) => {
            let fits = fits_replace(&view, slot, value.len());
            (fits, twin.apply(&Record::Replace { slot, value: &value }))
        }
        Err(slot) => {
            let fits = fits(&view, key.len(), value.len());
            (
                fits,
                twin.apply(&Record::Insert {
                    slot,
                    flags: flags_of(&key),
                    key: &key,
                    value: &value,
                }),
            )
        }
    };
    assert_eq!(result.is_ok(), fits, "{result:?}");
    match result {
        Ok(()) => _ = rows.insert(key, value),
        Err(fault) => {
            assert!(matches!(fault, ApplyFault::Full { .. } | ApplyFault::Row { .. }), "{fault}");
        }
    }
}

/// A Revise: done exactly when the page reports that a Replace fits.
fn revise(twin: &mut Twin, rows: &mut Rows, pick: usize, kept: usize, value: &[u8]) {
    let Some((slot, key)) = pick_key(rows, pick) else { return };
    let old = rows[&key].clone();
    let kept = &old[..kept.min(old.len())];
    let (mut out, len, flags) = (Vec::new(), kept.len() + value.len(), flags_of(&key));
    let hunks = Hunks::between(&old, [kept, value], &mut out);
    let fits = fits_replace(&twin.view(), slot, len);
    let result = twin.apply(&Record::Revise { slot, flags, len, hunks });
    assert_eq!(result.is_ok(), fits, "{result:?}");
    if fits {
        rows.insert(key, [kept, value].concat());
    }
}

/// Several rows whose keys begin with one key of the page, as far as they come before the next.
fn splice(twin: &mut Twin, rows: &mut Rows, pick: usize, tails: &[Vec<u8>], value: &[u8]) {
    let Some((slot, stem)) = pick_key(rows, pick) else { return };
    let next = rows.keys().nth(slot + 1).cloned();
    let keys = tails.iter().map(|tail| [&stem[..], tail].concat());
    let keys: Vec<_> = keys.filter(|key| next.as_ref().is_none_or(|next| key < next)).collect();
    let mut bytes = Vec::new();
    keys.iter().for_each(|key| Cell { flags: flags_of(key), key, value }.push_to(&mut bytes));
    let needed: usize = keys.iter().map(|key| row_bytes(key.len(), value.len())).sum();
    let fits = needed <= twin.view().free_bytes();
    let result = twin.apply(&Record::Splice { at: slot + 1, cells: Cells::new(&bytes) });
    match result {
        Err(ApplyFault::Row { .. }) => {}
        result => assert_eq!(result.is_ok(), fits, "{result:?}"),
    }
    if result.is_ok() {
        rows.extend(keys.into_iter().map(|key| (key, value.to_vec())));
    }
}

fn compare(twin: &Twin, rows: &Rows) {
    let view = twin.view();
    let expected: Vec<_> = rows.clone().into_iter().collect();
    assert_eq!(twin.rows(), expected);
    let used: usize = rows.iter().map(|(key, value)| row_bytes(key.len(), value.len())).sum();
    assert_eq!(view.used_bytes(), used);
    assert_eq!(view.free_bytes(), view.size().body_bytes() - used);
    for (slot, key) in rows.keys().enumerate() {
        assert_eq!(view.find(key), Ok(slot));
        if view.kind() == PageKind::Leaf {
            assert_eq!(view.cell(slot).flags, flags_of(key));
        }
        for near in [[&key[..], &[0]].concat(), key[..key.len().saturating_sub(1)].to_vec()] {
            let before = rows.range(..near.clone()).count();
            let found = if rows.contains_key(&near) { Ok(before) } else { Err(before) };
            assert_eq!(view.find(&near), found, "{near:?}");
        }
    }
}

proptest! {
    #![proptest_config(crate::page::twin::cases(150))]

    #[test]
    fn a_leaf_is_an_ordered_map(
        size in prop::sample::select(vec![PageSize::MIN, PageSize::MIN, PageSize::DEFAULT]),
        changes in prop::collection::vec(change(), 1..160),
    ) {
        let mut twin = Twin::new(size, PageKind::Leaf);
        let mut rows = Rows::new();
        for change in changes {
            make(&mut twin, &mut rows, change);
            compare(&twin, &rows);
        }
    }

    #[test]
    fn an_inner_page_keeps_slot_0_without_key(
        changes in prop::collection::vec((key(), any::<u64>(), 0u8..8, any::<usize>()), 1..200),
    ) {
        let mut twin = Twin::new(PageSize::MIN, PageKind::Inner);
        let mut rows = Rows::new();
        twin.insert(&[], &1u64.to_le_bytes()).unwrap();
        rows.insert(Vec::new(), 1u64.to_le_bytes().to_vec());
        for (key, child, kind, pick) in changes {
            match pick_key(&rows, pick) {
                Some((slot, gone)) if kind == 0 && rows.len() > 1 => {
                    twin.apply(&Record::Delete { slot }).unwrap();
                    rows.remove(&gone);
                    // The new first row stands for everything smaller.
                    if let Some((_, value)) = (slot == 0).then(|| rows.pop_first()).flatten() {
                        rows.insert(Vec::new(), value);
                    }
                }
                _ => put(&mut twin, &mut rows, key.clone(), child.to_le_bytes().to_vec()),
            }
            compare(&twin, &rows);
            let view = twin.view();
            let (slot, value) = rows.range(..=key.clone()).enumerate().last().unwrap();
            let child = u64::from_le_bytes(value.1[..].try_into().unwrap());
            assert_eq!(view.child_for(&key), (slot, iostrata_innodb::PageNo(child)));
        }
    }
}
