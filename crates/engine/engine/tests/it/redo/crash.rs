//! Crashes at every point, and once more after the recovery.

use std::sync::Arc;

use iostrata_engine::EngineError;
use iostrata_engine::redo::{Redo, RedoSettings, RedoSync};
use iostrata_innodb::Lsn;
use iostrata_io::disk::{Disk, MemDisk, Tear, TraceDisk};

use crate::redo::common::{START, create, exists, fresh, long, reopen, short, smallest};

const TEARS: [Tear; 3] = [Tear::Whole, Tear::Sectors(512), Tear::Sectors(4096)];

fn shared(disk: &TraceDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

type Body = fn(u32, u32) -> Vec<u8>;

/// What one life appended: the body and where its frame ends.
type Story = Vec<(Vec<u8>, u64)>;

/// Appends frames in groups of different sizes, with checkpoints; each group is acknowledged.
fn live(disk: &TraceDisk, redo: &Redo, life: u32, frames: u32, body: Body) -> Story {
    let mut story: Story = Vec::new();
    for index in 0..frames {
        let age = redo.lsn().0 - redo.checkpoint_lsn().0;
        if age > redo.limits().async_age {
            // Half of the log stays needed.
            let enough = redo.lsn().0 - age / 2;
            let kept = story.iter().map(|(_, end)| *end).find(|end| *end >= enough);
            redo.take_checkpoint(kept.map_or(redo.lsn(), Lsn), false).unwrap();
        }
        let content = body(life, index);
        let end = redo.append(&content).end;
        story.push((content, end.0));
        match index % 7 {
            2 | 5 => {
                redo.make_durable(end).unwrap();
                disk.ack(end.0);
            }
            4 => redo.make_written(end).unwrap(),
            _ => {}
        }
    }
    story
}

/// Opens an image; checks that what is found is the story from the checkpoint on, up to at least
/// what was acknowledged. Gives the log and that part of the story.
fn recover(
    image: &Arc<dyn Disk>,
    settings: &RedoSettings,
    story: &Story,
    acked: u64,
) -> (Redo, Story) {
    let (redo, mut scan) =
        Redo::open(Arc::clone(image), settings.clone(), Default::default()).unwrap();
    let checkpoint = scan.checkpoint().0;
    let mut expected = story.iter().filter(|(_, end)| *end > checkpoint);
    let mut found: Story = Vec::new();
    let mut reached = checkpoint;
    while let Some(frame) = scan.next().unwrap() {
        let (body, end) = expected.next().expect("more than was ever appended");
        assert_eq!((frame.body, frame.end.0), (&body[..], *end));
        found.push((body.clone(), *end));
        reached = *end;
    }
    assert!(reached >= acked, "acknowledged up to {acked}, found up to {reached}");
    redo.start(scan).unwrap();
    (redo, found)
}

fn acked(disk: &TraceDisk, at: usize) -> u64 {
    disk.acknowledged(at).last().copied().unwrap_or(0)
}

/// Every point of a first life; after a recovery, some points of a second.
fn sweep(settings: &RedoSettings, frames: u32, body: Body, step: usize) {
    let disk = TraceDisk::new(MemDisk::new());
    let redo = fresh(&shared(&disk), settings);
    let from = disk.points();
    let first = live(&disk, &redo, 1, frames, body);
    let mut seed = 0;
    for at in (from..disk.points()).step_by(step) {
        for tear in TEARS {
            seed += 1;
            for seed in [seed % 2, seed + 2] {
                let second_disk = TraceDisk::new(disk.image(at, seed, tear));
                let image = shared(&second_disk);
                let (redo, mut both) = recover(&image, settings, &first, acked(&disk, at));
                let before = second_disk.points();
                both.extend(live(&second_disk, &redo, 2, frames / 4, body));
                let points = second_disk.points() - before;
                let again = before + (seed as usize * 7919) % points;
                let image = second_disk.image(again, seed + 1, tear);
                let acked = acked(&second_disk, again);
                recover(&(Arc::new(image) as Arc<dyn Disk>), settings, &both, acked);
            }
        }
    }
}

fn soak(short_form: u32) -> u32 {
    if std::env::var_os("IOSTRATA_SOAK").is_some() { 8 * short_form } else { short_form }
}

#[test]
fn every_acknowledged_frame_survives_and_nothing_else_appears() {
    sweep(&smallest(), soak(120), short, 1);
}

#[test]
fn so_it_does_over_many_laps() {
    sweep(&smallest(), soak(150), long, 2);
    let wide = RedoSettings { write_ahead_bytes: 4096, ..smallest() };
    sweep(&wide, soak(100), long, 3);
}

#[test]
fn so_it_does_when_writes_are_durable_themselves() {
    let through = RedoSettings { sync: RedoSync::WriteThrough, ..smallest() };
    sweep(&through, soak(100), long, 3);
}

#[test]
fn a_log_is_made_whole_or_not_at_all() {
    let disk = TraceDisk::new(MemDisk::new());
    create(&shared(&disk), &smallest()).unwrap();
    disk.ack(1);
    for at in 0..disk.points() {
        for (seed, tear) in (0..6).flat_map(|seed| TEARS.map(|tear| (seed, tear))) {
            let image: Arc<dyn Disk> = Arc::new(disk.image(at, seed, tear));
            if !disk.acknowledged(at).is_empty() {
                assert!(exists(&image));
            }
            if !exists(&image) {
                create(&image, &smallest()).unwrap();
            }
            let (redo, found) = reopen(&image, &smallest()).unwrap();
            assert!(found.is_empty());
            let count = image.list().unwrap().len();
            assert_eq!(count, 4, "three segments and the control file");
            redo.append(b"works");
            redo.make_durable(redo.lsn()).unwrap();
        }
    }
}

#[test]
fn a_crash_in_the_middle_of_starting_changes_nothing() {
    let memory = MemDisk::new();
    let redo = fresh(&(Arc::new(memory.clone()) as Arc<dyn Disk>), &smallest());
    let story: Vec<_> = (0..50).map(|index| long(1, index % 3)).collect();
    for body in &story {
        if redo.lsn().0 - START.0 < redo.limits().max_age {
            redo.append(body);
        }
    }
    redo.make_durable(redo.lsn()).unwrap();
    drop(redo);
    let disk = TraceDisk::new(memory);
    let (_, before) = reopen(&shared(&disk), &smallest()).unwrap();
    for at in 0..disk.points() {
        for (seed, tear) in (0..6).flat_map(|seed| TEARS.map(|tear| (seed, tear))) {
            let image: Arc<dyn Disk> = Arc::new(disk.image(at, seed, tear));
            for _again in 0..3 {
                let (redo, found) = reopen(&image, &smallest()).unwrap();
                assert_eq!(found, before);
                drop(redo);
            }
        }
    }
}

#[test]
fn a_change_of_capacity_survives_a_crash_at_every_step() {
    let settings = RedoSettings { capacity_bytes: 200_000, ..smallest() };
    for bytes in [100_000, 300_000, 3_000_000] {
        let disk = TraceDisk::new(MemDisk::new());
        let redo = fresh(&shared(&disk), &settings);
        let from = disk.points();
        let mut story = live(&disk, &redo, 1, 20, long);
        redo.set_capacity(bytes).unwrap();
        story.extend(live(&disk, &redo, 1, 60, long));
        for at in (from..disk.points()).step_by(1 + disk.points() / 300) {
            let (seed, tear) = (at as u64 % 5, TEARS[at % 3]);
            let image: Arc<dyn Disk> = Arc::new(disk.image(at, seed, tear));
            let wanted = RedoSettings { capacity_bytes: bytes, ..smallest() };
            let (redo, _) = recover(&image, &wanted, &story, acked(&disk, at));
            redo.append(b"works");
            redo.take_checkpoint(redo.lsn(), true).unwrap();
            let again: Result<_, EngineError> = reopen(&image, &settings);
            assert!(again.unwrap().1.is_empty());
        }
    }
}

#[test]
fn what_a_killed_program_left_is_durable_once_it_is_believed() {
    let disk = TraceDisk::new(MemDisk::new());
    let redo = fresh(&shared(&disk), &smallest());
    let mut bodies = Vec::new();
    while redo.lsn().0 < START.0 + 16_384 {
        bodies.push(long(1, bodies.len() as u32));
        redo.append(bodies.last().unwrap());
    }
    redo.make_written(redo.lsn()).unwrap();
    drop(redo);
    let (redo, found) = reopen(&shared(&disk), &smallest()).unwrap();
    assert_eq!(found, bodies, "in two segments");
    assert_eq!(redo.durable(), redo.lsn());
    let image: Arc<dyn Disk> = Arc::new(disk.image(disk.points() - 1, 0, Tear::Whole));
    assert_eq!(reopen(&image, &smallest()).unwrap().1, bodies);
}
