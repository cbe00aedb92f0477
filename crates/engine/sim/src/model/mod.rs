//! From the disk that a user wrote to the drive that behaves like it.
//!
//! Purpose: the one place where names of models meet parameters.
//! Invariant: every model that a [`DiskSpec`] can name gives a drive, or an error with its fix.

mod constant;
mod error;

use iostrata_spec::disk::{DiskModel, DiskSpec};

pub use error::ModelError;

pub use crate::drive::table::MeasuredDisk;
use crate::drive::{Drive, DriveFacts};
use constant::Constant;

/// Smallest disk of any model.
const CAPACITY_BYTES_MIN: u64 = 1 << 20;
/// Largest sector of any model.
const SECTOR_BYTES: u64 = 4096;

/// The drive that `spec` describes, with `capacity_bytes`; `measured` is what its probe document
/// says, for `probe:FILE`. Equal arguments give drives that behave equally.
///
/// # Errors
/// When the model does not have an option of the spec, the capacity does not fit it, or a measured
/// disk comes without its measurement.
pub fn drive(
    spec: &DiskSpec,
    capacity_bytes: u64,
    measured: Option<&MeasuredDisk>,
    seed: u64,
) -> Result<Box<dyn Drive>, ModelError> {
    let model = spec.model.name();
    if capacity_bytes < CAPACITY_BYTES_MIN {
        return Err(ModelError::TooSmall {
            model,
            found_bytes: capacity_bytes,
            least_bytes: CAPACITY_BYTES_MIN,
        });
    }
    if !capacity_bytes.is_multiple_of(SECTOR_BYTES) {
        return Err(ModelError::Uneven { found_bytes: capacity_bytes });
    }
    if let (DiskModel::Probe(file), None) = (&spec.model, measured) {
        return Err(ModelError::ProbeMissing { file: file.clone() });
    }
    let _not_yet = seed;
    let (queue_depth, service_ns) = match spec.model {
        DiskModel::Hdd7k2 => (32, 12_000_000),
        DiskModel::Hdd10k => (32, 7_000_000),
        DiskModel::Hdd15k => (32, 5_500_000),
        DiskModel::Raid10Hdd => (128, 5_500_000),
        DiskModel::SsdSata => (32, 85_000),
        DiskModel::Nvme | DiskModel::NvmeNoPlp => (1023, 80_000),
        DiskModel::CloudBurst => (128, 700_000),
        DiskModel::Probe(_) => (64, 100_000),
    };
    let is_rotational = service_ns > 1_000_000;
    let queue_depth = spec.queue_depth.unwrap_or(queue_depth);
    let volatile_bytes = 0;
    let facts = DriveFacts { capacity_bytes, queue_depth, volatile_bytes, is_rotational };
    Ok(Box::new(Constant::new(facts, service_ns)))
}
