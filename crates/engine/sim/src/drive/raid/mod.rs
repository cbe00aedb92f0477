//! Disks in mirrored pairs, with and without a cache that a battery protects: what the disks report
//! is what the host gets.
//!
//! Purpose: RAID 1 and RAID 10 over [`crate::drive::hdd`]. The controller's figures are
//! assumptions, as data sheets of controllers give none: a command through firmware and bus in 50
//! to 100 us, 512 MiB of cache, stripes of 256 KiB, as controllers of 2008 to 2012 shipped.
//! Invariants: [`crate::drive::Drive`]'s. Spindles come in mirrored pairs. Every byte of the array
//! lies on exactly one pair; neighbouring stripes lie on neighbouring pairs. A request is done when
//! all its commands to disks are, plus what the controller adds. A write goes to both disks of a
//! pair, a read to the one with less to do, or to the nearer head when both have as much. A flush
//! is done when every disk has flushed.
//! It models no broken disk, no rebuild and no parity.

mod battery;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

pub use battery::{BatteryCache, ProtectedDrive};

use crate::drive::hdd::{HDD_15K, Hdd, HddParameters};
use crate::drive::{
    Agenda, Command, Device, Drive, DriveCompletion, DriveFacts, QueuedDevice, Request,
};

/// Disks in mirrored pairs, striped; one pair is RAID 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RaidParameters {
    /// Each disk.
    pub disk: HddParameters,
    /// How many; an even number.
    pub spindles: u32,
    /// Bytes that lie on one pair before the next pair follows.
    pub stripe_bytes: u64,
    /// Commands that the controller takes at a time.
    pub queue_depth: u32,
    /// What the controller adds to a command, in us.
    pub controller_overhead_us: u32,
}

impl RaidParameters {
    /// Which bytes lie on which pair.
    ///
    /// # Panics
    /// When the spindles are not pairs.
    fn stripes(&self) -> Stripes {
        let spindles = self.spindles;
        assert!(spindles >= 2 && spindles.is_multiple_of(2), "{spindles} spindles are no pairs");
        Stripes::new(spindles / 2, self.stripe_bytes)
    }
}

/// A cache of the controller that a battery keeps through a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectedCacheParameters {
    /// Most dirty bytes.
    pub cache_bytes: u64,
    /// From a command's coming to its being done when only the cache is needed, in us.
    pub latency_us: u32,
    /// What the controller's processor works on one command, in us: bounds commands per second.
    pub command_us: u32,
    /// Rate into and out of the cache.
    pub bytes_per_s: u64,
    /// What a flush takes at least, in us.
    pub flush_us_min: u32,
}

/// Two disks of 15,000 turns in RAID 1, their own write caches on, no battery.
pub const RAID1_15K: RaidParameters = RaidParameters {
    disk: HDD_15K,
    spindles: 2,
    stripe_bytes: 256 << 10,
    queue_depth: 256,
    controller_overhead_us: 50,
};

/// Eight disks of 15,000 turns in RAID 10, their own write caches off, for use behind
/// [`BATTERY_512M`].
pub const RAID10_15K: RaidParameters = RaidParameters {
    disk: HddParameters { write_cache: false, ..HDD_15K },
    spindles: 8,
    ..RAID1_15K
};

/// 512 MiB behind a battery.
pub const BATTERY_512M: ProtectedCacheParameters = ProtectedCacheParameters {
    cache_bytes: 512 << 20,
    latency_us: 70,
    command_us: 10,
    bytes_per_s: 1_000_000_000,
    flush_us_min: 0,
};

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

/// Mirrored pairs, striped, in virtual time. One pair is RAID 1.
pub type Raid = QueuedDevice<Array>;

/// Mirrored pairs behind their queue.
#[derive(Debug)]
pub struct Array {
    parameters: RaidParameters,
    capacity_bytes: u64,
    stripes: Stripes,
    pairs: Vec<[Hdd; 2]>,
    /// The next moment of each disk, kept as polling dozens of disks costs more than their work.
    next_ns: Vec<[Option<u64>; 2]>,
    /// The request of each command to a disk.
    request_of: HashMap<u64, u64>,
    /// Commands that are not done, by request.
    left: HashMap<u64, u32>,
    next_command: u64,
    leaving: Agenda<u64>,
    ended: Vec<DriveCompletion>,
}

impl Raid {
    /// An array of `capacity_bytes`; each disk has its share of them, spread over its whole stroke.
    ///
    /// # Panics
    /// When the spindles are not pairs or the capacity is 0.
    pub fn new(parameters: RaidParameters, capacity_bytes: u64, seed: u64) -> Self {
        let stripes = parameters.stripes();
        let disk_bytes = stripes.disk_bytes(capacity_bytes);
        let disk = |index: u64| {
            let seed = seed.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            Hdd::new(parameters.disk, disk_bytes, seed)
        };
        let pairs = u64::from(parameters.spindles / 2);
        Self::over(Array {
            parameters,
            capacity_bytes,
            stripes,
            next_ns: vec![[None; 2]; pairs as usize],
            pairs: (0..pairs).map(|pair| [disk(2 * pair), disk(2 * pair + 1)]).collect(),
            request_of: HashMap::new(),
            left: HashMap::new(),
            next_command: 0,
            leaving: Agenda::new(),
            ended: Vec::new(),
        })
    }
}

impl Array {
    fn command(&mut self, now_ns: u64, (pair, side): (usize, usize), request: Request) {
        let id = self.next_command;
        self.next_command += 1;
        self.request_of.insert(id, request.id);
        *self.left.entry(request.id).or_insert(0) += 1;
        let disk = &mut self.pairs[pair][side];
        disk.submit(now_ns, Request { id, ..request });
        self.next_ns[pair][side] = disk.next_event_ns();
    }

    fn better_side(&self, part: &Part) -> usize {
        let [left, right] = &self.pairs[part.pair];
        let cost = |disk: &Hdd| (disk.requests(), disk.device().turns_away(part.at_bytes));
        usize::from(cost(right) < cost(left))
    }
}

impl Device for Array {
    fn facts(&self) -> DriveFacts {
        let disks = self.pairs.iter().flatten();
        DriveFacts {
            capacity_bytes: self.capacity_bytes,
            queue_depth: self.parameters.queue_depth,
            volatile_bytes: disks.map(|disk| disk.facts().volatile_bytes).sum(),
            is_rotational: true,
        }
    }

    fn admit(&mut self, now_ns: u64, request: Request, _: u64) {
        if request.command == Command::Flush {
            let all = (0..self.pairs.len()).flat_map(|pair| [(pair, 0), (pair, 1)]);
            return all.for_each(|disk| self.command(now_ns, disk, request));
        }
        let parts = self.stripes.parts(request.at_bytes, request.bytes);
        if parts.is_empty() {
            self.leaving.note(now_ns, request.id);
        }
        for part in parts {
            let on_disk = Request { at_bytes: part.at_bytes, bytes: part.bytes, ..request };
            match request.command {
                Command::Read => {
                    self.command(now_ns, (part.pair, self.better_side(&part)), on_disk);
                }
                _ => [0, 1].iter().for_each(|&side| {
                    self.command(now_ns, (part.pair, side), on_disk);
                }),
            }
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        let disks = self.next_ns.iter().flatten().flatten().copied();
        disks.chain(self.leaving.next_ns()).min()
    }

    fn step(&mut self, now_ns: u64, done: &mut VecDeque<DriveCompletion>) {
        let disks = self.pairs.iter_mut().flatten().zip(self.next_ns.iter_mut().flatten());
        for (disk, disk_next_ns) in disks {
            if disk_next_ns.is_some_and(|next_ns| next_ns <= now_ns) {
                disk.advance(now_ns, &mut self.ended);
                *disk_next_ns = disk.next_event_ns();
            }
        }
        let overhead_ns = u64::from(self.parameters.controller_overhead_us) * 1_000;
        for DriveCompletion { id, .. } in self.ended.drain(..) {
            let Some(request) = self.request_of.remove(&id) else { continue };
            let Some(left) = self.left.get_mut(&request) else { continue };
            *left -= 1;
            if *left == 0 {
                self.left.remove(&request);
                self.leaving.note(now_ns + overhead_ns, request);
            }
        }
        while let Some((at_ns, id)) = self.leaving.due(now_ns) {
            done.push_back(DriveCompletion { id, at_ns });
        }
    }
}

/// Arrays against the one published figure and against their promises.
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bench::{BenchOutcome, BenchWindow, Load, run};
    use crate::drive::hdd::tests::{Step, run_steps, steps};

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

    fn outcome(drive: &mut dyn Drive, load: &Load, warm_up_s: f64, span_s: f64) -> BenchOutcome {
        run(drive, load, BenchWindow::seconds(warm_up_s, span_s), 5).expect("a load that fits")
    }

    /// An array as large as its disks were sold.
    fn capacity_bytes(parameters: &RaidParameters) -> u64 {
        HDD_15K.capacity_bytes * u64::from(parameters.spindles / 2)
    }

    fn plain(parameters: RaidParameters) -> Raid {
        Raid::new(parameters, capacity_bytes(&parameters), 3)
    }

    fn protected(parameters: RaidParameters, cache: ProtectedCacheParameters) -> ProtectedDrive {
        ProtectedDrive::array(parameters, cache, capacity_bytes(&parameters), 3)
    }

    /// Published (Matsunobu, "Linux I/O scheduler queue size and MyISAM performance", 2009): 575.6
    /// writes of 4 KiB a second into an index of 4.5 GB at most, on two SAS disks of 15,000 turns
    /// in RAID 1, write cache on, at most 128 requests in the block queue. On a disk of 73 GB, as
    /// that server took, the index is 6 % of the bytes, so seeks are short and most of the time is
    /// rotation. The drive chooses among what its write cache holds, and 32, 64 and 128 ranges give
    /// 566, 619 and 666 writes a second; the real index grew up to its 4.5 GB, and the file system
    /// wrote a journal, which are not modelled.
    #[test]
    fn random_writes_into_a_small_index() {
        let mut load = Load::random_write(128);
        load.region_bytes = Some(0..4_500_000_000);
        let found = outcome(&mut plain(RAID1_15K), &load, 10.0, 60.0).iops.value;
        assert!((0.8..=1.2).contains(&(found / 575.6)), "{found:.0} writes a second");
    }

    /// The same source, after 41 of 77 million rows, so with about 2.4 GB of index: 2,042.6 writes
    /// of 17.6 KiB a second, 84,402 of them in the queue, sorted and merged.
    #[test]
    fn sorted_and_merged_writes_into_a_small_index() {
        let mut array = plain(RAID1_15K);
        let (count, bytes) = (84_402_u64, 18_022);
        let step = 2_400_000_000 / count;
        let (mut now_ns, mut next, mut done) = (0, 0, Vec::new());
        while (done.len() as u64) < count {
            while next < count && next - (done.len() as u64) < 128 {
                let command = Command::Write;
                array.submit(now_ns, Request { id: next, command, at_bytes: next * step, bytes });
                next += 1;
            }
            now_ns = array.next_event_ns().expect("something is in flight");
            array.advance(now_ns, &mut done);
        }
        let found = count as f64 * 1e9 / now_ns as f64;
        eprintln!("sorted and merged: {found:.0} writes a second");
        assert!((0.8..=1.2).contains(&(found / 2_042.6)), "{found:.0} writes a second");
    }

    #[test]
    fn two_disks_read_nearly_twice_as_much_as_one() {
        let mut disk = crate::drive::hdd::Hdd::new(HDD_15K, HDD_15K.capacity_bytes, 3);
        let one = outcome(&mut disk, &Load::random_read(32), 2.0, 40.0).iops.value;
        let two = outcome(&mut plain(RAID1_15K), &Load::random_read(64), 2.0, 40.0).iops.value;
        assert!((1.8..=2.3).contains(&(two / one)), "{two:.0} {one:.0}");
    }

    #[test]
    fn more_pairs_read_and_write_more() {
        let found = |spindles, load: &Load| {
            let mut array = plain(RaidParameters { spindles, ..RAID10_15K });
            outcome(&mut array, load, 1.0, 10.0).iops.value
        };
        for load in [Load::random_read(256), Load::random_write(256)] {
            let (one, four) = (found(2, &load), found(8, &load));
            assert!((2.4..=4.4).contains(&(four / one)), "{four:.0} {one:.0}");
        }
    }

    #[test]
    fn a_protected_cache_writes_at_once_until_it_is_full() {
        let cache = ProtectedCacheParameters { cache_bytes: 16 << 20, ..BATTERY_512M };
        let load = Load::random_write(1);
        let early = outcome(&mut protected(RAID10_15K, cache), &load, 0.0, 0.1);
        let us = 1e6 / early.iops.value;
        assert!((50.0..=100.0).contains(&us), "{us:.0} us a write");
        let late = |cache| outcome(&mut protected(RAID10_15K, cache), &load, 20.0, 20.0).iops.value;
        let sorted = late(cache);
        assert!(sorted < 4_000.0, "{sorted:.0} writes a second are more than disks can");
        let small = ProtectedCacheParameters { cache_bytes: 256 << 10, ..BATTERY_512M };
        assert!(sorted > 1.5 * late(small), "a larger cache sorts more");
    }

    #[test]
    fn a_protected_flush_does_not_wait() {
        let load = Load { flush_every: Some(1), ..Load::random_write(4) };
        let flush = outcome(&mut protected(RAID10_15K, BATTERY_512M), &load, 0.0, 0.2).flush;
        let mean_us = flush.expect("flushes were done").latency_us.mean;
        assert!((50.0..=150.0).contains(&mean_us), "{mean_us}");
    }

    #[test]
    fn a_flush_without_battery_waits_for_the_disks() {
        let load = Load { flush_every: Some(8), ..Load::random_write(8) };
        let flush = outcome(&mut plain(RAID1_15K), &load, 1.0, 20.0).flush;
        let mean_us = flush.expect("flushes were done").latency_us.mean;
        assert!(mean_us > 2_000.0, "{mean_us}");
    }

    const CAPACITY_BYTES: u64 = 1 << 30;

    fn small(spindles: u32, write_cache: bool, queue_depth: u32) -> RaidParameters {
        let mut parameters = RaidParameters { spindles, queue_depth, ..RAID1_15K };
        parameters.stripe_bytes = 64 << 10;
        parameters.disk.write_cache = write_cache;
        parameters.disk.cache_bytes = 1 << 20;
        parameters.disk.write_cache_entries = 5;
        parameters
    }

    fn variants() -> impl Strategy<Value = RaidParameters> {
        let spindles = prop::sample::select(vec![2_u32, 4, 6]);
        let depth = prop::sample::select(vec![1_u32, 4, 64]);
        (spindles, any::<bool>(), depth)
            .prop_map(|(spindles, cache, depth)| small(spindles, cache, depth))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn every_request_is_done_once(
            parameters in variants(),
            steps in steps(80, 200_000),
            seed in any::<u64>(),
        ) {
            let drive = || Raid::new(parameters, CAPACITY_BYTES, seed);
            let run = || run_steps(&mut drive(), &steps, |_, _, _| {});
            prop_assert_eq!(run(), run());
        }

        #[test]
        fn every_request_to_a_protected_array_is_done_once(
            parameters in variants(),
            cache_bytes in prop::sample::select(vec![64_u64 << 10, 1 << 20, 64 << 20]),
            steps in steps(80, 200_000),
            seed in any::<u64>(),
        ) {
            let cache = ProtectedCacheParameters { cache_bytes, ..BATTERY_512M };
            let run = || {
                let mut array = ProtectedDrive::array(parameters, cache, CAPACITY_BYTES, seed);
                let done = run_steps(&mut array, &steps, |array, _, _| {
                    array.device().check_bounds();
                });
                array.device().check_clean();
                done
            };
            prop_assert_eq!(run(), run());
        }
    }

    #[test]
    fn a_write_is_done_when_both_disks_have_it() {
        let write = Step { gap_ns: 0, command: Command::WriteThrough, block: 1_000, blocks: 1 };
        let parameters = small(2, false, 8);
        let (mut both_ns, mut one_ns) = (0, 0);
        for seed in 0..200 {
            let mut array = Raid::new(parameters, CAPACITY_BYTES, seed);
            both_ns += run_steps(&mut array, &[write], |_, _, _| {})[0].at_ns;
            let mut disk = Hdd::new(parameters.disk, CAPACITY_BYTES, seed);
            one_ns += run_steps(&mut disk, &[write], |_, _, _| {})[0].at_ns;
        }
        // The later of two disks at angles of their own: two thirds of a turn, not half.
        let later_us = (both_ns - one_ns) / 200_000;
        assert!((450..1_000).contains(&later_us), "{later_us} us");
    }

    #[test]
    fn facts_say_what_a_power_cut_could_take() {
        let volatile = |write_cache| {
            Raid::new(small(4, write_cache, 8), CAPACITY_BYTES, 1).facts().volatile_bytes
        };
        assert_eq!((volatile(true), volatile(false)), (4 << 20, 0));
        let facts =
            ProtectedDrive::array(small(4, true, 8), BATTERY_512M, CAPACITY_BYTES, 1).facts();
        assert_eq!((facts.volatile_bytes, facts.queue_depth), (0, 8));
        assert_eq!(facts.capacity_bytes, CAPACITY_BYTES);
    }

    #[test]
    #[should_panic(expected = "no pairs")]
    fn spindles_come_in_pairs() {
        Raid::new(small(3, true, 8), CAPACITY_BYTES, 1);
    }

    /// Figures for the documentation: `IOSTRATA_SOAK=1 cargo test -p iostrata-sim iops_of_every --
    /// --nocapture`.
    #[test]
    fn iops_of_every_array() {
        if std::env::var_os("IOSTRATA_SOAK").is_none() {
            eprintln!("skipped: the table of figures is printed with IOSTRATA_SOAK=1");
            return;
        }
        let row = |drive: &dyn Fn() -> Box<dyn Drive>, warm_up_s: f64| {
            let reads = [1, 8, 32, 128].map(Load::random_read);
            let writes = [1, 8, 32, 128].map(Load::random_write);
            let all = reads.iter().map(|load| (load, 1.0));
            let all = all.chain(writes.iter().map(|load| (load, warm_up_s)));
            let found = all.map(|(load, warm_up_s)| {
                format!("{:6.0}", outcome(&mut *drive(), load, warm_up_s, 20.0).iops.value)
            });
            found.collect::<Vec<_>>().join(" ")
        };
        eprintln!("array: random 4 KiB reads at depth 1 8 32 128, writes the same");
        for queue_depth in [1, 32, 128] {
            let mut parameters = RAID1_15K;
            parameters.disk.queue_depth = queue_depth;
            let cached = row(&|| Box::new(plain(parameters)), 5.0);
            parameters.disk.write_cache = false;
            let through = row(&|| Box::new(plain(parameters)), 5.0);
            eprintln!("RAID 1, queue {queue_depth}, cache on:  {cached}");
            eprintln!("RAID 1, queue {queue_depth}, cache off: {through}");
            for spindles in [2, 8] {
                let parameters = RaidParameters { spindles, ..parameters };
                let found = row(&|| Box::new(protected(parameters, BATTERY_512M)), 100.0);
                eprintln!("RAID 10 of {spindles}, queue {queue_depth}, battery: {found}");
            }
        }
    }
}
