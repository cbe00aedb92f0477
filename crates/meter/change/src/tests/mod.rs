//! Sessions and restores on a machine that is only data.

mod database;
mod fake;
mod samples;
mod served;
mod session;
mod settings;
