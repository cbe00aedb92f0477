//! `iostrata engine`: check, stats, crash-test.
//!
//! Invariant: an engine that another process has is left alone, but for its status page.

mod check;
mod crash_test;
mod stats;

use std::path::Path;

use iostrata_engine::{Engine, EngineError, OpenError, RequestError, Settings};

use crate::args::{EngineAction, EngineArgs};
use crate::ending::Ending;
use crate::signals::Interruption;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say.
pub fn run(args: &EngineArgs, interruption: &Interruption) -> Result<(), Ending> {
    match &args.action {
        EngineAction::Check(common) => check::run(common),
        EngineAction::Stats(common) => stats::run(common),
        EngineAction::CrashTest(args) => crash_test::run(args, interruption),
        EngineAction::CrashWorker(args) => crash_test::worker(args),
    }
}

/// The settings kept in a directory that must hold an engine.
fn kept(dir: &Path) -> Result<Settings, Ending> {
    let kept = if dir.is_dir() { Engine::kept_settings(dir).map_err(ending)? } else { None };
    match kept {
        Some(settings) => Ok(settings),
        None => Err(Ending::Usage(format!(
            "{} holds no engine; name the directory of one",
            dir.display()
        ))),
    }
}

fn ending(error: EngineError) -> Ending {
    match error {
        EngineError::Request(RequestError::Setting(_) | RequestError::SettingRange { .. })
        | EngineError::Open(OpenError::NotOurs { .. }) => Ending::Usage(error.to_string()),
        EngineError::Broken { .. } => Ending::Bug(error.to_string()),
        error => Ending::NotHere(error.to_string()),
    }
}
