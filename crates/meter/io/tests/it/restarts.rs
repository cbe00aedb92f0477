//! What a process that ended leaves to the next one, and what a crash makes of both.

use iostrata_io::SyncKind;
use iostrata_io::disk::{
    Aligned, Disk, Durability, Ending, FileMode, FileName, MemDisk, Tear, TraceDisk,
};
use proptest::prelude::*;

use crate::crash::{Run, one_file, steps};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var_os("IOSTRATA_SOAK").is_some() { 20_000 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_restart_makes_nothing_durable_and_forgets_nothing(
        before in steps(),
        after in steps(),
        seeds in any::<[u64; 3]>(),
        has_failed: bool,
    ) {
        let mut run = Run::new();
        before.iter().for_each(|step| run.step(step));
        run.restart(seeds[0], if has_failed { Ending::SyncFailed } else { Ending::Killed });
        let mut history = vec![(run.disk.points() - 1, run.model.clone())];
        for step in &after {
            run.step(step);
            history.push((run.disk.points() - 1, run.model.clone()));
        }
        for (at, model) in &history {
            for seed in [0, 1].into_iter().chain(seeds) {
                let image = run.disk.image(*at, seed, Tear::Sectors(512));
                prop_assert!(model.allows(&image, seed), "point {}, seed {}", at, seed);
            }
        }
    }
}

fn write(disk: &TraceDisk, name: &FileName, byte: u8) {
    let file = disk.open(name, FileMode::Existing).unwrap();
    disk.write(file, 0, &Aligned::from_slice(&[byte; 512]), Durability::Volatile).unwrap();
}

fn sync(disk: &TraceDisk, name: &FileName) {
    let file = disk.open(name, FileMode::Existing).unwrap();
    disk.sync(file, SyncKind::Fsync).unwrap();
}

fn cached(disk: &TraceDisk, name: &FileName) -> Vec<u8> {
    disk.memory().content(name).unwrap()
}

fn after_cut(disk: &TraceDisk, name: &FileName) -> Vec<u8> {
    disk.image(disk.points() - 1, 0, Tear::Whole).content(name).unwrap()
}

#[test]
fn the_next_sync_covers_what_a_killed_process_wrote() {
    let (disk, name, _) = one_file();
    write(&disk, &name, 1);
    let disk = disk.restarted(disk.points() - 1, 0, Ending::Killed);
    assert_eq!((cached(&disk, &name), after_cut(&disk, &name)), (vec![1; 512], vec![]));
    sync(&disk, &name);
    assert_eq!(after_cut(&disk, &name), [1; 512]);
}

#[test]
fn no_sync_covers_what_a_failed_one_should_have() {
    let (disk, name, _) = one_file();
    write(&disk, &name, 1);
    sync(&disk, &name);
    let began = disk.next_sync(0).unwrap();
    let disk = disk.restarted(began, 0, Ending::SyncFailed);
    assert_eq!(cached(&disk, &name), [1; 512], "the cache shows it");
    sync(&disk, &name);
    assert_eq!(after_cut(&disk, &name), [0; 0]);
    write(&disk, &name, 1);
    sync(&disk, &name);
    assert_eq!(after_cut(&disk, &name), [1; 512], "written again it is durable");
}

#[test]
fn a_write_in_flight_gets_there_in_whole_pages_from_the_front() {
    let (disk, name, file) = one_file();
    disk.write(file, 512, &Aligned::from_slice(&[1; 16_384]), Durability::Volatile).unwrap();
    let (during, mut lengths) = (disk.points() - 2, Vec::new());
    for seed in 0..64 {
        let disk = disk.restarted(during, seed, Ending::Killed);
        let content = cached(&disk, &name);
        assert!(content.iter().skip(512).all(|byte| *byte == 1));
        lengths.push(content.len());
        sync(&disk, &name);
        assert_eq!(after_cut(&disk, &name), content, "it is a write like any other");
    }
    assert_eq!(lengths[..2], [0, 512 + 16_384]);
    lengths.sort_unstable();
    lengths.dedup();
    assert_eq!(lengths, [0, 4096, 8192, 12_288, 16_384, 512 + 16_384]);
}

#[test]
fn names_and_open_files_go_on() {
    let disk = TraceDisk::new(MemDisk::new());
    let [old, new] = ["old", "new"].map(|name| FileName::new(name).unwrap());
    disk.open(&old, FileMode::CreateNew).unwrap();
    write(&disk, &old, 1);
    sync(&disk, &old);
    disk.sync_dir().unwrap();
    disk.rename(&old, &new).unwrap();
    let disk = disk.restarted(disk.points() - 1, 1, Ending::Killed);
    assert_eq!(disk.list().unwrap(), std::slice::from_ref(&new));
    assert_eq!(after_cut(&disk, &old), [1; 512], "the rename was not durable");
    disk.remove(&new).unwrap();
    assert_eq!(after_cut(&disk, &old), [1; 512], "nor the removal");
    disk.open(&old, FileMode::CreateNew).unwrap();
    write(&disk, &old, 2);
    sync(&disk, &old);
    disk.sync_dir().unwrap();
    let image = disk.image(disk.points() - 1, 0, Tear::Whole);
    assert_eq!((image.list().unwrap(), after_cut(&disk, &old)), (vec![old], vec![2; 512]));
}
