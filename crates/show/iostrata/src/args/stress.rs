//! `iostrata stress`: objects and their history.

use clap::{Args, Subcommand};

use super::{CheckArgs, Common, DriveArgs, LoadArgs, PrivateArgs, TargetArgs, value};

/// Arguments of `iostrata stress`.
#[derive(Args, Debug)]
pub struct StressArgs {
    #[command(subcommand)]
    pub action: StressAction,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub enum StressAction {
    /// Make the tables and fill them
    Prepare(StressPrepareArgs),
    /// Run transactions and measure them
    Run(Box<StressRunArgs>),
    /// Check what holds of objects and history at every moment
    ///
    /// Exit code 1 when one does not hold.
    Check(CheckArgs),
    /// Remove the tables
    #[command(visible_alias = "clean")]
    Cleanup(CheckArgs),
}

impl StressAction {
    /// Whether notes on stderr were asked not to be.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Prepare(args) => args.load.printing.quiet,
            Self::Run(args) => args.common.printing.quiet,
            Self::Check(args) | Self::Cleanup(args) => args.printing.quiet,
        }
    }
}

/// Arguments of `iostrata stress prepare`.
#[derive(Args, Clone, Debug)]
pub struct StressPrepareArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    /// Objects; 100000 with 20 history rows each are about 300 MB
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value::whole::<u32>)]
    pub objects: u32,
    /// History rows of each object, always
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value::whole::<u32>)]
    pub history: u32,
    /// Loaders at the same time
    #[arg(short = 'T', long, value_name = "N", default_value_t = 4, value_parser = value::whole::<u32>)]
    pub threads: u32,
    #[command(flatten)]
    pub load: LoadArgs,
}

/// Arguments of `iostrata stress run`.
#[derive(Args, Clone, Debug)]
pub struct StressRunArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub private: PrivateArgs,
    /// Objects of --server [default: 100000]; else those that are loaded
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub objects: Option<u32>,
    /// History rows of each object of --server [default: 20]; else those that are loaded
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub history: Option<u32>,
    /// Shares of reads, read-writes (an object is read and changed in one transaction), writes
    #[arg(long, visible_alias = "weight", value_name = "N,N,N", default_value = "50,0,50")]
    pub mix: String,
    /// So many percent are reads, the others writes; in place of --mix
    #[arg(long, value_name = "PCT", conflicts_with = "mix", value_parser = value::percent)]
    pub read_pct: Option<u8>,
    #[command(flatten)]
    pub drive: DriveArgs,
    /// Check all conditions after the run; exit code 1 when one does not hold
    #[arg(long)]
    pub check: bool,
    #[command(flatten)]
    pub common: Common,
}
