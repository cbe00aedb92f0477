//! TPC-C on the peers: loaded, run by several sessions, checked, and opened again.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_peers::engines::Engine;
use iostrata_peers::tpcc::{RunPlan, open, run};
use iostrata_plan::OpKind;
use iostrata_workload::tpcc::{CheckPlan, Dataset, Stage, check};

fn conditions_hold(engine: Engine, dir: &Path) {
    let plan =
        RunPlan { warehouses: 1, threads: vec![1, 4], time: Duration::from_secs(1), seed: 5 };
    let target = open(engine, dir).unwrap();
    // Checks by itself; again below, on what was written by other connections.
    let document = run(&*target, &plan, &AtomicBool::new(false)).unwrap();
    assert_eq!(document.levels.len(), 2);
    assert!(document.errors.is_empty(), "{:?}", document.errors);
    let completed: u64 = document.completed.values().sum();
    assert!(document.completed[&OpKind::NewOrder] > 0 && completed > 10, "{completed}");
    let orders = Dataset::orders(&*target).unwrap();
    assert!(orders > 30_000, "{orders} orders after 30000 were loaded and more were placed");
    drop(target);
    let target = open(engine, dir).unwrap();
    let dataset = Dataset::ready(&*target).unwrap();
    assert_eq!(dataset.stage, Stage::Used);
    let outcome = check(&*target, CheckPlan { warehouses: 1, is_fresh: false }, &mut |_| {});
    let outcome = outcome.unwrap();
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(Dataset::orders(&*target).unwrap(), orders);
}

#[test]
fn the_conditions_hold_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    conditions_hold(Engine::Sqlite, dir.path());
}

#[cfg(feature = "rocksdb")]
#[test]
fn the_conditions_hold_on_rocksdb() {
    let dir = tempfile::tempdir().unwrap();
    let plan = RunPlan { warehouses: 1, threads: vec![4], time: Duration::from_secs(1), seed: 5 };
    // Stays open until the process ends, so that it cannot be opened again here.
    let target = open(Engine::Rocksdb, dir.path()).unwrap();
    let document = run(&*target, &plan, &AtomicBool::new(false)).unwrap();
    assert!(document.errors.is_empty(), "{:?}", document.errors);
    assert!(Dataset::orders(&*target).unwrap() > 30_000);
    assert_eq!(document.target.flavour, "rocksdb");
}

#[test]
fn what_is_no_target_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let error = open(Engine::Redb, dir.path()).err().unwrap();
    assert_eq!(error.code, "unsupported");
    assert!(error.to_string().contains("use sqlite"), "{error}");
}
