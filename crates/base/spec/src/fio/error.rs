//! What is wrong with a job file, where, and what to do.
//!
//! Invariant: every refusal names the file, the line, the option as it was written, the reason and
//! the fix.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A line of a job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub file: Arc<PathBuf>,
    /// The line, from 1; 0 stands for the file as a whole.
    pub line: u32,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file.display()),
            line => write!(f, "{}:{line}", self.file.display()),
        }
    }
}

/// A job file that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {what}: {why}")]
pub struct FioError {
    /// Where.
    pub origin: Origin,
    /// The line as it was written, such as `ioengine=rbd`.
    pub what: String,
    /// The reason and the fix.
    pub why: String,
}

/// An option that is read and changes nothing, or something that will not be as the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioWarning {
    /// The job file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: u32,
    /// The option as it was written, such as `lockfile=readwrite`.
    pub option: String,
    /// What happens instead, and why.
    pub text: String,
}

impl fmt::Display for FioWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.file.display(), self.line, self.option, self.text)
    }
}

/// The reason and the fix of a refusal whose place is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Why(pub String);

impl Why {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}
