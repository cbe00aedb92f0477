//! The loop on real threads: what it counts, when it ends, what it costs.
#![allow(clippy::unwrap_used)]

mod allocation;
mod poisson;
mod real;
mod transactions;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tests on the real clock run one at a time, also under plain cargo.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
