//! A study that is laid out: its cells, how they are measured, what was printed at the time.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Answer, Cell, Then};

/// Which of its two extents a study is run in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Minutes.
    #[default]
    Quick,
    /// As thorough as the study's author meant it.
    Full,
}

/// How the points of a study are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measuring {
    /// Replicates of every point, where the budget allows.
    pub replicates: u32,
    /// More replicates than this are never spent on one point.
    pub replicates_max: u32,
    /// Relative half-width of the 95 % interval at which a point is precise enough.
    pub precision: f64,
    /// Bound on one measured window.
    pub point_time: Duration,
    /// Bound on the whole: replicates are dropped to keep it, points are not.
    pub budget: Option<Duration>,
    /// Bound on the bytes written in all.
    pub write_bytes_max: Option<u64>,
    /// Whether every point gets a traced pass (latency by layer, off-CPU profile).
    pub traced: bool,
    /// Samples per second and processor of the on-CPU profile; 0 for none.
    pub profile_hz: u32,
    /// Seed of the order and of the requests.
    pub seed: u64,
}

impl Default for Measuring {
    /// Three replicates, 30 at most, 5 %, at most 2 s a window, 99 Hz, traced, no budget.
    fn default() -> Self {
        Self {
            replicates: 3,
            replicates_max: 30,
            precision: 0.05,
            point_time: Duration::from_secs(2),
            budget: None,
            write_bytes_max: None,
            traced: true,
            profile_hz: 99,
            seed: 1,
        }
    }
}

/// A factor with its levels, in the study's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactorLevels {
    /// The factor.
    pub factor: String,
    /// Its levels as the study's text names them.
    pub levels: Vec<String>,
    /// Whether the levels are numbers, so that the factor is an axis.
    pub is_axis: bool,
}

impl FactorLevels {
    /// Levels that make a curve, at least; the difference between two is an effect.
    pub const CURVE_MIN: usize = 3;

    /// Whether what happens along it is a curve, and no single ratio.
    pub fn is_curve(&self) -> bool {
        self.is_axis && self.levels.len() >= Self::CURVE_MIN
    }
}

/// A study that is laid out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyPlan {
    /// Its name: `fusion-io`.
    pub name: String,
    /// One line for a reader.
    pub title: String,
    /// What it wants to know, in a sentence or two.
    pub question: String,
    /// Quick or full.
    pub extent: Extent,
    /// The factors over all parts.
    pub factors: Vec<FactorLevels>,
    /// The points.
    pub cells: Vec<Cell>,
    /// How they are measured.
    pub measuring: Measuring,
    /// What the question comes down to.
    #[serde(default)]
    pub answers: Vec<Answer>,
    /// What was true then, for replications.
    pub then: Option<Then>,
}

impl StudyPlan {
    /// Seconds that the plan would take at a fixed 60 s per point, once each, as such studies used
    /// to be run.
    pub fn fixed_minute_s(&self) -> f64 {
        60.0 * self.cells.len() as f64
    }
}
