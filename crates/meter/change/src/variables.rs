//! The one way in which a database server is asked and altered, so that a stand-in can take its
//! place. A client library lies behind it, elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What stands before `SCHEMA.NAME` of an event of a server, which is made and dropped as a
/// variable is set. Its value is the seconds until it runs, unless it is put off, and what it does.
pub const EVENT: &str = "server_event.";
/// The value of an event that is not there.
pub const NO_EVENT: &str = "0";

/// Global variables of a server, by name.
pub type ServerValues = BTreeMap<String, String>;

/// A global variable of a server with a value, in the server's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerSetting {
    /// Which, in lower case.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl ServerSetting {
    /// A variable with a value.
    pub fn new(name: impl Into<String>, value: impl ToString) -> Self {
        Self { name: name.into(), value: value.to_string() }
    }
}

/// By what a server is known: one that was restarted, or another at the same address, differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerToken {
    /// Its data directory.
    pub data_dir: PathBuf,
    /// Name of its host and its port, as it says itself.
    pub place: String,
    /// When it started, in seconds since 1970, as the server's own clock has it.
    pub started_s: u64,
    /// Its `server_uuid` or `server_uid`; none where it has neither, and in journals of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

impl ServerToken {
    /// Whether both are one running server. Start times are computed from an uptime in whole
    /// seconds, so they may be one apart.
    pub fn is(&self, other: &Self) -> bool {
        self.is_on_data_of(other) && self.started_s.abs_diff(other.started_s) <= 1
    }

    /// Whether both run on the same data, restarted or not. Cloned containers agree in everything
    /// but the identifier.
    pub fn is_on_data_of(&self, other: &Self) -> bool {
        let is_cloned = self.uid.as_ref().zip(other.uid.as_ref()).is_some_and(|(a, b)| a != b);
        self.data_dir == other.data_dir && self.place == other.place && !is_cloned
    }
}

impl fmt::Display for ServerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (data in {}", self.place, self.data_dir.display())?;
        self.uid.iter().try_for_each(|uid| write!(f, ", {uid}"))?;
        f.write_str(")")
    }
}

/// Why a server was not asked or altered.
#[derive(Debug, Error)]
pub enum ServerError {
    /// It does not answer, or lets this user not in.
    #[error("{0}")]
    NoAnswer(String),
    /// It answers and refuses; what it said.
    #[error("{0}")]
    Refused(String),
}

/// Database servers. An address names one as the user does, without secrets: where credentials are
/// needed, whoever implements this finds them in the user's usual places.
pub trait Servers {
    /// Which server answers at an address now, and the global values of these variables; those
    /// that it does not have are left out.
    ///
    /// # Errors
    /// When none answers.
    fn look(
        &self,
        address: &str,
        names: &[&str],
    ) -> Result<(ServerToken, ServerValues), ServerError>;

    /// Sets the global value until the server ends; it may take another one.
    ///
    /// # Errors
    /// When there is no answer, or the server refuses.
    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError>;
}

impl<S: Servers> Servers for Arc<S> {
    fn look(
        &self,
        address: &str,
        names: &[&str],
    ) -> Result<(ServerToken, ServerValues), ServerError> {
        S::look(self, address, names)
    }

    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError> {
        S::set_variable(self, address, name, value)
    }
}

/// No client for any server.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoServers;

impl NoServers {
    fn none<T>() -> Result<T, ServerError> {
        Err(ServerError::NoAnswer("this program was given no client for servers".to_owned()))
    }
}

impl Servers for NoServers {
    fn look(&self, _: &str, _: &[&str]) -> Result<(ServerToken, ServerValues), ServerError> {
        Self::none()
    }

    fn set_variable(&self, _: &str, _: &str, _: &str) -> Result<(), ServerError> {
        Self::none()
    }
}
