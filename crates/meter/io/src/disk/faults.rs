//! What a test may do to the calls on a memory disk.
//!
//! Invariant: a fault changes nothing but what it says.

/// What a call is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// `open`.
    Open,
    /// `read`.
    Read,
    /// `write`.
    Write,
    /// `sync`.
    Sync,
    /// `set_len`.
    SetLen,
    /// `rename`.
    Rename,
    /// `remove`.
    Remove,
    /// `sync_dir`.
    SyncDir,
}

/// A call, as a fault hook sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Counts calls of every kind, from 0.
    pub number: u64,
    /// What it is about to do.
    pub kind: CallKind,
    /// The file's name when it was opened; empty for `sync_dir`.
    pub name: String,
    /// First byte; the new length for `set_len`.
    pub at: u64,
    /// Bytes to move.
    pub bytes: u64,
}

/// What a fault hook lets happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call goes on.
    None,
    /// It fails with this errno (5 is EIO, 28 is ENOSPC) and changes nothing.
    Errno(i32),
    /// A write stores only so many bytes and then fails with EIO. Other calls fail with EIO.
    Short(u64),
}
