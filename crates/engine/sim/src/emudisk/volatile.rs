//! Writes that a power cut could take: what was there before each of them.
//!
//! Invariant: writes are known in the order in which they were applied to the contents. A write
//! leaves when it is beyond a power cut; older ones that are still here then have no say any more
//! in the sectors that it wrote. What is written here is bytes and order; when a write is done or
//! flushed is decided outside.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io;
use std::ops::Range;

use iostrata_stats::Random;

use crate::emudisk::fault::Tear;

/// A sector, the least that is kept or lost.
const SECTOR_BYTES: u64 = 512;

/// One write that was applied.
#[derive(Debug)]
struct AppliedWrite {
    range: Range<u64>,
    /// What was there before; `None` for zeros.
    before: Option<Box<[u8]>>,
    is_done: bool,
    /// Sectors (numbers) in which a newer write is beyond a power cut.
    settled: Vec<Range<u64>>,
}

impl AppliedWrite {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn is_settled(&self, sector: u64) -> bool {
        self.settled.iter().any(|sectors| sectors.contains(&sector))
    }

    /// What was at these bytes before.
    fn before(&self, range: &Range<u64>) -> Vec<u8> {
        let (from, to) = (range.start - self.range.start, range.end - self.range.start);
        match &self.before {
            Some(before) => before[from as usize..to as usize].to_vec(),
            None => vec![0; (to - from) as usize],
        }
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Volatile {
    /// Most bytes of done writes that are kept here; older ones are beyond a power cut.
    limit_bytes: u64,
    entries: BTreeMap<u64, AppliedWrite>,
    next: u64,
    /// Done writes that are still here, in the order in which they were done.
    done: VecDeque<u64>,
    /// Writes that ever left `done`; with its length, the number of writes ever done.
    left: u64,
    done_bytes: u64,
}

/// Sectors that a range touches.
fn sectors(range: &Range<u64>) -> Range<u64> {
    range.start / SECTOR_BYTES..range.end.div_ceil(SECTOR_BYTES)
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.max(other.start)..one.end.min(other.end)
}

impl Volatile {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            entries: BTreeMap::new(),
            next: 0,
            done: VecDeque::new(),
            left: 0,
            done_bytes: 0,
        }
    }

    /// Bytes of done writes that a power cut could take.
    pub(crate) fn done_bytes(&self) -> u64 {
        self.done_bytes
    }

    /// A write is applied from `at`, over what was there `before`. Returns its number.
    pub(crate) fn begin(&mut self, at: u64, before: Vec<u8>) -> u64 {
        let range = at..at + before.len() as u64;
        let is_zero = before.iter().all(|byte| *byte == 0);
        let before = (!is_zero).then(|| before.into_boxed_slice());
        let entry = AppliedWrite { range, before, is_done: false, settled: Vec::new() };
        self.entries.insert(self.next, entry);
        self.next += 1;
        self.next - 1
    }

    /// A write is done.
    pub(crate) fn done(&mut self, number: u64) {
        let Some(entry) = self.entries.get_mut(&number) else { return };
        entry.is_done = true;
        self.done_bytes += entry.bytes();
        self.done.push_back(number);
        while self.done_bytes > self.limit_bytes
            && let Some(oldest) = self.leave()
        {
            self.settle(&[oldest]);
        }
    }

    fn leave(&mut self) -> Option<u64> {
        let number = self.done.pop_front()?;
        self.left += 1;
        self.done_bytes -= self.entries.get(&number).map_or(0, AppliedWrite::bytes);
        Some(number)
    }

    /// What a flush that comes now makes safe: everything done so far.
    pub(crate) fn flush_mark(&self) -> u64 {
        self.left + self.done.len() as u64
    }

    /// A flush is done that came at this mark.
    pub(crate) fn flushed(&mut self, mark: u64) {
        let mut numbers = Vec::new();
        while self.left < mark
            && let Some(number) = self.leave()
        {
            numbers.push(number);
        }
        self.settle(&numbers);
    }

    /// These writes are beyond a power cut.
    fn settle(&mut self, numbers: &[u64]) {
        let mut ranges = Vec::with_capacity(numbers.len());
        for number in numbers {
            ranges.extend(self.entries.remove(number).map(|entry| (*number, entry.range)));
        }
        let Some(newest) = numbers.iter().max() else { return };
        for (number, entry) in self.entries.range_mut(..newest) {
            for (settled, range) in &ranges {
                let shared = overlap(&sectors(range), &sectors(&entry.range));
                if settled > number && !shared.is_empty() {
                    entry.settled.push(shared);
                }
            }
        }
    }

    /// Something that is beyond a power cut at once took the place of a range.
    pub(crate) fn replaced(&mut self, range: &Range<u64>) {
        for entry in self.entries.values_mut() {
            let shared = overlap(&sectors(range), &sectors(&entry.range));
            if !shared.is_empty() {
                entry.settled.push(shared);
            }
        }
    }

    /// The power fails: `put` is given what comes back, last first. Writes in flight keep or lose
    /// each piece by itself; done ones do with a `tear`, and are lost whole without.
    pub(crate) fn cut(
        &mut self,
        tear: Option<Tear>,
        random: &mut Random,
        mut put: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let piece_bytes = tear.unwrap_or(Tear::Sector).bytes();
        let mut decided: HashSet<u64> = HashSet::new();
        let entries = std::mem::take(&mut self.entries);
        self.left += self.done.len() as u64;
        self.done.clear();
        self.done_bytes = 0;
        for entry in entries.values().rev() {
            let may_be_kept = !entry.is_done || tear.is_some();
            for piece in entry.range.start / piece_bytes..entry.range.end.div_ceil(piece_bytes) {
                let is_kept = may_be_kept && random.below(2) == 0;
                let piece = piece * piece_bytes..(piece + 1) * piece_bytes;
                for sector in sectors(&overlap(&piece, &entry.range)) {
                    if decided.contains(&sector) || entry.is_settled(sector) {
                        continue;
                    }
                    if is_kept {
                        decided.insert(sector);
                        continue;
                    }
                    let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                    let bytes = overlap(&bytes, &entry.range);
                    put(bytes.start, &entry.before(&bytes))?;
                }
            }
        }
        Ok(())
    }
}
