//! The crate on real servers: those of `IOSTRATA_TEST_SERVERS` (addresses with rights to make
//! databases, separated by `;`), else a private MariaDB where one is installed.
#![allow(clippy::unwrap_used)]

mod cost;
mod failures;
mod fixture;
mod loading;
mod logins;
mod operations;
mod values;
mod variables;
