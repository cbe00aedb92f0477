//! The thread that answers at the model's moments.
//!
//! Invariant: it sleeps until shortly before the next moment of the model, by as much as the kernel
//! lately woke it too late, and waits actively for the rest; it never answers early.

use std::num::NonZeroU64;
use std::sync::PoisonError;
use std::time::Duration;

use super::{Due, Pace};
use crate::emudisk::clock::now_ns;

/// Longest active wait: more would cost others more than it gives.
const LEAD_NS_MAX: u64 = 50_000;
/// How long a model that says that it is behind is left alone.
const STALL_NS: u64 = 100_000;
/// The lead follows what the kernel does by this part of each difference.
const LEAD_SHARE: u64 = 8;

/// How long before a moment it has to wake up to be there in time.
#[derive(Debug, Default)]
struct Lead {
    ns: u64,
}

impl Lead {
    /// It asked to sleep until one moment and woke at another.
    fn learn(&mut self, asked_ns: u64, woke_ns: u64) {
        let late_ns = woke_ns.saturating_sub(asked_ns).min(LEAD_NS_MAX);
        self.ns = (self.ns * (LEAD_SHARE - 1) + late_ns) / LEAD_SHARE;
    }
}

/// Hands what is due to `send`, until [`Pace::end`].
pub(crate) fn run<A>(pace: &Pace<A>, mut send: impl FnMut(Due<A>)) {
    // Without it the kernel adds up to 50 us; then replies are late, which is counted.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let (mut due, mut lead) = (Vec::new(), Lead::default());
    while wait(pace, &mut lead, &mut due) {
        due.drain(..).for_each(&mut send);
    }
}

/// Waits until something is due, and appends it; `false` at the end.
fn wait<A>(pace: &Pace<A>, lead: &mut Lead, due: &mut Vec<Due<A>>) -> bool {
    let mut inner = pace.lock();
    loop {
        if inner.is_ending {
            return false;
        }
        let now = now_ns();
        if inner.next_due_ns().is_some_and(|next_ns| next_ns <= now) {
            inner.advance(now, due);
            if !due.is_empty() {
                inner.timer_until_ns = 0;
                return true;
            }
        }
        // A model that does not move on must not keep a processor from everybody else.
        let not_past = |next_ns: u64| if next_ns <= now { now + STALL_NS } else { next_ns };
        let Some(next_ns) = inner.next_due_ns().map(not_past) else {
            inner.timer_until_ns = u64::MAX;
            inner = pace.wake.wait(inner).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let until_ns = next_ns.saturating_sub(lead.ns);
        if until_ns <= now {
            inner.timer_until_ns = 0;
            drop(inner);
            while now_ns() < next_ns {
                std::hint::spin_loop();
            }
            inner = pace.lock();
            continue;
        }
        inner.timer_until_ns = next_ns;
        let sleep = Duration::from_nanos(until_ns - now);
        let woken = pace.wake.wait_timeout(inner, sleep).unwrap_or_else(PoisonError::into_inner);
        inner = woken.0;
        if woken.1.timed_out() {
            lead.learn(until_ns, now_ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_follows_within_bounds() {
        let mut lead = Lead::default();
        (0..100).for_each(|_| lead.learn(1000, 21_000));
        assert!((19_000..=20_000).contains(&lead.ns), "{}", lead.ns);
        (0..100).for_each(|_| lead.learn(1000, 999_000));
        assert!((49_000..=50_000).contains(&lead.ns), "{}", lead.ns);
        (0..100).for_each(|_| lead.learn(1000, 1000));
        assert!(lead.ns < 10, "{}", lead.ns);
    }
}
