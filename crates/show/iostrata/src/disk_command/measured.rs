//! What a probe measured, for a disk that behaves like the probed one.

use std::path::Path;

use iostrata_plan::disk::{DiskModel, DiskSpec};
use iostrata_run::ProbeDocument;
use iostrata_sim::model::MeasuredDisk;

use crate::exit_error::ExitError;

/// The measurement that a disk names; `None` for a model with a name.
///
/// # Errors
/// When the file cannot be read, is no probe's document, or lacks what the model needs.
pub fn of(disk: &DiskSpec) -> Result<Option<MeasuredDisk>, ExitError> {
    match &disk.model {
        DiskModel::Probe(file) => read(file).map(Some),
        _ => Ok(None),
    }
}

fn read(file: &Path) -> Result<MeasuredDisk, ExitError> {
    let bad = |why: String| {
        ExitError::Usage(format!(
            "probe:{}: {why}; write the file with `iostrata probe DIR --json > FILE`",
            file.display()
        ))
    };
    let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
    let document: ProbeDocument = serde_json::from_str(&text)
        .map_err(|error| bad(format!("it is not what a probe prints ({error})")))?;
    MeasuredDisk::from_probe(&document)
        .map_err(|error| ExitError::Usage(format!("probe:{}: {error}", file.display())))
}
