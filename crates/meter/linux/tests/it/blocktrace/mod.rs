//! The real kernel: a trace instance, a loop device and calls of this process.

mod disk;
mod instance;
mod layers;
mod refusals;
