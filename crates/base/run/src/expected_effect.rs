//! What advised settings are expected to change, by a model of flushing that was fitted to the
//! recording.
//!
//! Invariant: fields may be added, never renamed. A figure that the model does not reproduce as
//! recorded is null, and the text gives the reason.

use std::collections::BTreeMap;

use iostrata_stats::Measured;
use serde::{Deserialize, Serialize};

/// A figure under the settings of the recording and under the advised ones, from pairs of runs of
/// the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExpectedFigure {
    /// With the settings of the recording.
    pub before: Measured,
    /// With the advised ones.
    pub after: Measured,
    /// The difference within a pair: in percent of before; of a share in percentage points.
    pub change_pct: Measured,
}

/// What settings are expected to change when they are set together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExpectedEffect {
    /// The settings as advised, by name.
    pub settings: BTreeMap<String, String>,
    /// Transactions per second.
    pub tps: Option<ExpectedFigure>,
    /// The worst second over the mean.
    pub min_over_mean_1s: Option<ExpectedFigure>,
    /// Pages written per transaction.
    pub pages_written_per_txn: Option<ExpectedFigure>,
    /// What it stands on, or why nothing is expected.
    pub text: Vec<String>,
}

impl ExpectedEffect {
    /// Whether any figure is expected to change, or not to.
    pub fn is_known(&self) -> bool {
        self.tps.is_some()
            || self.min_over_mean_1s.is_some()
            || self.pages_written_per_txn.is_some()
    }
}
