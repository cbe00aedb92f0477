//! A process ends, the next one goes on from the page cache, and only then the power is cut.

use std::sync::Arc;

use iostrata_engine::redo::RedoSettings;
use iostrata_engine::redo::layout::GRANULE_BYTES;
use iostrata_io::disk::{Disk, Ending, MemDisk, Tear, TraceDisk};

use crate::redo::common::{commit, fill, fresh, long, reopen, smallest};

fn shared(disk: &TraceDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

/// What is found once the power was cut and everything was lost that was not durable.
fn after_cut(disk: &TraceDisk, settings: &RedoSettings) -> Vec<Vec<u8>> {
    let image: Arc<dyn Disk> = Arc::new(disk.image(disk.points() - 1, 0, Tear::Whole));
    reopen(&image, settings).unwrap().1
}

#[test]
fn a_checkpoint_that_was_never_durable_frees_nothing() {
    for ending in [Ending::Killed, Ending::SyncFailed] {
        let disk = TraceDisk::new(MemDisk::new());
        let redo = fresh(&shared(&disk), &smallest());
        fill(&redo, 1, redo.limits().max_age);
        let before = disk.points();
        redo.take_checkpoint(redo.lsn(), false).unwrap();
        let disk = disk.restarted(disk.next_sync(before).unwrap(), 1, ending);
        let (redo, found) = reopen(&shared(&disk), &smallest()).unwrap();
        assert!(found.is_empty(), "the checkpoint is in the cache");
        // Into the segments that it set free.
        let bodies = fill(&redo, 2, redo.limits().max_age);
        assert!(after_cut(&disk, &smallest()) == bodies, "{ending:?}");
    }
}

#[test]
fn frames_that_a_failed_sync_left_for_clean_are_written_again() {
    for age in [500, 9_000, 18_000] {
        let disk = TraceDisk::new(MemDisk::new());
        let redo = fresh(&shared(&disk), &smallest());
        let mut bodies = fill(&redo, 1, 6_000);
        let (unsynced, start) = (3, redo.lsn().0);
        while redo.lsn().0 < start + age {
            bodies.push(long(unsynced, bodies.len() as u32));
            redo.append(bodies.last().unwrap());
        }
        let before = disk.points();
        redo.make_durable(redo.lsn()).unwrap();
        let began = disk.next_sync(before).unwrap();
        let disk = disk.restarted(began, 1, Ending::SyncFailed);
        let (redo, found) = reopen(&shared(&disk), &smallest()).unwrap();
        assert!(found == bodies, "the cache shows them all");
        assert!(after_cut(&disk, &smallest()) == bodies, "durable once they are believed");
        bodies.push(b"behind them".to_vec());
        let end = redo.append(bodies.last().unwrap()).end;
        redo.make_durable(end).unwrap();
        assert!(after_cut(&disk, &smallest()) == bodies, "and with what came behind them");
    }
}

#[test]
fn segments_whose_names_were_not_durable_are_made_so() {
    let larger = RedoSettings { capacity_bytes: 150_000, ..smallest() };
    let disk = TraceDisk::new(MemDisk::new());
    let redo = fresh(&shared(&disk), &smallest());
    let before = disk.points() - 1;
    redo.set_capacity(larger.capacity_bytes).unwrap();
    for point in before..disk.points() {
        for ending in [Ending::Killed, Ending::SyncFailed] {
            let disk = disk.restarted(point, 1, ending);
            let (redo, _) = reopen(&shared(&disk), &larger).unwrap();
            let bodies = fill(&redo, 2, redo.limits().max_age);
            assert!(after_cut(&disk, &larger) == bodies, "point {point}, {ending:?}");
        }
    }
}

#[test]
fn segments_made_for_a_log_that_was_closed_clean_survive_a_power_cut() {
    let larger = RedoSettings { capacity_bytes: 150_000, ..smallest() };
    for opens_larger in [true, false] {
        let disk = TraceDisk::new(MemDisk::new());
        let redo = fresh(&shared(&disk), &smallest());
        redo.take_checkpoint(redo.lsn(), true).unwrap();
        drop(redo);
        let before = disk.points() - 1;
        if opens_larger {
            reopen(&shared(&disk), &larger).unwrap();
        } else {
            let (redo, _) = reopen(&shared(&disk), &smallest()).unwrap();
            redo.set_capacity(larger.capacity_bytes).unwrap();
        }
        for point in (before..disk.points()).step_by(2) {
            for ending in [Ending::Killed, Ending::SyncFailed] {
                let what = format!("{opens_larger}, point {point}, {ending:?}");
                cut_while_new_segments_are_taken(&disk.restarted(point, 1, ending), &larger, &what);
            }
        }
    }
}

/// Cuts the power wherever the log goes on in a segment that it never had: any sector of what was
/// not durable may be there.
fn cut_while_new_segments_are_taken(disk: &TraceDisk, settings: &RedoSettings, what: &str) {
    let (redo, _) = reopen(&shared(disk), settings).unwrap();
    let mut index = 0;
    while redo.lsn().0 - redo.checkpoint_lsn().0 < redo.limits().max_age {
        let (before, segment) = (disk.points(), redo.lsn().0 / GRANULE_BYTES);
        redo.append(&long(2, index));
        redo.make_durable(redo.lsn()).unwrap();
        index += 1;
        if redo.lsn().0 / GRANULE_BYTES == segment {
            continue;
        }
        for (at, seed) in (before..disk.points()).flat_map(|at| (2..14).map(move |seed| (at, seed)))
        {
            let image: Arc<dyn Disk> = Arc::new(disk.image(at, seed, Tear::Sectors(512)));
            reopen(&image, settings)
                .unwrap_or_else(|error| panic!("{what}, cut at {at}, seed {seed}: {error}"));
        }
    }
}

/// Whenever a process ends, also in the middle of opening: nothing durable is lost, and what was
/// found is durable once the log is open.
#[test]
fn wherever_a_process_ends() {
    let run = TraceDisk::new(MemDisk::new());
    let redo = fresh(&shared(&run), &smallest());
    let from = run.points() - 1;
    for index in 0..60 {
        commit(&redo, &long(1, index)).unwrap();
        run.ack(u64::from(index));
    }
    let newest = |found: &[Vec<u8>]| {
        found.last().map(|body| u32::from_le_bytes(body[4..8].try_into().unwrap()))
    };
    for point in (from..run.points()).step_by(3) {
        for ending in [Ending::Killed, Ending::SyncFailed] {
            let disk = run.restarted(point, 7 + point as u64, ending);
            let (_, found) = reopen(&shared(&disk), &smallest()).unwrap();
            let opened = disk.points() - 1;
            let again = disk.restarted(point % opened, 1, ending);
            reopen(&shared(&again), &smallest()).unwrap();
            for disk in [disk, again] {
                let cut = after_cut(&disk, &smallest());
                assert_eq!(newest(&cut), newest(&found), "point {point}, {ending:?}");
            }
        }
    }
}
