//! When a worker pauses between requests.
//!
//! Invariant: a pause begins when nothing is in flight any more, so that it is no part of a
//! latency. It reads no clock: the caller passes the time.

use std::time::Duration;

use iostrata_plan::Pause;

use crate::clock::Ticks;

/// One worker's pauses.
#[derive(Clone, Debug)]
pub(crate) struct Pauses {
    pause: Pause,
    counted: u32,
    /// A pause begins as soon as nothing is in flight.
    is_due: bool,
    until: Option<Ticks>,
}

impl Pauses {
    pub(crate) fn new(pause: Pause) -> Self {
        Self { pause, counted: 0, is_due: false, until: None }
    }

    /// Takes note of a request that was started; true when no further one may start.
    pub(crate) fn started(&mut self) -> bool {
        self.counted += 1;
        if self.counted >= self.pause.every {
            self.counted = 0;
            self.is_due = true;
        }
        self.is_due
    }

    /// Whether requests must wait at `now`; begins a due pause, which `ticks_in` measures.
    pub(crate) fn holds(
        &mut self,
        now: Ticks,
        in_flight: u32,
        ticks_in: impl Fn(Duration) -> Ticks,
    ) -> bool {
        if self.is_due && in_flight == 0 {
            self.is_due = false;
            self.until = Some(now + ticks_in(self.pause.length));
        }
        self.until = self.until.filter(|until| now < *until);
        self.is_due || self.until.is_some()
    }

    /// The end of the present pause, if any.
    pub(crate) fn until(&self) -> Option<Ticks> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_begins_when_the_last_of_n_requests_is_done() {
        let mut pauses = Pauses::new(Pause { every: 2, length: Duration::from_nanos(100) });
        let ticks = |time: Duration| time.as_nanos() as u64;
        assert!(!pauses.started());
        assert!(pauses.started(), "two are in flight and a third must wait");
        assert!(pauses.holds(10, 1, ticks) && pauses.until().is_none());
        assert!(pauses.holds(20, 0, ticks));
        assert_eq!(pauses.until(), Some(120));
        assert!(pauses.holds(119, 0, ticks));
        assert!(!pauses.holds(120, 0, ticks));
        assert!(!pauses.started(), "counting begins anew");
    }
}
