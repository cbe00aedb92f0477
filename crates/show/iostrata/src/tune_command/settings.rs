//! Settings of one server while it is tuned: moved as the controller asks, journalled, put back.

use iostrata_change::{Left, ServerSetting, ServerToken, ServerValues};
use iostrata_tune::{LeverValues, Move};

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

impl TuneSettings {
    /// Nothing is controlled yet.
    ///
    /// # Errors
    /// When changes cannot be written down.
    pub fn new(plan: &TunePlan) -> Result<Self, ExitError> {
        let (group, server) = (ServerGroup::new(&plan.address)?, plan.address.to_string());
        Ok(Self { group, server, is_dry: plan.is_dry })
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
        let names = present.iter().map(|(lever, _)| lever.name().to_owned()).collect();
        self.group.begin(names, one)?;
        narrator.by_hand(&self.server, &self.group.by_hand());
        Ok(())
    }

    /// Sets what is wanted; nothing in a dry run, which holds nothing.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn set(&mut self, moves: &[Move]) -> Result<Set, ExitError> {
        let setting = |one: &Move| ServerSetting::new(one.lever.name(), one.lever.text(one.to));
        let wanted: Vec<ServerSetting> = moves.iter().map(setting).collect();
        Ok(match self.group.set(&wanted)? {
            GroupSet::Took(took) => Set::Took(levers(&took)),
            GroupSet::Others => Set::Others,
            GroupSet::Restarted => Set::Restarted,
            GroupSet::NoAnswer(why) => Set::NoAnswer(why),
        })
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
        self.group.put_back()
    }
}

fn levers(took: &ServerValues) -> LeverValues {
    LeverValues::of(took.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}
