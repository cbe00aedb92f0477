//! What threads, settings and old handles may do to each other, each case as a small scene.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use iostrata_io::disk::MemDisk;

use crate::core::Core;
use crate::tests::small;
use crate::{Background, Counter, Disks, Engine};

fn open(disk: &MemDisk, background: Background) -> Engine {
    Engine::open_on(Disks::one(disk.clone()), small(), background).unwrap()
}

fn waits(core: &Core) -> u64 {
    core.counts.read()[Counter::AdmitWaits]
}

/// Waits for something that other threads do; fails when it never comes.
fn comes(what: &AtomicBool) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    while !what.load(Ordering::Acquire) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn a_promise_that_ends_without_redo_lets_others_go_on() {
    for background in [Background::Manual, Background::Threads] {
        let engine = open(&MemDisk::new(), background);
        engine.checkpoint().unwrap();
        let core = Arc::clone(engine.core());
        let limits = core.redo.limits();
        let all = core.admit(limits.capacity as usize - 1000).unwrap();
        let waited = waits(&core);
        let is_in = Arc::new(AtomicBool::new(false));
        let other = {
            let (core, is_in) = (Arc::clone(&core), Arc::clone(&is_in));
            std::thread::spawn(move || {
                let room = core.admit(2000).map(drop);
                is_in.store(true, Ordering::Release);
                room
            })
        };
        while waits(&core) == waited {
            std::thread::yield_now();
        }
        drop(all);
        assert!(comes(&is_in), "{background:?}: nobody writes, so no checkpoint moves");
        other.join().unwrap().unwrap();
    }
}
