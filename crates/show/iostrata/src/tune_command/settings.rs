//! Settings of one server while it is tuned: moved as the controller asks, journalled, put back.

use std::time::Instant;

use iostrata_change::{Left, NO_EVENT, ServerSetting, ServerToken, ServerValues};
use iostrata_database::target::TargetFacts;
use iostrata_database::tune::{Lever, LeverValues, Move};

use super::lease::Lease;
use super::narrator::Narrator;
use super::plan::TunePlan;
use crate::exit_error::ExitError;
use crate::server_group::{GroupSet, ServerGroup};

/// Sets a server's settings and puts them back.
pub struct TuneSettings {
    group: ServerGroup,
    /// Its address, without secrets.
    server: String,
    is_dry: bool,
    lease: Option<Lease>,
}

/// What came of setting.
pub enum Set {
    /// What the server made of it, with the settings that moved along.
    Took(LeverValues),
    /// Nothing was set: somebody else has changed one of them.
    Others,
    /// Nothing was set: it is not the same running server any more.
    Restarted,
    /// It does not answer, or another one does, which it says; some may be set.
    NoAnswer(String),
}

impl Set {
    fn of(set: GroupSet) -> Self {
        match set {
            GroupSet::Took(took) => Self::Took(levers(&took)),
            GroupSet::Others => Self::Others,
            GroupSet::Restarted => Self::Restarted,
            GroupSet::NoAnswer(why) => Self::NoAnswer(why),
        }
    }
}

impl TuneSettings {
    /// Nothing is controlled yet.
    ///
    /// # Errors
    /// When changes cannot be written down.
    pub fn new(plan: &TunePlan) -> Result<Self, ExitError> {
        let (group, server) = (ServerGroup::new(&plan.address)?, plan.address.to_string());
        Ok(Self { group, server, is_dry: plan.is_dry, lease: None })
    }

    /// Takes a lease where the server can have one, and says what becomes of it without.
    pub fn lease(&mut self, plan: &TunePlan, facts: &TargetFacts, narrator: &Narrator<'_>) {
        let lease = Lease::of(&plan.config, facts);
        narrator.lease(lease.as_ref().map(|lease| (lease.event(), lease.seconds)));
        self.lease = lease.ok();
    }

    /// Begins the group at the one server: from here on what the settings are now is written down,
    /// and how a person puts it back is said.
    ///
    /// # Errors
    /// When another server answers, somebody else holds them, or they cannot be written down.
    pub fn begin(
        &mut self,
        present: &LeverValues,
        one: &ServerToken,
        narrator: &Narrator<'_>,
    ) -> Result<(), ExitError> {
        if self.is_dry {
            return Ok(());
        }
        let names = present.iter().map(|(lever, _)| lever.name().to_owned());
        let event = self.lease.as_ref().map(|lease| lease.setting.clone());
        let found = self.group.begin(names.chain(event).collect(), one)?;
        if let Some(lease) = &self.lease
            && found.get(&lease.setting).is_some_and(|now| now != NO_EVENT)
        {
            let event = lease.event().to_owned();
            self.group.put_back()?;
            return Err(ExitError::Busy(format!(
                "{}: the event {event} of another tune is to put the server back first; try again \
                 once it has run",
                self.server
            )));
        }
        narrator.by_hand(&self.server, &self.group.by_hand());
        Ok(())
    }

    /// Sees to it that the server puts itself back when it hears nothing any more.
    ///
    /// # Errors
    /// When what was set cannot be read back.
    pub fn hold(&mut self, narrator: &Narrator<'_>) -> Result<Set, ExitError> {
        let took = Ok(Set::Took(LeverValues::default()));
        let Some(lease) = self.lease.as_mut().filter(|lease| !self.is_dry && lease.is_due()) else {
            return took;
        };
        if lease.held.is_some() {
            match self.group.put_off(&lease.setting) {
                Ok(true) => lease.held = Some(Instant::now()),
                Ok(false) => return Ok(Set::NoAnswer(lease.ran_out())),
                Err(ExitError::NoAnswer(why)) => return Ok(Set::NoAnswer(why)),
                Err(error) => return Err(error),
            }
            return took;
        }
        let value = lease.value(&self.group.by_hand());
        let made = self.group.set(&[ServerSetting::new(&lease.setting, value)]);
        match made {
            Ok(GroupSet::Took(_)) => {
                lease.held = Some(Instant::now());
                took
            }
            Ok(other) => Ok(Set::of(other)),
            Err(error) => {
                narrator.lease(Err(&error.to_string()));
                self.lease = None;
                took
            }
        }
    }

    /// Whether the server puts itself back when it hears nothing any more.
    pub fn has_lease(&self) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.held.is_some())
    }

    /// Ends the lease of a server that has its own settings again.
    ///
    /// # Errors
    /// When the event cannot be dropped.
    pub fn release(&mut self) -> Result<Set, ExitError> {
        let Some(lease) = self.lease.as_mut().filter(|lease| lease.held.is_some()) else {
            return Ok(Set::Took(LeverValues::default()));
        };
        lease.held = None;
        Ok(Set::of(self.group.set(&[ServerSetting::new(&lease.setting, NO_EVENT)])?))
    }

    /// Whether the server has put itself back already; what it says then.
    pub fn ran_out(&mut self) -> Option<String> {
        let lease = self.lease.as_ref().filter(|lease| lease.held.is_some())?;
        let is_gone = matches!(self.group.put_off(&lease.setting), Ok(false));
        is_gone.then(|| lease.ran_out())
    }

    /// A setting that is somebody else's, and is not put back.
    pub fn leave(&mut self, lever: Lever) {
        if let Some(lease) = &mut self.lease {
            lease.left.push(lever.name().to_owned());
            lease.held = None;
        }
    }

    /// Sets what is wanted; nothing in a dry run, which holds nothing.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn set(&mut self, moves: &[Move]) -> Result<Set, ExitError> {
        let setting = |one: &Move| ServerSetting::new(one.lever.name(), one.lever.text(one.to));
        let wanted: Vec<ServerSetting> = moves.iter().map(setting).collect();
        self.group.set(&wanted).map(Set::of)
    }

    /// Puts everything back.
    ///
    /// # Errors
    /// When something could not be put back: it stays in the journal.
    pub fn put_back(&mut self, narrator: &Narrator<'_>) -> Result<(), ExitError> {
        let left = self.give_up()?;
        left.iter().for_each(|left| narrator.say(&left.to_string()));
        Ok(())
    }

    /// The same; gives what is somebody else's by now and was left.
    ///
    /// # Errors
    /// As [`Self::put_back`].
    pub fn give_up(&mut self) -> Result<Vec<Left>, ExitError> {
        self.lease.iter_mut().for_each(|lease| lease.held = None);
        self.group.put_back()
    }
}

fn levers(took: &ServerValues) -> LeverValues {
    LeverValues::of(took.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}
