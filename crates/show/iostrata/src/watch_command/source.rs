//! A target that is watched: who samples it, and its host.

use std::path::Path;
use std::time::Duration;

use iostrata_change::{ServerSetting, ServerToken};
use iostrata_database::target::{
    Sampler, SessionWaits, StallSnapshot, StatementDigest, Target, TargetError, TargetFacts,
    TargetSample, Trouble,
};
use iostrata_database::watch::{TimedSample, WatchStep};
use iostrata_embedded::PublishedSampler;
use iostrata_run::{ManagedService, SettingOrigin, SettingSource, WatchTarget};
use iostrata_server::{COUNTER, ON, ServerAddress, ServerTarget};
use iostrata_study::SamplePace;

use super::recorder::{ObservedTarget, TargetHost};
use crate::args::WatchArgs;
use crate::exit_error::ExitError;
use crate::grants::Grants;
use crate::server_group::{CLAIM, GroupSet, ServerGroup, managed_service, one};
use crate::test_database::{ending, server_address};

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

/// A target that is watched.
pub struct Source {
    sampler: Box<dyn Sampler>,
    observed: ObservedTarget,
}

impl Source {
    /// Connects to a target, or finds the page that it publishes. Where servers are known that are
    /// set meanwhile, it has to be one of them.
    ///
    /// # Errors
    /// What is no target, does not answer, or reports nothing; another server.
    pub fn open(target: &str, args: &WatchArgs, known: &[ServerToken]) -> Result<Self, ExitError> {
        if let Some(dir) = target.strip_prefix("engine:") {
            return Self::engine(Path::new(dir));
        }
        if !target.starts_with("mysql://") {
            return Err(ExitError::Usage(format!(
                "{}: not a target; write mysql://user@host:port or engine:DIR",
                target.split(':').next().unwrap_or_default()
            )));
        }
        let credentials = args.login.credentials();
        let address = server_address(target, &credentials, "")?;
        if address.hosts.len() > 1 {
            return Err(ExitError::Usage(format!(
                "{address}: each server is a separate target; name {} targets",
                address.hosts.len()
            )));
        }
        let is_local = address.is_local();
        let opened = match known {
            [] => ServerTarget::open(address.clone(), None),
            [known @ .., last] => ServerTarget::open_one(address.clone()).and_then(|server| {
                match known.iter().any(|one| server.is_at(one).is_ok()) {
                    true => Ok(server),
                    false => server.is_at(last).map(|()| server),
                }
            }),
        };
        let server = match opened {
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
        let host = TargetHost::of_server(&facts, is_local);
        let mut source = Self::of(sampler, &facts, host);
        // Users who may not see it get no note about it.
        let origins = server.setting_origins().ok().flatten().unwrap_or_default();
        let target = &mut source.observed.target;
        target.tuner = server.claimed_by(CLAIM).ok().flatten();
        target.changed_settings = changed(origins, target);
        Ok(source)
    }

    fn engine(dir: &Path) -> Result<Self, ExitError> {
        let sampler = PublishedSampler::open(dir).map_err(ending)?;
        let facts = sampler.facts();
        Ok(Self::of(Box::new(sampler), &facts, TargetHost::of_engine(dir)))
    }

    /// A server that does not answer yet. What it is stays unknown when it does.
    fn away(address: ServerAddress, error: TargetError) -> Self {
        let target = WatchTarget {
            name: address.to_string(),
            flavour: "unknown".to_owned(),
            missing: vec![format!("answer: {error}; it is queried again")],
            ..WatchTarget::default()
        };
        let sampler = Box::new(AwaitedSampler { address, refused: Some(error), sampler: None });
        Self { sampler, observed: ObservedTarget::new(target, TargetHost::default()) }
    }

    fn of(sampler: Box<dyn Sampler>, facts: &TargetFacts, host: TargetHost) -> Self {
        Self { sampler, observed: ObservedTarget::new(target_of(facts), host) }
    }

    /// What it is, as far as it is known.
    pub fn target(&self) -> &WatchTarget {
        &self.observed.target
    }

    /// Takes a sample at once.
    pub fn take(&mut self, pace: &SamplePace) -> WatchStep {
        let asked = pace.ask(self.sampler.as_mut());
        self.taken(asked)
    }

    /// Takes a sample once it is due; nothing where `wait` returns that it is over.
    pub fn next(
        &mut self,
        pace: &mut SamplePace,
        wait: impl FnOnce(Duration) -> bool,
    ) -> Option<WatchStep> {
        let asked = pace.next(self.sampler.as_mut(), wait)?;
        Some(self.taken(asked))
    }

    fn taken(&mut self, asked: TimedSample) -> WatchStep {
        let mut watched = self.observed.take(asked);
        self.observed.explain(&mut watched, self.sampler.as_mut());
        self.observed.look_at_stall(&mut watched, self.sampler.as_mut());
        watched
    }

    /// Adds what the target does not report, once it was sampled.
    pub fn note_missing(&mut self) {
        let missing = self.sampler.missing().into_iter().chain(self.observed.missing_of_host());
        self.observed.target.missing.extend(missing.collect::<Vec<String>>());
    }
}

/// The kept settings that were changed since the start. Counters that watching switches on are no
/// setting.
fn changed(origins: Vec<SettingOrigin>, target: &WatchTarget) -> Vec<SettingOrigin> {
    let is_changed = |one: &SettingOrigin| {
        one.source == SettingSource::Changed
            && target.settings.contains_key(&one.name)
            && !one.name.starts_with("innodb_monitor_")
    };
    origins.into_iter().filter(is_changed).collect()
}

/// Whether a server may be there later.
fn is_away(error: &TargetError) -> bool {
    matches!(error.trouble, Trouble::Gone | Trouble::Retry)
}

/// A server that is connected to once it answers.
struct AwaitedSampler {
    address: ServerAddress,
    /// Its first error, until that was reported.
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

    fn session_waits(&mut self) -> Option<SessionWaits> {
        self.sampler.as_mut()?.session_waits()
    }

    fn stall_snapshot(&mut self) -> Option<StallSnapshot> {
        self.sampler.as_mut()?.stall_snapshot()
    }

    fn statements_since(&mut self) -> Option<(Vec<StatementDigest>, f64)> {
        self.sampler.as_mut()?.statements_since()
    }

    fn missing(&self) -> Vec<String> {
        self.sampler.as_ref().map(|sampler| sampler.missing()).unwrap_or_default()
    }
}

/// What a server is, with the settings that are worth keeping.
pub fn target_of(facts: &TargetFacts) -> WatchTarget {
    // By what a service is known is kept of its servers, and of no others.
    let is_managed = managed_service(facts).is_some();
    let is_kept = |name: &str| {
        facts.flavour == "engine"
            || name.starts_with("innodb_")
            || KEPT.contains(&name)
            || (is_managed && ManagedService::is_sign(name))
    };
    let identity = facts.identity(is_kept);
    WatchTarget {
        name: identity.name,
        flavour: identity.flavour,
        version: identity.version,
        settings: identity.settings.into_iter().collect(),
        ..WatchTarget::default()
    }
}

/// Counters that were switched on; dropped, they are off again.
pub struct EnabledCounters {
    groups: Vec<ServerGroup>,
    /// The servers.
    pub servers: Vec<ServerToken>,
}

impl EnabledCounters {
    /// Switches on what is off, on every server that is named.
    ///
    /// # Errors
    /// A server that does not answer, or does not let this user do so.
    pub fn enable(args: &WatchArgs) -> Result<Self, ExitError> {
        let credentials = args.login.credentials();
        let mut enabled = Self { groups: Vec::new(), servers: Vec::new() };
        for target in args.targets.iter().filter(|target| target.starts_with("mysql://")) {
            let address = server_address(target, &credentials, "")?;
            let server = ServerTarget::open_one(address.clone()).map_err(ending)?;
            let off = server.counters_off().map_err(ending)?;
            let names: Vec<String> = off.iter().map(|name| format!("{COUNTER}{name}")).collect();
            let on: Vec<ServerSetting> =
                names.iter().map(|name| ServerSetting::new(name, ON)).collect();
            let mut group = ServerGroup::new(&address)?;
            if !on.is_empty() {
                let may_set = Grants::of(&server)?.set_global();
                may_set.map_err(|why| ExitError::Usage(format!("--enable-counters: {why}")))?;
                group.begin(names, one(&server)?)?;
                let set = group.set(&on);
                // What was begun is put back with it, also where it was refused.
                enabled.groups.push(group);
                match set.map_err(|error| refused(&error))? {
                    GroupSet::Took(_) => {}
                    GroupSet::NoAnswer(why) => return Err(refused(&why)),
                    GroupSet::Others | GroupSet::Restarted => {
                        return Err(refused(&"the server changed in the meantime"));
                    }
                }
            }
            enabled.servers.push(one(&server)?.clone());
        }
        Ok(enabled)
    }

    /// Switches them off again.
    ///
    /// # Errors
    /// What stays on, with the reason.
    pub fn put_back(mut self) -> Result<(), ExitError> {
        let backs: Vec<_> = self.groups.iter_mut().map(ServerGroup::put_back).collect();
        backs.into_iter().try_for_each(|back| back.map(drop))
    }
}

fn refused(error: &dyn std::fmt::Display) -> ExitError {
    ExitError::NotHere(format!(
        "--enable-counters: {error}; it needs PROCESS and SYSTEM_VARIABLES_ADMIN (MySQL from 8.0) \
         or SUPER"
    ))
}
