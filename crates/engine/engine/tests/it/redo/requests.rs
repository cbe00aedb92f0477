//! Durability without waiting: what was requested is promised no earlier than what was waited for,
//! and comes although no thread waits.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use iostrata_engine::EngineError;
use iostrata_engine::redo::{Redo, RedoSettings};
use iostrata_innodb::{Counter, Lsn};
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{Disk, MemDisk, Tear, TraceDisk};

use crate::common::first_failure;
use crate::redo::common::{drain, fresh, reopen, short, smallest};
use crate::redo::hooked::Hooked;
use crate::redo::threads::check;

fn roomy() -> RedoSettings {
    RedoSettings { capacity_bytes: 8 << 20, ..smallest() }
}

/// Waits for what another thread does; fails when it never comes.
fn until(what: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !what() {
        assert!(Instant::now() < end, "it never comes");
        std::thread::yield_now();
    }
}

/// Ends the serving thread also when a test fails.
struct Stopping<'r>(&'r Redo);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.stop_serving();
    }
}

/// Works while a thread serves the log; gives how that ended, after a stop.
fn served(redo: &Redo, work: impl FnOnce()) -> Result<(), EngineError> {
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| redo.serve_requests());
        let stopping = Stopping(redo);
        work();
        drop(stopping);
        serving.join().unwrap()
    })
}

/// Sessions that keep some requests in flight; `acked` learns of each that was seen durable.
fn sessions(redo: &Redo, threads: u32, frames: u32, acked: impl Fn(u32, u32) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let acked = &acked;
            scope.spawn(move || {
                let mut waiting = Vec::new();
                for index in 0..frames {
                    let end = redo.append(&short(thread, index)).end;
                    waiting.push((index, end));
                    if index % 7 == 3 {
                        redo.make_durable(end).unwrap();
                    } else {
                        redo.request_durable(end);
                    }
                    waiting.retain(|(index, end)| {
                        let is_durable = redo.durable() >= *end;
                        if is_durable {
                            acked(thread, *index);
                        }
                        !is_durable
                    });
                }
                for (index, end) in waiting {
                    until(|| redo.durable() >= end);
                    acked(thread, index);
                }
            });
        }
    });
}

#[test]
fn requests_are_served_without_a_waiter() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let redo = fresh(&disk, &roomy());
    served(&redo, || sessions(&redo, 6, 1000, |_, _| {})).unwrap();
    let syncs = redo.counts.read()[Counter::OsLogFsyncs];
    assert!(syncs < 6000, "{syncs} syncs");
    drop(redo);
    assert_eq!(reopen(&disk, &roomy()).unwrap().1.len(), 6000);
}

#[test]
fn requests_gather_for_as_long_as_those_who_wait() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let redo = fresh(&disk, &roomy());
    redo.gather_commits_for(Duration::from_millis(500));
    let before = redo.counts.read()[Counter::OsLogFsyncs];
    served(&redo, || {
        for index in 0..6 {
            redo.request_durable(redo.append(&short(0, index)).end);
            std::thread::sleep(Duration::from_millis(5));
        }
        until(|| redo.durable() == redo.lsn());
    })
    .unwrap();
    let syncs = redo.counts.read()[Counter::OsLogFsyncs] - before;
    assert!(syncs <= 3, "{syncs} syncs for six requests that came together");
}

/// The thread idles, naps and gathers in turn: no request is lost on the way into a sleep.
#[test]
fn no_request_is_lost_between_two_sleeps() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let redo = fresh(&disk, &roomy());
    served(&redo, || {
        for index in 0..3000 {
            let end = redo.append(&short(0, index)).end;
            redo.request_durable(end);
            match index % 100 {
                0..50 => until(|| redo.durable() >= end),
                50..98 => redo.make_durable(end).unwrap(),
                98 => redo.hasten_requests(),
                _ => {}
            }
        }
        until(|| redo.durable() == redo.lsn());
    })
    .unwrap();
}

#[test]
fn a_crash_keeps_what_was_requested_and_seen_durable() {
    let disk = TraceDisk::new(MemDisk::new());
    let redo = fresh(&(Arc::new(disk.clone()) as Arc<dyn Disk>), &smallest());
    let from = disk.points();
    served(&redo, || {
        sessions(&redo, 4, 200, |thread, index| {
            disk.ack((u64::from(thread) << 32) | u64::from(index));
        });
    })
    .unwrap();
    let points = disk.points();
    for at in (from..points).step_by(1 + points / 200) {
        let mut acked: HashMap<u32, u32> = HashMap::new();
        for ack in disk.acknowledged(at) {
            let most = acked.entry((ack >> 32) as u32).or_default();
            *most = (*most).max(ack as u32);
        }
        for (seed, tear) in [(0, Tear::Whole), (2 + at as u64, Tear::Sectors(512))] {
            let image: Arc<dyn Disk> = Arc::new(disk.image(at, seed, tear));
            let (_, mut scan) = Redo::open(image, smallest(), Default::default()).unwrap();
            check(&drain(&mut scan).unwrap(), &acked);
        }
    }
}

#[test]
fn nothing_requested_is_durable_before_its_sync_has_ended() {
    let (is_syncing, may_sync) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(true)));
    let (syncing, may) = (Arc::clone(&is_syncing), Arc::clone(&may_sync));
    let before_sync = Box::new(move || {
        syncing.store(true, Ordering::SeqCst);
        until(|| may.load(Ordering::SeqCst));
    });
    let disk = Arc::new(MemDisk::new());
    let disk: Arc<dyn Disk> = Arc::new(Hooked { disk, before_sync, after_sync: Box::new(|| {}) });
    let redo = fresh(&disk, &smallest());
    is_syncing.store(false, Ordering::SeqCst);
    may_sync.store(false, Ordering::SeqCst);
    served(&redo, || {
        let before = redo.durable();
        redo.request_durable(redo.append(b"first").end);
        until(|| is_syncing.load(Ordering::SeqCst));
        // Too late for the sync that has begun.
        let second = redo.append(b"second").end;
        redo.request_durable(second);
        redo.hasten_requests();
        assert_eq!(redo.durable(), before);
        may_sync.store(true, Ordering::SeqCst);
        until(|| redo.durable() >= second);
    })
    .unwrap();
}

#[test]
fn a_failure_ends_the_serving_and_settles_nothing() {
    for kind in [CallKind::Write, CallKind::Sync] {
        let memory = MemDisk::new();
        let redo = fresh(&(Arc::new(memory.clone()) as Arc<dyn Disk>), &smallest());
        memory.before_each(
            move |call| {
                if call.kind == kind { Fault::Errno(5) } else { Fault::None }
            },
        );
        let before = redo.durable();
        let ended = served(&redo, || {
            redo.request_durable(redo.append(b"lost").end);
            until(|| redo.poison.is_set());
        });
        let kept = first_failure(&redo.poison.check().unwrap_err());
        assert_eq!(first_failure(&ended.unwrap_err()), kept);
        memory.before_each(|_| Fault::None);
        redo.request_durable(redo.append(b"refused").end);
        redo.hasten_requests();
        assert_eq!(redo.durable(), before);
        assert_eq!(first_failure(&redo.serve_requests().unwrap_err()), kept);
        assert_eq!(redo.durable(), before);
    }
}

#[test]
fn a_stop_serves_what_was_requested_before_it() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    for rest in 0..60 {
        let redo = fresh(&disk, &roomy());
        served(&redo, || {
            for index in 0..rest {
                let end = redo.append(&short(1, index)).end;
                redo.request_durable(end);
                if index % 3 == 0 {
                    redo.make_durable(end).unwrap();
                }
            }
        })
        .unwrap();
        assert_eq!(redo.durable(), redo.lsn());
        // Once stopped it stays so, and waiters serve themselves.
        redo.serve_requests().unwrap();
        let end = redo.append(b"later").end;
        redo.request_durable(end);
        assert!(redo.durable() < end);
        redo.make_durable(end).unwrap();
        drop(redo);
        for name in disk.list().unwrap() {
            disk.remove(&name).unwrap();
        }
    }
}

#[test]
fn a_request_for_a_write_syncs_nothing() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let redo = fresh(&disk, &smallest());
    let syncs = redo.counts.read()[Counter::OsLogFsyncs];
    served(&redo, || {
        for index in 0..50 {
            let end = redo.append(&short(0, index)).end;
            redo.request_written(end);
            until(|| redo.written() >= end);
        }
    })
    .unwrap();
    assert_eq!(redo.counts.read()[Counter::OsLogFsyncs], syncs);
    assert!(redo.durable() < redo.lsn());
}

/// Without a serving thread a request does nothing at all: stepping by hand sees no change.
#[test]
fn requests_alone_call_no_disk() {
    let memory = MemDisk::new();
    let redo = fresh(&(Arc::new(memory.clone()) as Arc<dyn Disk>), &smallest());
    let calls = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&calls);
    memory.before_each(move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        Fault::None
    });
    let end: Lsn = redo.append(b"frame").end;
    (0..100).for_each(|_| redo.request_durable(end));
    redo.request_written(end);
    redo.hasten_requests();
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    assert!(redo.written() < end);
}
