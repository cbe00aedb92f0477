//! When each request is answered: the model in real time.
//!
//! Invariant: every request that was taken is handed out exactly once, not before the model's
//! moment; after the power failed, at once and as failed. What an answer is and how it is sent is
//! not known here, and nothing is sent under the lock.

mod tally;
#[cfg(test)]
mod tests;
mod timer;

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::drive::{Agenda, Command, Done, Drive, Request};

use crate::emudisk::fault::Stall;
pub(crate) use tally::Traffic;
pub(crate) use timer::run as run_timer;

/// How long a model is left alone with what it does in the background, in ns.
const BACKGROUND_NS: u64 = 5_000_000;

/// An answer whose moment has come.
#[derive(Debug)]
pub(crate) struct Due<A> {
    /// What was given with the request.
    pub answer: A,
    /// The moment that the model gave, in ns of the clock.
    pub at_ns: u64,
}

/// Requests in flight, and the model that says when they are done.
pub(crate) struct Pace<A> {
    inner: Mutex<Inner<A>>,
    /// Wakes the timer when something is due earlier than it knows.
    wake: Condvar,
}

/// A drive whose time begins when its power comes on: what it earns by the second, it earns from
/// then.
struct Powered {
    drive: Box<dyn Drive>,
    since_ns: u64,
}

impl Powered {
    fn submit(&mut self, now_ns: u64, request: Request) {
        self.drive.submit(now_ns - self.since_ns, request);
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>) {
        self.drive.advance(now_ns - self.since_ns, done);
        done.iter_mut().for_each(|done| done.at_ns += self.since_ns);
    }

    /// A moment before which nothing is due, when the drive was last told `told_ns`. Work in the
    /// background is let happen now and then, so that it does not pile up.
    fn next_due_ns(&self, told_ns: u64) -> Option<u64> {
        let background_ns = self.drive.next_event_ns()? + self.since_ns;
        let background_ns = background_ns.max(told_ns + BACKGROUND_NS);
        let done_ns = self.drive.next_done_ns().map(|done_ns| done_ns + self.since_ns);
        Some(done_ns.map_or(background_ns, |done_ns| done_ns.min(background_ns)))
    }
}

struct Inner<A> {
    /// `None` while there is no power.
    drive: Option<Powered>,
    /// The latest moment that the drive was told, in ns.
    clock_ns: u64,
    in_flight: HashMap<u64, A>,
    next_id: u64,
    /// Requests that the model has done and that are slowed on purpose.
    delayed: Agenda<A>,
    slow_ns: u64,
    stall: Option<Stall>,
    /// Until when the timer sleeps; 0 while it is awake.
    timer_until_ns: u64,
    is_ending: bool,
    tally: Traffic,
    done: Vec<Done>,
}

impl<A> Inner<A> {
    /// Lets everything up to now happen; appends what is due.
    fn advance(&mut self, now_ns: u64, due: &mut Vec<Due<A>>) {
        let Some(drive) = &mut self.drive else { return };
        self.clock_ns = self.clock_ns.max(now_ns);
        drive.advance(self.clock_ns, &mut self.done);
        for Done { id, at_ns } in self.done.drain(..) {
            let Some(answer) = self.in_flight.remove(&id) else { continue };
            match after_stall(at_ns + self.slow_ns, self.stall) {
                later_ns if later_ns > at_ns => self.delayed.note(later_ns, answer),
                _ => due.push(Due { answer, at_ns }),
            }
        }
        while let Some((at_ns, answer)) = self.delayed.due(now_ns) {
            due.push(Due { answer, at_ns });
        }
        self.tally.left(now_ns, due.len());
    }

    /// A moment before which nothing is due.
    fn next_due_ns(&self) -> Option<u64> {
        let model_ns = self.drive.as_ref().and_then(|drive| drive.next_due_ns(self.clock_ns));
        model_ns.into_iter().chain(self.delayed.next_ns()).min()
    }

    /// Whether the timer has to be told of an earlier moment.
    fn must_wake(&self) -> bool {
        self.next_due_ns().is_some_and(|next_ns| next_ns < self.timer_until_ns)
    }
}

/// The moment itself, or the end of the pause that it falls into.
fn after_stall(at_ns: u64, stall: Option<Stall>) -> u64 {
    let Some(Stall { lasts_ms, every_ms }) = stall else { return at_ns };
    let [lasts_ns, every_ns] = [lasts_ms, every_ms].map(|ms| u64::from(ms) * 1_000_000);
    let began_ns = at_ns - at_ns % every_ns;
    at_ns.max(began_ns + lasts_ns)
}

impl<A> Pace<A> {
    pub(crate) fn new(drive: Box<dyn Drive>, now_ns: u64) -> Self {
        let inner = Inner {
            drive: Some(Powered { drive, since_ns: now_ns }),
            clock_ns: now_ns,
            in_flight: HashMap::new(),
            next_id: 0,
            delayed: Agenda::new(),
            slow_ns: 0,
            stall: None,
            timer_until_ns: 0,
            is_ending: false,
            tally: Traffic::default(),
            done: Vec::new(),
        };
        Self { inner: Mutex::new(inner), wake: Condvar::new() }
    }

    /// A thread that panicked under the lock ends the server; until then the others go on.
    fn lock(&self) -> MutexGuard<'_, Inner<A>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request that came at `came_ns`, and appends what is due by now.
    ///
    /// # Errors
    /// There is no power: the answer is given back.
    pub(crate) fn submit(
        &self,
        came_ns: u64,
        command: Command,
        at_bytes: u64,
        bytes: u32,
        answer: A,
        due: &mut Vec<Due<A>>,
    ) -> Result<(), A> {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let Some(drive) = &mut inner.drive else { return Err(answer) };
        let id = inner.next_id;
        inner.next_id += 1;
        inner.clock_ns = inner.clock_ns.max(came_ns);
        drive.submit(inner.clock_ns, Request { id, command, at_bytes, bytes });
        inner.in_flight.insert(id, answer);
        inner.tally.came(crate::emudisk::clock::now_ns(), command, at_bytes, bytes);
        let now_ns = crate::emudisk::clock::now_ns();
        if inner.next_due_ns().is_some_and(|next_ns| next_ns <= now_ns) {
            inner.advance(now_ns, due);
        }
        if inner.must_wake() {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// The power fails: everything in flight is given back.
    pub(crate) fn power_off(&self, now_ns: u64) -> Vec<A> {
        let mut inner = self.lock();
        inner.drive = None;
        let mut answers: Vec<A> = inner.in_flight.drain().map(|(_, answer)| answer).collect();
        answers.extend(inner.delayed.drain());
        inner.tally.left(now_ns, answers.len());
        answers
    }

    /// The power is back: the drive starts anew.
    pub(crate) fn power_on(&self, drive: Box<dyn Drive>, now_ns: u64) {
        let mut inner = self.lock();
        let since_ns = inner.clock_ns.max(now_ns);
        inner.clock_ns = since_ns;
        inner.drive = Some(Powered { drive, since_ns });
    }

    /// From now on every request takes so much longer.
    pub(crate) fn set_slow(&self, slow_ns: u64) {
        self.lock().slow_ns = slow_ns;
    }

    /// From now on nothing is answered during these pauses.
    pub(crate) fn set_stall(&self, stall: Option<Stall>) {
        self.lock().stall = stall;
    }

    /// What came so far.
    pub(crate) fn tally(&self) -> Traffic {
        self.lock().tally.clone()
    }

    /// The timer ends soon.
    pub(crate) fn end(&self) {
        self.lock().is_ending = true;
        self.wake.notify_one();
    }
}
