//! `iostrata engine`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{Printing, value};

/// Arguments of `iostrata engine`.
#[derive(Args, Debug)]
pub struct EngineArgs {
    #[command(subcommand)]
    pub action: EngineAction,
}

/// What to do with an engine.
#[derive(Debug, Subcommand)]
pub enum EngineAction {
    /// Recover the engine in DIR if necessary, and verify all its structures
    ///
    /// Exit code 1 if anything is damaged.
    Check(EngineCommon),
    /// Print the counters of the engine in DIR, with InnoDB's names
    ///
    /// Reads the status page that the engine's process publishes every second.
    Stats(EngineCommon),
    /// Kill a writing engine repeatedly, and verify its acknowledged commits
    ///
    /// Works in its own directory inside DIR. Kills the writer at random times within seconds and,
    /// with root and /dev/fuse, cuts the power of an emulated disk below it, every other time after
    /// a kill and a restart. While the writer runs, the state after a kill is repeatedly copied and
    /// checked. One round in four closes the engine under load instead, which must take at most 10
    /// s. Exit code 1 if an acknowledged commit is lost, a structure is damaged or a close does not
    /// finish; the directory is then kept.
    CrashTest(CrashTestArgs),
    /// The writer of `crash-test`; not for users
    #[command(hide = true)]
    CrashWorker(CrashWorkerArgs),
}

/// What every one has.
#[derive(Args, Clone, Debug)]
pub struct EngineCommon {
    /// The engine's directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    #[command(flatten)]
    pub printing: Printing,
}

/// How the writer is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrashKind {
    /// Kills, and power cuts if possible
    Auto,
    /// SIGKILL only: data in the page cache survives
    Kill,
    /// Power cuts of an emulated disk only: unflushed writes are lost or torn
    Power,
}

/// Arguments of `iostrata engine crash-test`.
#[derive(Args, Debug)]
pub struct CrashTestArgs {
    /// Working directory, created if missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Duration
    #[arg(long, value_name = "TIME", default_value = "40", value_parser = value::bound)]
    pub seconds: Duration,
    /// How the writer is stopped
    #[arg(long, value_enum, default_value = "auto")]
    pub by: CrashKind,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u64>)]
    pub seed: u64,
    /// An engine setting, as name=value; may be repeated
    #[arg(long = "engine", value_name = "NAME=VALUE")]
    pub engine: Vec<String>,
    #[command(flatten)]
    pub printing: Printing,
}

/// Arguments of the hidden writer.
#[derive(Args, Debug)]
pub struct CrashWorkerArgs {
    #[command(flatten)]
    pub common: EngineCommon,
    #[arg(long)]
    pub seed: u64,
    #[arg(long)]
    pub close_after_ms: Option<u64>,
}
