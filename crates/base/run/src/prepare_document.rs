//! What loading and checking a dataset print with `--json`.
//!
//! Invariant: counts are plain; nothing here is measured with an interval.

use serde::{Deserialize, Serialize};

/// What `prepare` did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrepareDocument {
    /// Where, without secrets.
    pub target: String,
    /// Of which workload.
    pub workload: String,
    /// The amount.
    pub size: u64,
    /// Of what: `warehouses`, `tables`.
    pub size_unit: String,
    /// Rows that were loaded.
    pub rows: u64,
    /// Rows that an earlier attempt had loaded.
    pub rows_before: u64,
    /// Rows loaded per second.
    pub rows_per_s: f64,
    /// Seconds in all.
    pub duration_s: f64,
}

/// What `check` of a workload found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckDocument {
    /// Whether no row is missing and all conditions hold.
    pub ok: bool,
    /// All conditions: of TPC-C the twelve of the specification's clause 3.3.2.
    pub conditions: Vec<ConditionDocument>,
    /// The rows of each table, where it is known how many there must be.
    #[serde(default)]
    pub counts: Vec<TableCountDocument>,
    /// How much was checked.
    pub size: u64,
    /// Of what: `warehouses`, `objects`, `rows`.
    pub size_unit: String,
    /// Rows that were read.
    pub rows: u64,
}

/// How many rows a table has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableCountDocument {
    /// Its name.
    pub table: String,
    /// Whether the number of rows is as expected in every place.
    pub ok: bool,
    /// Rows that are there.
    pub rows: u64,
    /// Rows that must be there.
    pub expected: u64,
    /// Otherwise, the first places where it is not.
    pub detail: String,
}

/// The result of one condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConditionDocument {
    /// Its number, from 1.
    pub id: u32,
    /// Whether it holds everywhere.
    pub ok: bool,
    /// Where it does not, or what was checked in its place.
    pub detail: String,
}
