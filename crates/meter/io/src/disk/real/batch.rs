//! Batches of a real disk: what keeps their requests in flight, by io_uring or io_submit, and which
//! kind of it a kernel grants.
//!
//! Invariant: a carrier holds at most its depth; a request that it took is refused or completes,
//! exactly once. The next lower kind is used when one is not granted, and the reason is kept.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;
use std::{io, ptr, thread};

use io_uring::{IoUring, opcode, types};

use crate::Refusal;
use crate::api::libaio::{AioContext, IoEvent, Iocb};
use crate::api::submission_batch;
use crate::disk::real::file::OpenFile;
use crate::disk::real::{BatchGrant, BatchKind, RealDisk};
use crate::disk::{Aligned, Batch, BatchCompletion, DiskError, Durability, FileId};

/// The most bytes of one request to the kernel; the rest of a longer one follows.
const REQUEST_BYTES_MAX: usize = 1 << 30;

/// A read or write as it is submitted to the kernel.
pub(super) struct Transfer {
    file: i32,
    is_write: bool,
    address: *mut u8,
    bytes: u32,
    at: u64,
    /// RWF_ flags.
    flags: i32,
}

/// Keeps transfers in flight, each known by a slot number.
pub(super) trait Carrier: Send {
    /// Takes a transfer, which starts with the next `start`.
    ///
    /// # Safety
    /// Memory and descriptor live until the slot is refused or completed.
    unsafe fn push(&mut self, slot: u32, transfer: &Transfer);

    /// Starts what was taken. What the kernel does not take goes to `refused`; it may also stay for
    /// the next call.
    fn start(&mut self, refused: &mut Vec<u32>);

    /// Hands every completion that is there to `on`: the slot, and the bytes or a negative errno.
    fn drain(&mut self, on: &mut dyn FnMut(u32, i32));

    /// Waits until `min` completions are there (or as many as are in flight), or less long.
    fn wait(&mut self, min: u32);

    /// Whether another batch can use it.
    fn is_fit(&self) -> bool;
}

type Make = fn(u32) -> io::Result<Box<dyn Carrier>>;

const KINDS: [(BatchKind, &str, Make); 2] = [
    (BatchKind::IoUring, "io_uring", |depth| Ok(Box::new(Uring::new(depth)?))),
    (BatchKind::Libaio, "libaio", |depth| Ok(Box::new(Libaio::new(depth)?))),
];

/// The requested carrier or the next lower one; none for batches that run in turn.
pub(super) fn grant(asked: BatchKind, depth: u32) -> (Option<Box<dyn Carrier>>, BatchGrant) {
    first_of(&KINDS, asked, depth)
}

fn first_of(
    kinds: &[(BatchKind, &'static str, Make)],
    asked: BatchKind,
    depth: u32,
) -> (Option<Box<dyn Carrier>>, BatchGrant) {
    let mut refused = Vec::new();
    let from = kinds.iter().position(|(kind, ..)| *kind == asked).unwrap_or(kinds.len());
    for (kind, what, make) in &kinds[from..] {
        match make(depth) {
            Ok(carrier) => return (Some(carrier), BatchGrant { kind: *kind, depth, refused }),
            Err(error) => refused.push(Refusal { what, why: why(*kind, &error, depth) }),
        }
    }
    (None, BatchGrant { kind: BatchKind::Sync, depth: 1, refused })
}

fn why(kind: BatchKind, error: &io::Error, depth: u32) -> String {
    let fix = match (kind, error.raw_os_error()) {
        (_, Some(libc::ENOSYS)) => "this kernel has none",
        (_, Some(libc::EMFILE | libc::ENFILE)) => "raise the limit of open files (ulimit -n)",
        (BatchKind::IoUring, Some(libc::EPERM | libc::EACCES)) => {
            "set the sysctl kernel.io_uring_disabled to 0, or allow io_uring_setup in the \
             container's seccomp profile"
        }
        (BatchKind::IoUring, Some(libc::ENOMEM)) => {
            "raise RLIMIT_MEMLOCK (ulimit -l) or use a smaller depth"
        }
        (BatchKind::Libaio, Some(libc::EAGAIN | libc::EINVAL)) => {
            "raise the sysctl fs.aio-max-nr or use a smaller depth"
        }
        _ => "a sandbox may be what refuses it",
    };
    format!("{error} at depth {depth}; {fix}")
}

// A batch that keeps many requests in flight at once.
//
// Invariant: every request that was submitted is handed back exactly once, whole or with its own
// error; its buffer and its file live until the kernel is done with them, whatever is closed or
// dropped. What came back short, or not at all for lack of room, is finished by single calls.
// Dropping it waits for what is in flight; what still waited its turn is not carried out.

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

    fn finished(self, result: Result<(), DiskError>) -> BatchCompletion {
        BatchCompletion { tag: self.tag, buffer: self.buffer, result }
    }
}

/// A batch over a real disk.
pub(in crate::disk::real) struct QueuedBatch {
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
    done: VecDeque<BatchCompletion>,
    answers: Vec<(u32, i32)>,
    refused: Vec<u32>,
}

impl QueuedBatch {
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
            // Nothing reads the buffer meanwhile.
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

impl Batch for QueuedBatch {
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

    fn complete(&mut self, min: usize, done: &mut dyn FnMut(BatchCompletion)) {
        let mut handed_back = 0;
        loop {
            self.drain();
            // Before the caller gets the completion: the device has work while the caller handles
            // it.
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

impl Drop for QueuedBatch {
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

// Transfers through an io_uring.
//
// Invariant: the kernel takes entries in the order in which they were pushed. A ring that cannot
// be entered is given up: what it did not take is refused, what it took is waited for.
// The ring is bound to no thread: the caller of `drain` need not be the one of `push`.

const ENTER_GETEVENTS: u32 = 1;
/// The time between two checks for completions when the kernel cannot wait for them.
const LOOK_EVERY: Duration = Duration::from_micros(100);

/// A ring.
struct Uring {
    ring: IoUring,
    /// In the ring and not taken by the kernel yet.
    pushed: VecDeque<u32>,
    /// Taken by the kernel and not complete yet.
    taken: u32,
    is_broken: bool,
}

impl Uring {
    fn new(depth: u32) -> io::Result<Self> {
        // Without interrupts of a thread that computes: Linux 5.19.
        let newest = IoUring::builder()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_submit_all()
            .build(depth);
        let ring = match newest {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(depth)?,
            other => other?,
        };
        Ok(Self { ring, pushed: VecDeque::new(), taken: 0, is_broken: false })
    }

    /// Enters the kernel without giving it anything.
    fn enter(&self, min: u32) -> io::Result<usize> {
        // SAFETY: nothing is submitted, and there is no argument.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, min, ENTER_GETEVENTS, None) }
    }
}

impl Carrier for Uring {
    unsafe fn push(&mut self, slot: u32, transfer: &Transfer) {
        self.pushed.push_back(slot);
        if self.is_broken {
            return;
        }
        let Transfer { address, bytes, at, .. } = *transfer;
        let file = types::Fd(transfer.file);
        let entry = match transfer.is_write {
            false => opcode::Read::new(file, address, bytes).offset(at).build(),
            true => {
                let write = opcode::Write::new(file, address, bytes).offset(at);
                write.rw_flags(transfer.flags).build()
            }
        };
        let entry = entry.user_data(u64::from(slot));
        // SAFETY: the caller vouches for memory and descriptor.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "the ring is smaller than the depth");
    }

    fn start(&mut self, refused: &mut Vec<u32>) {
        while !self.pushed.is_empty() && !self.is_broken {
            match self.ring.submit() {
                Ok(count) if count > 0 => {
                    self.pushed.drain(..count);
                    self.taken += count as u32;
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                // Memory for requests is short; completions free some.
                Err(error)
                    if self.taken > 0
                        && matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY)) =>
                {
                    return;
                }
                Ok(_) | Err(_) => self.is_broken = true,
            }
        }
        refused.extend(self.pushed.drain(..));
    }

    fn drain(&mut self, on: &mut dyn FnMut(u32, i32)) {
        if self.ring.submission().taskrun() {
            // A failure leaves the completions where they are, for the next call.
            let _later = self.enter(0);
        }
        for completion in self.ring.completion() {
            self.taken -= 1;
            on(completion.user_data() as u32, completion.result());
        }
    }

    fn wait(&mut self, min: u32) {
        match self.enter(min.min(self.taken)) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }

    fn is_fit(&self) -> bool {
        !self.is_broken
    }
}

// Transfers through io_submit.
//
// Invariant: a transfer that the kernel does not take is refused, it never waits here.
// It is asynchronous for direct I/O only: `start` carries buffered transfers out.

/// A context with room for its depth.
struct Libaio {
    context: AioContext,
    /// Taken here and not by the kernel yet.
    pushed: Vec<Iocb>,
    addresses: Vec<*mut Iocb>,
    events: Box<[IoEvent]>,
    /// The first so many of `events` are complete and not handed on yet.
    waited: usize,
    /// Taken by the kernel and not complete yet.
    taken: usize,
}

// SAFETY: the addresses are empty outside `start`.
unsafe impl Send for Libaio {}

impl Libaio {
    fn new(depth: u32) -> io::Result<Self> {
        Ok(Self {
            context: AioContext::new(depth)?,
            pushed: Vec::with_capacity(depth as usize),
            addresses: Vec::with_capacity(depth as usize),
            events: vec![IoEvent::default(); depth as usize].into_boxed_slice(),
            waited: 0,
            taken: 0,
        })
    }
}

impl Carrier for Libaio {
    unsafe fn push(&mut self, slot: u32, transfer: &Transfer) {
        let Transfer { file, is_write, address, bytes, at, flags } = *transfer;
        let slot = u64::from(slot);
        self.pushed.push(Iocb::transfer(slot, file, is_write, address, bytes, at, flags));
    }

    fn start(&mut self, refused: &mut Vec<u32>) {
        self.addresses.extend(self.pushed.iter_mut().map(ptr::from_mut));
        let mut done = 0;
        while done < self.addresses.len() {
            // SAFETY: the addresses are those of `pushed`, which does not move before they are
            // cleared; their memory and descriptors are the pushing code's duty.
            match unsafe { self.context.submit(&mut self.addresses[done..]) } {
                Ok(count) if count > 0 => {
                    done += count;
                    self.taken += count;
                }
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Ok(_) | Err(_) => {
                    refused.push(self.pushed[done].token() as u32);
                    done += 1;
                }
            }
        }
        self.addresses.clear();
        self.pushed.clear();
    }

    fn drain(&mut self, on: &mut dyn FnMut(u32, i32)) {
        let mut count = 0;
        let mut hand_on = |event: &IoEvent| {
            count += 1;
            on(event.token() as u32, event.result());
        };
        self.events[..self.waited].iter().for_each(&mut hand_on);
        self.waited = 0;
        if self.context.has_ring() {
            self.context.drain(hand_on);
        } else {
            let nothing = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // A failure leaves the completions where they are, for the next call.
            let more = self.context.wait(0, Some(&nothing), &mut self.events).unwrap_or(0);
            self.events[..more].iter().for_each(hand_on);
        }
        self.taken -= count;
    }

    fn wait(&mut self, min: u32) {
        // What waits to be handed on is complete already.
        let min = min.min((self.taken - self.waited) as u32);
        if self.waited > 0 || min == 0 {
            return;
        }
        match self.context.wait(min, None, &mut self.events) {
            Ok(count) => self.waited = count,
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Err(_) => thread::sleep(LOOK_EVERY),
        }
    }

    fn is_fit(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_lower_kind_steps_in() {
        let refuse: Make = |_| Err(io::Error::from_raw_os_error(libc::EPERM));
        let aio = KINDS[1];
        let kinds = [(BatchKind::IoUring, "io_uring", refuse), aio];
        let (carrier, granted) = first_of(&kinds, BatchKind::IoUring, 8);
        assert_eq!((carrier.is_some(), granted.kind, granted.depth), (true, BatchKind::Libaio, 8));
        assert_eq!(granted.refused[0].what, "io_uring");
        assert!(granted.refused[0].why.contains("io_uring_disabled"), "{granted:?}");

        let kinds = [kinds[0], (BatchKind::Libaio, "libaio", refuse)];
        let (carrier, granted) = first_of(&kinds, BatchKind::IoUring, 8);
        assert_eq!((carrier.is_some(), granted.kind), (false, BatchKind::Sync));
        assert_eq!(granted.refused.len(), 2);
        let (carrier, granted) = first_of(&kinds, BatchKind::Sync, 8);
        assert!(carrier.is_none() && granted.refused.is_empty(), "nothing else was asked for");
    }
}

#[cfg(test)]
mod queued_tests {
    use super::*;
    use crate::disk::real::RealOptions;
    use crate::disk::{Disk, FileMode, FileName};

    /// Returns the scripted results, after it did that much of the first transfers.
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

    fn scripted(disk: &RealDisk, depth: u32) -> QueuedBatch {
        let (answers, pushed) = (ANSWERS.into(), VecDeque::new());
        let carrier = Scripted { answers, pushed, complete: Vec::new() };
        QueuedBatch::new(disk.clone(), Box::new(carrier), depth)
    }

    fn results(
        batch: &mut QueuedBatch,
        check: impl Fn(&BatchCompletion),
    ) -> Vec<Result<(), DiskError>> {
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
