//! Which pair of disks has which bytes.
//!
//! Invariant: every byte of the array lies on exactly one pair; neighbouring stripes lie on
//! neighbouring pairs.

use std::ops::Range;

/// Bytes of a request on one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) pair: usize,
    /// First byte on each disk of the pair.
    pub(crate) at_bytes: u64,
    pub(crate) bytes: u32,
}

/// Stripes over pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stripes {
    pairs: u64,
    stripe_bytes: u64,
}

impl Stripes {
    pub(crate) fn new(pairs: u32, stripe_bytes: u64) -> Self {
        Self { pairs: u64::from(pairs.max(1)), stripe_bytes: stripe_bytes.max(1) }
    }

    /// Pairs that it lies on.
    pub(crate) fn pairs(&self) -> u64 {
        self.pairs
    }

    /// The pieces of a range with their pairs, in order; one pair has it as one piece.
    pub(crate) fn pieces(
        self,
        at_bytes: u64,
        bytes: u32,
    ) -> impl Iterator<Item = (usize, Range<u64>)> {
        let end = at_bytes + u64::from(bytes);
        let next_from = move |from: u64| match self.pairs {
            1 => end,
            _ => end.min((from / self.stripe_bytes + 1) * self.stripe_bytes),
        };
        let starts = std::iter::successors(Some(at_bytes), move |from| Some(next_from(*from)));
        starts.take_while(move |from| *from < end).map(move |from| {
            ((from / self.stripe_bytes % self.pairs) as usize, from..next_from(from))
        })
    }

    /// Bytes that each disk needs for an array of so many.
    pub(crate) fn disk_bytes(&self, capacity_bytes: u64) -> u64 {
        if self.pairs == 1 {
            return capacity_bytes;
        }
        capacity_bytes.div_ceil(self.stripe_bytes * self.pairs) * self.stripe_bytes
    }

    /// The parts of a range, at most one for each run of bytes on a pair.
    pub(crate) fn parts(&self, at_bytes: u64, bytes: u32) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for (pair, piece) in self.pieces(at_bytes, bytes) {
            let row = piece.start / self.stripe_bytes / self.pairs * self.stripe_bytes;
            let part_bytes = (piece.end - piece.start) as u32;
            let at_bytes = row + piece.start % self.stripe_bytes;
            let continued = parts
                .iter_mut()
                .find(|it| it.pair == pair && it.at_bytes + u64::from(it.bytes) == at_bytes);
            match continued {
                Some(part) => part.bytes += part_bytes,
                None => parts.push(Part { pair, at_bytes, bytes: part_bytes }),
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_has_everything_where_it_is() {
        let stripes = Stripes::new(1, 1_000);
        assert_eq!(stripes.parts(700, 5_000), [Part { pair: 0, at_bytes: 700, bytes: 5_000 }]);
        assert_eq!(stripes.disk_bytes(12_345), 12_345);
        assert_eq!(stripes.pieces(700, 5_000).collect::<Vec<_>>(), [(0, 700..5_700)]);
    }

    #[test]
    fn neighbours_lie_on_neighbouring_pairs() {
        let stripes = Stripes::new(3, 100);
        let part = |pair, at_bytes, bytes| Part { pair, at_bytes, bytes };
        assert_eq!(stripes.parts(50, 40), [part(0, 50, 40)]);
        assert_eq!(stripes.parts(150, 100), [part(1, 50, 50), part(2, 0, 50)]);
        assert_eq!(stripes.parts(0, 650), [part(0, 0, 250), part(1, 0, 200), part(2, 0, 200)]);
        assert_eq!(stripes.disk_bytes(601), 300);
        let pieces: Vec<_> = stripes.pieces(150, 160).collect();
        assert_eq!(pieces, [(1, 150..200), (2, 200..300), (0, 300..310)]);
    }

    #[test]
    fn every_byte_lies_on_one_place() {
        let stripes = Stripes::new(3, 64);
        let mut seen = std::collections::HashSet::new();
        for byte in 0..2_000 {
            let parts = stripes.parts(byte, 1);
            assert_eq!(parts.len(), 1);
            assert!(parts[0].at_bytes < stripes.disk_bytes(2_000));
            assert!(seen.insert((parts[0].pair, parts[0].at_bytes)));
        }
    }
}
