//! Advice tried out inside the probe's own files: which points to run before and after.

/// Start of the ids of points that only try out advice.
const TRIAL: &str = "verify_";

/// Whether a point only tries out advice.
pub(crate) fn is_trial(id: &str) -> bool {
    id.starts_with(TRIAL)
}
