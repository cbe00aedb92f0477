//! A disk that remembers everything, so that a crash at any moment can be looked at afterwards.
//!
//! Invariant: one sequence number orders the beginnings and ends of writes and syncs, name changes
//! and acknowledgements of all threads. A write begins before it can be seen and ends after; so
//! whatever a crash may leave is found, at the cost of some that no real crash leaves.
//! It keeps every written byte: for tests of minutes, not hours.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::SyncKind;
use crate::disk::replay::{Change, Event, NameChange, Replay};
use crate::disk::{
    Aligned, Batch, Disk, DiskError, Durability, Facts, FileId, FileMode, FileName, Finished,
    MemDisk,
};

/// How a crash may cut an unfinished or unsynced write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tear {
    /// Not at all: it is there or it is not.
    Whole,
    /// Each sector of so many bytes (512, 4096) is there or not.
    Sectors(u32),
}

#[derive(Debug)]
struct Recorder {
    events: Vec<Event>,
    next: u32,
    /// Advanced by `image`, so that a sweep over all points plays each event once.
    replay: Replay,
    start: Replay,
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
        let start = Replay::new(names, contents);
        let replay = start.clone();
        let recorder = Recorder { events: Vec::new(), next: 0, replay, start };
        Self {
            memory,
            recorder: Arc::new(Mutex::new(recorder)),
            inodes: Arc::new(RwLock::new(Vec::new())),
        }
    }

    /// The disk underneath, for faults.
    pub fn memory(&self) -> &MemDisk {
        &self.memory
    }

    /// Records that a transaction was acknowledged to its user: no crash after this may lose it.
    pub fn ack(&self, transaction: u64) {
        self.record(Event::Acknowledged { transaction });
    }

    /// Number of moments at which a crash can be looked at: before the first event, after each.
    pub fn points(&self) -> usize {
        self.lock().events.len() + 1
    }

    /// Every transaction acknowledged before a point, in order.
    pub fn acknowledged(&self, at: usize) -> Vec<u64> {
        let recorder = self.lock();
        let before = recorder.events[..at].iter();
        before
            .filter_map(|event| match event {
                Event::Acknowledged { transaction } => Some(*transaction),
                _ => None,
            })
            .collect()
    }

    /// The disk as a crash at point `at` may leave it. Seed 0 drops everything that was not
    /// durable, seed 1 keeps everything, every other seed decides by chance. Cheapest when points
    /// are asked for in rising order.
    ///
    /// # Panics
    /// When `at` is not below [`points`](Self::points).
    pub fn image(&self, at: usize, seed: u64, tear: Tear) -> MemDisk {
        let mut guard = self.lock();
        let recorder = &mut *guard;
        if recorder.replay.played > at {
            recorder.replay = recorder.start.clone();
        }
        let played = recorder.replay.played;
        for event in &recorder.events[played..at] {
            recorder.replay.play(event);
        }
        recorder.replay.image(seed, tear)
    }

    fn lock(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, event: Event) {
        self.lock().events.push(event);
    }

    fn number(recorder: &mut Recorder) -> u32 {
        recorder.next += 1;
        recorder.next
    }

    fn inode(&self, file: FileId) -> u64 {
        let inodes = self.inodes.read().unwrap_or_else(PoisonError::into_inner);
        match inodes.iter().find(|(open, _)| *open == file) {
            Some((_, inode)) => *inode,
            None => panic!("{file:?} is not open"),
        }
    }

    fn begin_write(&self, file: FileId, at: u64, from: &[u8], d: Durability) -> (u32, u64) {
        let change = Change::Write { at, bytes: from.into() };
        self.begin_update(file, change, d == Durability::WriteThrough)
    }

    fn begin_update(&self, file: FileId, change: Change, through: bool) -> (u32, u64) {
        let inode = self.inode(file);
        let mut recorder = self.lock();
        let update = Self::number(&mut recorder);
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
            let sync = Self::number(&mut recorder);
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
        let update = self.begin_update(file, Change::Resize { len }, false);
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
            let sync = Self::number(&mut recorder);
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

    fn complete(&mut self, min: usize, done: &mut dyn FnMut(Finished)) {
        for _ in 0..min {
            let Some(mut request) = self.submitted.pop_front() else { break };
            let result = self.run(&mut request);
            done(Finished { tag: request.tag, buffer: request.buffer, result });
        }
    }
}
