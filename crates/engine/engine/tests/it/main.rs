//! The proof of the engine: crashes, faults, removed safeguards, models and threads.

#![allow(clippy::unwrap_used)]

mod against_model;
mod agreement;
mod changing;
mod common;
mod crash;
mod crowd;
mod documents;
mod failing_threads;
mod faults;
mod histories;
mod isolation;
mod isolation_mutants;
mod long_reader;
mod mutants;
mod policies;
mod readme;
mod refused;
mod session_faults;
mod threads;
mod toy;
