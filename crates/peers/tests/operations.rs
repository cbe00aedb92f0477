//! Operations give the same on SQLite and RocksDB as on the embedded engine.
#![cfg(feature = "rocksdb")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use iostrata_database::target::{
    Access, Assign, Change, Fold, JoinBelow, Op, OpId, Order, Rows, SessionOptions, Target, Value,
};
use iostrata_embedded::EmbeddedTarget;
use iostrata_peers::engines::Engine;
use iostrata_peers::tpcc::open;
use iostrata_workload::tpcc::{TableId, schema};

/// Orders 1 to 6 of a district, of customers 1 and 2, some without a carrier.
fn orders(rows: &mut Rows) {
    for id in 1..=6_i64 {
        let carrier = if id % 2 == 0 { Value::Null } else { Value::Int(id) };
        let [of, moment, lines] = [1 + id % 2, 1_700_000_000, 5].map(Value::Int);
        rows.push_row(&[id.into(), 1.into(), 1.into(), of, moment, carrier, lines, 1.into()]);
    }
}

fn stock(rows: &mut Rows) {
    for item in 1..=4_i64 {
        let text = || Value::from("districts of 24 letters.");
        let mut row = vec![item.into(), 1.into(), (8 * item).into()];
        row.extend((0..10).map(|_| text()));
        row.extend([0, 0, 0].map(Value::Int));
        row.push(if item == 3 { "".into() } else { "data".into() });
        rows.push_row(&row);
    }
}

fn lines(rows: &mut Rows) {
    for (order, item) in [(1, 1), (1, 2), (2, 1), (3, 2), (3, 4)] {
        [order, 1, 1, item, item, 1].iter().for_each(|number| rows.push(Value::Int(*number)));
        for value in [Value::Null, 5.into(), (100 * item).into(), "dist".into()] {
            rows.push(value);
        }
    }
}

fn scan(table: TableId, index: Option<usize>, fold: Fold, column: usize) -> Access {
    let locks = false;
    let (limit, order, columns) = (None, Order::Ascending, vec![column]);
    let (prefix, is_range) = (if index.is_some() { 3 } else { 2 }, table != TableId::Orders);
    Access::Scan { index, prefix, is_range, order, limit, locks, columns, fold }
}

/// Operations, each with its arguments.
fn played() -> Vec<(Op, Vec<Value<'static>>)> {
    let int = |numbers: &[i64]| numbers.iter().map(|number| Value::Int(*number)).collect();
    let op = |name, table: TableId, access| Op { name, table: table.number(), access };
    let set = |column, change| Assign { column, change };
    let get = |locks| Access::Get { columns: vec![0, 5], locks };
    let take = vec![
        set(2, Change::SubtractRefill { least: 10, by: 91 }),
        set(13, Change::Add),
        set(14, Change::AddConst(1)),
    ];
    let note = vec![set(16, Change::Prepend { most: 6 })];
    let last = Access::Scan {
        index: Some(0),
        prefix: 3,
        is_range: false,
        order: Order::Descending,
        limit: Some(2),
        locks: true,
        columns: vec![0, 4],
        fold: Fold::Rows,
    };
    let join =
        JoinBelow { prefix: 2, other: TableId::Stock.number(), leads_by: vec![2, 4], tested: 2 };
    let modify =
        |prefix, set, returns: &[usize]| Access::Modify { prefix, set, returns: returns.into() };
    use TableId::{OrderLine, Orders, Stock};
    vec![
        (op("twice", Orders, get(false)), int(&[1, 1, 4, 1, 1, 4, 1, 1, 2, 1, 1, 99])),
        (op("locked", Orders, get(true)), int(&[1, 1, 3])),
        (op("last", Orders, last), int(&[1, 1, 2])),
        (op("by customer", Orders, scan(Orders, Some(0), Fold::Rows, 0)), int(&[1, 1, 1])),
        (op("sum", OrderLine, scan(OrderLine, None, Fold::Sum, 8)), int(&[1, 1, 1, 2])),
        (op("no sum", OrderLine, scan(OrderLine, None, Fold::Sum, 8)), int(&[1, 1, 7, 9])),
        (op("sorted", OrderLine, scan(OrderLine, None, Fold::Sorted, 4)), int(&[1, 1, 1, 3])),
        (op("distinct", OrderLine, scan(OrderLine, None, Fold::Distinct, 4)), int(&[1, 1, 1, 3])),
        (op("below", OrderLine, Access::CountBelow(join)), int(&[1, 1, 1, 3, 17])),
        (op("take", Stock, modify(2, take, &[0, 2])), int(&[1, 1, 5, 5, 1, 4, 3, 3, 1, 1, 2, 2])),
        (
            op("note", Stock, modify(2, note.clone(), &[16])),
            vec![1.into(), 2.into(), "12345".into()],
        ),
        (op("no note", Stock, modify(2, note, &[16])), vec![1.into(), 2.into(), Value::Null]),
        (
            op("carry", OrderLine, modify(3, vec![set(6, Change::Set)], &[3, 8])),
            int(&[1, 1, 3, 77]),
        ),
        (op("delete", Orders, Access::Delete), int(&[1, 1, 6, 1, 1, 99])),
        (op("gone", Orders, scan(Orders, Some(0), Fold::Rows, 0)), int(&[1, 1, 1])),
        (op("insert", Orders, Access::Insert), int(&[9, 1, 1, 1, 5, 6, 7, 1])),
        (op("there", Orders, scan(Orders, Some(0), Fold::Rows, 0)), int(&[1, 1, 1])),
        (
            op("after", Stock, Access::Get { columns: vec![2, 13, 14, 16], locks: false }),
            int(&[1, 1, 1, 2]),
        ),
        (op("moments", OrderLine, scan(OrderLine, None, Fold::Rows, 6)), int(&[1, 1, 2, 3])),
    ]
}

/// Puts the first rows of a table into the buffer.
type Fill = fn(&mut Rows);

/// What a target gives, operation by operation; also what it refuses.
fn play(target: &dyn Target) -> Vec<String> {
    let schema = Arc::new(schema());
    let tables: [(TableId, Fill); 3] =
        [(TableId::Orders, orders), (TableId::Stock, stock), (TableId::OrderLine, lines)];
    for (table, fill) in tables {
        target.create(&schema, table.number()).unwrap();
        let mut is_given = false;
        let loaded = target.load(&schema, table.number(), None, &mut |rows| {
            rows.clear(schema.tables[table.number()].columns.len());
            if !std::mem::replace(&mut is_given, true) {
                fill(rows);
            }
        });
        assert!(loaded.unwrap() > 3);
    }
    target.finish(&schema).unwrap();
    let played = played();
    let ops = played.iter().map(|(op, _)| op.clone()).collect();
    let options = SessionOptions { ops, ..SessionOptions::default() };
    let mut session = target.session(&schema, &options).unwrap();
    let (mut rows, mut told) = (Rows::default(), Vec::new());
    session.begin().unwrap();
    for (at, (op, args)) in played.iter().enumerate() {
        let found = session.run(OpId(at), args, &mut rows).unwrap();
        let mut given: Vec<String> =
            (0..rows.len()).map(|row| format!("{:?}", rows.row(row).collect::<Vec<_>>())).collect();
        if matches!(op.access, Access::Get { .. }) {
            // In any order.
            given.sort();
        }
        told.push(format!("{}: {found}, {}", op.name, given.join(" ")));
    }
    let again = played.iter().position(|(op, _)| op.name == "insert").unwrap();
    let error = session.run(OpId(again), &played[again].1, &mut rows).unwrap_err();
    told.push(format!("{:?}", error.trouble));
    session.rollback().unwrap();
    session.begin().unwrap();
    session.run(OpId(0), &played[0].1, &mut rows).unwrap();
    told.push(format!("{} after rolling back", rows.len()));
    told
}

#[test]
fn every_target_gives_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let engine = EmbeddedTarget::open(&dir.path().join("engine"), &schema(), &[]).unwrap();
    let expected = play(&engine);
    assert!(expected.iter().any(|told| told.starts_with("below: 1, [2]")), "{expected:#?}");
    for peer in [Engine::Sqlite, Engine::Rocksdb] {
        assert_eq!(play(&*open(peer, dir.path()).unwrap()), expected, "{peer}");
    }
}
