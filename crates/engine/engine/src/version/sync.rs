//! The atomics of the registry: those of `std`, or those that a model checker steers.

#[cfg(feature = "model")]
pub(crate) use shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
#[cfg(not(feature = "model"))]
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
