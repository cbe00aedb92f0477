//! Transactions, each with a thread of its own that obeys the test.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use iostrata_engine::lock::*;

pub const FOREVER: Duration = Duration::MAX;
/// Longer than anything here takes; a test that hangs fails after it.
pub const HANGS: Duration = Duration::from_secs(60);

pub type Got = Result<Grant, LockFailure>;

/// The lock of row n.
pub fn row(number: u64) -> LockId {
    LockId::of(1, &number.to_be_bytes())
}

/// Until something holds.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < HANGS, "never: {what}");
        thread::yield_now();
    }
}

pub fn wait_until_waiting(table: &LockTable, count: u64) {
    wait_until("so many wait", || table.stats().waiting == count);
}

/// A transaction.
pub struct Transaction {
    pub owner: Arc<LockOwner>,
    table: Arc<LockTable>,
    orders: Sender<(LockId, Duration)>,
    answers: Receiver<Got>,
}

impl Transaction {
    pub fn new(table: &Arc<LockTable>, number: u64) -> Self {
        let (orders, ordered) = channel();
        let (answer, answers) = channel();
        let owner = Arc::new(LockOwner::new(number));
        let one = Self { owner: Arc::clone(&owner), table: Arc::clone(table), orders, answers };
        let table = Arc::clone(table);
        thread::spawn(move || {
            for (id, patience) in ordered {
                if answer.send(table.acquire(&owner, id, patience)).is_err() {
                    return;
                }
            }
        });
        one
    }

    /// Requests a lock without waiting for the answer.
    pub fn ask(&self, id: LockId, patience: Duration) {
        self.orders.send((id, patience)).unwrap();
    }

    /// Requests a lock that is held, and is in the queue afterwards as one of so many waiters.
    pub fn ask_as_waiter(&self, id: LockId, count: u64) {
        self.ask(id, FOREVER);
        wait_until_waiting(&self.table, count);
    }

    pub fn answer(&self) -> Got {
        self.answers.recv_timeout(HANGS).expect("an answer")
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self.answers.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout))
    }

    pub fn acquire(&self, id: LockId) -> Got {
        self.ask(id, FOREVER);
        self.answer()
    }

    pub fn release(&self, ids: &[LockId]) {
        self.table.release(&self.owner, ids);
    }
}

/// A table and so many transactions, numbered from 0.
pub fn transactions(count: u64) -> (Arc<LockTable>, Vec<Transaction>) {
    let table = Arc::new(LockTable::new());
    let all = (0..count).map(|number| Transaction::new(&table, number)).collect();
    (table, all)
}

/// Nothing is left behind.
pub fn assert_empty(table: &LockTable) {
    let stats = table.stats();
    assert_eq!((stats.held, stats.waiting), (0, 0));
}

/// The number below 64 of the owner that holds a lock.
pub fn holder_of(table: &LockTable, id: LockId) -> Option<u64> {
    let is_its = |number: &u64| !table.is_held_by_another(Some(&LockOwner::new(*number)), id);
    table.is_held_by_another(None, id).then(|| (0..64).find(is_its).unwrap())
}
