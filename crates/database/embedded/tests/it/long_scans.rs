//! Scans over more rows than are looked up at once.

use std::sync::Arc;

use iostrata_database::target::{
    Access, Column, ColumnType, Fold, Index, Isolation, Op, OpId, Order, Rows, Schema,
    SessionOptions, Table, Target, Value,
};
use iostrata_embedded::EmbeddedTarget;

use crate::against_model::settings;

const ROWS: i64 = 3_000;
/// Rows that share a secondary key.
const SHARED: i64 = 700;

fn schema() -> Arc<Schema> {
    let number = |name: &str, is_nullable| Column {
        name: name.to_owned(),
        of: ColumnType::Int { bytes: 4 },
        is_nullable,
    };
    let table = Table {
        name: "t".to_owned(),
        columns: vec![number("id", false), number("group", true)],
        key: vec![0],
        indexes: vec![Index { name: "group".to_owned(), columns: vec![1], is_late: false }],
        auto_increment: false,
    };
    Arc::new(Schema { tables: vec![table] })
}

fn group(id: i64) -> Value<'static> {
    if id < SHARED { Value::Null } else { Value::Int(id / SHARED) }
}

#[test]
fn every_row_comes_once_in_order_by_key_and_by_index_locked_and_not() {
    let dir = tempfile::tempdir().unwrap();
    let schema = schema();
    let target = EmbeddedTarget::open(dir.path(), &schema, &settings()).unwrap();
    let mut ids = 0..ROWS;
    let loaded = target.load(&schema, 0, None, &mut |rows| {
        rows.clear(2);
        ids.by_ref().take(500).for_each(|id| rows.push_row(&[Value::Int(id), group(id)]));
    });
    assert_eq!(loaded.unwrap(), ROWS as u64);
    for isolation in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
        for (index, is_range) in [(None, false), (Some(0), false), (Some(0), true)] {
            for order in [Order::Ascending, Order::Descending] {
                for locks in [false, true] {
                    for limit in [None, Some(1_100)] {
                        let access = Access::Scan {
                            index,
                            prefix: 0,
                            is_range,
                            order,
                            limit,
                            locks,
                            columns: vec![0, 1],
                            fold: Fold::Rows,
                        };
                        scan(&target, &schema, isolation, access);
                    }
                }
            }
        }
    }
    target.close().unwrap();
}

fn scan(target: &EmbeddedTarget, schema: &Arc<Schema>, isolation: Isolation, access: Access) {
    let Access::Scan { is_range, order, limit, .. } = access else { return };
    let what = format!("{isolation:?} {access:?}");
    let ops = vec![Op { name: "scan", table: 0, access }];
    let options = SessionOptions { ops: ops.into(), isolation, ..SessionOptions::default() };
    let mut session = target.session(schema, &options).unwrap();
    session.begin().unwrap();
    let args = [i64::MIN, i64::MAX].map(Value::Int);
    let mut out = Rows::default();
    session.run(OpId(0), if is_range { &args } else { &[] }, &mut out).unwrap();
    // Groups rise with the keys, and nothing is before every group but not within bounds.
    let mut expected: Vec<i64> = (if is_range { SHARED } else { 0 }..ROWS).collect();
    if order == Order::Descending {
        expected.reverse();
    }
    expected.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
    let found: Vec<i64> = (0..out.len()).map(|at| out.get(at, 0).int()).collect();
    assert!(found == expected, "{what}: {} rows", found.len());
    assert!((0..out.len()).all(|at| out.get(at, 1) == group(found[at])), "{what}");
}
