//! Growing and shrinking while the log is used.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use iostrata_engine::EngineError;
use iostrata_engine::redo::{Redo, RedoSettings};
use iostrata_innodb::Lsn;
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{Disk, FileName, MemDisk};

use crate::redo::common::{commit, fill, fresh, long, reopen, smallest};
use crate::redo::hooked::Hooked;

fn segment_bytes(disk: &MemDisk) -> u64 {
    let names = disk.list().unwrap();
    let segments = names.iter().filter(|name| name.as_str() != "redo-control");
    segments.map(|name: &FileName| disk.content(name).unwrap().len() as u64).sum()
}

#[test]
fn the_limits_follow_and_the_files_too() {
    let memory = MemDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let mut redo = fresh(&disk, &smallest());
    let mut index = 0;
    for bytes in [65_536, 200_000, 2 << 20, 3 << 20, 1 << 20, 40 << 20, 100_000, 65_536] {
        redo.set_capacity(bytes).unwrap();
        assert!(redo.limits().capacity < bytes && redo.limits().capacity > bytes / 3);
        for _ in 0..200 {
            commit(&redo, &long(1, index)).unwrap();
            index += 1;
        }
        // The segment in use is left behind only when it is full.
        while segment_bytes(&memory) > bytes {
            assert!(index < 200_000, "{} bytes are still there", segment_bytes(&memory));
            commit(&redo, &long(1, index)).unwrap();
            redo.take_checkpoint(redo.lsn(), false).unwrap();
            index += 1;
        }
        commit(&redo, b"last").unwrap();
        drop(redo);
        let settings = RedoSettings { capacity_bytes: bytes, ..smallest() };
        let found;
        (redo, found) = reopen(&disk, &settings).unwrap();
        assert_eq!(found.last().unwrap(), b"last");
        assert!(segment_bytes(&memory) <= bytes);
    }
}

#[test]
fn another_capacity_at_opening_is_followed() {
    let memory = MemDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let redo = fresh(&disk, &smallest());
    commit(&redo, b"kept").unwrap();
    drop(redo);
    for bytes in [1 << 20, 5 << 20, 65_536] {
        let settings = RedoSettings { capacity_bytes: bytes, ..smallest() };
        let (redo, found) = reopen(&disk, &settings).unwrap();
        assert_eq!(found, [b"kept"]);
        assert!(redo.limits().capacity > bytes / 3);
    }
}

#[test]
fn shrinking_below_the_age_loses_nothing() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let wide = RedoSettings { capacity_bytes: 1 << 20, ..smallest() };
    let redo = fresh(&disk, &wide);
    let mut bodies = Vec::new();
    while redo.lsn().0 - redo.checkpoint_lsn().0 < redo.limits().max_age {
        bodies.push(long(1, bodies.len() as u32));
        redo.append(bodies.last().unwrap());
    }
    redo.set_capacity(65_536).unwrap();
    // A thread admitted before may still finish.
    bodies.push(vec![9; 8000]);
    redo.append(bodies.last().unwrap());
    redo.make_durable(redo.lsn()).unwrap();
    drop(redo);
    assert_eq!(reopen(&disk, &smallest()).unwrap().1, bodies);
}

#[test]
fn without_space_nothing_changes() {
    let memory = MemDisk::with_capacity(300_000);
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let redo = fresh(&disk, &smallest());
    let (before, files) = (redo.limits(), disk.list().unwrap());
    let refused = redo.set_capacity(1 << 20).unwrap_err();
    assert!(matches!(refused, EngineError::NoSpace { .. }), "{refused}");
    assert_eq!((redo.limits(), disk.list().unwrap()), (before, files));
    redo.set_capacity(200_000).unwrap();
    commit(&redo, b"works").unwrap();
    // Any other failure while segments are made changes nothing either.
    let mut writes = 0;
    memory.before_each(move |call| {
        writes += u32::from(call.kind == CallKind::Write);
        if call.kind == CallKind::Sync && writes == 3 { Fault::Errno(5) } else { Fault::None }
    });
    let before = redo.limits();
    let refused = redo.set_capacity(260_000).unwrap_err();
    assert!(matches!(refused, EngineError::Io(_)), "{refused}");
    memory.before_each(|_| Fault::None);
    assert_eq!((redo.limits(), redo.poison.is_set()), (before, false));
    commit(&redo, b"works").unwrap();
}

#[test]
fn it_changes_under_load() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let redo = fresh(&disk, &smallest());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for index in 0..5000 {
                commit(&redo, &long(1, index)).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            for round in 0.. {
                let bytes = [65_536, 300_000, 5 << 20, 150_000][round % 4];
                redo.set_capacity(bytes).unwrap();
                if done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
    });
    redo.take_checkpoint(Lsn(redo.lsn().0), true).unwrap();
    commit(&redo, b"last").unwrap();
    drop(redo);
    assert_eq!(reopen(&disk, &smallest()).unwrap().1, [b"last"]);
}

/// While segments are made a checkpoint does away with some that were counted; there is no room for
/// others in their place.
#[test]
fn segments_that_were_made_go_when_the_last_of_them_find_no_room() {
    let memory = MemDisk::new();
    let log: Arc<OnceLock<Redo>> = Arc::default();
    let (of_hook, room) = (Arc::clone(&log), memory.clone());
    let (armed, is_armed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let watched = Arc::clone(&is_armed);
    let before_sync = move || {
        if watched.swap(false, Ordering::Relaxed) {
            let redo = of_hook.get().unwrap();
            redo.take_checkpoint(redo.lsn(), false).unwrap();
        }
    };
    let (fails, names) = (Arc::clone(&armed), Arc::new(AtomicBool::new(false)));
    let is_second = Arc::clone(&names);
    room.before_each(move |call| {
        // The directory is synced at the end of the first round.
        let is_first_end = call.kind == CallKind::SyncDir && fails.load(Ordering::Relaxed);
        is_second.fetch_or(is_first_end, Ordering::Relaxed);
        let grows = call.kind == CallKind::Write && call.name.starts_with("redo-0");
        if grows && is_second.load(Ordering::Relaxed) { Fault::Errno(28) } else { Fault::None }
    });
    let disk = Hooked {
        disk: Arc::new(memory.clone()),
        before_sync: Box::new(before_sync),
        after_sync: Box::new(|| {}),
    };
    let wide = RedoSettings { capacity_bytes: 200_000, ..smallest() };
    let redo = fresh(&(Arc::new(disk) as Arc<dyn Disk>), &wide);
    let _bodies = fill(&redo, 1, redo.limits().max_age);
    // Its segments are in use, so that they stay until a checkpoint comes.
    redo.set_capacity(65_536).unwrap();
    assert!(log.set(redo).is_ok());
    let redo = log.get().unwrap();
    armed.store(true, Ordering::Relaxed);
    is_armed.store(true, Ordering::Relaxed);
    let refused = redo.set_capacity(250_000).unwrap_err();
    assert!(names.load(Ordering::Relaxed), "there was no second round");
    assert!(matches!(refused, EngineError::NoSpace { .. }), "{refused}");
    memory.before_each(|_| Fault::None);
    assert!(segment_bytes(&memory) <= 65_536, "{:?}", memory.list().unwrap());
    assert!(!redo.poison.is_set());
}
