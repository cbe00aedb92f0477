//! Frames, the buffer that they are appended to, and reading them back from the checkpoint to the
//! log's end.
//!
//! Invariants: a frame is sealed with its place and its incarnation, so that neither a frame of an
//! earlier lap nor one that a crash left behind the end is ever taken for a valid one. The buffer
//! holds the log from `base`, a border of blocks, to `end`; what lies before `end` in the block of
//! `end` is always in it, so that a block is written whole without being read.
//! Of a scan frames come in order and without gaps, each valid; the log ends at the first byte
//! where no valid frame begins. Bytes, however damaged, never make it panic. It changes nothing on
//! the disk.

use std::collections::VecDeque;

use crc32c::{crc32c, crc32c_append};
use iostrata_innodb::Lsn;
use iostrata_io::disk::Aligned;

use crate::error::{EngineError, OpenError};
use crate::redo::control::Control;
use crate::redo::layout::{FORMAT_VERSION, frame, frame as at, get_u32, get_u64, put_u32};
use crate::redo::segments::{Segment, SegmentRange, damaged_segment};

/// The crc of the body with its kind, before the seal.
#[inline]
pub(crate) fn body_crc(kind: u8, body: &[u8]) -> u32 {
    crc32c_append(crc32c(&[kind]), body)
}

/// The crc of a frame at `start` in an incarnation.
#[inline]
pub(crate) fn seal(body_crc: u32, start: u64, incarnation: u64) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&start.to_le_bytes());
    place[8..].copy_from_slice(&incarnation.to_le_bytes());
    crc32c_append(body_crc, &place)
}

#[inline]
pub(crate) fn put(into: &mut [u8], crc: u32, kind: u8, body: &[u8]) {
    put_u32(into, frame::LEN, (body.len() + 1) as u32);
    put_u32(into, frame::CRC, crc);
    into[frame::KIND] = kind;
    into[frame::OVERHEAD_BYTES..].copy_from_slice(body);
}

/// Bytes of the whole frame that begins with `head`; none when no frame can begin so.
fn bytes_of(head: &[u8]) -> Option<usize> {
    let len = get_u32(head, frame::LEN) as usize;
    let bytes = len.checked_add(frame::HEAD_BYTES)?;
    (len > 0 && bytes <= frame::BYTES_MAX).then_some(bytes)
}

fn is_valid(whole: &[u8], start: u64, incarnation: u64) -> bool {
    let crc = crc32c(&whole[frame::KIND..]);
    seal(crc, start, incarnation) == get_u32(whole, frame::CRC)
}

/// The number that an incarnation frame announces; none when it has another length.
fn incarnation_of(whole: &[u8]) -> Option<u64> {
    (whole.len() == frame::INCARNATION_BYTES).then(|| get_u64(whole, frame::OVERHEAD_BYTES))
}

#[derive(Debug)]
pub(crate) struct Fill {
    buffer: Aligned,
    pub(crate) base: u64,
    pub(crate) end: u64,
    pub(crate) incarnation: u64,
    pub(crate) is_started: bool,
    pub(crate) requests: u64,
}

/// What was taken out of the buffer: the log from `base` to `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRange {
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
        let crc = seal(body_crc, start, self.incarnation);
        put(&mut self.buffer[from..from + bytes], crc, kind, body);
        self.end += bytes as u64;
        start
    }

    /// Swaps in an empty buffer of the same size. The last block is carried over if it is not full.
    pub(crate) fn swap(&mut self, empty: &mut Aligned, block_bytes: u64) -> LogRange {
        let taken = LogRange { base: self.base, end: self.end };
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

const READ_BYTES: u64 = 1 << 20;
/// Reads begin at a multiple of this LSN, which direct I/O can take everywhere.
const READ_ALIGNMENT_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub start: Lsn,
    pub end: Lsn,
    pub body: &'a [u8],
}

/// A frame of records that is read and not handed out yet.
#[derive(Clone, Copy, Debug)]
struct PendingFrame {
    start: u64,
    bytes: usize,
}

#[derive(Debug)]
pub struct Scan {
    control: Control,
    chain: VecDeque<Segment>,
    /// A segment file that can be no part of the chain.
    damaged: Option<String>,
    /// The log may go on behind the chain.
    ran_out: bool,
    /// The log from `window_at` on, as far as it was read.
    window: Vec<u8>,
    window_at: u64,
    chunk: Aligned,
    /// Behind the last valid frame.
    position: u64,
    /// From which LSN on which number seals the frames, the oldest first.
    incarnations: Vec<(u64, u64)>,
    found: Option<PendingFrame>,
    ended: bool,
    clean: bool,
}

impl Scan {
    pub(crate) fn new(
        control: Control,
        chain: VecDeque<Segment>,
        damaged: Option<String>,
    ) -> Result<Self, EngineError> {
        let largest = chain.iter().map(|s| s.header.geometry.payload_bytes).max().unwrap_or(1);
        let mut scan = Self {
            control,
            chain,
            damaged,
            ran_out: false,
            window: Vec::new(),
            window_at: control.checkpoint,
            chunk: Aligned::zeroed(largest.min(READ_BYTES) as usize),
            position: control.checkpoint,
            incarnations: vec![(0, control.incarnation)],
            found: None,
            ended: false,
            clean: false,
        };
        scan.look_ahead()?;
        scan.clean = control.clean && scan.found.is_none();
        Ok(scan)
    }

    pub fn checkpoint(&self) -> Lsn {
        Lsn(self.control.checkpoint)
    }

    /// Whether the log was closed cleanly: no records follow the checkpoint.
    pub fn clean(&self) -> bool {
        self.clean
    }

    /// The next frame; none at the end of the log.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, EngineError> {
        if self.found.is_none() {
            self.look_ahead()?;
        }
        let Some(PendingFrame { start, bytes }) = self.found.take() else { return Ok(None) };
        let from = (start - self.window_at) as usize;
        let body = &self.window[from + at::OVERHEAD_BYTES..from + bytes];
        let end = Lsn(start + bytes as u64);
        Ok(Some(Frame { start: Lsn(start), end, body }))
    }

    /// Behind the last valid frame of any kind.
    pub(crate) fn log_end(&self) -> u64 {
        self.position
    }

    /// Which numbers seal which frames; for the log that goes on here.
    pub(crate) fn into_incarnations(self) -> Vec<(u64, u64)> {
        self.incarnations
    }

    fn incarnation(&self) -> u64 {
        self.incarnations.last().map_or(self.control.incarnation, |(_, number)| *number)
    }

    /// Finds the next frame of records and goes behind it.
    fn look_ahead(&mut self) -> Result<(), EngineError> {
        while !self.ended && self.found.is_none() {
            let Some(bytes) = self.valid_frame()? else {
                self.ended = true;
                return self.check_end();
            };
            let start = self.position;
            let from = (start - self.window_at) as usize;
            let whole = &self.window[from..from + bytes];
            let (kind, number) = (whole[at::KIND], incarnation_of(whole));
            self.position += bytes as u64;
            match (kind, number) {
                (at::RECORDS, _) => self.found = Some(PendingFrame { start, bytes }),
                (at::INCARNATION, Some(number)) => self.incarnations.push((self.position, number)),
                (kind, _) => {
                    let found = format!(
                        "a later one (the frame at {start} has the unknown kind {kind}; use a \
                         newer program)"
                    );
                    return Err(OpenError::Format { found, known: FORMAT_VERSION }.into());
                }
            }
        }
        Ok(())
    }

    fn check_end(&self) -> Result<(), EngineError> {
        if let (true, Some(file)) = (self.ran_out, &self.damaged) {
            let lsn = self.chain.back().map_or(self.position, |segment| segment.header.end());
            return Err(damaged_segment(file, lsn));
        }
        let (end, durable) = (self.position, self.control.durable);
        if end >= durable {
            return Ok(());
        }
        Err(EngineError::damaged(format!(
            "the redo log ends at {end} but was durable up to {durable}: a segment is damaged or \
             missing; restore the files or a backup"
        )))
    }

    /// Length of the valid frame at the position, which is then in the window whole.
    fn valid_frame(&mut self) -> Result<Option<usize>, EngineError> {
        if !self.fill(at::HEAD_BYTES)? {
            return Ok(None);
        }
        let from = (self.position - self.window_at) as usize;
        let Some(bytes) = bytes_of(&self.window[from..]) else { return Ok(None) };
        if !self.fill(bytes)? {
            return Ok(None);
        }
        let from = (self.position - self.window_at) as usize;
        let whole = &self.window[from..from + bytes];
        let valid = is_valid(whole, self.position, self.incarnation());
        Ok(valid.then_some(bytes))
    }

    /// Has at least so many bytes from the position on in the window; false at the chain's end.
    fn fill(&mut self, bytes: usize) -> Result<bool, EngineError> {
        let wanted = self.position + bytes as u64;
        while self.window_at + (self.window.len() as u64) < wanted {
            if !self.read_more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn read_more(&mut self) -> Result<bool, EngineError> {
        let passed = (self.position - self.window_at) as usize;
        if passed * 2 >= self.window.len() {
            self.window.drain(..passed.min(self.window.len()));
            self.window_at = self.position;
        }
        let lsn = self.window_at + self.window.len() as u64;
        let aligned = lsn / READ_ALIGNMENT_BYTES * READ_ALIGNMENT_BYTES;
        let Some(place) = place(&self.chain, aligned) else {
            self.ran_out = true;
            return Ok(false);
        };
        self.chunk.set_len(place.left.min(self.chunk.allocated() as u64) as usize);
        let read = place.file.read(place.at, &mut self.chunk);
        read.map_err(EngineError::disk("read the redo log"))?;
        self.window.extend_from_slice(&self.chunk[(lsn - aligned) as usize..]);
        Ok(true)
    }
}

fn place(chain: &VecDeque<Segment>, lsn: u64) -> Option<SegmentRange> {
    let segment = chain.iter().find(|s| s.header.first <= lsn && lsn < s.header.end())?;
    Some(segment.place(lsn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_incarnation_and_every_bit_are_sealed() {
        let body = b"some records";
        let mut whole = vec![0; frame::OVERHEAD_BYTES + body.len()];
        let crc = seal(body_crc(frame::RECORDS, body), 1000, 7);
        put(&mut whole, crc, frame::RECORDS, body);
        assert_eq!(bytes_of(&whole), Some(whole.len()));
        assert!(is_valid(&whole, 1000, 7));
        assert!(!is_valid(&whole, 1001, 7) && !is_valid(&whole, 1000, 8));
        for bit in 8 * frame::CRC..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_valid(&damaged, 1000, 7), "bit {bit}");
        }
    }

    #[test]
    fn no_frame_begins_with_nothing_or_with_too_much() {
        assert_eq!(bytes_of(&[0; 8]), None);
        assert_eq!(bytes_of(&[0xff; 8]), None);
        assert_eq!(bytes_of(&(frame::BYTES_MAX as u32).to_le_bytes()), None);
    }
}
