//! Counters of servers that are switched on while they are watched.
//!
//! Invariant: each is journaled before it is switched on, and switched off at the end; one that was
//! on already stays on.

use iostrata_change::{Change, ServerSetting, Session, StateDir, System};
use iostrata_server::{COUNTER, MySqlServers, ON, ServerAddress, ServerTarget};

use crate::args::WatchArgs;
use crate::database_command::{ending, server_address};
use crate::exit_error::ExitError;

/// Counters that were switched on; dropped, they are off again.
pub struct EnabledCounters {
    session: Session<System>,
}

impl EnabledCounters {
    /// Switches on what is off, on every server that is named.
    ///
    /// # Errors
    /// A server that does not answer, or does not let this user do so.
    pub fn enable(args: &WatchArgs) -> Result<Self, ExitError> {
        let credentials = args.login.credentials();
        let mut known: Vec<ServerAddress> = Vec::new();
        for target in args.targets.iter().filter(|target| target.starts_with("mysql://")) {
            known.push(server_address(target, &credentials, "")?);
        }
        let servers = MySqlServers { credentials, known: known.clone() };
        let here = |error: &dyn std::fmt::Display| {
            ExitError::NotHere(format!(
                "--enable-counters: {error}; it needs PROCESS and SYSTEM_VARIABLES_ADMIN (MySQL \
                 from 8.0) or SUPER"
            ))
        };
        let begun = Session::begin(&StateDir::of_user(), System::new().with_servers(servers));
        let mut session = begun.map_err(|error| here(&error))?;
        for address in known {
            let server = address.to_string();
            let off = ServerTarget::open(address, None).map_err(ending)?.counters_off();
            let off = off.map_err(|error| here(&error))?;
            let on = |counter: String| ServerSetting::new(format!("{COUNTER}{counter}"), ON);
            let settings: Vec<ServerSetting> = off.into_iter().map(on).collect();
            if !settings.is_empty() {
                let change = Change::ServerSettings { server, settings, adjustable: Vec::new() };
                session.apply(change).map_err(|error| here(&error))?;
            }
        }
        Ok(Self { session })
    }

    /// Switches them off again.
    ///
    /// # Errors
    /// What stays on, with the reason.
    pub fn put_back(mut self) -> Result<(), ExitError> {
        let report = self.session.undo_all();
        if report.is_settled() {
            return Ok(());
        }
        let things: Vec<String> = report.things.iter().map(ToString::to_string).collect();
        Err(ExitError::NotHere(format!(
            "counters could not be switched off again; run iostrata restore: {}",
            things.join("; ")
        )))
    }
}
