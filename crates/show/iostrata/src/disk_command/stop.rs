//! `iostrata disk stop`.

use iostrata_change::{JournalState, StateDir, StopError, System, stop_served};
use iostrata_run::{DiskRefusal, DiskStopDocument};

use super::{Found, found, of_device};
use crate::args::StopArgs;
use crate::display::{print_json, print_text};
use crate::exit_error::ExitError;

/// Runs the command.
///
/// # Errors
/// As the contract's exit codes say; with `--all` after everything that can be stopped is.
pub fn run(args: &StopArgs) -> Result<(), ExitError> {
    let mut document = DiskStopDocument { stopped: Vec::new(), refused: Vec::new() };
    let mut failed = None;
    if let Some(device) = &args.device {
        let found = of_device(device)?;
        stop(&found)?;
        document.stopped.push(found.disk.device.display().to_string());
    } else if args.all == Some(true) {
        // Those of a run go with it.
        let own = found().into_iter().filter(|one| one.disk.is_left_behind());
        for found in own {
            let device = found.disk.device.display().to_string();
            match stop(&found) {
                Ok(()) => document.stopped.push(device),
                Err(ending) => {
                    document.refused.push(DiskRefusal { device, why: ending.to_string() });
                    failed.get_or_insert(ending);
                }
            }
        }
    } else {
        return Err(ExitError::Usage("name a device, or --all".to_owned()));
    }
    match args.common.json {
        true => print_json(&document)?,
        false => print_text(&text(&document))?,
    }
    failed.map_or(Ok(()), Err)
}

fn stop(found: &Found) -> Result<(), ExitError> {
    let device = found.disk.device.display();
    let report = stop_served(&StateDir::of_user(), &System::new(), &found.disk);
    let report = report.map_err(|error| match error {
        StopError::InUse { .. } | StopError::OfARun { .. } => ExitError::Usage(error.to_string()),
        StopError::Change(_) | StopError::Journal(_) => ExitError::NotHere(error.to_string()),
    })?;
    if report.state == JournalState::Settled {
        return Ok(());
    }
    let things: Vec<String> = report.things.iter().map(ToString::to_string).collect();
    let why = report.error.unwrap_or_else(|| things.join("; "));
    Err(ExitError::NotHere(format!(
        "{device} is not taken away in full: {why}; free what is named and run iostrata restore"
    )))
}

fn text(document: &DiskStopDocument) -> String {
    if document.stopped.is_empty() && document.refused.is_empty() {
        return "There is no emulated disk to stop.\n".to_owned();
    }
    let stopped = document.stopped.iter().map(|device| format!("{device} is gone.\n"));
    let refused = document.refused.iter().map(|one| format!("{}\n", one.why));
    stopped.chain(refused).collect()
}
