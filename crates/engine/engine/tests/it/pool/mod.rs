//! The pool as a whole: against a model, under many threads, small, failing, exhausted, scanned.

#![allow(clippy::unwrap_used)]

mod cost;
mod failures;
mod hammer;
mod model;
mod scan;
mod small;
mod support;
