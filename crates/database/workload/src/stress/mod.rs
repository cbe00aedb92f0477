//! A load inspired by dbSTRESS: objects with sections, zones and statuses, and a history of fixed
//! length for each.
//!
//! Purpose: transactions that leave the tables as large as they were: a history row that is added
//! replaces the oldest one. What grows is undo, the work of purge, and dirty pages.

mod check;
mod mix;
mod ops;
mod population;
mod prepare;
mod schema;
mod terminals;
mod workload;

pub use check::check;
pub use mix::StressMix;
pub use prepare::{StressSpec, cleanup, dataset, prepare, read_all};
pub use schema::schema;
pub use terminals::{DEVIATIONS, StressTerminals};
pub use workload::WORKLOAD;
