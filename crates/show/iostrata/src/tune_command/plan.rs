//! What the arguments and the configuration come to.

use std::time::Duration;

use iostrata_database::tune::{TuneConfig, TuneMode};
use iostrata_linux::host::{Root, device_facts};
use iostrata_run::WatchDevice;
use iostrata_run::host::DeviceFacts;
use iostrata_server::ServerAddress;

use crate::args::{ModeWord, TuneArgs};
use crate::exit_error::ExitError;
use crate::test_database::server_address;

/// The shortest time between two looks: averages of the server are those of whole seconds.
const INTERVAL_LEAST: Duration = Duration::from_millis(200);
/// The longest: the claim is checked as often, and its server ends an idle one.
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
                &"engine:DIR: the embedded engine controls its checkpoint age itself; tune is for \
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

/// A mean read that takes longer, in milliseconds, seeks; and so many reads make a mean.
const SEEK_MS: f64 = 1.0;
const READS_MIN: f64 = 100.0;
/// Kinds of connection to a disk for which the flag is meaningless.
const VIRTUAL: [&str; 4] = ["virtio", "xen", "hyperv", "virtual"];

/// Reads of a disk so far.
#[derive(Default)]
pub struct SeenDisk {
    /// Whether it turns, where that is known; checked once.
    turns: Option<Option<bool>>,
    reads: f64,
    read_ms: f64,
}

impl SeenDisk {
    /// Takes in what a device did for some seconds.
    pub fn take(&mut self, device: &WatchDevice, seconds: f64) {
        self.turns.get_or_insert_with(|| {
            let root = Root::system();
            turns(device.name.split('+').map(|name| device_facts(&root, name)))
        });
        if let Some(ms) = device.read_ms {
            self.reads += device.reads_per_s * seconds;
            self.read_ms += ms * device.reads_per_s * seconds;
        }
    }

    /// Whether it seeks, where that is known.
    pub fn seeks(&self) -> Option<bool> {
        let is_slow = (self.reads >= READS_MIN).then_some(self.read_ms > SEEK_MS * self.reads);
        match (self.turns.flatten(), is_slow) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), _) | (None, Some(false)) => Some(false),
            (None, None) => None,
        }
    }
}

/// Whether any of these disks turns.
fn turns(disks: impl Iterator<Item = DeviceFacts>) -> Option<bool> {
    let flag = |disk: DeviceFacts| {
        let is_virtual = disk.transport.as_deref().is_some_and(|way| VIRTUAL.contains(&way));
        disk.rotational_flag.filter(|turns| !(is_virtual && *turns))
    };
    disks.map(flag).try_fold(false, |any, one| Some(any || one?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeks(turns: Option<bool>, reads: f64, ms: f64) -> Option<bool> {
        let mut disk = SeenDisk { turns: Some(turns), ..SeenDisk::default() };
        let device =
            WatchDevice { reads_per_s: reads, read_ms: Some(ms), ..WatchDevice::default() };
        disk.take(&device, 2.0);
        disk.seeks()
    }

    #[test]
    fn a_disk_that_turns_or_is_slow_seeks() {
        assert_eq!(seeks(Some(true), 500.0, 0.1), Some(true), "what is read in order is fast");
        assert_eq!(seeks(Some(false), 500.0, 8.0), Some(true));
        assert_eq!(seeks(Some(false), 500.0, 0.1), Some(false));
        assert_eq!(seeks(Some(false), 1.0, 8.0), Some(false), "a read tells nothing");
        assert_eq!(seeks(None, 500.0, 0.1), Some(false));
        assert_eq!(seeks(None, 1.0, 0.1), None);
    }

    #[test]
    fn the_flag_of_a_virtual_disk_says_nothing() {
        let disk = |way: &str, turns: bool| DeviceFacts {
            transport: Some(way.to_owned()),
            rotational_flag: Some(turns),
            ..DeviceFacts::default()
        };
        let of = |disks: &[DeviceFacts]| turns(disks.iter().cloned());
        assert_eq!(of(&[disk("ata", true)]), Some(true));
        assert_eq!(of(&[disk("nvme", false)]), Some(false));
        assert_eq!(of(&[disk("virtio", true)]), None);
        assert_eq!(of(&[disk("virtio", false)]), Some(false));
        assert_eq!(of(&[disk("nvme", false), disk("ata", true)]), Some(true));
        assert_eq!(of(&[DeviceFacts::default()]), None);
    }
}
