//! When each request is answered: the model in real time, the counts of what came, and the thread
//! that answers.
//!
//! Invariants: every request that was taken is handed out exactly once, not before the model's
//! moment; after the power failed, at once and as failed. What an answer is and how it is sent is
//! not known here, and nothing is sent under the lock. Counts are exact, and so cheap that they are
//! always on. The thread sleeps until shortly before the next moment of the model, by as much as
//! the kernel lately woke it too late, and waits actively for the rest; it never answers early.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::drive::{Agenda, Command, Drive, DriveCompletion, Request};
use crate::emudisk::fault::Stall;

/// Nanoseconds of CLOCK_MONOTONIC.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

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

/// Requests in flight, and the model that computes when they are done.
pub(crate) struct Pace<A> {
    inner: Mutex<Inner<A>>,
    /// Wakes the timer when something is due earlier than it sleeps until.
    wake: Condvar,
}

/// A drive whose time begins when its power comes on: what it earns by the second, it earns from
/// then.
struct PoweredDrive {
    drive: Box<dyn Drive>,
    since_ns: u64,
}

impl PoweredDrive {
    fn submit(&mut self, now_ns: u64, request: Request) {
        self.drive.submit(now_ns - self.since_ns, request);
    }

    fn advance(&mut self, now_ns: u64, done: &mut Vec<DriveCompletion>) {
        self.drive.advance(now_ns - self.since_ns, done);
        done.iter_mut().for_each(|done| done.at_ns += self.since_ns);
    }

    /// A moment before which nothing is due, when the drive was last advanced to `told_ns`. Work in
    /// the background happens now and then, so that it does not pile up.
    fn next_due_ns(&self, told_ns: u64) -> Option<u64> {
        let background_ns = self.drive.next_event_ns()? + self.since_ns;
        let background_ns = background_ns.max(told_ns + BACKGROUND_NS);
        let done_ns = self.drive.next_done_ns().map(|done_ns| done_ns + self.since_ns);
        Some(done_ns.map_or(background_ns, |done_ns| done_ns.min(background_ns)))
    }
}

struct Inner<A> {
    /// `None` while there is no power.
    drive: Option<PoweredDrive>,
    /// The latest moment that the drive was advanced to, in ns.
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
    done: Vec<DriveCompletion>,
}

impl<A> Inner<A> {
    /// Lets everything up to now happen; appends what is due.
    fn advance(&mut self, now_ns: u64, due: &mut Vec<Due<A>>) {
        let Some(drive) = &mut self.drive else { return };
        self.clock_ns = self.clock_ns.max(now_ns);
        drive.advance(self.clock_ns, &mut self.done);
        for DriveCompletion { id, at_ns } in self.done.drain(..) {
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

    /// Whether the timer has to be woken for an earlier moment.
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
            drive: Some(PoweredDrive { drive, since_ns: now_ns }),
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
        inner.tally.came(now_ns(), command, at_bytes, bytes);
        let now_ns = now_ns();
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

    /// The power is back: the drive restarts.
    pub(crate) fn power_on(&self, drive: Box<dyn Drive>, now_ns: u64) {
        let mut inner = self.lock();
        let since_ns = inner.clock_ns.max(now_ns);
        inner.clock_ns = since_ns;
        inner.drive = Some(PoweredDrive { drive, since_ns });
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

/// What came so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub depth_max: u32,
    in_order: u64,
    next_byte: u64,
    depth: u32,
    changed_ns: u64,
    busy_ns: u64,
    /// Depth times ns.
    area: u128,
}

impl Traffic {
    /// Depth averaged over the time in which it was not 0.
    pub(crate) fn depth_mean(&self) -> f64 {
        if self.busy_ns == 0 { 0.0 } else { self.area as f64 / self.busy_ns as f64 }
    }

    /// Share of reads and writes that began where the one before ended.
    pub(crate) fn in_order_share(&self) -> f64 {
        let all = self.reads + self.writes;
        if all == 0 { 0.0 } else { self.in_order as f64 / all as f64 }
    }

    fn came(&mut self, now_ns: u64, command: Command, at_bytes: u64, bytes: u32) {
        let bytes = u64::from(bytes);
        match command {
            Command::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Command::Write | Command::WriteThrough => {
                self.writes += 1;
                self.write_bytes += bytes;
            }
            Command::Flush => self.flushes += 1,
        }
        if command != Command::Flush {
            self.in_order += u64::from(at_bytes == self.next_byte && at_bytes > 0);
            self.next_byte = at_bytes + bytes;
        }
        self.passed(now_ns);
        self.depth += 1;
        self.depth_max = self.depth_max.max(self.depth);
    }

    fn left(&mut self, now_ns: u64, requests: usize) {
        if requests > 0 {
            self.passed(now_ns);
            self.depth -= requests as u32;
        }
    }

    fn passed(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.changed_ns);
        if self.depth > 0 {
            self.busy_ns += passed_ns;
            self.area += u128::from(self.depth) * u128::from(passed_ns);
        }
        self.changed_ns = self.changed_ns.max(now_ns);
    }
}

/// Longest active wait: more would cost others more than it gives.
const LEAD_NS_MAX: u64 = 50_000;
/// How long a model that reports that it is behind is left alone.
const STALL_NS: u64 = 100_000;
/// The lead follows what the kernel does by this part of each difference.
const LEAD_SHARE: u64 = 8;

/// How long before a moment it has to wake up to be there in time.
#[derive(Debug, Default)]
struct Lead {
    ns: u64,
}

impl Lead {
    /// It was to sleep until one moment and woke at another.
    fn learn(&mut self, asked_ns: u64, woke_ns: u64) {
        let late_ns = woke_ns.saturating_sub(asked_ns).min(LEAD_NS_MAX);
        self.ns = (self.ns * (LEAD_SHARE - 1) + late_ns) / LEAD_SHARE;
    }
}

/// Hands what is due to `send`, until [`Pace::end`].
pub(crate) fn run_timer<A>(pace: &Pace<A>, mut send: impl FnMut(Due<A>)) {
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
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::{Receiver, channel};

    use super::*;
    use crate::drive::DriveFacts;

    #[test]
    fn depth_is_weighted_with_time() {
        let mut tally = Traffic::default();
        tally.came(100, Command::Read, 0, 4096);
        tally.came(200, Command::Write, 4096, 512);
        tally.left(500, 1);
        tally.left(600, 1);
        // Idle from 600 to 1000 does not count.
        tally.came(1000, Command::Flush, 0, 0);
        tally.left(1500, 1);
        assert_eq!(tally.depth_mean(), (100.0 + 600.0 + 100.0 + 500.0) / 1000.0);
        assert_eq!((tally.depth_max, tally.in_order_share()), (2, 0.5));
        assert_eq!((tally.reads, tally.writes, tally.flushes), (1, 1, 1));
        assert_eq!((tally.read_bytes, tally.write_bytes), (4096, 512));
    }

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

    /// Each request takes as many us as it has bytes.
    struct Slowly(Vec<DriveCompletion>);

    impl Drive for Slowly {
        fn facts(&self) -> DriveFacts {
            let capacity_bytes = 1 << 20;
            DriveFacts { capacity_bytes, queue_depth: 9, volatile_bytes: 0, is_rotational: false }
        }

        fn submit(&mut self, now_ns: u64, request: Request) {
            self.0.push(DriveCompletion {
                id: request.id,
                at_ns: now_ns + u64::from(request.bytes) * 1000,
            });
            self.0.sort_by_key(|done| done.at_ns);
        }

        fn next_event_ns(&self) -> Option<u64> {
            self.0.first().map(|done| done.at_ns)
        }

        fn advance(&mut self, now_ns: u64, done: &mut Vec<DriveCompletion>) {
            let due = self.0.partition_point(|done| done.at_ns <= now_ns);
            done.extend(self.0.drain(..due));
        }
    }

    type Sent = (&'static str, u64, u64);

    fn start() -> (Arc<Pace<&'static str>>, Receiver<Sent>) {
        let pace = Arc::new(Pace::new(Box::new(Slowly(Vec::new())), now_ns()));
        let (sender, receiver) = channel();
        let timer = pace.clone();
        std::thread::spawn(move || {
            run_timer(&timer, |due| sender.send((due.answer, due.at_ns, now_ns())).unwrap());
        });
        (pace, receiver)
    }

    fn submit(pace: &Pace<&'static str>, bytes: u32, name: &'static str) {
        let mut due = Vec::new();
        pace.submit(now_ns(), Command::Read, 0, bytes, name, &mut due).unwrap();
        assert!(due.is_empty());
    }

    #[test]
    fn answers_come_in_the_models_order_and_not_early() {
        let (pace, sent) = start();
        submit(&pace, 60_000, "last");
        submit(&pace, 20_000, "first");
        std::thread::sleep(std::time::Duration::from_millis(1));
        submit(&pace, 30_000, "second");
        for expected in ["first", "second", "last"] {
            let (name, due_ns, now_ns) = sent.recv().unwrap();
            assert_eq!(name, expected);
            assert!(now_ns >= due_ns, "{name} came {} ns early", due_ns - now_ns);
        }
        pace.end();
        assert!(sent.recv().is_err());
    }

    #[test]
    fn slowed_requests_come_later() {
        let (pace, sent) = start();
        pace.set_slow(50_000_000);
        let before_ns = now_ns();
        submit(&pace, 1000, "slow");
        assert!(sent.recv().unwrap().1 >= before_ns + 51_000_000);
        pace.set_slow(0);
        submit(&pace, 1000, "quick");
        assert_eq!(sent.recv().unwrap().0, "quick");
        pace.end();
    }

    #[test]
    fn what_falls_into_a_pause_comes_at_its_end() {
        let stall = Some(Stall { lasts_ms: 50, every_ms: 1_000 });
        let ms = |at_ms: u64| after_stall(at_ms * 1_000_000, stall) / 1_000_000;
        assert_eq!([ms(2_999), ms(3_000), ms(3_049), ms(3_050)], [2_999, 3_050, 3_050, 3_050]);
        assert_eq!(after_stall(7, None), 7);
        let (pace, sent) = start();
        pace.set_stall(Some(Stall { lasts_ms: 59_999, every_ms: 60_000 }));
        submit(&pace, 1000, "stalled");
        assert!(sent.recv_timeout(std::time::Duration::from_millis(20)).is_err());
        assert_eq!(pace.power_off(now_ns()), ["stalled"]);
        pace.end();
    }

    #[test]
    fn a_power_cut_gives_everything_back() {
        let (pace, sent) = start();
        submit(&pace, 900_000_000, "one");
        submit(&pace, 1000, "quick");
        assert_eq!(sent.recv().unwrap().0, "quick");
        assert_eq!(pace.power_off(now_ns()), ["one"]);
        let refused = pace.submit(now_ns(), Command::Read, 0, 1, "off", &mut Vec::new());
        assert_eq!(refused, Err("off"));
        pace.power_on(Box::new(Slowly(Vec::new())), now_ns());
        submit(&pace, 1000, "again");
        assert_eq!(sent.recv().unwrap().0, "again");
        assert_eq!(pace.tally().depth_max, 2);
        pace.end();
    }

    /// Records when it got its first request, in its own time.
    struct ArrivalRecorder(Arc<AtomicU64>);

    impl Drive for ArrivalRecorder {
        fn facts(&self) -> DriveFacts {
            Slowly(Vec::new()).facts()
        }

        fn submit(&mut self, now_ns: u64, _: Request) {
            self.0.store(now_ns, Ordering::SeqCst);
        }

        fn next_event_ns(&self) -> Option<u64> {
            None
        }

        fn advance(&mut self, _: u64, _: &mut Vec<DriveCompletion>) {}
    }

    /// What a volume earns by the second it does not earn from the start of the machine's clock.
    #[test]
    fn a_drives_time_begins_with_its_power() {
        let told = Arc::new(AtomicU64::new(u64::MAX));
        let before_ns = now_ns();
        let pace = Pace::new(Box::new(ArrivalRecorder(told.clone())), before_ns);
        let came = |pace: &Pace<&'static str>| {
            pace.submit(now_ns(), Command::Read, 0, 512, "first", &mut Vec::new()).unwrap();
            told.load(Ordering::SeqCst)
        };
        assert!(came(&pace) <= now_ns() - before_ns);
        pace.power_off(now_ns());
        let again_ns = now_ns();
        pace.power_on(Box::new(ArrivalRecorder(told.clone())), again_ns);
        assert!(came(&pace) <= now_ns() - again_ns);
    }

    /// Has always something to do, and never a completion; reports every look at it.
    struct Busy(std::sync::mpsc::Sender<u64>);

    impl Drive for Busy {
        fn facts(&self) -> DriveFacts {
            Slowly(Vec::new()).facts()
        }

        fn submit(&mut self, _: u64, _: Request) {}

        fn next_event_ns(&self) -> Option<u64> {
            Some(0)
        }

        fn next_done_ns(&self) -> Option<u64> {
            None
        }

        fn advance(&mut self, now_ns: u64, _: &mut Vec<DriveCompletion>) {
            let _receiver_may_be_gone = self.0.send(now_ns);
        }
    }

    #[test]
    fn work_in_the_background_goes_on_without_requests() {
        let (sender, looks) = channel();
        let pace: Arc<Pace<()>> = Arc::new(Pace::new(Box::new(Busy(sender)), now_ns()));
        let timer = pace.clone();
        std::thread::spawn(move || run_timer(&timer, |_| panic!("nothing is answered")));
        let moments: Vec<u64> = looks.iter().take(3).collect();
        assert!(moments.windows(2).all(|pair| pair[1] - pair[0] >= BACKGROUND_NS), "{moments:?}");
        pace.end();
    }
}
