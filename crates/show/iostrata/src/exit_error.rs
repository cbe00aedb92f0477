//! How a command ends: its exit code and, when it failed, one message.

use iostrata_change::ChangeError;
use iostrata_io::{FileSetError, IoError};
use iostrata_load::LoadError;
use iostrata_plan::SpecError;
use iostrata_study::StudyError;

/// Why a command did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ExitError {
    /// The caller requested a judgement, and it failed: exit code 1.
    #[error("{0}")]
    Judged(String),
    /// Bad input: exit code 2.
    #[error("{0}")]
    Usage(String),
    /// What is requested is in use by another process or session: exit code 2.
    #[error("{0}")]
    Busy(String),
    /// Nothing could be run here: exit code 3.
    #[error("{0}")]
    NotHere(String),
    /// Something could not be put back, as its server does not answer: exit code 3.
    #[error("{0}")]
    NoAnswer(String),
    /// A broken invariant: exit code 4.
    #[error("{0}; this is a bug of iostrata")]
    Bug(String),
    /// A signal came and everything is cleaned up: exit code 130 or 143.
    #[error("interrupted")]
    Interrupted(u8),
}

impl ExitError {
    /// The contract's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            ExitError::Judged(_) => 1,
            ExitError::Usage(_) | ExitError::Busy(_) => 2,
            ExitError::NotHere(_) | ExitError::NoAnswer(_) => 3,
            ExitError::Bug(_) => 4,
            ExitError::Interrupted(code) => *code,
        }
    }
}

impl From<SpecError> for ExitError {
    fn from(error: SpecError) -> Self {
        ExitError::Usage(error.to_string())
    }
}

/// The exit code and message of a measurement that failed.
pub fn exit_error(error: StudyError) -> ExitError {
    match &error {
        StudyError::Load(LoadError::WorkerPanicked { .. }) => ExitError::Bug(error.to_string()),
        // As with fio: a minimum rate that is not met is a failure.
        StudyError::RatesMissed { .. } => ExitError::Judged(error.to_string()),
        StudyError::Load(LoadError::Api(IoError::Depth { .. })) => {
            ExitError::Usage(error.to_string())
        }
        StudyError::Files(FileSetError::NotOurs { .. } | FileSetError::Held { .. }) => {
            ExitError::Usage(error.to_string())
        }
        StudyError::Change(ChangeError::Refused { .. }) => ExitError::Usage(error.to_string()),
        _ => ExitError::NotHere(error.to_string()),
    }
}
