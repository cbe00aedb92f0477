//! The bytes of a file in memory, shared by all copies until one of them changes.
//!
//! Invariant: a clone is a copy of its own; making it costs the same however long the file is, and
//! only blocks that one of the two changes afterwards are held twice. Blocks that were never
//! written, or with zeros only, take no memory. Bytes behind the end are zero.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// What is shared or copied at once.
pub(super) const BLOCK_BYTES: usize = 4096;

static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// `BLOCK_BYTES` bytes; absent when they are all zero.
type StoredBlock = Option<Arc<[u8]>>;

/// A file's bytes.
#[derive(Clone, Default)]
pub(super) struct Blocks {
    bytes: u64,
    /// As many as `bytes` needs.
    blocks: Arc<Vec<StoredBlock>>,
}

impl Blocks {
    pub(super) fn len(&self) -> u64 {
        self.bytes
    }

    /// Cuts the bytes or extends them with zeros.
    pub(super) fn resize(&mut self, bytes: u64) {
        let blocks = Arc::make_mut(&mut self.blocks);
        blocks.resize((bytes as usize).div_ceil(BLOCK_BYTES), None);
        let used = bytes as usize % BLOCK_BYTES;
        if let (true, 1.., Some(Some(last))) = (bytes < self.bytes, used, blocks.last_mut()) {
            Arc::make_mut(last)[used..].fill(0);
        }
        self.bytes = bytes;
    }

    fn grow(&mut self, bytes: u64) {
        if self.bytes < bytes {
            self.resize(bytes);
        }
    }

    /// Copies bytes out. They must lie before the end.
    pub(super) fn read(&self, at: u64, into: &mut [u8]) {
        for (block, within, part) in parts(at, into.len()) {
            let to = &mut into[part];
            match &self.blocks[block] {
                Some(block) => to.copy_from_slice(&block[within]),
                None => to.fill(0),
            }
        }
    }

    /// Puts bytes in, and grows as needed.
    pub(super) fn put(&mut self, at: u64, from: &[u8]) {
        self.grow(at + from.len() as u64);
        let blocks = Arc::make_mut(&mut self.blocks);
        for (block, within, part) in parts(at, from.len()) {
            put_block(&mut blocks[block], within, &from[part]);
        }
    }

    #[cfg(any(test, feature = "testing"))]
    /// Puts a whole block in without copying it.
    fn share(&mut self, number: usize, block: StoredBlock) {
        self.grow(((number + 1) * BLOCK_BYTES) as u64);
        Arc::make_mut(&mut self.blocks)[number] = block;
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut all = vec![0; self.bytes as usize];
        self.read(0, &mut all);
        all
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Blocks({} bytes)", self.bytes)
    }
}

fn put_block(block: &mut StoredBlock, within: Range<usize>, from: &[u8]) {
    match block {
        None if from == &ZEROS[..from.len()] => {}
        // A copy that is overwritten at once is not worth making.
        Some(old) if from.len() < BLOCK_BYTES || Arc::strong_count(old) == 1 => {
            Arc::make_mut(old)[within].copy_from_slice(from);
        }
        _ if from.len() == BLOCK_BYTES => *block = Some(Arc::from(from)),
        _ => {
            let mut new: Arc<[u8]> = Arc::from(&ZEROS[..]);
            Arc::make_mut(&mut new)[within].copy_from_slice(from);
            *block = Some(new);
        }
    }
}

/// The blocks that a range touches: the block's number, the range within it, and the range within
/// the bytes that go there.
fn parts(at: u64, bytes: usize) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> {
    let at = at as usize;
    let end = at + bytes;
    let numbers = if bytes == 0 { 0..0 } else { at / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES) };
    numbers.map(move |number| {
        let start = number * BLOCK_BYTES;
        let (from, to) = (at.max(start), end.min(start + BLOCK_BYTES));
        (number, from - start..to - start, from - at..to - at)
    })
}

#[cfg(any(test, feature = "testing"))]
#[derive(Debug)]
enum Piece {
    Whole(StoredBlock),
    Part(Box<[u8]>),
}

#[cfg(any(test, feature = "testing"))]
/// The bytes of one write, cut at the borders of blocks so that files can share them.
#[derive(Clone, Debug)]
pub(super) struct WritePieces {
    at: u64,
    bytes: usize,
    pieces: Arc<[Piece]>,
}

#[cfg(any(test, feature = "testing"))]
impl WritePieces {
    pub(super) fn new(at: u64, from: &[u8]) -> Self {
        let pieces = parts(at, from.len()).map(|(_, within, part)| match &from[part] {
            whole if within.len() == BLOCK_BYTES => {
                Piece::Whole((whole != &ZEROS[..]).then(|| Arc::from(whole)))
            }
            some => Piece::Part(Box::from(some)),
        });
        Self { at, bytes: from.len(), pieces: pieces.collect() }
    }

    /// Whether a disk that does not tear writes of up to `most_bytes` bytes leaves this one whole.
    pub(super) fn is_atomic(&self, most_bytes: u32) -> bool {
        let bytes = self.bytes as u64;
        let in_place = bytes.is_power_of_two() && self.at.is_multiple_of(bytes);
        in_place && bytes <= u64::from(most_bytes)
    }

    /// Blocks of a file that it touches.
    pub(super) fn blocks(&self) -> usize {
        self.pieces.len()
    }

    /// The part of it that lies in the first `count` blocks that it touches.
    pub(super) fn first_blocks(&self, count: usize) -> Self {
        let parts = parts(self.at, self.bytes).take(count);
        let bytes = parts.last().map_or(0, |(_, _, part)| part.end);
        let mut content = Blocks::default();
        self.put_part(0..bytes, &mut content);
        let mut part = vec![0; bytes];
        content.read(self.at, &mut part);
        Self::new(self.at, &part)
    }

    /// Puts all of it into a file.
    pub(super) fn put(&self, to: &mut Blocks) {
        self.put_part(0..self.bytes, to);
    }

    /// Puts into a file those sectors of so many bytes for which `arrives` returns true.
    pub(super) fn put_sectors(
        &self,
        sector: u64,
        to: &mut Blocks,
        mut arrives: impl FnMut() -> bool,
    ) {
        let mut done = 0;
        while done < self.bytes {
            let start = self.at + done as u64;
            let to_border = (sector - start % sector) as usize;
            let end = (done + to_border).min(self.bytes);
            if arrives() {
                self.put_part(done..end, to);
            }
            done = end;
        }
    }

    fn put_part(&self, range: Range<usize>, to: &mut Blocks) {
        let first = self.at as usize / BLOCK_BYTES;
        for (number, within, _) in parts(self.at + range.start as u64, range.len()) {
            let start = number * BLOCK_BYTES + within.start;
            match &self.pieces[number - first] {
                Piece::Whole(block) if within.len() == BLOCK_BYTES => {
                    to.share(number, block.clone());
                }
                Piece::Whole(Some(block)) => to.put(start as u64, &block[within]),
                Piece::Whole(None) => to.put(start as u64, &ZEROS[within]),
                Piece::Part(bytes) => {
                    // The piece begins where the write does, or at the block's first byte.
                    let skip = start - (self.at as usize).max(number * BLOCK_BYTES);
                    to.put(start as u64, &bytes[skip..skip + within.len()]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Put { at: usize, bytes: usize, zero: bool, written: bool },
        Torn { at: usize, bytes: usize, sector: u64, arrive: u64 },
        Resize { bytes: usize },
        Copy,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let at = prop_oneof![0usize..20_000, (0usize..5).prop_map(|block| block * 4096)];
        let bytes = prop_oneof![1usize..10_000, (1usize..4).prop_map(|blocks| blocks * 4096)];
        let place = (at, bytes.clone());
        let sector = prop_oneof![Just(512), Just(4096), Just(1000), Just(8192)];
        let step = prop_oneof![
            4 => (place.clone(), any::<bool>(), any::<bool>())
                .prop_map(|((at, bytes), zero, written)| Step::Put { at, bytes, zero, written }),
            2 => (place, sector, any::<u64>())
                .prop_map(|((at, bytes), sector, arrive)| Step::Torn { at, bytes, sector, arrive }),
            1 => bytes.prop_map(|bytes| Step::Resize { bytes }),
            1 => Just(Step::Copy),
        ];
        prop::collection::vec(step, 1..20)
    }

    fn put(model: &mut Vec<u8>, at: usize, bytes: &[u8]) {
        model.resize(model.len().max(at + bytes.len()), 0);
        model[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn apply(step: &Step, number: u8, blocks: &mut Blocks, model: &mut Vec<u8>) {
        match *step {
            Step::Put { at, bytes, zero, written } => {
                let bytes = vec![if zero { 0 } else { number + 1 }; bytes];
                put(model, at, &bytes);
                match written {
                    true => WritePieces::new(at as u64, &bytes).put(blocks),
                    false => blocks.put(at as u64, &bytes),
                }
            }
            Step::Torn { at, bytes, sector, arrive } => {
                let bytes: Vec<u8> = (0..bytes).map(|at| number + (at % 251) as u8 / 2).collect();
                let sectors = std::cell::Cell::new(0);
                let arrives = |number: u64| arrive >> (number % 64) & 1 == 1;
                let of = |byte: usize| byte as u64 / sector;
                for (index, byte) in bytes.iter().enumerate() {
                    if arrives(of(at + index) - of(at)) {
                        put(model, at + index, &[*byte]);
                    }
                }
                WritePieces::new(at as u64, &bytes).put_sectors(sector, blocks, || {
                    sectors.set(sectors.get() + 1);
                    arrives(sectors.get() - 1)
                });
            }
            Step::Resize { bytes } => {
                model.resize(bytes, 0);
                blocks.resize(bytes as u64);
            }
            Step::Copy => {}
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn they_are_the_bytes_of_a_model(steps in steps()) {
            let (mut blocks, mut model) = (Blocks::default(), Vec::new());
            let mut copies = Vec::new();
            for (number, step) in steps.iter().enumerate() {
                apply(step, number as u8, &mut blocks, &mut model);
                if matches!(step, Step::Copy) {
                    copies.push((blocks.clone(), model.clone()));
                }
                prop_assert_eq!(blocks.len(), model.len() as u64);
                prop_assert!(blocks.to_vec() == model);
            }
            for (blocks, model) in copies {
                prop_assert!(blocks.to_vec() == model, "a copy changed");
            }
        }
    }

    #[test]
    fn untorn_writes_are_in_their_place() {
        let written = |at, bytes| WritePieces::new(at, &vec![1; bytes]);
        assert!(written(8192, 8192).is_atomic(8192));
        assert!(!written(8192, 8192).is_atomic(4096), "too long");
        assert!(!written(4096, 8192).is_atomic(8192), "not in its place");
        assert!(!written(0, 3 * 4096).is_atomic(16384), "no power of two");
        assert!(!written(0, 512).is_atomic(0));
    }

    #[test]
    fn copies_share_what_neither_changes() {
        let mut first = Blocks::default();
        first.put(0, &[1; 3 * BLOCK_BYTES]);
        let mut copy = first.clone();
        copy.put(BLOCK_BYTES as u64, &[2; 10]);
        let shared = |number: usize| match (&first.blocks[number], &copy.blocks[number]) {
            (Some(first), Some(copy)) => Arc::ptr_eq(first, copy),
            _ => false,
        };
        assert_eq!([shared(0), shared(1), shared(2)], [true, false, true]);
        first.resize(1 << 30);
        first.put(1 << 29, &[0; 2 * BLOCK_BYTES]);
        assert_eq!(first.blocks.iter().filter(|block| block.is_some()).count(), 3);
    }
}
