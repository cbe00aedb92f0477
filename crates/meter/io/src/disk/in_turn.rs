//! A batch that carries its requests out one after another, when they are waited for.
//!
//! Invariant: completions come in the order of the requests, each exactly once.
//! It keeps nothing in flight at the device: enough for memory, and for a real disk until an
//! engine needs depth from one thread.

use std::collections::VecDeque;

use crate::disk::{Aligned, Batch, Disk, Durability, FileId, Finished};

#[derive(Debug)]
struct Request {
    tag: u64,
    file: FileId,
    at: u64,
    buffer: Aligned,
    /// Absent for a read.
    write: Option<Durability>,
}

/// A batch over any disk: for one that has no way of its own to keep requests in flight.
#[derive(Debug)]
pub struct InTurn<D> {
    disk: D,
    queued: VecDeque<Request>,
    submitted: VecDeque<Request>,
}

impl<D: Disk> InTurn<D> {
    /// A batch on a clone of the disk.
    pub fn new(disk: D) -> Self {
        Self { disk, queued: VecDeque::new(), submitted: VecDeque::new() }
    }
}

impl<D: Disk> Batch for InTurn<D> {
    fn read(&mut self, file: FileId, at: u64, into: Aligned, tag: u64) {
        self.queued.push_back(Request { tag, file, at, buffer: into, write: None });
    }

    fn write(&mut self, file: FileId, at: u64, from: Aligned, d: Durability, tag: u64) {
        self.queued.push_back(Request { tag, file, at, buffer: from, write: Some(d) });
    }

    fn submit(&mut self) {
        self.submitted.append(&mut self.queued);
    }

    fn in_flight(&self) -> usize {
        self.submitted.len()
    }

    fn complete(&mut self, min: usize, done: &mut dyn FnMut(Finished)) {
        for _ in 0..min {
            let Some(mut request) = self.submitted.pop_front() else { break };
            let result = match request.write {
                Some(d) => self.disk.write(request.file, request.at, &request.buffer, d),
                None => self.disk.read(request.file, request.at, &mut request.buffer),
            };
            done(Finished { tag: request.tag, buffer: request.buffer, result });
        }
    }
}
