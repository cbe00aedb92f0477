//! Whether there is room for the files.
//!
//! Invariant: asked before the first byte is written, so that a disk is not filled up in vain.

use std::path::Path;

use rustix::fs::statvfs;

use crate::FileSetError;

/// Refuses when `needed` more bytes do not fit into the file system of `directory`.
pub(super) fn check(directory: &Path, needed: u64) -> Result<(), FileSetError> {
    let stat = statvfs(directory).map_err(|errno| FileSetError::System {
        doing: "ask for the free space of",
        path: directory.to_owned(),
        source: errno.into(),
    })?;
    let available = stat.f_bavail.saturating_mul(stat.f_frsize);
    // Some file systems (network, FUSE) say nothing: all sizes 0.
    if stat.f_blocks > 0 && available < needed {
        let directory = directory.to_owned();
        return Err(FileSetError::NoSpace { directory, needed, available });
    }
    Ok(())
}
