//! Pages and records from outside: what the log carries and what comes of it.

#![allow(clippy::unwrap_used)]

mod damage;
mod format;
mod fuzz;
mod image;
mod model;
mod refusals;
mod revise;
mod revise_cost;
mod search;
mod space;
mod split;
mod twin;
