//! `iostrata engine`: check, stats, crash-test.
//!
//! Invariant: an engine that another process has is left alone, but for its status page.

mod check;
mod crash_test;
mod stats;

use std::path::Path;

use iostrata_engine::{Engine, EngineError, OpenError, RequestError, Settings};

use crate::args::{EngineAction, EngineArgs};
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &EngineArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        EngineAction::Check(common) => check::run(common),
        EngineAction::Stats(common) => stats::run(common),
        EngineAction::CrashTest(args) => crash_test::run(args, interruption),
        EngineAction::CrashWorker(args) => crash_test::worker(args),
    }
}

/// The settings kept in a directory that must hold an engine.
fn kept(dir: &Path) -> Result<Settings, ExitError> {
    let kept = if dir.is_dir() { Engine::kept_settings(dir).map_err(ending)? } else { None };
    match kept {
        Some(settings) => Ok(settings),
        None => Err(ExitError::Usage(format!(
            "{} holds no engine; name the directory of one",
            dir.display()
        ))),
    }
}

fn ending(error: EngineError) -> ExitError {
    match error {
        EngineError::Request(RequestError::Setting(_) | RequestError::SettingRange { .. })
        | EngineError::Open(OpenError::NotOurs { .. }) => ExitError::Usage(error.to_string()),
        EngineError::Broken { .. } => ExitError::Bug(error.to_string()),
        error => ExitError::NotHere(error.to_string()),
    }
}
