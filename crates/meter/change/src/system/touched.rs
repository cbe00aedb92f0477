//! Whether ranges of a backing file are written, told by its extents.
//!
//! Invariant: it only looks.

use std::io;
use std::path::Path;

use iostrata_io::{FileSpec, OpenFiles, OpenMode};

/// Bytes of the ranges (offset and length, in bytes) of a file that were never written: holes and
/// unwritten extents. A load through a loop device that touched only these ranges is sound at 0.
/// Ranges that overlap count once.
///
/// # Errors
/// As the kernel says.
pub fn touched_unwritten_bytes(backing: &Path, ranges: &[(u64, u64)]) -> io::Result<u64> {
    let mut total = 0;
    for (start, end) in joined(ranges) {
        total += unwritten_before(backing, end)? - unwritten_before(backing, start)?;
    }
    Ok(total)
}

/// Unwritten bytes of the first `bytes` bytes.
fn unwritten_before(backing: &Path, bytes: u64) -> io::Result<u64> {
    let spec = FileSpec { path: backing.to_owned(), bytes };
    let files = OpenFiles::open(&[spec], OpenMode::default()).map_err(io::Error::other)?;
    let found = files.extents().map_err(io::Error::other)?;
    Ok(found.hole_bytes + found.unwritten_bytes)
}

/// The ranges as starts and ends, sorted, none touching another.
fn joined(ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut sorted: Vec<(u64, u64)> = ranges
        .iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|&(start, bytes)| (start, start.saturating_add(bytes)))
        .collect();
    sorted.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in sorted {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn only_touched_and_unwritten_bytes_count() {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = dir.path().join("file");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&[7; 65536], 65536).unwrap();
        file.sync_all().unwrap();
        let count = |ranges: &[(u64, u64)]| touched_unwritten_bytes(&path, ranges).unwrap();
        assert_eq!(count(&[]), 0);
        assert_eq!(count(&[(65536, 65536)]), 0);
        assert_eq!(count(&[(65536, 4096), (131_072, 8192), (131_072, 4096)]), 8192);
        assert_eq!(count(&[(0, 1 << 20)]), (1 << 20) - 65536);
    }

    #[test]
    fn ranges_are_joined() {
        assert_eq!(joined(&[(8, 4), (0, 4), (4, 4), (20, 0)]), [(0, 12)]);
        assert_eq!(joined(&[(0, 10), (2, 3), (11, 1)]), [(0, 10), (11, 12)]);
    }
}
