//! The proof of the engine: crashes, faults, removed safeguards, models and threads.

#![allow(clippy::unwrap_used)]

mod against_model;
mod common;
mod crash;
mod failing_threads;
mod faults;
mod mutants;
mod readme;
mod refused;
mod session_faults;
mod threads;
mod toy;
