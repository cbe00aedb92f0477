//! The controller against a server in virtual time.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod closed_loop;
mod rig;
