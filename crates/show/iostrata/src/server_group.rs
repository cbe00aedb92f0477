//! A group of settings of one server: written down first, set as often as is wanted, put back.
//!
//! Invariant: however the program ends, the server has its own values again, or the journal says
//! that it has not. It is asked on one connection, so that it can be set and put back also when it
//! has no other left.

use std::sync::Arc;

use iostrata_change::{
    Change, ChangeError, ChangeId, Effect, Left, ServerError, ServerSetting, ServerToken,
    ServerValues, Session, StateDir, System,
};
use iostrata_server::{HeldServer, ServerAddress};

use crate::exit_error::ExitError;

/// Sets a group of settings and puts it back; dropped, it is put back, too.
pub struct ServerGroup {
    session: Session<System>,
    held: Arc<HeldServer>,
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
    /// It does not answer, or another one does, which it says; some may be set.
    NoAnswer(String),
}

impl ServerGroup {
    /// Holds nothing yet.
    ///
    /// # Errors
    /// When changes cannot be written down.
    pub fn new(address: &ServerAddress) -> Result<Self, ExitError> {
        let held = Arc::new(HeldServer::of(address.clone()));
        let platform = System::new().with_servers(Arc::clone(&held));
        let session = Session::begin(&StateDir::of_user(), platform);
        let session = session.map_err(|error| here(&error))?;
        // Its printed form holds no secret.
        Ok(Self { session, held, server: address.to_string(), group: None })
    }

    /// Begins the group at the one server: what these settings, and those that they move, are now
    /// is written down. Gives them.
    ///
    /// # Errors
    /// When another server or a proxy answers, somebody else holds the settings, or they cannot be
    /// written down.
    pub fn begin(
        &mut self,
        names: Vec<String>,
        one: &ServerToken,
    ) -> Result<ServerValues, ExitError> {
        self.held.check(&self.server, one).map_err(|error| match error {
            ServerError::NoAnswer(why) => ExitError::NotHere(why),
            ServerError::Refused(why) => ExitError::Usage(why),
        })?;
        let (server, settings) = (self.server.clone(), Vec::new());
        let change = Change::ServerSettings { server, settings, adjustable: names };
        let applied = self.session.apply(change).map_err(|error| match error {
            ChangeError::Taken { .. } | ChangeError::SettingsTaken { .. } => {
                ExitError::Busy(error.to_string())
            }
            ChangeError::Refused { .. } => ExitError::Usage(error.to_string()),
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
            Err(error @ (ChangeError::NoAnswer { .. } | ChangeError::OtherServer { .. })) => {
                Ok(GroupSet::NoAnswer(error.to_string()))
            }
            Err(error) => Err(here(&error)),
        }
    }

    /// The statements by which a person puts back what was there when the group began.
    pub fn by_hand(&self) -> Vec<String> {
        self.group.map(|group| self.session.by_hand(group)).unwrap_or_default()
    }

    /// Puts off an event of the group for as long as it was made for; whether it is still there.
    ///
    /// # Errors
    /// When the server does not answer, or refuses.
    pub fn put_off(&self, event: &str) -> Result<bool, ExitError> {
        self.held.put_off(&self.server, event).map_err(|error| match error {
            ServerError::NoAnswer(why) => ExitError::NoAnswer(why),
            ServerError::Refused(why) => ExitError::NotHere(why),
        })
    }

    /// Puts everything back; gives what is somebody else's by now and was left.
    ///
    /// # Errors
    /// When something could not be put back: it stays in the journal.
    pub fn put_back(&mut self) -> Result<Vec<Left>, ExitError> {
        let Some(group) = self.group else { return Ok(Vec::new()) };
        let undone = match self.session.undo(group) {
            // The connection may have been lost on the way: once more, on a new one.
            Err(ChangeError::NoAnswer { .. }) => self.session.undo(group),
            undone => undone,
        };
        let undone = undone.map_err(|error| {
            let (server, by_hand) = (&self.server, lines(&self.by_hand()));
            let journal = match error {
                ChangeError::OtherServer { .. } => String::new(),
                _ => format!(
                    "; the values before are in the journal: once the server answers, run \
                     iostrata restore --target '{server}'"
                ),
            };
            let said =
                format!("{error}{journal}; or by hand, if it was not restarted since:{by_hand}");
            match error {
                ChangeError::NoAnswer { .. } => ExitError::NoAnswer(said),
                _ => ExitError::NotHere(said),
            }
        })?;
        self.group = None;
        Ok(undone.left)
    }
}

/// Statements as lines below a sentence.
pub fn lines(statements: &[String]) -> String {
    statements.iter().map(|statement| format!("\n  {statement}")).collect()
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
