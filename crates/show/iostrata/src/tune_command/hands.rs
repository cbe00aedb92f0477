//! The hands that set: one group of changes at one server, journalled.

use iostrata_change::{
    Change, ChangeError, ChangeId, Effect, ServerSetting, Session, StateDir, System,
};
use iostrata_server::MySqlServers;
use iostrata_tune::{LeverValues, Move};

use super::narrator::Narrator;
use super::plan::TunePlan;
use crate::exit_error::ExitError;

/// Sets a server's settings and puts them back.
pub struct Hands {
    session: Session<System>,
    /// Its address, without secrets.
    server: String,
    group: Option<ChangeId>,
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
}

impl Hands {
    /// Hands that hold nothing.
    ///
    /// # Errors
    /// When changes cannot be written down.
    pub fn new(plan: &TunePlan) -> Result<Self, ExitError> {
        let servers = MySqlServers::knowing(plan.address.clone());
        let platform = System::new().with_servers(servers);
        let session = Session::begin(&StateDir::of_user(), platform);
        let session = session.map_err(|error| here(&error))?;
        // Its printed form holds no secret.
        let server = plan.address.to_string();
        Ok(Self { session, server, group: None, is_dry: plan.is_dry })
    }

    /// Begins the group: from here on what the settings are now is written down.
    ///
    /// # Errors
    /// When somebody else holds them, or they cannot be written down.
    pub fn take_hold(&mut self, present: &LeverValues) -> Result<(), ExitError> {
        if self.is_dry {
            return Ok(());
        }
        let adjustable = present.iter().map(|(lever, _)| lever.name().to_owned()).collect();
        let (server, settings) = (self.server.clone(), Vec::new());
        let change = Change::ServerSettings { server, settings, adjustable };
        let applied = self.session.apply(change).map_err(|error| match error {
            ChangeError::Taken { .. } | ChangeError::Refused { .. } => {
                ExitError::Usage(error.to_string())
            }
            _ => here(&error),
        })?;
        self.group = Some(applied.id);
        Ok(())
    }

    /// Sets what is wanted.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn set(&mut self, moves: &[Move]) -> Result<Set, ExitError> {
        let Some(group) = self.group else { return Ok(Set::Took(LeverValues::default())) };
        let setting = |one: &Move| ServerSetting::new(one.lever.name(), one.lever.text(one.to));
        let wanted: Vec<ServerSetting> = moves.iter().map(setting).collect();
        match self.session.adjust(group, &wanted) {
            Ok(Effect::ServerSettings { took, .. }) => {
                let told = took.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                Ok(Set::Took(LeverValues::of(told)))
            }
            Ok(_) => Err(ExitError::Bug("a group of settings had another effect".to_owned())),
            Err(ChangeError::SetByOther { .. }) => Ok(Set::Others),
            Err(ChangeError::Restarted { .. }) => Ok(Set::Restarted),
            Err(error) => Err(here(&error)),
        }
    }

    /// Puts everything back.
    ///
    /// # Errors
    /// When something could not be put back: it stays in the journal.
    pub fn put_back(&mut self, narrator: &Narrator<'_>) -> Result<(), ExitError> {
        let Some(group) = self.group else { return Ok(()) };
        let undone = self.session.undo(group).map_err(|error| {
            ExitError::NotHere(format!(
                "{error}; the values before are in the journal: run `iostrata restore` once the \
                 server answers"
            ))
        })?;
        self.group = None;
        undone.left.iter().for_each(|left| narrator.say(&left.to_string()));
        Ok(())
    }
}

fn here(error: &dyn std::fmt::Display) -> ExitError {
    ExitError::NotHere(error.to_string())
}
