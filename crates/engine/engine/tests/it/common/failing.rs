//! One call of the disk that fails, and runs in which calls fail one after the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use iostrata_io::disk::MemDisk;
use iostrata_io::disk::memory::{Call, Fault};

use crate::common::is_soak;
use crate::common::quiet::{Watch, quietly};

pub const EIO: Fault = Fault::Errno(5);
pub const ENOSPC: Fault = Fault::Errno(28);

/// The call that failed, once it did.
pub type FailedCall = Arc<Mutex<Option<Call>>>;

/// Lets one call fail, as long as the switch is on, and records it.
pub fn arm(memory: &MemDisk, number: u64, fault: Fault) -> (Arc<AtomicBool>, FailedCall) {
    let failed = Arc::new(Mutex::new(None));
    let armed = Arc::new(AtomicBool::new(true));
    let (seen, is_armed) = (Arc::clone(&failed), Arc::clone(&armed));
    memory.before_each(move |call| {
        if call.number != number || !is_armed.load(Ordering::Relaxed) {
            return Fault::None;
        }
        *seen.lock().unwrap() = Some(call.clone());
        fault
    });
    (armed, failed)
}

/// Lets one call after the other fail, until a run needs no more: every one with an error of the
/// device, which is passed on as any other, and every third with another fault; in the long form
/// every one with each. `run` returns whether the engine had to stop, or none when the call was not
/// reached.
pub fn at_calls(of: &str, fault: Fault, run: impl Fn(u64) -> Result<Option<bool>, String>) {
    let watch = Watch::new();
    let step = if fault == EIO || is_soak() { 1 } else { 3 };
    let (mut calls, mut stopped) = (0, 0);
    for number in (0..).step_by(step) {
        watch.on(format!("{fault:?} at call {number} of {of}"));
        match quietly(|| run(number)) {
            Ok(Some(has_stopped)) => {
                calls += 1;
                stopped += usize::from(has_stopped);
            }
            Ok(None) => break,
            Err(what) => panic!("{fault:?} at call {number} of {of}: {what}"),
        }
    }
    let is_enough = calls * step > 150 && stopped * step > 50;
    assert!(is_enough, "only {calls} calls, stopped by {stopped}");
    eprintln!("{fault:?} at {calls} calls of {of}, stopped by {stopped}");
}
