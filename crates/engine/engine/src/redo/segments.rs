//! Which file holds which part of the log, and the headers that record it.
//!
//! Invariant: the chain is without gaps and in LSN order; a spare segment holds nothing that is
//! needed; segments are taken in turn, each with a larger sequence than any before it. What decodes
//! as a header was written by `encode`; one torn by a crash is none.
//! It does no I/O: its caller writes the files.

use std::collections::VecDeque;
use std::sync::Arc;

use crc32c::crc32c;
use iostrata_io::disk::FileName;

use crate::error::{EngineError, OpenError};
use crate::redo::OpenFile;
use crate::redo::layout::{
    CONTROL_NAME, FORMAT_VERSION, GRANULE_BYTES, Geometry, Plan, SEGMENT_MAGIC, SEGMENT_PREFIX,
    get_u32, get_u64, header, put_u32, put_u64,
};

/// The error of a log whose control file is missing or damaged.
pub(crate) fn not_found() -> EngineError {
    EngineError::damaged(format!(
        "the redo log cannot be found: {CONTROL_NAME} is missing, or both of its copies are \
         damaged; put all files of a backup back, redo and data of the same moment, or load the \
         data anew into an empty directory"
    ))
}

pub(crate) fn no_segment(lsn: u64) -> EngineError {
    EngineError::damaged(format!(
        "no redo segment holds LSN {lsn}, where recovery begins; restore the files"
    ))
}

/// The error of a segment that may hold what follows in the log.
pub(crate) fn damaged_segment(file: &str, lsn: u64) -> EngineError {
    EngineError::damaged(format!(
        "{file} is a damaged segment of the redo log: its header is not valid or the file is cut, \
         and no other file holds LSN {lsn}, where the log goes on; restore {file} from a backup \
         (without it, what was committed from LSN {lsn} on is lost)"
    ))
}

pub(crate) fn number_of(name: &FileName) -> Option<u64> {
    let digits = name.as_str().strip_prefix(SEGMENT_PREFIX)?;
    let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) header: Header,
}

impl Segment {
    pub(crate) fn place(&self, lsn: u64) -> SegmentRange {
        let at = u64::from(self.header.geometry.payload_at) + (lsn - self.header.first);
        SegmentRange { file: Arc::clone(&self.file), at, left: self.header.end() - lsn }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SegmentRange {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) at: u64,
    /// Bytes from there to the end of the segment.
    pub(crate) left: u64,
}

#[derive(Debug)]
pub(crate) struct Segments {
    pub(crate) plan: Plan,
    /// What is in use, the oldest first; never empty.
    pub(crate) chain: VecDeque<Segment>,
    /// The segment that is about to join the chain: its header is being written.
    joining: Option<Segment>,
    /// What can be taken next; first what the plan keeps.
    pub(crate) spare: VecDeque<Segment>,
    pub(crate) surplus: Vec<Segment>,
    pub(crate) next_sequence: u64,
    pub(crate) next_number: u64,
}

impl Segments {
    /// Sorts what was found into the chain from the checkpoint on and what is spare.
    pub(crate) fn new(plan: Plan, checkpoint: u64, mut found: Vec<Segment>) -> Self {
        let sequence = found.iter().map(|s| s.header.sequence).max().unwrap_or(0);
        let number = found.iter().filter_map(|s| number_of(&s.file.name)).max();
        let chain = chain_from(checkpoint, &mut found);
        Self {
            plan,
            chain,
            joining: None,
            spare: found.into(),
            surplus: Vec::new(),
            next_sequence: sequence + 1,
            next_number: number.map_or(0, |number| number + 1),
        }
    }

    /// Where `lsn` lies; none beyond the chain.
    pub(crate) fn place(&self, lsn: u64) -> Option<SegmentRange> {
        let segment = self.chain.iter().rev().find(|s| s.header.first <= lsn)?;
        (lsn < segment.header.end()).then(|| segment.place(lsn))
    }

    /// Behind the last payload byte of the chain, where the next segment begins.
    fn chain_end(&self) -> u64 {
        self.chain.back().map_or(0, |s| s.header.end())
    }

    /// Behind the last byte that can be appended.
    pub(crate) fn room_end(&self) -> u64 {
        let more = self.joining.iter().chain(&self.spare);
        self.chain_end() + more.map(|s| s.header.geometry.payload_bytes).sum::<u64>()
    }

    /// Takes the next spare segment, with the header to write into it. It joins the chain by
    /// `join` once that is written.
    pub(crate) fn take_spare(&mut self) -> Option<Segment> {
        let mut segment = self.spare.pop_front()?;
        segment.header.first = self.chain_end();
        segment.header.sequence = self.next_sequence;
        self.next_sequence += 1;
        self.joining = Some(segment.clone());
        Some(segment)
    }

    pub(crate) fn join(&mut self) {
        self.chain.extend(self.joining.take());
    }

    pub(crate) fn count_of(&self, geometry: Geometry) -> u64 {
        let all = self.chain.iter().chain(&self.joining).chain(&self.spare);
        all.filter(|s| s.header.geometry == geometry).count() as u64
    }

    /// Turns what lies wholly beyond the end of the log into spare segments: a crash left it.
    pub(crate) fn retire_beyond(&mut self, end: u64) {
        while self.chain.len() > 1 && self.chain.back().is_some_and(|s| s.header.first > end) {
            self.spare.extend(self.chain.pop_back());
        }
    }

    /// Turns what lies wholly before a durable checkpoint into spare segments.
    pub(crate) fn free_before(&mut self, checkpoint: u64) {
        while self.chain.len() > 1
            && self.chain.front().is_some_and(|s| s.header.end() <= checkpoint)
        {
            self.spare.extend(self.chain.pop_front());
        }
    }

    /// Moves spare segments that the plan has no use for to the surplus, as far as the log keeps
    /// its room up to `needed_end`.
    pub(crate) fn shed(&mut self, needed_end: u64) {
        let geometry = self.plan.geometry;
        let in_use = self.chain.iter().chain(&self.joining);
        let in_use = in_use.filter(|s| s.header.geometry == geometry).count() as u64;
        let mut keep = self.plan.segments.saturating_sub(in_use);
        let (kept, excess): (Vec<_>, Vec<_>) = self.spare.drain(..).partition(|s| {
            let keeps = keep > 0 && s.header.geometry == geometry;
            keep -= u64::from(keeps);
            keeps
        });
        self.spare.extend(kept);
        let first_excess = self.spare.len();
        self.spare.extend(excess);
        while self.spare.len() > first_excess {
            let last = self.spare.back().map_or(0, |s| s.header.geometry.payload_bytes);
            if self.room_end() - last < needed_end {
                return;
            }
            self.surplus.extend(self.spare.pop_back());
        }
    }
}

/// The segments from the one with `checkpoint` on that continue each other; none when that one is
/// missing. A checkpoint on a border may have only the segment before it.
fn chain_from(checkpoint: u64, found: &mut Vec<Segment>) -> VecDeque<Segment> {
    let mut chain: VecDeque<Segment> = VecDeque::new();
    // The largest sequence is valid; smaller ones were left by a crash or an earlier lap.
    let mut take = |fits: &dyn Fn(&Header) -> bool| {
        let used = found.iter().enumerate().filter(|(_, s)| s.header.sequence > 0);
        let fitting = used.filter(|(_, s)| fits(&s.header));
        let index = fitting.max_by_key(|(_, s)| s.header.sequence).map(|(index, _)| index)?;
        Some(found.swap_remove(index))
    };
    let first = take(&|h| h.first < checkpoint && checkpoint <= h.end());
    chain.extend(first.or_else(|| take(&|h| h.first == checkpoint)));
    while let Some(last) = chain.back().map(|s| s.header) {
        let next = take(&|h| h.first == last.end() && h.sequence > last.sequence);
        let Some(next) = next else { break };
        chain.push_back(next);
    }
    chain
}

/// Beyond it no LSN can be, so that sums of LSNs and lengths cannot overflow.
pub(crate) const LSN_MAX: u64 = 1 << 62;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) first: u64,
    /// 0 when the segment was never used. Of two for the same LSN the larger is valid: the other
    /// was left behind by a crash.
    pub(crate) sequence: u64,
    pub(crate) geometry: Geometry,
}

impl Header {
    pub(crate) fn end(&self) -> u64 {
        self.first + self.geometry.payload_bytes
    }

    pub(crate) fn encode(&self, into: &mut [u8]) {
        into[header::MAGIC..header::MAGIC + 8].copy_from_slice(&SEGMENT_MAGIC);
        put_u32(into, header::VERSION, FORMAT_VERSION);
        put_u32(into, header::PAYLOAD_AT, self.geometry.payload_at);
        put_u64(into, header::FIRST_LSN, self.first);
        put_u64(into, header::PAYLOAD_BYTES, self.geometry.payload_bytes);
        put_u64(into, header::SEQUENCE, self.sequence);
        let crc = crc32c(&into[..header::CRC]);
        put_u32(into, header::CRC, crc);
    }

    pub(crate) fn decode(from: &[u8], file: &str) -> Result<Option<Self>, EngineError> {
        let magic = &from[header::MAGIC..header::MAGIC + 8];
        if magic != SEGMENT_MAGIC || get_u32(from, header::CRC) != crc32c(&from[..header::CRC]) {
            return Ok(None);
        }
        check_version(get_u32(from, header::VERSION), file)?;
        let geometry = Geometry {
            payload_bytes: get_u64(from, header::PAYLOAD_BYTES),
            payload_at: get_u32(from, header::PAYLOAD_AT),
        };
        let (first, sequence) = (get_u64(from, header::FIRST_LSN), get_u64(from, header::SEQUENCE));
        let possible = geometry.is_possible()
            && first < LSN_MAX
            && first.is_multiple_of(GRANULE_BYTES)
            && sequence < u64::MAX;
        Ok(possible.then_some(Self { first, sequence, geometry }))
    }
}

pub(crate) fn check_version(found: u32, file: &str) -> Result<(), EngineError> {
    if found == FORMAT_VERSION {
        return Ok(());
    }
    let found = format!("{found} ({file})");
    Err(OpenError::Format { found, known: FORMAT_VERSION }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Header {
        let geometry = Geometry { payload_bytes: 3 * GRANULE_BYTES, payload_at: 4096 };
        Header { first: 5 * GRANULE_BYTES, sequence: 9, geometry }
    }

    #[test]
    fn it_comes_back_and_any_changed_byte_is_seen() {
        let mut bytes = vec![0; header::BYTES];
        sample().encode(&mut bytes);
        assert_eq!(Header::decode(&bytes, "x").unwrap(), Some(sample()));
        for at in 0..header::BYTES {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Header::decode(&damaged, "x").unwrap(), None, "{at}");
        }
    }

    #[test]
    fn another_version_is_refused_by_name() {
        let mut bytes = vec![0; header::BYTES];
        sample().encode(&mut bytes);
        put_u32(&mut bytes, header::VERSION, 7);
        let crc = crc32c(&bytes[..header::CRC]);
        put_u32(&mut bytes, header::CRC, crc);
        let refused = Header::decode(&bytes, "redo-000001").unwrap_err();
        assert!(refused.to_string().contains("format 7 (redo-000001)"), "{refused}");
    }
}
