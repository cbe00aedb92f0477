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
    /// Targets to watch: mysql://user[:password]@host:port[?socket=PATH], or engine:DIR
    ///
    /// Several are possible. Missing parts of a server's address come from --defaults-file or
    /// ~/.my.cnf, and the password from MYSQL_PWD. An engine is watched by the status page that its
    /// process publishes.
    #[arg(value_name = "TARGET", required = true)]
    pub targets: Vec<String>,
    /// Time between samples: 100ms to 60s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// Print one sample, over one interval, and exit
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub once: bool,
    /// Print a server on one page: durability, redo in minutes, buffer pool, changed settings
    ///
    /// Rates are measured over --time, 10 s by default.
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true,
          conflicts_with_all = ["once", "json_lines", "record", "verify", "enable_counters", "metrics_addr"])]
    pub summary: bool,
    /// Print each sample as one line of JSON
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true,
          conflicts_with = "json")]
    pub json_lines: bool,
    /// Print lines even in a terminal, instead of the full screen
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub lines: bool,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics; a port alone means localhost
    #[arg(long, value_name = "ADDR:PORT", value_parser = listening)]
    pub metrics_addr: Option<SocketAddr>,
    /// Record everything in a run directory, for `iostrata report DIR`
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
    /// Run COMMAND with sh once when a target begins to stall, for at most a minute
    ///
    /// Its environment has IOSTRATA_TARGET, IOSTRATA_STALL_BEGAN, IOSTRATA_STALL_T_S,
    /// IOSTRATA_STALL_CAUSE, IOSTRATA_STALL_EVIDENCE and IOSTRATA_RECORDING. While it runs, further
    /// stalls start no other command.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["once", "summary"])]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub on_stall: Option<String>,
    /// Stop after this time [default: at SIGINT or SIGTERM]
    #[arg(long, value_name = "TIME", value_parser = value::bound)]
    pub time: Option<Duration>,
    /// Switch on the counters of flushed pages by reason, and off again at the end
    ///
    /// Needs the right SYSTEM_VARIABLES_ADMIN or SUPER. Each change is journaled first; after a
    /// kill, iostrata restore undoes it.
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub enable_counters: bool,
    /// After the recording, try its advice, alternating with the original settings
    ///
    /// Needs --record, --time, one server and the right SYSTEM_VARIABLES_ADMIN or SUPER. Only
    /// dynamic settings with an effect within a window are tried. Each change is journaled first
    /// and undone at the end, after a kill by iostrata restore.
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
    /// Raise innodb_io_capacity by 100 each time the redo was three quarters full ten times
    AutoRaise,
}

/// Arguments of `iostrata tune`.
#[derive(Args, Debug)]
pub struct TuneArgs {
    /// The server: mysql://user[:password]@host:port[/db][?socket=PATH]
    ///
    /// The user needs the right to SET GLOBAL, and to read the server's status (docs/tune.md).
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// Print what would be changed, and change nothing
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub dry_run: bool,
    /// Tuning mode
    #[arg(long, value_enum, default_value = "steady")]
    pub mode: ModeWord,
    /// Time between samples
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = value::bound)]
    pub interval: Duration,
    /// Stop after this time [default: at SIGINT or SIGTERM]
    #[arg(long, visible_alias = "max-time", value_name = "TIME", value_parser = value::bound)]
    pub time: Option<Duration>,
    /// Bounds of settings, the set-point and the read latency to keep, in TOML (docs/tune.md)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The checkpoint age to hold, in percent of the max checkpoint age
    #[arg(long, value_name = "PCT", value_parser = value::percent)]
    pub set_point: Option<u8>,
    /// Delay writers by innodb_max_purge_lag when the device cannot keep up
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub allow_delay: bool,
    /// Serve metrics for Prometheus at http://ADDR:PORT/metrics; a port alone means localhost
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
