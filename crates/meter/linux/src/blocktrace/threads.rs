//! The threads of a process, by which its events are known.

use std::collections::HashSet;
use std::path::Path;

/// Most ranges in one filter: the kernel tries them one after the other, and takes 4 KiB of text.
const RANGES_MAX: usize = 32;

/// Adds the threads that these processes have now. A process that is gone adds none.
pub(crate) fn add_threads(threads: &mut HashSet<u32>, processes: &[u32]) {
    for process in processes {
        let tasks = Path::new("/proc").join(process.to_string()).join("task");
        let Ok(entries) = std::fs::read_dir(tasks) else { continue };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        threads.extend(names.filter_map(|name| name.parse::<u32>().ok()));
    }
}

/// A filter expression that events of these threads pass, and of few others: threads started
/// together have numbers side by side, so that a few ranges hold them all. `None` without threads.
pub(crate) fn thread_filter(threads: &HashSet<u32>) -> Option<String> {
    let mut numbers: Vec<u32> = threads.iter().copied().collect();
    numbers.sort_unstable();
    let mut gap_max = 8;
    let mut ranges = ranges(&numbers, gap_max);
    while ranges.len() > RANGES_MAX {
        gap_max = gap_max.saturating_mul(2);
        ranges = self::ranges(&numbers, gap_max);
    }
    let tests: Vec<String> = ranges
        .iter()
        .map(|(first, last)| format!("(common_pid >= {first} && common_pid <= {last})"))
        .collect();
    (!tests.is_empty()).then(|| tests.join(" || "))
}

/// Ranges that hold every number, with no gap wider than `gap_max` within one.
fn ranges(sorted: &[u32], gap_max: u32) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in sorted {
        match ranges.last_mut() {
            Some((_, last)) if number - *last <= gap_max => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_side_by_side_share_a_range() {
        assert_eq!(thread_filter(&HashSet::new()), None);
        let filter = thread_filter(&HashSet::from([10, 500, 501, 507])).unwrap();
        let wanted = "(common_pid >= 10 && common_pid <= 10) || \
                      (common_pid >= 500 && common_pid <= 507)";
        assert_eq!(filter, wanted);
    }

    #[test]
    fn scattered_threads_still_make_a_short_filter() {
        let scattered: Vec<u32> = (0..2000).map(|n| n * 1000).collect();
        let filter = thread_filter(&scattered.iter().copied().collect()).unwrap();
        assert!(filter.matches("||").count() < RANGES_MAX && filter.len() < 4096);
        let near = ranges(&scattered, 1000);
        assert_eq!(near, [(0, 1_999_000)]);
    }

    #[test]
    fn a_running_thread_is_found_and_a_wrong_process_adds_none() {
        let mut threads = HashSet::new();
        add_threads(&mut threads, &[std::process::id(), u32::MAX]);
        let own = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(threads.contains(&own));
    }
}
