//! The lock table from outside: with threads and a clock as they are, or, with the feature
//! `model`, under a model checker.

#![allow(clippy::unwrap_used)]

#[cfg(not(feature = "model"))]
mod cost;
#[cfg(not(feature = "model"))]
mod deadlock;
#[cfg(not(feature = "model"))]
mod order;
#[cfg(not(feature = "model"))]
mod random;
#[cfg(feature = "model")]
mod schedules;
#[cfg(not(feature = "model"))]
mod stress;
#[cfg(not(feature = "model"))]
mod support;
