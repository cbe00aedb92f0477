//! From switches of tasks to waits.
//!
//! Purpose: pair the moment a thread leaves its processor with the moment it runs again, wherever
//! that is. Invariants: switches of all processors are taken in the order of time; a wait counts
//! only when its beginning is known, up to its end or the window's; where records were lost every
//! open wait is dropped, because its true end may be among them. It resolves no symbols.

use std::collections::{HashMap, HashSet};

use crate::profile::record::Stamp;

/// Something that happened to a thread of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// About to leave its processor, with the stack of this number.
    Stack { tid: u32, stack: u32 },
    /// Left, although it could have gone on.
    Preempted { tid: u32 },
    /// Runs again.
    Enter { tid: u32 },
    /// Records are missing here.
    Gap,
}

/// A way of waiting: the stack, and whether the thread wanted to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ThreadWait {
    pub(crate) stack: u32,
    pub(crate) preempted: bool,
}

/// How often and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwitchTally {
    pub(crate) count: u64,
    pub(crate) total_ns: u64,
    pub(crate) max_ns: u64,
    /// Of these, waits that the window's end cut.
    pub(crate) unfinished: u64,
}

/// The waits of a window.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    pending: Vec<(u64, Step)>,
    open: HashMap<u32, (u64, ThreadWait)>,
    numbers: HashMap<Box<[u64]>, u32>,
    chain: Vec<u64>,
    /// By way of waiting.
    pub(crate) waits: HashMap<ThreadWait, SwitchTally>,
    /// Threads that waited.
    pub(crate) threads: HashSet<u32>,
    /// Records that the kernel could not store.
    pub(crate) lost: u64,
}

impl Switches {
    /// Notes that a thread is about to leave its processor.
    pub(crate) fn leaving(&mut self, stamp: Stamp, addresses: impl Iterator<Item = u64>) {
        self.chain.clear();
        self.chain.extend(addresses);
        let next = self.numbers.len() as u32;
        let stack = match self.numbers.get(self.chain.as_slice()) {
            Some(&number) => number,
            None => *self.numbers.entry(self.chain.as_slice().into()).or_insert(next),
        };
        self.step(stamp.at_ns, Step::Stack { tid: stamp.tid, stack });
    }

    /// Notes something that happened at this time.
    pub(crate) fn step(&mut self, at_ns: u64, step: Step) {
        self.pending.push((at_ns, step));
    }

    /// Notes that records are missing between two moments.
    pub(crate) fn gap(&mut self, from_ns: u64, until_ns: u64, records: u64) {
        self.lost += records;
        self.step(from_ns, Step::Gap);
        self.step(until_ns, Step::Gap);
    }

    /// Pairs what happened before a moment; nothing older may be noted afterwards.
    pub(crate) fn settle(&mut self, before_ns: u64) {
        // Stable, so that the events of one processor keep their order.
        self.pending.sort_by_key(|(at_ns, _)| *at_ns);
        let ready = self.pending.partition_point(|(at_ns, _)| *at_ns < before_ns);
        let pending = std::mem::take(&mut self.pending);
        for &(at_ns, step) in &pending[..ready] {
            self.take(at_ns, step);
        }
        self.pending = pending[ready..].to_vec();
    }

    fn take(&mut self, at_ns: u64, step: Step) {
        match step {
            Step::Stack { tid, stack } => {
                self.threads.insert(tid);
                self.open.insert(tid, (at_ns, ThreadWait { stack, preempted: false }));
            }
            Step::Preempted { tid } => {
                if let Some((_, wait)) = self.open.get_mut(&tid) {
                    wait.preempted = true;
                }
            }
            Step::Enter { tid } => {
                if let Some((since_ns, wait)) = self.open.remove(&tid) {
                    self.count(wait, at_ns.saturating_sub(since_ns), false);
                }
            }
            Step::Gap => self.open.clear(),
        }
    }

    /// Ends the window: everything noted is paired, and waits still open count up to here.
    pub(crate) fn finish(&mut self, end_ns: u64) {
        self.settle(u64::MAX);
        for (_, (since_ns, wait)) in std::mem::take(&mut self.open) {
            self.count(wait, end_ns.saturating_sub(since_ns), true);
        }
    }

    fn count(&mut self, wait: ThreadWait, ns: u64, unfinished: bool) {
        let tally = self.waits.entry(wait).or_default();
        tally.count += 1;
        tally.total_ns += ns;
        tally.max_ns = tally.max_ns.max(ns);
        tally.unfinished += u64::from(unfinished);
    }

    /// The stacks by number, innermost address first.
    pub(crate) fn stacks(&self) -> Vec<&[u64]> {
        let mut stacks: Vec<&[u64]> = vec![&[]; self.numbers.len()];
        for (chain, &number) in &self.numbers {
            stacks[number as usize] = chain;
        }
        stacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(tid: u32, at_ns: u64) -> Stamp {
        Stamp { pid: 1, tid, at_ns }
    }

    fn tally(switches: &Switches, stack: u32, preempted: bool) -> SwitchTally {
        switches.waits.get(&ThreadWait { stack, preempted }).copied().unwrap_or_default()
    }

    #[test]
    fn a_wait_ends_on_another_processor_whose_buffer_is_read_first() {
        let mut switches = Switches::default();
        switches.step(500, Step::Enter { tid: 7 });
        switches.leaving(stamp(7, 100), [1, 2].into_iter());
        switches.settle(501);
        let expected = SwitchTally { count: 1, total_ns: 400, max_ns: 400, unfinished: 0 };
        assert_eq!(tally(&switches, 0, false), expected);
        assert_eq!(switches.stacks(), [[1, 2]]);
    }

    #[test]
    fn what_is_too_young_waits_for_the_next_reading() {
        let mut switches = Switches::default();
        switches.leaving(stamp(7, 100), [1].into_iter());
        switches.step(900, Step::Enter { tid: 7 });
        switches.settle(800);
        assert!(switches.waits.is_empty());
        switches.leaving(stamp(7, 850), [2].into_iter());
        switches.finish(1_000);
        // The later departure ends what was known of the earlier one.
        assert_eq!(tally(&switches, 1, false).total_ns, 50);
        assert_eq!(tally(&switches, 0, false), SwitchTally::default());
    }

    #[test]
    fn a_gap_drops_open_waits_only() {
        let mut switches = Switches::default();
        switches.leaving(stamp(1, 10), [1].into_iter());
        switches.step(20, Step::Enter { tid: 1 });
        switches.leaving(stamp(2, 30), [1].into_iter());
        switches.gap(40, 50, 9);
        switches.step(60, Step::Enter { tid: 2 });
        switches.leaving(stamp(1, 70), [1].into_iter());
        switches.step(75, Step::Enter { tid: 1 });
        switches.finish(100);
        let expected = SwitchTally { count: 2, total_ns: 15, max_ns: 10, unfinished: 0 };
        assert_eq!(tally(&switches, 0, false), expected);
        assert_eq!((switches.lost, switches.threads.len()), (9, 2));
    }

    #[test]
    fn preempted_threads_and_open_waits_are_told_apart() {
        let mut switches = Switches::default();
        switches.leaving(stamp(1, 10), [1].into_iter());
        switches.step(10, Step::Preempted { tid: 1 });
        switches.step(30, Step::Enter { tid: 1 });
        switches.leaving(stamp(1, 40), [1].into_iter());
        switches.finish(100);
        let cut = SwitchTally { count: 1, total_ns: 60, max_ns: 60, unfinished: 1 };
        assert_eq!(tally(&switches, 0, false), cut);
        assert_eq!(tally(&switches, 0, true).total_ns, 20);
    }

    #[test]
    fn a_thread_that_was_asleep_before_the_window_is_no_wait() {
        let mut switches = Switches::default();
        switches.step(30, Step::Enter { tid: 1 });
        switches.finish(100);
        assert!(switches.waits.is_empty() && switches.threads.is_empty());
    }
}
