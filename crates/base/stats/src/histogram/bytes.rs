//! Latency histograms as bytes.
//!
//! Purpose: keep a histogram in a file or send it to another process. The form is HdrHistogram's
//! V2 with deflate, which every HdrHistogram tool reads, followed by a trailer of 28 bytes with
//! what the buckets round away: `IOS1`, the sum of latencies (16 bytes) and the maximum (8 bytes),
//! both in nanoseconds, big endian.
//! Invariants: reading back gives an equal histogram; bytes from elsewhere without the trailer are
//! accepted, their mean and maximum then as exact as their buckets.
//! It frames nothing: the caller keeps the length.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::de::Error as _;
use thiserror::Error;

use super::{HIGH_NS, LatencyHistogram, index_of, middle_ns};

/// First bytes of the trailer.
const TRAILER_MAGIC: &[u8; 4] = b"IOS1";
/// Length of the trailer in bytes.
const TRAILER_BYTES: usize = 4 + 16 + 8;

/// Why a histogram could not be written as bytes.
#[derive(Debug, Error)]
#[error("the latency histogram of {count} requests could not be encoded: {reason}")]
pub struct HistogramEncodeError {
    /// Requests in the histogram.
    pub count: u64,
    /// The encoder's message.
    pub reason: String,
}

/// Why bytes are not a latency histogram.
#[derive(Debug, Error)]
pub enum HistogramDecodeError {
    /// The bytes are not an HdrHistogram in format V2, deflated or not.
    #[error("{bytes} bytes are not an HdrHistogram (V2): {reason}; write the file again")]
    NotAHistogram {
        /// Length of what was given.
        bytes: usize,
        /// The decoder's message.
        reason: String,
    },
    /// A value lies beyond 1,000 s.
    #[error(
        "the histogram holds a latency of {max_ns} ns, more than 1,000 s; is its unit nanoseconds?"
    )]
    TooSlow {
        /// The largest value found.
        max_ns: u64,
    },
    /// Trailer and buckets do not belong together.
    #[error(
        "the trailer (sum {sum_ns} ns, maximum {max_ns} ns) does not fit the {count} latencies in \
         the buckets; the bytes are damaged, write the file again"
    )]
    TrailerMismatch {
        /// Sum of latencies found in the trailer.
        sum_ns: u128,
        /// Maximum found in the trailer.
        max_ns: u64,
        /// Latencies in the buckets.
        count: u64,
    },
    /// Bytes follow the histogram that are no trailer.
    #[error("{bytes} unknown bytes follow the histogram; give it without what follows")]
    UnknownTail {
        /// How many.
        bytes: usize,
    },
}

/// An empty histogram of theirs with the buckets of ours.
pub(crate) fn hdrhistogram() -> Histogram<u64> {
    match Histogram::new_with_bounds(1, HIGH_NS, 2) {
        Ok(buckets) => buckets,
        Err(error) => unreachable!("the bounds of a latency histogram are constants: {error}"),
    }
}

impl LatencyHistogram {
    /// The histogram as bytes, V2 with deflate and a trailer; a few hundred bytes as a rule.
    ///
    /// # Errors
    /// When the encoder fails; a latency histogram is far below every limit it has.
    pub fn to_bytes(&self) -> Result<Vec<u8>, HistogramEncodeError> {
        let (mut bytes, mut buckets) = (Vec::new(), hdrhistogram());
        for (index, count) in self.held() {
            buckets.saturating_record_n(middle_ns(index), count);
        }
        V2DeflateSerializer::new().serialize(&buckets, &mut bytes).map_err(|error| {
            HistogramEncodeError { count: self.count(), reason: error.to_string() }
        })?;
        bytes.extend_from_slice(TRAILER_MAGIC);
        bytes.extend_from_slice(&u128::from(self.sum_ns).to_be_bytes());
        bytes.extend_from_slice(&self.max_ns.to_be_bytes());
        Ok(bytes)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote, or an HdrHistogram V2 of nanoseconds that
    /// another tool wrote.
    ///
    /// # Errors
    /// [`HistogramDecodeError`], which names what was found.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HistogramDecodeError> {
        let mut rest = bytes;
        let read: Histogram<u64> = Deserializer::new().deserialize(&mut rest).map_err(|error| {
            HistogramDecodeError::NotAHistogram { bytes: bytes.len(), reason: error.to_string() }
        })?;
        let mut histogram = Self::default();
        for step in read.iter_recorded() {
            let ns = read.lowest_equivalent(step.value_iterated_to());
            if ns > HIGH_NS {
                return Err(HistogramDecodeError::TooSlow { max_ns: read.max() });
            }
            histogram.add_count(index_of(ns), step.count_at_value());
        }
        match rest.len() {
            0 => histogram.sum_from_buckets(),
            TRAILER_BYTES => histogram.sum_from_trailer(rest)?,
            bytes => return Err(HistogramDecodeError::UnknownTail { bytes }),
        }
        Ok(histogram)
    }

    /// Mean and maximum as good as the buckets have them.
    fn sum_from_buckets(&mut self) {
        let sums =
            self.held().map(|(bucket, count)| u128::from(middle_ns(bucket)) * u128::from(count));
        self.sum_ns = u64::try_from(sums.sum::<u128>()).unwrap_or(u64::MAX);
        self.max_ns = self.held().last().map_or(0, |(bucket, _)| middle_ns(bucket));
    }

    /// Exact mean and maximum, checked against the buckets.
    fn sum_from_trailer(&mut self, trailer: &[u8]) -> Result<(), HistogramDecodeError> {
        let unknown = || HistogramDecodeError::UnknownTail { bytes: trailer.len() };
        let (magic, rest) = trailer.split_first_chunk::<4>().ok_or_else(unknown)?;
        let (sum, max) = rest.split_first_chunk::<16>().ok_or_else(unknown)?;
        let max = <&[u8; 8]>::try_from(max).map_err(|_| unknown())?;
        if magic != TRAILER_MAGIC {
            return Err(unknown());
        }
        let sum_ns = u128::from_be_bytes(*sum);
        self.sum_ns = u64::try_from(sum_ns).unwrap_or(u64::MAX);
        self.max_ns = u64::from_be_bytes(*max);
        let count = u128::from(self.count());
        let slowest = self.held().last().map(|(bucket, _)| bucket);
        let fits = slowest == Some(index_of(self.max_ns.min(HIGH_NS)))
            && sum_ns <= count * u128::from(self.max_ns)
            && sum_ns >= u128::from(self.max_ns);
        if fits || (count == 0 && sum_ns == 0 && self.max_ns == 0) {
            return Ok(());
        }
        let max_ns = self.max_ns;
        Err(HistogramDecodeError::TrailerMismatch { sum_ns, max_ns, count: self.count() })
    }
}

impl serde::Serialize for LatencyHistogram {
    /// As [`to_bytes`](Self::to_bytes).
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = self.to_bytes().map_err(serde::ser::Error::custom)?;
        serializer.serialize_bytes(&bytes)
    }
}

impl<'de> serde::Deserialize<'de> for LatencyHistogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_bytes(&Vec::<u8>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn filled(seed: u64, n: usize) -> LatencyHistogram {
        let (mut rng, mut histogram) = (Random::new(seed), LatencyHistogram::new());
        (0..n).for_each(|_| histogram.record_ns((rng.uniform() * 27.0).exp() as u64));
        histogram
    }

    #[test]
    fn reading_back_gives_an_equal_histogram() {
        for n in [0, 1, 2, 100, 10_000] {
            let histogram = filled(n as u64, n);
            let bytes = histogram.to_bytes().unwrap();
            assert_eq!(LatencyHistogram::from_bytes(&bytes).unwrap(), histogram);
        }
    }

    #[test]
    fn without_its_trailer_it_is_still_within_one_percent() {
        let histogram = filled(7, 1_000);
        let bytes = histogram.to_bytes().unwrap();
        let read = LatencyHistogram::from_bytes(&bytes[..bytes.len() - TRAILER_BYTES]).unwrap();
        let (ours, theirs) = (histogram.summary().unwrap(), read.summary().unwrap());
        assert_eq!(read.count(), histogram.count());
        assert!((ours.mean / theirs.mean - 1.0).abs() < 0.01);
        assert!((ours.max / theirs.max - 1.0).abs() < 0.01);
    }

    #[test]
    fn damage_is_an_error_and_never_a_panic() {
        let histogram = filled(8, 500);
        let bytes = histogram.to_bytes().unwrap();
        for length in 0..bytes.len() {
            // Only the checksum behind the last bucket can be missed.
            let cut = LatencyHistogram::from_bytes(&bytes[..length]);
            assert!(cut.map_or(true, |read| read.held().eq(histogram.held())), "cut at {length}");
        }
        let mut rng = Random::new(9);
        for _ in 0..3_000 {
            let mut damaged = bytes.clone();
            let at = rng.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << rng.below(8);
            drop(LatencyHistogram::from_bytes(&damaged));
        }
        let noise: Vec<u8> = (0..100).map(|_| rng.below(256) as u8).collect();
        assert!(LatencyHistogram::from_bytes(&noise).is_err());
    }

    #[test]
    fn a_trailer_of_another_histogram_is_refused() {
        let (one, other) = (filled(10, 50).to_bytes().unwrap(), filled(11, 5_000));
        let tail = other.to_bytes().unwrap();
        let mut mixed = one[..one.len() - TRAILER_BYTES].to_vec();
        mixed.extend_from_slice(&tail[tail.len() - TRAILER_BYTES..]);
        let error = LatencyHistogram::from_bytes(&mixed).unwrap_err();
        assert!(matches!(error, HistogramDecodeError::TrailerMismatch { .. }), "{error}");
    }
}
