//! The contents of a disk, what of them is beyond a power cut, and what a cut could take: what was
//! there before each write that is not.
//!
//! Invariants: what was flushed, written through, or fell out of the volatile cache is there after
//! every power cut; what is not may be. A number that was given out before a cut has no effect
//! after it. Writes are known in the order in which they were applied to the contents. A write
//! leaves when it is beyond a power cut; older ones that are still here then no longer affect the
//! sectors that it wrote.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io;
use std::ops::Range;

use iostrata_stats::Random;

use crate::emudisk::error::ServeError;
use crate::emudisk::fault::Tear;
use crate::emudisk::options::ServeOptions;
use crate::emudisk::store::{Contents, WriteError};

/// Contents with their durability.
#[derive(Debug)]
pub(crate) struct Medium {
    contents: Contents,
    volatile: Volatile,
    is_on: bool,
    cuts: u64,
    random: Random,
}

/// A write that was applied and is not done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingWrite {
    number: u64,
    cut: u64,
}

/// A flush that came and is not done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingFlush {
    mark: u64,
    cut: u64,
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFailure {
    /// There is no power, or the file below failed.
    Broken,
    /// The contents may not grow.
    Full,
}

impl From<WriteError> for RequestFailure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Full => Self::Full,
            WriteError::Io => Self::Broken,
        }
    }
}

impl Medium {
    /// A disk of zeros whose volatile cache holds `volatile_bytes`.
    pub(crate) fn new(options: &ServeOptions, volatile_bytes: u64) -> Result<Self, ServeError> {
        let size_bytes = options.size_bytes;
        let limit_bytes = options.store_limit_bytes.unwrap_or(size_bytes);
        Ok(Self {
            contents: Contents::new(&options.store, size_bytes, limit_bytes)?,
            volatile: Volatile::new(volatile_bytes),
            is_on: true,
            cuts: 0,
            random: Random::new(options.seed),
        })
    }

    pub(crate) fn store_bytes(&self) -> u64 {
        self.contents.bytes()
    }

    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.volatile.done_bytes()
    }

    pub(crate) fn cuts(&self) -> u64 {
        self.cuts
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) fn set_limit(&mut self, bytes: u64) {
        self.contents.set_limit(bytes);
    }

    fn powered(&self) -> Result<(), RequestFailure> {
        if self.is_on { Ok(()) } else { Err(RequestFailure::Broken) }
    }

    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> Result<(), RequestFailure> {
        self.powered()?;
        self.contents.read(at, into).map_err(|_| RequestFailure::Broken)
    }

    /// Applies a write: reads see it from now on.
    pub(crate) fn write(&mut self, at: u64, from: &[u8]) -> Result<PendingWrite, RequestFailure> {
        self.powered()?;
        let mut before = vec![0; from.len()];
        self.contents.read(at, &mut before).map_err(|_| RequestFailure::Broken)?;
        if let Err(error) = self.contents.write(at, from) {
            // A file may have taken a part of it.
            if matches!(error, WriteError::Io) || !self.is_as(at, &before) {
                self.contents.put(at, &before).map_err(|_| RequestFailure::Broken)?;
            }
            return Err(error.into());
        }
        Ok(PendingWrite { number: self.volatile.begin(at, before), cut: self.cuts })
    }

    fn is_as(&self, at: u64, before: &[u8]) -> bool {
        let mut now = vec![0; before.len()];
        self.contents.read(at, &mut now).is_ok() && now == before
    }

    /// A write is done; whether there was no power cut since it was applied.
    pub(crate) fn done(&mut self, write: PendingWrite) -> bool {
        let is_valid = write.cut == self.cuts && self.is_on;
        if is_valid {
            self.volatile.done(write.number);
        }
        is_valid
    }

    pub(crate) fn flush(&self) -> Result<PendingFlush, RequestFailure> {
        self.powered()?;
        Ok(PendingFlush { mark: self.volatile.flush_mark(), cut: self.cuts })
    }

    /// A flush is done; whether there was no power cut since it came.
    pub(crate) fn flushed(&mut self, flush: PendingFlush) -> bool {
        let is_valid = flush.cut == self.cuts && self.is_on;
        if is_valid {
            self.volatile.flushed(flush.mark);
        }
        is_valid
    }

    /// Makes a range zero, beyond a power cut at once, as a disk may.
    pub(crate) fn discard(&mut self, range: Range<u64>) -> Result<(), RequestFailure> {
        self.powered()?;
        self.contents.zero(range.clone()).map_err(|_| RequestFailure::Broken)?;
        self.volatile.replaced(&range);
        Ok(())
    }

    /// The power fails.
    pub(crate) fn cut(&mut self, tear: Option<Tear>, seed: Option<u64>) -> io::Result<()> {
        let mut own = seed.map(Random::new);
        let random = own.as_mut().unwrap_or(&mut self.random);
        self.is_on = false;
        self.cuts += 1;
        let contents = &mut self.contents;
        self.volatile.cut(tear, random, |at, before| contents.put(at, before))
    }

    /// The power is back.
    pub(crate) fn power_on(&mut self) {
        self.is_on = true;
    }
}

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
    fn done_bytes(&self) -> u64 {
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
    fn replaced(&mut self, range: &Range<u64>) {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::emudisk::options::Store;

    const SECTORS: u64 = 24;
    const SIZE: u64 = 1 << 20;
    const SECTOR: u64 = 512;

    fn medium(volatile_bytes: u64) -> Medium {
        let options = ServeOptions {
            disk: "nvme-no-plp".parse().unwrap(),
            size_bytes: SIZE,
            store: Store::Memory,
            store_limit_bytes: None,
            seed: 5,
            measured: None,
        };
        Medium::new(&options, volatile_bytes).unwrap()
    }

    fn sectors_of(medium: &Medium) -> Vec<u64> {
        let mut bytes = vec![0; (SECTORS * SECTOR) as usize];
        medium.contents.read(0, &mut bytes).unwrap();
        let value = |sector: &[u8]| u64::from_le_bytes(sector[..8].try_into().unwrap());
        bytes.chunks(SECTOR as usize).map(value).collect()
    }

    fn data(version: u64, sectors: u64) -> Vec<u8> {
        let one: Vec<u8> = version.to_le_bytes().repeat(SECTOR as usize / 8);
        one.repeat(sectors as usize)
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Write {
            at: u64,
            sectors: u64,
        },
        /// One of the writes in flight is done.
        Done(prop::sample::Index),
        FlushCame,
        FlushDone(prop::sample::Index),
        Discard {
            at: u64,
            sectors: u64,
        },
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = (0..SECTORS, 1..12_u64).prop_map(|(at, n)| (at, n.min(SECTORS - at)));
        prop_oneof![
            6 => range.clone().prop_map(|(at, sectors)| Step::Write { at, sectors }),
            5 => any::<prop::sample::Index>().prop_map(Step::Done),
            1 => Just(Step::FlushCame),
            1 => any::<prop::sample::Index>().prop_map(Step::FlushDone),
            1 => range.prop_map(|(at, sectors)| Step::Discard { at, sectors }),
        ]
    }

    /// The plain answer: every write ever, and whether it is in flight, done or safe.
    struct Write {
        at: u64,
        sectors: u64,
        version: u64,
        applied: PendingWrite,
        is_done: bool,
        is_safe: bool,
    }

    #[derive(Default)]
    struct Plain {
        writes: Vec<Write>,
        /// Done writes, by index, in the order in which they were done.
        done: Vec<usize>,
        flushes: Vec<(PendingFlush, usize)>,
    }

    impl Plain {
        fn overflow(&mut self, limit_bytes: u64) {
            let mut bytes = 0;
            for index in self.done.iter().rev() {
                let write = &mut self.writes[*index];
                bytes += write.sectors * SECTOR;
                // What is safe once is safe for good, and everything done before it is.
                write.is_safe |= bytes > limit_bytes;
            }
        }

        /// Versions that a sector may have after a cut, and which of them only through a tear.
        fn allowed(&self, sector: u64, is_torn: bool) -> BTreeSet<u64> {
            let holds = |write: &&Write| (write.at..write.at + write.sectors).contains(&sector);
            let history: Vec<&Write> = self.writes.iter().filter(holds).collect();
            let safe = history.iter().rposition(|write| write.is_safe);
            let base = safe.map_or(0, |index| history[index].version);
            let later = &history[safe.map_or(0, |index| index + 1)..];
            let may = later.iter().filter(|write| is_torn || !write.is_done);
            may.map(|write| write.version).chain([base]).collect()
        }
    }

    fn play(medium: &mut Medium, plain: &mut Plain, steps: &[Step], limit_bytes: u64) {
        for step in steps {
            match *step {
                Step::Write { at, sectors } => {
                    let version = plain.writes.len() as u64 + 1;
                    let applied = medium.write(at * SECTOR, &data(version, sectors)).unwrap();
                    let write =
                        Write { at, sectors, version, applied, is_done: false, is_safe: false };
                    plain.writes.push(write);
                }
                Step::Done(index) => {
                    let in_flight: Vec<usize> =
                        (0..plain.writes.len()).filter(|i| !plain.writes[*i].is_done).collect();
                    if !in_flight.is_empty() {
                        let index = *index.get(&in_flight);
                        assert!(medium.done(plain.writes[index].applied));
                        plain.writes[index].is_done = true;
                        plain.done.push(index);
                        plain.overflow(limit_bytes);
                    }
                }
                Step::FlushCame => plain.flushes.push((medium.flush().unwrap(), plain.done.len())),
                Step::FlushDone(index) => {
                    if !plain.flushes.is_empty() {
                        let (flush, done) = plain.flushes.remove(index.index(plain.flushes.len()));
                        assert!(medium.flushed(flush));
                        for index in &plain.done[..done] {
                            plain.writes[*index].is_safe = true;
                        }
                    }
                }
                Step::Discard { at, sectors } => {
                    medium.discard(at * SECTOR..(at + sectors) * SECTOR).unwrap();
                    // As a write of version 0 that is safe at once.
                    let applied = PendingWrite { number: u64::MAX, cut: 0 };
                    let write =
                        Write { at, sectors, version: 0, applied, is_done: true, is_safe: true };
                    plain.writes.push(write);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn a_cut_leaves_only_what_may_be_left(
            steps in proptest::collection::vec(step(), 1..60),
            tear in prop_oneof![Just(None), Just(Some(Tear::Sector)), Just(Some(Tear::Block))],
            limit_bytes in prop_oneof![Just(0), Just(8 * SECTOR), Just(1 << 30)],
            seed: u64,
        ) {
            let (mut medium, mut plain) = (medium(limit_bytes), Plain::default());
            play(&mut medium, &mut plain, &steps, limit_bytes);
            medium.cut(tear, Some(seed)).unwrap();
            for (sector, found) in sectors_of(&medium).into_iter().enumerate() {
                let allowed = plain.allowed(sector as u64, tear.is_some());
                prop_assert!(
                    allowed.contains(&found),
                    "sector {sector} holds version {found}, allowed are {allowed:?}"
                );
            }
            // What is left survives the next cut, and earlier numbers have no effect.
            let left = sectors_of(&medium);
            medium.power_on();
            for write in &plain.writes {
                prop_assert!(!medium.done(write.applied));
            }
            medium.cut(Some(Tear::Sector), None).unwrap();
            prop_assert_eq!(left, sectors_of(&medium));
        }
    }

    /// Versions that the sectors of two writes end with, over many seeds.
    fn outcomes(is_done: bool, tear: Option<Tear>) -> BTreeSet<Vec<u64>> {
        let one = |seed| {
            let mut medium = medium(1 << 30);
            for version in 1..=2 {
                let applied = medium.write(0, &data(version, 16)).unwrap();
                assert!(!is_done || medium.done(applied));
            }
            medium.cut(tear, Some(seed)).unwrap();
            sectors_of(&medium)[..16].to_vec()
        };
        (0..400).map(one).collect()
    }

    #[test]
    fn every_version_of_a_torn_sector_can_be_left() {
        for (is_done, tear) in
            [(true, Some(Tear::Sector)), (false, None), (false, Some(Tear::Sector))]
        {
            let outcomes = outcomes(is_done, tear);
            assert!(outcomes.len() > 300, "only {} outcomes", outcomes.len());
            for sector in 0..16 {
                let versions: BTreeSet<u64> = outcomes.iter().map(|left| left[sector]).collect();
                assert_eq!(versions, [0, 1, 2].into());
            }
        }
    }

    #[test]
    fn blocks_are_torn_whole() {
        let outcomes = outcomes(true, Some(Tear::Block));
        assert_eq!(outcomes.len(), 9, "two blocks with three versions each");
        for left in outcomes {
            assert!(left[..8].iter().all(|version| *version == left[0]));
            assert!(left[8..].iter().all(|version| *version == left[8]));
        }
    }

    #[test]
    fn without_a_tear_done_writes_are_lost_whole() {
        assert_eq!(outcomes(true, None), [vec![0; 16]].into());
    }

    #[test]
    fn a_disk_without_volatile_cache_loses_nothing_that_was_done() {
        let mut medium = medium(0);
        let older = medium.write(0, &data(1, 1)).unwrap();
        let newer = medium.write(0, &data(2, 1)).unwrap();
        // The older one is still in flight, but was written over by one that is done.
        assert!(medium.done(newer));
        medium.cut(Some(Tear::Sector), Some(1)).unwrap();
        assert_eq!(sectors_of(&medium)[0], 2);
        assert!(!medium.done(older));
        assert_eq!(medium.read(0, &mut [0]), Err(RequestFailure::Broken));
    }

    #[test]
    fn a_refused_write_changes_nothing() {
        let mut medium = medium(1 << 30);
        medium.set_limit(4096);
        let first = medium.write(0, &data(1, 8)).unwrap();
        assert_eq!(medium.write(4096 - 512, &data(2, 2)).unwrap_err(), RequestFailure::Full);
        assert_eq!(sectors_of(&medium)[7], 1);
        assert!(medium.done(first));
        assert_eq!((medium.unflushed_bytes(), medium.store_bytes()), (4096, 4096));
        let flush = medium.flush().unwrap();
        assert!(medium.flushed(flush));
        assert_eq!(medium.unflushed_bytes(), 0);
    }
}
