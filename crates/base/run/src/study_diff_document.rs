//! Two points of a study side by side.
//!
//! Invariant: fields may be added, never renamed.

use serde::{Deserialize, Serialize};

use crate::StudyPoint;
use crate::host::ProfileDiff;

/// What `iostrata study diff --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyDiffDocument {
    /// The first point.
    pub a: StudyPoint,
    /// The second point.
    pub b: StudyPoint,
    /// The second's profile against the first's; null where one of them has none.
    pub profile: Option<ProfileDiff>,
}
