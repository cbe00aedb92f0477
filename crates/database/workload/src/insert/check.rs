//! Whether every row is whole and every index leads to the same rows, checked over every row.
//!
//! Invariant: the table is read in the order of its key, then every index by ranges of its own;
//! what both sum up to is compared, in one transaction. It changes nothing.

use std::sync::Arc;

use iostrata_database::target::{
    Access, Fold, Op, OpId, Order, Rows, Session, SessionOptions, Target, TargetError,
};

use crate::condition::{Checked, Condition};
use crate::insert::prepare::rows_loaded;
use crate::insert::row::{KEY_MAX, KEYS, TABLE, is_whole, schema};

/// Ranges of an index that are summed up, each alone.
const RANGES: i64 = 64;
/// Keys of a range.
const WIDTH: i64 = (KEY_MAX + RANGES - 1) / RANGES;

/// The conditions, by their places; behind them one for each index.
const WHOLE: usize = 0;
const LOADED: usize = 1;
const INDEXES: usize = 2;

/// Sums of keys, by index and range.
type Sums = [[i64; RANGES as usize]; KEYS];

/// Checks all conditions; `progress` hears of the share that is done.
///
/// # Errors
/// What the target said; nothing was prepared. Conditions that do not hold are no error.
pub fn check(target: &dyn Target, progress: &mut dyn FnMut(f64)) -> Result<Checked, TargetError> {
    let loaded = rows_loaded(target)?;
    let schema = Arc::new(schema());
    let options = SessionOptions { ops: ops().into(), ..SessionOptions::default() };
    let mut session = target.session(&schema, &options)?;
    session.begin()?;
    let mut checked = Checked { conditions: conditions(loaded), ..Checked::default() };
    let sums = read(&mut *session, loaded, &mut checked, progress)?;
    let mut rows = Rows::default();
    for (index, sums) in sums.iter().enumerate() {
        for (range, expected) in (0..RANGES).zip(sums) {
            let done = (index as i64 * RANGES + range) as f64 / (KEYS as i64 * RANGES) as f64;
            progress(0.5 + done / 2.0);
            let (least, most) = (range * WIDTH, (range + 1) * WIDTH - 1);
            session.run(OpId(1 + index), &[least.into(), most.into()], &mut rows)?;
            let found = rows.get(0, 0).int();
            checked.conditions[INDEXES + index].wants(found == *expected, || {
                format!("keys {least} to {most}: the index has {found} in sum, rows {expected}")
            });
        }
    }
    session.rollback()?;
    Ok(checked)
}

/// Reads every row and every index once, so that the target has in memory what has room there.
///
/// # Errors
/// What the target said.
pub fn read_all(target: &dyn Target) -> Result<(), TargetError> {
    check(target, &mut |_| {}).map(drop)
}

fn conditions(loaded: i64) -> Vec<Condition> {
    let mut conditions = vec![
        Condition::new("every row holds what was inserted"),
        Condition::new(format!("the {loaded} rows that were loaded are there")),
    ];
    let index = |at| Condition::new(format!("index b{at} leads to the rows of the table"));
    conditions.extend((1..=KEYS).map(index));
    conditions
}

/// Every row, and the sums of ranges of each index.
fn ops() -> Vec<Op> {
    let scan = |index, columns, fold| Access::Scan {
        index,
        prefix: 0,
        is_range: index.is_some(),
        order: if index.is_some() { Order::Any } else { Order::Ascending },
        limit: None,
        locks: false,
        columns,
        fold,
    };
    let op = |name, access| Op { name, table: TABLE, access };
    let rows = op("every row", scan(None, vec![0, 1, 2, 3, 4], Fold::Rows));
    let sums = (0..KEYS).map(|at| op("sum of an index", scan(Some(at), vec![1 + at], Fold::Sum)));
    std::iter::once(rows).chain(sums).collect()
}

fn read(
    session: &mut dyn Session,
    loaded: i64,
    checked: &mut Checked,
    progress: &mut dyn FnMut(f64),
) -> Result<Sums, TargetError> {
    let (mut sums, mut found_loaded): (Sums, i64) = ([[0; RANGES as usize]; KEYS], 0);
    session.stream(OpId(0), &[], &mut |row| {
        checked.rows += 1;
        if checked.rows.is_multiple_of(100_000) {
            progress((checked.rows as f64 / loaded.max(1) as f64).min(1.0) / 2.0);
        }
        let id = row[0].int();
        found_loaded += i64::from((1..=loaded).contains(&id));
        let keys: [i64; KEYS] = std::array::from_fn(|at| row[1 + at].int());
        checked.conditions[WHOLE]
            .wants(is_whole(keys, row[4].text()), || format!("row {id}: {row:?}"));
        for (sums, key) in sums.iter_mut().zip(keys) {
            let range = usize::try_from(key / WIDTH).unwrap_or_default();
            if let Some(sum) = sums.get_mut(range) {
                *sum += key;
            }
        }
    })?;
    checked.conditions[LOADED]
        .wants(found_loaded == loaded, || format!("{found_loaded} of {loaded} are there"));
    Ok(sums)
}
