//! Watching real targets, where what stalls them is planted and named; the controller against a
//! server in virtual time.

#![allow(clippy::unwrap_used)]

mod beside;
mod causes;
mod closed_loop;
mod engine;
mod log_buffer;
mod quiet;
mod rig;
mod shortage;
mod stage;
mod stalls;
