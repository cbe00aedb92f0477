//! Which processors are on.

use std::fs;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The numbers of the processors that are on; without sysfs, as many as this process may use.
pub(crate) fn online() -> Vec<u32> {
    let listed = fs::read_to_string(ONLINE).map(|text| numbers(&text)).unwrap_or_default();
    if !listed.is_empty() {
        return listed;
    }
    let count = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    (0..count).collect()
}

/// Reads a list such as `0-3,8`; odd parts are skipped.
fn numbers(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges() {
        assert_eq!(numbers("0-1\n"), [0, 1]);
        assert_eq!(numbers("0,2-4,9"), [0, 2, 3, 4, 9]);
        assert_eq!(numbers(""), [] as [u32; 0]);
        assert_eq!(numbers("x,1-,3"), [3]);
        assert!(!online().is_empty());
    }
}
