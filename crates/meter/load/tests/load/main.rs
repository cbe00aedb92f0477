//! The loop on real threads: what it counts, when it ends, what it costs.
#![allow(clippy::unwrap_used)]

mod allocation;
mod poisson;
mod real;
