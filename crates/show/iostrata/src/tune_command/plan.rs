//! What the arguments and the configuration come to.

use std::time::Duration;

use iostrata_database::tune::{TuneConfig, TuneMode};
use iostrata_server::ServerAddress;

use crate::args::{ModeWord, TuneArgs};
use crate::exit_error::ExitError;
use crate::test_database::server_address;

/// The shortest time between two looks: averages of the server are those of whole seconds.
const INTERVAL_LEAST: Duration = Duration::from_millis(200);
/// The longest: the claim is asked for as often, and its server ends one that is silent.
const INTERVAL_MOST: Duration = Duration::from_secs(10);

/// A server, and how it is tuned.
#[derive(Clone, Debug)]
pub struct TunePlan {
    /// The server, with all that is needed to log in.
    pub address: ServerAddress,
    /// How it is tuned.
    pub mode: TuneMode,
    /// What is allowed.
    pub config: TuneConfig,
    /// Time between two looks.
    pub interval: Duration,
    /// Time after which it ends.
    pub time: Option<Duration>,
    /// Whether nothing is changed.
    pub is_dry: bool,
}

impl TunePlan {
    /// Of the arguments.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn of(args: &TuneArgs) -> Result<Self, ExitError> {
        let usage = |error: &dyn std::fmt::Display| ExitError::Usage(error.to_string());
        if args.target.starts_with("engine:") {
            return Err(usage(
                &"engine:DIR: the embedded engine holds its checkpoint age by itself; tune is for \
                  servers (mysql://user@host:port)",
            ));
        }
        let credentials = args.login.credentials();
        let address = server_address(&args.target, &credentials, "")?;
        if address.hosts.len() > 1 {
            let hosts = address.hosts.len();
            return Err(usage(&format!(
                "{hosts} hosts: one tune controls one server; name one host"
            )));
        }
        if !(INTERVAL_LEAST..=INTERVAL_MOST).contains(&args.interval) {
            let found = iostrata_stats::units::seconds(args.interval.as_secs_f64());
            return Err(usage(&format!("--interval {found}: use 200ms to 10s")));
        }
        let mode = match args.mode {
            ModeWord::Steady => TuneMode::Steady,
            ModeWord::AutoRaise => TuneMode::AutoRaise,
        };
        Ok(Self {
            address,
            mode,
            config: config(args)?,
            interval: args.interval,
            time: args.time,
            is_dry: args.dry_run,
        })
    }
}

fn config(args: &TuneArgs) -> Result<TuneConfig, ExitError> {
    let mut config = TuneConfig::default();
    if let Some(path) = &args.config {
        let wrong = |error: &dyn std::fmt::Display| {
            ExitError::Usage(format!("--config {}: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        config = TuneConfig::parse(&text).map_err(|error| wrong(&error))?;
    }
    if let Some(pct) = args.set_point {
        if !(10..=95).contains(&pct) {
            return Err(ExitError::Usage(format!("--set-point {pct}: use 10 to 95")));
        }
        config.set_point_pct = f64::from(pct);
    }
    config.allow_delay |= args.allow_delay;
    Ok(config)
}
