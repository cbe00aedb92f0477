//! The one way in which a database server is asked and altered, so that a stand-in can take its
//! place. A client library lies behind it, elsewhere.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// By what a server is known: one that was restarted, or another at the same address, differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerToken {
    /// Its data directory.
    pub data_dir: PathBuf,
    /// When it started, in seconds since 1970, as the server's own clock has it.
    pub started_s: u64,
}

impl ServerToken {
    /// Whether both are one running server. Start times are computed from an uptime in whole
    /// seconds, so they may be one apart.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.data_dir == other.data_dir && self.started_s.abs_diff(other.started_s) <= 1
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
    /// Which server answers at an address now.
    ///
    /// # Errors
    /// When none does.
    fn identify(&self, address: &str) -> Result<ServerToken, ServerError>;

    /// The global value of a variable.
    ///
    /// # Errors
    /// When there is no answer, or no such variable.
    fn variable(&self, address: &str, name: &str) -> Result<String, ServerError>;

    /// Sets the global value until the server ends; it may take another one.
    ///
    /// # Errors
    /// When there is no answer, or the server refuses.
    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError>;
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
    fn identify(&self, _: &str) -> Result<ServerToken, ServerError> {
        Self::none()
    }

    fn variable(&self, _: &str, _: &str) -> Result<String, ServerError> {
        Self::none()
    }

    fn set_variable(&self, _: &str, _: &str, _: &str) -> Result<(), ServerError> {
        Self::none()
    }
}
