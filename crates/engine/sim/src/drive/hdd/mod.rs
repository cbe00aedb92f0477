//! A disk that turns.
//!
//! Purpose: what a disk with given data-sheet figures does with commands: seeks, turns, reads
//! ahead, caches, chooses among the commands that it holds. Invariant: [`crate::drive::Drive`]'s;
//! with the write cache on, a flush is done only when all that was done before it came is on the
//! medium. It does not model errors, spin-up, thermal recalibration or remapped sectors.

mod choice;
mod geometry;
#[path = "hdd.rs"]
mod machine;
mod parameters;
mod read_cache;
mod seek;
#[cfg(test)]
pub(crate) mod tests;
mod write_cache;

pub use machine::Hdd;
pub use parameters::{HDD_7K2, HDD_10K, HDD_15K, HddParameters, SeekTimes};
