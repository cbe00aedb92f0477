//! The kernel's block queue above a drive, in virtual time.
//!
//! Purpose: who may put a request into the queue, which requests become one, and which goes to the
//! drive next.
//! Invariants: every byte offered and taken is completed exactly once; the requests held never pass
//! the bound of the kernel; the drive never holds more than its queue depth.
//! There is no plug: a request is offered to the scheduler at once. Flushes and writes through the
//! cache are not queued here (the file systems of 2009 sent none), nor are priorities and cgroups.

mod elevator;
mod limit;

use iostrata_run::KernelThen;

pub use elevator::{READ_EXPIRE_NS, REQUESTS_PER_BATCH, WRITE_EXPIRE_NS, WRITES_STARVED_MAX};
pub use limit::{
    BATCH_NS, BATCH_REQUESTS, REQUESTS_DEFAULT, REQUESTS_MIN, SCHEDULED_REQUESTS_MAX, Scheduler,
    Submitter, requests_taken,
};

use crate::drive::{Command, Drive, DriveCompletion, DriveFacts, Request};
use crate::iostat::{DirectionCounters, QueueCounters};
use elevator::{Elevator, NONE, Slot, Slots, Waiting};
use limit::Limit;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the drive.
    Read,
    /// To the drive.
    Write,
}

impl Direction {
    /// Both, reads first.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Self::Read => Self::Write,
            Self::Write => Self::Read,
        }
    }
}

/// Largest request that merging makes (`max_sectors_kb` of 512), in bytes.
const REQUEST_BYTES_MAX: u64 = 512 * 1024;

/// How the queue is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePlan {
    /// Whose rules and bounds hold.
    pub kernel: KernelThen,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// The requested size.
    pub nr_requests: u32,
}

/// A request as submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// Which way.
    pub direction: Direction,
    /// First byte.
    pub at_bytes: u64,
    /// How many bytes, more than 0.
    pub bytes: u32,
}

/// What became of a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferOutcome {
    /// It is part of a request that waited already.
    Merged,
    /// It is a request.
    Queued,
    /// There was no room; the submitter sleeps and must offer it again when it is woken.
    Sleeps,
}

/// A request that is done; it covers every bio that was merged into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which way.
    pub direction: Direction,
    /// First byte.
    pub at_bytes: u64,
    /// How many bytes.
    pub bytes: u32,
    /// When, in ns.
    pub at_ns: u64,
}

/// A block queue above a drive.
pub struct BlockQueue {
    drive: Box<dyn Drive>,
    facts: DriveFacts,
    kernel: KernelThen,
    limit: Limit,
    elevator: Elevator,
    slots: Slots,
    waiting: [Waiting; 2],
    in_drive: u32,
    sequence: u64,
    counters: QueueCounters,
    done: Vec<DriveCompletion>,
}

impl BlockQueue {
    /// An idle queue at the moment 0.
    pub fn new(plan: QueuePlan, drive: Box<dyn Drive>) -> Self {
        let facts = drive.facts();
        let requests =
            requests_taken(plan.kernel, plan.scheduler, facts.queue_depth, plan.nr_requests);
        Self {
            drive,
            facts,
            kernel: plan.kernel,
            limit: Limit::new(plan.kernel, requests),
            elevator: Elevator::new(plan.scheduler),
            slots: Slots::default(),
            waiting: [Waiting::new(), Waiting::new()],
            in_drive: 0,
            sequence: 0,
            counters: QueueCounters::default(),
            done: Vec::new(),
        }
    }

    /// What holds for the drive.
    pub fn facts(&self) -> DriveFacts {
        self.facts
    }

    /// The size that the kernel took, of the requested one.
    pub fn nr_requests(&self) -> u32 {
        self.limit.requests()
    }

    /// Requests of a direction in the queue and in the drive.
    pub fn held(&self, direction: Direction) -> u32 {
        self.limit.held(direction)
    }

    /// Most requests that may ever be held: per direction in 2009, of both together today.
    pub fn held_max(&self) -> u64 {
        self.limit.held_max()
    }

    /// Whether background writers should hold back (2009: from seven eighths of `nr_requests` until
    /// thirteen sixteenths; never today).
    pub fn is_congested(&self, direction: Direction) -> bool {
        self.limit.is_congested(direction)
    }

    /// The last moment at which something came or happened.
    pub fn now_ns(&self) -> u64 {
        self.counters.at_ns
    }

    /// The counters at `now_ns`.
    pub fn counters(&mut self, now_ns: u64) -> QueueCounters {
        self.count_until(now_ns);
        self.counters
    }

    /// Takes a bio at `now_ns`. Everything due before must have been let happen by
    /// [`BlockQueue::advance`].
    ///
    /// # Panics
    /// When time goes back, the bio is empty or beyond the drive, or the submitter sleeps.
    pub fn offer(&mut self, now_ns: u64, bio: Bio, who: Submitter) -> OfferOutcome {
        assert!(bio.bytes > 0, "a bio without bytes");
        self.count_until(now_ns);
        if self.merge(bio) {
            return OfferOutcome::Merged;
        }
        if !self.limit.take(now_ns, bio.direction, who) {
            self.limit.sleep(bio.direction, who);
            return OfferOutcome::Sleeps;
        }
        self.sequence += 1;
        let number = self.slots.add(Slot {
            direction: bio.direction,
            at_bytes: bio.at_bytes,
            bytes: bio.bytes,
            came_ns: now_ns,
            sequence: self.sequence,
            older: NONE,
            younger: NONE,
        });
        self.waiting[bio.direction as usize].add(&mut self.slots, number);
        self.dispatch(now_ns);
        OfferOutcome::Queued
    }

    /// The next submitter that wakes up because there is room; it must offer its bio again.
    pub fn wake(&mut self, now_ns: u64) -> Option<Submitter> {
        self.limit.wake(now_ns)
    }

    /// The next moment at which something happens.
    pub fn next_event_ns(&self) -> Option<u64> {
        self.drive.next_event_ns()
    }

    /// Lets everything up to and including `now_ns` happen; appends what was completed, earliest
    /// first.
    pub fn advance(&mut self, now_ns: u64, completed: &mut Vec<Completion>) {
        while let Some(at_ns) = self.drive.next_event_ns().filter(|&at_ns| at_ns <= now_ns) {
            // A submission may have made something due that lies before the last one counted.
            let at_ns = at_ns.max(self.counters.at_ns);
            let mut done = std::mem::take(&mut self.done);
            self.drive.advance(at_ns, &mut done);
            self.count_until(at_ns);
            for one in done.drain(..) {
                completed.push(self.complete(at_ns, one));
            }
            self.done = done;
            self.dispatch(at_ns);
        }
    }

    fn complete(&mut self, now_ns: u64, done: DriveCompletion) -> Completion {
        let slot = self.slots.remove(done.id as u32);
        self.in_drive -= 1;
        self.limit.free(slot.direction);
        let counters = self.direction_counters(slot.direction);
        counters.ios += 1;
        counters.bytes += u64::from(slot.bytes);
        counters.wait_ns += now_ns - slot.came_ns;
        let Slot { direction, at_bytes, bytes, .. } = slot;
        Completion { direction, at_bytes, bytes, at_ns: now_ns }
    }

    fn dispatch(&mut self, now_ns: u64) {
        while self.in_drive < self.facts.queue_depth {
            let Some(number) = self.elevator.choose(now_ns, &self.slots, &self.waiting) else {
                return;
            };
            let slot = *self.slots.get(number);
            self.waiting[slot.direction as usize].take(&mut self.slots, number);
            self.in_drive += 1;
            let command = match slot.direction {
                Direction::Read => Command::Read,
                Direction::Write => Command::Write,
            };
            let Slot { at_bytes, bytes, .. } = slot;
            self.drive.submit(now_ns, Request { id: u64::from(number), command, at_bytes, bytes });
        }
    }

    /// Makes the bio part of a waiting neighbour, and that one part of the next if they now touch.
    fn merge(&mut self, bio: Bio) -> bool {
        let side = bio.direction as usize;
        let end_bytes = bio.at_bytes + u64::from(bio.bytes);
        let fits = |slot: &Slot| u64::from(slot.bytes + bio.bytes) <= REQUEST_BYTES_MAX;
        let slots = &self.slots;
        let before = self.waiting[side].below(bio.at_bytes).filter(|&number| {
            slots.get(number).end_bytes() == bio.at_bytes && fits(slots.get(number))
        });
        if let Some(number) = before {
            self.slots.get_mut(number).bytes += bio.bytes;
            if let Some(next) = self.waiting[side].from(end_bytes) {
                self.join(number, next);
            }
        } else {
            let after = self.waiting[side].from(end_bytes).filter(|&number| {
                slots.get(number).at_bytes == end_bytes && fits(slots.get(number))
            });
            let Some(number) = after else { return false };
            self.slots.get_mut(number).bytes += bio.bytes;
            self.waiting[side].lower(&mut self.slots, number, bio.at_bytes);
            if let Some(previous) = self.waiting[side].below(bio.at_bytes) {
                self.join(previous, number);
            }
        }
        self.direction_counters(bio.direction).merges += 1;
        true
    }

    /// Makes two waiting requests one, when the second starts where the first ends; it has the age
    /// of the older.
    fn join(&mut self, first: u32, second: u32) {
        let (low, high) = (*self.slots.get(first), *self.slots.get(second));
        let is_large = u64::from(low.bytes) + u64::from(high.bytes) > REQUEST_BYTES_MAX;
        if low.end_bytes() != high.at_bytes || is_large {
            return;
        }
        let waiting = &mut self.waiting[low.direction as usize];
        if high.sequence < low.sequence {
            waiting.replace_older(&mut self.slots, second, first);
        } else {
            waiting.take(&mut self.slots, second);
        }
        let slot = self.slots.get_mut(first);
        slot.bytes += high.bytes;
        slot.came_ns = low.came_ns.min(high.came_ns);
        self.slots.remove(second);
        self.limit.free(low.direction);
        // The kernel of 2009 did not count the joining of two requests as a merge.
        if self.kernel == KernelThen::Today {
            self.direction_counters(low.direction).merges += 1;
        }
    }

    fn direction_counters(&mut self, direction: Direction) -> &mut DirectionCounters {
        match direction {
            Direction::Read => &mut self.counters.read,
            Direction::Write => &mut self.counters.write,
        }
    }

    fn count_until(&mut self, now_ns: u64) {
        let since_ns = self.counters.at_ns;
        assert!(since_ns <= now_ns, "time went back from {since_ns} to {now_ns} ns");
        let held: u64 =
            Direction::ALL.map(|direction| u64::from(self.held(direction))).iter().sum();
        if held > 0 {
            self.counters.busy_ns += now_ns - since_ns;
            self.counters.depth_ns += u128::from(held) * u128::from(now_ns - since_ns);
        }
        self.counters.at_ns = now_ns;
    }
}

/// A drive for tests: one arm, time by distance, requests in the order of coming.
#[cfg(test)]
pub(crate) mod standin {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};

    use crate::drive::{Drive, DriveCompletion, DriveFacts, Request};

    /// What a stand-in was sent, in order.
    pub(crate) type Sent = Arc<Mutex<Vec<Request>>>;

    /// One arm: a fixed time per request and one per GiB moved over.
    pub(crate) struct Arm {
        pub(crate) facts: DriveFacts,
        request_ns: u64,
        gib_ns: u64,
        head_bytes: u64,
        free_ns: u64,
        done: VecDeque<DriveCompletion>,
        sent: Sent,
    }

    impl Arm {
        pub(crate) fn new(queue_depth: u32, request_ns: u64, gib_ns: u64) -> (Box<Self>, Sent) {
            let facts = DriveFacts {
                capacity_bytes: 1 << 40,
                queue_depth,
                volatile_bytes: 0,
                is_rotational: gib_ns > 0,
            };
            let sent = Sent::default();
            let (done, kept) = (VecDeque::new(), sent.clone());
            let arm =
                Self { facts, request_ns, gib_ns, head_bytes: 0, free_ns: 0, done, sent: kept };
            (Box::new(arm), sent)
        }
    }

    impl Drive for Arm {
        fn facts(&self) -> DriveFacts {
            self.facts
        }

        fn submit(&mut self, now_ns: u64, request: Request) {
            assert!(
                (self.done.len() as u32) < self.facts.queue_depth,
                "the drive was sent too much"
            );
            let moved = self.head_bytes.abs_diff(request.at_bytes);
            let takes_ns =
                self.request_ns + ((u128::from(moved) * u128::from(self.gib_ns)) >> 30) as u64;
            self.free_ns = self.free_ns.max(now_ns) + takes_ns;
            self.head_bytes = request.at_bytes + u64::from(request.bytes);
            self.done.push_back(DriveCompletion { id: request.id, at_ns: self.free_ns });
            self.sent.lock().unwrap().push(request);
        }

        fn next_event_ns(&self) -> Option<u64> {
            self.done.front().map(|done| done.at_ns)
        }

        fn advance(&mut self, now_ns: u64, done: &mut Vec<DriveCompletion>) {
            let due = self.done.partition_point(|one| one.at_ns <= now_ns);
            done.extend(self.done.drain(..due));
        }
    }
}

/// The rules of the queue, one by one, and what holds for any load.
#[cfg(test)]
mod tests {
    use iostrata_run::KernelThen::{Today, Y2009};
    use iostrata_stats::Random;
    use proptest::prelude::*;

    use super::standin::{Arm, Sent};
    use super::*;

    const PAGE: u32 = 4096;
    const WHO: Submitter = Submitter(0);

    /// A queue above a drive that takes one request at a time, 1 ms each.
    fn queue(kernel: KernelThen, scheduler: Scheduler, nr_requests: u32) -> (BlockQueue, Sent) {
        let (arm, sent) = Arm::new(1, 1_000_000, 0);
        (BlockQueue::new(QueuePlan { kernel, scheduler, nr_requests }, arm), sent)
    }

    fn bio(direction: Direction, page: u64) -> Bio {
        Bio { direction, at_bytes: page * u64::from(PAGE), bytes: PAGE }
    }

    fn write(queue: &mut BlockQueue, now_ns: u64, page: u64) -> OfferOutcome {
        queue.offer(now_ns, bio(Direction::Write, page), WHO)
    }

    /// Lets the queue run dry; the pages of what was sent, in order.
    fn drain(queue: &mut BlockQueue, sent: &Sent) -> Vec<(u64, u32)> {
        let mut completed = Vec::new();
        while let Some(at_ns) = queue.next_event_ns() {
            queue.advance(at_ns, &mut completed);
        }
        let sent = sent.lock().unwrap();
        sent.iter().map(|one| (one.at_bytes / u64::from(PAGE), one.bytes / PAGE)).collect()
    }

    #[test]
    fn neighbours_become_one_request_in_front_behind_and_between() {
        let (mut queue, sent) = queue(Y2009, Scheduler::Deadline, 128);
        write(&mut queue, 0, 1000);
        let became: Vec<_> =
            [10, 11, 9, 13, 12, 20].map(|page| write(&mut queue, 0, page)).into_iter().collect();
        use OfferOutcome::{Merged, Queued};
        assert_eq!(became, [Queued, Merged, Merged, Queued, Merged, Queued]);
        assert_eq!(queue.held(Direction::Write), 3, "9 to 13 are one request");
        assert_eq!(drain(&mut queue, &sent), [(1000, 1), (9, 5), (20, 1)]);
    }

    #[test]
    fn requests_grow_to_512_kib_and_directions_stay_apart() {
        let (mut queue, sent) = queue(Y2009, Scheduler::Deadline, 1024);
        write(&mut queue, 0, 5000);
        (0..200).for_each(|page| assert_ne!(write(&mut queue, 0, page), OfferOutcome::Sleeps));
        assert_eq!(queue.offer(0, bio(Direction::Read, 200), WHO), OfferOutcome::Queued);
        assert_eq!(drain(&mut queue, &sent), [(5000, 1), (200, 1), (0, 128), (128, 72)]);
    }

    #[test]
    fn none_keeps_the_order_of_coming_and_deadline_sorts() {
        let pages = [500, 70, 600, 10, 300];
        let (mut queue_none, sent_none) = queue(Y2009, Scheduler::None, 128);
        let (mut queue_deadline, sent_deadline) = queue(Y2009, Scheduler::Deadline, 128);
        for page in pages {
            write(&mut queue_none, 0, page);
            write(&mut queue_deadline, 0, page);
        }
        let places =
            |sent: Vec<(u64, u32)>| sent.into_iter().map(|(page, _)| page).collect::<Vec<_>>();
        assert_eq!(places(drain(&mut queue_none, &sent_none)), pages);
        // The first was alone; then upwards from where it ended, then from the lowest.
        assert_eq!(places(drain(&mut queue_deadline, &sent_deadline)), [500, 600, 10, 70, 300]);
    }

    #[test]
    fn a_batch_starts_at_the_oldest_when_its_deadline_has_passed() {
        // 1 ms each: the request at page 1 is the oldest and is passed by all above for 5 s.
        let (mut queue, sent) = queue(Y2009, Scheduler::Deadline, 100_000);
        write(&mut queue, 0, 2);
        write(&mut queue, 0, 1);
        (0..9_000).for_each(|page| {
            write(&mut queue, 0, 10 + 2 * page);
        });
        let order = drain(&mut queue, &sent);
        let at = order.iter().position(|&(page, _)| page == 1).unwrap();
        let batch = REQUESTS_PER_BATCH as usize;
        assert!((5_000..5_000 + batch).contains(&at), "page 1 was sent as number {at}");
        // The batch went on upwards from page 1, from which all up to there were gone already.
        assert!(order[at + 1].0 > order[at - 1].0);
    }

    #[test]
    fn writes_are_passed_over_twice_and_no_more() {
        let (mut queue, sent) = queue(Y2009, Scheduler::Deadline, 1024);
        (0..100).for_each(|page| {
            write(&mut queue, 0, 10_000 + 2 * page);
        });
        (0..100).for_each(|page| {
            queue.offer(0, bio(Direction::Read, 2 * page), WHO);
        });
        drain(&mut queue, &sent);
        let sent = sent.lock().unwrap();
        let commands: Vec<Command> = sent.iter().skip(1).map(|one| one.command).collect();
        let lengths: Vec<(Command, usize)> =
            commands.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
        // The batch of writes that was running goes on first.
        let expected = [
            (Command::Write, 15),
            (Command::Read, 32),
            (Command::Write, 16),
            (Command::Read, 32),
            (Command::Write, 16),
            (Command::Read, 32),
        ];
        assert_eq!(lengths[..6], expected);
    }

    #[test]
    fn in_2009_the_one_who_fills_the_queue_finishes_a_batch() {
        let (mut queue, _) = queue(Y2009, Scheduler::Deadline, 128);
        let taken =
            (0..1000).take_while(|&page| write(&mut queue, 0, 2 * page) != OfferOutcome::Sleeps);
        // 127 below the limit and a batch of 32.
        assert_eq!(taken.count(), 127 + 32);
        let other = queue.offer(0, bio(Direction::Write, 9_000), Submitter(1));
        assert_eq!(other, OfferOutcome::Sleeps, "any other submitter sleeps at once");
        assert_eq!(queue.wake(0), None);
        assert_eq!(queue.offer(0, bio(Direction::Read, 9_100), Submitter(2)), OfferOutcome::Queued);
        // As many completions as it takes to get below the limit wake one, which has a batch again.
        let mut completed = Vec::new();
        while queue.held(Direction::Write) >= 128 {
            queue.advance(queue.next_event_ns().unwrap(), &mut completed);
        }
        let now_ns = completed.last().unwrap().at_ns;
        assert_eq!(queue.wake(now_ns), Some(WHO));
        let more = (0..100).take_while(|&page| {
            write(&mut queue, now_ns, 5_001 + 2 * page) != OfferOutcome::Sleeps
        });
        assert_eq!(more.count(), 32);
    }

    #[test]
    fn in_2009_requests_stay_below_one_and_a_half_times_the_limit() {
        let (mut queue, _) = queue(Y2009, Scheduler::Deadline, 20);
        let taken =
            (0..100).take_while(|&page| write(&mut queue, 0, 2 * page) != OfferOutcome::Sleeps);
        assert_eq!(taken.count(), 30);
    }

    #[test]
    fn congestion_starts_at_seven_eighths_and_ends_at_thirteen_sixteenths() {
        let (mut queue, _) = queue(Y2009, Scheduler::Deadline, 128);
        let on = (1..).find(|&page| {
            write(&mut queue, 0, 2 * page);
            queue.is_congested(Direction::Write)
        });
        assert_eq!(on, Some(113));
        let mut completed = Vec::new();
        while queue.is_congested(Direction::Write) {
            queue.advance(queue.next_event_ns().unwrap(), &mut completed);
        }
        assert_eq!(queue.held(Direction::Write), 102);
    }

    #[test]
    fn today_one_limit_holds_for_both_directions() {
        let (mut queue, _) = queue(Today, Scheduler::Deadline, 100_000);
        assert_eq!(queue.nr_requests(), SCHEDULED_REQUESTS_MAX);
        let taken = (0..5_000u64).take_while(|&page| {
            let direction = if page % 3 == 0 { Direction::Read } else { Direction::Write };
            queue.offer(0, bio(direction, 2 * page), WHO) != OfferOutcome::Sleeps
        });
        assert_eq!(taken.count(), 2048);
        assert!(!queue.is_congested(Direction::Write));
    }

    #[test]
    fn littles_law_holds_in_the_steady_state() {
        for (scheduler, nr_requests) in [(Scheduler::None, 128), (Scheduler::Deadline, 1024)] {
            let (arm, _) = Arm::new(4, 500_000, 2_000_000_000);
            let mut queue =
                BlockQueue::new(QueuePlan { kernel: Today, scheduler, nr_requests }, arm);
            let mut random = Random::new(5);
            // Twenty submitters: each offers again when one of its bios is done.
            let mut offer = |queue: &mut BlockQueue, now_ns| {
                let page = random.below(1 << 20) * 2;
                queue.offer(now_ns, bio(Direction::Write, page), WHO);
            };
            (0..4).for_each(|_| offer(&mut queue, 0));
            let mut completed = Vec::new();
            let mut since = None;
            for round in 0..20_000 {
                let now_ns = queue.next_event_ns().unwrap();
                queue.advance(now_ns, &mut completed);
                completed.drain(..).for_each(|_| offer(&mut queue, now_ns));
                if round == 1_000 {
                    since = Some(queue.counters(now_ns));
                }
            }
            let until = queue.counters(queue.now_ns());
            let columns = until.since(&since.unwrap()).iostat();
            let by_law = columns.writes_per_s * columns.await_ms().unwrap() / 1e3;
            assert!((columns.queue_size / by_law - 1.0).abs() < 0.02, "{columns:?}");
            assert!((columns.util_pct - 100.0).abs() < 1e-9);
        }
    }

    #[derive(Clone, Debug)]
    struct Step {
        is_read: bool,
        page: u64,
        pages: u32,
        who: u8,
        wait_ns: u64,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        // So few pages, and so much faster than the drive, that waiting requests are joined.
        let step = (any::<bool>(), 0u64..60, 1u32..4, 0u8..3, 0u64..300_000);
        let step = step.prop_map(|(is_read, page, pages, who, wait_ns)| Step {
            is_read,
            page,
            pages,
            who,
            wait_ns,
        });
        proptest::collection::vec(step, 1..300)
    }

    proptest! {
        #![proptest_config(crate::cases(64, 4096))]

        #[test]
        fn every_byte_is_done_once_and_no_bound_is_passed(
            steps in steps(),
            is_2009: bool,
            is_deadline: bool,
            nr_requests in 1u32..40,
            depth in 1u32..8,
        ) {
            let kernel = if is_2009 { Y2009 } else { Today };
            let scheduler = if is_deadline { Scheduler::Deadline } else { Scheduler::None };
            let run = || {
                let (arm, _) = Arm::new(depth, 700_000, 3_000_000);
                let mut queue = BlockQueue::new(QueuePlan { kernel, scheduler, nr_requests }, arm);
                let (mut now_ns, mut offered, mut completed) = (0, [0u64; 2], Vec::new());
                let mut asleep = [false; 3];
                for step in &steps {
                    now_ns += step.wait_ns;
                    queue.advance(now_ns, &mut completed);
                    while let Some(who) = queue.wake(now_ns) {
                        asleep[usize::from(who.0)] = false;
                    }
                    if asleep[usize::from(step.who)] {
                        continue;
                    }
                    let direction = Direction::ALL[usize::from(!step.is_read)];
                    let bytes = step.pages * PAGE;
                    let bio = Bio { direction, at_bytes: step.page * u64::from(PAGE), bytes };
                    match queue.offer(now_ns, bio, Submitter(step.who)) {
                        OfferOutcome::Sleeps => asleep[usize::from(step.who)] = true,
                        _ => offered[direction as usize] += u64::from(bytes),
                    }
                    let held = Direction::ALL.map(|direction| u64::from(queue.held(direction)));
                    let most = if is_2009 { held[0].max(held[1]) } else { held[0] + held[1] };
                    assert!(most <= queue.held_max(), "{held:?}");
                }
                while let Some(at_ns) = queue.next_event_ns() {
                    queue.advance(at_ns, &mut completed);
                }
                let held = Direction::ALL.map(|direction| queue.held(direction));
                assert_eq!(held, [0, 0]);
                let counters = queue.counters(queue.now_ns());
                (offered, completed, counters)
            };
            let (offered, completed, counters) = run();
            for direction in Direction::ALL {
                let done = completed.iter().filter(|one| one.direction == direction);
                let bytes: u64 = done.map(|one| u64::from(one.bytes)).sum();
                prop_assert_eq!(bytes, offered[direction as usize]);
            }
            prop_assert_eq!(counters.read.bytes + counters.write.bytes, offered[0] + offered[1]);
            prop_assert!(completed.is_sorted_by_key(|one| one.at_ns));
            prop_assert!(completed.iter().all(|one| u64::from(one.bytes) <= 512 * 1024));
            prop_assert_eq!(run(), (offered, completed, counters));
        }
    }
}
