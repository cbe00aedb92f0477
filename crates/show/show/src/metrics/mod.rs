//! Watched targets as metrics of Prometheus.
//!
//! Purpose: a [`Board`] takes every sample and writes the text that Prometheus reads; a
//! [`MetricsServer`] answers with it over HTTP. What is exported stands in one catalogue.
//! Invariants: what a target does not report is left out, never 0. What Prometheus may scrape less
//! often than samples come is a counter, so that a stall between two scrapes is not lost. It
//! queries no target, and keeps no past: that is Prometheus's.

mod catalogue;
mod exposition;
mod server;

pub use catalogue::{MetricKind, TuneState, metrics};
pub use exposition::Board;
pub use server::{BoardText, MetricsError, MetricsServer, listen_address};
