//! The thread that answers at the model's moments.
//!
//! Invariant: it sleeps until the next moment of the model and not longer; the kernel adds nothing
//! to it on purpose (a timer slack of 1 ns).

use std::num::NonZeroU64;
use std::sync::PoisonError;
use std::time::Duration;

use super::{Due, Pace};
use crate::clock::now_ns;

/// Hands what is due to `send`, until [`Pace::end`].
pub(crate) fn run<A>(pace: &Pace<A>, mut send: impl FnMut(Due<A>)) {
    // Without it the kernel adds up to 50 us; then replies are late, which is counted.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut due = Vec::new();
    while wait(pace, &mut due) {
        due.drain(..).for_each(&mut send);
    }
}

/// Waits until something is due, and appends it; `false` at the end.
fn wait<A>(pace: &Pace<A>, due: &mut Vec<Due<A>>) -> bool {
    let mut inner = pace.lock();
    loop {
        if inner.is_ending {
            return false;
        }
        let now = now_ns();
        if inner.next_event_ns().is_some_and(|next_ns| next_ns <= now) {
            inner.advance(now, due);
            if !due.is_empty() {
                inner.timer_until_ns = 0;
                return true;
            }
        }
        let next_ns = inner.next_event_ns();
        inner.timer_until_ns = next_ns.unwrap_or(u64::MAX);
        inner = match next_ns {
            Some(next_ns) => {
                let sleep = Duration::from_nanos(next_ns.saturating_sub(now_ns()));
                pace.wake.wait_timeout(inner, sleep).unwrap_or_else(PoisonError::into_inner).0
            }
            None => pace.wake.wait(inner).unwrap_or_else(PoisonError::into_inner),
        };
    }
}
