//! What a crash leaves on the trace disk, against a model that was written apart from it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_io::SyncKind;
use iostrata_io::disk::memory::{CallKind, Fault};
use iostrata_io::disk::{
    Aligned, Disk, Durability, Ending, FileId, FileMode, FileName, MemDisk, Tear, TraceDisk,
};
use proptest::prelude::*;

const SECTOR: usize = 512;
const SECTORS: usize = 8;
const FILES: usize = 3;

#[derive(Clone, Debug)]
pub enum Step {
    Write { file: usize, sector: usize, sectors: usize, through: bool },
    Sync { file: usize },
    FailedSync { file: usize },
    Create,
    Rename { file: usize },
    SyncNames,
    Acknowledge,
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let file = 0..FILES;
    let step = prop_oneof![
        6 => (file.clone(), 0..SECTORS, 1usize..4, any::<bool>()).prop_map(
            |(file, sector, sectors, through)| Step::Write { file, sector, sectors, through }
        ),
        2 => file.clone().prop_map(|file| Step::Sync { file }),
        1 => file.clone().prop_map(|file| Step::FailedSync { file }),
        2 => Just(Step::Create),
        1 => file.prop_map(|file| Step::Rename { file }),
        2 => Just(Step::SyncNames),
        1 => Just(Step::Acknowledge),
    ];
    prop::collection::vec(step, 1..30)
}

/// One sector: what is durable in it, and what may have replaced that since.
#[derive(Clone, Debug, Default)]
struct Sector {
    durable: u16,
    /// Values in order; the second is true when no later sync vouches for it.
    since: Vec<(u16, bool)>,
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    contents: Vec<Vec<Sector>>,
    durable_names: BTreeMap<FileName, usize>,
    names_since: Vec<(Option<FileName>, FileName, usize)>,
    acknowledged: Vec<u64>,
}

impl Model {
    fn write(&mut self, file: usize, sector: usize, value: u16, through: bool) {
        let sector = &mut self.contents[file][sector];
        sector.since.push((value, false));
        if through {
            *sector = Sector { durable: value, since: Vec::new() };
        }
    }

    fn sync(&mut self, file: usize, succeeded: bool) {
        for sector in &mut self.contents[file] {
            match sector.since.iter().rposition(|(_, lost)| !lost) {
                Some(last) if succeeded => {
                    sector.durable = sector.since[last].0;
                    sector.since.drain(..=last);
                }
                _ => sector.since.iter_mut().for_each(|(_, lost)| *lost |= !succeeded),
            }
        }
    }

    fn rename(names: &mut BTreeMap<FileName, usize>, change: &(Option<FileName>, FileName, usize)) {
        if let Some(from) = &change.0 {
            names.remove(from);
        }
        names.insert(change.1.clone(), change.2);
    }

    /// Every set of names that a crash may leave.
    fn names(&self) -> Vec<BTreeMap<FileName, usize>> {
        let mut all = vec![self.durable_names.clone()];
        for change in &self.names_since {
            let mut next = all[all.len() - 1].clone();
            Self::rename(&mut next, change);
            all.push(next);
        }
        all
    }

    pub fn allows(&self, image: &MemDisk, seed: u64) -> bool {
        let all = self.names();
        let allowed = match seed {
            0 => &all[..1],
            1 => &all[all.len() - 1..],
            _ => &all[..],
        };
        allowed.iter().any(|names| {
            names.keys().cloned().collect::<Vec<_>>() == image.list().unwrap()
                && names.iter().all(|(name, file)| {
                    self.allows_content(*file, &image.content(name).unwrap(), seed)
                })
        })
    }

    fn allows_content(&self, file: usize, content: &[u8], seed: u64) -> bool {
        self.contents[file].iter().enumerate().all(|(number, sector)| {
            let start = (number * SECTOR).min(content.len());
            let found = &content[start..(start + SECTOR).min(content.len())];
            let found = match found.first_chunk::<2>() {
                None => 0,
                Some(first) => u16::from_le_bytes(*first),
            };
            let latest = sector.since.last().map_or(sector.durable, |(value, _)| *value);
            match seed {
                0 => found == sector.durable,
                1 => found == latest,
                _ => {
                    found == sector.durable || sector.since.iter().any(|(value, _)| *value == found)
                }
            }
        })
    }
}

pub struct Run {
    pub disk: TraceDisk,
    fail_syncs: Arc<AtomicBool>,
    files: Vec<(FileName, FileId)>,
    pub model: Model,
    next: u16,
}

impl Run {
    pub fn new() -> Self {
        let disk = TraceDisk::new(MemDisk::new());
        let fail_syncs = Arc::new(AtomicBool::new(false));
        let run = Self { disk, fail_syncs, files: Vec::new(), model: Model::default(), next: 0 };
        run.arm();
        run
    }

    fn arm(&self) {
        let fail = Arc::clone(&self.fail_syncs);
        self.disk.memory().before_each(move |call| match call.kind {
            CallKind::Sync if fail.load(Ordering::Relaxed) => Fault::Errno(libc::EIO),
            _ => Fault::None,
        });
    }

    /// Goes on as the next process, with the same files open.
    pub fn restart(&mut self, seed: u64, ending: Ending) {
        self.disk = self.disk.restarted(self.disk.points() - 1, seed, ending);
        self.arm();
        self.model.acknowledged.clear();
        for (name, file) in &mut self.files {
            *file = self.disk.open(name, FileMode::Existing).unwrap();
        }
    }

    fn fresh(&mut self) -> u16 {
        self.next += 1;
        self.next
    }

    pub fn step(&mut self, step: &Step) {
        match *step {
            Step::Create => self.create(),
            Step::SyncNames => {
                self.disk.sync_dir().unwrap();
                self.model.durable_names = self.model.names().pop().unwrap();
                self.model.names_since.clear();
            }
            Step::Acknowledge => {
                let transaction = u64::from(self.fresh());
                self.disk.ack(transaction);
                self.model.acknowledged.push(transaction);
            }
            Step::Write { file, .. }
            | Step::Sync { file }
            | Step::FailedSync { file }
            | Step::Rename { file } => {
                if file < self.files.len() {
                    self.on_file(step, file);
                }
            }
        }
    }

    fn create(&mut self) {
        if self.files.len() < FILES {
            let name = FileName::new(format!("file{}", self.fresh())).unwrap();
            let id = self.disk.open(&name, FileMode::CreateNew).unwrap();
            self.model.contents.push(vec![Sector::default(); SECTORS + 4]);
            self.model.names_since.push((None, name.clone(), self.files.len()));
            self.files.push((name, id));
        }
    }

    fn on_file(&mut self, step: &Step, file: usize) {
        let id = self.files[file].1;
        match *step {
            Step::Write { sector, sectors, through, .. } => {
                let value = self.fresh();
                let bytes = value.to_le_bytes().repeat(sectors * SECTOR / 2);
                let durability =
                    if through { Durability::WriteThrough } else { Durability::Volatile };
                let at = (sector * SECTOR) as u64;
                self.disk.write(id, at, &Aligned::from_slice(&bytes), durability).unwrap();
                for sector in sector..sector + sectors {
                    self.model.write(file, sector, value, through);
                }
            }
            Step::Sync { .. } => {
                self.disk.sync(id, SyncKind::Fdatasync).unwrap();
                self.model.sync(file, true);
            }
            Step::FailedSync { .. } => {
                self.fail_syncs.store(true, Ordering::Relaxed);
                self.disk.sync(id, SyncKind::Fdatasync).unwrap_err();
                self.fail_syncs.store(false, Ordering::Relaxed);
                self.model.sync(file, false);
            }
            _ => {
                let to = FileName::new(format!("file{}", self.fresh())).unwrap();
                let from = std::mem::replace(&mut self.files[file].0, to.clone());
                self.disk.rename(&from, &to).unwrap();
                self.model.names_since.push((Some(from), to, file));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var_os("IOSTRATA_SOAK").is_some() { 20_000 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_crash_leaves_what_was_promised(steps in steps(), seeds in any::<[u64; 3]>()) {
        let mut run = Run::new();
        let mut history = vec![(run.disk.points() - 1, run.model.clone())];
        for step in &steps {
            run.step(step);
            history.push((run.disk.points() - 1, run.model.clone()));
        }
        for (at, model) in &history {
            prop_assert_eq!(&run.disk.acknowledged(*at), &model.acknowledged);
            for seed in [0, 1].into_iter().chain(seeds) {
                for tear in [Tear::Whole, Tear::Sectors(512), Tear::Sectors(4096)] {
                    let image = run.disk.image(*at, seed, tear);
                    prop_assert!(model.allows(&image, seed), "point {}, seed {}", at, seed);
                }
            }
        }
    }

    #[test]
    fn an_image_is_the_same_each_time(steps in steps(), seed: u64) {
        let mut run = Run::new();
        steps.iter().for_each(|step| run.step(step));
        let last = run.disk.points() - 1;
        let first = run.disk.image(last, seed, Tear::Sectors(512));
        run.disk.image(last / 2, seed, Tear::Whole);
        let again = run.disk.image(last, seed, Tear::Sectors(512));
        prop_assert_eq!(first.list(), again.list());
        for name in first.list().unwrap() {
            prop_assert_eq!(first.content(&name), again.content(&name));
        }
    }
}

pub fn one_file() -> (TraceDisk, FileName, FileId) {
    let memory = MemDisk::new();
    let name = FileName::new("a").unwrap();
    let start = memory.open(&name, FileMode::Create).unwrap();
    memory.close(start);
    let disk = TraceDisk::new(memory);
    let file = disk.open(&name, FileMode::Existing).unwrap();
    (disk, name, file)
}

#[test]
fn a_sync_does_not_cover_what_was_in_flight() {
    let (disk, name, file) = one_file();
    let after_crash = || disk.image(disk.points() - 1, 0, Tear::Whole).content(&name).unwrap();
    let mut batch = disk.batch();
    batch.write(file, 0, Aligned::from_slice(&[1; 512]), Durability::Volatile, 0);
    batch.submit();
    disk.sync(file, SyncKind::Fsync).unwrap();
    assert_eq!(after_crash(), [0u8; 0]);
    batch.complete(1, &mut |done| done.result.unwrap());
    assert_eq!(after_crash(), [0u8; 0]);
    disk.sync(file, SyncKind::Fsync).unwrap();
    assert_eq!(after_crash(), [1; 512]);
}

#[test]
fn every_kind_of_damage_comes_up() {
    let (disk, name, file) = one_file();
    disk.write(file, 0, &Aligned::from_slice(&[1; 4096]), Durability::Volatile).unwrap();
    disk.sync(file, SyncKind::Fsync).unwrap();
    disk.write(file, 0, &Aligned::from_slice(&[2; 4096]), Durability::Volatile).unwrap();
    let (mut kept, mut dropped, mut torn) = (0, 0, 0);
    for seed in 2..202 {
        let image = disk.image(disk.points() - 1, seed, Tear::Sectors(512));
        let content = image.content(&name).unwrap();
        assert!(content.chunks(512).all(|sector| sector == [1; 512] || sector == [2; 512]));
        match content.iter().filter(|byte| **byte == 2).count() {
            0 => dropped += 1,
            4096 => kept += 1,
            _ => torn += 1,
        }
        let whole = disk.image(disk.points() - 1, seed, Tear::Whole).content(&name).unwrap();
        assert!(whole == [1; 4096] || whole == [2; 4096]);
    }
    assert!(kept > 20 && dropped > 20 && torn > 40, "{kept} {dropped} {torn}");
}

#[test]
fn threads_share_one_recording() {
    let (disk, name, file) = one_file();
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let disk = &disk;
            scope.spawn(move || {
                for round in 0..50u64 {
                    let at = (u64::from(thread) * 50 + round) * 512;
                    let block = Aligned::from_slice(&[thread + 1; 512]);
                    disk.write(file, at, &block, Durability::Volatile).unwrap();
                    disk.sync(file, SyncKind::Fdatasync).unwrap();
                    disk.ack(at);
                }
            });
        }
    });
    for at in 0..disk.points() {
        let content = disk.image(at, 0, Tear::Whole).content(&name).unwrap();
        for offset in disk.acknowledged(at) {
            let sector = &content[offset as usize..][..512];
            assert_eq!(sector[0], (offset / 512 / 50) as u8 + 1, "acknowledged and lost");
        }
    }
}
