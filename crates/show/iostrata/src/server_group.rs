//! A group of settings of one server: written down first, set as often as is wanted, put back.
//!
//! Invariant: however the program ends, the server has its own values again, or the journal says
//! that it has not.

use iostrata_change::{
    Change, ChangeError, ChangeId, Effect, Left, ServerSetting, ServerValues, Session, StateDir,
    System,
};
use iostrata_server::{MySqlServers, ServerAddress};

use crate::exit_error::ExitError;

/// Sets a group of settings and puts it back; dropped, it is put back, too.
pub struct ServerGroup {
    session: Session<System>,
    /// Its address, without secrets.
    server: String,
    group: Option<ChangeId>,
}

/// What came of setting.
pub enum GroupSet {
    /// What the server made of the group, with the settings that moved along.
    Took(ServerValues),
    /// Nothing was set: somebody else has changed one of them.
    Others,
    /// Nothing was set: it is not the same running server any more.
    Restarted,
}

impl ServerGroup {
    /// Holds nothing yet.
    ///
    /// # Errors
    /// When changes cannot be written down.
    pub fn new(address: &ServerAddress) -> Result<Self, ExitError> {
        let servers = MySqlServers::knowing(address.clone());
        let platform = System::new().with_servers(servers);
        let session = Session::begin(&StateDir::of_user(), platform);
        let session = session.map_err(|error| here(&error))?;
        // Its printed form holds no secret.
        Ok(Self { session, server: address.to_string(), group: None })
    }

    /// Begins the group: what these settings, and those that they move, are now is written down.
    /// Gives them.
    ///
    /// # Errors
    /// When somebody else holds them, or they cannot be written down.
    pub fn take_hold(&mut self, names: Vec<String>) -> Result<ServerValues, ExitError> {
        let (server, settings) = (self.server.clone(), Vec::new());
        let change = Change::ServerSettings { server, settings, adjustable: names };
        let applied = self.session.apply(change).map_err(|error| match error {
            ChangeError::Taken { .. }
            | ChangeError::Refused { .. }
            | ChangeError::SettingsTaken { .. } => ExitError::Usage(error.to_string()),
            _ => here(&error),
        })?;
        self.group = Some(applied.id);
        took(applied.effect)
    }

    /// Sets what is wanted; nothing where nothing is held.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn set(&mut self, wanted: &[ServerSetting]) -> Result<GroupSet, ExitError> {
        let Some(group) = self.group else { return Ok(GroupSet::Took(ServerValues::new())) };
        match self.session.adjust(group, wanted) {
            Ok(effect) => took(effect).map(GroupSet::Took),
            Err(ChangeError::SetByOther { .. }) => Ok(GroupSet::Others),
            Err(ChangeError::Restarted { .. }) => Ok(GroupSet::Restarted),
            Err(error) => Err(here(&error)),
        }
    }

    /// Puts everything back; gives what is somebody else's by now and was left.
    ///
    /// # Errors
    /// When something could not be put back: it stays in the journal.
    pub fn put_back(&mut self) -> Result<Vec<Left>, ExitError> {
        let Some(group) = self.group else { return Ok(Vec::new()) };
        let undone = self.session.undo(group).map_err(|error| {
            ExitError::NotHere(format!(
                "{error}; the values before are in the journal: run `iostrata restore` once the \
                 server answers"
            ))
        })?;
        self.group = None;
        Ok(undone.left)
    }
}

fn took(effect: Effect) -> Result<ServerValues, ExitError> {
    match effect {
        Effect::ServerSettings { took, .. } => Ok(took),
        _ => Err(ExitError::Bug("a group of settings had another effect".to_owned())),
    }
}

fn here(error: &dyn std::fmt::Display) -> ExitError {
    ExitError::NotHere(error.to_string())
}
