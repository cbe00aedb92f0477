//! The load of objects and their history: on the engine, and what its check finds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iostrata_database::target::{
    Access, Assign, Change, Op, OpId, Rows, Schema, SessionOptions, Target, Value,
};
use iostrata_workload::CheckResult;
use iostrata_workload::stress::{self, StressMix, StressSpec, StressTerminals};

use crate::{opened, run};

pub static GO_ON: AtomicBool = AtomicBool::new(false);

pub fn small() -> StressSpec {
    let mix = StressMix::new([1, 1, 2]).unwrap();
    StressSpec { objects: 60, history: 5, mix, ..StressSpec::default() }
}

pub fn check(target: &dyn Target) -> CheckResult {
    stress::check(target, &mut |_| {}).unwrap()
}

/// Runs one operation and commits it.
pub fn alter(target: &dyn Target, schema: Schema, table: &str, access: Access, args: &[Value<'_>]) {
    let ops = [Op { name: "alter", table: schema.table(table), access }].into();
    let options = SessionOptions { ops, ..SessionOptions::default() };
    let mut session = target.session(&Arc::new(schema), &options).unwrap();
    session.begin().unwrap();
    session.run(OpId(0), args, &mut Rows::default()).unwrap();
    let ticket = session.commit().unwrap();
    session.settle(ticket, true).unwrap();
}

/// Sets a number of the row with a key of so many columns.
pub fn set(table: &str, column: &str, prefix: usize, schema: &Schema) -> Access {
    let column = schema.tables[schema.table(table)].column(column);
    let set = vec![Assign { column, change: Change::Set }];
    Access::Modify { prefix, set, returns: Vec::new() }
}

/// The conditions, from 1, that do not hold.
pub fn broken(checked: &CheckResult) -> Vec<usize> {
    let all = checked.conditions.iter().enumerate();
    all.filter(|(_, one)| one.violations > 0).map(|(at, _)| at + 1).collect()
}

#[test]
fn the_tables_keep_their_size_and_all_conditions_hold() {
    let dir = tempfile::tempdir().unwrap();
    let target = opened(dir.path(), &stress::schema());
    let early = StressTerminals::new(&target, small(), false).err().unwrap();
    assert_eq!(early.code, "not_prepared", "{early}");
    assert!(early.to_string().contains("load them with `stress prepare`"), "{early}");
    let (stop, how) = (AtomicBool::new(false), (2, false));
    let prepared = stress::prepare(&target, &small(), how, &stop, &|_, _| {}).unwrap();
    assert_eq!((prepared.rows, prepared.rows_before), (1_110 + 360, 0));
    let again = stress::prepare(&target, &small(), how, &stop, &|_, _| {}).unwrap();
    assert_eq!((again.rows, again.rows_before), (0, 1_470));
    let larger = StressSpec { objects: 61, ..small() };
    let refused = stress::prepare(&target, &larger, how, &stop, &|_, _| {}).unwrap_err();
    assert!(refused.to_string().contains("60 objects, 5 history"), "{refused}");
    let refused = StressTerminals::new(&target, larger.clone(), false).err().unwrap();
    assert_eq!(refused.code, "other_dataset", "{refused}");
    let fresh = check(&target);
    assert_eq!((broken(&fresh), fresh.rows), (vec![], 1_470));

    let source = StressTerminals::new(&target, small(), false).unwrap();
    assert_eq!(run(&source, 4, 300).settled, 2_400);
    let used = check(&target);
    assert_eq!((broken(&used), used.rows), (vec![], 1_470));
    assert!(target.engine().check().unwrap().is_clean());
    stress::read_all(&target).unwrap();
    drop(source);

    let reset = stress::prepare(&target, &larger, (2, true), &stop, &|_, _| {}).unwrap();
    assert_eq!(reset.rows, 1_110 + 366);
    assert!(stress::cleanup(&target).unwrap() && !stress::cleanup(&target).unwrap());
    target.close().unwrap();
}

#[test]
fn a_load_that_was_stopped_begins_again() {
    let dir = tempfile::tempdir().unwrap();
    let target = opened(dir.path(), &stress::schema());
    let stop = AtomicBool::new(true);
    let stopped = stress::prepare(&target, &small(), (1, false), &stop, &|_, _| {}).unwrap_err();
    assert_eq!(stopped.code, "stopped");
    let unfinished = stress::dataset(&target).unwrap_err();
    assert!(unfinished.to_string().contains("not loaded to the end"), "{unfinished}");
    stress::prepare(&target, &small(), (1, false), &GO_ON, &|_, _| {}).unwrap();
    assert!(check(&target).is_ok());
}

/// Damages of every kind, each on its own object.
pub fn damage(target: &dyn Target) {
    let schema = stress::schema();
    let change = |table: &str, column: &str, key: &[i64], to: i64| {
        let args: Vec<Value<'_>> = key.iter().chain([&to]).map(|one| Value::Int(*one)).collect();
        alter(target, schema.clone(), table, set(table, column, key.len(), &schema), &args);
    };
    change("stress_objects", "o_total", &[1], 1);
    assert_eq!(broken(&check(target)), [4]);
    change("stress_objects", "o_section", &[2], 101);
    assert_eq!(broken(&check(target)), [3, 4]);
    change("stress_history", "h_status", &[3, 5], 0);
    assert_eq!(broken(&check(target)), [3, 4, 5]);
    change("stress_objects", "o_last", &[4], 6);
    assert_eq!(broken(&check(target)), [2, 3, 4, 5]);
    let key = [5, 1].map(Value::Int);
    alter(target, schema.clone(), "stress_history", Access::Delete, &key);
    let found = check(target);
    assert_eq!(broken(&found), [1, 2, 3, 4, 5]);
    let told = &found.conditions[0].told;
    assert_eq!(told, &["object 5: 4 history rows"]);
}

#[test]
fn every_kind_of_damage_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let target = opened(dir.path(), &stress::schema());
    stress::prepare(&target, &small(), (2, false), &GO_ON, &|_, _| {}).unwrap();
    damage(&target);
    alter(&target, stress::schema(), "stress_objects", Access::Delete, &[Value::Int(9)]);
    let found = check(&target);
    assert!(found.conditions[0].told.contains(&"object 9 is missing".to_owned()), "{found:?}");
    assert!(found.conditions[2].violations >= 5, "its history leads nowhere: {found:?}");
    let transactions = StressSpec { mix: StressMix::default(), ..small() };
    let source = StressTerminals::new(&target, transactions, false).unwrap();
    assert!(run_failed(&source), "an object that is missing fails its transactions");
}

/// Whether a transaction fails for a missing row.
fn run_failed(source: &StressTerminals<'_>) -> bool {
    use iostrata_load::{TransactionEnd, TransactionSource, Turn};
    let mut worker = source.worker(0, 1).unwrap();
    (0..2_000).any(|nth| {
        let ran = worker.run(0, Turn { home: 0, nth });
        worker.settle(0, true);
        matches!(ran.ended, TransactionEnd::Failed(failed) if failed.code == "missing_row")
    })
}
