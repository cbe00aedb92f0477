//! Watching real targets: what stalls them is planted, and named.
#![allow(clippy::unwrap_used)]

mod beside;
mod causes;
mod engine;
mod log_buffer;
mod quiet;
mod shortage;
mod stage;
mod stalls;
