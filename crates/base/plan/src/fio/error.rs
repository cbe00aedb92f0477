//! What is wrong with a job file or a command line, where, and what to do.
//!
//! Invariant: every refusal names the file and line or the argument, the option as it was written,
//! the reason and the fix.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Where an option stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// In a job file.
    File {
        /// The file.
        file: Arc<PathBuf>,
        /// The line, from 1; 0 stands for the file as a whole.
        line: u32,
    },
    /// In the command line.
    Argument {
        /// The argument, from 1; 0 stands for the command line as a whole.
        number: u32,
    },
}

impl Origin {
    /// A file as a whole.
    pub(super) fn whole(file: PathBuf) -> Self {
        Self::File { file: Arc::new(file), line: 0 }
    }

    /// What refusals are sorted by.
    pub(super) fn order(&self) -> (Option<PathBuf>, u32) {
        match self {
            Self::File { file, line } => (Some(file.as_ref().clone()), *line),
            Self::Argument { number } => (None, *number),
        }
    }

    /// With what stands there.
    fn named(&self, what: &str) -> String {
        match self {
            Self::File { file, line: 0 } => format!("{}: {what}", file.display()),
            Self::File { file, line } => format!("{}:{line}: {what}", file.display()),
            Self::Argument { number: 0 } => what.to_owned(),
            Self::Argument { number } => format!("argument {number}, --{what}"),
        }
    }
}

/// A line or an argument that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", .origin.named(.what))]
pub struct FioError {
    /// Where.
    pub origin: Origin,
    /// The line as it was written, such as `ioengine=rbd`.
    pub what: String,
    /// The reason and the fix.
    pub why: String,
}

/// Everything that cannot be run, in the order of the command line and of the files; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioErrors(pub Vec<FioError>);

impl fmt::Display for FioErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(FioError::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for FioErrors {}

impl From<FioError> for FioErrors {
    fn from(error: FioError) -> Self {
        Self(vec![error])
    }
}

/// An option that is read and changes nothing, or something that will differ from the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FioWarning {
    /// The job file; empty where the option stands in the command line.
    pub file: PathBuf,
    /// The line of the file or the argument, from 1.
    pub line: u32,
    /// The option as it was written, such as `lockfile=readwrite`.
    pub option: String,
    /// What happens instead, and why.
    pub text: String,
}

impl FioWarning {
    pub(super) fn at(origin: &Origin, option: String, text: String) -> Self {
        let (file, line) = match origin {
            Origin::File { file, line } => (file.as_ref().clone(), *line),
            Origin::Argument { number } => (PathBuf::new(), *number),
        };
        Self { file, line, option, text }
    }
}

impl fmt::Display for FioWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match self.file.as_os_str().is_empty() {
            true => Origin::Argument { number: self.line },
            false => Origin::File { file: Arc::new(self.file.clone()), line: self.line },
        };
        write!(f, "{}: {}", origin.named(&self.option), self.text)
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
