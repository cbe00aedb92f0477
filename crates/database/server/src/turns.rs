//! Which of several hosts a new connection goes to.
//!
//! Purpose: sessions are spread over the hosts in turn; one that did not answer is tried last
//! until its time has passed. Pure: the clock is the caller's.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How long a host that did not answer is tried last.
const REST_MS: u64 = 5_000;

/// The turns of hosts, which are numbers here.
#[derive(Debug)]
pub(crate) struct Turns {
    next: AtomicUsize,
    rests_until_ms: Vec<AtomicU64>,
}

impl Turns {
    pub(crate) fn new(hosts: usize) -> Self {
        let rests_until_ms = (0..hosts).map(|_| AtomicU64::new(0)).collect();
        Self { next: AtomicUsize::new(0), rests_until_ms }
    }

    /// All hosts in the order in which the next connection tries them.
    pub(crate) fn order(&self, now_ms: u64) -> Vec<usize> {
        let hosts = self.rests_until_ms.len();
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        let mut order: Vec<usize> = (0..hosts).map(|at| (start + at) % hosts).collect();
        order.sort_by_key(|host| self.rests_until_ms[*host].load(Ordering::Relaxed) > now_ms);
        order
    }

    /// A host did not answer.
    pub(crate) fn failed(&self, host: usize, now_ms: u64) {
        self.rests_until_ms[host].store(now_ms + REST_MS, Ordering::Relaxed);
    }

    /// A host answered.
    pub(crate) fn answered(&self, host: usize) {
        self.rests_until_ms[host].store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_take_turns_and_the_dead_come_last_for_a_while() {
        let turns = Turns::new(3);
        let firsts: Vec<usize> = (0..4).map(|_| turns.order(0)[0]).collect();
        assert_eq!(firsts, [0, 1, 2, 0]);
        turns.failed(1, 100);
        assert_eq!(turns.order(200), [2, 0, 1], "begins at 1, which rests");
        assert_eq!(turns.order(200), [2, 0, 1]);
        turns.order(200);
        assert_eq!(turns.order(100 + REST_MS), [1, 2, 0], "has rested");
        turns.failed(2, 9_000);
        turns.answered(2);
        assert_eq!(turns.order(9_001), [2, 0, 1]);
    }
}
