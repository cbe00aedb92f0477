//! `iostrata fio`: fio's job files.

use std::path::PathBuf;
use std::time::Duration;

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
    /// Print the results as fio does, in these forms (several apart by commas) [default: fio's
    /// normal form and a table with intervals]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FORMAT")]
    pub output_format: Vec<OutputFormat>,
    /// The same as --output-format=terse
    #[arg(long)]
    pub minimal: bool,
    /// Write the results to this file
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the results so far every so often while jobs run
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub status_interval: Option<Duration>,
    /// When to show on stderr how far the run has come
    #[arg(long, value_enum, default_value = "auto")]
    pub eta: Eta,
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

/// When progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Eta {
    /// Where stderr is a terminal
    Auto,
    /// The same
    Always,
    /// Never
    Never,
}

/// A form of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Text
    Normal,
    /// A line of fields per job, version 3
    Terse,
    /// JSON
    Json,
    /// JSON with histograms
    #[value(name = "json+")]
    JsonPlus,
}
