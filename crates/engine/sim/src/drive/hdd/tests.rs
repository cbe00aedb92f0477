//! The disks against their data sheets: one command at a time, streams, many commands at a time;
//! and against what every drive promises, over any requests.

use std::collections::HashMap;

use proptest::prelude::*;

use super::{HDD_7K2, HDD_10K, HDD_15K, Hdd, HddParameters};
use crate::bench::{BenchOutcome, BenchWindow, Load, run};
use crate::drive::{Command, Drive, DriveCompletion, Request};

/// What a whole disk answers to a load, in so many seconds of its own time.
fn outcome(parameters: HddParameters, load: &Load, span_s: f64) -> BenchOutcome {
    let mut disk = Hdd::new(parameters, parameters.capacity_bytes, 7);
    run(&mut disk, load, BenchWindow::seconds(span_s / 5.0, span_s), 11).expect("a load that fits")
}

fn iops(parameters: HddParameters, load: &Load) -> f64 {
    outcome(parameters, load, 60.0).iops.value
}

/// Asserts that `found` is within `part` of `wanted`.
fn near(what: &str, found: f64, wanted: f64, part: f64) {
    let ratio = found / wanted;
    assert!((ratio - 1.0).abs() <= part, "{what}: {found:.2}, wanted {wanted:.2}");
}

/// One request, some time after the one before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) gap_ns: u64,
    pub(crate) command: Command,
    pub(crate) block: u64,
    pub(crate) blocks: u32,
}

const BLOCK: u64 = 4_096;

/// Up to `most` steps on the first `span_blocks` blocks.
pub(crate) fn steps(most: usize, span_blocks: u64) -> impl Strategy<Value = Vec<Step>> {
    let command = prop_oneof![
        4 => Just(Command::Read),
        8 => Just(Command::Write),
        1 => Just(Command::WriteThrough),
        2 => Just(Command::Flush),
    ];
    let gap_ns = prop_oneof![4 => Just(0), 4 => 0..2_000_000_u64, 1 => 0..50_000_000_u64];
    let blocks = prop_oneof![6 => Just(1_u32), 2 => 2..40_u32, 1 => 200..400_u32];
    let step = (gap_ns, command, 0..span_blocks - 400, blocks)
        .prop_map(|(gap_ns, command, block, blocks)| Step { gap_ns, command, block, blocks });
    prop::collection::vec(step, 1..most)
}

fn request(id: u64, step: &Step) -> Request {
    let (at_bytes, bytes) = match step.command {
        Command::Flush => (0, 0),
        _ => (step.block * BLOCK, step.blocks * BLOCK as u32),
    };
    Request { id, command: step.command, at_bytes, bytes }
}

/// Runs the steps event by event until the drive is idle; `at_done` sees the drive at the moment of
/// each end.
///
/// # Panics
/// When a request is done twice or never, before it came, or time goes back.
pub(crate) fn run_steps<D: Drive>(
    drive: &mut D,
    steps: &[Step],
    mut at_done: impl FnMut(&D, &Request, u64),
) -> Vec<DriveCompletion> {
    let mut all: Vec<DriveCompletion> = Vec::new();
    let mut open: HashMap<u64, (u64, Request)> = HashMap::new();
    let mut last_ns = 0;
    let mut until = |drive: &mut D, end_ns: u64, open: &mut HashMap<u64, (u64, Request)>| {
        let mut done = Vec::new();
        while let Some(next_ns) = drive.next_event_ns().filter(|next_ns| *next_ns <= end_ns) {
            assert!(next_ns >= last_ns, "the next event lies back");
            last_ns = next_ns;
            drive.advance(next_ns, &mut done);
            for it in done.drain(..) {
                assert_eq!(it.at_ns, next_ns, "done at another moment than the event's");
                let (came_ns, request) = open.remove(&it.id).expect("done once, after it came");
                assert!(it.at_ns > came_ns, "{request:?} took no time");
                at_done(drive, &request, came_ns);
                all.push(it);
            }
        }
    };
    let mut now_ns = 0;
    for (id, step) in (0..).zip(steps) {
        now_ns += step.gap_ns;
        until(drive, now_ns, &mut open);
        let request = request(id, step);
        open.insert(id, (now_ns, request));
        drive.submit(now_ns, request);
    }
    until(drive, u64::MAX, &mut open);
    assert!(open.is_empty(), "never done: {open:?}");
    assert_eq!(drive.next_event_ns(), None);
    all
}

const DISKS: [HddParameters; 3] = [HDD_7K2, HDD_10K, HDD_15K];

#[test]
fn a_random_read_takes_what_the_data_sheet_says() {
    for parameters in DISKS {
        let mean_ns = 1e9 / iops(parameters, &Load::random_read(1));
        near(parameters.name, mean_ns, parameters.random_read_ns(4_096), 0.05);
    }
}

#[test]
fn a_random_write_without_cache_takes_what_the_data_sheet_says() {
    for parameters in DISKS {
        let parameters = HddParameters { write_cache: false, ..parameters };
        let mean_ns = 1e9 / iops(parameters, &Load::random_write(1));
        near(parameters.name, mean_ns, parameters.random_write_ns(4_096), 0.05);
        assert!(parameters.random_write_ns(4_096) > parameters.random_read_ns(4_096));
    }
}

#[test]
fn a_small_emulated_disk_has_the_latency_of_the_whole_one() {
    for capacity_bytes in [256 << 20, 2 << 30] {
        let mut disk = Hdd::new(HDD_15K, capacity_bytes, 3);
        let window = BenchWindow::seconds(2.0, 60.0);
        let outcome = run(&mut disk, &Load::random_read(1), window, 4).expect("fits");
        // A little is found in the buffer, which is a larger part of a small disk.
        near("15k", 1e9 / outcome.iops.value, HDD_15K.random_read_ns(4_096), 0.06);
    }
}

fn stream(parameters: HddParameters, load: Load, from: u64) -> f64 {
    let load = Load { region_bytes: Some(from..from + (4 << 30)), ..load };
    outcome(parameters, &load, 4.0).bytes_per_s
}

#[test]
fn streams_run_at_the_rate_of_the_medium() {
    for parameters in DISKS {
        let inner = parameters.capacity_bytes - (4 << 30);
        let off = HddParameters { write_cache: false, ..parameters };
        for (from, rate) in
            [(0, parameters.outer_bytes_per_s), (inner, parameters.inner_bytes_per_s)]
        {
            let rate = rate as f64;
            let read = |bytes, depth| stream(parameters, Load::sequential_read(bytes, depth), from);
            near("read 128K, depth 1", read(128 << 10, 1), rate, 0.10);
            near("read 1M, depth 4", read(1 << 20, 4), rate, 0.10);
            let write =
                |disk, bytes, depth| stream(disk, Load::sequential_write(bytes, depth), from);
            near("write 128K, depth 1", write(parameters, 128 << 10, 1), rate, 0.10);
            near("write 128K, cache off, depth 4", write(off, 128 << 10, 4), rate, 0.10);
        }
    }
}

#[test]
fn a_lone_sequential_write_without_cache_misses_its_turn() {
    for parameters in DISKS {
        let off = HddParameters { write_cache: false, ..parameters };
        let found = iops(off, &Load::sequential_write(4_096, 1));
        near(parameters.name, found, 1e9 / parameters.turn_ns(), 0.02);
    }
}

fn one(disk: &mut Hdd, now_ns: u64, request: Request) -> u64 {
    let mut done = Vec::new();
    disk.submit(now_ns, request);
    while done.is_empty() {
        let next_ns = disk.next_event_ns().expect("something is in flight");
        disk.advance(next_ns, &mut done);
    }
    let [DriveCompletion { id, at_ns }] = done[..] else { panic!("{done:?}") };
    assert_eq!(id, request.id);
    at_ns
}

#[test]
fn what_was_read_is_read_again_at_the_speed_of_the_interface() {
    for (command, bytes) in [(Command::Read, 65_536), (Command::Write, 65_536)] {
        let mut disk = Hdd::new(HDD_15K, HDD_15K.capacity_bytes, 1);
        let first = Request { id: 1, command, at_bytes: 30 << 30, bytes };
        let at_ns = one(&mut disk, 0, first);
        let again = Request { id: 2, command: Command::Read, ..first };
        let took_ns = one(&mut disk, at_ns, again) - at_ns;
        let wanted_ns = 200_000 + u64::from(bytes) * 10 / 3;
        assert!(took_ns.abs_diff(wanted_ns) < 2_000, "{command:?}: {took_ns} {wanted_ns}");
    }
}

#[test]
fn a_write_makes_the_read_cache_forget() {
    let parameters = HddParameters { write_cache: false, ..HDD_15K };
    let mut disk = Hdd::new(parameters, parameters.capacity_bytes, 1);
    let read = Request { id: 1, command: Command::Read, at_bytes: 30 << 30, bytes: 4_096 };
    let at_ns = one(&mut disk, 0, read);
    let at_ns = one(&mut disk, at_ns, Request { id: 2, command: Command::Write, ..read });
    let took_ns = one(&mut disk, at_ns, Request { id: 3, ..read }) - at_ns;
    assert!(took_ns > 1_000_000, "{took_ns} ns is no turn");
}

/// Published: SATA disks "improve by nearly 100 % with deep queues", Savvio disks exceed 400 IOPS,
/// "more than doubling" (IOPS, Wikipedia).
#[test]
fn command_queueing_about_doubles_random_reads() {
    for parameters in DISKS {
        let with = |queue_depth, depth| {
            let parameters = HddParameters { queue_depth, ..parameters };
            iops(parameters, &Load::random_read(depth))
        };
        let alone = with(1, 32);
        let gain = with(32, 32) / alone;
        assert!((1.7..=2.2).contains(&gain), "{}: {gain:.2}", parameters.name);
        near("a queue of one", alone, with(32, 1), 0.03);
        assert!(with(128, 128) > 1.15 * with(32, 128), "{}", parameters.name);
    }
    assert!(iops(HDD_15K, &Load::random_read(128)) > 400.0);
}

#[test]
fn more_commands_give_more() {
    let found = [1, 2, 4, 8, 16, 32, 64, 128].map(|depth| iops(HDD_15K, &Load::random_read(depth)));
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
}

#[test]
fn the_write_cache_sorts_what_one_command_at_a_time_cannot() {
    for parameters in DISKS {
        let off = HddParameters { write_cache: false, ..parameters };
        let gain = iops(parameters, &Load::random_write(1)) / iops(off, &Load::random_write(1));
        assert!((1.8..3.0).contains(&gain), "{}: {gain:.2}", parameters.name);
    }
}

/// Ascending writes with gaps, as a block queue sends them that has sorted many.
fn ascending(parameters: HddParameters, bytes: u32, step: u64, count: u64) -> f64 {
    let mut disk = Hdd::new(parameters, parameters.capacity_bytes, 2);
    let mut done = Vec::new();
    let mut now_ns = 0;
    let mut next = 0;
    while (done.len() as u64) < count {
        while next < count && next - (done.len() as u64) < 128 {
            let request =
                Request { id: next, command: Command::Write, at_bytes: next * step, bytes };
            disk.submit(now_ns, request);
            next += 1;
        }
        now_ns = disk.next_event_ns().expect("something is in flight");
        disk.advance(now_ns, &mut done);
    }
    count as f64 * 1e9 / now_ns as f64
}

#[test]
fn sorted_writes_beat_random_ones() {
    let mut random = Load::random_write(128);
    random.region_bytes = Some(0..4_500_000_000);
    let random = iops(HDD_15K, &random);
    // The same 4.5 GB in 100,000 ascending steps, then as fewer and larger writes that touch more.
    let sorted = ascending(HDD_15K, 4_096, 45_056, 100_000);
    let dense = ascending(HDD_15K, 20_480, 24_576, 100_000);
    assert!(sorted > 2.0 * random, "{sorted:.0} {random:.0}");
    assert!(dense > 2.0 * random, "{dense:.0} {random:.0}");
}

#[test]
fn none_starves_behind_nearer_ones() {
    let parameters = HddParameters { queue_depth: 8, ..HDD_15K };
    let mut disk = Hdd::new(parameters, parameters.capacity_bytes, 2);
    let far = Request { id: u64::MAX, command: Command::Read, at_bytes: 60 << 30, bytes: 4_096 };
    disk.submit(0, Request { id: 0, at_bytes: 0, ..far });
    disk.submit(0, far);
    let mut done = Vec::new();
    let mut random = iostrata_stats::Random::new(1);
    for id in 1..5_000 {
        let now_ns = disk.next_event_ns().expect("something is in flight");
        done.clear();
        disk.advance(now_ns, &mut done);
        if done.iter().any(|it| it.id == u64::MAX) {
            assert!(now_ns > 20_000_000, "it is far, and others are near");
            return;
        }
        for _ in 0..done.len() + usize::from(id < 7) {
            let at_bytes = random.below(1 << 17) * 4_096;
            disk.submit(now_ns, Request { id: id * 16 + random.below(16), at_bytes, ..far });
        }
    }
    panic!("the far one is not done");
}

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

/// Figures for the documentation: `IOSTRATA_SOAK=1 cargo test -p iostrata-sim iops_of_every --
/// --nocapture`.
#[test]
fn iops_of_every_disk() {
    if std::env::var_os("IOSTRATA_SOAK").is_none() {
        eprintln!("skipped: the table of figures is printed with IOSTRATA_SOAK=1");
        return;
    }
    eprintln!("disk, queue, write cache: random 4 KiB reads at depth 1 8 32 128, writes the same");
    for base in [HDD_7K2, HDD_10K, HDD_15K] {
        for queue_depth in [1, 32, 128] {
            for write_cache in [false, true] {
                let parameters = HddParameters { queue_depth, write_cache, ..base };
                let reads = [1, 8, 32, 128].map(Load::random_read);
                let writes = [1, 8, 32, 128].map(Load::random_write);
                let row: Vec<String> = reads
                    .iter()
                    .chain(&writes)
                    .map(|load| format!("{:5.0}", outcome(parameters, load, 100.0).iops.value))
                    .collect();
                eprintln!("{} {queue_depth:3} {write_cache:5} {}", base.name, row.join(" "));
            }
        }
    }
}
