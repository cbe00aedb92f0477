//! Private servers and clusters for real: whatever server programs are installed.
#![allow(clippy::unwrap_used)]

mod cluster;
mod fleet;
mod private;
