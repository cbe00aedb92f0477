//! The controller against a server in virtual time.

mod closed_loop;
mod rig;
