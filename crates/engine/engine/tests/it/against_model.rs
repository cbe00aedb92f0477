//! Operations against a BTreeMap, without crashes: every page size, every way to read.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use iostrata_engine::{Direction, Engine, EngineError, RequestError, Table};
use iostrata_io::disk::MemDisk;
use proptest::prelude::*;

use crate::common::engine::How;
use crate::common::is_soak;
use crate::common::quiet::Watch;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>, usize, u8),
    Delete(Vec<u8>),
}

#[derive(Clone, Debug)]
enum Step {
    Batch(Vec<Change>),
    Get(Vec<u8>),
    Range(Bounds, bool),
    /// Deletes every row of a range.
    Clear(Bounds),
    Checkpoint,
    Background,
    Reopen,
}

/// Few enough that they meet, of lengths from 1 to 400 bytes.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        5 => (0u16..600).prop_map(|number| number.to_be_bytes().to_vec()),
        2 => prop::collection::vec(0u8..3, 1..8),
        1 => (0u8..40, 1usize..398).prop_map(|(last, len)| {
            let mut key = vec![1; len];
            key.push(last);
            key
        }),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let len = prop_oneof![4 => 0usize..100, 1 => 100usize..1_500];
    prop_oneof![
        3 => (key(), len, any::<u8>()).prop_map(|(key, len, fill)| Change::Put(key, len, fill)),
        2 => key().prop_map(Change::Delete),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => prop::collection::vec(change(), 1..25).prop_map(Step::Batch),
        4 => key().prop_map(Step::Get),
        6 => ((bound(), bound()), any::<bool>())
            .prop_map(|(bounds, is_backward)| Step::Range(bounds, is_backward)),
        2 => (bound(), bound()).prop_map(Step::Clear),
        1 => Just(Step::Checkpoint),
        3 => Just(Step::Background),
        1 => Just(Step::Reopen),
    ]
}

struct Pair {
    how: How,
    disk: MemDisk,
    engine: Engine,
    table: Table,
    rows: Rows,
    now_us: u64,
}

impl Pair {
    fn new(page_size: &'static str) -> Self {
        let pool = match page_size {
            "4K" => "256K",
            "16K" => "1M",
            _ => "4M",
        };
        let settings =
            [("page_size", page_size), ("buffer_pool_size", pool), ("log_buffer_size", "256K")];
        let how = How::with(&[&settings[..], &[("redo_log_capacity", "1M")]].concat());
        let disk = MemDisk::new();
        let engine = how.open(Arc::new(disk.clone())).unwrap();
        let table = engine.create_table("rows").unwrap();
        Self { how, disk, engine, table, rows: Rows::new(), now_us: 0 }
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Batch(changes) => self.batch(&changes),
            Step::Get(key) => {
                prop_assert_eq!(&self.table.get(&key).unwrap(), &self.rows.get(&key).cloned())
            }
            Step::Range(bounds, is_backward) => self.range(&bounds, is_backward)?,
            Step::Clear(bounds) => {
                let keys = wanted(&self.rows, &bounds).into_iter().map(|(key, _value)| key);
                let changes: Vec<Change> = keys.map(Change::Delete).collect();
                changes.chunks(100).for_each(|some| self.batch(some));
            }
            Step::Checkpoint => {
                self.engine.checkpoint().unwrap();
            }
            Step::Background => {
                self.now_us += 100_000;
                self.engine.step(self.now_us).unwrap();
            }
            Step::Reopen => self.reopen(),
        }
        Ok(())
    }

    /// In as many batches as so small a pool needs.
    fn batch(&mut self, changes: &[Change]) {
        let mut batch = self.engine.batch();
        for change in changes {
            match change {
                Change::Put(key, len, fill) => batch.put(&self.table, key, &vec![*fill; *len]),
                Change::Delete(key) => batch.delete(&self.table, key),
            }
            .unwrap();
        }
        match batch.commit() {
            Err(EngineError::Request(RequestError::BatchTooWide { .. })) if changes.len() > 1 => {
                let (first, second) = changes.split_at(changes.len() / 2);
                self.batch(first);
                return self.batch(second);
            }
            committed => committed.unwrap(),
        }
        for change in changes {
            match change {
                Change::Put(key, len, fill) => {
                    self.rows.insert(key.clone(), vec![*fill; *len]);
                }
                Change::Delete(key) => {
                    self.rows.remove(key);
                }
            }
        }
    }

    fn range(&self, bounds: &Bounds, is_backward: bool) -> Result<(), TestCaseError> {
        let mut wanted = wanted(&self.rows, bounds);
        let direction = if is_backward { Direction::Backward } else { Direction::Forward };
        if is_backward {
            wanted.reverse();
        }
        let found = collect(&self.table, bounds, direction);
        let keys = |rows: &[(Vec<u8>, Vec<u8>)]| -> Vec<Vec<u8>> {
            rows.iter().map(|(key, _)| key.clone()).collect()
        };
        prop_assert_eq!(keys(&found), keys(&wanted), "{:?} {:?}", bounds, direction);
        prop_assert!(found == wanted, "values of {:?} {:?}", bounds, direction);
        Ok(())
    }

    fn reopen(&mut self) {
        self.engine.clone().close().unwrap();
        self.engine = self.how.open(Arc::new(self.disk.clone())).unwrap();
        self.table = self.engine.table("rows").unwrap().unwrap();
    }

    fn check(&self) {
        let report = self.engine.check().unwrap();
        assert!(report.is_clean(), "{:?}", report.problems);
    }
}

/// Like `BTreeMap::range`, but empty where that panics.
fn wanted(rows: &Rows, bounds: &Bounds) -> Vec<(Vec<u8>, Vec<u8>)> {
    let after = |key: &[u8]| match &bounds.0 {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= from.as_slice(),
        Bound::Excluded(from) => key > from.as_slice(),
    };
    let before = |key: &[u8]| match &bounds.1 {
        Bound::Unbounded => true,
        Bound::Included(to) => key <= to.as_slice(),
        Bound::Excluded(to) => key < to.as_slice(),
    };
    let inside = rows.iter().filter(|(key, _)| after(key) && before(key));
    inside.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn collect(table: &Table, bounds: &Bounds, direction: Direction) -> Vec<(Vec<u8>, Vec<u8>)> {
    let (from, to) = (bounds.0.as_ref(), bounds.1.as_ref());
    let borrowed = (from.map(Vec::as_slice), to.map(Vec::as_slice));
    let mut range = table.cursor(borrowed, direction);
    let mut rows = Vec::new();
    while let Some((key, value)) = range.next_row().unwrap() {
        rows.push((key.to_vec(), value.to_vec()));
    }
    // The iterator gives the same, from either end and from both in turn.
    let range = || table.range(borrowed);
    let forward: Vec<_> = range().map(Result::unwrap).collect();
    let backward: Vec<_> = range().rev().map(Result::unwrap).collect();
    assert!(forward.iter().eq(backward.iter().rev()));
    let expected = if direction == Direction::Forward { &forward } else { &backward };
    assert_eq!(&rows, expected);
    let (mut both, mut low, mut high) = (range(), Vec::new(), Vec::new());
    while let Some(row) = both.next() {
        low.push(row.unwrap());
        high.extend(both.next_back().map(Result::unwrap));
    }
    assert!(both.next_back().is_none());
    assert!(low.iter().chain(high.iter().rev()).eq(forward.iter()));
    rows
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if is_soak() { 2_000 } else { 48 },
        failure_persistence: None,
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn it_does_what_a_map_does(
        page_size in prop::sample::select(&["4K", "8K", "16K", "32K", "64K"][..]),
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut pair = Pair::new(page_size);
        for step in steps {
            pair.step(step)?;
        }
        pair.check();
        pair.range(&(Bound::Unbounded, Bound::Unbounded), false)?;
        pair.reopen();
        pair.check();
        pair.range(&(Bound::Unbounded, Bound::Unbounded), true)?;
    }

    #[test]
    fn a_bulk_load_is_a_table_like_any_other(
        page_size in prop::sample::select(&["4K", "16K", "64K"][..]),
        rows in prop::collection::btree_map(key(), value(), 0..800),
        steps in prop::collection::vec(step(), 0..20),
    ) {
        let mut pair = Pair::new(page_size);
        let sorted = rows.iter().map(|(key, value)| (key.clone(), value.clone()));
        pair.table.bulk_load(sorted).unwrap();
        pair.rows = rows;
        pair.check();
        pair.range(&(Bound::Unbounded, Bound::Unbounded), false)?;
        for step in steps {
            pair.step(step)?;
        }
        pair.check();
        pair.reopen();
        pair.range(&(Bound::Unbounded, Bound::Unbounded), true)?;
    }
}

/// Every kind of bound on rows, between rows and beyond them, both ways.
#[test]
fn every_bound_both_ways() {
    let mut pair = Pair::new("4K");
    let changes: Vec<Change> = (0u16..400)
        .map(|number| Change::Put((number * 10).to_be_bytes().to_vec(), 60, 1))
        .collect();
    changes.chunks(50).for_each(|some| pair.batch(some));
    let marks = [0u16, 5, 10, 1_234, 2_000, 3_990, 3_991, 9_999];
    let bounds = |number: u16| {
        let key = number.to_be_bytes().to_vec();
        [Bound::Unbounded, Bound::Included(key.clone()), Bound::Excluded(key)]
    };
    for (from, to) in marks.iter().flat_map(|from| marks.iter().map(move |to| (*from, *to))) {
        for from in bounds(from) {
            for to in bounds(to) {
                for is_backward in [false, true] {
                    pair.range(&(from.clone(), to.clone()), is_backward).unwrap();
                }
            }
        }
    }
}

/// One batch may need more leaves than there are frames: it works or is refused, and does not hang.
#[test]
fn a_batch_over_more_leaves_than_frames() {
    let watch = Watch::new();
    watch.on("a batch over more leaves than frames".to_owned());
    let mut pair = Pair::new("4K");
    let key = |number: u16| number.to_be_bytes().to_vec();
    let puts: Vec<_> = (0u16..900).map(|at| Change::Put(key(at), 1_200, 1)).collect();
    puts.chunks(20).for_each(|some| pair.batch(some));
    let mut batch = pair.engine.batch();
    for number in (0u16..900).step_by(3) {
        batch.delete(&pair.table, &key(number)).unwrap();
    }
    match batch.commit() {
        Ok(()) => {
            pair.rows.retain(|key, _| u16::from_be_bytes([key[0], key[1]]) % 3 != 0);
        }
        Err(error) => assert!(
            matches!(error, EngineError::Request(RequestError::BatchTooWide { .. })),
            "{error}"
        ),
    }
    pair.check();
    pair.range(&(Bound::Unbounded, Bound::Unbounded), false).unwrap();
}

/// What grows is given back: filled and emptied again and again, the files stay as they are.
#[test]
fn freed_pages_are_used_again() {
    let mut pair = Pair::new("4K");
    let numbers = 0u16..600;
    let key = |number: u16| number.to_be_bytes().to_vec();
    let mut lengths = Vec::new();
    for round in 0..8 {
        let puts: Vec<_> = numbers.clone().map(|at| Change::Put(key(at), 300, round)).collect();
        puts.chunks(100).for_each(|some| pair.batch(some));
        pair.check();
        let deletes: Vec<_> = numbers.clone().map(|at| Change::Delete(key(at))).collect();
        deletes.chunks(100).for_each(|some| pair.batch(some));
        pair.check();
        assert!(pair.table.get(&key(7)).unwrap().is_none());
        let name = iostrata_io::disk::FileName::new("data-00").unwrap();
        lengths.push(pair.disk.content(&name).unwrap().len());
    }
    let (second, last) = (lengths[1], lengths[7]);
    assert!(last <= second, "the data file grows with every round: {lengths:?}");
}
