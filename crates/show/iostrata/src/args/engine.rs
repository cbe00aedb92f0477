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
    /// Recover the engine in DIR if need be, and verify every structure of it
    ///
    /// Exit code 1 when something is damaged.
    Check(EngineCommon),
    /// Print the counters of the engine in DIR under InnoDB's names
    ///
    /// Reads the status page that the process holding the engine publishes every second.
    Stats(EngineCommon),
    /// Kill a writing engine again and again, and look for what it had acknowledged
    ///
    /// Works in a directory of its own inside DIR. Kills the writer at random moments within
    /// seconds and, with root and /dev/fuse, cuts the power of an emulated disk under it, every
    /// other time after a kill and a restart. What kills would have left meanwhile is copied and
    /// looked at while the writer goes on. One round in four closes the engine under its own load
    /// instead, which must not take over 10 s. Exit code 1 when anything acknowledged is lost, a
    /// structure is damaged or a close does not end; the directory is kept then.
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
    /// Killing, and cutting the power where that is possible
    Auto,
    /// SIGKILL only: what the operating system took is kept
    Kill,
    /// Power cuts of an emulated disk only: what was not flushed is lost or torn
    Power,
}

/// Arguments of `iostrata engine crash-test`.
#[derive(Args, Debug)]
pub struct CrashTestArgs {
    /// The directory to work in, made if it is missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "40", value_parser = value::bound)]
    pub seconds: Duration,
    /// How the writer is cut off
    #[arg(long, value_enum, default_value = "auto")]
    pub by: CrashKind,
    /// Seed of the moments and of what is written
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u64>)]
    pub seed: u64,
    /// A setting of the engine, as name=value; may be repeated
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
