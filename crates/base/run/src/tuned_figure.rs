//! A figure of a server while it was tuned, beside the same while it had its own settings.
//!
//! Invariant: fields may be added, never renamed. What is not known is null.

use iostrata_stats::Measured;
use serde::{Deserialize, Serialize};

/// A figure, tuned and not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TunedFigure {
    /// Which: `tps`, `worst_2s_tps`, `stalled_s`, `commit_p99_us`, `pages_written_per_txn`,
    /// `device_ms_per_txn`, `observed_s`.
    pub name: String,
    /// In words.
    pub title: String,
    /// Its unit.
    pub unit: String,
    /// With the settings of its own, under a load like that when it was tuned; null where that was
    /// not seen.
    pub untuned: Option<Measured>,
    /// While it was tuned.
    pub tuned: Option<Measured>,
}
