//! Filling tables, several parts at a time.
//!
//! Invariant: the first failure ends everybody's work, and is the one that is told.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use iostrata_target::TargetError;

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
