//! What a drive is: it takes requests, and says when each is done.
//!
//! Invariant: time is a number of nanoseconds that never goes back; every request that was taken is
//! done exactly once; a flush is done only after every write that was done before the flush came is
//! beyond a power cut. Contents are not here, only time.

mod agenda;
pub mod cloud;
pub mod flash;
pub mod hdd;
mod nvme;
#[cfg(test)]
mod promise_tests;
mod queued;
pub mod raid;
pub mod table;

pub use agenda::Agenda;
pub use queued::{Device, Queued};

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Reads.
    Read,
    /// Writes; done when the drive says so, which may be before it is beyond a power cut.
    Write,
    /// Writes, and is done only when it is beyond a power cut (forced unit access).
    WriteThrough,
    /// Makes everything that was done beyond a power cut. Has no place and no length.
    Flush,
}

/// One request as it reaches a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Chosen by whoever asks; no two in flight have the same.
    pub id: u64,
    /// What.
    pub command: Command,
    /// First byte.
    pub at_bytes: u64,
    /// How many bytes, 0 for a flush.
    pub bytes: u32,
}

impl Request {
    /// First byte after it.
    pub fn end(&self) -> u64 {
        self.at_bytes + u64::from(self.bytes)
    }
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Which.
    pub id: u64,
    /// When, in ns.
    pub at_ns: u64,
}

/// What holds for a drive at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveFacts {
    /// Its size in bytes.
    pub capacity_bytes: u64,
    /// Commands that it considers at a time; further ones wait in the order in which they came.
    pub queue_depth: u32,
    /// Most bytes of done writes that a power cut could take; 0 for a drive whose cache is off or
    /// protected.
    pub volatile_bytes: u64,
    /// Whether seeks cost time.
    pub is_rotational: bool,
}

/// A drive in virtual time.
///
/// The caller owns the clock: it calls [`Drive::submit`] when a request comes and
/// [`Drive::advance`] at or after each [`Drive::next_event_ns`]. Moments passed in never go back.
pub trait Drive: Send {
    /// What holds for it.
    fn facts(&self) -> DriveFacts;

    /// Takes a request that comes at `now_ns`. What should have happened before that moment happens
    /// first; requests that it finishes are handed out by the next [`Drive::advance`].
    ///
    /// # Panics
    /// When the request reaches beyond the capacity or time goes back: a broken invariant of the
    /// caller.
    fn submit(&mut self, now_ns: u64, request: Request);

    /// The next moment at which something happens by itself: a request is done, or work in the
    /// background ends. `None` when the drive is idle.
    fn next_event_ns(&self) -> Option<u64>;

    /// A moment before which nothing is done, as far as is known now; `None` when no request is in
    /// flight. Who waits only for what is done need not look at what happens before: a later
    /// [`Drive::advance`] lets it happen.
    fn next_done_ns(&self) -> Option<u64> {
        self.next_event_ns()
    }

    /// Lets everything up to and including `now_ns` happen; appends what was done, earliest first,
    /// each with its own moment, which may lie before `now_ns`.
    fn advance(&mut self, now_ns: u64, done: &mut Vec<Done>);
}
