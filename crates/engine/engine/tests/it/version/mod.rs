//! The version log as a whole: call by call, against a model, failing, under many threads.

#![cfg(not(feature = "model"))]
#![allow(clippy::unwrap_used)]

mod calls;
mod cost;
mod failures;
mod hammer;
mod model;
mod support;
