//! What every drive promises, over any requests.

use proptest::prelude::*;

use super::super::HDD_15K;
use super::steps::{Step, run_steps, steps};
use super::*;
use crate::drive::{Command, Drive, Request};

/// Small, so that its caches fill.
fn small(queue_depth: u32, write_cache: bool) -> HddParameters {
    HddParameters {
        queue_depth,
        write_cache,
        cache_bytes: 1 << 20,
        read_segments: 3,
        write_cache_entries: 5,
        ..HDD_15K
    }
}

fn variants() -> impl Strategy<Value = HddParameters> {
    (prop::sample::select(vec![1_u32, 3, 32]), any::<bool>())
        .prop_map(|(queue_depth, write_cache)| small(queue_depth, write_cache))
}

fn range(request: &Request) -> (u64, u64) {
    (request.at_bytes, request.at_bytes + u64::from(request.bytes))
}

fn overlap(one: &Request, other: &Request) -> bool {
    let ((start, end), (other_start, other_end)) = (range(one), range(other));
    start < other_end && other_start < end
}

/// Asserts that a flush is done only when what was done before it came is on the medium, as far as
/// nothing was written to the same place later.
fn check_flushes(disk: &mut Hdd, steps: &[Step]) {
    let mut written: Vec<(u64, Request)> = Vec::new();
    let requests: Vec<Step> = steps.to_vec();
    let mut ends_ns = std::collections::HashMap::new();
    run_steps(disk, &requests, |disk, request, came_ns| {
        let now_ns = disk.device().now_ns();
        ends_ns.insert(request.id, now_ns);
        match request.command {
            Command::Write | Command::WriteThrough => written.push((now_ns, *request)),
            Command::Read => {}
            Command::Flush => {
                for (index, (done_ns, write)) in written.iter().enumerate() {
                    // Writes in the same instant as the flush may be on either side of it.
                    let later = written.iter().skip(index + 1);
                    let is_replaced = later.clone().any(|(_, it)| overlap(it, write))
                        || steps.iter().enumerate().any(|(id, step)| {
                            let at =
                                (step.block * 4_096, (step.block + u64::from(step.blocks)) * 4_096);
                            let id = id as u64;
                            // An older one that was not done when the flush came has no order
                            // with either: it may be taken last.
                            let is_open = ends_ns.get(&id).is_none_or(|end| *end >= came_ns);
                            (id > write.id || (id < write.id && is_open))
                                && at.0 < range(write).1
                                && range(write).0 < at.1
                                && step.command != Command::Read
                        });
                    if *done_ns < came_ns && !is_replaced {
                        let (start, end) = range(write);
                        assert!(
                            disk.device().is_on_medium(start, end),
                            "{write:?} is lost by {request:?}"
                        );
                    }
                }
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_request_is_done_once_and_flushes_keep_their_promise(
        parameters in variants(),
        steps in steps(120, 200_000),
        seed in any::<u64>(),
    ) {
        check_flushes(&mut Hdd::new(parameters, 1 << 30, seed), &steps);
    }

    #[test]
    fn the_same_seed_gives_the_same_answer(
        parameters in variants(),
        steps in steps(60, 2_000),
        seed in any::<u64>(),
    ) {
        let run = || run_steps(&mut Hdd::new(parameters, 1 << 30, seed), &steps, |_, _, _| {});
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn asking_late_changes_no_moment(parameters in variants(), steps in steps(60, 20_000)) {
        let mut disk = Hdd::new(parameters, 1 << 30, 1);
        let exact = run_steps(&mut disk, &steps, |_, _, _| {});
        let mut late = Hdd::new(parameters, 1 << 30, 1);
        let (mut now_ns, mut done) = (0, Vec::new());
        for (id, step) in (0..).zip(&steps) {
            now_ns += step.gap_ns;
            let is_flush = step.command == Command::Flush;
            let bytes = if is_flush { 0 } else { step.blocks * 4_096 };
            let at_bytes = if is_flush { 0 } else { step.block * 4_096 };
            late.submit(now_ns, Request { id, command: step.command, at_bytes, bytes });
        }
        late.advance(now_ns + 3_600_000_000_000, &mut done);
        prop_assert_eq!(done, exact);
    }
}

#[test]
fn a_flush_waits_for_the_dirty_and_for_nothing_that_comes_later() {
    let step = |gap_ns, command, block| Step { gap_ns, command, block, blocks: 1 };
    let mut all: Vec<Step> = (0..5).map(|i| step(0, Command::Write, i * 40_000)).collect();
    all.push(step(2_000_000, Command::Flush, 0));
    all.extend((0..200).map(|i| step(1_000, Command::Write, i * 900 + 7)));
    let mut disk = Hdd::new(small(32, true), 1 << 30, 1);
    let mut flushed_after = None;
    let mut writes = 0;
    run_steps(&mut disk, &all, |_, request, _| match request.command {
        Command::Flush => flushed_after = Some(writes),
        _ => writes += 1,
    });
    let writes_before = flushed_after.expect("the flush is done");
    assert!((5..60).contains(&writes_before), "{writes_before}");
}

#[test]
fn without_a_cache_a_flush_costs_only_the_controller_and_its_least() {
    for (flush_us_min, wanted_us) in [(0, 200), (3_000, 3_200)] {
        let parameters = HddParameters { flush_us_min, ..small(32, false) };
        let flush = Step { gap_ns: 5, command: Command::Flush, block: 0, blocks: 1 };
        let done = run_steps(&mut Hdd::new(parameters, 1 << 30, 1), &[flush], |_, _, _| {});
        assert_eq!(done[0].at_ns, 5 + wanted_us * 1_000);
    }
}

#[test]
fn facts_say_what_a_power_cut_could_take() {
    let facts = |cache| Hdd::new(small(7, cache), 1 << 30, 1).facts();
    assert_eq!((facts(true).volatile_bytes, facts(false).volatile_bytes), (1 << 20, 0));
    assert_eq!((facts(true).queue_depth, facts(true).capacity_bytes), (7, 1 << 30));
    assert!(facts(true).is_rotational);
}

#[test]
#[should_panic(expected = "reaches beyond")]
fn a_request_beyond_the_end_is_a_broken_invariant() {
    let request = Request { id: 0, command: Command::Read, at_bytes: 1 << 30, bytes: 1 };
    Hdd::new(HDD_15K, 1 << 30, 1).submit(0, request);
}

#[test]
#[should_panic(expected = "time went back")]
fn time_that_goes_back_is_a_broken_invariant() {
    let mut disk = Hdd::new(HDD_15K, 1 << 30, 1);
    disk.advance(10, &mut Vec::new());
    disk.advance(9, &mut Vec::new());
}
