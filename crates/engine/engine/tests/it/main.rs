//! The proof of the engine: crashes, faults, removed safeguards, models and threads.

mod against_model;
mod common;
mod crash;
mod faults;
mod mutants;
mod threads;
mod toy;
