//! Lets the server's threads run before everybody else's.
//!
//! Invariant: best effort. A real disk does not slow down when the processors are busy; a
//! served one must not either, as far as the kernel lets it.

#![allow(unsafe_code)]

/// The lowest of the real-time priorities: before every ordinary thread, after the kernel's own.
const PRIORITY: i32 = 1;

/// Makes the calling thread, and those that it starts from now on, real-time threads. Returns
/// whether the kernel let it.
pub(crate) fn raise() -> bool {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the kernel reads the structure, which lives; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}
