//! What is served: which disk, how large, and where its contents live.
//!
//! Invariant: options that pass [`ServeOptions::check`] describe a disk that can be served as far
//! as numbers tell; what the machine has to say comes when it is served.

use std::path::{Path, PathBuf};

use crate::model::MeasuredDisk;
use iostrata_plan::disk::DiskSpec;

use crate::emudisk::error::ServeError;
use crate::emudisk::files::DISK;

/// Smallest disk.
pub const SIZE_BYTES_MIN: u64 = 1 << 20;
/// The size of a disk is a multiple of this.
pub const SIZE_BYTES_STEP: u64 = 4096;

/// Where the contents of a disk live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// In the memory of the server; pages that hold only zeros take none.
    Memory,
    /// In a sparse file without a name, so that nothing is left of a server that was killed.
    File {
        /// A directory of a file system that has room.
        dir: PathBuf,
    },
}

/// One disk to serve.
#[derive(Clone, Debug, PartialEq)]
pub struct ServeOptions {
    /// The model.
    pub disk: DiskSpec,
    /// Its size: at least [`SIZE_BYTES_MIN`], a multiple of [`SIZE_BYTES_STEP`].
    pub size_bytes: u64,
    /// Where its contents live.
    pub store: Store,
    /// Most bytes that the contents may take; a write beyond fails with ENOSPC. Absent: the size.
    pub store_limit_bytes: Option<u64>,
    /// Seed of everything random: rotation, injected errors, what a power cut leaves.
    pub seed: u64,
    /// What was measured, for a disk of a probe.
    pub measured: Option<MeasuredDisk>,
}

impl ServeOptions {
    /// Whether the numbers describe a disk.
    ///
    /// # Errors
    /// The size is too small or not a multiple of a page.
    pub fn check(&self) -> Result<(), ServeError> {
        let bytes = self.size_bytes;
        if bytes < SIZE_BYTES_MIN {
            return Err(ServeError::Small { bytes });
        }
        if !bytes.is_multiple_of(SIZE_BYTES_STEP) {
            return Err(ServeError::Uneven { bytes });
        }
        Ok(())
    }
}

/// The file with the contents of the disk that is served at `at`.
pub fn disk_file(at: &Path) -> PathBuf {
    at.join(DISK)
}
