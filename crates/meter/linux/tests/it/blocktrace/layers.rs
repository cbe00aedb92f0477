//! Segments of real requests.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::process::{Child, Command, Stdio};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use iostrata_linux::blocktrace::{BlockTrace, buffer_kib};
use iostrata_run::host::{ApplicationLatency, BlockLatency, PathSegment, SegmentTimes};

use crate::blocktrace::disk::{DISK_BYTES, Disk, WriteLimit};
use crate::blocktrace::instance::Instance;

/// Loop devices and the processors are shared by the tests.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const BLOCK: usize = 4096;
const CALLS: u64 = 400;
const WRITERS: u64 = 3;

#[repr(align(4096))]
struct Block([u8; BLOCK]);

fn made(test: &str, kib: u64) -> Option<(Instance, Disk)> {
    Instance::make(kib)
        .and_then(|instance| Ok((instance, Disk::make()?)))
        .map_err(|reason| eprintln!("skipped: {test}: {reason}"))
        .ok()
}

fn direct(disk: &Disk) -> File {
    let flags = rustix::fs::OFlags::DIRECT.bits() as i32;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(&disk.path).unwrap()
}

/// Writes blocks, each timed as the meter would; mean in microseconds.
fn write_blocks(file: &File, calls: u64, salt: u64) -> f64 {
    let block = Block([9; BLOCK]);
    let mut spent = Duration::ZERO;
    for call in 0..calls {
        let at = (call * 7919 + salt * 104_729) % (DISK_BYTES / BLOCK as u64) * BLOCK as u64;
        let begin = Instant::now();
        file.write_all_at(&block.0, at).unwrap();
        spent += begin.elapsed();
    }
    spent.as_secs_f64() * 1e6 / calls as f64
}

fn writes(latency: &BlockLatency, segment: PathSegment) -> Option<SegmentTimes> {
    latency.segment(segment).and_then(|found| found.writes)
}

fn mean(latency: &BlockLatency, segment: PathSegment) -> f64 {
    writes(latency, segment).map_or(0.0, |times| times.latency_us.mean)
}

fn sum_of_means(latency: &BlockLatency) -> f64 {
    PathSegment::ALL.iter().map(|&segment| mean(latency, segment)).sum()
}

/// Several writers at once, kept alive until the trace has stopped. `enter` runs in each first.
fn traced_writes(
    trace: &mut BlockTrace,
    instance: &Instance,
    disk: &Disk,
    calls: u64,
    enter: impl Fn() + Sync,
) -> BlockLatency {
    let mut switch = instance.switch();
    let step = Barrier::new(WRITERS as usize + 1);
    let write = |salt| {
        enter();
        let file = direct(disk);
        step.wait();
        let mean = write_blocks(&file, calls, salt);
        step.wait();
        step.wait();
        mean
    };
    let write = &write;
    let means = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|salt| scope.spawn(move || write(salt))).collect();
        trace.start(&mut switch).unwrap();
        step.wait();
        step.wait();
        trace.stop(&mut switch).unwrap();
        step.wait();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
    });
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    trace.take(Some(ApplicationLatency { write_us_mean: Some(mean), read_us_mean: None })).unwrap()
}

fn assert_adds_up(latency: &BlockLatency) {
    let text = format!("{latency:#?}");
    let application = latency.application.unwrap().write_us_mean.unwrap();
    let calls = latency.call_latency.writes.unwrap();
    let sum = sum_of_means(latency);
    assert!((sum - calls.latency_us.mean).abs() <= 0.01 * sum, "{text}");
    assert!(sum <= application * 1.1, "{sum} of {application}: {text}");
    assert!(sum >= application * 0.5, "{sum} of {application}: {text}");
    let left = latency.unexplained.unwrap().write_us_mean.unwrap();
    assert!((left - (application - sum)).abs() < 1e-6, "{text}");
}

#[test]
fn segments_of_direct_writes_add_up_to_their_calls() {
    let test = "segments_of_direct_writes_add_up_to_their_calls";
    let _alone = ONE_AT_A_TIME.lock();
    let Some((instance, disk)) = made(test, 8 << 10) else { return };
    for scheduler in ["none", "mq-deadline"] {
        if let Err(reason) = disk.schedule(scheduler) {
            eprintln!("skipped: {test}: {reason}");
            continue;
        }
        let scope = disk.scope(vec![std::process::id()], false);
        let mut trace = BlockTrace::open(instance.dir(), scope).unwrap();
        // Twice: nothing of the first window is left in the second.
        for _ in 0..2 {
            let latency = traced_writes(&mut trace, &instance, &disk, CALLS, || {});
            assert_eq!(latency.calls, CALLS * WRITERS, "{scheduler}: {latency:#?}");
            assert_eq!((latency.requests, latency.unmatched), (CALLS * WRITERS, 0), "{latency:#?}");
            assert_eq!((latency.lost_events, latency.held_back), (0, 0));
            assert_eq!(latency.device, disk.name());
            assert_adds_up(&latency);
            let plugged = latency.queue_steps.iter().any(|step| {
                step.step == iostrata_run::host::QueueStep::Plug && step.writes.is_some()
            });
            assert_eq!(plugged, scheduler != "none", "{latency:#?}");
        }
    }
}

#[test]
fn a_limit_is_told_from_the_file_system() {
    let test = "a_limit_is_told_from_the_file_system";
    let _alone = ONE_AT_A_TIME.lock();
    let Some((instance, disk)) = made(test, 4 << 10) else { return };
    const LIMIT_PER_S: u32 = 100;
    let limit = match WriteLimit::make(&disk, LIMIT_PER_S) {
        Ok(limit) => limit,
        Err(reason) => {
            eprintln!("skipped: {test}: {reason}");
            return;
        }
    };
    let scope = disk.scope(vec![std::process::id()], true);
    let mut trace = BlockTrace::open(instance.dir(), scope).unwrap();
    const EACH: u64 = 20;
    let latency = traced_writes(&mut trace, &instance, &disk, EACH, || limit.enter());
    assert_eq!((latency.calls, latency.requests), (EACH * WRITERS, EACH * WRITERS), "{latency:#?}");
    // The kernel lets a tenth of a second's worth through at once.
    assert!(latency.held_back > 0, "{latency:#?}");
    assert_adds_up(&latency);
    let held = mean(&latency, PathSegment::Limit);
    assert!(held > 0.5 * sum_of_means(&latency), "{latency:#?}");
    assert!(held > 10.0 * mean(&latency, PathSegment::Filesystem), "{latency:#?}");
}

#[test]
fn a_small_buffer_loses_events_and_says_so() {
    let test = "a_small_buffer_loses_events_and_says_so";
    let _alone = ONE_AT_A_TIME.lock();
    let Some((instance, disk)) = made(test, 16) else { return };
    let scope = disk.scope(vec![std::process::id()], false);
    let mut trace = BlockTrace::open(instance.dir(), scope).unwrap();
    let latency = traced_writes(&mut trace, &instance, &disk, CALLS, || {});
    assert!(latency.lost_events > 0, "{latency:#?}");
    assert!(latency.notes.iter().any(|note| note.contains("lost")), "{latency:#?}");
    assert!(latency.requests > 0 && latency.requests < CALLS * WRITERS, "{latency:#?}");
    let calls = latency.call_latency.writes.unwrap().latency_us.mean;
    assert!((sum_of_means(&latency) - calls).abs() <= 0.01 * calls, "{latency:#?}");
}

#[test]
fn written_back_pages_and_flushes_are_told_apart() {
    let test = "written_back_pages_and_flushes_are_told_apart";
    let _alone = ONE_AT_A_TIME.lock();
    let Some((instance, disk)) = made(test, 4 << 10) else { return };
    let scope = disk.scope(vec![std::process::id()], true);
    let mut trace = BlockTrace::open(instance.dir(), scope).unwrap();
    let mut switch = instance.switch();
    let file = OpenOptions::new().write(true).open(&disk.path).unwrap();
    trace.start(&mut switch).unwrap();
    write_blocks(&file, 100, 1);
    file.sync_all().unwrap();
    file.sync_all().unwrap();
    trace.stop(&mut switch).unwrap();
    let latency = trace.take(None).unwrap();
    assert_eq!((latency.calls, latency.held_back, latency.unmatched), (0, 0, 0), "{latency:#?}");
    assert!(latency.requests > 0 && latency.flushes.is_some_and(|times| times.count >= 1));
    assert!(writes(&latency, PathSegment::Queue).is_some());
    assert!(writes(&latency, PathSegment::Filesystem).is_none());
    assert!(latency.notes.iter().any(|note| note.contains("page cache")), "{latency:#?}");
}

/// Requests that fio has in flight.
const DEPTH: u64 = 8;
/// Requests that are traced of it, at least.
const TRACED: u64 = 400;

/// Runs fio until a part of it is traced.
fn fio(test: &str, engine: &str) -> Option<BlockLatency> {
    let (instance, disk) = made(test, buffer_kib(100_000.0, 0.2))?;
    let device = format!("--filename={}", disk.path);
    let engine = format!("--ioengine={engine}");
    let depth = format!("--iodepth={DEPTH}");
    // In one process, which is ended as soon as enough is traced.
    let arguments =
        ["--name=t", "--rw=randrw", "--direct=1", "--thread", "--time_based", "--runtime=60"];
    let mut job = Command::new("fio");
    job.args(arguments).args([&device, &engine, &depth]);
    let job = job.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(Job);
    let _job = match job {
        Ok(job) => job,
        Err(error) => {
            eprintln!("skipped: {test}: fio: {error}");
            return None;
        }
    };
    let mut trace = BlockTrace::open(instance.dir(), disk.scope(Vec::new(), false)).unwrap();
    let mut switch = instance.switch();
    let wait_for = |requests: u64| {
        let from = disk.requests();
        let until = Instant::now() + Duration::from_secs(50);
        while disk.requests() < from + requests {
            assert!(Instant::now() < until, "fio does not make {requests} requests");
            thread::sleep(Duration::from_millis(1));
        }
    };
    wait_for(DEPTH);
    trace.start(&mut switch).unwrap();
    wait_for(TRACED);
    trace.stop(&mut switch).unwrap();
    Some(trace.take(None).unwrap())
}

/// A process that ends with its value.
struct Job(Child);

impl Drop for Job {
    fn drop(&mut self) {
        let _ended_by_itself = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn io_uring_requests_are_followed_from_submission_to_entry() {
    let _alone = ONE_AT_A_TIME.lock();
    let Some(latency) = fio("io_uring", "io_uring") else { return };
    // What was in flight when the trace began has its call before it.
    assert!(latency.calls + DEPTH >= latency.requests, "{latency:#?}");
    assert!(latency.requests >= TRACED - DEPTH && latency.unmatched <= DEPTH * 2, "{latency:#?}");
    let calls = latency.call_latency.writes.unwrap().latency_us.mean;
    assert!((sum_of_means(&latency) - calls).abs() <= 0.01 * calls, "{latency:#?}");
}

#[test]
fn libaio_requests_have_queue_and_device_only() {
    let _alone = ONE_AT_A_TIME.lock();
    let Some(latency) = fio("libaio", "libaio") else { return };
    assert!(latency.requests > 0 && latency.calls == 0, "{latency:#?}");
    let segments: Vec<PathSegment> = latency.segments.iter().map(|found| found.segment).collect();
    assert_eq!(segments, [PathSegment::Queue, PathSegment::Device]);
}
