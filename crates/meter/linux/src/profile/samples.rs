//! Counting samples by stack while they arrive.
//!
//! Invariant: every sample is counted exactly once, so the counts add up to `total`. Addresses stay
//! addresses; naming them can wait until nothing is measured.

use std::collections::HashMap;

use crate::profile::processes::Processes;
use crate::profile::record::{Chain, Stamp};

/// What was sampled in a window.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// Kernel stacks, innermost address first.
    pub(crate) kernel: HashMap<Box<[u64]>, u64>,
    /// Samples in this program and its children, by name.
    pub(crate) own: HashMap<String, u64>,
    /// Samples in other programs, by name.
    pub(crate) others: HashMap<String, u64>,
    /// All.
    pub(crate) total: u64,
    /// Of these, how many hit the idle task.
    pub(crate) on_idle_task: u64,
    /// Could not be stored by the kernel.
    pub(crate) lost: u64,
    /// Room for one chain, kept between samples.
    pub(crate) chain: Vec<u64>,
}

impl Samples {
    /// Counts one.
    pub(crate) fn add(
        &mut self,
        stamp: Stamp,
        in_program: bool,
        chain: &Chain<'_>,
        processes: &mut Processes,
    ) {
        self.total += 1;
        self.on_idle_task += u64::from(stamp.pid == 0);
        if in_program {
            let is_own = processes.is_own(stamp.pid);
            let program = processes.program(stamp.pid);
            let programs = if is_own { &mut self.own } else { &mut self.others };
            match programs.get_mut(program) {
                Some(count) => *count += 1,
                None => drop(programs.insert(program.to_owned(), 1)),
            }
            return;
        }
        self.chain.clear();
        self.chain.extend(chain.addresses());
        match self.kernel.get_mut(self.chain.as_slice()) {
            Some(count) => *count += 1,
            None => drop(self.kernel.insert(self.chain.as_slice().into(), 1)),
        }
    }
}
