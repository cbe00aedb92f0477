//! What a drive is: it takes requests, and reports when each is done.
//!
//! Purpose: the trait [`Drive`], and what every modelled drive does alike: what is to happen, by
//! time ([`Agenda`]); a queue before the device, a clock, and answers in order ([`QueuedDevice`]).
//! Invariants: time is a number of nanoseconds that never goes back; every request that was taken
//! is done exactly once; a flush is done only after every write that was done before the flush came
//! is beyond a power cut. What was noted first comes first among things of the same moment. A
//! device holds at most its queue depth of requests; further ones wait in the order in which they
//! came, and one is let in for each that is done. Contents are not here, only time.

pub mod cloud;
pub mod flash;
pub mod hdd;
pub mod raid;
pub mod table;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Reads.
    Read,
    /// Writes; done when the drive reports it, which may be before it would survive a power cut.
    Write,
    /// Writes, and is done only when it is beyond a power cut (forced unit access).
    WriteThrough,
    /// Makes everything that was done beyond a power cut. Has no place and no length.
    Flush,
}

/// One request as it reaches a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the caller; no two in flight have the same.
    pub id: u64,
    /// What.
    pub command: Command,
    /// First byte.
    pub at_bytes: u64,
    /// How many bytes, 0 for a flush.
    pub bytes: u32,
}

impl Request {
    /// First byte after it.
    pub fn end(&self) -> u64 {
        self.at_bytes + u64::from(self.bytes)
    }
}

/// The completion of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveCompletion {
    /// Which.
    pub id: u64,
    /// When, in ns.
    pub at_ns: u64,
}

/// What holds for a drive at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveFacts {
    /// Its size in bytes.
    pub capacity_bytes: u64,
    /// Commands that it considers at a time; further ones wait in the order in which they came.
    pub queue_depth: u32,
    /// Most bytes of done writes that a power cut could take; 0 for a drive whose cache is off or
    /// protected.
    pub volatile_bytes: u64,
    /// Whether seeks cost time.
    pub is_rotational: bool,
}

/// A drive in virtual time.
///
/// The caller owns the clock: it calls [`Drive::submit`] when a request comes and
/// [`Drive::advance`] at or after each [`Drive::next_event_ns`]. Moments passed in never go back.
pub trait Drive: Send {
    /// What holds for it.
    fn facts(&self) -> DriveFacts;

    /// Takes a request that comes at `now_ns`. What should have happened before that moment happens
    /// first; requests that it finishes are handed out by the next [`Drive::advance`].
    ///
    /// # Panics
    /// When the request reaches beyond the capacity or time goes back: a broken invariant of the
    /// caller.
    fn submit(&mut self, now_ns: u64, request: Request);

    /// The next moment at which something happens by itself: a request is done, or work in the
    /// background ends. `None` when the drive is idle.
    fn next_event_ns(&self) -> Option<u64>;

    /// A moment before which nothing is done, as far as is known now; `None` when no request is in
    /// flight. A caller that waits only for completions need not look at what happens before: a
    /// later [`Drive::advance`] lets it happen.
    fn next_done_ns(&self) -> Option<u64> {
        self.next_event_ns()
    }

    /// Lets everything up to and including `now_ns` happen; appends what was done, earliest first,
    /// each with its own moment, which may lie before `now_ns`.
    fn advance(&mut self, now_ns: u64, done: &mut Vec<DriveCompletion>);
}

/// Events with their moments, in ns.
#[derive(Debug)]
pub struct Agenda<E> {
    entries: BinaryHeap<Reverse<ScheduledEvent<E>>>,
    noted: u64,
}

#[derive(Debug)]
struct ScheduledEvent<E> {
    at_ns: u64,
    order: u64,
    event: E,
}

impl<E> PartialEq for ScheduledEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at_ns, self.order) == (other.at_ns, other.order)
    }
}

impl<E> Eq for ScheduledEvent<E> {}

impl<E> PartialOrd for ScheduledEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for ScheduledEvent<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Agenda<E> {
    /// Without events.
    pub fn new() -> Self {
        Self { entries: BinaryHeap::new(), noted: 0 }
    }

    /// Adds an event.
    pub fn note(&mut self, at_ns: u64, event: E) {
        self.entries.push(Reverse(ScheduledEvent { at_ns, order: self.noted, event }));
        self.noted += 1;
    }

    /// The moment of the next event.
    pub fn next_ns(&self) -> Option<u64> {
        self.entries.peek().map(|Reverse(entry)| entry.at_ns)
    }

    /// The next event, if it comes at or before `until_ns`.
    pub fn due(&mut self, until_ns: u64) -> Option<(u64, E)> {
        if self.next_ns()? > until_ns {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| (entry.at_ns, entry.event))
    }

    /// All events, in no order.
    pub fn drain(&mut self) -> impl Iterator<Item = E> {
        self.entries.drain().map(|Reverse(entry)| entry.event)
    }
}

/// A device behind its queue: what it does with the requests that it holds.
pub trait Device: Send {
    /// What holds for it.
    fn facts(&self) -> DriveFacts;

    /// What it wants to know, when a request is let in, of the moment at which that came.
    fn mark(&self, now_ns: u64) -> u64 {
        now_ns
    }

    /// Takes a request that came at `mark`; there is a place for it in the queue.
    fn admit(&mut self, now_ns: u64, request: Request, mark: u64);

    /// The next moment at which something happens by itself.
    fn next_event_ns(&self) -> Option<u64>;

    /// A moment before which none of the requests that it holds is done; it holds some.
    fn next_done_ns(&self) -> Option<u64> {
        self.next_event_ns()
    }

    /// Lets happen what is to happen at `now_ns`; appends the requests that are done.
    fn step(&mut self, now_ns: u64, done: &mut VecDeque<DriveCompletion>);
}

/// A device with its queue: a drive.
#[derive(Debug)]
pub struct QueuedDevice<D> {
    device: D,
    facts: DriveFacts,
    now_ns: u64,
    /// Requests that are not let in yet, with their marks.
    waiting: VecDeque<(Request, u64)>,
    in_flight: u32,
    done: VecDeque<DriveCompletion>,
}

impl<D: Device> QueuedDevice<D> {
    /// An idle drive at the moment 0.
    ///
    /// # Panics
    /// Without a queue or a capacity: not a drive.
    fn over(device: D) -> Self {
        let facts = device.facts();
        assert!(facts.queue_depth > 0, "a drive without a queue");
        assert!(facts.capacity_bytes > 0, "a drive without a capacity");
        let (waiting, done) = (VecDeque::new(), VecDeque::new());
        Self { device, facts, now_ns: 0, waiting, in_flight: 0, done }
    }

    /// The device itself.
    pub(crate) fn device(&self) -> &D {
        &self.device
    }

    /// The drive over a device that was changed before anything came.
    fn altered(self, change: impl FnOnce(D) -> D) -> Self {
        Self::over(change(self.device))
    }

    /// Requests that it holds or that wait.
    pub(crate) fn requests(&self) -> usize {
        self.in_flight as usize + self.waiting.len()
    }

    fn let_in(&mut self) {
        while self.in_flight < self.facts.queue_depth
            && let Some((request, mark)) = self.waiting.pop_front()
        {
            self.in_flight += 1;
            self.device.admit(self.now_ns, request, mark);
        }
    }

    fn run_until(&mut self, until_ns: u64) {
        assert!(until_ns >= self.now_ns, "time went back from {} to {until_ns}", self.now_ns);
        while let Some(at_ns) = self.device.next_event_ns().filter(|at_ns| *at_ns <= until_ns) {
            self.now_ns = self.now_ns.max(at_ns);
            let before = self.done.len();
            self.device.step(self.now_ns, &mut self.done);
            self.in_flight -= (self.done.len() - before) as u32;
            self.let_in();
        }
        self.now_ns = until_ns;
    }
}

impl<D: Device> Drive for QueuedDevice<D> {
    fn facts(&self) -> DriveFacts {
        self.facts
    }

    fn submit(&mut self, now_ns: u64, request: Request) {
        let fits = request.end() <= self.facts.capacity_bytes;
        assert!(fits, "{request:?} reaches beyond {} bytes", self.facts.capacity_bytes);
        self.run_until(now_ns);
        self.waiting.push_back((request, self.device.mark(now_ns)));
        self.let_in();
    }

    fn next_event_ns(&self) -> Option<u64> {
        let done_ns = self.done.front().map(|done| done.at_ns);
        done_ns.or_else(|| self.device.next_event_ns())
    }

    fn next_done_ns(&self) -> Option<u64> {
        let done_ns = self.done.front().map(|done| done.at_ns);
        done_ns.or_else(|| self.device.next_done_ns().filter(|_| self.in_flight > 0))
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<DriveCompletion>) {
        self.run_until(now_ns);
        done.extend(self.done.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_at_their_moment_and_in_their_order() {
        let mut agenda = Agenda::new();
        for (at_ns, event) in [(20, 'c'), (10, 'a'), (10, 'b')] {
            agenda.note(at_ns, event);
        }
        assert_eq!((agenda.due(9), agenda.next_ns()), (None, Some(10)));
        assert_eq!(agenda.due(10), Some((10, 'a')));
        assert_eq!(agenda.due(19), Some((10, 'b')));
        assert_eq!((agenda.due(19), agenda.due(20)), (None, Some((20, 'c'))));
        assert_eq!(agenda.next_ns(), None);
    }
}

/// What every drive promises, tried on each in the catalogue.
#[cfg(test)]
mod promise_tests {
    use std::collections::HashMap;

    use iostrata_plan::disk::{DiskModel, DiskSpec};
    use proptest::prelude::*;

    use super::raid::{BATTERY_512M, ProtectedCacheParameters, ProtectedDrive};
    use super::{Command, Drive, DriveCompletion, Request};
    use crate::model;

    const CAPACITY_BYTES: u64 = 1 << 30;

    /// A request, how long after the one before it comes, and whether the caller looks in between.
    fn arrival() -> impl Strategy<Value = (Request, u64, bool)> {
        let command = prop_oneof![
            4 => Just(Command::Read),
            4 => Just(Command::Write),
            1 => Just(Command::WriteThrough),
            1 => Just(Command::Flush),
        ];
        let gap_ns = prop_oneof![Just(0), 0..100_000_u64, 0..20_000_000_u64];
        (command, 0..CAPACITY_BYTES / 512, 0..600_u32, gap_ns, any::<bool>()).prop_map(
            |(command, sector, sectors, gap_ns, looks)| {
                let sectors = sectors.min((CAPACITY_BYTES / 512 - sector) as u32);
                let request = match command {
                    Command::Flush => Request { id: 0, command, at_bytes: 0, bytes: 0 },
                    _ => {
                        let bytes = sectors.max(1) * 512;
                        Request { id: 0, command, at_bytes: sector * 512, bytes }
                    }
                };
                (request, gap_ns, looks)
            },
        )
    }

    /// Runs the drive through the arrivals and returns what was done, in the order handed out.
    fn live(
        drive: &mut dyn Drive,
        arrivals: &[(Request, u64, bool)],
    ) -> (Vec<u64>, Vec<DriveCompletion>) {
        let (mut now_ns, mut done, mut came_ns) = (0, Vec::new(), Vec::new());
        for (id, (request, gap_ns, looks)) in arrivals.iter().enumerate() {
            let until_ns = now_ns + gap_ns;
            while *looks && drive.next_event_ns().is_some_and(|next_ns| next_ns <= until_ns) {
                now_ns = drive.next_event_ns().unwrap().max(now_ns);
                drive.advance(now_ns, &mut done);
            }
            now_ns = until_ns;
            drive.submit(now_ns, Request { id: id as u64, ..*request });
            came_ns.push(now_ns);
        }
        let mut idle_ns = None;
        while let Some(next_ns) = drive.next_event_ns() {
            assert!(next_ns >= now_ns || !done.is_empty() || idle_ns.is_none(), "time goes on");
            now_ns = next_ns.max(now_ns);
            drive.advance(now_ns, &mut done);
            idle_ns = Some(now_ns);
        }
        (came_ns, done)
    }

    fn check(spec: &DiskSpec, arrivals: &[(Request, u64, bool)]) -> Result<(), TestCaseError> {
        check_drive(spec, &|| model::drive(spec, CAPACITY_BYTES, None, 3).unwrap(), arrivals)
    }

    fn check_drive(
        spec: &DiskSpec,
        make: &dyn Fn() -> Box<dyn Drive>,
        arrivals: &[(Request, u64, bool)],
    ) -> Result<(), TestCaseError> {
        let (came_ns, done) = live(make().as_mut(), arrivals);
        let mut done_ns: HashMap<u64, u64> = HashMap::new();
        for window in done.windows(2) {
            prop_assert!(window[0].at_ns <= window[1].at_ns, "{spec}: handed out in order");
        }
        for DriveCompletion { id, at_ns } in &done {
            prop_assert!(done_ns.insert(*id, *at_ns).is_none(), "{spec}: {id} is done twice");
            prop_assert!(*at_ns >= came_ns[*id as usize], "{spec}: {id} is done before it came");
        }
        prop_assert_eq!(done_ns.len(), arrivals.len(), "{}: all are done", spec);
        prop_assert_eq!(live(make().as_mut(), arrivals).1, done, "{}: by its seed alone", spec);
        // Whether the caller polls at every event or only when it submits must not matter.
        let blind: Vec<_> =
            arrivals.iter().map(|(request, gap, _)| (*request, *gap, false)).collect();
        let eager: Vec<_> =
            arrivals.iter().map(|(request, gap, _)| (*request, *gap, true)).collect();
        let moments = |arrivals: &[_]| {
            let (_, mut done) = live(make().as_mut(), arrivals);
            done.sort_by_key(|done| (done.at_ns, done.id));
            done
        };
        prop_assert_eq!(moments(&blind), moments(&eager), "{}: however often it is asked", spec);
        prop_assert_eq!(
            waited(make().as_mut(), arrivals),
            moments(&eager),
            "{}: who only waits",
            spec
        );
        Ok(())
    }

    /// The same for a caller that looks only when something may be done, and finds nothing done
    /// before.
    fn waited(drive: &mut dyn Drive, arrivals: &[(Request, u64, bool)]) -> Vec<DriveCompletion> {
        let (mut now_ns, mut done) = (0, Vec::new());
        for (id, (request, gap_ns, _)) in arrivals.iter().enumerate() {
            wait(drive, now_ns + gap_ns, &mut now_ns, &mut done);
            drive.submit(now_ns, Request { id: id as u64, ..*request });
        }
        wait(drive, u64::MAX, &mut now_ns, &mut done);
        assert_eq!(drive.next_done_ns(), None, "nothing is in flight");
        done.sort_by_key(|done| (done.at_ns, done.id));
        done
    }

    fn wait(
        drive: &mut dyn Drive,
        until_ns: u64,
        now_ns: &mut u64,
        done: &mut Vec<DriveCompletion>,
    ) {
        while let Some(next_ns) = drive.next_done_ns().filter(|next_ns| *next_ns <= until_ns) {
            let (before, asked_ns) = (done.len(), next_ns);
            drive.advance(next_ns.max(*now_ns), done);
            let early = done[before..].iter().find(|done| done.at_ns < asked_ns);
            assert!(early.is_none(), "{early:?} is done before {asked_ns}, when nothing may be");
            *now_ns = next_ns.max(*now_ns);
        }
        *now_ns = if until_ns == u64::MAX { *now_ns } else { until_ns };
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 24,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn every_model_keeps_its_promises(arrivals in prop::collection::vec(arrival(), 1..120)) {
            for model in DiskModel::NAMED {
                let spec = DiskSpec::of(model);
                check(&spec, &arrivals)?;
                let protected = || -> Box<dyn Drive> {
                    let cache = ProtectedCacheParameters { cache_bytes: 1 << 20, ..BATTERY_512M };
                    let drive = model::drive(&spec, CAPACITY_BYTES, None, 3).unwrap();
                    Box::new(ProtectedDrive::before(drive, cache))
                };
                check_drive(&spec, &protected, &arrivals)?;
                if let Ok(shallow) = format!("{spec},queue=2").parse() {
                    check(&shallow, &arrivals)?;
                }
                if let Ok(through) = format!("{spec},cache=off").parse::<DiskSpec>()
                    && model::drive(&through, CAPACITY_BYTES, None, 1).is_ok()
                {
                    check(&through, &arrivals)?;
                }
            }
        }
    }
}
