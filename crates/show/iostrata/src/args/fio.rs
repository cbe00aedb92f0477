//! `iostrata fio`: fio's job files.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Common, value};

/// Arguments of `iostrata fio`.
#[derive(Args, Debug)]
pub struct FioArgs {
    /// Job files; the jobs of each end before those of the next begin
    #[arg(required = true, value_name = "JOBFILE")]
    pub files: Vec<PathBuf>,
    /// Print what the job files come to, and stop
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub dry_run: bool,
    /// Print the results as fio prints them
    #[arg(long, value_enum, default_value = "normal")]
    pub output_format: OutputFormat,
    /// Run only the sections of this name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub section: Vec<String>,
    /// Leave to overwrite existing files or devices
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub overwrite_contents: bool,
    #[command(flatten)]
    pub common: Common,
}

/// A form of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// A table
    Normal,
    /// JSON in fio's shape
    Json,
}
