//! What was not measured, and why.
//!
//! Invariant: whatever was requested and is not in a document is here, with the reason.

use serde::{Deserialize, Serialize};

/// Something that could not be measured here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unavailable {
    /// The point or part.
    pub what: String,
    /// Why, in words.
    pub why: String,
    /// How to make it possible, if it can be.
    pub fix: Option<String>,
    /// What kind of reason it is; `impossible` in runs of older versions.
    #[serde(default)]
    pub cause: UnavailableCause,
    /// What the kernel logged of the devices below meanwhile, where that can be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_lines: Vec<String>,
}

/// What kind of reason something was not measured for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnavailableCause {
    /// It is not possible here, or there was nothing to measure.
    #[default]
    Impossible,
    /// It was planned, and left out for lack of time or of a budget.
    LeftOut,
    /// It was planned, and the file system filled up.
    NoRoom,
    /// It was planned, and the device gave an error or its file system turned read-only.
    Broken,
    /// It was planned, and failed.
    Failed,
}

impl Unavailable {
    /// Something that is not possible here.
    pub fn impossible(
        what: impl Into<String>,
        why: impl Into<String>,
        fix: Option<String>,
    ) -> Self {
        let cause = UnavailableCause::Impossible;
        Self { what: what.into(), why: why.into(), fix, cause, kernel_lines: Vec::new() }
    }

    /// A planned part that was left out for lack of time or of a budget, which `option` sets.
    pub fn left_out(what: impl Into<String>, why: impl Into<String>, option: &str) -> Self {
        let fix = Some(format!("allow more with {option}"));
        Self { fix, cause: UnavailableCause::LeftOut, ..Self::failed(what, why) }
    }

    /// A planned part that failed because the file system filled up.
    pub fn without_room(what: impl Into<String>, why: impl Into<String>) -> Self {
        let fix = Some("free some space and run it again".to_owned());
        Self { fix, cause: UnavailableCause::NoRoom, ..Self::failed(what, why) }
    }

    /// A planned part in which the device gave an error or its file system turned read-only.
    pub fn broken(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { cause: UnavailableCause::Broken, ..Self::failed(what, why) }
    }

    /// Whether the storage failed or filled up: what was planned after it is meaningless.
    pub fn ended_it(&self) -> bool {
        matches!(self.cause, UnavailableCause::Broken | UnavailableCause::NoRoom)
    }

    /// A planned part that failed.
    pub fn failed(what: impl Into<String>, why: impl Into<String>) -> Self {
        let cause = UnavailableCause::Failed;
        Self { what: what.into(), why: why.into(), fix: None, cause, kernel_lines: Vec::new() }
    }

    /// Whether it was planned, and would have been possible here.
    pub fn was_planned(&self) -> bool {
        self.cause != UnavailableCause::Impossible
    }
}
