//! An insert load into a table with random indexes, on a page cache, a block queue and a drive.

mod outcome;
mod plan;

pub use outcome::{InsertError, InsertOutcome, InsertPoint, InsertReader};
pub use plan::{
    DISK_BYTES, INDEX_BYTES_PER_ROW, InsertPlan, POST_QUEUE_SIZES, POST_ROWS_AT, index_bytes,
    rows_of,
};

use crate::drive::DriveFacts;
use crate::model::{MeasuredDisk, drive};
use crate::queue::requests_taken;

/// Simulates a plan; `measured` is what a probe printed, for a disk that was measured.
///
/// # Errors
/// When the disk can't be modelled, the tables do not fit, or the plan looks at nothing.
pub fn run(
    plan: &InsertPlan,
    measured: Option<&MeasuredDisk>,
) -> Result<InsertOutcome, InsertError> {
    let drive = drive(&plan.disk, plan.capacity_bytes, measured, plan.seed)?;
    let facts: DriveFacts = drive.facts();
    let nr_requests_taken =
        requests_taken(plan.kernel, plan.scheduler, facts.queue_depth, plan.nr_requests);
    Ok(InsertOutcome { plan: plan.clone(), facts, nr_requests_taken, points: Vec::new() })
}
