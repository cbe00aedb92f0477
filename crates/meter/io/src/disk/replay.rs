//! What a crash may leave of a recorded history.
//!
//! Invariant: what was durable before the crash is always there. An update that was not (a write or
//! a change of length that no finished sync covers, or still in flight) is kept, dropped or, if it
//! is a write, torn. Name changes that no `sync_dir` covers survive up to some point in their
//! order, as journalling file systems keep them. A write that failed, or that a failed sync should
//! have covered, is never durable again. The page cache has all of it until then. It has no
//! threads: the history is one sequence.

use std::collections::{BTreeMap, HashMap};

use crate::buffers::Noise;
use crate::disk::blocks::{Blocks, WritePieces};
use crate::disk::memory::MemDisk;
use crate::disk::{Facts, FileName};

/// How a crash may cut an unfinished or unsynced write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tear {
    /// Not at all: it is there or it is not.
    Whole,
    /// Each sector of so many bytes (512, 4096) is there or not.
    Sectors(u32),
}

/// How a process ended whose machine went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It was killed. What it wrote is in the page cache, and the next sync of the file makes that
    /// durable.
    Killed,
    /// The syncs that were in flight failed, and it gave up. What they should have covered is in
    /// the page cache, taken for clean: later syncs succeed and do not write it.
    SyncFailed,
}

/// One step of a history.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Named(NameChange),
    UpdateBegan { update: u32, inode: u64, change: FileChange, through: bool },
    UpdateEnded { update: u32, inode: u64, succeeded: bool },
    SyncBegan { sync: u32, inode: u64 },
    SyncEnded { sync: u32, inode: u64, succeeded: bool },
    NameSyncBegan { sync: u32 },
    NameSyncEnded { sync: u32, succeeded: bool },
    Acknowledged,
}

#[derive(Clone, Debug)]
pub(super) enum NameChange {
    Created { name: FileName, inode: u64 },
    Renamed { from: FileName, to: FileName },
    Removed { name: FileName },
}

#[derive(Clone, Debug)]
pub(super) enum FileChange {
    Write(WritePieces),
    Resize { len: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UpdateState {
    /// Not finished.
    InFlight,
    /// Finished; the next sync may cover it.
    Volatile,
    /// It failed, whole or in part.
    Failed,
    /// A sync that should have covered it failed: the cache holds it, and no sync writes it again.
    Lost,
    Durable,
}

#[derive(Clone, Debug)]
struct Update {
    number: u32,
    change: FileChange,
    through: bool,
    state: UpdateState,
}

#[derive(Clone, Debug, Default)]
struct Content {
    /// What every crash leaves.
    base: Blocks,
    /// From the first update that is not durable on, in the order in which they began.
    updates: Vec<Update>,
}

/// The state after a part of the history.
#[derive(Clone, Debug, Default)]
pub(super) struct Replay {
    /// Events played.
    pub(super) played: usize,
    names: BTreeMap<FileName, u64>,
    name_changes: Vec<NameChange>,
    /// Name changes dropped from the front of the list since the start.
    names_settled: usize,
    contents: BTreeMap<u64, Content>,
    /// What each running sync covers: updates, or name changes since the start.
    syncs: HashMap<u32, Vec<u32>>,
    name_syncs: HashMap<u32, usize>,
}

impl Replay {
    /// The state before the first event.
    pub(super) fn new(names: BTreeMap<FileName, u64>, contents: BTreeMap<u64, Blocks>) -> Self {
        let content = |base| Content { base, updates: Vec::new() };
        let contents = contents.into_iter().map(|(inode, base)| (inode, content(base))).collect();
        Self { names, contents, ..Self::default() }
    }

    /// Plays one more event.
    pub(super) fn play(&mut self, event: &Event) {
        self.played += 1;
        match event {
            Event::Named(change) => self.name_changes.push(change.clone()),
            Event::UpdateBegan { update, inode, change, through } => {
                let (number, change, through) = (*update, change.clone(), *through);
                let update = Update { number, change, through, state: UpdateState::InFlight };
                self.content(*inode).updates.push(update);
            }
            Event::UpdateEnded { update, inode, succeeded } => {
                self.content(*inode).end(*update, *succeeded);
            }
            Event::SyncBegan { sync, inode } => {
                let volatile = self.content(*inode).in_state(UpdateState::Volatile);
                self.syncs.insert(*sync, volatile);
            }
            Event::SyncEnded { sync, inode, succeeded } => {
                let covered = self.syncs.remove(sync).unwrap_or_default();
                let state = if *succeeded { UpdateState::Durable } else { UpdateState::Lost };
                self.content(*inode).settle(&covered, state);
            }
            Event::NameSyncBegan { sync } => {
                let changes = self.names_settled + self.name_changes.len();
                self.name_syncs.insert(*sync, changes);
            }
            Event::NameSyncEnded { sync, succeeded } => {
                let covered = self.name_syncs.remove(sync).unwrap_or_default();
                if *succeeded {
                    self.settle_names(covered);
                }
            }
            Event::Acknowledged => {}
        }
    }

    fn content(&mut self, inode: u64) -> &mut Content {
        self.contents.entry(inode).or_default()
    }

    fn settle_names(&mut self, covered: usize) {
        let count = covered.saturating_sub(self.names_settled);
        for change in self.name_changes.drain(..count) {
            rename(&mut self.names, change);
        }
        self.names_settled += count;
    }

    /// A disk with these facts as a crash now may leave it.
    pub(super) fn image(&self, seed: u64, tear: Tear, facts: Facts) -> MemDisk {
        let mut chance = Chance::new(seed);
        let mut names = self.names.clone();
        let survive = chance.up_to(self.name_changes.len());
        for change in &self.name_changes[..survive] {
            rename(&mut names, change.clone());
        }
        let files = names.into_iter().map(|(name, inode)| {
            let content = self.contents.get(&inode);
            let content = content.map(|content| content.after(&mut chance, tear, facts));
            (name, content.unwrap_or_default())
        });
        MemDisk::with_files(facts, files)
    }

    /// The process ends here: the state that its successor begins with, and every name and content
    /// as the page cache shows them.
    pub(super) fn restarted(
        &self,
        seed: u64,
        ending: Ending,
    ) -> (Self, BTreeMap<FileName, u64>, BTreeMap<u64, Blocks>) {
        let mut after = Self { played: 0, ..self.clone() };
        let syncs = std::mem::take(&mut after.syncs);
        after.name_syncs.clear();
        if ending == Ending::SyncFailed {
            // Each number is that of one update of one file.
            let contents = after.contents.values_mut();
            contents.for_each(|content| {
                syncs.values().for_each(|covered| content.settle(covered, UpdateState::Lost));
            });
        }
        let mut names = after.names.clone();
        for change in &after.name_changes {
            rename(&mut names, change.clone());
        }
        let mut chance = Chance::new(seed);
        let contents = after.contents.iter_mut();
        let contents = contents.map(|(inode, content)| (*inode, content.cached(&mut chance)));
        let contents = contents.collect();
        (after, names, contents)
    }
}

impl Content {
    fn end(&mut self, number: u32, succeeded: bool) {
        // It is one of the last, however many no sync has covered yet.
        let mut latest_first = self.updates.iter_mut().rev();
        let Some(update) = latest_first.find(|update| update.number == number) else {
            return;
        };
        update.state = match (succeeded, update.through) {
            (false, _) => UpdateState::Failed,
            (true, true) => UpdateState::Durable,
            (true, false) => UpdateState::Volatile,
        };
        self.fold();
    }

    /// The numbers of the updates in a state, rising.
    fn in_state(&self, state: UpdateState) -> Vec<u32> {
        let wanted = self.updates.iter().filter(|update| update.state == state);
        wanted.map(|update| update.number).collect()
    }

    fn settle(&mut self, covered: &[u32], state: UpdateState) {
        for update in &mut self.updates {
            // Another sync may have settled it meanwhile, one way or the other.
            if update.state == UpdateState::Volatile
                && covered.binary_search(&update.number).is_ok()
            {
                update.state = state;
            }
        }
        self.fold();
    }

    /// Moves durable updates into the base, as far as nothing undecided lies before them.
    fn fold(&mut self) {
        let durable = self.updates.iter().take_while(|update| update.state == UpdateState::Durable);
        let count = durable.count();
        for update in self.updates.drain(..count) {
            apply(&mut self.base, &update.change);
        }
    }

    /// What the page cache holds once the process is gone. A write that was in flight got there
    /// whole, up to some page, or not at all; so did one that failed, and nothing vouches for that.
    fn cached(&mut self, chance: &mut Chance) -> Blocks {
        let mut cached = self.base.clone();
        let mut left = Vec::new();
        for mut update in self.updates.drain(..) {
            if matches!(update.state, UpdateState::InFlight | UpdateState::Failed) {
                let is_cut = chance.cuts(&mut update.change);
                let has_failed = update.state == UpdateState::Failed;
                update.state = if has_failed { UpdateState::Lost } else { UpdateState::Volatile };
                if is_cut && has_failed {
                    // The device may have it all the same.
                    left.push(update);
                    continue;
                }
                if is_cut {
                    continue;
                }
            }
            apply(&mut cached, &update.change);
            left.push(update);
        }
        self.updates = left;
        cached
    }

    fn after(&self, chance: &mut Chance, tear: Tear, facts: Facts) -> Blocks {
        let mut content = self.base.clone();
        for update in &self.updates {
            let tear = match &update.change {
                FileChange::Write(written) if written.is_atomic(facts.atomic_write_bytes) => {
                    Tear::Whole
                }
                _ => tear,
            };
            let fate = match update.state {
                UpdateState::Durable => Fate::Kept,
                _ => chance.fate(tear),
            };
            match (fate, &update.change) {
                (Fate::Dropped, _) => {}
                // Each sector arrives or does not, on its own.
                (Fate::Torn(sector), FileChange::Write(written)) => {
                    let noise = &mut chance.noise;
                    written.put_sectors(sector, &mut content, || noise.next() & 1 == 0);
                }
                _ => apply(&mut content, &update.change),
            }
        }
        content
    }
}

fn apply(content: &mut Blocks, change: &FileChange) {
    match change {
        FileChange::Write(written) => written.put(content),
        FileChange::Resize { len } => content.resize(*len),
    }
}

fn rename(names: &mut BTreeMap<FileName, u64>, change: NameChange) {
    match change {
        NameChange::Created { name, inode } => {
            names.insert(name, inode);
        }
        NameChange::Renamed { from, to } => {
            if let Some(inode) = names.remove(&from) {
                names.insert(to, inode);
            }
        }
        NameChange::Removed { name } => {
            names.remove(&name);
        }
    }
}

enum Fate {
    Dropped,
    Kept,
    Torn(u64),
}

/// The decisions of one crash.
struct Chance {
    seed: u64,
    noise: Noise,
}

impl Chance {
    fn new(seed: u64) -> Self {
        Self { seed, noise: Noise::new(seed) }
    }

    fn up_to(&mut self, most: usize) -> usize {
        match self.seed {
            0 => 0,
            1 => most,
            _ => (self.noise.next() % (most as u64 + 1)) as usize,
        }
    }

    /// Cuts a change that a dying process made; whether nothing of it is left.
    fn cuts(&mut self, change: &mut FileChange) -> bool {
        match (self.seed, self.noise.next() >> 62, change) {
            (0, _, _) => true,
            (1, _, _) => false,
            (_, 2, FileChange::Write(written)) => {
                let most = written.blocks();
                *written = written.first_blocks(self.up_to(most));
                written.blocks() == 0
            }
            (_, roll, _) => roll == 0,
        }
    }

    fn fate(&mut self, tear: Tear) -> Fate {
        let roll = self.noise.next() >> 62;
        match (self.seed, tear, roll) {
            (0, _, _) => Fate::Dropped,
            (1, _, _) => Fate::Kept,
            (_, Tear::Sectors(bytes), 2 | 3) => Fate::Torn(u64::from(bytes.max(1))),
            (_, _, 0 | 2) => Fate::Dropped,
            _ => Fate::Kept,
        }
    }
}
