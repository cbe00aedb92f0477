//! Files of the system and backing files, and which ranges of one are written, by its extents.
//!
//! Invariant: a cell is written by one call, never created or truncated; a backing file is made by
//! [`FileSet`], which makes only what is not there. Looking at extents alters nothing.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::UNIX_EPOCH;

use iostrata_io::{
    FileSet, FileSetError, FileSetPlan, FileSpec, Fill, OpenFiles, OpenMode, Place, Progress,
};
use rustix::fs::{major, minor};

use crate::change::Prewrite;
use crate::error::{ChangeError, system};
use crate::seen::{Seen, SeenKind};

/// Sizes of backing files are a multiple of this, so that direct I/O fits.
const BLOCK_BYTES: u32 = 4096;

pub(super) fn write_cell(cell: &Path, text: &str) -> io::Result<()> {
    let mut file = File::options().write(true).open(cell)?;
    file.write_all(text.as_bytes())
}

pub(super) fn look(path: &Path) -> io::Result<Option<Seen>> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) => {
            return match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => Ok(None),
                _ => Err(error),
            };
        }
    };
    let kind = match meta.file_type() {
        kind if kind.is_file() => SeenKind::File,
        kind if kind.is_dir() => SeenKind::Directory,
        kind if kind.is_block_device() => SeenKind::BlockDevice,
        _ => SeenKind::Other,
    };
    let born = meta.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let is_mine = meta.uid() == rustix::process::geteuid().as_raw();
    Ok(Some(Seen {
        kind,
        device: (major(meta.dev()), minor(meta.dev())),
        inode: meta.ino(),
        number: (major(meta.rdev()), minor(meta.rdev())),
        bytes: meta.len(),
        is_private: is_mine && meta.permissions().mode() & 0o077 == 0,
        born_us: born.map(|born| born.as_micros() as u64),
    }))
}

/// Links followed as far as the path exists.
pub(super) fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for above in path.ancestors() {
        if let Ok(real) = fs::canonicalize(above) {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path
}

pub(super) fn make(
    path: &Path,
    bytes: u64,
    prewrite: Prewrite,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Progress),
) -> Result<(), ChangeError> {
    let fill = match prewrite {
        Prewrite::All => Fill::Written,
        Prewrite::None => Fill::Fallocated,
    };
    // Checked before, and checked again when it is made: this must not take over a kept file.
    let place = match Place::find(path)? {
        place @ Place::NewFile(_) => place,
        _ => return Err(FileSetError::NotOurs { path: path.to_owned() }.into()),
    };
    // Kept, because the journal and not the set decides when it goes.
    let plan = FileSetPlan { fill, keep: true, ..FileSetPlan::new(place, bytes, BLOCK_BYTES) };
    let files = FileSet::prepare(&plan, stop, tell)?;
    if prewrite == Prewrite::None {
        return Ok(());
    }
    let look = |source| system("look at the extents of", path, source);
    let opened = files.open(OpenMode::default()).map_err(|e| look(io::Error::other(e)))?;
    let found = opened.extents().map_err(|e| look(io::Error::other(e)))?;
    match found.hole_bytes + found.unwritten_bytes {
        0 => Ok(()),
        missing => Err(ChangeError::unavailable(
            format!("a file in {} that is written in place", path.display()),
            format!("{missing} bytes of it are not, though they were written and flushed"),
            "choose a directory on ext4 or XFS",
        )),
    }
}

/// Removes a backing file and the mark beside it, where the file system has no room for marks.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mark = path.with_file_name(format!(".{name}.iostrata"));
    let _mostly_absent = fs::remove_file(mark);
    fs::remove_file(path)?;
    File::open(path.parent().unwrap_or(Path::new("/")))?.sync_all()
}

/// Removes a directory with all that is in it.
pub(super) fn remove_tree(dir: &Path) -> io::Result<()> {
    fs::remove_dir_all(dir)?;
    File::open(dir.parent().unwrap_or(Path::new("/")))?.sync_all()
}

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
