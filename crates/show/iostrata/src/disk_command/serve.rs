//! `iostrata disk serve`, hidden: the process behind one disk.
//!
//! Invariant: what goes wrong is said on stderr, where whoever started it reads it.

use std::ffi::OsString;

use iostrata_sim::emudisk::{ServeArguments, ServeOptions, serve};

use super::measured;
use crate::exit_error::ExitError;
use crate::signals::Interruption;

/// Serves until it is unmounted or asked to end.
///
/// # Errors
/// When the words are none of `disk start`, or the disk cannot be served.
pub fn run(words: &[OsString], interruption: &Interruption) -> Result<(), ExitError> {
    let asked =
        ServeArguments::parse(words).map_err(|error| ExitError::Usage(error.to_string()))?;
    let options = ServeOptions {
        measured: measured::of(&asked.disk)?,
        disk: asked.disk,
        size_bytes: asked.size_bytes,
        store: asked.store,
        store_limit_bytes: asked.store_limit_bytes,
        seed: asked.seed,
    };
    serve(&asked.at, options, interruption.flag())
        .map_err(|error| ExitError::NotHere(error.to_string()))
}
