//! A server that is tuned, from one connection to its loss or the end.
//!
//! Invariant: a server that is not known for sure is refused before anything is changed.

use iostrata_change::ServerToken;
use iostrata_database::target::{Sampler, Target, TargetError, TargetFacts, TargetSample, Trouble};
use iostrata_database::tune::{Controller, Generation, Lever, LeverValues, Missing, Move};
use iostrata_run::TunedSetting;
use iostrata_server::{Claim, ServerTarget};
use iostrata_study::SamplePace;

use super::plan::TunePlan;
use super::record::Narrator;
use super::record::{TuneRecord, look};
use super::settings::{Set, TuneSettings};
use crate::exit_error::ExitError;
use crate::server_group::{Preconditions, claim, claimed, no_primary, one, refused};
use crate::signals::pause;
use crate::test_database::ending;

/// Seconds between two lines of status; settings are checked then, too.
const STATUS_S: f64 = 10.0;

/// How it ended.
pub enum SessionEnd {
    /// On request, or its time was over.
    Asked,
    /// The server does not answer, or is another one; the error.
    Lost(String),
}

/// A server that is tuned.
pub struct TuneSession {
    target: ServerTarget,
    /// The facts that it reported at the beginning.
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
        let target = ServerTarget::open_one(plan.address.clone()).map_err(ending)?;
        let version = target.version();
        let generation = Generation::of(version.flavour.word(), version.numbers)
            .map_err(|error| ExitError::Usage(error.to_string()))?;
        let facts = target.facts().map_err(ending)?;
        let preconditions = Preconditions::of(&target, &facts)?;
        preconditions
            .member
            .iter()
            .for_each(|one| narrator.say(&format!("{} is {one}", facts.name)));
        match plan.is_dry {
            true => {
                preconditions.obstacles.iter().for_each(|why| narrator.obstacle(why));
                claimed(&target)?.iter().for_each(|why| narrator.obstacle(why));
            }
            false => preconditions.refuse(&facts)?,
        }
        let present = told(&facts);
        if present.get(Lever::IoCapacity).is_none() {
            return Err(refused(&facts, "it shows no innodb_io_capacity; is InnoDB off?"));
        }
        let sampler = target.sampler().map_err(ending)?;
        let mut sampler = sampler.ok_or_else(|| refused(&facts, "it has no InnoDB"))?;
        let sample = sampler.sample().map_err(ending)?;
        let mut controller =
            Controller::new(generation, plan.mode, plan.config.clone(), present.clone());
        let look = look(at_s, &sample, &present);
        controller.step(&look).map_err(|error| untold(&facts, &error, sampler.as_ref()))?;
        let claim = if plan.is_dry { None } else { Some(claim(&target, &facts)?) };
        if preconditions.is_settable {
            settings.lease(plan, (&facts, &preconditions.grants), narrator);
        }
        settings.begin(&present, one(&target)?, narrator)?;
        Ok(Self { target, facts, claim, sampler, controller, present, first: sample })
    }

    /// Which server it is.
    pub fn one(&self) -> Option<&ServerToken> {
        self.target.one()
    }

    /// Tunes until it is over or the server is lost.
    ///
    /// # Errors
    /// When the server refuses a setting, or no longer reports what is needed.
    pub fn run(
        mut self,
        plan: &TunePlan,
        settings: &mut TuneSettings,
        (narrator, record): (&Narrator<'_>, &mut TuneRecord<'_>),
        is_over: &dyn Fn() -> bool,
    ) -> Result<SessionEnd, ExitError> {
        let first = record.start().elapsed() + plan.interval;
        let mut pace = SamplePace::new(record.start(), plan.interval, first);
        let mut status_s = record.at_s() + STATUS_S;
        self.note_commits(record, None);
        let wait = |time| {
            pause(time, is_over);
            !is_over()
        };
        loop {
            let Some(asked) = pace.next(self.sampler.as_mut(), wait) else {
                let is_active = record.is_active();
                self.note_commits(record, Some(is_active));
                record.note_missing(self.sampler.missing());
                return Ok(SessionEnd::Asked);
            };
            let sample = match &asked.sample {
                Ok(sample) => *sample,
                Err(error) => return lost(error.clone()),
            };
            if sample.was_restarted_since(&self.first) {
                return Ok(restarted());
            }
            record.take(asked);
            if let Some(lost) = self.step(plan, settings, &sample, (narrator, record))? {
                return Ok(lost);
            }
            let was_active = record.is_active();
            if record.stepped(&self.controller, (&self.present, settings.has_lease())) {
                self.note_commits(record, Some(was_active));
            }
            if record.at_s() >= status_s {
                status_s += STATUS_S;
                let (vitals, rest) = (self.controller.vitals(), self.controller.rest());
                narrator.status(record.at_s(), vitals, record.tps_recent(), rest);
                if let Some(lost) = self.look_around(plan, settings, narrator)? {
                    return Ok(lost);
                }
            }
        }
    }

    fn note_commits(&mut self, record: &mut TuneRecord<'_>, are_tuned: Option<bool>) {
        let times = self.claim.as_mut().and_then(Claim::commit_times);
        record.committed(times, are_tuned);
    }

    /// One step: what the controller wants is done.
    fn step(
        &mut self,
        plan: &TunePlan,
        settings: &mut TuneSettings,
        sample: &TargetSample,
        (narrator, record): (&Narrator<'_>, &mut TuneRecord<'_>),
    ) -> Result<Option<SessionEnd>, ExitError> {
        let look = record.look(sample, &self.present);
        // What the server has now is what it goes back to.
        let would_begin = self.controller.would_begin(&look);
        if would_begin.map_err(|error| self.untold(&error))?
            && let Some(lost) = self.look_around(plan, settings, narrator)?
        {
            return Ok(Some(lost));
        }
        let look = record.look(sample, &self.present);
        let moves = self.controller.step(&look);
        let moves = moves.map_err(|error| self.untold(&error))?;
        // It is there before anything is set, and until everything went back.
        let held = match self.controller.is_active() {
            true => settings.hold(narrator)?,
            false => Set::Took(LeverValues::default()),
        };
        let set = match held {
            Set::Took(_) if moves.is_empty() => return Ok(None),
            Set::Took(_) => settings.set(&moves)?,
            other => other,
        };
        let took = match set {
            Set::Took(took) => took,
            Set::Restarted => return Ok(Some(restarted())),
            Set::NoAnswer(why) => return Ok(Some(SessionEnd::Lost(why))),
            Set::Others => {
                return match settings.ran_out() {
                    Some(why) => Ok(Some(SessionEnd::Lost(why))),
                    None => self.look_around(plan, settings, narrator),
                };
            }
        };
        if !self.controller.is_active() {
            settings.release()?;
        }
        for one in moves {
            self.moved(one, &took, plan.is_dry, (narrator, record));
        }
        // A server changes the other capacity with the one.
        let ours = took.iter().filter(|(lever, _)| !self.controller.has_left(*lever));
        ours.for_each(|(lever, now)| self.present.set(lever, now));
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

    /// Checks what others have changed: the settings, the server's role, the claim.
    ///
    /// # Errors
    /// When it is not written to any more, or the settings cannot be put back.
    fn look_around(
        &mut self,
        plan: &TunePlan,
        settings: &mut TuneSettings,
        narrator: &Narrator<'_>,
    ) -> Result<Option<SessionEnd>, ExitError> {
        if plan.is_dry {
            return Ok(None);
        }
        let seen = match self.ask_around(narrator) {
            Ok(seen) => seen,
            Err(error) => return lost(error).map(Some),
        };
        if let Some(why) = seen.replica {
            return Err(ExitError::NotHere(format!("{}: {}", self.facts.name, no_primary(&why))));
        }
        let is_theirs =
            |(lever, now): &(Lever, f64)| self.present.get(*lever).is_some_and(|ours| ours != *now);
        let theirs: Vec<(Lever, f64)> = seen.settings.iter().filter(is_theirs).collect();
        if theirs.is_empty() || self.controller.has_ended() {
            return Ok(None);
        }
        let taken = match self.controller.is_active() {
            true => self.leave(&theirs, settings, narrator),
            false => self.renew(&theirs, settings, narrator),
        };
        seen.settings.iter().for_each(|(lever, now)| self.present.set(lever, now));
        match taken {
            Ok(()) => Ok(None),
            Err(ExitError::NoAnswer(why)) => Ok(Some(SessionEnd::Lost(why))),
            Err(error) => Err(error),
        }
    }

    /// Queries the server on the connection of the claim: it answers also when no other connection
    /// is left.
    fn ask_around(&mut self, narrator: &Narrator<'_>) -> Result<ServerLook, TargetError> {
        let Some(claim) = &mut self.claim else {
            let replica = self.target.role()?.replica;
            return Ok(ServerLook { settings: told(&self.target.facts()?), replica });
        };
        let settings = levers(&claim.engine_variables()?);
        let replica = claim.role()?.replica;
        if !claim.holds()? {
            narrator.say("the server has dropped the claim that keeps other tuners away");
            self.claim = None;
        }
        Ok(ServerLook { settings, replica })
    }

    /// Leaves what another user has set while the server is tuned, and gives everything back where
    /// the rest is not safe without it.
    fn leave(
        &mut self,
        theirs: &[(Lever, f64)],
        settings: &mut TuneSettings,
        narrator: &Narrator<'_>,
    ) -> Result<(), ExitError> {
        for (lever, now) in theirs {
            self.controller.leave(*lever);
            settings.leave(*lever);
            let left = match self.controller.has_ended() {
                true => {
                    "all other settings go back, and nothing is set until tune is started again"
                }
                false => "so it is left alone from now on",
            };
            narrator.say(&format!("{}; {left}", self.set_by_other(*lever, *now)));
            if self.controller.has_ended() {
                return settings.give_up().map(drop);
            }
        }
        Ok(())
    }

    /// What another user has set while the server had its own settings is one of these now.
    fn renew(
        &mut self,
        theirs: &[(Lever, f64)],
        settings: &mut TuneSettings,
        narrator: &Narrator<'_>,
    ) -> Result<(), ExitError> {
        let mut own = self.present.clone();
        for (lever, now) in theirs {
            narrator.say(&format!("{}; it goes back to that", self.set_by_other(*lever, *now)));
            own.set(*lever, *now);
        }
        settings.give_up()?;
        settings.begin(&own, one(&self.target)?, narrator)?;
        self.controller.renew(own);
        Ok(())
    }

    fn untold(&self, missing: &Missing) -> ExitError {
        untold(&self.facts, missing, self.sampler.as_ref())
    }

    fn set_by_other(&self, lever: Lever, now: f64) -> String {
        let was = self.present.get(lever).map_or_else(String::new, |was| lever.text(was));
        format!("{} is {}, was {was}: set by another client", lever.name(), lever.text(now))
    }
}

/// What a look at the server found.
struct ServerLook {
    settings: LeverValues,
    /// Why others write it.
    replica: Option<String>,
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

/// The settings that a server has reported.
fn told(facts: &TargetFacts) -> LeverValues {
    levers(facts.settings.iter().map(|(name, value)| (name, value)))
}

/// What the server does not report, with the missing privilege where that is why.
fn untold(facts: &TargetFacts, missing: &Missing, sampler: &dyn Sampler) -> ExitError {
    let grant = sampler.missing().into_iter().find(|text| text.contains("GRANT "));
    let why = match grant {
        Some(grant) => format!("{missing}; {grant}"),
        None => missing.to_string(),
    };
    refused(facts, &why)
}
