//! Whose sample it is: names of programs, and which processes are this one's.
//!
//! Invariant: `/proc` is asked once per process that appears, so a process that was gone by then
//! stays unnamed and is nobody's.

use std::collections::HashMap;
use std::fs;

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
