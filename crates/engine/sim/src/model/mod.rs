//! From the disk that a user wrote to the drive that behaves like it.
//!
//! Purpose: the one place where names of models meet parameters.
//! Invariant: every model that a [`DiskSpec`] can name gives a drive, or an error with its fix.

mod catalogue;
#[cfg(test)]
mod documented_tests;
mod error;
mod options;
#[cfg(test)]
mod tests;

use iostrata_plan::disk::{DiskModel, DiskSpec};

pub use catalogue::{Citation, Model, Origin, Parameter, catalogue};
pub use error::ModelError;

use crate::drive::Drive;
use crate::drive::cloud::{Cloud, CloudParameters};
use crate::drive::flash::{Flash, FlashParameters};
use crate::drive::hdd::{HDD_7K2, HDD_10K, HDD_15K, Hdd, HddParameters};
use crate::drive::raid::{BATTERY_512M, Protected, RAID10_15K, Raid};
pub use crate::drive::table::MeasuredDisk;
use crate::drive::table::MeasuredDrive;

/// Smallest disk of any model.
const CAPACITY_BYTES_MIN: u64 = 1 << 20;
/// Largest disk of any model: that of the largest volume of a cloud.
const CAPACITY_BYTES_MAX: u64 = 16 << 40;
/// Largest sector of any model.
const SECTOR_BYTES: u64 = 4096;

/// The drive that `plan` describes, with `capacity_bytes`; `measured` is what its probe document
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
    check_capacity(spec, capacity_bytes)?;
    options::check_credits(spec)?;
    let hdd = |sheet: HddParameters| -> Result<Box<dyn Drive>, ModelError> {
        Ok(Box::new(Hdd::new(options::hdd(spec, sheet)?, capacity_bytes, seed)))
    };
    let flash = |sheet: FlashParameters| -> Result<Box<dyn Drive>, ModelError> {
        Ok(Box::new(Flash::new(options::flash(spec, sheet)?, capacity_bytes, seed)))
    };
    match &spec.model {
        DiskModel::Hdd7k2 => hdd(HDD_7K2),
        DiskModel::Hdd10k => hdd(HDD_10K),
        DiskModel::Hdd15k => hdd(HDD_15K),
        DiskModel::Raid10Hdd => Ok(match options::raid(spec, RAID10_15K, BATTERY_512M) {
            (array, Some(cache)) => Box::new(Protected::array(array, cache, capacity_bytes, seed)),
            (array, None) => Box::new(Raid::new(array, capacity_bytes, seed)),
        }),
        DiskModel::SsdSata => flash(FlashParameters::x25_e()),
        DiskModel::Nvme => flash(FlashParameters::p4500()),
        DiskModel::NvmeNoPlp => flash(FlashParameters::evo_970_plus()),
        DiskModel::CloudBurst => {
            let parameters = options::cloud(spec, CloudParameters::gp2())?;
            let volume = Cloud::new(parameters, capacity_bytes, seed);
            Ok(Box::new(match spec.credits {
                Some(credits) => volume.with_credits(f64::from(credits)),
                None => volume,
            }))
        }
        DiskModel::Probe(file) => {
            let Some(measured) = measured else {
                return Err(ModelError::ProbeMissing { file: file.clone() });
            };
            let table = MeasuredDrive::new(measured.clone(), capacity_bytes, seed);
            Ok(Box::new(options::table(spec, table)?))
        }
    }
}

fn check_capacity(spec: &DiskSpec, capacity_bytes: u64) -> Result<(), ModelError> {
    let (model, found_bytes) = (spec.model.name(), capacity_bytes);
    if capacity_bytes < CAPACITY_BYTES_MIN {
        return Err(ModelError::TooSmall { model, found_bytes, least_bytes: CAPACITY_BYTES_MIN });
    }
    if capacity_bytes > CAPACITY_BYTES_MAX {
        return Err(ModelError::TooLarge { model, found_bytes, most_bytes: CAPACITY_BYTES_MAX });
    }
    if !capacity_bytes.is_multiple_of(SECTOR_BYTES) {
        return Err(ModelError::Uneven { found_bytes });
    }
    Ok(())
}
