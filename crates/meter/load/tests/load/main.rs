//! The loop on real threads: what it counts, when it ends, what it costs.

mod allocation;
mod poisson;
mod real;
