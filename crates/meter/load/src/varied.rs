//! Requests of streams that are not plain: several block sizes, files in turn, runs and gaps,
//! random ones among sequential ones, discards before writes.
//!
//! Invariant: every request lies inside one file, and a random offset is a multiple of its
//! direction's smallest block or of what it is aligned to; it never ends by itself. Apart from the
//! plain generator, which it would slow down.

use iostrata_io::OpKind;
use iostrata_plan::{
    Access, BlockSizes, Blocks, Distribution, FileOrder, IoSpec, Mix, Step, Strides, Zone,
};

use crate::generator::{Permutation, Request, Zipf};
use iostrata_stats::Random;

/// Chooses the requests of one job of a stream that is not plain.
#[derive(Clone, Debug)]
pub(crate) struct MixedRequests {
    random: Random,
    mix: Mix,
    sizes: [Sizes; 2],
    files: Files,
    places: Places,
    step: Step,
    run: Run,
    /// What random offsets are multiples of, by direction.
    grids: [u64; 2],
    /// What places are counted in.
    unit: u64,
    base: u64,
    /// Where the requests of each direction go on in each file, and how many in a hundred do not.
    following: Option<SequentialEnds>,
    /// The block that was discarded and is written next.
    discarded: Option<(Request, u32)>,
    /// The zone that requests keep to; the files are then as large as one.
    zone: Option<CurrentZone>,
}

#[derive(Clone, Copy, Debug)]
struct CurrentZone {
    strides: Strides,
    /// Bytes of the file.
    whole: u64,
    /// Where it begins, and what was moved in it.
    begin: u64,
    moved: u64,
}

impl CurrentZone {
    /// Takes note of a request at `offset` of the zone; `None` where it is in the next zone.
    fn place(&mut self, offset: u64, len: u64) -> Option<u64> {
        let Strides { moved_bytes, .. } = self.strides;
        if self.moved >= moved_bytes || self.begin + offset + len > self.whole {
            return None;
        }
        self.moved += len;
        Some(self.begin + offset)
    }

    fn advance(&mut self, len: u64) {
        let Strides { zone_bytes, skipped_bytes, .. } = self.strides;
        self.moved = 0;
        self.begin += zone_bytes + skipped_bytes;
        if self.begin + len > self.whole {
            self.begin = 0;
        }
    }
}

#[derive(Clone, Debug)]
struct SequentialEnds {
    random_pct: [u8; 2],
    /// The end of the last request, by direction and file.
    ends: [Box<[u64]>; 2],
}

#[derive(Clone, Debug, Default)]
struct Run {
    left: u32,
    file: u32,
    /// Of the last request.
    offset: u64,
    /// Behind it.
    end: u64,
}

/// The sizes of one direction, laid out for drawing.
#[derive(Clone, Debug)]
struct Sizes {
    least: u32,
    draw: Draw,
}

#[derive(Clone, Debug)]
enum Draw {
    One,
    /// This many multiples of the least.
    Multiples(u64),
    /// The least and up to so many bytes more.
    Beyond(u64),
    /// Sizes, each with the sum of the weights up to it.
    Shares {
        up_to: Box<[(u64, u32)]>,
        total: u64,
    },
}

#[derive(Clone, Debug)]
struct Files {
    count: u32,
    bytes: u64,
    order: FileOrder,
    now: u32,
    left: u32,
    /// The next byte of a sequential stream, by file; the next number of a pass over a file.
    next: Box<[u64]>,
    /// Where writes of a sequential mix have places of their own in `next`, behind those of reads.
    apart: bool,
}

/// How the next place inside a file is chosen; blocks are those of the smallest size.
#[derive(Clone, Debug)]
enum Places {
    Sequential,
    Uniform,
    Zipfian {
        ranks: Zipf,
        spread: Permutation,
    },
    Coverage {
        passes: Box<[Permutation]>,
        blocks: u64,
        seed: u64,
    },
    /// Zones: the sum of the requests up to the end of each, its first block and their number.
    Zoned(Box<[(f64, u64, u64)]>),
    Pareto {
        power: f64,
        blocks: u64,
        spread: Permutation,
    },
    Normal {
        deviation: f64,
        blocks: u64,
    },
}

impl MixedRequests {
    /// The requests of job `worker`.
    pub(crate) fn new(spec: &IoSpec, worker: u32) -> Self {
        let sizes = match &spec.variation.blocks {
            Blocks::Fixed => [0, 1].map(|_| Sizes::new(&BlockSizes::One(spec.block_bytes))),
            Blocks::ByKind { read, write } => {
                [read, write].map(|sizes| Sizes::of(sizes, spec.variation.bs_unaligned))
            }
        };
        let order = match (spec.variation.file_order, spec.access) {
            (FileOrder::Sequential, Access::Sequential) => FileOrder::Sequential,
            // Random requests go to all files; there is no one file to finish first.
            (FileOrder::Sequential, _) => FileOrder::Random(1),
            (order, _) => order,
        };
        let zone = spec.variation.strides.map(|strides| CurrentZone {
            strides,
            whole: spec.file_bytes(),
            begin: 0,
            moved: 0,
        });
        let files = Files {
            count: spec.files,
            bytes: used_bytes(spec),
            order,
            now: if order == FileOrder::Sequential { 0 } else { spec.files - 1 },
            left: 0,
            next: vec![0; 2 * spec.files as usize].into_boxed_slice(),
            apart: spec.variation.directions_apart,
        };
        let align = spec.variation.align_bytes;
        let grids = [0, 1].map(|at| u64::from(align.map_or(sizes[at].least, |align| align[at])));
        let unit = align.map_or(spec.block_bytes, |[read, write]| read.min(write));
        let unit = u64::from(unit);
        Self {
            random: Random::of_stream(spec.seed, u64::from(worker)),
            mix: spec.mix,
            grids,
            sizes,
            places: Places::new(spec, unit, spec.seed ^ (u64::from(worker) << 40)),
            files,
            step: spec.variation.step,
            run: Run::default(),
            unit,
            base: spec.variation.offset_bytes,
            following: spec.variation.random_pct.map(|random_pct| {
                let ends = || vec![0; spec.files as usize].into_boxed_slice();
                SequentialEnds { random_pct, ends: [ends(), ends()] }
            }),
            discarded: None,
            zone,
        }
    }

    /// The next request.
    pub(crate) fn next_request(&mut self) -> (Request, u32) {
        let kind = self.next_kind();
        self.next_of(kind)
    }

    /// The next request of a kind, whatever the mix has.
    pub(crate) fn next_of(&mut self, kind: OpKind) -> (Request, u32) {
        if let Some((request, len)) = self.discarded.take() {
            return (Request { kind: OpKind::Write, ..request }, len);
        }
        if kind == OpKind::Sync {
            let file = self.files.choose(&mut self.random);
            return (Request { kind, file, offset: 0 }, 0);
        }
        let direction = usize::from(kind != OpKind::Read);
        let len = self.sizes[direction].draw(&mut self.random);
        let (file, offset) = match self.zone {
            None => self.place(u64::from(len), direction),
            Some(_) => self.place_in_zone(u64::from(len), direction),
        };
        let end = offset + u64::from(len);
        self.run = Run { left: self.run.left, file, offset, end };
        if let Some(following) = &mut self.following {
            following.ends[direction][file as usize] = end;
        }
        let request = Request { kind, file, offset: self.base + offset };
        self.discarded = (self.mix == Mix::TrimWrite).then_some((request, len));
        (request, len)
    }

    /// Whether a block was discarded that is to be written next.
    pub(crate) fn owes_a_write(&self) -> bool {
        self.discarded.is_some()
    }

    /// A kind, as often as the mix has it.
    pub(crate) fn next_kind(&mut self) -> OpKind {
        match self.mix {
            Mix::Read => OpKind::Read,
            Mix::Write => OpKind::Write,
            Mix::FlushOnly(_) => OpKind::Sync,
            Mix::Trim | Mix::TrimWrite => OpKind::Trim,
            Mix::Both { read_pct } if self.random.below(100) < u64::from(read_pct) => OpKind::Read,
            Mix::Both { .. } => OpKind::Write,
        }
    }

    fn place(&mut self, len: u64, direction: usize) -> (u32, u64) {
        if matches!(self.places, Places::Sequential) {
            return self.place_in_sequence(len, direction);
        }
        let fits = |offset: u64| offset + len <= self.files.bytes;
        if self.run.left > 0 {
            let follows = match self.step {
                Step::Run(_) => self.run.end,
                _ => self.run.offset,
            };
            if fits(follows) {
                self.run.left -= 1;
                return (self.run.file, follows);
            }
        }
        self.run.left = match self.step {
            Step::Run(count) | Step::Repeat(count) => count - 1,
            Step::None | Step::Skip(_) | Step::Back(_) => 0,
        };
        let file = self.files.choose(&mut self.random);
        if let Some(following) = &self.following
            && self.random.below(100) >= u64::from(following.random_pct[direction])
        {
            let end = following.ends[direction][file as usize];
            return (file, if end + len <= self.files.bytes { end } else { 0 });
        }
        let grid = self.grids[direction];
        let last = (self.files.bytes - len) / grid;
        let offset = match &mut self.places {
            Places::Uniform | Places::Sequential => self.random.below(last + 1) * grid,
            places => {
                let next = &mut self.files.next[file as usize];
                let at = places.block(file, next, &mut self.random) * self.unit;
                (at / grid).min(last) * grid
            }
        };
        (file, offset)
    }

    /// The place of a request in the zone of now, or in the next one where that is done with.
    fn place_in_zone(&mut self, len: u64, direction: usize) -> (u32, u64) {
        let (file, offset) = self.place(len, direction);
        let Some(zone) = &mut self.zone else { return (file, offset) };
        if let Some(offset) = zone.place(offset, len) {
            return (file, offset);
        }
        zone.advance(len);
        self.files.next.fill(0);
        let (file, offset) = self.place(len, direction);
        let Some(zone) = &mut self.zone else { return (file, offset) };
        // Behind the end of the file a zone is cut short.
        (file, zone.place(offset, len).unwrap_or(zone.begin))
    }

    fn place_in_sequence(&mut self, len: u64, direction: usize) -> (u32, u64) {
        let mut file = self.files.choose(&mut self.random);
        let first = if self.files.apart { direction * self.files.count as usize } else { 0 };
        if self.files.next[first + file as usize] + len > self.files.bytes {
            self.files.next[first + file as usize] = 0;
            if self.files.order == FileOrder::Sequential {
                self.files.now = (file + 1) % self.files.count;
                file = self.files.now;
                self.files.next[first + file as usize] = 0;
            }
        }
        let next = &mut self.files.next[first + file as usize];
        let offset = *next;
        *next += len;
        match self.step {
            Step::Skip(bytes) => *next = next.saturating_add(bytes),
            // As in fio, before the beginning is as far from the end.
            Step::Back(bytes) => {
                let end = self.files.bytes.saturating_sub(bytes);
                *next = next.checked_sub(bytes).unwrap_or(end);
            }
            Step::None | Step::Run(_) | Step::Repeat(_) => {}
        }
        (file, offset)
    }
}

/// Bytes of a file that requests are in at one time.
fn used_bytes(spec: &IoSpec) -> u64 {
    let bytes = spec.file_bytes();
    spec.variation.strides.map_or(bytes, |strides| strides.zone_bytes.min(bytes))
}

impl Files {
    fn choose(&mut self, random: &mut Random) -> u32 {
        let every = match self.order {
            FileOrder::Sequential => return self.now,
            FileOrder::RoundRobin(every) | FileOrder::Random(every) => every.max(1),
        };
        if self.left == 0 {
            self.left = every;
            self.now = match self.order {
                FileOrder::Random(_) => random.below(u64::from(self.count)) as u32,
                _ => (self.now + 1) % self.count,
            };
        }
        self.left -= 1;
        self.now
    }
}

impl Places {
    fn new(spec: &IoSpec, unit: u64, seed: u64) -> Self {
        let blocks = (used_bytes(spec) / unit).max(1);
        if let Some(distribution) = &spec.variation.distribution {
            return Self::distributed(distribution, blocks, spec.seed);
        }
        match spec.access {
            Access::Sequential => Places::Sequential,
            Access::Uniform => Places::Uniform,
            Access::Zipfian(theta) => Places::Zipfian {
                ranks: Zipf::new(blocks, theta.0),
                spread: Permutation::new(blocks, spec.seed),
            },
            Access::Coverage => {
                let pass = |file| Permutation::new(blocks, seed ^ (u64::from(file) << 20));
                Places::Coverage { passes: (0..spec.files).map(pass).collect(), blocks, seed }
            }
        }
    }

    fn distributed(distribution: &Distribution, blocks: u64, seed: u64) -> Self {
        match distribution {
            Distribution::Zoned(zones) => {
                let (mut requests, mut size) = (0.0, 0.0);
                let zone = |zone: &Zone| {
                    let at = |pct: f64| (blocks as f64 * pct / 100.0) as u64;
                    let first = at(size).min(blocks - 1);
                    requests += zone.requests_pct;
                    size += zone.size_pct;
                    (requests, first, (at(size).min(blocks) - first).max(1))
                };
                Places::Zoned(zones.iter().map(zone).collect())
            }
            // fio's: the share of the requests that goes to the share `h` of the blocks is 1 - h.
            Distribution::Pareto(h) => Places::Pareto {
                power: h.ln() / (1.0 - h).ln(),
                blocks,
                spread: Permutation::new(blocks, seed),
            },
            Distribution::Normal(pct) => {
                Places::Normal { deviation: blocks as f64 * pct / 100.0, blocks }
            }
        }
    }

    /// The block that is next in a file; `next` counts within its pass.
    fn block(&mut self, file: u32, next: &mut u64, random: &mut Random) -> u64 {
        match self {
            Places::Sequential | Places::Uniform => 0,
            Places::Zipfian { ranks, spread } => spread.at(ranks.draw(random)),
            Places::Zoned(zones) => {
                let at = random.uniform() * 100.0;
                let found = zones.iter().find(|(up_to, _, _)| at < *up_to).or(zones.last());
                found.map_or(0, |(_, first, count)| first + random.below(*count))
            }
            Places::Pareto { power, blocks, spread } => {
                let rank = (*blocks as f64 * random.uniform().powf(*power)) as u64;
                spread.at(rank.min(*blocks - 1))
            }
            Places::Normal { deviation, blocks } => loop {
                let at = (*blocks as f64 / 2.0 + random.normal() * *deviation).floor();
                if (0.0..*blocks as f64).contains(&at) {
                    break at as u64;
                }
            },
            Places::Coverage { passes, blocks, seed } => {
                let pass = &mut passes[file as usize];
                if *next == *blocks {
                    *next = 0;
                    *seed = seed.wrapping_add(1);
                    *pass = Permutation::new(*blocks, *seed ^ (u64::from(file) << 20));
                }
                *next += 1;
                pass.at(*next - 1)
            }
        }
    }
}

impl Sizes {
    fn of(sizes: &BlockSizes, is_unaligned: bool) -> Self {
        match sizes {
            BlockSizes::Range { least, most } if is_unaligned => {
                Self { least: *least, draw: Draw::Beyond(u64::from(most - least)) }
            }
            sizes => Self::new(sizes),
        }
    }

    fn new(sizes: &BlockSizes) -> Self {
        let draw = match sizes {
            BlockSizes::One(_) => Draw::One,
            BlockSizes::Range { least, most } => Draw::Multiples(u64::from(most / least).max(1)),
            BlockSizes::Shares(shares) => {
                let mut total = 0;
                let up_to = shares.iter().map(|share| {
                    total += u64::from(share.weight);
                    (total, share.bytes)
                });
                let up_to = up_to.collect();
                Draw::Shares { up_to, total: total.max(1) }
            }
        };
        Self { least: sizes.least(), draw }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        match &self.draw {
            Draw::One => self.least,
            Draw::Multiples(count) => self.least * (1 + random.below(*count) as u32),
            Draw::Beyond(bytes) => self.least + random.below(bytes + 1) as u32,
            Draw::Shares { up_to, total } => {
                let at = random.below(*total);
                up_to.iter().find(|(end, _)| at < *end).map_or(self.least, |(_, bytes)| *bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_plan::{BlockShare, Sharing, ZipfTheta};
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn spec(access: Access, files: u32, blocks: u64) -> IoSpec {
        let mut spec = IoSpec::new("x");
        (spec.access, spec.files) = (access, files);
        spec.size_bytes = blocks * 4096 * u64::from(files);
        spec.variation.sharing = Sharing::Whole;
        spec
    }

    fn requests(spec: &IoSpec, count: usize) -> Vec<(Request, u32)> {
        let mut varied = MixedRequests::new(spec, 0);
        (0..count).map(|_| varied.next_request()).collect()
    }

    #[test]
    fn files_take_turns_and_each_goes_on_where_it_was() {
        let mut spec = spec(Access::Sequential, 2, 3);
        spec.variation.file_order = FileOrder::RoundRobin(2);
        let found: Vec<(u32, u64)> = requests(&spec, 8)
            .into_iter()
            .map(|(request, _)| (request.file, request.offset / 4096))
            .collect();
        let expected = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 0), (1, 2), (1, 0)];
        assert_eq!(found, expected);
    }

    #[test]
    fn zones_are_used_one_behind_the_other() {
        let mut one = spec(Access::Sequential, 1, 8);
        let strides = |moved: u64, zone: u64, skipped: u64| {
            let [moved_bytes, zone_bytes, skipped_bytes] =
                [moved, zone, skipped].map(|blocks| blocks * 4096);
            Some(Strides { moved_bytes, zone_bytes, skipped_bytes })
        };
        let blocks = |spec: &IoSpec, count| -> Vec<u64> {
            requests(spec, count).iter().map(|(request, _)| request.offset / 4096).collect()
        };
        one.variation.strides = strides(2, 2, 1);
        assert_eq!(blocks(&one, 8), [0, 1, 3, 4, 6, 7, 0, 1]);
        one.variation.strides = strides(3, 2, 2);
        assert_eq!(blocks(&one, 7), [0, 1, 0, 4, 5, 4, 0], "a zone is gone over again");
        one.variation.strides = strides(1, 3, 0);
        assert_eq!(blocks(&one, 4), [0, 3, 6, 0], "a part of a zone");
        one.access = Access::Coverage;
        one.variation.strides = strides(4, 4, 0);
        let found = blocks(&one, 8);
        let sorted = |part: &[u64]| {
            let mut part = part.to_vec();
            part.sort_unstable();
            part
        };
        assert_eq!(sorted(&found[..4]), [0, 1, 2, 3], "{found:?}");
        assert_eq!(sorted(&found[4..]), [4, 5, 6, 7], "{found:?}");
    }

    #[test]
    fn reads_and_writes_of_a_mix_go_through_the_file_each_by_themselves() {
        let mut one = spec(Access::Sequential, 1, 1000);
        one.mix = Mix::Both { read_pct: 50 };
        one.variation.directions_apart = true;
        let found = requests(&one, 100);
        for kind in [OpKind::Read, OpKind::Write] {
            let of_kind = found.iter().filter(|(request, _)| request.kind == kind);
            let offsets: Vec<u64> = of_kind.map(|(request, _)| request.offset / 4096).collect();
            assert!(offsets.iter().copied().eq(0..offsets.len() as u64), "{offsets:?}");
        }
    }

    #[test]
    fn sizes_of_a_range_may_be_any_number_of_bytes() {
        let mut one = spec(Access::Sequential, 1, 1000);
        let range = BlockSizes::Range { least: 1000, most: 5000 };
        one.variation.blocks = Blocks::ByKind { read: range.clone(), write: range };
        one.variation.bs_unaligned = true;
        let lengths: Vec<u32> = requests(&one, 200).iter().map(|(_, len)| *len).collect();
        assert!(lengths.iter().all(|len| (1000..=5000).contains(len)), "{lengths:?}");
        assert!(lengths.iter().any(|len| len % 1000 != 0) && lengths.iter().any(|len| *len > 4500));
    }

    #[test]
    fn runs_repeats_and_gaps() {
        let mut one = spec(Access::Uniform, 1, 1000);
        one.variation.step = Step::Run(4);
        for run in requests(&one, 40).chunks(4) {
            let follows = run.windows(2).all(|pair| pair[1].0.offset == pair[0].0.offset + 4096);
            assert!(
                follows || run.iter().any(|(request, _)| request.offset == 999 * 4096),
                "{run:?}"
            );
        }
        let mut back = spec(Access::Sequential, 1, 5);
        back.variation.step = Step::Back(8192);
        let blocks = |spec: &IoSpec, count| -> Vec<u64> {
            requests(spec, count).iter().map(|(request, _)| request.offset / 4096).collect()
        };
        assert_eq!(blocks(&back, 7), [0, 3, 2, 1, 0, 3, 2]);
        one.variation.step = Step::Repeat(4);
        assert!(requests(&one, 40).chunks(4).all(|run| run.iter().all(|one| *one == run[0])));
        let mut gaps = spec(Access::Sequential, 1, 10);
        gaps.variation.step = Step::Skip(8192);
        gaps.variation.offset_bytes = 1 << 20;
        let blocks: Vec<u64> =
            requests(&gaps, 5).iter().map(|(one, _)| (one.offset - (1 << 20)) / 4096).collect();
        assert_eq!(blocks, [0, 3, 6, 9, 0]);
    }

    #[test]
    fn sizes_come_as_often_as_their_weights_say() {
        let mut spec = spec(Access::Uniform, 1, 1000);
        let share = |bytes, weight| BlockShare { bytes, weight };
        spec.mix = Mix::Both { read_pct: 50 };
        spec.variation.blocks = Blocks::ByKind {
            read: BlockSizes::Shares(vec![share(4096, 10), share(65536, 90)]),
            write: BlockSizes::Range { least: 4096, most: 16384 },
        };
        let requests = requests(&spec, 40_000);
        let count = |kind, len| {
            let of_kind = requests.iter().filter(|(one, _)| one.kind == kind);
            let all = of_kind.clone().count() as f64;
            of_kind.filter(|(_, bytes)| *bytes == len).count() as f64 / all
        };
        assert!((count(OpKind::Read, 65536) - 0.9).abs() < 0.01);
        for len in [4096, 8192, 12288, 16384] {
            assert!((count(OpKind::Write, len) - 0.25).abs() < 0.02, "{len}");
        }
    }

    #[test]
    fn requests_between_random_ones_follow_the_last_of_their_direction() {
        let mut spec = spec(Access::Coverage, 1, 1000);
        spec.mix = Mix::Both { read_pct: 50 };
        spec.variation.random_pct = Some([100, 0]);
        let found = requests(&spec, 400);
        let of = |kind| found.iter().filter(move |(one, _)| one.kind == kind);
        let writes: Vec<u64> = of(OpKind::Write).map(|(one, _)| one.offset / 4096).collect();
        let in_order: Vec<u64> = (0..writes.len() as u64).collect();
        assert_eq!(writes, in_order);
        let reads: HashSet<u64> = of(OpKind::Read).map(|(one, _)| one.offset).collect();
        assert_eq!(reads.len(), of(OpKind::Read).count(), "each block once in a pass");
        spec.variation.random_pct = Some([25, 25]);
        let mut ends = [u64::MAX; 2];
        let mut following = 0;
        let many = requests(&spec, 40_000);
        for (one, len) in &many {
            let end = &mut ends[usize::from(one.kind == OpKind::Write)];
            following += u32::from(one.offset == *end);
            *end = one.offset + u64::from(*len);
        }
        let share = f64::from(following) / many.len() as f64;
        assert!((share - 0.75).abs() < 0.02, "{share}");
    }

    #[test]
    fn random_offsets_are_multiples_of_what_they_are_aligned_to() {
        let mut spec = spec(Access::Uniform, 1, 1000);
        spec.variation.align_bytes = Some([16_384; 2]);
        assert!(requests(&spec, 500).iter().all(|(one, _)| one.offset % 16_384 == 0));
        spec.block_bytes = 16_384;
        spec.variation.align_bytes = Some([4096; 2]);
        let found = requests(&spec, 500);
        assert!(found.iter().any(|(one, _)| one.offset % 16_384 != 0), "finer than a block");
        let end = found.iter().map(|(one, len)| one.offset + u64::from(*len)).max().unwrap();
        assert!(end <= spec.file_bytes());
    }

    #[test]
    fn offsets_are_distributed_as_asked() {
        let mut spec = spec(Access::Uniform, 1, 1000);
        let mut counts = |distribution| {
            spec.variation.distribution = Some(distribution);
            let mut counts = vec![0.0; 1000];
            for (one, _) in requests(&spec, 50_000) {
                counts[(one.offset / 4096) as usize] += 1.0 / 50_000.0;
            }
            counts
        };
        let zone = |requests_pct, size_pct| Zone { requests_pct, size_pct };
        let zoned = counts(Distribution::Zoned(vec![zone(70.0, 10.0), zone(30.0, 90.0)]));
        let first: f64 = zoned[..100].iter().sum();
        assert!((first - 0.7).abs() < 0.02, "{first}");
        let mut pareto = counts(Distribution::Pareto(0.2));
        pareto.sort_by(|one: &f64, other| other.total_cmp(one));
        let hot: f64 = pareto[..200].iter().sum();
        assert!((hot - 0.8).abs() < 0.03, "a fifth of the blocks has four fifths: {hot}");
        let normal = counts(Distribution::Normal(10.0));
        let middle: f64 = normal[400..600].iter().sum();
        assert!((middle - 0.683).abs() < 0.02, "within one deviation: {middle}");
    }

    #[test]
    fn each_block_is_discarded_and_then_written() {
        let mut spec = spec(Access::Uniform, 2, 1000);
        spec.mix = Mix::TrimWrite;
        for pair in requests(&spec, 100).chunks(2) {
            let [(trim, _), (write, _)] = pair else { panic!("an odd number") };
            assert_eq!((trim.kind, write.kind), (OpKind::Trim, OpKind::Write));
            assert_eq!((trim.file, trim.offset), (write.file, write.offset));
        }
        spec.mix = Mix::Trim;
        assert!(requests(&spec, 100).iter().all(|(one, _)| one.kind == OpKind::Trim));
    }

    #[test]
    fn a_pass_covers_each_file_before_anything_comes_twice() {
        let mut spec = spec(Access::Coverage, 2, 50);
        spec.variation.file_order = FileOrder::RoundRobin(1);
        let mut seen = HashSet::new();
        for (request, _) in requests(&spec, 100) {
            assert!(seen.insert((request.file, request.offset)), "{request:?} came twice");
        }
    }

    proptest! {
        #[test]
        fn requests_stay_inside_the_files(
            blocks in 16_u64..200, files in 1_u32..5, seed: u64, which in 0..4, step in 0..4,
            order in 0..3, most in 1_u32..16,
        ) {
            let access = [
                Access::Sequential, Access::Uniform, Access::Coverage,
                Access::Zipfian(ZipfTheta(1.2)),
            ][which as usize];
            let mut spec = spec(access, files, blocks);
            (spec.seed, spec.mix) = (seed, Mix::Both { read_pct: 50 });
            spec.variation.step =
                [Step::None, Step::Run(3), Step::Repeat(2), Step::Skip(73_728)][step as usize];
            spec.variation.file_order =
                [FileOrder::Sequential, FileOrder::RoundRobin(2), FileOrder::Random(3)]
                    [order as usize];
            spec.variation.blocks = Blocks::ByKind {
                read: BlockSizes::Range { least: 4096, most: 4096 * most },
                write: BlockSizes::One(8192),
            };
            let mut used = HashSet::new();
            for (request, len) in requests(&spec, 500) {
                prop_assert!(request.file < files);
                prop_assert!(request.offset + u64::from(len) <= spec.file_bytes());
                prop_assert_eq!(request.offset % 4096, 0);
                used.insert(request.file);
            }
            prop_assert_eq!(used.len() as u32, files);
        }
    }
}
