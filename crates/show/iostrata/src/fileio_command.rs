//! `iostrata fileio`: sysbench's files are made, measured and removed.
//!
//! Invariant: only files that this command made are measured or removed.

use iostrata_io::{FileSet, FileSetPlan, Fill, Place};
use iostrata_stats::units;

use crate::args::{FileioAction, FileioArgs, FileioFiles, FileioRunArgs};
use crate::display::{Display, print_json, print_text};
use crate::exit_error::ExitError;
use crate::io_command::{self, IoRun};
use crate::io_parts::files_ending;
use crate::signals::Interruption;

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &FileioArgs, interruption: &Interruption) -> Result<(), ExitError> {
    match &args.action {
        FileioAction::Prepare(args) => prepare(args, interruption),
        FileioAction::Run(args) => measure(args, interruption),
        FileioAction::Cleanup(args) => cleanup(args),
    }
}

fn prepare(args: &FileioFiles, interruption: &Interruption) -> Result<(), ExitError> {
    let place = &args.place;
    let plan = FileSetPlan {
        files: place.file_num,
        block_bytes: place.file_block_size,
        fill: Fill::Written,
        keep: true,
        ..FileSetPlan::new(
            Place::NewFile(place.path()),
            place.file_total_size,
            place.file_block_size,
        )
    };
    let display = Display::new(args.printing.quiet);
    let mut filling = |progress| display.filling(progress, "with random data");
    let made = FileSet::prepare(&plan, interruption.flag(), &mut filling);
    display.finish();
    let files = made.map_err(|error| files_ending(&error, interruption))?;
    let (number, bytes) = (files.specs().len(), files.total_bytes());
    match args.printing.json {
        true => print_json(&serde_json::json!({
            "files": number, "bytes": bytes, "were_there": files.is_reused(),
        })),
        false => print_text(&format!(
            "{number} files of {} together {}.\n",
            units::bytes(bytes as f64),
            if files.is_reused() { "are there already" } else { "are made" },
        )),
    }
}

fn measure(args: &FileioRunArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let spec = args.spec()?;
    let place = &args.place;
    if let Some(missing) = place.paths().iter().find(|path| !path.is_file()) {
        return Err(ExitError::Usage(format!(
            "{}: no such file; create the files with `fileio prepare` and the same --file-num \
             and --file-total-size",
            missing.display()
        )));
    }
    let run = IoRun {
        name: "fileio",
        path: place.path(),
        size: Some(place.file_total_size),
        keep: true,
        overwrite_contents: false,
        common: &args.common,
    };
    io_command::measure(spec, &run, interruption)
}

fn cleanup(args: &FileioFiles) -> Result<(), ExitError> {
    let removed = FileSet::remove_kept(&args.place.paths());
    let removed = removed.map_err(|error| ExitError::NotHere(error.to_string()))?;
    match args.printing.json {
        true => print_json(&serde_json::json!({ "removed": removed })),
        false => print_text(&match removed {
            0 => "There was nothing to remove.\n".to_owned(),
            1 => "One file is removed.\n".to_owned(),
            n => format!("{n} files are removed.\n"),
        }),
    }
}
