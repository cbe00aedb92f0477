//! Who uses a device while nothing is being measured.

use std::time::Duration;

use iostrata_run::host::{Iostat, PathFacts, QuietCheck};

use crate::host::foreign::{FLOOR_BYTES_PER_S, FLOOR_REQUESTS_PER_S};
use crate::host::processes::ProcessCounters;
use crate::host::snapshot::Snapshot;
use crate::host::{Root, Scope};

/// Watches the disks below a path for `duration` and reports the busiest one. It is quiet when it
/// did at most 1 MiB/s and 50 requests/s. Absent when the path has no device.
///
/// The calling thread sleeps meanwhile; this process and its children are not named.
pub fn quiet_check(root: &Root, facts: &PathFacts, duration: Duration) -> Option<QuietCheck> {
    let scope = Scope::of(root, facts);
    let own_pid = std::process::id();
    let processes_before = ProcessCounters::read(root, own_pid);
    let before = Snapshot::take(root, &scope);
    std::thread::sleep(duration);
    let after = Snapshot::take(root, &scope);
    let processes = ProcessCounters::read(root, own_pid);
    let seconds = after.seconds_since(&before);
    let column = |name: &String| {
        let io = after.device_since(&before, name).map(|delta| Iostat::of(&delta));
        (name.clone(), io)
    };
    let (device, io) = scope
        .bottoms
        .iter()
        .map(column)
        .max_by(|(_, a), (_, b)| traffic(a.as_ref()).total_cmp(&traffic(b.as_ref())))?;
    Some(QuietCheck {
        device,
        seconds,
        quiet: io.as_ref().is_none_or(is_quiet),
        iostat: io,
        processes: processes.since(root, &processes_before, own_pid, seconds),
        processes_hidden: processes.hidden,
    })
}

/// How busy, relative to what passes as quiet; 1 is the limit.
fn traffic(io: Option<&Iostat>) -> f64 {
    let Some(io) = io else { return -1.0 };
    let bytes = (io.read_kib_per_s + io.write_kib_per_s) * 1024.0;
    let requests = io.reads_per_s + io.writes_per_s;
    f64::max(bytes / FLOOR_BYTES_PER_S, requests / FLOOR_REQUESTS_PER_S)
}

fn is_quiet(io: &Iostat) -> bool {
    traffic(Some(io)) <= 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_or_requests_break_the_quiet() {
        let io = |requests, kib| Iostat {
            reads_per_s: requests,
            write_kib_per_s: kib,
            ..Iostat::default()
        };
        assert!(is_quiet(&io(40.0, 900.0)));
        assert!(!is_quiet(&io(60.0, 0.0)));
        assert!(!is_quiet(&io(1.0, 2000.0)));
    }
}
