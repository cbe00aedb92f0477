//! A server that is led, from one connection to its loss or the end.
//!
//! Invariant: a server that is not known for sure is refused before anything is changed.

use std::time::Instant;

use iostrata_run::TunedSetting;
use iostrata_server::{Claim, ServerTarget};
use iostrata_target::{Sampler, Target, TargetError, TargetFacts, TargetSample, Trouble};
use iostrata_tune::{Controller, Generation, Lever, LeverValues, Look, Move};

use super::hands::{Hands, Set};
use super::narrator::Narrator;
use super::plan::TunePlan;
use super::record::TuneRecord;
use crate::database_command::ending;
use crate::exit_error::ExitError;
use crate::server_rights::{claim, refuse_replica, refuse_without_rights, refused};
use crate::signals::pause;

/// Seconds between two lines of status; settings are looked at then, too.
const STATUS_S: f64 = 10.0;

/// How leading ended.
pub enum LeadEnd {
    /// It was asked to, or its time was over.
    Asked,
    /// The server does not answer, or is another one; what it said.
    Lost(String),
}

/// A server that is led.
pub struct Lead {
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

impl Lead {
    /// Connects, and makes sure that the server can be led.
    ///
    /// # Errors
    /// A server that is refused, with the reason; one that does not answer.
    pub fn begin(plan: &TunePlan, hands: &mut Hands) -> Result<Self, ExitError> {
        let target = ServerTarget::open(plan.address.clone(), None).map_err(ending)?;
        let version = target.version();
        let generation = Generation::of(version.flavour.word(), version.numbers)
            .map_err(|error| ExitError::Usage(error.to_string()))?;
        let facts = target.facts().map_err(ending)?;
        refuse_replica(&facts)?;
        refuse_without_rights(&target, &facts)?;
        let present = levers(&facts);
        if present.get(Lever::IoCapacity).is_none() {
            return Err(refused(&facts, "it shows no innodb_io_capacity; is InnoDB off?"));
        }
        let sampler = target.sampler().map_err(ending)?;
        let mut sampler = sampler.ok_or_else(|| refused(&facts, "it has no InnoDB"))?;
        let sample = sampler.sample().map_err(ending)?;
        let mut controller =
            Controller::new(generation, plan.mode, plan.config.clone(), present.clone());
        let look = Look { now_us: 0, sample: &sample, present: &present, read_ms: None };
        controller.step(&look).map_err(|error| refused(&facts, &error.to_string()))?;
        let claim = if plan.is_dry { None } else { Some(claim(&target, &facts)?) };
        hands.take_hold(&present)?;
        Ok(Self { target, facts, claim, sampler, controller, present, first: sample })
    }

    /// Leads until it is over or the server is lost.
    ///
    /// # Errors
    /// When the server refuses a setting, or tells no longer what is needed.
    pub fn run(
        mut self,
        plan: &TunePlan,
        hands: &mut Hands,
        (narrator, record): (&Narrator<'_>, &mut TuneRecord),
        is_over: &dyn Fn() -> bool,
    ) -> Result<LeadEnd, ExitError> {
        let mut due = Instant::now();
        let mut status_s = record.at_s() + STATUS_S;
        loop {
            due = (due + plan.interval).max(Instant::now());
            pause(due.saturating_duration_since(Instant::now()), is_over);
            if is_over() {
                record.note_missing(self.sampler.missing());
                return Ok(LeadEnd::Asked);
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
            if let Some(lost) = self.lead(plan, hands, &sample, (narrator, record))? {
                return Ok(lost);
            }
            if record.at_s() >= status_s {
                status_s += STATUS_S;
                let (vitals, leads) = (self.controller.vitals(), self.controller.is_leading());
                narrator.status(record.at_s(), vitals, record.tps_recent(), leads);
                if let Err(error) = self.look_around(plan, narrator) {
                    return lost(error);
                }
            }
        }
    }

    /// One step: what the controller wants is done.
    fn lead(
        &mut self,
        plan: &TunePlan,
        hands: &mut Hands,
        sample: &TargetSample,
        (narrator, record): (&Narrator<'_>, &mut TuneRecord),
    ) -> Result<Option<LeadEnd>, ExitError> {
        let now_us = (record.at_s() * 1e6) as u64;
        let look = Look { now_us, sample, present: &self.present, read_ms: record.read_ms() };
        let moves = self.controller.step(&look);
        let moves = moves.map_err(|error| refused(&self.facts, &error.to_string()))?;
        if moves.is_empty() {
            return Ok(None);
        }
        let took = match plan.is_dry {
            true => LeverValues::default(),
            false => match hands.set(&moves)? {
                Set::Took(took) => took,
                Set::Restarted => return Ok(Some(restarted())),
                Set::Others => {
                    let seen = self.look_around(plan, narrator);
                    return seen.map_or_else(|error| lost(error).map(Some), |()| Ok(None));
                }
            },
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
        (narrator, record): (&Narrator<'_>, &mut TuneRecord),
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
        let found = levers(&self.target.facts()?);
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

fn restarted() -> LeadEnd {
    LeadEnd::Lost("the server was started again".to_owned())
}

fn lost(error: TargetError) -> Result<LeadEnd, ExitError> {
    match error.trouble {
        Trouble::Gone | Trouble::NotReady | Trouble::Retry => Ok(LeadEnd::Lost(error.to_string())),
        _ => Err(ending(error)),
    }
}

fn levers(facts: &TargetFacts) -> LeverValues {
    LeverValues::of(facts.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}
