//! What is there again after an end without closing.

use std::path::Path;
use std::sync::Arc;

use iostrata_database::target::{
    Access, Column, ColumnType, Fold, Op, OpId, Order, Rows, Schema, Session, SessionOptions,
    Table, Target, Value,
};
use iostrata_embedded::EmbeddedTarget;

use crate::against_model::settings;

/// A table whose rows are identified by a hidden number, and one that counts up.
fn schema() -> Arc<Schema> {
    let column = |name: &str| Column {
        name: name.to_owned(),
        of: ColumnType::Int { bytes: 4 },
        is_nullable: false,
    };
    let table = |name: &str, key: Vec<usize>| Table {
        name: name.to_owned(),
        columns: vec![column("id"), column("n")],
        auto_increment: !key.is_empty(),
        key,
        indexes: Vec::new(),
    };
    Arc::new(Schema { tables: vec![table("history", vec![]), table("counted", vec![0])] })
}

fn open(dir: &Path) -> (EmbeddedTarget, Box<dyn Session>) {
    let schema = schema();
    let target = EmbeddedTarget::open(dir, &schema, &settings()).unwrap();
    if target.present(&schema).unwrap().is_empty() {
        (0..schema.tables.len()).for_each(|table| target.create(&schema, table).unwrap());
    }
    let scan = Access::Scan {
        index: None,
        prefix: 0,
        is_range: false,
        order: Order::Ascending,
        limit: None,
        locks: false,
        columns: vec![0, 1],
        fold: Fold::Rows,
    };
    let of = |table| [Access::Insert, scan.clone()].map(|access| Op { name: "op", table, access });
    let ops = [0, 1].map(of).concat();
    let options = SessionOptions { ops: ops.into(), ..SessionOptions::default() };
    let session = target.session(&schema, &options).unwrap();
    (target, session)
}

const INSERTS: [OpId; 2] = [OpId(0), OpId(2)];
const SCANS: [OpId; 2] = [OpId(1), OpId(3)];

fn ids(session: &mut Box<dyn Session>, scan: OpId) -> Vec<(i64, i64)> {
    let mut out = Rows::default();
    session.begin().unwrap();
    session.run(scan, &[], &mut out).unwrap();
    session.rollback().unwrap();
    (0..out.len()).map(|at| (out.get(at, 0).int(), out.get(at, 1).int())).collect()
}

#[test]
fn what_was_settled_is_there_after_an_end_without_closing_and_numbers_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut out = Rows::default();
    for round in 0..3_i64 {
        let (target, mut session) = open(dir.path());
        let mut last = None;
        for n in 10 * round..10 * (round + 1) {
            session.begin().unwrap();
            session.run(INSERTS[0], &[Value::Int(7), Value::Int(n)], &mut out).unwrap();
            session.run(INSERTS[1], &[Value::Null, Value::Int(n)], &mut out).unwrap();
            last = Some(session.commit().unwrap());
        }
        // Durable in their order: the last one stands for all.
        assert!(session.settle(last.unwrap(), true).unwrap());
        session.begin().unwrap();
        session.run(INSERTS[0], &[Value::Int(-1), Value::Int(-1)], &mut out).unwrap();
        drop(session);
        drop(target);
        let (target, mut session) = open(dir.path());
        assert!(!target.engine().recovery().was_clean);
        let count = 10 * (round + 1);
        let history: Vec<_> = (0..count).map(|n| (7, n)).collect();
        assert_eq!(ids(&mut session, SCANS[0]), history, "in the order in which they came");
        let counted: Vec<_> = (0..count).map(|n| (n + 1, n)).collect();
        assert_eq!(ids(&mut session, SCANS[1]), counted, "without gaps: nothing was rolled back");
        assert!(target.engine().check().unwrap().is_clean());
    }
}
