//! What goes in comes out, lap after lap.

use std::sync::Arc;

use iostrata_engine::redo::{Redo, RedoSettings, RedoSync};
use iostrata_engine::{EngineError, RequestError};
use iostrata_innodb::{Counter, Lsn};
use iostrata_io::disk::{Disk, FileName, MemDisk, RealDisk};

use crate::common::is_damage;
use crate::redo::common::{START, commit, create, drain, fresh, long, reopen, short, smallest};

fn memory() -> Arc<dyn Disk> {
    Arc::new(MemDisk::new())
}

#[test]
fn frames_come_back_in_order() {
    let disk = memory();
    let redo = fresh(&disk, &smallest());
    let bodies: Vec<_> = (0..10).map(|index| long(1, index)).collect();
    let mut end = redo.lsn();
    for body in &bodies {
        let at = redo.append(body);
        assert_eq!(at.start, end);
        assert_eq!(at.end.0 - at.start.0, body.len() as u64 + 9);
        end = at.end;
    }
    assert_eq!((redo.lsn(), redo.written() < end, redo.durable() < end), (end, true, true));
    redo.make_written(end).unwrap();
    assert_eq!((redo.written(), redo.durable() < end), (end, true));
    redo.make_durable(end).unwrap();
    assert_eq!(redo.durable(), end);
    drop(redo);
    let (redo, found) = reopen(&disk, &smallest()).unwrap();
    assert_eq!(found, bodies);
    assert_eq!(redo.lsn().0, end.0 + 17, "an incarnation frame follows");
}

#[test]
fn what_was_not_written_is_not_there() {
    let disk = memory();
    let redo = fresh(&disk, &smallest());
    commit(&redo, b"kept").unwrap();
    redo.append(b"lost");
    drop(redo);
    assert_eq!(reopen(&disk, &smallest()).unwrap().1, [b"kept"]);
}

fn many_laps(settings: &RedoSettings, body: fn(u32, u32) -> Vec<u8>, frames: u32) {
    let disk = memory();
    let mut redo = fresh(&disk, settings);
    let mut since = Vec::new();
    for index in 0..frames {
        let before = redo.checkpoint_lsn();
        let content = body(1, index);
        commit(&redo, &content).unwrap();
        if redo.checkpoint_lsn() != before {
            since.clear();
        }
        since.push(content);
        if index % 301 == 300 {
            drop(redo);
            let found;
            (redo, found) = reopen(&disk, settings).unwrap();
            assert_eq!(found, since, "after frame {index}");
        }
    }
    let laps = (redo.lsn().0 - START.0) / settings.capacity_bytes;
    assert!(laps >= 5, "{laps} laps");
}

#[test]
fn it_wraps_around_many_times() {
    many_laps(&smallest(), short, 30_000);
    many_laps(&smallest(), long, 1000);
    let wide = RedoSettings { write_ahead_bytes: 16_384, ..smallest() };
    many_laps(&wide, long, 1000);
    let through = RedoSettings { sync: RedoSync::WriteThrough, ..smallest() };
    many_laps(&through, long, 500);
}

#[test]
fn one_write_may_go_over_several_segments() {
    let disk = memory();
    let settings =
        RedoSettings { capacity_bytes: 400_000, log_buffer_bytes: 200_000, ..smallest() };
    let redo = fresh(&disk, &settings);
    let bodies: Vec<_> = (0..100).map(|index| long(1, index)).collect();
    for body in &bodies {
        redo.append(body);
    }
    let writes = redo.counts.read()[Counter::LogWrites];
    redo.make_durable(redo.lsn()).unwrap();
    assert!(redo.counts.read()[Counter::LogWrites] - writes > 8, "{:?}", redo.counts.read());
    drop(redo);
    assert_eq!(reopen(&disk, &settings).unwrap().1, bodies);
}

#[test]
fn a_checkpoint_is_where_the_next_scan_begins() {
    let disk = memory();
    let redo = fresh(&disk, &smallest());
    commit(&redo, b"old").unwrap();
    let middle = commit(&redo, b"older").unwrap();
    commit(&redo, b"new").unwrap();
    redo.take_checkpoint(middle, false).unwrap();
    redo.take_checkpoint(START, false).unwrap();
    assert_eq!(redo.checkpoint_lsn(), middle, "it does not go back");
    drop(redo);
    let (redo, mut scan) = Redo::open(Arc::clone(&disk), smallest(), Default::default()).unwrap();
    assert_eq!((scan.checkpoint(), scan.clean()), (middle, false));
    assert_eq!(drain(&mut scan).unwrap(), [b"new"]);
    redo.start(scan).unwrap();
    redo.take_checkpoint(redo.lsn(), true).unwrap();
    // As by a thread that was held up between its look at the checkpoint and this call.
    redo.take_checkpoint(redo.lsn(), false).unwrap();
    drop(redo);
    let (redo, scan) = Redo::open(Arc::clone(&disk), smallest(), Default::default()).unwrap();
    assert!(scan.clean());
    redo.start(scan).unwrap();
    commit(&redo, b"more").unwrap();
    drop(redo);
    assert!(
        !Redo::open(disk, smallest(), Default::default()).unwrap().1.clean(),
        "something follows"
    );
}

#[test]
fn a_full_buffer_is_written_out_by_who_appends() {
    let disk = memory();
    let settings = RedoSettings { capacity_bytes: 1 << 20, ..smallest() };
    let redo = fresh(&disk, &settings);
    let bodies: Vec<_> = (0..200).map(|index| long(1, index)).collect();
    for body in &bodies {
        redo.append(body);
    }
    assert!(redo.counts.read()[Counter::LogWaits] > 0, "{:?}", redo.counts.read());
    redo.wait_room(60_000).unwrap();
    assert_eq!(redo.written(), redo.lsn(), "written out");
    redo.append(b"little");
    redo.wait_room(1000).unwrap();
    assert!(redo.written() < redo.lsn(), "there was room");
    assert_eq!(redo.appended(), 201);
    redo.make_durable(redo.lsn()).unwrap();
    drop(redo);
    assert_eq!(reopen(&disk, &settings).unwrap().1, [bodies, vec![b"little".to_vec()]].concat());
}

#[test]
fn who_asks_for_nonsense_is_told() {
    let disk = memory();
    let open = |disk| Redo::open(disk, smallest(), Default::default()).map(drop).unwrap_err();
    let missing = open(Arc::clone(&disk));
    assert!(is_damage(&missing, &["cannot be found", "redo-control"]), "{missing}");
    let odd = RedoSettings { write_ahead_bytes: 1000, ..smallest() };
    let is_refused = |error| {
        let EngineError::Request(RequestError::SettingRange { value, .. }) = error else {
            return false;
        };
        value == 1000
    };
    assert!(is_refused(create(&disk, &odd).unwrap_err()));
    let tiny = RedoSettings { capacity_bytes: 1000, ..smallest() };
    assert!(is_refused(create(&disk, &tiny).unwrap_err()));
    assert!(Redo::create(Arc::clone(&disk), &smallest(), Lsn(0)).is_err());
    create(&disk, &smallest()).unwrap();
    let exists = create(&disk, &smallest()).unwrap_err();
    assert!(is_damage(&exists, &["there is a redo log here already"]), "{exists}");
    disk.remove(&FileName::new("redo-000000").unwrap()).unwrap();
    let missing = open(disk);
    assert!(is_damage(&missing, &["no redo segment", &START.0.to_string()]), "{missing}");
}

#[test]
fn a_damaged_log_that_was_durable_is_an_error() {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let redo = fresh(&shared, &smallest());
    let first = commit(&redo, b"first").unwrap();
    let end = commit(&redo, b"second").unwrap();
    redo.take_checkpoint(first, false).unwrap();
    drop(redo);
    // The body of the second frame, in the first segment behind its header.
    let name = FileName::new("redo-000000").unwrap();
    let file = shared.open(&name, iostrata_io::disk::FileMode::Existing).unwrap();
    let mut bytes = disk.content(&name).unwrap();
    bytes[(end.0 - 16_384 + 4096) as usize - 1] ^= 1;
    let all = iostrata_io::disk::Aligned::from_slice(&bytes);
    shared.write(file, 0, &all, iostrata_io::disk::Durability::Volatile).unwrap();
    let found =
        Redo::open(Arc::clone(&shared), smallest(), Default::default()).map(|_| ()).unwrap_err();
    let [ends, durable] = [first, end].map(|lsn| lsn.0.to_string());
    assert!(is_damage(&found, &["ends at", &ends, &durable]), "{found}");
}

#[test]
fn a_real_disk_does_the_same() {
    for direct in [false, true] {
        for sync in [RedoSync::Fsync, RedoSync::Fdatasync, RedoSync::WriteThrough, RedoSync::None] {
            let directory = tempfile::tempdir_in("/var/tmp").unwrap();
            let disk: Arc<dyn Disk> = Arc::new(RealDisk::new(directory.path(), direct).unwrap());
            let settings = RedoSettings { sync, ..smallest() };
            let redo = fresh(&disk, &settings);
            for index in 0..60 {
                commit(&redo, &long(1, index)).unwrap();
            }
            let from = redo.append(b"last").start;
            redo.take_checkpoint(from, false).unwrap();
            redo.make_durable(redo.lsn()).unwrap();
            drop(redo);
            assert_eq!(reopen(&disk, &settings).unwrap().1, [b"last"], "{direct} {sync:?}");
        }
    }
}
