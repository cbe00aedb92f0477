//! Who keeps a journal: a process, told from a later one with the same number.
//!
//! Invariant: number, start time and boot together name one process for ever.

use std::fs;

use serde::{Deserialize, Serialize};

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub start_ticks: u64,
    /// Which boot of the machine.
    pub boot_id: String,
}

impl Owner {
    /// This process.
    pub fn this() -> Self {
        of_process(std::process::id())
    }

    /// Whether it still lives; a zombie does not.
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id() && start_ticks(self.pid) == Some(self.start_ticks)
    }
}

/// The process that has this number now; one that is gone never lived.
pub(crate) fn of_process(pid: u32) -> Owner {
    Owner { pid, start_ticks: start_ticks(pid).unwrap_or(0), boot_id: boot_id() }
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Start of a living process.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command in brackets may hold anything, brackets and blanks too.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let threads: u32 = fields.nth(16)?.parse().ok()?;
    // The others of a killed process may still be ending, with its files open.
    let has_ended = state == "X" || state == "Z" && threads <= 1;
    if has_ended {
        return None;
    }
    fields.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_another_of_its_number_does_not() {
        let this = Owner::this();
        assert!(this.start_ticks > 0 && !this.boot_id.is_empty());
        assert!(this.is_alive());
        assert!(!Owner { start_ticks: this.start_ticks + 1, ..this.clone() }.is_alive());
        assert!(!Owner { boot_id: "another".to_owned(), ..this }.is_alive());
    }

    #[test]
    fn a_process_that_has_ended_does_not_live_before_it_is_reaped_either() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = of_process(child.id());
        assert!(process.is_alive());
        child.kill().unwrap();
        let ended = std::time::Instant::now();
        while process.is_alive() && ended.elapsed() < std::time::Duration::from_secs(30) {
            std::thread::yield_now();
        }
        assert!(!process.is_alive(), "it was killed and not reaped");
        child.wait().unwrap();
    }
}
