//! One request and its completion.
//!
//! Invariant: plain data of fixed size; copying one allocates nothing.
//! It does not know which API will carry it, nor when it was made.

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Reads `len` bytes at `offset`.
    Read,
    /// Writes `len` bytes at `offset`.
    Write,
    /// Discards `len` bytes at `offset`.
    Trim,
    /// Flushes a file, by [`ApiConfig::sync_kind`](crate::ApiConfig::sync_kind).
    Sync,
}

/// How a file is flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SyncKind {
    /// fsync: data and all metadata.
    #[default]
    Fsync,
    /// fdatasync: data and the metadata needed to read it back.
    Fdatasync,
    /// sync_file_range over the bytes of the request, with these flags of the kernel's.
    Range(u32),
}

/// The call that a request makes on its file in place of moving bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileCall {
    /// fallocate: a write makes room and lets the file grow, a read makes room, a discard punches a
    /// hole.
    Allocate,
    /// ftruncate: a write cuts or grows the file to its offset.
    Truncate,
    /// open with O_CREAT, and close: the file is opened by its name.
    Create,
    /// stat, by its name.
    Stat,
    /// unlink, by its name.
    Delete,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// What to do.
    pub kind: OpKind,
    /// Index of the file in [`OpenFiles`](crate::OpenFiles).
    pub file: u32,
    /// First byte in the file; 0 for a flush of all of it.
    pub offset: u64,
    /// Bytes to move; of a flush those of its range, 0 for all up to the end of the file.
    pub len: u32,
    /// Slot in [`Buffers`](crate::Buffers); not used by a flush.
    pub buffer: u32,
    /// Given back in [`Completion`]; means nothing to the API.
    pub tag: u32,
}

/// One completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the request.
    pub tag: u32,
    /// The kind of the request.
    pub kind: OpKind,
    /// Bytes moved (fewer than requested at the end of a file), 0 for a flush, or `-errno`.
    pub result: i32,
}
