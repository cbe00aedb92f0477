//! `iostrata restore`.

use clap::Args;

use super::Printing;

/// Arguments of `iostrata restore`.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// A server whose settings to put back too (none are changed by this version)
    #[arg(long, value_name = "T")]
    pub target: Option<String>,
    #[command(flatten)]
    pub printing: Printing,
}
