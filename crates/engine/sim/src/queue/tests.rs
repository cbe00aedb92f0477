//! The rules of the queue, one by one, and what holds for any load.

use iostrata_run::KernelThen::{self, Today, Y2009};
use proptest::prelude::*;

use super::standin::{Arm, Sent};
use super::*;
use crate::drive::Command;
use iostrata_stats::Random;

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

fn write(queue: &mut BlockQueue, now_ns: u64, page: u64) -> Offered {
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
    use Offered::{Merged, Queued};
    assert_eq!(became, [Queued, Merged, Merged, Queued, Merged, Queued]);
    assert_eq!(queue.held(Direction::Write), 3, "9 to 13 are one request");
    assert_eq!(drain(&mut queue, &sent), [(1000, 1), (9, 5), (20, 1)]);
}

#[test]
fn requests_grow_to_512_kib_and_directions_stay_apart() {
    let (mut queue, sent) = queue(Y2009, Scheduler::Deadline, 1024);
    write(&mut queue, 0, 5000);
    (0..200).for_each(|page| assert_ne!(write(&mut queue, 0, page), Offered::Sleeps));
    assert_eq!(queue.offer(0, bio(Direction::Read, 200), WHO), Offered::Queued);
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
    let places = |sent: Vec<(u64, u32)>| sent.into_iter().map(|(page, _)| page).collect::<Vec<_>>();
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
    let taken = (0..1000).take_while(|&page| write(&mut queue, 0, 2 * page) != Offered::Sleeps);
    // 127 below the limit and a batch of 32.
    assert_eq!(taken.count(), 127 + 32);
    let other = queue.offer(0, bio(Direction::Write, 9_000), Submitter(1));
    assert_eq!(other, Offered::Sleeps, "whoever else comes sleeps at once");
    assert_eq!(queue.wake(0), None);
    assert_eq!(queue.offer(0, bio(Direction::Read, 9_100), Submitter(2)), Offered::Queued);
    // As many completions as it takes to get below the limit wake one, who has a batch again.
    let mut completed = Vec::new();
    while queue.held(Direction::Write) >= 128 {
        queue.advance(queue.next_event_ns().unwrap(), &mut completed);
    }
    let now_ns = completed.last().unwrap().at_ns;
    assert_eq!(queue.wake(now_ns), Some(WHO));
    let more =
        (0..100).take_while(|&page| write(&mut queue, now_ns, 5_001 + 2 * page) != Offered::Sleeps);
    assert_eq!(more.count(), 32);
}

#[test]
fn in_2009_nobody_passes_one_and_a_half_times_the_limit() {
    let (mut queue, _) = queue(Y2009, Scheduler::Deadline, 20);
    let taken = (0..100).take_while(|&page| write(&mut queue, 0, 2 * page) != Offered::Sleeps);
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
        queue.offer(0, bio(direction, 2 * page), WHO) != Offered::Sleeps
    });
    assert_eq!(taken.count(), 2048);
    assert!(!queue.is_congested(Direction::Write));
}

#[test]
fn littles_law_holds_in_the_steady_state() {
    for (scheduler, nr_requests) in [(Scheduler::None, 128), (Scheduler::Deadline, 1024)] {
        let (arm, _) = Arm::new(4, 500_000, 2_000_000_000);
        let mut queue = BlockQueue::new(QueuePlan { kernel: Today, scheduler, nr_requests }, arm);
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
    let step = (any::<bool>(), 0u64..400, 1u32..4, 0u8..3, 0u64..3_000_000);
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
                    Offered::Sleeps => asleep[usize::from(step.who)] = true,
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
