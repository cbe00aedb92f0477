//! `iostrata insert`: rows into random places of three indexes.

use clap::{Args, Subcommand};

use super::{CheckArgs, Common, DriveArgs, LoadArgs, PrivateArgs, TargetArgs, value};

/// Arguments of `iostrata insert`.
#[derive(Args, Debug)]
pub struct InsertArgs {
    #[command(subcommand)]
    pub action: InsertAction,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub enum InsertAction {
    /// Make the table and load its first rows in bulk
    Prepare(InsertPrepareArgs),
    /// Insert rows and measure that
    Run(Box<InsertRunArgs>),
    /// Check that every row is whole and every index leads to the same rows
    ///
    /// Exit code 1 when one does not hold.
    Check(CheckArgs),
    /// Remove the table
    #[command(visible_alias = "clean")]
    Cleanup(CheckArgs),
}

impl InsertAction {
    /// Whether notes on stderr were asked not to be.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Prepare(args) => args.load.printing.quiet,
            Self::Run(args) => args.common.printing.quiet,
            Self::Check(args) | Self::Cleanup(args) => args.printing.quiet,
        }
    }
}

/// Arguments of `iostrata insert prepare`.
#[derive(Args, Clone, Debug)]
pub struct InsertPrepareArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// Rows to load, about 180 bytes each with their indexes; 0 for an empty table
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value::whole::<u32>)]
    pub rows: u32,
    #[command(flatten)]
    pub load: LoadArgs,
}

/// Arguments of `iostrata insert run`.
#[derive(Args, Clone, Debug)]
pub struct InsertRunArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub private: PrivateArgs,
    /// Rows that --server is loaded with [default: 1000000]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub rows: Option<u32>,
    /// Rows that one commit inserts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u32>)]
    pub rows_per_commit: u32,
    #[command(flatten)]
    pub drive: DriveArgs,
    /// Check rows and indexes after the run; exit code 1 when something is wrong
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub common: Common,
}
