//! Real changes of this machine: each kind applied and undone, and runs that are killed.
//!
//! Everything is done to loop devices, mounts and groups of these tests' own; only the write-back
//! settings are the machine's, and are put back.
#![allow(clippy::unwrap_used)]

mod database;
mod kill;
mod kinds;
mod machine;
mod refusals;
