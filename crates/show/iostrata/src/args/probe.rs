//! `iostrata probe` and `iostrata report`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{Common, LoginArgs, value};

/// Arguments of `iostrata probe`.
#[derive(Args, Debug)]
pub struct ProbeArgs {
    /// The directory whose storage is measured
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Measure reads only; one file is still written once, to be read
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub read_only: bool,
    /// Never write more than this in total, without the transactions on a --target
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "24G")]
    pub max_write: u64,
    /// Size of the test files [default: 1G, or what fits]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub size: Option<u64>,
    /// Measure the storage of this target's data, and its transactions: a directory, engine:DIR or
    /// mysql://user@host:port/db
    ///
    /// Transactions run in a separate database, which is created by the probe and removed at its
    /// end. For a server on another machine, or with unreadable data, only they are measured.
    #[arg(long, value_name = "T", conflicts_with = "dir")]
    pub target: Option<String>,
    #[command(flatten)]
    pub login: LoginArgs,
    /// Try the advice that needs no root on the probe's own files, before and after
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub verify: bool,
    /// First overwrite the files, with at most half of --max-write and for at most 10 minutes, to
    /// use up flash caches and burst credits before the measurement
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub precondition: bool,
    /// Duration of the sustained writes, with at most half of --max-write, to test whether the rate
    /// lasts [default: 12s]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub lasting: Option<Duration>,
    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `iostrata report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Run directories
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Print the run's own JSON document and nothing else
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true,
          conflicts_with = "format")]
    pub json: bool,
    /// Write only this format [default: the summary on stdout, and report.html]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
}

/// A form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// report.html in the run directory
    Html,
    /// Markdown on stdout
    Markdown,
    /// Terminal text on stdout
    Terminal,
    /// The JSON document on stdout
    Json,
    /// The charts as one SVG picture on stdout; for studies, `simulate flush`, and recordings of
    /// `watch` and `tune`
    Svg,
}
