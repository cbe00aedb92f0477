//! The device under the engine: a disk of the catalogue, and a limit of requests per second.

use iostrata_plan::disk::{DiskModel, DiskSpec};
use thiserror::Error;

use super::curve::Curve;
use crate::drive::cloud::CloudParameters;
use crate::model::{MeasuredDisk, ModelError, drive};

/// Bytes of a disk whose data would fit twice into less.
const DISK_BYTES: u64 = 100 << 30;

/// Why a device can't be modelled.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DeviceError {
    /// The disk.
    #[error("--device {disk}: {cause}")]
    Model {
        /// The disk.
        disk: String,
        /// What is wrong with it.
        cause: ModelError,
    },
    /// The limit.
    #[error("a limit of {found} requests per second; it takes 1 to 100,000,000")]
    Limit {
        /// What was found.
        found: f64,
    },
}

/// Credits of a volume: the rate while there are some, and without.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Credits {
    pub burst_iops: f64,
    pub baseline_iops: f64,
    pub most: f64,
    pub begin: f64,
}

/// A disk and its limit, asked what batches cost on it.
#[derive(Clone, Debug)]
pub struct FlushDevice {
    spec: DiskSpec,
    iops_limit: Option<f64>,
    pub(super) curve: Curve,
    pub(super) credits: Option<Credits>,
}

impl FlushDevice {
    /// The disk with so many bytes of data on it in pages of so many, and at most so many reads
    /// and so many writes per second.
    ///
    /// # Errors
    /// A disk that can't be modelled, or a limit that is none.
    pub fn new(
        spec: &DiskSpec,
        measured: Option<&MeasuredDisk>,
        iops_limit: Option<f64>,
        (page_bytes, data_bytes): (u64, u64),
        seed: u64,
    ) -> Result<Self, DeviceError> {
        if let Some(found) = iops_limit.filter(|iops| !(1.0..=1e8).contains(iops)) {
            return Err(DeviceError::Limit { found });
        }
        let capacity_bytes = (2 * data_bytes).max(DISK_BYTES).next_multiple_of(1 << 20);
        let model = drive(spec, capacity_bytes, measured, seed);
        let model = model.map_err(|cause| DeviceError::Model { disk: spec.to_string(), cause })?;
        let credits = (spec.model == DiskModel::CloudBurst).then(|| {
            let volume = CloudParameters::gp2();
            Credits {
                burst_iops: volume.burst_iops,
                baseline_iops: volume.baseline_iops(capacity_bytes),
                most: volume.credits_max,
                begin: spec.credits.map_or(volume.credits_max, f64::from),
            }
        });
        let curve = Curve::of(model, page_bytes, data_bytes, seed);
        Ok(Self { spec: spec.clone(), iops_limit, curve, credits })
    }

    /// The disk.
    pub fn disk(&self) -> &DiskSpec {
        &self.spec
    }

    /// Reads per second and writes per second that pass at most.
    pub fn iops_limit(&self) -> Option<f64> {
        self.iops_limit
    }
}
