//! Finding and reading the text of a study.

use std::path::Path;

use iostrata_plan::study::{StudySpec, shipped, shipped_text};
use iostrata_stats::units::Size;

use crate::exit_error::ExitError;

/// A study's text is not larger than this, in bytes.
const TEXT_BYTES_MAX: u64 = 256 << 10;

/// The study with this name, or in this file.
///
/// # Errors
/// When there is none, it cannot be read, or its text is wrong: with file, line and column.
pub fn load(study: &str) -> Result<StudySpec, ExitError> {
    if let Some(text) = shipped_text(study) {
        return StudySpec::parse(text, &format!("{study}.toml")).map_err(usage);
    }
    let path = Path::new(study);
    if !path.exists() {
        let names: Vec<&str> = shipped().iter().map(|(name, _)| *name).collect();
        return Err(ExitError::Usage(format!(
            "study {study}: there is no such file and no shipped study of that name; the shipped \
             ones are {}",
            names.join(", ")
        )));
    }
    let unreadable = |error: &dyn std::fmt::Display| {
        ExitError::Usage(format!("study {study}: cannot be read: {error}; give a .toml file"))
    };
    let found = std::fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !found.is_file() {
        return Err(unreadable(&"it is not a file"));
    }
    if found.len() > TEXT_BYTES_MAX {
        let most = Size(TEXT_BYTES_MAX);
        return Err(unreadable(&format!("it has {}, and a study at most {most}", found.len())));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(&error))?;
    StudySpec::parse(&text, study).map_err(usage)
}

/// A text or a choice that is wrong is bad input.
pub fn usage(error: iostrata_plan::study::StudyTextError) -> ExitError {
    ExitError::Usage(error.to_string())
}
