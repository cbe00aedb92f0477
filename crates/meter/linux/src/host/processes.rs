//! Which processes do I/O: `/proc/PID/io` of every process that this user may read.
//!
//! Invariant: this process and its descendants are left out. The counters are charged when a page
//! is read or made dirty, on whichever device, and a parent takes over those of its children that
//! have ended: they name suspects, they prove nothing.

use std::collections::BTreeMap;

use iostrata_run::host::ProcessIo;

use crate::host::Root;

/// Most processes that are named.
const NAMED_MAX: usize = 8;

/// Bytes that each process caused so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProcessCounters {
    by_pid: BTreeMap<u32, ByteCounts>,
    /// Processes whose counters may not be read.
    pub(crate) hidden: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ByteCounts {
    read_bytes: u64,
    written_bytes: u64,
}

impl ProcessCounters {
    /// Reads the counters of all processes but this one.
    pub(crate) fn read(root: &Root, own_pid: u32) -> Self {
        let mut counters = Self::default();
        for pid in root.names("/proc").iter().filter_map(|name| name.parse::<u32>().ok()) {
            match root.text(format!("/proc/{pid}/io")).and_then(|text| parse_io(&text)) {
                Some(found) if pid != own_pid => {
                    counters.by_pid.insert(pid, found);
                }
                Some(_) => {}
                // A process that has ended meanwhile is not hidden.
                None if root.exists(format!("/proc/{pid}")) => counters.hidden += 1,
                None => {}
            }
        }
        counters
    }

    /// Processes that did I/O since an earlier reading, the largest first. One that was not there
    /// before counts from its start.
    pub(crate) fn since(
        &self,
        root: &Root,
        before: &Self,
        own_pid: u32,
        seconds: f64,
    ) -> Vec<ProcessIo> {
        let mut active: Vec<(u32, ByteCounts)> = self
            .by_pid
            .iter()
            .map(|(pid, after)| (*pid, passed(before.by_pid.get(pid).copied(), *after)))
            .filter(|(_, passed)| *passed != ByteCounts::default())
            .collect();
        active.sort_by_key(|(_, io)| {
            std::cmp::Reverse(io.read_bytes.saturating_add(io.written_bytes))
        });
        active
            .into_iter()
            .filter(|(pid, _)| !descends_from(root, *pid, own_pid))
            .take(NAMED_MAX)
            .map(|(pid, io)| ProcessIo {
                pid,
                comm: root.word(format!("/proc/{pid}/comm")).unwrap_or_else(|| "(ended)".into()),
                read_bytes_per_s: io.read_bytes as f64 / seconds,
                write_bytes_per_s: io.written_bytes as f64 / seconds,
            })
            .collect()
    }
}

/// A number that went down belongs to another process under the same id.
fn passed(before: Option<ByteCounts>, after: ByteCounts) -> ByteCounts {
    let before = before.unwrap_or_default();
    if after.read_bytes < before.read_bytes || after.written_bytes < before.written_bytes {
        return after;
    }
    ByteCounts {
        read_bytes: after.read_bytes - before.read_bytes,
        written_bytes: after.written_bytes - before.written_bytes,
    }
}

fn parse_io(text: &str) -> Option<ByteCounts> {
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    Some(ByteCounts { read_bytes: value("read_bytes:")?, written_bytes: value("write_bytes:")? })
}

/// Whether the process is a child of a child of ... `ancestor`. Bounded, should the tree be odd.
fn descends_from(root: &Root, pid: u32, ancestor: u32) -> bool {
    let mut at = pid;
    for _ in 0..64 {
        match parent_of(root, at) {
            Some(parent) if parent == ancestor => return true,
            Some(parent) if parent > 1 => at = parent,
            _ => return false,
        }
    }
    false
}

/// The name in `/proc/PID/stat` stands in parentheses and may itself contain some.
fn parent_of(root: &Root, pid: u32) -> Option<u32> {
    let text = root.text(format!("/proc/{pid}/stat"))?;
    let (_, after_name) = text.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn process(dir: &std::path::Path, pid: u32, parent: u32, name: &str, read: u64, written: u64) {
        let proc = dir.join(format!("proc/{pid}"));
        fs::create_dir_all(&proc).unwrap();
        fs::write(proc.join("comm"), format!("{name}\n")).unwrap();
        fs::write(proc.join("stat"), format!("{pid} ({name}) S {parent} 1 1 0")).unwrap();
        let io = format!("rchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\n");
        fs::write(proc.join("io"), io).unwrap();
    }

    #[test]
    fn the_busy_are_named_and_the_own_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        process(dir.path(), 10, 1, "own", 0, 0);
        process(dir.path(), 11, 10, "worker", 0, 0);
        process(dir.path(), 20, 1, "odd) (name", 100, 100);
        process(dir.path(), 21, 1, "idle", 7, 7);
        fs::create_dir_all(dir.path().join("proc/30")).unwrap();
        let before = ProcessCounters::read(&root, 10);
        assert_eq!(before.hidden, 1);
        process(dir.path(), 10, 1, "own", 5000, 0);
        process(dir.path(), 11, 10, "worker", 5000, 0);
        process(dir.path(), 20, 1, "odd) (name", 300, 1100);
        process(dir.path(), 22, 1, "new", 0, 50);
        let found = ProcessCounters::read(&root, 10).since(&root, &before, 10, 2.0);
        let names: Vec<&str> = found.iter().map(|process| process.comm.as_str()).collect();
        assert_eq!(names, ["odd) (name", "new"]);
        assert_eq!((found[0].read_bytes_per_s, found[0].write_bytes_per_s), (100.0, 500.0));
    }

    #[test]
    fn a_reused_id_counts_from_its_start() {
        let before = ByteCounts { read_bytes: 100, written_bytes: 5 };
        let after = ByteCounts { read_bytes: 10, written_bytes: 8 };
        assert_eq!(passed(Some(before), after), after);
    }
}
