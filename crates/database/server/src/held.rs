//! A server that is queried and altered on one connection for as long as it answers there.
//!
//! Invariant: once connected, no other connection is needed, so that a server whose connections are
//! used up can still be set, and put back. A connection that was lost is not used again. What is
//! set goes to the server that was queried: a lost SET is not sent to the next server that answers.

use std::sync::{Mutex, PoisonError};

use iostrata_change::{ServerError, ServerToken, ServerValues, Servers};

use crate::address::ServerAddress;
use crate::servers::{AskedServer, MySqlServers};

/// A server, queried on a connection that is held.
#[derive(Debug)]
pub struct HeldServer {
    servers: MySqlServers,
    /// With the address as it was requested. Absent until the first query, and after a loss.
    held: Mutex<Option<(String, AskedServer)>>,
}

impl HeldServer {
    /// The server of this address, with its secrets. Connects on the first query.
    pub fn of(address: ServerAddress) -> Self {
        Self { servers: MySqlServers::knowing(address), held: Mutex::default() }
    }

    /// Queries on the connection that is held, or on a new one.
    fn on_held<T>(
        &self,
        address: &str,
        ask: impl FnOnce(&mut AskedServer) -> Result<T, ServerError>,
    ) -> Result<T, ServerError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, server) = match &mut *held {
            Some(held) if held.0 == address => held,
            none => none.insert((address.to_owned(), self.servers.asked(address)?)),
        };
        let answer = ask(server);
        if matches!(answer, Err(ServerError::NoAnswer(_))) {
            *held = None;
        }
        answer
    }

    /// Makes sure that the connection that is held, or is made for it, leads to this running
    /// server, and to no proxy.
    ///
    /// # Errors
    /// Which server it leads to; none answers.
    pub fn check(&self, address: &str, one: &ServerToken) -> Result<(), ServerError> {
        let was_held = self.is_held(address);
        match self.on_held(address, |server| server.check(one)) {
            Err(ServerError::NoAnswer(_)) if was_held => {
                self.on_held(address, |server| server.check(one))
            }
            answer => answer,
        }
    }

    /// Puts off an event for as long as it was made for; whether it is still there.
    ///
    /// # Errors
    /// When the server does not answer, or refuses.
    pub fn put_off(&self, address: &str, event: &str) -> Result<bool, ServerError> {
        self.on_held(address, |server| server.put_off(event))
    }

    fn is_held(&self, address: &str) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().is_some_and(|(held, _)| held == address)
    }
}

impl Servers for HeldServer {
    fn look(
        &self,
        address: &str,
        names: &[&str],
    ) -> Result<(ServerToken, ServerValues), ServerError> {
        let was_held = self.is_held(address);
        match self.on_held(address, |server| server.look(names)) {
            // It may have been cut while it was idle.
            Err(ServerError::NoAnswer(_)) if was_held => {
                self.on_held(address, |server| server.look(names))
            }
            answer => answer,
        }
    }

    fn set_variable(&self, address: &str, name: &str, value: &str) -> Result<(), ServerError> {
        self.on_held(address, |server| server.set_variable(name, value))
    }
}
