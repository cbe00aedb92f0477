//! Settings that do not go together.

use crate::study::setting::SettingId;

/// Why a combination cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; {fix}")]
pub(in crate::study) struct Conflict {
    /// The setting to look at.
    pub id: SettingId,
    /// What is wrong.
    pub why: String,
    /// What to do.
    pub fix: String,
}

/// A refusal of a combination.
pub(in crate::study) fn refuse<T>(
    id: SettingId,
    why: impl Into<String>,
    fix: impl Into<String>,
) -> Result<T, Conflict> {
    Err(Conflict { id, why: why.into(), fix: fix.into() })
}
