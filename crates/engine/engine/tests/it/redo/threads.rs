//! Many threads at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use iostrata_engine::redo::{Redo, RedoSettings};
use iostrata_innodb::{Counter, Lsn};
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{Disk, MemDisk, Tear, TraceDisk};

use crate::common::first_failure;
use crate::redo::common::{drain, fresh, reopen, short, smallest};
use crate::redo::hooked::Hooked;

fn roomy() -> RedoSettings {
    RedoSettings { capacity_bytes: 8 << 20, ..smallest() }
}

/// Each thread's frames are there in order, up to at least the last acknowledged one.
pub fn check(found: &[Vec<u8>], acked: &HashMap<u32, u32>) {
    let mut next: HashMap<u32, u32> = HashMap::new();
    for body in found {
        let thread = u32::from_le_bytes(body[..4].try_into().unwrap());
        let index = u32::from_le_bytes(body[4..8].try_into().unwrap());
        assert_eq!(*next.entry(thread).or_default(), index, "thread {thread}");
        *next.entry(thread).or_default() += 1;
    }
    for (thread, acked) in acked {
        assert!(next.get(thread) > Some(acked), "thread {thread}: {next:?}, acknowledged {acked}");
    }
}

fn run(redo: &Redo, threads: u32, frames: u32, acked: impl Fn(u32, u32) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let acked = &acked;
            scope.spawn(move || {
                for index in 0..frames {
                    let end = redo.append(&short(thread, index)).end;
                    if index % 3 == 1 {
                        redo.make_written(end).unwrap();
                    } else {
                        redo.make_durable(end).unwrap();
                        assert!(redo.durable() >= end);
                        acked(thread, index);
                    }
                }
            });
        }
    });
}

#[test]
fn every_thread_gets_what_it_waits_for() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let redo = fresh(&disk, &roomy());
    run(&redo, 16, 1000, |_, _| {});
    let syncs = redo.counts.read()[Counter::OsLogFsyncs];
    assert!(syncs < 16_000, "{syncs} syncs");
    drop(redo);
    let (_, found) = reopen(&disk, &roomy()).unwrap();
    assert_eq!(found.len(), 16_000);
    check(&found, &HashMap::new());
}

#[test]
fn a_crash_under_many_threads_keeps_what_was_acknowledged() {
    let disk = TraceDisk::new(MemDisk::new());
    let redo = fresh(&(Arc::new(disk.clone()) as Arc<dyn Disk>), &smallest());
    let from = disk.points();
    run(&redo, 8, 100, |thread, index| {
        disk.ack((u64::from(thread) << 32) | u64::from(index));
    });
    let points = disk.points();
    for at in (from..points).step_by(1 + points / 400) {
        let acked: HashMap<u32, u32> =
            disk.acknowledged(at).iter().map(|ack| ((ack >> 32) as u32, *ack as u32)).collect();
        for (seed, tear) in [(0, Tear::Whole), (2 + at as u64, Tear::Sectors(512))] {
            let image: Arc<dyn Disk> = Arc::new(disk.image(at, seed, tear));
            let (_, mut scan) = Redo::open(image, smallest(), Default::default()).unwrap();
            check(&drain(&mut scan).unwrap(), &acked);
        }
    }
}

#[test]
fn checkpoints_and_commits_go_together() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let redo = fresh(&disk, &smallest());
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let redo = &redo;
            scope.spawn(move || {
                for index in 0..2000 {
                    while redo.lsn().0 - redo.checkpoint_lsn().0 >= redo.limits().max_age {
                        redo.take_checkpoint(Lsn(redo.durable().0), false).unwrap();
                    }
                    let end = redo.append(&short(thread, index)).end;
                    redo.make_durable(end).unwrap();
                }
            });
        }
    });
    redo.take_checkpoint(redo.lsn(), true).unwrap();
    drop(redo);
    let (_, scan) = Redo::open(disk, smallest(), Default::default()).unwrap();
    assert!(scan.clean());
}

#[test]
fn a_failure_reaches_everyone() {
    for at in [0, 1, 5, 30] {
        let memory = MemDisk::new();
        let redo = fresh(&(Arc::new(memory.clone()) as Arc<dyn Disk>), &roomy());
        let calls = AtomicU64::new(0);
        memory.before_each(move |call| {
            let is_sync = call.kind == CallKind::Sync;
            let fails = is_sync && calls.fetch_add(1, Ordering::Relaxed) == at;
            if fails { Fault::Errno(5) } else { Fault::None }
        });
        let redo = &redo;
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..12)
                .map(|thread| {
                    scope.spawn(move || {
                        (0..).find_map(|index| {
                            let end = redo.append(&short(thread, index)).end;
                            redo.make_durable(end).err()
                        })
                    })
                })
                .collect();
            for thread in waiting {
                let [told, kept] = [thread.join().unwrap(), redo.poison.check().err()];
                assert_eq!(told.as_ref().map(first_failure), kept.as_ref().map(first_failure));
            }
        });
    }
}

#[test]
fn a_write_during_a_sync_is_not_covered_by_it() {
    let during: Arc<Mutex<Option<Arc<Redo>>>> = Arc::default();
    let shared = Arc::clone(&during);
    let after_sync = Box::new(move || {
        if let Some(redo) = shared.lock().unwrap().take() {
            redo.make_written(redo.append(b"later").end).unwrap();
        }
    });
    let disk = Arc::new(MemDisk::new());
    let disk: Arc<dyn Disk> = Arc::new(Hooked { disk, before_sync: Box::new(|| {}), after_sync });
    let redo = Arc::new(fresh(&disk, &smallest()));
    let end = redo.append(b"now").end;
    *during.lock().unwrap() = Some(Arc::clone(&redo));
    redo.make_durable(end).unwrap();
    assert!(redo.written() > end);
    assert_eq!(redo.durable(), end);
}

/// Ends a test's loops also when a thread panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A thread that reads a checkpoint, or a larger capacity, may append into the room it gives.
#[test]
fn room_is_there_before_it_is_published() {
    // Frames of a short body and of one that takes nearly all that is held in reserve.
    const FRAMES: [(u64, u64); 2] = [(9_209, 9_200), (17, 8)];
    let rounds = if std::env::var_os("IOSTRATA_SOAK").is_some() { 40_000 } else { 800 };
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let redo = fresh(&disk, &smallest());
    let is_over = AtomicBool::new(false);
    let full = |frame: u64| redo.checkpoint_lsn().0 + redo.limits().capacity - frame;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _over = Over(&is_over);
            while !is_over.load(Ordering::Relaxed) {
                for (frame, body) in FRAMES {
                    if redo.lsn().0 <= full(frame) {
                        redo.append(&vec![1; body as usize]);
                        break;
                    }
                }
            }
        });
        let _over = Over(&is_over);
        for round in 0..rounds {
            while redo.lsn().0 < full(17) && !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            redo.make_durable(redo.lsn()).unwrap();
            match round % 8 {
                0 => redo.set_capacity(100_000).unwrap(),
                4 => redo.set_capacity(65_536).unwrap(),
                _ => redo.take_checkpoint(redo.durable(), false).unwrap(),
            }
        }
    });
}
