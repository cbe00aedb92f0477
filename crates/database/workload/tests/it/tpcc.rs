//! TPC-C on the engine.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_database::target::Target;
use iostrata_workload::CheckResult;
use iostrata_workload::tpcc::{self, CheckPlan, Dataset, PrepareOptions, Stage, Terminals};

use crate::{opened, run, terminal_options};

const OPTIONS: PrepareOptions =
    PrepareOptions { warehouses: 2, threads: 2, seed: 3, now_s: 1_700_000_000, reset: false };

fn terminals<'a>(target: &'a dyn Target, dataset: &Dataset) -> Terminals<'a> {
    Terminals::new(target, dataset, terminal_options(false))
}

fn check(target: &dyn Target, is_fresh: bool) -> CheckResult {
    let plan = CheckPlan { warehouses: 2, is_fresh };
    tpcc::check(target, plan, &mut |_| {}).unwrap()
}

#[test]
fn all_conditions_hold_after_the_load_after_a_run_and_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let target = opened(dir.path(), &tpcc::schema());
    assert_eq!(Dataset::ready(&target).unwrap_err().code, "not_prepared");
    // Stopped half-way, then taken up again.
    let (stop, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    let stopped = tpcc::prepare(&target, &OPTIONS, &stop, &|progress| {
        seen.store(progress.rows, Ordering::Relaxed);
        stop.store(progress.rows > 900_000, Ordering::Relaxed);
    });
    let stopped = stopped.unwrap_err();
    assert_eq!(stopped.code, "stopped", "{stopped}");
    assert_eq!(Dataset::read(&target).unwrap().unwrap().stage, Stage::Loading);
    let go_on = AtomicBool::new(false);
    let prepared = tpcc::prepare(&target, &OPTIONS, &go_on, &|_| {}).unwrap();
    assert!(prepared.loaded.rows_before > 0 && prepared.loaded.rows > 0, "{prepared:?}");
    assert_eq!(prepared.dataset.stage, Stage::Loaded);
    let again = tpcc::prepare(&target, &OPTIONS, &go_on, &|_| {}).unwrap();
    assert_eq!(again.loaded.rows, 0, "it is there already");
    let other = PrepareOptions { warehouses: 3, ..OPTIONS };
    let refused = tpcc::prepare(&target, &other, &go_on, &|_| {}).unwrap_err();
    assert_eq!(refused.code, "other_dataset");

    let mut dataset = Dataset::ready(&target).unwrap();
    let fresh = check(&target, true);
    assert!(fresh.is_ok(), "{fresh:?}");
    dataset.mark_used(&target).unwrap();
    let terminals = terminals(&target, &dataset);
    assert!(tpcc::is_legal(dataset.c_load, terminals.constants().last));
    let done = run(&terminals, 3, 400);
    assert_eq!(done.settled, 2_400);
    let used = check(&target, false);
    assert!(used.is_ok(), "{used:?}");
    let not_fresh = check(&target, true);
    assert!(not_fresh.conditions[10].violations > 0, "orders came and went");
    acknowledged(&target, &terminals);
    target.close().unwrap();

    let target = opened(dir.path(), &tpcc::schema());
    let reopened = Dataset::ready(&target).unwrap();
    assert_eq!((reopened.stage, reopened.c_load), (Stage::Used, dataset.c_load));
    assert_eq!(check(&target, false), used);
    assert!(target.engine().check().unwrap().is_clean());
    assert!(tpcc::cleanup(&target).unwrap());
    assert!(!tpcc::cleanup(&target).unwrap());
    target.close().unwrap();
}

/// Every acknowledged order, and no other, has taken a number of its district.
fn acknowledged(target: &dyn Target, terminals: &Terminals<'_>) {
    for warehouse in 1..=2 {
        for district in 1..=10 {
            let next = tpcc::next_order(target, warehouse, district).unwrap();
            let (begun, acknowledged) = terminals.orders().of(warehouse, district);
            assert_eq!(next - 3_001, i64::from(acknowledged), "{warehouse}/{district}");
            assert_eq!(begun, acknowledged);
        }
    }
}
