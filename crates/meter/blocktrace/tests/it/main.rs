//! The real kernel: a trace instance, a loop device and calls of this process.

#![allow(clippy::unwrap_used)]

mod disk;
mod instance;
mod layers;
mod refusals;
