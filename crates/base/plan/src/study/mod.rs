//! Studies: factorial plans as plain data.
//!
//! Purpose: a study's text becomes a [`StudyPlan`]: cells, each one combination of levels with the
//! volume, the conditions and the workload that belong to it. Invariant: pure; a plan that exists
//! can be laid out, and every cell differs from every other in at least one level. It does not know
//! what this machine allows: that is found out where the plan is run.

mod answer;
#[cfg(test)]
mod answer_tests;
mod cell;
mod cost;
#[cfg(test)]
mod document_tests;
#[cfg(test)]
mod fuzz;
mod layout;
pub(crate) mod nearest;
pub mod pacing;
mod plan;
pub mod setting;
mod shipped;
#[cfg(test)]
mod shipped_tests;
mod spec;
#[cfg(test)]
mod tests;
mod text;
mod then;
#[cfg(test)]
mod transaction_tests;

pub use answer::{Answer, AnswerFrom, Contrast, ContrastEffect, filled};
pub use cell::{Cell, Conditions, IoLimits, LevelAt, QueueSetting, Volume, VolumeKind};
pub use cost::{PlanCost, cost, database_bytes, is_on_server};
pub use plan::{Extent, FactorLevels, Measuring, StudyPlan};
pub use shipped::{shipped, shipped_text};
pub use spec::{MeasuringOverrides, PartOutline, StudySpec};
pub use text::error::{StudyTextError, TextPlace};
pub use then::{Take, Then, ThenFigure, ThenMetric};
