//! The crate on real servers: those of `IOSTRATA_TEST_SERVERS` (addresses with rights to make
//! databases, separated by `;`), else a private MariaDB where one is installed; private servers and
//! clusters of whatever server programs are installed.
#![allow(clippy::unwrap_used)]

mod cluster;
mod cost;
mod failures;
mod fixture;
mod fleet;
mod held;
mod listener;
mod loading;
mod logins;
mod operations;
mod private;
mod settings;
mod transactions;
mod values;
mod variables;
mod watched;
