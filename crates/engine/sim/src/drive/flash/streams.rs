//! How random the writes have been lately.
//!
//! A write that begins where one of the last few ended continues a stream: blocks filled by streams
//! become invalid as a whole when they are written over, so cleaning them moves little.

use super::parameters::PAGE_BYTES;

/// Streams that are told apart.
const STREAMS: usize = 16;
/// Pages after which what was written before hardly counts.
const MEMORY_PAGES: f64 = 4096.0;

/// The ends of the last streams.
pub(super) struct Streams {
    ends: [u64; STREAMS],
    oldest: usize,
    block_bytes: f64,
}

impl Streams {
    pub(super) fn new(block_pages: u32) -> Self {
        let block_bytes = f64::from(block_pages) * f64::from(PAGE_BYTES);
        Self { ends: [u64::MAX; STREAMS], oldest: 0, block_bytes }
    }

    /// The random share after a write.
    pub(super) fn after(&mut self, at_bytes: u64, bytes: u32, random_share: f64) -> f64 {
        let end = at_bytes + u64::from(bytes);
        let is_random = match self.ends.iter_mut().find(|known| **known == at_bytes) {
            Some(known) => {
                *known = end;
                0.0
            }
            None => {
                self.ends[self.oldest] = end;
                self.oldest = (self.oldest + 1) % STREAMS;
                // A write as long as a block makes a whole block invalid wherever it lies.
                let beyond_page = f64::from(bytes.saturating_sub(PAGE_BYTES));
                (1.0 - beyond_page / self.block_bytes).max(0.0)
            }
        };
        let weight = (f64::from(bytes.div_ceil(PAGE_BYTES)) / MEMORY_PAGES).min(1.0);
        random_share + weight * (is_random - random_share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_sequential_and_scattered_writes_random() {
        let mut streams = Streams::new(64);
        let mut share = 1.0;
        // Two interleaved streams.
        for at in 0..20_000_u64 {
            let base = (at % 2) << 40;
            share = streams.after(base + at / 2 * 4096, 4096, share);
        }
        assert!(share < 0.01, "{share}");
        for at in 0..20_000_u64 {
            share = streams.after(at * 1_000_003 * 4096, 4096, share);
        }
        assert!(share > 0.95, "{share}");
    }
}
