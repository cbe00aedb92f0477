//! Watched targets as metrics of Prometheus.
//!
//! Purpose: a [`Board`] takes every sample and writes the text that Prometheus reads; a
//! [`MetricsServer`] answers with it over HTTP. What is exported stands in one catalogue.
//! Invariants: what a target does not tell is left out, never 0. What Prometheus may ask less often
//! than samples come is a counter, so that a stall between two questions is not lost.
//! It asks no target for anything, and keeps no past: that is Prometheus's.

mod address;
mod board;
mod catalogue;
mod error;
mod exposition;
mod request;
mod server;

pub use address::listen_address;
pub use board::Board;
pub use catalogue::{MetricKind, TuneState, metrics};
pub use error::MetricsError;
pub use server::{BoardText, MetricsServer};
