//! Which request comes next: kind, file, offset; Zipfian choice and random orders for it.
//!
//! Invariant: every request is one whole block inside a file, aligned to the block; a seed and a
//! worker number replay the same requests whatever the API or the speed. It reads no clock.

use iostrata_io::OpKind;
use iostrata_plan::{Access, IoSpec, Mix, Preparation, Sharing};
use iostrata_stats::{Random, split_mix};

/// One request, before it is given a buffer and a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Read, write, flush or discard.
    pub kind: OpKind,
    /// Index of the file.
    pub file: u32,
    /// Offset in it, in bytes.
    pub offset: u64,
}

/// The kind under which a request of a file is counted.
#[inline(always)]
pub(crate) fn measured(kind: OpKind) -> iostrata_plan::OpKind {
    match kind {
        OpKind::Read => iostrata_plan::OpKind::Read,
        OpKind::Write => iostrata_plan::OpKind::Write,
        OpKind::Sync => iostrata_plan::OpKind::Sync,
        OpKind::Trim => iostrata_plan::OpKind::Trim,
    }
}

/// Chooses the requests of one worker.
#[derive(Clone, Debug)]
pub struct Generator {
    random: Random,
    mix: Mix,
    order: Order,
    block_bytes: u64,
    blocks_per_file: u64,
    files: u64,
    /// Whether the worker ends after it went through its blocks once.
    once: bool,
}

#[derive(Clone, Debug)]
enum Order {
    Sequential { next: u64, first: u64, end: u64 },
    Uniform,
    Zipfian { ranks: Zipf, spread: Permutation },
    Coverage { pass: Permutation, next: u64, worker: u64, workers: u64, seed: u64 },
}

impl Generator {
    /// The requests of worker `worker` of `spec.jobs`.
    pub fn new(spec: &IoSpec, worker: u32) -> Self {
        let block_bytes = u64::from(spec.block_bytes);
        let blocks_per_file = spec.file_bytes() / block_bytes;
        let files = u64::from(spec.files);
        let blocks = blocks_per_file * files;
        let order = Order::new(spec, blocks, u64::from(worker));
        let shares_parts = spec.variation.sharing == Sharing::Parts;
        Self {
            random: Random::of_stream(spec.seed, u64::from(worker)),
            mix: spec.mix,
            order,
            block_bytes,
            blocks_per_file,
            files,
            once: shares_parts && spec.preparation != Preparation::Written && spec.mix.writes(),
        }
    }

    /// The next request; `None` when each block that is worth writing once has been written.
    #[inline(always)]
    pub fn next_request(&mut self) -> Option<Request> {
        let kind = self.next_kind();
        let block = match &mut self.order {
            Order::Uniform => self.random.below(self.blocks_per_file * self.files),
            Order::Zipfian { ranks, spread } => spread.at(ranks.draw(&mut self.random)),
            Order::Sequential { next, first, end } => {
                if *next == *end {
                    if self.once {
                        return None;
                    }
                    *next = *first;
                }
                *next += 1;
                *next - 1
            }
            Order::Coverage { .. } => self.next_covered()?,
        };
        Some(self.place(kind, block))
    }

    #[inline(always)]
    fn next_kind(&mut self) -> OpKind {
        match self.mix {
            Mix::Read => OpKind::Read,
            Mix::Write | Mix::TrimWrite => OpKind::Write,
            Mix::Trim => OpKind::Trim,
            Mix::FlushOnly(_) => OpKind::Sync,
            Mix::Both { read_pct } => {
                if self.random.below(100) < u64::from(read_pct) {
                    OpKind::Read
                } else {
                    OpKind::Write
                }
            }
        }
    }

    #[inline(always)]
    fn place(&self, kind: OpKind, block: u64) -> Request {
        let (file, block) = if self.files == 1 {
            (0, block)
        } else {
            (block / self.blocks_per_file, block % self.blocks_per_file)
        };
        let offset = if kind == OpKind::Sync { 0 } else { block * self.block_bytes };
        Request { kind, file: file as u32, offset }
    }

    fn next_covered(&mut self) -> Option<u64> {
        let once = self.once;
        let Order::Coverage { pass, next, worker, workers, seed } = &mut self.order else {
            return None;
        };
        let blocks = self.blocks_per_file * self.files;
        if *next >= blocks {
            if once {
                return None;
            }
            *seed = seed.wrapping_add(1);
            *pass = Permutation::new(blocks, *seed);
            *next = *worker % blocks;
        }
        let block = pass.at(*next);
        *next += *workers;
        Some(block)
    }
}

impl Order {
    fn new(spec: &IoSpec, blocks: u64, worker: u64) -> Self {
        let (number, jobs) = (worker, u64::from(spec.jobs));
        // A job that goes over its files alone is the only one of its order.
        let (worker, workers, seed) = match spec.variation.sharing {
            Sharing::Parts => (number, jobs, spec.seed),
            Sharing::Whole | Sharing::Own => (0, 1, spec.seed ^ (number << 40)),
        };
        match spec.access {
            Access::Uniform => Order::Uniform,
            Access::Sequential => {
                let (first, end) = part(blocks, worker, workers);
                Order::Sequential { next: first, first, end }
            }
            Access::Zipfian(theta) => Order::Zipfian {
                ranks: Zipf::new(blocks, theta.0),
                spread: Permutation::new(blocks, spec.seed),
            },
            // All workers share one order and take turns in it, so that together they cover it.
            Access::Coverage => Order::Coverage {
                pass: Permutation::new(blocks, seed),
                next: worker % blocks,
                worker,
                workers,
                seed,
            },
        }
    }
}

/// Worker `worker`'s part of the blocks; never empty, so parts overlap when there are fewer blocks
/// than workers.
fn part(blocks: u64, worker: u64, workers: u64) -> (u64, u64) {
    let first = blocks * worker / workers;
    let end = blocks * (worker + 1) / workers;
    if first < end { (first, end) } else { (first.min(blocks - 1), first.min(blocks - 1) + 1) }
}

// Zipfian choice without tables.
//
// Rejection-inversion: Hoermann and Derflinger, "Rejection-inversion to generate variates from
// monotone discrete distributions" (1996). Exact for any n, a few nanoseconds per draw.
// Rank 0 is the likeliest; spreading ranks over the files is the caller's business.

/// Chooses ranks below n with probability proportional to `1 / (rank + 1)^theta`.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: f64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// Ranks below `n`, skew `theta` above 0 and not 1.
    pub fn new(n: u64, theta: f64) -> Self {
        assert!(n > 0 && theta > 0.0 && theta != 1.0, "{n} ranks, skew {theta}");
        let mut zipf =
            Self { n: n as f64, theta, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.n + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - 2.0_f64.powf(-theta));
        zipf
    }

    /// A rank.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(u);
            let k = x.round().clamp(1.0, self.n);
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - k.powf(-self.theta) {
                return k as u64 - 1;
            }
        }
    }

    /// The integral of x^-theta.
    fn integral(&self, x: f64) -> f64 {
        x.powf(1.0 - self.theta) / (1.0 - self.theta)
    }

    fn inverse(&self, area: f64) -> f64 {
        (area * (1.0 - self.theta)).max(0.0).powf(1.0 / (1.0 - self.theta))
    }
}

// A random order of the numbers below n that needs no memory.
//
// Invariant: a bijection; every number below n comes from exactly one number below n.
// A Feistel network over the next even power of two, walked until the result is below n (Black and
// Rogaway, "Ciphers with arbitrary finite domains", 2002): at most four steps on average.

const ROUNDS: usize = 4;

/// A random bijection of the numbers below n.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The bijection of one seed over the numbers below `n`.
    pub fn new(n: u64, seed: u64) -> Self {
        assert!(n > 0, "nothing to permute");
        let bits = (64 - (n - 1).leading_zeros()).max(2);
        let mut state = seed;
        Self {
            n,
            half_bits: bits.div_ceil(2),
            keys: std::array::from_fn(|_| split_mix(&mut state)),
        }
    }

    /// Where number `index` goes.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.n);
        let mut value = index;
        loop {
            value = self.scramble(value);
            if value < self.n {
                return value;
            }
        }
    }

    #[inline]
    fn scramble(&self, value: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            let mixed = (right ^ key).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            (left, right) = (right, left ^ ((mixed ^ (mixed >> 29)) & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_plan::{FlushMethod, ZipfTheta};
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn spec(access: Access, mix: Mix, jobs: u32, files: u32, blocks: u64) -> IoSpec {
        let mut spec = IoSpec::new("x");
        (spec.access, spec.mix, spec.jobs, spec.files) = (access, mix, jobs, files);
        spec.size_bytes = blocks * 4096 * u64::from(files);
        spec
    }

    #[test]
    fn workers_together_cover_every_block_once_per_pass() {
        let spec = spec(Access::Coverage, Mix::Write, 3, 2, 50);
        let mut seen = HashSet::new();
        for worker in 0..3 {
            let mut generator = Generator::new(&spec, worker);
            let share = (0..100).filter(|block| block % 3 == u64::from(worker)).count();
            for _ in 0..share {
                let request = generator.next_request().unwrap();
                assert!(seen.insert((request.file, request.offset)), "{request:?} came twice");
            }
        }
        assert_eq!(seen.len(), 100);
    }

    #[test]
    fn appends_end_at_the_end_of_the_file() {
        let mut spec = spec(Access::Sequential, Mix::Write, 1, 1, 5);
        spec.preparation = Preparation::Empty;
        let mut generator = Generator::new(&spec, 0);
        let offsets: Vec<u64> =
            std::iter::from_fn(|| generator.next_request()).map(|request| request.offset).collect();
        assert_eq!(offsets, [0, 4096, 8192, 12288, 16384]);
    }

    #[test]
    fn the_mix_is_what_was_asked_for() {
        let mut generator =
            Generator::new(&spec(Access::Uniform, Mix::Both { read_pct: 70 }, 1, 1, 1000), 0);
        let reads = (0..100_000)
            .filter_map(|_| generator.next_request())
            .filter(|request| request.kind == OpKind::Read)
            .count();
        assert!((69_300..70_700).contains(&reads), "{reads}");
        let flush = Mix::FlushOnly(FlushMethod::Fsync);
        let mut generator = Generator::new(&spec(Access::Uniform, flush, 1, 2, 10), 0);
        assert_eq!(generator.next_request().map(|request| request.kind), Some(OpKind::Sync));
    }

    proptest! {
        #[test]
        fn requests_stay_inside_the_files(
            blocks in 1_u64..200, files in 1_u32..5, jobs in 1_u32..9, seed: u64, which in 0..4,
        ) {
            let access = [
                Access::Sequential, Access::Uniform, Access::Coverage,
                Access::Zipfian(ZipfTheta(0.9)),
            ][which as usize];
            let mut spec = spec(access, Mix::Both { read_pct: 50 }, jobs, files, blocks);
            spec.seed = seed;
            for worker in 0..jobs {
                let mut generator = Generator::new(&spec, worker);
                for _ in 0..500 {
                    let request = generator.next_request().unwrap();
                    prop_assert!(request.file < files);
                    prop_assert!(request.offset + 4096 <= spec.file_bytes());
                    prop_assert_eq!(request.offset % 4096, 0);
                }
            }
        }
    }
}

#[cfg(test)]
mod zipf_tests {
    use super::*;

    #[test]
    fn ranks_come_as_often_as_the_formula_says() {
        const DRAWS: u32 = 400_000;
        for (n, theta) in [(10_u64, 0.5), (1000, 0.99), (100_000, 0.8), (5_000, 1.2)] {
            let zipf = Zipf::new(n, theta);
            let mut random = Random::of_stream(11, n);
            let mut counts = vec![0_u32; n as usize];
            for _ in 0..DRAWS {
                counts[zipf.draw(&mut random) as usize] += 1;
            }
            let total: f64 = (1..=n).map(|rank| (rank as f64).powf(-theta)).sum();
            for rank in [0, 1, 2, 7] {
                let share = (rank as f64 + 1.0).powf(-theta) / total;
                let (found, expected) = (f64::from(counts[rank]), share * f64::from(DRAWS));
                assert!(
                    (found - expected).abs() < 5.0 * expected.sqrt() + 1.0,
                    "n {n} theta {theta} rank {rank}: {found} instead of {expected}"
                );
            }
        }
    }
}

#[cfg(test)]
mod permutation_tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_comes_once(n in 1_u64..3000, seed: u64) {
            let permutation = Permutation::new(n, seed);
            let mut seen = vec![false; n as usize];
            for index in 0..n {
                let value = permutation.at(index);
                prop_assert!(value < n && !seen[value as usize]);
                seen[value as usize] = true;
            }
        }
    }

    #[test]
    fn neighbours_are_scattered() {
        let permutation = Permutation::new(1 << 20, 3);
        let near = (0..10_000).filter(|i| permutation.at(*i).abs_diff(permutation.at(i + 1)) < 16);
        assert!(near.count() < 20);
    }
}
