//! Filling tables, several parts at a time.
//!
//! Invariant: the first failure ends everybody's work, and is the one that is told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use iostrata_database::target::{Target, TargetError};

/// What filling came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Rows that were loaded now.
    pub rows: u64,
    /// Rows that an earlier attempt had loaded.
    pub rows_before: u64,
}

/// Lets so many threads fill one part after the other. `fill` is given a part and asks whether
/// everything is over: because `stop` was set, or another thread has failed.
///
/// # Errors
/// The first failure.
pub(crate) fn fill_all<C: Sync>(
    parts: &[C],
    threads: usize,
    stop: &AtomicBool,
    fill: impl Fn(&C, &dyn Fn() -> bool) -> Result<(), TargetError> + Sync,
) -> Result<(), TargetError> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let lock = || failed.lock().unwrap_or_else(PoisonError::into_inner);
    let is_over = || stop.load(Ordering::Relaxed) || lock().is_some();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, parts.len().max(1)) {
            scope.spawn(|| {
                while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if is_over() {
                        return;
                    }
                    if let Err(error) = fill(part, &is_over) {
                        lock().get_or_insert(error);
                    }
                }
            });
        }
    });
    lock().take().map_or(Ok(()), Err)
}

/// Refuses to go on once `stop` is set.
///
/// # Errors
/// It is set.
pub(crate) fn refuse_stopped(
    target: &dyn Target,
    stop: &AtomicBool,
    fix: &str,
) -> Result<(), TargetError> {
    match stop.load(Ordering::Relaxed) {
        true => {
            let what = "filling was stopped".to_owned();
            Err(TargetError::not_ready(&target.name(), "stopped", what, fix))
        }
        false => Ok(()),
    }
}
