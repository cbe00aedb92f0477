//! Variables of a database server.
//!
//! Invariant: only the very server that was changed is set back, known by its data directory and
//! start; one that was restarted since has its own values again. What the server took is read back,
//! as it may clamp what it is given.

use super::value;
use crate::effect::{Effect, Prior, Undone};
use crate::error::{ChangeError, system_on};
use crate::journal::JournalEntry;
use crate::platform::Platform;
use crate::variables::{ServerError, ServerToken};

/// A variable of the server at an address.
#[derive(Clone, Copy)]
pub(crate) struct Variable<'a> {
    pub(crate) server: &'a str,
    pub(crate) name: &'a str,
}

impl Variable<'_> {
    fn describe(&self) -> String {
        format!("{} of {}", self.name, self.server)
    }

    pub(crate) fn read(&self, platform: &dyn Platform) -> Result<String, ChangeError> {
        let found = platform.servers_at().variable(self.server, self.name);
        found.map_err(|error| self.unavailable(error))
    }

    fn token(&self, platform: &dyn Platform) -> Result<ServerToken, ChangeError> {
        platform.servers_at().identify(self.server).map_err(|error| self.unavailable(error))
    }

    fn unavailable(&self, error: ServerError) -> ChangeError {
        let fix = match &error {
            ServerError::NoAnswer(_) => {
                "see that it runs, and that its address and credentials are right"
            }
            ServerError::Refused(_) => "choose a variable and a value that this server takes",
        };
        ChangeError::unavailable(self.describe(), error, fix)
    }

    fn set(&self, platform: &dyn Platform, value: &str) -> Result<String, ChangeError> {
        let set = platform.servers_at().set_variable(self.server, self.name, value);
        set.map_err(|error| self.unavailable(error))?;
        self.read(platform)
    }

    pub(super) fn prior(&self, platform: &dyn Platform) -> Result<Prior, ChangeError> {
        Ok(Prior::Variable { server: self.token(platform)?, value: self.read(platform)? })
    }

    pub(super) fn apply(
        &self,
        platform: &dyn Platform,
        server: &ServerToken,
        asked: &str,
    ) -> Result<Effect, ChangeError> {
        if !self.token(platform)?.is(server) {
            let why = "the server was restarted, or another one took its place";
            return Err(ChangeError::unavailable(self.describe(), why, "try again"));
        }
        let took = self.set(platform, asked)?;
        Ok(Effect::Variable { asked: asked.to_owned(), took })
    }

    pub(super) fn undo(
        &self,
        platform: &dyn Platform,
        entry: &JournalEntry,
        (server, was): (&ServerToken, &str),
    ) -> Result<Undone, ChangeError> {
        // What was set until the server ends went with it.
        if !self.token(platform)?.is(server) {
            return Ok(Undone::as_before());
        }
        let now = self.read(platform)?;
        let is_ours = match &entry.effect {
            Some(Effect::Variable { took, .. }) if !entry.was_undoing => now == *took,
            // Nobody noted what the server made of what it was given to take, or to go back to.
            _ => true,
        };
        value::undo(self.describe(), &now, was, is_ours, || {
            let now = self.set(platform, was)?;
            if now == was {
                return Ok(());
            }
            let said = std::io::Error::other(format!("the server made {now} of {was}"));
            Err(system_on("set back", self.describe(), said))
        })
    }
}
