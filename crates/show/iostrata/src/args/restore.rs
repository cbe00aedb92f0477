//! `iostrata restore`.

use clap::Args;

use super::value;

/// Arguments of `iostrata restore`.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// A server whose settings to put back too (none are changed by this version)
    #[arg(long, value_name = "T")]
    pub target: Option<String>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub json: bool,
    /// Print no notes
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub quiet: bool,
}
