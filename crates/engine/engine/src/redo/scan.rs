//! Reading the log from the checkpoint to its end.
//!
//! Invariant: frames come in order and without gaps, each valid; the log ends at the first byte
//! where no valid frame begins. Bytes, however damaged, never make it panic.
//! It changes nothing on the disk.

use std::collections::VecDeque;

use iostrata_innodb::Lsn;
use iostrata_io::disk::Aligned;

use crate::error::{EngineError, OpenError};
use crate::redo::control::Control;
use crate::redo::frame;
use crate::redo::layout::{FORMAT_VERSION, frame as at};
use crate::redo::segments::{Segment, SegmentRange, damaged_segment};

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
struct Found {
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
    found: Option<Found>,
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
        let Some(Found { start, bytes }) = self.found.take() else { return Ok(None) };
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
            let (kind, number) = (whole[at::KIND], frame::incarnation_of(whole));
            self.position += bytes as u64;
            match (kind, number) {
                (at::RECORDS, _) => self.found = Some(Found { start, bytes }),
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
        let Some(bytes) = frame::bytes_of(&self.window[from..]) else { return Ok(None) };
        if !self.fill(bytes)? {
            return Ok(None);
        }
        let from = (self.position - self.window_at) as usize;
        let whole = &self.window[from..from + bytes];
        let valid = frame::is_valid(whole, self.position, self.incarnation());
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
