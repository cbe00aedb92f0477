//! `iostrata watch` and `iostrata tune`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use iostrata_show::metrics::listen_address;

use super::{LoginArgs, Printing, value};

/// Shortest and longest time between samples.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// Shortest and longest window in which advice is tried.
const WINDOW_MIN: Duration = Duration::from_secs(2);
const WINDOW_MAX: Duration = Duration::from_secs(600);

/// Arguments of `iostrata watch`.
#[derive(Args, Clone, Debug)]
pub struct WatchArgs {
    /// What to watch: mysql://user[:password]@host:port[?socket=PATH], or engine:DIR
    ///
    /// Several may be named. What a server's address leaves out comes from --defaults-file or
    /// ~/.my.cnf, and the password from MYSQL_PWD. An engine is watched by the status page that the
    /// process publishes which holds it.
    #[arg(value_name = "TARGET", required = true)]
    pub targets: Vec<String>,
    /// From one sample to the next: 100ms to 60s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// Print one sample and end; it takes two, an interval apart, so that there are rates
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub once: bool,
    /// Print what a server is on one page: durability, redo in minutes, pool, changed settings
    ///
    /// Rates are counted for --time, 10 s by default.
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true,
          conflicts_with_all = ["once", "json_lines", "record", "verify", "enable_counters", "metrics_addr"])]
    pub summary: bool,
    /// Print each sample as one line of JSON
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true,
          conflicts_with = "json")]
    pub json_lines: bool,
    /// Print lines, also in a terminal, where the whole screen is used otherwise
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub lines: bool,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics; a port alone is one of this host
    #[arg(long, value_name = "ADDR:PORT", value_parser = listening)]
    pub metrics_addr: Option<SocketAddr>,
    /// Keep everything in a run directory, for `iostrata report DIR`
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Run COMMAND with sh once when a target begins to stall; it is ended after a minute
    ///
    /// Its environment has IOSTRATA_TARGET, IOSTRATA_STALL_BEGAN, IOSTRATA_STALL_T_S,
    /// IOSTRATA_STALL_CAUSE, IOSTRATA_STALL_EVIDENCE and IOSTRATA_RECORDING. While one command
    /// runs, other stalls start none.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["once", "summary"])]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub on_stall: Option<String>,
    /// End after this time [default: at SIGINT or SIGTERM]
    #[arg(long, value_name = "TIME", value_parser = value::bound)]
    pub time: Option<Duration>,
    /// Switch on the counters of pages flushed by reason that are off, and off again at the end
    ///
    /// Needs the right SYSTEM_VARIABLES_ADMIN or SUPER. What is switched on is journaled first;
    /// after a kill, iostrata restore switches it off.
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub enable_counters: bool,
    /// After the recording try what it advises, in turns with the settings of before
    ///
    /// Needs --record, --time, one server and the right SYSTEM_VARIABLES_ADMIN or SUPER. Tried is
    /// what a server takes while it runs and what shows within a window. What is set is journaled
    /// first and put back at the end; after a kill, iostrata restore puts it back.
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true,
          conflicts_with = "once")]
    pub verify: bool,
    /// Length of each of the eight windows of --verify: 2s to 10m
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = window)]
    pub verify_window: Duration,
    #[command(flatten)]
    pub login: LoginArgs,
    #[command(flatten)]
    pub printing: Printing,
}

pub(super) fn listening(text: &str) -> Result<SocketAddr, String> {
    listen_address(text).map_err(|error| error.to_string())
}

fn window(text: &str) -> Result<Duration, String> {
    let window = value::duration(text)?;
    match (WINDOW_MIN..=WINDOW_MAX).contains(&window) {
        true => Ok(window),
        false => Err(format!("`{text}` is out of range; use 2s to 10m")),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = value::duration(text)?;
    match (INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
        true => Ok(interval),
        false => Err(format!("`{text}` is out of range; use 100ms to 60s")),
    }
}

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
