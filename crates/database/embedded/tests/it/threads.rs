//! Sessions of several threads that change the same rows, and statements that commit themselves.

use std::sync::Arc;

use iostrata_database::target::{
    Access, Assign, Change, Column, ColumnType, Fold, Isolation, Op, OpId, Order, Rows, Schema,
    SessionOptions, Table, Target, Trouble, Value,
};
use iostrata_embedded::EmbeddedTarget;

use crate::against_model::settings;
use crate::chance::Chance;

const ACCOUNTS: i64 = 6;
const THREADS: u64 = 4;
const TRANSFERS: u64 = 200;

const ADD: OpId = OpId(0);
const SUM: OpId = OpId(1);
const INSERT: OpId = OpId(2);
const COUNT: OpId = OpId(3);

fn schema() -> Arc<Schema> {
    let number = |name: &str| Column {
        name: name.to_owned(),
        of: ColumnType::Int { bytes: 4 },
        is_nullable: false,
    };
    let table = |name: &str, key: Vec<usize>| Table {
        name: name.to_owned(),
        columns: vec![number("id"), number("balance")],
        key,
        indexes: Vec::new(),
        auto_increment: false,
    };
    Arc::new(Schema { tables: vec![table("accounts", vec![0]), table("transfers", vec![])] })
}

fn options(isolation: Isolation, autocommit: bool) -> SessionOptions {
    let sum = |column| Access::Scan {
        index: None,
        prefix: 0,
        is_range: false,
        order: Order::Ascending,
        limit: None,
        locks: false,
        columns: vec![column],
        fold: Fold::Sum,
    };
    let set = vec![Assign { column: 1, change: Change::Add }];
    let op = |name, table, access| Op { name, table, access };
    let ops = vec![
        op("add", 0, Access::Modify { prefix: 1, set, returns: vec![1] }),
        op("sum", 0, sum(1)),
        op("insert", 1, Access::Insert),
        op("count", 1, sum(0)),
    ];
    SessionOptions { ops: ops.into(), isolation, autocommit, as_text: false }
}

fn open(dir: &std::path::Path) -> (EmbeddedTarget, Arc<Schema>) {
    let (schema, mut settings) = (schema(), settings());
    settings.push(("lock_wait_timeout".to_owned(), "50".to_owned()));
    let target = EmbeddedTarget::open(dir, &schema, &settings).unwrap();
    (0..2).for_each(|table| target.create(&schema, table).unwrap());
    let mut accounts = 0..ACCOUNTS;
    let loaded = target.load(&schema, 0, None, &mut |rows| {
        rows.clear(2);
        accounts.by_ref().for_each(|id| rows.push_row(&[Value::Int(id), Value::Int(0)]));
    });
    assert_eq!(loaded.unwrap(), ACCOUNTS as u64);
    (target, schema)
}

/// Each moves money from one account to two others; the sum stays the same.
fn transfer(target: &EmbeddedTarget, schema: &Arc<Schema>, thread: u64) {
    let isolations = [Isolation::RepeatableRead, Isolation::ReadCommitted];
    let isolation = isolations[thread as usize % 2];
    let mut session = target.session(schema, &options(isolation, false)).unwrap();
    let (mut chance, mut out, mut tickets) = (Chance::new(thread), Rows::default(), Vec::new());
    let mut done = 0;
    while done < TRANSFERS {
        let mut account = || Value::Int(chance.below(ACCOUNTS as u64) as i64);
        let changes =
            [account(), Value::Int(-2), account(), Value::Int(1), account(), Value::Int(1)];
        session.begin().unwrap();
        let moved = session.run(ADD, &changes, &mut out).and_then(|moved| {
            assert_eq!(moved, 3);
            session.run(INSERT, &[Value::Int(1), Value::Int(0)], &mut out)?;
            session.run(SUM, &[], &mut out)
        });
        match moved {
            Ok(_) => {
                assert_eq!(out.get(0, 0), Value::Int(0), "whatever is moved, the sum is the same");
                tickets.push(session.commit().unwrap());
                done += 1;
            }
            Err(error) => assert_eq!(error.trouble, Trouble::Retry, "{error}"),
        }
    }
    for ticket in tickets {
        assert!(session.settle(ticket, true).unwrap());
    }
}

#[test]
fn nothing_is_lost_between_threads() {
    let dir = tempfile::tempdir().unwrap();
    let (target, schema) = open(dir.path());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (target, schema) = (&target, &schema);
            scope.spawn(move || transfer(target, schema, thread));
        }
    });
    let mut session = target.session(&schema, &options(Isolation::default(), true)).unwrap();
    let mut out = Rows::default();
    session.run(COUNT, &[], &mut out).unwrap();
    assert_eq!(out.get(0, 0), Value::Int((THREADS * TRANSFERS) as i64));
    session.run(SUM, &[], &mut out).unwrap();
    assert_eq!(out.get(0, 0), Value::Int(0));
    assert!(target.engine().check().unwrap().is_clean());
}

#[test]
fn a_statement_that_commits_itself_is_durable_when_it_returns() {
    let dir = tempfile::tempdir().unwrap();
    let (target, schema) = open(dir.path());
    let mut session = target.session(&schema, &options(Isolation::default(), true)).unwrap();
    let mut out = Rows::default();
    let add = |id, number| [Value::Int(id), Value::Int(number)];
    assert_eq!(session.run(ADD, &add(1, 5), &mut out).unwrap(), 1);
    let failed = session.run(ADD, &add(1, i64::from(i32::MAX)), &mut out).unwrap_err();
    assert_eq!(failed.trouble, Trouble::Failed);
    assert!(out.is_empty());
    // Begin and commit mean nothing then, and hold nothing up.
    session.begin().unwrap();
    let ticket = session.commit().unwrap();
    assert!(session.settle(ticket, true).unwrap());
    drop((session, target));
    let target = EmbeddedTarget::open(dir.path(), &schema, &[]).unwrap();
    let mut session = target.session(&schema, &options(Isolation::default(), true)).unwrap();
    session.run(SUM, &[], &mut out).unwrap();
    assert_eq!(out.get(0, 0), Value::Int(5));
}

#[test]
fn a_sampler_tells_of_who_waits_and_how_much_there_is() {
    let dir = tempfile::tempdir().unwrap();
    let (target, schema) = open(dir.path());
    let mut sampler = target.sampler().unwrap().unwrap();
    let before = sampler.sample().unwrap();
    assert_eq!(before.row_locks_waiting, Some(0));
    assert!(before.checkpoint_age_limit_bytes > before.checkpoint_age_bytes, "{before:?}");
    assert_eq!(before.history_list_limit, None, "writers are never held back by default");
    let args = [Value::Int(0), Value::Int(1)];
    let mut holder = target.session(&schema, &options(Isolation::RepeatableRead, false)).unwrap();
    holder.begin().unwrap();
    holder.run(ADD, &args, &mut Rows::default()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let options = options(Isolation::RepeatableRead, false);
            let mut waiter = target.session(&schema, &options).unwrap();
            waiter.begin().unwrap();
            waiter.run(ADD, &args, &mut Rows::default()).unwrap();
            let ticket = waiter.commit().unwrap();
            assert!(waiter.settle(ticket, true).unwrap());
        });
        while sampler.sample().unwrap().row_locks_waiting != Some(1) {
            std::thread::yield_now();
        }
        holder.rollback().unwrap();
    });
    let after = sampler.sample().unwrap();
    assert_eq!(after.row_locks_waiting, Some(0));
    assert!(after.redo_durable_bytes > before.redo_durable_bytes, "{after:?}");
    assert!(after.redo_durable_bytes <= after.redo_end_bytes, "{after:?}");
    assert!(target.data_bytes().unwrap().is_some_and(|bytes| bytes > 0));
    drop(sampler);
    target.close().unwrap();
}
