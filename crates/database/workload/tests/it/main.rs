//! Workloads on the embedded engine and on real servers: loaded, run by their own terminals,
//! checked, reopened.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod cluster;
mod insert;
mod kills;
mod oltp;
mod servers;
mod stress;
mod tpcc;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use iostrata_database::target::{Isolation, Schema, Target};
use iostrata_embedded::EmbeddedTarget;
use iostrata_load::{Settlement, TransactionEnd, TransactionSource, Turn};
use iostrata_server::private::TestServer;
use iostrata_workload::tpcc::{
    self as workload, CheckPlan, Dataset, Mix, PrepareOptions, TerminalOptions, Terminals, Waits,
};

/// A server of its own; without one the reason is printed.
fn private_server() -> Option<TestServer> {
    let started = TestServer::start().unwrap();
    if started.is_none() {
        eprintln!("skipped: mariadbd is not installed");
    }
    started
}

/// A small engine.
fn opened(dir: &Path, schema: &Schema) -> EmbeddedTarget {
    let settings = [("buffer_pool_size", "256M"), ("redo_log_capacity", "128M")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    EmbeddedTarget::open(dir, schema, &settings).unwrap()
}

/// Terminals as most tests have them.
fn terminal_options(blocks: bool) -> TerminalOptions {
    TerminalOptions {
        mix: Mix::default(),
        waits: Waits::NONE,
        isolation: Isolation::RepeatableRead,
        seed: 7,
        as_text: false,
        blocks,
        sharing: None,
    }
}

/// One warehouse on a server, loaded and about to be used.
fn one_warehouse(target: &dyn Target, threads: usize) -> Dataset {
    let options =
        PrepareOptions { warehouses: 1, threads, seed: 3, now_s: 1_700_000_000, reset: false };
    workload::prepare(target, &options, &AtomicBool::new(false), &|_| {}).unwrap();
    let mut dataset = Dataset::ready(target).unwrap();
    dataset.mark_used(target).unwrap();
    dataset
}

/// The violated conditions of a used warehouse whose server was killed; of each district,
/// acknowledged <= made <= begun.
fn violations(target: &dyn Target, terminals: &Terminals<'_>) -> Vec<String> {
    for district in 1..=10 {
        let made = workload::next_order(target, 1, district).unwrap() - 3_001;
        let (begun, acknowledged) = terminals.orders().of(1, district);
        assert!(
            i64::from(acknowledged) <= made && made <= i64::from(begun),
            "district {district}: {acknowledged} acknowledged, {made} made, {begun} begun"
        );
    }
    let plan = CheckPlan { warehouses: 1, is_fresh: false };
    let checked = workload::check(target, plan, &mut |_| {}).unwrap();
    checked.conditions.into_iter().flat_map(|condition| condition.told).collect()
}

/// What terminals settled and retried.
#[derive(Debug, Default)]
struct TerminalCounts {
    settled: u64,
    retries: u64,
}

/// Lets threads run so many turns each, every one at two homes with a session each.
fn run(source: &dyn TransactionSource, threads: u32, turns: u64) -> TerminalCounts {
    let one = |thread: u32| {
        let mut worker = source.worker(2 * thread, 2).unwrap();
        let mut done = TerminalCounts::default();
        for nth in 0..turns {
            for slot in 0..2 {
                let turn = Turn { home: 2 * thread + slot, nth };
                worker.next(turn);
                let ran = worker.run(slot, turn);
                done.retries += u64::from(ran.retries);
                match ran.ended {
                    TransactionEnd::Done => done.settled += 1,
                    TransactionEnd::Pending => {}
                    TransactionEnd::Failed(failed) => {
                        panic!("{:?} failed: {}", ran.kind, failed.text)
                    }
                }
                if ran.ended == TransactionEnd::Pending {
                    assert_eq!(worker.settle(slot, true), Settlement::Durable);
                    done.settled += 1;
                }
            }
        }
        done
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        threads.into_iter().fold(TerminalCounts::default(), |mut all, thread| {
            let done = thread.join().unwrap();
            all.settled += done.settled;
            all.retries += done.retries;
            all
        })
    })
}
