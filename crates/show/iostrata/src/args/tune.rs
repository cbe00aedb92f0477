//! `iostrata tune`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::watch::listening;
use super::{LoginArgs, Printing, value};

/// How the server is tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeWord {
    /// Hold the checkpoint age at a set-point below the max checkpoint age
    Steady,
    /// Raise innodb_io_capacity by 100 whenever the redo was three quarters full ten times
    AutoRaise,
}

/// Arguments of `iostrata tune`.
#[derive(Args, Debug)]
pub struct TuneArgs {
    /// The server: mysql://user[:password]@host:port[/db][?socket=PATH]
    ///
    /// The user needs the right to SET GLOBAL, and to see the server's status (docs/tune.md).
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// Say what would be changed, and change nothing
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub dry_run: bool,
    /// How the server is tuned
    #[arg(long, value_enum, default_value = "steady")]
    pub mode: ModeWord,
    /// Time between two looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = value::bound)]
    pub interval: Duration,
    /// End after this time [default: go on until SIGTERM or SIGINT]
    #[arg(long, visible_alias = "max-time", value_name = "TIME", value_parser = value::bound)]
    pub time: Option<Duration>,
    /// Bounds of settings, the set-point and the read latency to keep, in TOML (docs/tune.md)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where the checkpoint age is held, in percent of the max checkpoint age
    #[arg(long, value_name = "PCT", value_parser = value::percent)]
    pub set_point: Option<u8>,
    /// Slow writers down by innodb_max_purge_lag when the device cannot follow them
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub allow_delay: bool,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics; a port alone is one of this host
    #[arg(long, value_name = "ADDR:PORT", value_parser = listening)]
    pub metrics_addr: Option<SocketAddr>,
    #[command(flatten)]
    pub login: LoginArgs,
    /// Directory for the run's results [default: iostrata-runs/<time>-tune]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub printing: Printing,
}
