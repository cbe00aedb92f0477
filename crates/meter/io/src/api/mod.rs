//! What every file API offers to a worker's loop.
//!
//! Invariant: one API per worker, bound to the thread that started it; a request that was queued
//! completes exactly once. Queue, submit and reap allocate nothing and read no clock.
//! It does not know why a request is made or what it costs.

mod flushes;
pub mod libaio;
#[cfg(any(test, feature = "testing"))]
pub mod memory;
pub mod mmap;
pub mod null;
pub mod sync;
pub mod uring;

use crate::{Buffers, Completion, FileCall, IoError, Op, OpKind, OpenFiles, SyncKind};

/// How each write is made durable, by flags on the write itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteThrough {
    /// Not at all.
    #[default]
    None,
    /// RWF_DSYNC: as if fdatasync followed each write.
    Dsync,
    /// RWF_SYNC: as if fsync followed each write.
    Sync,
}

/// A worker's options for its API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiConfig {
    /// Requests in flight at most.
    pub depth: u32,
    /// What [`OpKind::Sync`](crate::OpKind::Sync) does.
    pub sync_kind: SyncKind,
    /// Flags on every write.
    pub write_through: WriteThrough,
    /// Request registered files and buffers (io_uring).
    pub registered: bool,
    /// Request polled completions (io_uring, direct I/O on a device with poll queues).
    pub polled: bool,
    /// The call that requests make on files in place of moving bytes (sync).
    pub call: Option<FileCall>,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            depth: 1,
            sync_kind: SyncKind::Fsync,
            write_through: WriteThrough::None,
            registered: true,
            polled: false,
            call: None,
        }
    }
}

/// How many queued requests to collect before they are started without waiting for `submit` or
/// `reap`: a sixteenth of the depth. Larger batches cost less CPU, but the device idles while they
/// are made and then hands all of them back at once; measured at depth 32 on a virtio disk, one
/// batch per round loses a tenth of the requests per second, a sixteenth loses nothing.
pub fn submission_batch(depth: u32) -> u32 {
    (depth / 16).max(1)
}

/// Something that was requested and not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was requested.
    pub what: &'static str,
    /// What the kernel answered, and what would help.
    pub why: String,
}

/// What an API was granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// The request buffers are registered with the kernel.
    pub registered_buffers: bool,
    /// The files are registered with the kernel.
    pub registered_files: bool,
    /// Completions are polled from the device.
    pub polled: bool,
    /// The kernel was promised a single submitting thread.
    pub single_issuer: bool,
    /// What was refused, and why.
    pub refused: Vec<Refusal>,
    /// The kernel locks no more memory for this process.
    pub is_memlock_limited: bool,
}

/// One worker's way to its files. Monomorphised in the hot loop.
pub trait FileApi: Sized {
    /// Prepares the API for these files and buffers, both of which it keeps alive.
    ///
    /// # Errors
    /// When the API cannot work here at all. What is merely refused is named in [`Caps`].
    fn start(
        config: &ApiConfig,
        files: &OpenFiles,
        buffers: &Buffers,
    ) -> Result<(Self, Caps), IoError>;

    /// Takes a request. It may start at once, and does at the latest with the next
    /// [`submit`](Self::submit) or [`reap`](Self::reap).
    ///
    /// # Panics
    /// When more than `depth` requests are in flight, or the file, slot or length is out of range.
    fn queue(&mut self, op: Op);

    /// Starts what was queued and did not start yet; returns how many requests that was. Need not
    /// be called before `reap`, which starts what is queued in the same system call.
    ///
    /// # Errors
    /// When the API itself fails; the requests are then lost.
    fn submit(&mut self) -> Result<u32, IoError>;

    /// Starts what is queued, waits for at least `min` completions and hands every completion at
    /// hand to `on`. Returns how many there were: fewer than `min` only when `wait_at_most`
    /// nanoseconds passed, a signal cut such a wait short, or fewer are in flight. With `min` 0 it
    /// never waits.
    ///
    /// # Errors
    /// When the API itself fails. A request that failed is a [`Completion`] with a negative result.
    fn reap(
        &mut self,
        min: u32,
        wait_at_most: Option<u64>,
        on: impl FnMut(Completion),
    ) -> Result<u32, IoError>;
}

// A request's tag and kind in the 64 bits that the kernel hands back.
//
// Layout: tag in the low 32 bits, kind above.

#[inline]
fn token_of(op: &Op) -> u64 {
    let kind = match op.kind {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Sync => 2,
        OpKind::Trim => 3,
    };
    kind << 32 | u64::from(op.tag)
}

#[inline]
fn done_of(token: u64, result: i32) -> Completion {
    Completion { tag: token as u32, kind: kind_of(token), result }
}

#[inline]
fn kind_of(token: u64) -> OpKind {
    match token >> 32 {
        0 => OpKind::Read,
        1 => OpKind::Write,
        2 => OpKind::Sync,
        _ => OpKind::Trim,
    }
}
