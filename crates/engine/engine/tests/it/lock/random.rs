//! Random requests and releases against a plain model, which looks for cycles in the whole graph: a
//! waiter waits for the holder and for all before it in the queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use iostrata_engine::lock::*;
use proptest::prelude::*;

use crate::lock::support::*;

const OWNERS: u64 = 6;
const ROWS: u64 = 5;

#[derive(Clone, Debug)]
enum Step {
    Acquire(u64, u64),
    AcquireBriefly(u64, u64),
    Try(u64, u64),
    Release(u64, u64),
    ReleaseAll(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pair = (0..OWNERS, 0..ROWS);
    let step = prop_oneof![
        12 => pair.clone().prop_map(|(owner, row)| Step::Acquire(owner, row)),
        1 => pair.clone().prop_map(|(owner, row)| Step::AcquireBriefly(owner, row)),
        2 => pair.clone().prop_map(|(owner, row)| Step::Try(owner, row)),
        2 => pair.prop_map(|(owner, row)| Step::Release(owner, row)),
        2 => (0..OWNERS).prop_map(Step::ReleaseAll),
    ];
    prop::collection::vec(step, 0..80)
}

/// First the holder, then the waiters.
#[derive(Default)]
struct Plain {
    rows: BTreeMap<u64, VecDeque<u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Now,
    Already,
    Deadlock(u64),
    /// Behind this holder.
    Wait(u64),
}

impl Plain {
    fn holder(&self, row: u64) -> Option<u64> {
        self.rows.get(&row).and_then(VecDeque::front).copied()
    }

    fn waits(&self, owner: u64) -> bool {
        self.rows.values().any(|queue| queue.iter().skip(1).any(|one| *one == owner))
    }

    fn waiting(&self) -> usize {
        self.rows.values().map(|queue| queue.len().saturating_sub(1)).sum()
    }

    /// All that must go on before this one can.
    fn blockers(&self, owner: u64) -> BTreeSet<u64> {
        let (mut seen, mut open) = (BTreeSet::new(), vec![owner]);
        while let Some(one) = open.pop() {
            for queue in self.rows.values() {
                let place = queue.iter().position(|other| *other == one).unwrap_or(0);
                open.extend(queue.iter().take(place).filter(|other| seen.insert(**other)));
            }
        }
        seen
    }

    fn acquire(&mut self, owner: u64, row: u64) -> Expected {
        let queue = self.rows.entry(row).or_default();
        queue.push_back(owner);
        let holder = queue[0];
        if queue.len() == 1 {
            return Expected::Now;
        }
        if holder == owner {
            queue.pop_back();
            return Expected::Already;
        }
        if self.blockers(owner).contains(&owner) {
            self.give_up(row);
            return Expected::Deadlock(holder);
        }
        Expected::Wait(holder)
    }

    /// The last in the queue leaves it.
    fn give_up(&mut self, row: u64) {
        self.rows.get_mut(&row).unwrap().pop_back();
    }

    /// The holder afterwards, if there was a waiter.
    fn release(&mut self, owner: u64, row: u64) -> Option<u64> {
        if self.holder(row) != Some(owner) {
            return None;
        }
        let queue = self.rows.get_mut(&row).unwrap();
        queue.pop_front();
        queue.front().copied()
    }
}

struct Run {
    table: Arc<LockTable>,
    transactions: Vec<Transaction>,
    plain: Plain,
}

impl Run {
    fn step(&mut self, step: &Step) {
        let (Step::Acquire(owner, _)
        | Step::AcquireBriefly(owner, _)
        | Step::Try(owner, _)
        | Step::Release(owner, _)
        | Step::ReleaseAll(owner)) = *step;
        if self.plain.waits(owner) {
            return;
        }
        match *step {
            Step::Acquire(_, at) => self.acquire(owner, at, FOREVER),
            Step::AcquireBriefly(_, at) => self.acquire(owner, at, Duration::from_millis(1)),
            Step::Try(_, at) => self.acquire(owner, at, Duration::ZERO),
            Step::Release(_, at) => self.release(owner, at),
            Step::ReleaseAll(_) => (0..ROWS).for_each(|at| self.release(owner, at)),
        }
    }

    fn acquire(&mut self, owner: u64, at: u64, patience: Duration) {
        let asked = &self.transactions[owner as usize];
        asked.ask(row(at), patience);
        let mut expected = self.plain.acquire(owner, at);
        if let (Expected::Deadlock(holder), Duration::ZERO) = (expected, patience) {
            // An owner that does not wait closes no cycle.
            expected = Expected::Wait(holder);
        } else if let (Expected::Wait(_), true) = (expected, patience < FOREVER) {
            self.plain.give_up(at);
        }
        let got = match expected {
            Expected::Wait(_) if patience == FOREVER => {
                return wait_until_waiting(&self.table, self.plain.waiting() as u64);
            }
            _ => asked.answer(),
        };
        let got = match got {
            Ok(Grant::Now) => Expected::Now,
            Ok(Grant::Already) => Expected::Already,
            Err(LockFailure::Deadlock { holder }) => Expected::Deadlock(holder),
            Err(LockFailure::Timeout { holder, .. }) => Expected::Wait(holder),
        };
        assert_eq!(got, expected);
    }

    fn release(&mut self, owner: u64, at: u64) {
        self.transactions[owner as usize].release(&[row(at)]);
        if let Some(heir) = self.plain.release(owner, at) {
            assert_eq!(self.transactions[heir as usize].answer(), Ok(Grant::Now));
        }
    }

    fn compare(&self) {
        for at in 0..ROWS {
            let holder = self.plain.holder(at);
            assert_eq!(holder_of(&self.table, row(at)), holder);
            for one in &self.transactions {
                let expected = holder.is_some_and(|holder| holder != one.owner.number());
                assert_eq!(self.table.is_held_by_another(Some(&one.owner), row(at)), expected);
            }
            assert_eq!(self.table.is_held_by_another(None, row(at)), holder.is_some());
        }
        let held = (0..ROWS).filter(|at| self.plain.holder(*at).is_some()).count();
        let stats = self.table.stats();
        assert_eq!((stats.held, stats.waiting), (held as u64, self.plain.waiting() as u64));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_table_does_what_the_plain_model_does(steps in steps()) {
        let (table, transactions) = transactions(OWNERS);
        let mut run = Run { table, transactions, plain: Plain::default() };
        for step in &steps {
            run.step(step);
            run.compare();
        }
        // No cycle is left, so some owner can always go on.
        for _ in 0..OWNERS {
            (0..OWNERS).for_each(|owner| run.step(&Step::ReleaseAll(owner)));
        }
        run.compare();
        assert_empty(&run.table);
    }
}
