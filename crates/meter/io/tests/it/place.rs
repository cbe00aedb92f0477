//! Where the tests keep their files.

use std::path::Path;

use iostrata_io::{FileSet, FileSetError, FileSetPlan, Place};
use std::sync::atomic::AtomicBool;

/// A directory on the disk of the build, not in memory.
pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A plan for `bytes` bytes at `path`, in blocks of 4096.
pub fn plan(path: &Path, bytes: u64) -> FileSetPlan {
    FileSetPlan::new(Place::find(path).unwrap(), bytes, 4096)
}

/// Prepares without progress or stop.
pub fn prepare(plan: &FileSetPlan) -> Result<FileSet, FileSetError> {
    FileSet::prepare(plan, &AtomicBool::new(false), &mut |_| {})
}
