//! The program as users and other programs call it: exact calls, bad input, signals.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod database;
mod disk;
mod disk_kill;
mod engine;
mod exact_calls;
mod files_kill;
mod fio;
mod harness;
mod help_files;
mod loads;
mod options;
mod planted;
mod private_server;
mod probe_target;
mod restore;
mod restore_server;
mod server;
mod signals;
mod simulate;
mod simulate_flush;
mod stalls;
mod study;
mod study_kill;
mod study_servers;
mod study_transactions;
mod tune;
mod tune_kill;
mod tune_levers;
mod tune_lost;
mod tune_refused;
mod tune_words;
mod views;
mod watch;
mod watch_advice;
