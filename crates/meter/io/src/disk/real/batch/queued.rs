//! A batch that keeps many requests in flight at once.
//!
//! Invariant: every request that was submitted is handed back exactly once, whole or with its own
//! error; its buffer and its file live until the kernel is done with them, whatever is closed or
//! dropped. What came back short, or not at all for lack of room, is finished by single calls.
//! Dropping it waits for what is in flight; what still waited its turn is not carried out.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use crate::api::submission_batch;
use crate::disk::real::RealDisk;
use crate::disk::real::batch::{Carrier, REQUEST_BYTES_MAX, Transfer};
use crate::disk::real::file::OpenFile;
use crate::disk::{Aligned, Batch, DiskError, Durability, FileId, Finished};

struct Request {
    tag: u64,
    file: Arc<OpenFile>,
    at: u64,
    buffer: Aligned,
    /// Absent for a read.
    write: Option<Durability>,
}

impl Request {
    fn transfer(&mut self) -> Transfer {
        let (at, len) = (self.at, self.buffer.len());
        Transfer {
            file: self.file.descriptor.as_raw_fd(),
            is_write: self.write.is_some(),
            address: self.buffer.as_mut_ptr(),
            bytes: len.min(REQUEST_BYTES_MAX) as u32,
            at,
            flags: self.write.map_or(0, |d| self.file.write_flags(at, len, d)),
        }
    }

    /// Does by single calls what is left after `moved` bytes.
    fn finish(&mut self, moved: usize) -> Result<(), DiskError> {
        match self.write {
            Some(d) => self.file.write(self.at, &self.buffer, d, moved),
            None => self.file.read(self.at, &mut self.buffer, moved),
        }
    }

    /// What became of it, when the kernel answered with so many bytes or a negative errno.
    fn settle(&mut self, answer: i32) -> Result<(), DiskError> {
        match answer {
            0.. => self.finish(answer as usize),
            _ => match -answer {
                // Cut short, no room for it now, its thread ended, or not in this form: a single
                // call either does it or has the true reason.
                libc::EINTR | libc::EAGAIN | libc::ECANCELED | libc::EINVAL | libc::EOPNOTSUPP => {
                    self.finish(0)
                }
                errno => {
                    let doing = if self.write.is_some() { "write" } else { "read" };
                    Err(self.file.failed(doing)(rustix::io::Errno::from_raw_os_error(errno)))
                }
            },
        }
    }

    fn finished(self, result: Result<(), DiskError>) -> Finished {
        Finished { tag: self.tag, buffer: self.buffer, result }
    }
}

/// A batch over a real disk.
pub(in crate::disk::real) struct Queued {
    disk: RealDisk,
    /// Present until it is given back.
    carrier: Option<Box<dyn Carrier>>,
    /// The requests that the carrier holds.
    slots: Box<[Option<Request>]>,
    free: Vec<u32>,
    /// Taken and not submitted.
    taken: VecDeque<Request>,
    /// Submitted; no slot was free yet.
    waiting: VecDeque<Request>,
    /// Done and not handed back.
    done: VecDeque<Finished>,
    answers: Vec<(u32, i32)>,
    refused: Vec<u32>,
}

impl Queued {
    pub(in crate::disk::real) fn new(
        disk: RealDisk,
        carrier: Box<dyn Carrier>,
        depth: u32,
    ) -> Self {
        Self {
            disk,
            carrier: Some(carrier),
            slots: (0..depth).map(|_| None).collect(),
            free: (0..depth).rev().collect(),
            taken: VecDeque::new(),
            waiting: VecDeque::new(),
            done: VecDeque::new(),
            answers: Vec::with_capacity(depth as usize),
            refused: Vec::new(),
        }
    }

    fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Gives the carrier as many of the waiting requests as it has room for.
    fn start(&mut self) {
        let Some(carrier) = &mut self.carrier else { return };
        while let Some(slot) = self.free.pop() {
            let Some(mut request) = self.waiting.pop_front() else {
                self.free.push(slot);
                break;
            };
            if let Err(error) =
                request.file.check_alignment(request.at, request.buffer.len() as u64)
            {
                self.done.push_back(request.finished(Err(error)));
                self.free.push(slot);
                continue;
            }
            let transfer = request.transfer();
            self.slots[slot as usize] = Some(request);
            // SAFETY: the request keeps its buffer and its file until `settle` takes it out of its
            // slot, which happens when it is refused or complete; dropping `self` waits for that.
            // Nothing looks at the buffer meanwhile.
            unsafe { carrier.push(slot, &transfer) };
        }
        carrier.start(&mut self.refused);
        while let Some(slot) = self.refused.pop() {
            self.settle(slot, -libc::EAGAIN);
        }
    }

    /// Takes what is complete.
    fn drain(&mut self) {
        let Some(carrier) = &mut self.carrier else { return };
        let answers = &mut self.answers;
        carrier.drain(&mut |slot, answer| answers.push((slot, answer)));
        for number in 0..self.answers.len() {
            let (slot, answer) = self.answers[number];
            self.settle(slot, answer);
        }
        self.answers.clear();
    }

    fn settle(&mut self, slot: u32, answer: i32) {
        let Some(mut request) = self.slots[slot as usize].take() else {
            panic!("slot {slot} is complete and holds no request");
        };
        self.free.push(slot);
        let result = request.settle(answer);
        self.done.push_back(request.finished(result));
    }

    fn wait(&mut self, min: usize) {
        let min = min.min(self.held());
        if let (1.., Some(carrier)) = (min, &mut self.carrier) {
            carrier.wait(min as u32);
        }
    }
}

impl Batch for Queued {
    fn read(&mut self, file: FileId, at: u64, into: Aligned, tag: u64) {
        let file = self.disk.file(file);
        self.taken.push_back(Request { tag, file, at, buffer: into, write: None });
    }

    fn write(&mut self, file: FileId, at: u64, from: Aligned, d: Durability, tag: u64) {
        let file = self.disk.file(file);
        self.taken.push_back(Request { tag, file, at, buffer: from, write: Some(d) });
    }

    fn submit(&mut self) {
        self.waiting.append(&mut self.taken);
        self.start();
    }

    fn in_flight(&self) -> usize {
        self.waiting.len() + self.held() + self.done.len()
    }

    fn complete(&mut self, min: usize, done: &mut dyn FnMut(Finished)) {
        let mut handed_back = 0;
        loop {
            self.drain();
            // Before the caller is told: the device has work while the caller looks at it.
            self.start();
            while let Some(finished) = self.done.pop_front() {
                handed_back += 1;
                done(finished);
            }
            let missing = min.saturating_sub(handed_back).min(self.in_flight());
            if missing == 0 {
                return;
            }
            // Others want the room of the first that are complete.
            let few = submission_batch(self.slots.len() as u32) as usize;
            self.wait(if self.waiting.is_empty() { missing } else { missing.min(few) });
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.waiting.clear();
        loop {
            self.start();
            self.drain();
            if self.held() == 0 {
                break;
            }
            self.wait(self.held());
        }
        if let Some(carrier) = self.carrier.take() {
            self.disk.give_back(carrier);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::real::RealOptions;
    use crate::disk::{Disk, FileMode, FileName};

    /// Answers what it is told, after it did that much of the first transfers.
    struct Scripted {
        answers: VecDeque<Option<i32>>,
        pushed: VecDeque<(u32, Transfer)>,
        complete: Vec<(u32, i32)>,
    }

    // SAFETY: the tests use it from one thread.
    unsafe impl Send for Scripted {}

    impl Carrier for Scripted {
        unsafe fn push(&mut self, slot: u32, transfer: &Transfer) {
            self.pushed.push_back((slot, Transfer { ..*transfer }));
        }

        fn start(&mut self, refused: &mut Vec<u32>) {
            for (slot, Transfer { file, is_write, address, at, .. }) in self.pushed.drain(..) {
                let Some(answer) = self.answers.pop_front().unwrap() else {
                    refused.push(slot);
                    continue;
                };
                let bytes = answer.max(0) as usize;
                // SAFETY: the request keeps its buffer and its file.
                let moved = unsafe {
                    match is_write {
                        true => libc::pwrite(file, address.cast(), bytes, at as i64),
                        false => libc::pread(file, address.cast(), bytes, at as i64),
                    }
                };
                assert_eq!(moved, bytes as isize);
                self.complete.push((slot, answer));
            }
        }

        fn drain(&mut self, on: &mut dyn FnMut(u32, i32)) {
            self.complete.drain(..).for_each(|(slot, answer)| on(slot, answer));
        }

        fn wait(&mut self, min: u32) {
            assert!(min as usize <= self.complete.len(), "this would wait for ever");
        }

        fn is_fit(&self) -> bool {
            false
        }
    }

    const ANSWERS: [Option<i32>; 9] = [
        Some(4096),
        Some(1000),
        Some(0),
        None,
        Some(-libc::EINTR),
        Some(-libc::EAGAIN),
        Some(-libc::ECANCELED),
        Some(-libc::EINVAL),
        Some(-libc::EIO),
    ];

    fn scripted(disk: &RealDisk, depth: u32) -> Queued {
        let (answers, pushed) = (ANSWERS.into(), VecDeque::new());
        let carrier = Scripted { answers, pushed, complete: Vec::new() };
        Queued::new(disk.clone(), Box::new(carrier), depth)
    }

    fn results(batch: &mut Queued, check: impl Fn(&Finished)) -> Vec<Result<(), DiskError>> {
        batch.submit();
        assert_eq!(batch.in_flight(), ANSWERS.len());
        let mut results = vec![Ok(()); ANSWERS.len()];
        let mut count = 0;
        batch.complete(usize::MAX, &mut |finished| {
            check(&finished);
            count += 1;
            results[finished.tag as usize] = finished.result;
        });
        assert_eq!((count, batch.in_flight()), (ANSWERS.len(), 0));
        results
    }

    #[test]
    fn whatever_the_kernel_answers_is_finished_or_named() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let options = RealOptions { direct: false, ..RealOptions::default() };
        let disk = RealDisk::with(directory.path(), options).unwrap();
        let file = disk.open(&FileName::new("a").unwrap(), FileMode::Create).unwrap();
        for depth in [1, 4, 64] {
            disk.set_len(file, 0).unwrap();
            disk.set_len(file, 4096 * 9).unwrap();
            let mut batch = scripted(&disk, depth);
            for tag in 0..9 {
                let page = Aligned::from_slice(&[tag as u8 + 1; 4096]);
                batch.write(file, tag * 4096, page, Durability::Volatile, tag);
            }
            let all = results(&mut batch, |_| {});
            assert!(all[..8].iter().all(Result::is_ok), "{all:?}");
            let failed = |result: &Result<(), DiskError>| {
                matches!(result, Err(DiskError::System { errno: libc::EIO, .. }))
            };
            assert!(failed(&all[8]), "{all:?}");

            let mut batch = scripted(&disk, depth);
            for tag in 0..9 {
                batch.read(file, tag * 4096, Aligned::zeroed(4096), tag);
            }
            let all = results(&mut batch, |finished| {
                if finished.tag < 8 {
                    assert_eq!(finished.buffer[..], [finished.tag as u8 + 1; 4096]);
                }
            });
            assert!(all[..8].iter().all(Result::is_ok) && failed(&all[8]), "{all:?}");
            drop(batch);
            let mut batches: Vec<_> = (0..3).map(|_| disk.batch()).collect();
            for batch in &mut batches {
                batch.read(file, 0, Aligned::zeroed(4096), 0);
                batch.submit();
                batch.complete(1, &mut |done| assert_eq!(done.result, Ok(()), "unfit, reused"));
            }
        }
    }
}
