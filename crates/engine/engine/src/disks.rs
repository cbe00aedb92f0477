//! The disks that an engine stands on.

use std::path::Path;
use std::sync::Arc;

use iostrata_innodb::{FilePlan, IoMethod, Settings};
use iostrata_io::disk::{BatchKind, Disk, RealDisk, RealOptions, WriteThrough};

use crate::error::EngineError;

/// The disks of an engine: clones of one, or two.
#[derive(Clone)]
pub struct Disks {
    /// Data, doublewrite and settings.
    pub data: Arc<dyn Disk>,
    /// The redo log.
    pub redo: Arc<dyn Disk>,
}

impl Disks {
    /// Everything on one disk.
    pub fn one(disk: impl Disk + Clone + 'static) -> Self {
        Self { data: Arc::new(disk.clone()), redo: Arc::new(disk) }
    }
}

/// The disk of a directory, for files of one plan.
///
/// # Errors
/// A directory that is none, or cannot be used so.
pub(crate) fn real_disk(
    directory: &Path,
    settings: &Settings,
    plan: FilePlan,
    write_through: WriteThrough,
) -> Result<RealDisk, EngineError> {
    let batch = match settings.io_method {
        IoMethod::Sync => BatchKind::Sync,
        IoMethod::Libaio => BatchKind::Libaio,
        IoMethod::IoUring => BatchKind::IoUring,
    };
    let direct = plan.direct;
    // Where the device promises not to tear pages, the store leaves the doublewrite copy out.
    let options =
        RealOptions { direct, write_through, batch, atomic: direct, ..RealOptions::default() };
    Ok(RealDisk::with(directory, options)?)
}
