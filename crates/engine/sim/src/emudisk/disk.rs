//! One disk: the pace, the contents, and the injected faults.
//!
//! Invariant: a request is answered after the model's moment and after its effect on the contents
//! agrees with the answer; of a request that failed through a power cut nothing is promised. It is
//! independent of how requests arrive and answers are sent.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::drive::{Command, Drive};
use crate::emudisk::client::{DiskStats, Power};
use crate::emudisk::error::ServeError;
use crate::emudisk::fault::{Errors, Tear};
use crate::emudisk::medium::{Medium, PendingFlush, PendingWrite, RequestFailure};
use crate::emudisk::options::ServeOptions;
use crate::emudisk::pace::{Due, Pace, now_ns};

/// What a request takes to come through block layer, loop device and FUSE and to go back when
/// nothing else is to be done: the median at depth 1 on the reference machine, printed by the
/// example
/// `agreement` as what a drive of a fixed time takes more when this is 0. Given to the model as a
/// request that came so much earlier, so that the requester sees the model's time. A request that
/// came while the model was busy with others gets less of it back.
const TRANSPORT_NS: u64 = 12_000;
/// Requests are given to the model in whole sectors.
const SECTOR_BYTES: u64 = 512;

/// How an answer goes back to the requester.
pub(crate) trait Reply: Send {
    /// It worked; the bytes are those of a read.
    fn done(self, read: &[u8]);
    /// It did not.
    fn failed(self, why: Failure);
}

/// Why a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// As a broken device.
    Io,
    /// No room for the contents.
    Full,
}

impl From<RequestFailure> for Failure {
    fn from(refused: RequestFailure) -> Self {
        match refused {
            RequestFailure::Broken => Self::Io,
            RequestFailure::Full => Self::Full,
        }
    }
}

/// What a request has done already, and what is left to do when its moment comes.
pub(crate) enum PendingEffect {
    Read(Vec<u8>),
    Write(PendingWrite),
    Flush(PendingFlush),
    /// Fails, but not before its moment.
    Fails(Failure),
}

pub(crate) struct PendingReply<R> {
    reply: R,
    effect: PendingEffect,
}

/// Makes the drive, at first and after each power cut.
pub(crate) type MakeDrive = Box<dyn Fn() -> Result<Box<dyn Drive>, ServeError> + Send + Sync>;

pub(crate) struct Disk<R> {
    pace: Pace<PendingReply<R>>,
    medium: RwLock<Medium>,
    pub(crate) errors: Errors,
    pub(crate) lateness: Lateness,
    make_drive: MakeDrive,
    model: String,
    size_bytes: u64,
    errors_full: AtomicU64,
    discards: AtomicU64,
}

impl<R: Reply> Disk<R> {
    pub(crate) fn new(options: &ServeOptions, make_drive: MakeDrive) -> Result<Self, ServeError> {
        let drive = make_drive()?;
        let medium = Medium::new(options, drive.facts().volatile_bytes)?;
        Ok(Self {
            pace: Pace::new(drive, now_ns()),
            medium: RwLock::new(medium),
            errors: Errors::new(options.seed),
            lateness: Lateness::default(),
            make_drive,
            model: options.disk.to_string(),
            size_bytes: options.size_bytes,
            errors_full: AtomicU64::new(0),
            discards: AtomicU64::new(0),
        })
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    pub(crate) fn pace(&self) -> &Pace<PendingReply<R>> {
        &self.pace
    }

    fn medium(&self) -> RwLockReadGuard<'_, Medium> {
        self.medium.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn medium_mut(&self) -> RwLockWriteGuard<'_, Medium> {
        self.medium.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_inside(&self, bytes: &Range<u64>) -> bool {
        bytes.start <= bytes.end && bytes.end <= self.size_bytes
    }

    pub(crate) fn read(&self, at: u64, bytes: u32, reply: R) {
        let came_ns = now_ns();
        let end = at.saturating_add(bytes.into()).min(self.size_bytes);
        let range = at.min(end)..end;
        if range.is_empty() {
            return reply.done(&[]);
        }
        let mut data = vec![0; (range.end - range.start) as usize];
        let effect = match self.medium().read(range.start, &mut data) {
            _ if self.errors.hit(range.clone()) => PendingEffect::Fails(Failure::Io),
            Ok(()) => PendingEffect::Read(data),
            Err(refused) => PendingEffect::Fails(refused.into()),
        };
        self.submit(came_ns, Command::Read, range, PendingReply { reply, effect });
    }

    pub(crate) fn write(&self, at: u64, data: &[u8], reply: R) {
        let came_ns = now_ns();
        let range = at..at.saturating_add(data.len() as u64);
        if !self.is_inside(&range) {
            return reply.failed(Failure::Full);
        }
        let effect = if self.errors.hit(range.clone()) {
            PendingEffect::Fails(Failure::Io)
        } else {
            match self.medium_mut().write(at, data) {
                Ok(applied) => PendingEffect::Write(applied),
                Err(refused) => PendingEffect::Fails(refused.into()),
            }
        };
        self.submit(came_ns, Command::Write, range, PendingReply { reply, effect });
    }

    pub(crate) fn flush(&self, reply: R) {
        let came_ns = now_ns();
        let effect = match self.medium().flush() {
            Ok(flush) => PendingEffect::Flush(flush),
            Err(refused) => PendingEffect::Fails(refused.into()),
        };
        self.submit(came_ns, Command::Flush, 0..0, PendingReply { reply, effect });
    }

    /// Makes a range zero. Takes no time, as no model includes it.
    pub(crate) fn discard(&self, range: Range<u64>, reply: R) {
        self.discards.fetch_add(1, Ordering::Relaxed);
        if !self.is_inside(&range) || self.errors.hit(range.clone()) {
            return reply.failed(Failure::Io);
        }
        let discarded = self.medium_mut().discard(range);
        match discarded {
            Ok(()) => reply.done(&[]),
            Err(refused) => reply.failed(refused.into()),
        }
    }

    fn submit(&self, came_ns: u64, command: Command, range: Range<u64>, answer: PendingReply<R>) {
        let first = range.start / SECTOR_BYTES * SECTOR_BYTES;
        let bytes = range.end.next_multiple_of(SECTOR_BYTES) - first;
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        // As if it had come when it was requested, and as if the answer were there at once.
        let came_ns = came_ns.saturating_sub(TRANSPORT_NS);
        let mut due = Vec::new();
        let taken = self.pace.submit(came_ns, command, first, bytes, answer, &mut due);
        if let Err(answer) = taken {
            self.abandon(answer);
        }
        due.into_iter().for_each(|due| self.send(due));
    }

    /// Answers a request whose moment has come.
    pub(crate) fn send(&self, due: Due<PendingReply<R>>) {
        let PendingReply { reply, effect } = due.answer;
        match effect {
            PendingEffect::Read(data) => reply.done(&data),
            PendingEffect::Write(applied) if self.medium_mut().done(applied) => reply.done(&[]),
            PendingEffect::Flush(flush) if self.medium_mut().flushed(flush) => reply.done(&[]),
            PendingEffect::Write(_) | PendingEffect::Flush(_) => reply.failed(Failure::Io),
            PendingEffect::Fails(why) => {
                self.errors_full.fetch_add((why == Failure::Full).into(), Ordering::Relaxed);
                reply.failed(why);
            }
        }
        self.lateness.count(now_ns().saturating_sub(due.at_ns));
    }

    /// Answers a request that found no power. A write that was applied may or may not be there.
    fn abandon(&self, answer: PendingReply<R>) {
        if let PendingEffect::Write(applied) = answer.effect {
            self.medium_mut().done(applied);
        }
        answer.reply.failed(Failure::Io);
    }

    /// The power fails: returns when everything that was in flight has failed.
    ///
    /// # Errors
    /// The store could not take back what is lost; the disk stays broken.
    pub(crate) fn power_off(&self, tear: Option<Tear>, seed: Option<u64>) -> std::io::Result<()> {
        let answers = self.pace.power_off(now_ns());
        let cut = self.medium_mut().cut(tear, seed);
        for answer in answers {
            answer.reply.failed(Failure::Io);
        }
        cut
    }

    /// The power is back.
    ///
    /// # Errors
    /// The model makes no drive any more.
    pub(crate) fn power_on(&self) -> Result<(), ServeError> {
        let drive = (self.make_drive)()?;
        let mut medium = self.medium_mut();
        if !medium.is_on() {
            medium.power_on();
            self.pace.power_on(drive, now_ns());
        }
        Ok(())
    }

    pub(crate) fn is_on(&self) -> bool {
        self.medium().is_on()
    }

    pub(crate) fn set_store_limit(&self, bytes: u64) {
        self.medium_mut().set_limit(bytes);
    }

    pub(crate) fn stats(&self) -> DiskStats {
        let tally = self.pace.tally();
        let medium = self.medium();
        DiskStats {
            model: self.model.clone(),
            size_bytes: self.size_bytes,
            pid: std::process::id(),
            reads: tally.reads,
            writes: tally.writes,
            flushes: tally.flushes,
            discards: self.discards.load(Ordering::Relaxed),
            read_bytes: tally.read_bytes,
            write_bytes: tally.write_bytes,
            depth_max: tally.depth_max,
            depth_mean: tally.depth_mean(),
            in_order: tally.in_order_share(),
            late: self.lateness.late(),
            late_us_mean: self.lateness.mean_us(),
            late_us_max: self.lateness.max_us(),
            overhead_us: TRANSPORT_NS as f64 / 1e3,
            errors_injected: self.errors.injected(),
            errors_full: self.errors_full.load(Ordering::Relaxed),
            unflushed_bytes: medium.unflushed_bytes(),
            store_bytes: medium.store_bytes(),
            power: if medium.is_on() { Power::On } else { Power::Off },
            cuts: medium.cuts(),
        }
    }
}

/// Later than this is counted as late.
const LATE_NS: u64 = 100_000;

/// Counted without a lock, by every thread that sends.
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    sent: AtomicU64,
    late: AtomicU64,
    sum_ns: AtomicU64,
    max_ns: AtomicU64,
}

impl Lateness {
    pub(crate) fn count(&self, by_ns: u64) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.late.fetch_add((by_ns > LATE_NS).into(), Ordering::Relaxed);
        self.sum_ns.fetch_add(by_ns, Ordering::Relaxed);
        self.max_ns.fetch_max(by_ns, Ordering::Relaxed);
    }

    pub(crate) fn late(&self) -> u64 {
        self.late.load(Ordering::Relaxed)
    }

    pub(crate) fn mean_us(&self) -> f64 {
        let sent = self.sent.load(Ordering::Relaxed).max(1);
        self.sum_ns.load(Ordering::Relaxed) as f64 / sent as f64 / 1e3
    }

    pub(crate) fn max_us(&self) -> f64 {
        self.max_ns.load(Ordering::Relaxed) as f64 / 1e3
    }
}

#[cfg(test)]
mod lateness_tests {
    use super::*;

    #[test]
    fn it_averages_over_all_and_counts_the_late() {
        let lateness = Lateness::default();
        assert_eq!(lateness.mean_us(), 0.0);
        [0, 100_000, 101_000].into_iter().for_each(|ns| lateness.count(ns));
        assert_eq!((lateness.late(), lateness.mean_us(), lateness.max_us()), (1, 67.0, 101.0));
    }
}
