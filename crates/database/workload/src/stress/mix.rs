//! Which transaction comes next.

use iostrata_plan::OpKind;
use iostrata_stats::Random;

/// Shares of reads, read-writes and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StressMix([u64; 3]);

impl StressMix {
    /// The kinds, in the order of their shares.
    pub const KINDS: [OpKind; 3] = [OpKind::Read, OpKind::ReadWrite, OpKind::Write];

    /// With these shares; `None` where they sum up to nothing.
    pub fn new(shares: [u64; 3]) -> Option<Self> {
        let sum = shares.iter().try_fold(0_u64, |sum, share| sum.checked_add(*share));
        sum.filter(|sum| *sum > 0).map(|_| Self(shares))
    }

    /// So many reads in a hundred transactions, the others writes. More than a hundred are all.
    pub fn reads_pct(reads: u8) -> Self {
        let reads = u64::from(reads.min(100));
        Self([reads, 0, 100 - reads])
    }

    /// The kind of a transaction.
    pub(super) fn kind(self, random: &mut Random) -> OpKind {
        let mut left = random.below(self.0.iter().sum());
        for (kind, share) in Self::KINDS.into_iter().zip(self.0) {
            match left.checked_sub(share) {
                Some(rest) => left = rest,
                None => return kind,
            }
        }
        OpKind::Write
    }
}

/// A write for every read.
impl Default for StressMix {
    fn default() -> Self {
        Self([50, 0, 50])
    }
}

impl std::fmt::Display for StressMix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [reads, read_writes, writes] = self.0;
        write!(f, "{reads},{read_writes},{writes}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(mix: StressMix) -> [f64; 3] {
        let (mut counts, mut random) = ([0_u32; 3], Random::new(4));
        for _ in 0..200_000 {
            let kind = mix.kind(&mut random);
            counts[StressMix::KINDS.iter().position(|one| *one == kind).unwrap()] += 1;
        }
        counts.map(|count| f64::from(count) / 2_000.0)
    }

    #[test]
    fn kinds_come_as_often_as_their_shares_say() {
        for (mix, expected) in [
            (StressMix::default(), [50.0, 0.0, 50.0]),
            (StressMix::new([1, 2, 1]).unwrap(), [25.0, 50.0, 25.0]),
            (StressMix::reads_pct(100), [100.0, 0.0, 0.0]),
            (StressMix::reads_pct(90), [90.0, 0.0, 10.0]),
        ] {
            for (found, expected) in shares(mix).into_iter().zip(expected) {
                assert!((found - expected).abs() < 0.5, "{mix}: {found}");
                assert!(expected > 0.0 || found == 0.0, "{mix}");
            }
        }
        assert_eq!(StressMix::new([0; 3]), None);
        assert_eq!(StressMix::new([u64::MAX, 1, 0]), None);
    }
}
