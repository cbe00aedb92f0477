//! Which pair of disks has which bytes.
//!
//! Invariant: every byte of the array lies on exactly one pair; neighbouring stripes lie on
//! neighbouring pairs.

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
pub(crate) struct Layout {
    pairs: u64,
    stripe_bytes: u64,
}

impl Layout {
    pub(crate) fn new(pairs: u32, stripe_bytes: u64) -> Self {
        Self { pairs: u64::from(pairs.max(1)), stripe_bytes: stripe_bytes.max(1) }
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
        let end = at_bytes + u64::from(bytes);
        let mut from = at_bytes;
        while from < end {
            let stripe = from / self.stripe_bytes;
            let to = end.min((stripe + 1) * self.stripe_bytes);
            let pair = (stripe % self.pairs) as usize;
            let row = stripe / self.pairs * self.stripe_bytes;
            let part_bytes = (to - from) as u32;
            let at_bytes = row + from % self.stripe_bytes;
            let continued = parts
                .iter_mut()
                .find(|it| it.pair == pair && it.at_bytes + u64::from(it.bytes) == at_bytes);
            match continued {
                Some(part) => part.bytes += part_bytes,
                None => parts.push(Part { pair, at_bytes, bytes: part_bytes }),
            }
            from = to;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pair_has_everything_where_it_is() {
        let layout = Layout::new(1, 1_000);
        assert_eq!(layout.parts(700, 5_000), [Part { pair: 0, at_bytes: 700, bytes: 5_000 }]);
        assert_eq!(layout.disk_bytes(12_345), 12_345);
    }

    #[test]
    fn neighbours_lie_on_neighbouring_pairs() {
        let layout = Layout::new(3, 100);
        let part = |pair, at_bytes, bytes| Part { pair, at_bytes, bytes };
        assert_eq!(layout.parts(50, 40), [part(0, 50, 40)]);
        assert_eq!(layout.parts(150, 100), [part(1, 50, 50), part(2, 0, 50)]);
        assert_eq!(layout.parts(0, 650), [part(0, 0, 250), part(1, 0, 200), part(2, 0, 200)]);
        assert_eq!(layout.disk_bytes(601), 300);
    }

    #[test]
    fn every_byte_lies_on_one_place() {
        let layout = Layout::new(3, 64);
        let mut seen = std::collections::HashSet::new();
        for byte in 0..2_000 {
            let parts = layout.parts(byte, 1);
            assert_eq!(parts.len(), 1);
            assert!(parts[0].at_bytes < layout.disk_bytes(2_000));
            assert!(seen.insert((parts[0].pair, parts[0].at_bytes)));
        }
    }
}
