//! Halves the limit of a server's volume while it runs.
//!
//! Invariant: only a group that the load's own process made is altered; it goes with the load.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const GROUPS: &str = "/sys/fs/cgroup";
/// Files of either generation that hold a limit of requests.
const CELLS: [&str; 3] =
    ["blkio.throttle.read_iops_device", "blkio.throttle.write_iops_device", "io.max"];
/// How deep a group may lie.
const DEPTH: usize = 6;

/// Halves the limits of requests of the groups that a process made.
///
/// # Errors
/// When it made none, or the kernel refuses.
pub fn halve(maker: u32) -> Result<()> {
    let mut groups = Vec::new();
    find(Path::new(GROUPS), &format!("iostrata-{maker}-"), DEPTH, &mut groups);
    let mut halved = 0;
    for cell in groups.iter().flat_map(|group| CELLS.map(|name| group.join(name))) {
        let Ok(text) = fs::read_to_string(&cell) else { continue };
        for line in text.lines() {
            let said = || format!("cannot limit {}", cell.display());
            fs::write(&cell, half(line)).with_context(said)?;
            halved += 1;
        }
    }
    if halved == 0 {
        bail!("the load has no group with a limit below {GROUPS}");
    }
    Ok(())
}

fn find(dir: &Path, begin: &str, depth: usize, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name().to_string_lossy().starts_with(begin) {
            found.push(entry.path());
        } else if depth > 0 {
            find(&entry.path(), begin, depth - 1, found);
        }
    }
}

/// A line of limits with half of each count of requests: `7:3 1500`, or `7:3 riops=1500 wbps=max`.
fn half(line: &str) -> String {
    let halved = |word: &str| word.parse::<u64>().map_or(word.to_owned(), |n| (n / 2).to_string());
    let word = |word: &str| match word.split_once('=') {
        Some((name, count)) if name.ends_with("iops") => format!("{name}={}", halved(count)),
        Some(_) => word.to_owned(),
        None => halved(word),
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_halved_and_bytes_are_not() {
        assert_eq!(half("254:0 1500"), "254:0 750");
        let line = "254:0 rbps=max wbps=4096 riops=1500 wiops=max";
        assert_eq!(half(line), "254:0 rbps=max wbps=4096 riops=750 wiops=max");
    }

    #[test]
    fn a_process_without_a_group_is_said() {
        assert!(halve(u32::MAX).is_err());
    }
}
