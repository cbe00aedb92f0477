//! Flash behind a controller: a command takes its turn at the controller, its data crosses the
//! link, and its pages are read from or programmed to dies.
//!
//! Purpose: rates and latencies of a data sheet at any depth, a write cache that fills, and dies
//! that clean blocks when erased pages run out, so that steady random writes are slower than fresh
//! ones and concurrent reads wait for an erase now and then. What a drive is made of is here too,
//! and how a data sheet's rates follow from it: a drive behind SATA, an enterprise and a client
//! drive behind NVMe; `docs/disks.md` has the sources and the reasoning.
//! It keeps no map of pages: a page's die follows from its address, writes go to any die, what is
//! still valid in a block is a share. It does not read ahead, and a read of a page that still lies
//! in the write cache is a read of a die.

mod die;

use std::collections::VecDeque;

use iostrata_stats::Random;

use super::{Agenda, Command, Device, DriveCompletion, DriveFacts, QueuedDevice, Request};
use die::{Cache, Die, Wearing, Work};

/// Bytes that are mapped, programmed and moved as one.
pub const PAGE_BYTES: u32 = 4096;

/// What becomes of done writes at a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// Lost; a flush drains the cache.
    Volatile,
    /// Kept by capacitors; a flush has nothing to do.
    Protected,
    /// There is none: a write is done when it is programmed.
    Off,
}

/// How much has been written to the drive before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wear {
    /// Never written: a whole drive of erased blocks.
    Fresh,
    /// Written over many times: only the reserve is erased.
    Used,
}

/// What a flash drive is made of. Times in ns, rates per second.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashParameters {
    /// Commands that it takes at a time.
    pub queue_depth: u32,
    /// Dies (or channels of dies that can't overlap) that work at the same time.
    pub dies: u32,
    /// What the controller spends on a read before the next command's turn.
    pub read_command_ns: u64,
    /// The same on a write.
    pub write_command_ns: u64,
    /// What a read waits apart from controller, die and link, without keeping others waiting.
    pub read_overhead_ns: u64,
    /// The same for a write.
    pub write_overhead_ns: u64,
    /// A die's time for reading a page.
    pub read_page_ns: u64,
    /// A die's time for programming a page.
    pub program_page_ns: u64,
    /// A die's time for erasing a block.
    pub erase_ns: u64,
    /// Pages of a block.
    pub block_pages: u32,
    /// The link towards the host, bytes per second.
    pub link_read_bytes_per_s: u64,
    /// The link from the host, bytes per second.
    pub link_write_bytes_per_s: u64,
    /// Pages that the write cache holds.
    pub cache_pages: u32,
    /// What becomes of them at a power cut.
    pub cache: WriteCache,
    /// What a flush takes after the cache is drained.
    pub flush_ns: u64,
    /// What it takes beyond programming until a write is found again after a power cut.
    pub through_ns: u64,
    /// Pages of erased blocks that a used drive keeps in reserve.
    pub reserve_pages: u64,
    /// Random writes of a page per second when the reserve is used up.
    pub random_write_iops: f64,
    /// Sequential writes in bytes per second when the reserve is used up.
    pub sequential_write_bytes_per_s: f64,
    /// At the beginning.
    pub wear: Wear,
}

impl FlashParameters {
    /// The same drive, never written.
    pub fn fresh(self) -> Self {
        Self { wear: Wear::Fresh, ..self }
    }

    /// What holds for it with a capacity.
    fn facts(&self, capacity_bytes: u64) -> DriveFacts {
        let volatile_bytes = match self.cache {
            WriteCache::Volatile => u64::from(self.cache_pages) * u64::from(PAGE_BYTES),
            WriteCache::Protected | WriteCache::Off => 0,
        };
        DriveFacts {
            capacity_bytes,
            queue_depth: self.queue_depth,
            volatile_bytes,
            is_rotational: false,
        }
    }

    /// A die's time for moving a page that is still valid out of a block to be erased.
    pub fn move_page_ns(&self) -> u64 {
        self.read_page_ns + self.program_page_ns
    }

    /// Share of a block that is still valid when it is cleaned under random writes.
    pub fn valid_share_random(&self) -> f64 {
        self.valid_share(self.random_write_iops)
    }

    /// The same under sequential writes.
    pub fn valid_share_sequential(&self) -> f64 {
        self.valid_share(self.sequential_write_bytes_per_s / f64::from(PAGE_BYTES))
    }

    /// The share `v` of valid pages in a block of `B` pages with which the dies program
    /// `pages_per_s`: each page costs its programming and its part of the cleaning,
    /// `p + (v B m + e) / ((1 - v) B)`, with `m` for a move and `e` for an erase, and all dies
    /// together have `dies / pages_per_s` for it.
    fn valid_share(&self, pages_per_s: f64) -> f64 {
        let block = f64::from(self.block_pages);
        let page_ns = f64::from(self.dies) * 1e9 / pages_per_s;
        let cleaning_ns = page_ns - self.program_page_ns as f64;
        let share = (cleaning_ns * block - self.erase_ns as f64)
            / (block * (self.move_page_ns() as f64 + cleaning_ns));
        share.clamp(0.0, 0.99)
    }

    /// The Intel X25-E of 64 GB; `docs/disks.md` has the sources and the reasoning.
    ///
    /// A die here is a channel: ten of them. Programming follows from 170 MB/s of sequential
    /// writes, less the erase of every 64th page: `10 * 4096 B / 170 MB/s - 2 ms / 64`.
    pub fn x25_e() -> Self {
        Self {
            queue_depth: 32,
            dies: 10,
            read_command_ns: 28_570,
            write_command_ns: 28_570,
            read_overhead_ns: 5_050,
            write_overhead_ns: 40_050,
            read_page_ns: 25_000,
            program_page_ns: 209_700,
            erase_ns: 2_000_000,
            block_pages: 64,
            link_read_bytes_per_s: 250_000_000,
            link_write_bytes_per_s: 250_000_000,
            cache_pages: 64,
            cache: WriteCache::Volatile,
            flush_ns: 5_000_000,
            through_ns: 540_000,
            reserve_pages: 2_560,
            random_write_iops: 3_300.0,
            sequential_write_bytes_per_s: 170e6,
            wear: Wear::Used,
        }
    }
}

impl FlashParameters {
    /// The Intel SSD DC P4500 of 2.0 TB: capacitors keep what its cache holds.
    ///
    /// Programming follows from 1.05 GB/s of sequential writes over 48 dies:
    /// `48 * 4096 B / 1.05 GB/s - 3.5 ms / 1024`.
    pub fn p4500() -> Self {
        Self {
            queue_depth: 1023,
            dies: 48,
            read_command_ns: 2_040,
            write_command_ns: 2_040,
            read_overhead_ns: 19_680,
            write_overhead_ns: 16_680,
            read_page_ns: 62_000,
            program_page_ns: 183_830,
            erase_ns: 3_500_000,
            block_pages: 1024,
            link_read_bytes_per_s: 3_200_000_000,
            link_write_bytes_per_s: 3_200_000_000,
            cache_pages: 1024,
            cache: WriteCache::Protected,
            flush_ns: 18_000,
            through_ns: 0,
            reserve_pages: 48 * 512,
            random_write_iops: 38_000.0,
            sequential_write_bytes_per_s: 1.05e9,
            wear: Wear::Used,
        }
    }

    /// The Samsung 970 EVO Plus of 1 TB: nothing keeps what its cache holds.
    ///
    /// The reserve is its TurboWrite region of 42 GB, written as single-level cells:
    /// `32 * 4096 B / 3.3 GB/s` a page.
    pub fn evo_970_plus() -> Self {
        Self {
            queue_depth: 1023,
            dies: 32,
            read_command_ns: 1_660,
            write_command_ns: 1_810,
            read_overhead_ns: 8_800,
            write_overhead_ns: 13_690,
            read_page_ns: 41_000,
            program_page_ns: 39_720,
            erase_ns: 3_500_000,
            block_pages: 1024,
            link_read_bytes_per_s: 3_500_000_000,
            link_write_bytes_per_s: 3_500_000_000,
            cache_pages: 4096,
            cache: WriteCache::Volatile,
            flush_ns: 1_000_000,
            through_ns: 1_000_000,
            reserve_pages: 42_000_000_000 / 4096,
            random_write_iops: 40_000.0,
            sequential_write_bytes_per_s: 1.7e9,
            wear: Wear::Used,
        }
    }
}

/// Share by which the erased pages of a fresh drive exceed its capacity.
const SPARE: f64 = 0.07;

/// What is to happen.
#[derive(Clone, Copy, Debug)]
enum FlashEvent {
    /// A command's turn at the controller is over, and so is a write's way over the link.
    Begun(u32),
    /// A die ends what it does.
    DieEnds(u32),
    /// A command is done.
    Done(u32),
}

/// A command inside the drive.
#[derive(Clone, Copy, Debug)]
struct Active {
    request: Request,
    /// Pages or pieces that are still to come.
    left: u32,
    /// Pages of a write that the cache has not taken yet.
    untaken: u32,
    /// When the last piece of a read has crossed the link.
    crossed_ns: u64,
}

/// A flash drive with its queue.
pub type Flash = QueuedDevice<FlashDevice>;

/// A flash drive behind its queue.
pub struct FlashDevice {
    parameters: FlashParameters,
    facts: DriveFacts,
    now_ns: u64,
    active: Vec<Active>,
    free_slots: Vec<u32>,
    agenda: Agenda<FlashEvent>,
    controller_free_ns: u64,
    link_read_free_ns: u64,
    link_write_free_ns: u64,
    dies: Vec<Die>,
    next_die: usize,
    idle_dies: usize,
    cache: Cache,
    wearing: Wearing,
    streams: Streams,
    /// Writes that the cache has no room for.
    writers: VecDeque<u32>,
    /// Flushes and the epoch that each waits for.
    flushes: VecDeque<(u32, u64)>,
    random: Random,
}

impl Flash {
    /// A drive with these parameters and a capacity.
    ///
    /// # Panics
    /// Without dies, cache or queue, or with blocks of no pages: not a drive.
    pub fn new(parameters: FlashParameters, capacity_bytes: u64, seed: u64) -> Self {
        let sizes = [parameters.dies, parameters.cache_pages, parameters.queue_depth];
        assert!(sizes.iter().all(|size| *size > 0), "a drive without dies, cache or queue");
        assert!(parameters.block_pages > 0, "blocks of no pages");
        let mut random = Random::new(seed);
        let wearing = Wearing::new(&parameters);
        let dies = u64::from(parameters.dies);
        let dies = (0..dies)
            .map(|_| {
                let erased = match parameters.wear {
                    Wear::Fresh => {
                        let pages = capacity_bytes / u64::from(PAGE_BYTES) / dies;
                        let with_spare = (pages as f64 * (1.0 + SPARE)) as u64;
                        with_spare.max(parameters.reserve_pages / dies)
                    }
                    // Not all alike, or all would run out at the same moment.
                    Wear::Used => {
                        let reserve = parameters.reserve_pages / dies;
                        reserve - random.below(reserve / 2)
                    }
                };
                Die::new(erased)
            })
            .collect();
        Self::over(FlashDevice {
            facts: parameters.facts(capacity_bytes),
            now_ns: 0,
            active: Vec::new(),
            free_slots: Vec::new(),
            agenda: Agenda::new(),
            controller_free_ns: 0,
            link_read_free_ns: 0,
            link_write_free_ns: 0,
            idle_dies: parameters.dies as usize,
            dies,
            next_die: 0,
            cache: Cache::new(parameters.cache_pages),
            wearing,
            streams: Streams::new(parameters.block_pages),
            writers: VecDeque::new(),
            flushes: VecDeque::new(),
            random,
            parameters,
        })
    }
}

impl FlashDevice {
    fn begin(&mut self, request: Request) {
        let pages = request.bytes.div_ceil(PAGE_BYTES);
        let active = Active { request, left: pages, untaken: pages, crossed_ns: 0 };
        let slot = match self.free_slots.pop() {
            Some(slot) => {
                self.active[slot as usize] = active;
                slot
            }
            None => {
                self.active.push(active);
                self.active.len() as u32 - 1
            }
        };
        let is_read = request.command == Command::Read;
        let parameters = &self.parameters;
        let turn_ns =
            if is_read { parameters.read_command_ns } else { parameters.write_command_ns };
        self.controller_free_ns = self.controller_free_ns.max(self.now_ns) + turn_ns;
        let mut begun_ns = self.controller_free_ns;
        if !is_read && request.bytes > 0 {
            let crossing_ns = transfer_ns(request.bytes, parameters.link_write_bytes_per_s);
            self.link_write_free_ns = self.link_write_free_ns.max(begun_ns) + crossing_ns;
            begun_ns = self.link_write_free_ns;
        }
        self.agenda.note(begun_ns, FlashEvent::Begun(slot));
    }

    fn happen(&mut self, event: FlashEvent, done: &mut VecDeque<DriveCompletion>) {
        match event {
            FlashEvent::Begun(slot) => match self.active[slot as usize].request.command {
                Command::Read => self.begin_read(slot),
                Command::Write | Command::WriteThrough => {
                    let request = self.active[slot as usize].request;
                    self.wearing.random_share = self.streams.after(
                        request.at_bytes,
                        request.bytes,
                        self.wearing.random_share,
                    );
                    self.writers.push_back(slot);
                    self.take_writes();
                }
                Command::Flush => {
                    let epoch = self.cache.close_epoch();
                    self.flushes.push_back((slot, epoch));
                    self.end_flushes();
                }
            },
            FlashEvent::DieEnds(die) => self.end_of_work(die as usize),
            FlashEvent::Done(slot) => {
                let id = self.active[slot as usize].request.id;
                done.push_back(DriveCompletion { id, at_ns: self.now_ns });
                self.free_slots.push(slot);
            }
        }
    }

    /// Hands a read's pages to their dies, those of a die as one piece.
    fn begin_read(&mut self, slot: u32) {
        let request = self.active[slot as usize].request;
        let first = request.at_bytes / u64::from(PAGE_BYTES);
        let last = (request.at_bytes + u64::from(request.bytes.max(1)) - 1) / u64::from(PAGE_BYTES);
        let (pages, dies) = (last - first + 1, self.dies.len() as u64);
        let pieces = pages.min(dies);
        self.active[slot as usize].left = pieces as u32;
        for piece in 0..pieces {
            let die = die_of(first + piece, dies);
            let of_die = (pages - piece).div_ceil(dies) as u32;
            self.dies[die].add_read(slot, of_die);
            self.start(die);
        }
    }

    /// Lets waiting writes into the cache as far as there is room, and wakes dies for them.
    fn take_writes(&mut self) {
        while let Some(&slot) = self.writers.front() {
            let active = &mut self.active[slot as usize];
            let is_through = self.parameters.cache == WriteCache::Off
                || (self.parameters.cache == WriteCache::Volatile
                    && active.request.command == Command::WriteThrough);
            let taken = self.cache.take(active.untaken, is_through.then_some(slot));
            active.untaken -= taken;
            if active.untaken > 0 {
                break;
            }
            self.writers.pop_front();
            if !is_through || active.left == 0 {
                let done_ns = self.now_ns + self.parameters.write_overhead_ns;
                self.agenda.note(done_ns, FlashEvent::Done(slot));
            }
        }
        let dies = self.dies.len();
        for step in 0..dies {
            let die = (self.next_die + step) % dies;
            if self.cache.is_empty() || self.idle_dies == 0 {
                self.next_die = die;
                return;
            }
            self.start(die);
        }
    }

    fn end_flushes(&mut self) {
        while let Some(&(slot, epoch)) = self.flushes.front() {
            let waits = self.parameters.cache == WriteCache::Volatile;
            if waits && !self.cache.is_drained(epoch) {
                return;
            }
            self.flushes.pop_front();
            self.agenda.note(self.now_ns + self.parameters.flush_ns, FlashEvent::Done(slot));
        }
    }

    /// Lets a die that does nothing begin what there is.
    fn start(&mut self, die: usize) {
        if !self.dies[die].is_idle() {
            return;
        }
        let begun = self.dies[die].begin(
            &self.parameters,
            &self.wearing,
            &mut self.cache,
            &mut self.random,
        );
        if let Some(takes_ns) = begun {
            self.idle_dies -= 1;
            self.agenda.note(self.now_ns + takes_ns, FlashEvent::DieEnds(die as u32));
        }
    }

    fn end_of_work(&mut self, die: usize) {
        self.idle_dies += 1;
        match self.dies[die].end() {
            Some(Work::Read { slot, pages }) => self.piece_read(slot, pages),
            Some(Work::Program(page)) => {
                self.cache.programmed(page);
                if let Some(slot) = page.waiter {
                    self.page_programmed(slot);
                }
                self.end_flushes();
                self.take_writes();
            }
            Some(Work::Clean) | None => {}
        }
        self.start(die);
    }

    fn piece_read(&mut self, slot: u32, pages: u32) {
        let bytes = (pages * PAGE_BYTES).min(self.active[slot as usize].request.bytes);
        let crossing_ns = transfer_ns(bytes, self.parameters.link_read_bytes_per_s);
        self.link_read_free_ns = self.link_read_free_ns.max(self.now_ns) + crossing_ns;
        let active = &mut self.active[slot as usize];
        active.crossed_ns = self.link_read_free_ns;
        active.left -= 1;
        if active.left == 0 {
            let done_ns = active.crossed_ns + self.parameters.read_overhead_ns;
            self.agenda.note(done_ns, FlashEvent::Done(slot));
        }
    }

    fn page_programmed(&mut self, slot: u32) {
        let active = &mut self.active[slot as usize];
        active.left -= 1;
        if active.left == 0 {
            let rest_ns = self.parameters.write_overhead_ns + self.parameters.through_ns;
            self.agenda.note(self.now_ns + rest_ns, FlashEvent::Done(slot));
        }
    }
}

impl Device for FlashDevice {
    fn facts(&self) -> DriveFacts {
        self.facts
    }

    fn admit(&mut self, now_ns: u64, request: Request, _: u64) {
        self.now_ns = now_ns;
        self.begin(request);
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.agenda.next_ns()
    }

    fn step(&mut self, now_ns: u64, done: &mut VecDeque<DriveCompletion>) {
        self.now_ns = now_ns;
        if let Some((_, event)) = self.agenda.due(now_ns) {
            self.happen(event, done);
        }
    }
}

fn transfer_ns(bytes: u32, bytes_per_s: u64) -> u64 {
    (u64::from(bytes) * 1_000_000_000).div_ceil(bytes_per_s)
}

/// Neighbouring pages lie on neighbouring dies; every row of dies starts at another, so that
/// strides do not meet the same die always.
fn die_of(page: u64, dies: u64) -> usize {
    let row = page / dies;
    let turn = row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((page + turn) % dies) as usize
}

// How random the writes have been lately.
//
// A write that begins where one of the last few ended continues a stream: blocks filled by streams
// become invalid as a whole when they are written over, so cleaning them moves little.

/// Streams that are distinguished.
const STREAMS: usize = 16;
/// Pages after which what was written before hardly counts.
const MEMORY_PAGES: f64 = 4096.0;

/// The ends of the last streams.
struct Streams {
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
mod streams_tests {
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

/// Rates and latencies of the data sheets; cleaning; what a flush waits for.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{BenchOutcome, BenchWindow, Load, run};

    const GIB: u64 = 1 << 30;

    fn bench(parameters: FlashParameters, load: &Load) -> BenchOutcome {
        let mut drive = Flash::new(parameters, 8 * GIB, 1);
        run(&mut drive, load, BenchWindow::seconds(3.0, 1.0), 1).unwrap()
    }

    fn near(found: f64, want: f64, what: &str) {
        assert!((found / want - 1.0).abs() < 0.1, "{what}: {found} for {want}");
    }

    fn read_us(outcome: &BenchOutcome) -> f64 {
        outcome.read.unwrap().latency_us.mean
    }

    fn write_us(outcome: &BenchOutcome) -> f64 {
        outcome.write.unwrap().latency_us.mean
    }

    #[test]
    fn the_sata_drive_has_its_data_sheet() {
        let sheet = FlashParameters::x25_e;
        near(read_us(&bench(sheet(), &Load::random_read(1))), 75.0, "read latency");
        near(write_us(&bench(sheet().fresh(), &Load::random_write(1))), 85.0, "write latency");
        near(bench(sheet(), &Load::random_read(32)).iops.value, 35_000.0, "random reads");
        near(bench(sheet(), &Load::random_write(32)).iops.value, 3_300.0, "random writes");
        let long = |load: Load| bench(sheet(), &load).bytes_per_s;
        near(long(Load::sequential_read(131_072, 32)), 250e6, "sequential reads");
        near(long(Load::sequential_write(131_072, 32)), 170e6, "sequential writes");
    }

    #[test]
    fn the_enterprise_drive_has_its_data_sheet() {
        let sheet = FlashParameters::p4500;
        near(read_us(&bench(sheet(), &Load::random_read(1))), 85.0, "read latency");
        near(write_us(&bench(sheet().fresh(), &Load::random_write(1))), 20.0, "write latency");
        near(bench(sheet(), &Load::random_read(256)).iops.value, 490_000.0, "random reads");
        near(bench(sheet(), &Load::random_write(256)).iops.value, 38_000.0, "random writes");
        let long = |load: Load| bench(sheet(), &load).bytes_per_s;
        near(long(Load::sequential_read(131_072, 32)), 3.2e9, "sequential reads");
        near(long(Load::sequential_write(131_072, 32)), 1.05e9, "sequential writes");
    }

    #[test]
    fn the_client_drive_has_its_data_sheet() {
        let sheet = FlashParameters::evo_970_plus;
        near(bench(sheet(), &Load::random_read(1)).iops.value, 19_000.0, "reads, depth 1");
        near(bench(sheet(), &Load::random_write(1)).iops.value, 60_000.0, "writes, depth 1");
        near(bench(sheet(), &Load::random_read(128)).iops.value, 600_000.0, "random reads");
        near(bench(sheet(), &Load::random_write(128)).iops.value, 550_000.0, "random writes");
        let long = |parameters, load: Load| bench(parameters, &load).bytes_per_s;
        near(long(sheet(), Load::sequential_read(131_072, 32)), 3.5e9, "sequential reads");
        near(long(sheet(), Load::sequential_write(131_072, 32)), 3.3e9, "sequential writes");
        let spent = FlashParameters { reserve_pages: 32 * 2048, ..sheet() };
        near(long(spent.clone(), Load::sequential_write(131_072, 32)), 1.7e9, "after TurboWrite");
        near(bench(spent, &Load::random_write(32)).iops.value, 40_000.0, "random after TurboWrite");
    }

    #[test]
    fn a_fresh_drive_writes_faster_than_a_used_one() {
        for sheet in [FlashParameters::x25_e(), FlashParameters::p4500()] {
            let rate = |parameters| bench(parameters, &Load::random_write(32)).iops.value;
            let (used, fresh) = (rate(sheet.clone()), rate(sheet.fresh()));
            assert!(fresh > 3.0 * used, "{fresh} fresh, {used} used");
        }
    }

    #[test]
    fn reads_wait_for_cleaning_only_beside_writes() {
        for sheet in [FlashParameters::x25_e(), FlashParameters::p4500()] {
            let only = bench(sheet.clone(), &Load::random_read(4)).read.unwrap().latency_us;
            assert!(only.p99_9 < 4.0 * only.mean, "reads only: {only:?}");
            let mixed = Load { read_pct: 70, ..Load::random_read(4) };
            let beside = bench(sheet.clone(), &mixed).read.unwrap().latency_us;
            let erase_us = sheet.erase_ns as f64 / 1e3;
            assert!(beside.max > 0.9 * erase_us, "an erase was waited for: {beside:?}");
            assert!(beside.p99_9 > 3.0 * only.p99_9, "{beside:?} beside {only:?}");
            let fresh = bench(sheet.fresh(), &mixed).read.unwrap().latency_us;
            assert!(fresh.p99_9 < beside.p99_9 / 2.0, "nothing to clean: {fresh:?}");
        }
    }

    #[test]
    fn sequential_writes_need_less_cleaning_than_random_ones() {
        let sheet = FlashParameters::x25_e();
        assert!(sheet.valid_share_random() > 0.9);
        assert_eq!(sheet.valid_share_sequential(), 0.0);
        let pages = bench(sheet, &Load::sequential_write(4096, 32)).iops.value;
        assert!(pages > 10.0 * 3_300.0, "{pages}");
    }

    #[test]
    fn a_flush_drains_a_volatile_cache_and_nothing_else() {
        let load = Load { flush_every: Some(1), ..Load::random_write(1) };
        let flush =
            |parameters: FlashParameters| bench(parameters, &load).flush.unwrap().latency_us.mean;
        let protected = flush(FlashParameters::p4500());
        assert!((18.0..25.0).contains(&protected), "{protected}");
        let volatile = flush(FlashParameters::evo_970_plus());
        assert!((1_000.0..10_000.0).contains(&volatile), "{volatile}");
        // 64 pages in the cache, ten channels, 210 us each: more than a ms beyond its own time.
        let sata = FlashParameters { flush_ns: 0, ..FlashParameters::x25_e().fresh() };
        let full = Load { flush_every: Some(64), ..Load::random_write(32) };
        let drained = bench(sata, &full).flush.unwrap().latency_us.mean;
        assert!(drained > 1_000.0, "{drained}");
    }

    #[test]
    fn writes_through_and_without_cache_wait_for_the_dies() {
        let through = Load { write_through: true, ..Load::random_write(1) };
        let sheet = FlashParameters::x25_e().fresh();
        // 85 us, 210 us of programming and 540 us until it can be found again.
        near(write_us(&bench(sheet.clone(), &through)), 833.0, "forced");
        let off = FlashParameters { cache: WriteCache::Off, ..sheet };
        near(write_us(&bench(off, &Load::random_write(1))), 833.0, "without cache");
        let protected = bench(FlashParameters::p4500().fresh(), &through);
        near(write_us(&protected), 20.0, "forced, protected");
    }

    #[test]
    fn a_large_write_passes_through_a_small_cache() {
        let load = Load { block_bytes: 4 << 20, ..Load::sequential_write(4 << 20, 2) };
        near(bench(FlashParameters::x25_e(), &load).bytes_per_s, 170e6, "4 MiB writes");
    }
}
