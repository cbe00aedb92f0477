//! Counting samples by stack and by process while they arrive.
//!
//! Invariants: every sample is counted exactly once, so the counts add up to `total`. Addresses
//! stay addresses; naming them can wait until nothing is measured. `/proc` is asked once per
//! process that appears, so a process that was gone by then stays unnamed and is of no program of
//! ours.

use std::collections::HashMap;
use std::fs;

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

/// Longest line of descent that is followed.
const GENERATIONS_MAX: usize = 16;

/// What is known about the processes seen.
#[derive(Debug)]
pub(crate) struct Processes {
    own: u32,
    family: HashMap<u32, bool>,
    programs: HashMap<u32, String>,
}

impl Processes {
    /// Nothing is known yet but this process.
    pub(crate) fn new() -> Self {
        Self { own: std::process::id(), family: HashMap::new(), programs: HashMap::new() }
    }

    /// Whether a process is this one or descends from it.
    pub(crate) fn is_own(&mut self, pid: u32) -> bool {
        let own = self.own;
        pid == own || *self.family.entry(pid).or_insert_with(|| descends(pid, own))
    }

    /// The name of a process's program; `?` when it has ended too soon.
    pub(crate) fn program(&mut self, pid: u32) -> &str {
        self.programs.entry(pid).or_insert_with(|| {
            fs::read_to_string(format!("/proc/{pid}/comm"))
                .map_or_else(|_| "?".to_owned(), |text| text.trim_end().to_owned())
        })
    }
}

fn descends(pid: u32, from: u32) -> bool {
    let mut current = pid;
    for _ in 0..GENERATIONS_MAX {
        match parent(current) {
            Some(above) if above == from => return true,
            Some(above @ 2..) => current = above,
            _ => return false,
        }
    }
    false
}

/// `/proc/PID/stat` is `pid (name) state parent ...`; the name may hold anything.
fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = text.rsplit_once(')')?;
    after.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_own_and_its_parent_is_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut processes = Processes::new();
        assert!(processes.is_own(std::process::id()));
        assert!(processes.is_own(child.id()));
        assert!(!processes.is_own(1));
        assert!(!processes.is_own(0));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(processes.program(0), "?");
        assert_ne!(processes.program(std::process::id()), "?");
    }
}
