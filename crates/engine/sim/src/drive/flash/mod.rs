//! Flash behind a controller: a command takes its turn at the controller, its data crosses the
//! link, and its pages are read from or programmed to dies.
//!
//! Purpose: rates and latencies of a data sheet at any depth, a write cache that fills, and dies
//! that clean blocks when erased pages run out, so that steady random writes are slower than fresh
//! ones and reads beside them wait for an erase now and then. It keeps no map of pages: a page's
//! die follows from its address, writes go to any die, what is still valid in a block is a share.
//! It does not read ahead, and a read of a page that still lies in the write cache is a read of a
//! die.

mod cache;
mod die;
mod parameters;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use cache::Cache;
use die::{Die, Wearing, Work};
use iostrata_stats::Random;

use super::{Agenda, Command, Device, Done, DriveFacts, Queued, Request};

pub use parameters::{FlashParameters, PAGE_BYTES, Wear, WriteCache};

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
pub type Flash = Queued<FlashDevice>;

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

    fn happen(&mut self, event: FlashEvent, done: &mut VecDeque<Done>) {
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
                done.push_back(Done { id, at_ns: self.now_ns });
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

    fn step(&mut self, now_ns: u64, done: &mut VecDeque<Done>) {
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

/// Streams that are told apart.
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
