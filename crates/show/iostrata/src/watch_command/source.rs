//! A target that is watched: who samples it, and the device below its data.

use std::path::Path;
use std::time::Instant;

use iostrata_embedded::PublishedSampler;
use iostrata_host::{DevicesBelow, Root};
use iostrata_run::host::Iostat;
use iostrata_run::{WatchDevice, WatchTarget};
use iostrata_server::{Credentials, ServerAddress, ServerTarget};
use iostrata_target::{Sampler, Target, TargetError, TargetFacts, TargetSample, Trouble};
use iostrata_watch::{TimedSample, Watch, Watched};

use crate::args::WatchArgs;
use crate::database_command::{ending, server_address};
use crate::exit_error::ExitError;

/// Settings of a server that are kept besides those of its storage engine.
const KEPT: [&str; 9] = [
    "binlog_format",
    "datadir",
    "log_bin",
    "max_connections",
    "performance_schema",
    "read_only",
    "sync_binlog",
    "version",
    "version_comment",
];
/// A file that every data directory of InnoDB holds.
const SYSTEM_FILE: &str = "ibdata1";

/// A target that is watched.
pub struct Source {
    sampler: Box<dyn Sampler>,
    watch: Watch,
    device: Option<DevicesBelow>,
    /// What it is, as far as it is known.
    pub target: WatchTarget,
}

impl Source {
    /// Connects to a target, or finds the page that it publishes.
    ///
    /// # Errors
    /// What is no target, does not answer, or tells nothing.
    pub fn open(target: &str, args: &WatchArgs) -> Result<Self, ExitError> {
        if let Some(dir) = target.strip_prefix("engine:") {
            return Self::engine(Path::new(dir));
        }
        if !target.starts_with("mysql://") {
            return Err(ExitError::Usage(format!(
                "{}: write mysql://user@host:port or engine:DIR",
                target.split(':').next().unwrap_or_default()
            )));
        }
        let credentials = Credentials { defaults_file: args.defaults_file.clone() };
        let address = server_address(target, &credentials, "")?;
        if address.hosts.len() > 1 {
            return Err(ExitError::Usage(format!(
                "{address}: each server is watched by itself; name {} targets",
                address.hosts.len()
            )));
        }
        let is_local = address.is_local();
        let server = match ServerTarget::open(address.clone(), None) {
            // Others are watched meanwhile.
            Err(error) if args.targets.len() > 1 && is_away(&error) => {
                return Ok(Self::away(address, error));
            }
            opened => opened.map_err(ending)?,
        };
        let facts = server.facts().map_err(ending)?;
        let Some(sampler) = server.sampler().map_err(ending)? else {
            return Err(ExitError::NotHere(format!(
                "{}: {} {} has no InnoDB to watch; name a MySQL, MariaDB or Percona Server",
                facts.name, facts.flavour, facts.version
            )));
        };
        let device = device_of(&facts, is_local);
        Ok(Self::of(sampler, &facts, device))
    }

    fn engine(dir: &Path) -> Result<Self, ExitError> {
        let sampler = PublishedSampler::open(dir).map_err(ending)?;
        let facts = sampler.facts();
        Ok(Self::of(Box::new(sampler), &facts, devices_below(dir)))
    }

    /// A server that does not answer yet. What it is stays unknown when it does.
    fn away(address: ServerAddress, error: TargetError) -> Self {
        let target = WatchTarget {
            name: address.to_string(),
            flavour: "unknown".to_owned(),
            missing: vec![format!("answer: {error}; it is asked again")],
            ..WatchTarget::default()
        };
        let sampler = Box::new(AwaitedSampler { address, refused: Some(error), sampler: None });
        Self { sampler, watch: Watch::default(), device: None, target }
    }

    fn of(sampler: Box<dyn Sampler>, facts: &TargetFacts, device: Option<DevicesBelow>) -> Self {
        Self { sampler, watch: Watch::default(), device, target: target_of(facts) }
    }

    /// Takes a sample; `began` is when watching did.
    pub fn take(&mut self, began: Instant) -> Watched {
        let before = began.elapsed();
        let sample = self.sampler.sample();
        let sample_us = (began.elapsed().saturating_sub(before)).as_secs_f64() * 1e6;
        let device = self.device.as_mut().and_then(since_last);
        self.watch.take(TimedSample { at_s: before.as_secs_f64(), sample, sample_us, device })
    }

    /// Says what the target does not tell, once it was asked.
    pub fn note_missing(&mut self) {
        self.target.missing.extend(self.sampler.missing());
        if self.device.is_none() {
            let text = "device: the data does not lie on a counted device of this host";
            self.target.missing.push(text.to_owned());
        }
    }
}

/// Whether a server may be there later.
fn is_away(error: &TargetError) -> bool {
    matches!(error.trouble, Trouble::Gone | Trouble::Retry)
}

/// A server that is connected to once it answers.
struct AwaitedSampler {
    address: ServerAddress,
    /// What it said first, until that was told.
    refused: Option<TargetError>,
    sampler: Option<Box<dyn Sampler>>,
}

impl Sampler for AwaitedSampler {
    fn sample(&mut self) -> Result<TargetSample, TargetError> {
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        let sampler = match &mut self.sampler {
            Some(sampler) => sampler,
            none => {
                let server = ServerTarget::open(self.address.clone(), None)?;
                let sampler = server.sampler()?.ok_or_else(|| {
                    let text = "it has no InnoDB to watch".to_owned();
                    let fix = "name a MySQL, MariaDB or Percona Server";
                    TargetError::not_ready(&self.address.to_string(), "innodb", text, fix)
                })?;
                none.insert(sampler)
            }
        };
        sampler.sample()
    }

    fn missing(&self) -> Vec<String> {
        self.sampler.as_ref().map(|sampler| sampler.missing()).unwrap_or_default()
    }
}

/// The devices below a server's data, where they are on this host.
pub fn device_of(facts: &TargetFacts, is_local: bool) -> Option<DevicesBelow> {
    let data_dir = facts.settings.iter().find(|(name, _)| name == "datadir");
    let data_dir = data_dir.map(|(_, dir)| Path::new(dir)).filter(|_| is_local);
    data_dir.filter(|dir| dir.join(SYSTEM_FILE).exists()).and_then(devices_below)
}

/// What they did since they were last looked at.
pub fn since_last(below: &mut DevicesBelow) -> Option<WatchDevice> {
    let name = below.name();
    below.since_last().map(|delta| of_device(name, &Iostat::of(&delta)))
}

/// What a server is, with the settings that are worth keeping.
pub fn target_of(facts: &TargetFacts) -> WatchTarget {
    let is_kept = |name: &str| {
        facts.flavour == "engine" || name.starts_with("innodb_") || KEPT.contains(&name)
    };
    let identity = facts.identity(is_kept);
    WatchTarget {
        name: identity.name,
        flavour: identity.flavour,
        version: identity.version,
        settings: identity.settings.into_iter().collect(),
        missing: Vec::new(),
    }
}

fn devices_below(dir: &Path) -> Option<DevicesBelow> {
    DevicesBelow::of(&Root::system(), dir).ok().flatten()
}

fn of_device(name: String, iostat: &Iostat) -> WatchDevice {
    WatchDevice {
        name,
        reads_per_s: iostat.reads_per_s,
        writes_per_s: iostat.writes_per_s,
        flushes_per_s: iostat.flushes_per_s,
        read_ms: iostat.read_await_ms,
        write_ms: iostat.write_await_ms,
        in_flight: iostat.queue_size,
    }
}
