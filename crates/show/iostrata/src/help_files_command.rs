//! `iostrata completions` and `iostrata man`.
//!
//! Invariant: written is only the directory that was named.

use crate::args::{CompletionsArgs, ManArgs, write_man_pages};
use crate::display::print_text;
use crate::exit_error::ExitError;

/// Prints the script for a shell.
///
/// # Errors
/// When stdout cannot be written.
pub fn completions(args: &CompletionsArgs) -> Result<(), ExitError> {
    print_text(&String::from_utf8_lossy(&args.script()))
}

/// Writes the manual pages.
///
/// # Errors
/// When the directory cannot be made or written.
pub fn man(args: &ManArgs) -> Result<(), ExitError> {
    let dir = &args.dir;
    std::fs::create_dir_all(dir).and_then(|()| write_man_pages(dir)).map_err(|error| {
        ExitError::NotHere(format!("cannot write manual pages into {}: {error}", dir.display()))
    })
}
