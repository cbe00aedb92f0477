//! The proof of the engine: crashes, faults, removed safeguards, models and threads.

mod common;
mod toy;
