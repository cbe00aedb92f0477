//! The proof of the engine: crashes, faults, removed safeguards, models and threads.

#![allow(clippy::unwrap_used)]

mod against_model;
mod agreement;
mod changing;
mod common;
mod crash;
mod crowd;
mod damaged;
mod documents;
mod examples;
mod failing_threads;
mod faults;
mod histories;
mod isolation;
mod isolation_mutants;
mod library;
mod lock;
mod long_reader;
mod mutants;
mod page;
mod policies;
mod pool;
mod redo;
mod refused;
mod session_faults;
mod store;
mod threads;
mod toy;
mod version;
