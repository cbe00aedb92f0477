//! Servers of the MySQL family: connections, flavours, private instances, and the target.
//!
//! Purpose: [`ServerTarget`] runs the declared operations of workloads as SQL; [`MySqlServers`] and
//! [`HeldServer`] read and set variables for studies and tuning. Invariants: no type of the client
//! library crosses the border of this crate; nothing that is printed or kept holds a password. It
//! measures nothing and does not depend on a workload.

mod address;
mod claim;
mod connect;
mod credentials;
mod event;
mod facts;
mod failure;
mod flavour;
mod held;
mod identity;
mod kind;
mod link;
mod load;
mod own_database;
pub mod private;
mod role;
mod sampler;
mod servers;
mod session;
mod setting_origin;
mod sql;
mod target;
mod turns;
mod used;
mod wire;

pub use address::{
    AddressError, Encryption, HostPort, Password, Purpose, ServerAddress, ServerKey, Verification,
};
pub use claim::Claim;
pub use connect::plain_text;
pub use credentials::{Credentials, CredentialsError};
pub use event::LEASE_SCHEMA;
pub use failure::printable;
pub use flavour::{Flavour, ServerVersion};
pub use held::HeldServer;
pub use own_database::{DataPlace, OWN_DATABASE, OwnDatabase};
pub use role::ServerRole;
pub use servers::{COUNTER, MySqlServers, ON};
pub use target::{ServerTarget, lacks_storage_engine};
