//! Watching real targets: what stalls them is planted, and named.

mod engine;
mod stage;
mod stalls;
