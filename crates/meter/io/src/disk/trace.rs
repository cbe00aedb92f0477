//! A disk that remembers everything, so that a crash at any moment can be inspected afterwards.
//!
//! Invariant: one sequence number orders the beginnings and ends of writes and syncs, name changes
//! and acknowledgements of all threads. A write begins before it can be seen and ends after; so
//! whatever a crash may leave is found, at the cost of some that no real crash leaves.
//! It keeps every written byte: for tests of minutes, not hours. Its images share them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::SyncKind;
use crate::disk::blocks::WritePieces;
use crate::disk::replay::{Ending, Event, FileChange, NameChange, Replay, Tear};
use crate::disk::{
    Aligned, Batch, BatchCompletion, Disk, DiskError, Durability, Facts, FileId, FileMode,
    FileName, MemDisk,
};

/// Events between two states that are kept, so that points can be inspected in any order.
const EVENTS_PER_STATE: usize = 256;

#[derive(Debug)]
struct Recorder {
    events: Vec<Event>,
    /// Each with the number of events before it.
    acknowledged: Vec<(usize, u64)>,
    next: u32,
    /// Advanced by `image`, so that a sweep over all points plays each event once.
    replay: Replay,
    /// The states before the first event, and after every `EVENTS_PER_STATE` as far as an image was
    /// requested.
    states: Vec<Replay>,
}

impl Recorder {
    /// Numbers are given out from behind `next`.
    fn new(start: Replay, next: u32) -> Self {
        let (events, acknowledged, states) = (Vec::new(), Vec::new(), vec![start.clone()]);
        Self { events, acknowledged, next, replay: start, states }
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// The state at a point.
    fn at(&mut self, point: usize) -> &Replay {
        let last = point / EVENTS_PER_STATE;
        let nearest = &self.states[last.min(self.states.len() - 1)];
        if self.replay.played > point || self.replay.played < nearest.played {
            self.replay = nearest.clone();
        }
        for event in &self.events[self.replay.played..point] {
            self.replay.play(event);
            if self.replay.played == self.states.len() * EVENTS_PER_STATE {
                self.states.push(self.replay.clone());
            }
        }
        &self.replay
    }

    /// Acknowledgements before a point.
    fn acknowledgements(&self, before: usize) -> usize {
        self.acknowledged.partition_point(|(events, _)| *events < before)
    }
}

/// A memory disk with a recording. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct TraceDisk {
    memory: MemDisk,
    recorder: Arc<Mutex<Recorder>>,
    inodes: Arc<RwLock<Vec<(FileId, u64)>>>,
}

impl TraceDisk {
    /// Records what happens to `memory` from now on; what it holds now is durable.
    pub fn new(memory: MemDisk) -> Self {
        let (names, contents) = memory.snapshot();
        Self::recording(memory, Recorder::new(Replay::new(names, contents), 0))
    }

    fn recording(memory: MemDisk, recorder: Recorder) -> Self {
        let inodes = Arc::new(RwLock::new(Vec::new()));
        Self { memory, recorder: Arc::new(Mutex::new(recorder)), inodes }
    }

    /// The disk as the next process finds it when this one ended at point `at` and the machine went
    /// on: reads see what was written, what was not durable still is not, and what happens from now
    /// on is recorded behind it. With seed 0 nothing of a write in flight got into the page cache,
    /// with seed 1 all of it, with every other chance decides. Acknowledgements start again from
    /// none.
    ///
    /// # Panics
    /// When `at` is not below [`points`](Self::points).
    pub fn restarted(&self, at: usize, seed: u64, ending: Ending) -> Self {
        let mut recorder = self.lock();
        let (start, names, contents) = recorder.at(at).restarted(seed, ending);
        let next = recorder.next;
        drop(recorder);
        Self::recording(self.memory.with_snapshot(names, contents), Recorder::new(start, next))
    }

    /// The first point from `at` on at which a sync of a file has just begun.
    pub fn next_sync(&self, at: usize) -> Option<usize> {
        let recorder = self.lock();
        let from = recorder.events.get(at.saturating_sub(1)..)?;
        let began = from.iter().position(|event| matches!(event, Event::SyncBegan { .. }))?;
        Some(at.max(1) + began)
    }

    /// The disk underneath, for faults.
    pub fn memory(&self) -> &MemDisk {
        &self.memory
    }

    /// Records that a transaction was acknowledged to its user: no crash after this may lose it.
    pub fn ack(&self, transaction: u64) {
        let mut recorder = self.lock();
        let before = recorder.events.len();
        recorder.acknowledged.push((before, transaction));
        recorder.events.push(Event::Acknowledged);
    }

    /// Number of moments at which a crash can be inspected: before the first event, after each.
    pub fn points(&self) -> usize {
        self.lock().events.len() + 1
    }

    /// Every transaction acknowledged before a point, in order.
    pub fn acknowledged(&self, at: usize) -> Vec<u64> {
        self.acknowledged_between(0, at)
    }

    /// Every transaction acknowledged from one point to another, in order: what a sweep adds when
    /// it goes on.
    pub fn acknowledged_between(&self, from: usize, to: usize) -> Vec<u64> {
        let recorder = self.lock();
        let range = recorder.acknowledgements(from)..recorder.acknowledgements(to);
        let between = recorder.acknowledged.get(range).unwrap_or_default();
        between.iter().map(|(_, transaction)| *transaction).collect()
    }

    /// The disk as a crash at point `at` may leave it. Seed 0 drops everything that was not
    /// durable, seed 1 keeps everything, every other seed decides by chance. It shares with this
    /// disk what neither changes. Cheapest when points are requested in rising order.
    ///
    /// # Panics
    /// When `at` is not below [`points`](Self::points).
    pub fn image(&self, at: usize, seed: u64, tear: Tear) -> MemDisk {
        let facts = self.memory.facts_of_all();
        self.lock().at(at).image(seed, tear, facts)
    }

    fn lock(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, event: Event) {
        self.lock().events.push(event);
    }

    fn inode(&self, file: FileId) -> u64 {
        let inodes = self.inodes.read().unwrap_or_else(PoisonError::into_inner);
        match inodes.iter().find(|(open, _)| *open == file) {
            Some((_, inode)) => *inode,
            None => panic!("{file:?} is not open"),
        }
    }

    fn begin_write(&self, file: FileId, at: u64, from: &[u8], d: Durability) -> (u32, u64) {
        let change = FileChange::Write(WritePieces::new(at, from));
        self.begin_update(file, change, d == Durability::WriteThrough)
    }

    fn begin_update(&self, file: FileId, change: FileChange, through: bool) -> (u32, u64) {
        let inode = self.inode(file);
        let mut recorder = self.lock();
        let update = recorder.number();
        recorder.events.push(Event::UpdateBegan { update, inode, change, through });
        (update, inode)
    }

    fn end_update(&self, (update, inode): (u32, u64), succeeded: bool) {
        self.record(Event::UpdateEnded { update, inode, succeeded });
    }
}

impl Disk for TraceDisk {
    fn open(&self, name: &FileName, mode: FileMode) -> Result<FileId, DiskError> {
        // Names change under the lock, so that their order in the recording is the true one.
        let mut recorder = self.lock();
        let (file, inode, made) = self.memory.open_inode(name, mode)?;
        if made {
            let name = name.clone();
            recorder.events.push(Event::Named(NameChange::Created { name, inode }));
        }
        self.inodes.write().unwrap_or_else(PoisonError::into_inner).push((file, inode));
        Ok(file)
    }

    fn close(&self, file: FileId) {
        let mut inodes = self.inodes.write().unwrap_or_else(PoisonError::into_inner);
        inodes.retain(|(open, _)| *open != file);
        self.memory.close(file);
    }

    fn facts(&self, file: FileId) -> Facts {
        self.memory.facts(file)
    }

    fn free_bytes(&self) -> Option<u64> {
        self.memory.free_bytes()
    }

    fn len(&self, file: FileId) -> Result<u64, DiskError> {
        self.memory.len(file)
    }

    fn read(&self, file: FileId, at: u64, into: &mut Aligned) -> Result<(), DiskError> {
        self.memory.read(file, at, into)
    }

    fn write(&self, file: FileId, at: u64, from: &Aligned, d: Durability) -> Result<(), DiskError> {
        let update = self.begin_write(file, at, from, d);
        let result = self.memory.write(file, at, from, d);
        self.end_update(update, result.is_ok());
        result
    }

    fn sync(&self, file: FileId, kind: SyncKind) -> Result<(), DiskError> {
        let inode = self.inode(file);
        let sync = {
            let mut recorder = self.lock();
            let sync = recorder.number();
            recorder.events.push(Event::SyncBegan { sync, inode });
            sync
        };
        let result = self.memory.sync(file, kind);
        self.record(Event::SyncEnded { sync, inode, succeeded: result.is_ok() });
        result
    }

    fn batch(&self) -> Box<dyn Batch> {
        let disk = self.clone();
        Box::new(TraceBatch { disk, queued: VecDeque::new(), submitted: VecDeque::new() })
    }

    fn set_len(&self, file: FileId, len: u64) -> Result<(), DiskError> {
        let update = self.begin_update(file, FileChange::Resize { len }, false);
        let result = self.memory.set_len(file, len);
        self.end_update(update, result.is_ok());
        result
    }

    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), DiskError> {
        let mut recorder = self.lock();
        self.memory.rename(from, to)?;
        let (from, to) = (from.clone(), to.clone());
        recorder.events.push(Event::Named(NameChange::Renamed { from, to }));
        Ok(())
    }

    fn remove(&self, name: &FileName) -> Result<(), DiskError> {
        let mut recorder = self.lock();
        self.memory.remove(name)?;
        recorder.events.push(Event::Named(NameChange::Removed { name: name.clone() }));
        Ok(())
    }

    fn list(&self) -> Result<Vec<FileName>, DiskError> {
        self.memory.list()
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        let sync = {
            let mut recorder = self.lock();
            let sync = recorder.number();
            recorder.events.push(Event::NameSyncBegan { sync });
            sync
        };
        let result = self.memory.sync_dir();
        self.record(Event::NameSyncEnded { sync, succeeded: result.is_ok() });
        result
    }
}

struct Request {
    tag: u64,
    file: FileId,
    at: u64,
    buffer: Aligned,
    write: Option<Durability>,
    /// The recorded update, once it is submitted.
    update: Option<(u32, u64)>,
}

/// Writes begin in the recording when they are submitted and end when they are handed back.
struct TraceBatch {
    disk: TraceDisk,
    queued: VecDeque<Request>,
    submitted: VecDeque<Request>,
}

impl TraceBatch {
    fn run(&self, request: &mut Request) -> Result<(), DiskError> {
        let memory = &self.disk.memory;
        let Some(d) = request.write else {
            return memory.read(request.file, request.at, &mut request.buffer);
        };
        let result = memory.write(request.file, request.at, &request.buffer, d);
        if let Some(update) = request.update {
            self.disk.end_update(update, result.is_ok());
        }
        result
    }
}

impl Batch for TraceBatch {
    fn read(&mut self, file: FileId, at: u64, into: Aligned, tag: u64) {
        let (write, update) = (None, None);
        self.queued.push_back(Request { tag, file, at, buffer: into, write, update });
    }

    fn write(&mut self, file: FileId, at: u64, from: Aligned, d: Durability, tag: u64) {
        let (write, update) = (Some(d), None);
        self.queued.push_back(Request { tag, file, at, buffer: from, write, update });
    }

    fn submit(&mut self) {
        for mut request in self.queued.drain(..) {
            if let Some(d) = request.write {
                let update = self.disk.begin_write(request.file, request.at, &request.buffer, d);
                request.update = Some(update);
            }
            self.submitted.push_back(request);
        }
    }

    fn in_flight(&self) -> usize {
        self.submitted.len()
    }

    fn complete(&mut self, min: usize, done: &mut dyn FnMut(BatchCompletion)) {
        for _ in 0..min {
            let Some(mut request) = self.submitted.pop_front() else { break };
            let result = self.run(&mut request);
            done(BatchCompletion { tag: request.tag, buffer: request.buffer, result });
        }
    }
}
