//! A server that is tuned, from one connection to its loss or the end.
//!
//! Invariant: a server that is not known for sure is refused before anything is changed.

use std::time::Instant;

use iostrata_run::TunedSetting;
use iostrata_server::{Claim, ServerTarget};
use iostrata_target::{Sampler, Target, TargetError, TargetFacts, TargetSample, Trouble};
use iostrata_tune::{Controller, Generation, Lever, LeverValues, Look, Missing, Move};

use super::narrator::Narrator;
use super::plan::TunePlan;
use super::record::TuneRecord;
use super::settings::{Set, TuneSettings};
use crate::database_command::ending;
use crate::exit_error::ExitError;
use crate::server_rights::{claim, refuse_replica, refuse_without_rights, refused};
use crate::signals::pause;

/// Seconds between two lines of status; settings are looked at then, too.
const STATUS_S: f64 = 10.0;

/// How it ended.
pub enum SessionEnd {
    /// It was asked to, or its time was over.
    Asked,
    /// The server does not answer, or is another one; what it said.
    Lost(String),
}

/// A server that is tuned.
pub struct TuneSession {
    target: ServerTarget,
    /// What it said of itself at the beginning.
    pub facts: TargetFacts,
    claim: Option<Claim>,
    sampler: Box<dyn Sampler>,
    controller: Controller,
    present: LeverValues,
    /// The first sample: another start since is another server.
    pub first: TargetSample,
}

impl TuneSession {
    /// Connects, and makes sure that the server can be tuned. `at_s` is the time of the record.
    ///
    /// # Errors
    /// A server that is refused, with the reason; one that does not answer.
    pub fn begin(
        plan: &TunePlan,
        settings: &mut TuneSettings,
        narrator: &Narrator<'_>,
        at_s: f64,
    ) -> Result<Self, ExitError> {
        let target = ServerTarget::open(plan.address.clone(), None).map_err(ending)?;
        let version = target.version();
        let generation = Generation::of(version.flavour.word(), version.numbers)
            .map_err(|error| ExitError::Usage(error.to_string()))?;
        let facts = target.facts().map_err(ending)?;
        refuse_replica(&facts)?;
        refuse_without_rights(&target, &facts)?;
        let present = told(&facts);
        if present.get(Lever::IoCapacity).is_none() {
            return Err(refused(&facts, "it shows no innodb_io_capacity; is InnoDB off?"));
        }
        let sampler = target.sampler().map_err(ending)?;
        let mut sampler = sampler.ok_or_else(|| refused(&facts, "it has no InnoDB"))?;
        let sample = sampler.sample().map_err(ending)?;
        let mut controller =
            Controller::new(generation, plan.mode, plan.config.clone(), present.clone());
        let look = Look { now_us: micros(at_s), sample: &sample, present: &present, read_ms: None };
        controller.step(&look).map_err(|error| untold(&facts, &error, sampler.as_ref()))?;
        let claim = if plan.is_dry { None } else { Some(claim(&target, &facts)?) };
        settings.begin(&present, narrator)?;
        Ok(Self { target, facts, claim, sampler, controller, present, first: sample })
    }

    /// Tunes until it is over or the server is lost.
    ///
    /// # Errors
    /// When the server refuses a setting, or tells no longer what is needed.
    pub fn run(
        mut self,
        plan: &TunePlan,
        settings: &mut TuneSettings,
        (narrator, record): (&Narrator<'_>, &mut TuneRecord<'_>),
        is_over: &dyn Fn() -> bool,
    ) -> Result<SessionEnd, ExitError> {
        let mut due = Instant::now();
        let mut status_s = record.at_s() + STATUS_S;
        loop {
            due = (due + plan.interval).max(Instant::now());
            pause(due.saturating_duration_since(Instant::now()), is_over);
            if is_over() {
                record.note_missing(self.sampler.missing());
                return Ok(SessionEnd::Asked);
            }
            let asked = Instant::now();
            let sample = match self.sampler.sample() {
                Ok(sample) => sample,
                Err(error) => return lost(error),
            };
            if sample.was_restarted_since(&self.first) {
                return Ok(restarted());
            }
            record.take(&sample, asked.elapsed());
            if let Some(lost) = self.step(plan, settings, &sample, (narrator, record))? {
                return Ok(lost);
            }
            if record.at_s() >= status_s {
                status_s += STATUS_S;
                let (vitals, controls) = (self.controller.vitals(), self.controller.is_active());
                narrator.status(record.at_s(), vitals, record.tps_recent(), controls);
                if let Err(error) = self.look_around(plan, narrator) {
                    return lost(error);
                }
            }
        }
    }

    /// One step: what the controller wants is done.
    fn step(
        &mut self,
        plan: &TunePlan,
        settings: &mut TuneSettings,
        sample: &TargetSample,
        (narrator, record): (&Narrator<'_>, &mut TuneRecord<'_>),
    ) -> Result<Option<SessionEnd>, ExitError> {
        let now_us = micros(record.at_s());
        let look = Look { now_us, sample, present: &self.present, read_ms: record.read_ms() };
        let moves = self.controller.step(&look);
        let moves = moves.map_err(|error| untold(&self.facts, &error, self.sampler.as_ref()))?;
        if moves.is_empty() {
            return Ok(None);
        }
        let took = match settings.set(&moves)? {
            Set::Took(took) => took,
            Set::Restarted => return Ok(Some(restarted())),
            Set::NoAnswer(why) => return Ok(Some(SessionEnd::Lost(why))),
            Set::Others => {
                let seen = self.look_around(plan, narrator);
                return seen.map_or_else(|error| lost(error).map(Some), |()| Ok(None));
            }
        };
        for one in moves {
            self.moved(one, &took, plan.is_dry, (narrator, record));
        }
        // A server changes the other capacity with the one.
        took.iter().for_each(|(lever, now)| self.present.set(lever, now));
        Ok(None)
    }

    fn moved(
        &mut self,
        one: Move,
        took: &LeverValues,
        is_dry: bool,
        (narrator, record): (&Narrator<'_>, &mut TuneRecord<'_>),
    ) {
        let Move { lever, to, why } = one;
        let now = took.get(lever).unwrap_or(to);
        let from = self.present.get(lever).map_or_else(String::new, |from| lever.text(from));
        self.present.set(lever, now);
        let (t_s, name, to) = (record.at_s(), lever.name().to_owned(), lever.text(now));
        let one = TunedSetting { t_s, name, from, to, why };
        narrator.changed(&one, is_dry);
        if !is_dry {
            record.changed(one);
        }
    }

    /// Settings that somebody else has set meanwhile are left to them.
    fn look_around(&mut self, plan: &TunePlan, narrator: &Narrator<'_>) -> Result<(), TargetError> {
        if plan.is_dry {
            return Ok(());
        }
        let found = match &mut self.claim {
            // On its connection: a server that has no other left is looked at, too.
            Some(claim) => levers(&claim.engine_variables()?),
            None => told(&self.target.facts()?),
        };
        for (lever, now) in found.iter() {
            let Some(ours) = self.present.get(lever).filter(|ours| *ours != now) else { continue };
            narrator.say(&format!(
                "{} is {}, was set to {}: somebody else set it, so it is left alone from now on",
                lever.name(),
                lever.text(now),
                lever.text(ours),
            ));
            self.controller.leave(lever);
            self.present.set(lever, now);
        }
        let holds = self.claim.as_mut().map_or(Ok(true), Claim::holds)?;
        if !holds {
            narrator.say("the server has dropped the claim that keeps other tuners away");
            self.claim = None;
        }
        Ok(())
    }
}

fn restarted() -> SessionEnd {
    SessionEnd::Lost("the server was started again".to_owned())
}

fn lost(error: TargetError) -> Result<SessionEnd, ExitError> {
    match error.trouble {
        Trouble::Gone | Trouble::NotReady | Trouble::Retry => {
            Ok(SessionEnd::Lost(error.to_string()))
        }
        _ => Err(ending(error)),
    }
}

fn levers<'a>(told: impl IntoIterator<Item = (&'a String, &'a String)>) -> LeverValues {
    LeverValues::of(told.into_iter().map(|(name, value)| (name.as_str(), value.as_str())))
}

/// The settings that a server has told of itself.
fn told(facts: &TargetFacts) -> LeverValues {
    levers(facts.settings.iter().map(|(name, value)| (name, value)))
}

fn micros(at_s: f64) -> u64 {
    (at_s * 1e6) as u64
}

/// What the server does not tell, with the right that is missing where that is why.
fn untold(facts: &TargetFacts, missing: &Missing, sampler: &dyn Sampler) -> ExitError {
    let grant = sampler.missing().into_iter().find(|text| text.contains("GRANT "));
    let why = match grant {
        Some(grant) => format!("{missing}; {grant}"),
        None => missing.to_string(),
    };
    refused(facts, &why)
}
