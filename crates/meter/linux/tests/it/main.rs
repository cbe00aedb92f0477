//! The readers on directories that stand in for a machine, and on the machine itself.

#![allow(clippy::unwrap_used)]

mod blocktrace;
mod host;
mod profile;
