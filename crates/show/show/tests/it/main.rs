//! Reports, metrics and the screen from outside: as text, in a browser, by Prometheus's own tools
//! and on a real terminal.

#![allow(clippy::unwrap_used)]

mod metrics;
mod report;
mod screen;
