//! Counters of servers that are switched on while they are watched.
//!
//! Invariant: each is journaled before it is switched on, and switched off at the end; one that was
//! on already stays on.

use iostrata_change::{ServerSetting, ServerToken};
use iostrata_server::{COUNTER, ON, ServerTarget};

use crate::args::WatchArgs;
use crate::exit_error::ExitError;
use crate::server_group::{GroupSet, ServerGroup};
use crate::server_rights::one;
use crate::test_database::{ending, server_address};

/// Counters that were switched on; dropped, they are off again.
pub struct EnabledCounters {
    groups: Vec<ServerGroup>,
    /// The servers.
    pub servers: Vec<ServerToken>,
}

impl EnabledCounters {
    /// Switches on what is off, on every server that is named.
    ///
    /// # Errors
    /// A server that does not answer, or does not let this user do so.
    pub fn enable(args: &WatchArgs) -> Result<Self, ExitError> {
        let credentials = args.login.credentials();
        let mut enabled = Self { groups: Vec::new(), servers: Vec::new() };
        for target in args.targets.iter().filter(|target| target.starts_with("mysql://")) {
            let address = server_address(target, &credentials, "")?;
            let server = ServerTarget::open_one(address.clone()).map_err(ending)?;
            let off = server.counters_off().map_err(ending)?;
            let names: Vec<String> = off.iter().map(|name| format!("{COUNTER}{name}")).collect();
            let on: Vec<ServerSetting> =
                names.iter().map(|name| ServerSetting::new(name, ON)).collect();
            let mut group = ServerGroup::new(&address)?;
            if !on.is_empty() {
                group.begin(names, one(&server)?)?;
                let set = group.set(&on);
                // What was begun is put back with it, also where it was refused.
                enabled.groups.push(group);
                match set.map_err(|error| refused(&error))? {
                    GroupSet::Took(_) => {}
                    GroupSet::NoAnswer(why) => return Err(refused(&why)),
                    GroupSet::Others | GroupSet::Restarted => {
                        return Err(refused(&"the server changed meanwhile"));
                    }
                }
            }
            enabled.servers.push(one(&server)?.clone());
        }
        Ok(enabled)
    }

    /// Switches them off again.
    ///
    /// # Errors
    /// What stays on, with the reason.
    pub fn put_back(mut self) -> Result<(), ExitError> {
        let backs: Vec<_> = self.groups.iter_mut().map(ServerGroup::put_back).collect();
        backs.into_iter().try_for_each(|back| back.map(drop))
    }
}

fn refused(error: &dyn std::fmt::Display) -> ExitError {
    ExitError::NotHere(format!(
        "--enable-counters: {error}; it needs PROCESS and SYSTEM_VARIABLES_ADMIN (MySQL from 8.0) \
         or SUPER"
    ))
}
