//! The buffer that frames are appended to.
//!
//! Invariant: it holds the log from `base`, a border of blocks, to `end`; what lies before `end` in
//! the block of `end` is always in it, so that a block is written whole without being read.

use iostrata_io::disk::Aligned;

use crate::redo::frame;
use crate::redo::layout::frame as at;

#[derive(Debug)]
pub(crate) struct Fill {
    buffer: Aligned,
    pub(crate) base: u64,
    pub(crate) end: u64,
    /// Seals what is appended.
    pub(crate) incarnation: u64,
    pub(crate) is_started: bool,
    pub(crate) requests: u64,
}

/// What was taken out of the buffer: the log from `base` to `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) base: u64,
    pub(crate) end: u64,
}

impl Fill {
    pub(crate) fn new(buffer: Aligned) -> Self {
        Self { buffer, base: 0, end: 0, incarnation: 0, is_started: false, requests: 0 }
    }

    /// Goes on at `end`, with what lies before it in its block.
    pub(crate) fn resume(&mut self, tail: &[u8], end: u64) {
        self.buffer[..tail.len()].copy_from_slice(tail);
        self.base = end - tail.len() as u64;
        self.end = end;
    }

    #[inline]
    pub(crate) fn used_bytes(&self) -> usize {
        (self.end - self.base) as usize
    }

    #[inline]
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.used_bytes() + bytes <= self.buffer.len()
    }

    /// Appends a frame, for which there is room; gives its first LSN.
    #[inline]
    pub(crate) fn push(&mut self, body_crc: u32, kind: u8, body: &[u8]) -> u64 {
        let (start, from) = (self.end, self.used_bytes());
        let bytes = at::OVERHEAD_BYTES + body.len();
        let crc = frame::seal(body_crc, start, self.incarnation);
        frame::put(&mut self.buffer[from..from + bytes], crc, kind, body);
        self.end += bytes as u64;
        start
    }

    /// Swaps in an empty buffer of the same size. The last block is carried over if it is not full.
    pub(crate) fn swap(&mut self, empty: &mut Aligned, block_bytes: u64) -> Taken {
        let taken = Taken { base: self.base, end: self.end };
        let tail = self.end / block_bytes * block_bytes;
        let (from, to) = ((tail - self.base) as usize, self.used_bytes());
        empty[..to - from].copy_from_slice(&self.buffer[from..to]);
        std::mem::swap(&mut self.buffer, empty);
        self.base = tail;
        taken
    }

    /// Forgets everything: for a log that will never write again.
    pub(crate) fn discard(&mut self) {
        self.base = self.end;
    }
}
