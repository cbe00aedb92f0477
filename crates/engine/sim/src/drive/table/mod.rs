//! A drive that behaves as a probe measured a device.

use iostrata_run::ProbeDocument;

use crate::model::ModelError;

/// What a probe measured of a device, as far as a model needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredDisk {}

impl MeasuredDisk {
    /// What a probe's document says.
    ///
    /// # Errors
    /// When the probe did not measure what the model needs.
    pub fn from_probe(probe: &ProbeDocument) -> Result<Self, ModelError> {
        let _not_yet = probe;
        Ok(Self {})
    }
}
