//! The embedded engine behind the border to workloads: against a naive model, through crashes, and
//! what it refuses.

#![allow(clippy::unwrap_used)]

mod against_model;
mod chance;
mod crash;
mod long_scans;
mod model;
mod opening;
mod schemas;
mod stock;
mod threads;
mod values;
