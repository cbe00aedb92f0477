//! Mirrored pairs of disks: what the disks say is what the host hears.
//!
//! Invariant: a request is done when all its commands to disks are, plus what the controller adds.
//! A write goes to both disks of a pair, a read to the one with less to do, or to the nearer head
//! when both have as much. A flush is done when every disk has flushed.

use std::collections::{HashMap, VecDeque};

use super::parameters::RaidParameters;
use super::stripes::{Part, Stripes};
use crate::drive::hdd::Hdd;
use crate::drive::{Agenda, Command, Device, Done, Drive, DriveFacts, Queued, Request};

/// Mirrored pairs, striped, in virtual time. One pair is RAID 1.
pub type Raid = Queued<Array>;

/// Mirrored pairs behind their queue.
#[derive(Debug)]
pub struct Array {
    parameters: RaidParameters,
    capacity_bytes: u64,
    stripes: Stripes,
    pairs: Vec<[Hdd; 2]>,
    /// The next moment of each disk, kept as asking dozens of disks costs more than their work.
    next_ns: Vec<[Option<u64>; 2]>,
    /// The request of each command to a disk.
    request_of: HashMap<u64, u64>,
    /// Commands that are not done, by request.
    left: HashMap<u64, u32>,
    next_command: u64,
    leaving: Agenda<u64>,
    ended: Vec<Done>,
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

    fn step(&mut self, now_ns: u64, done: &mut VecDeque<Done>) {
        let disks = self.pairs.iter_mut().flatten().zip(self.next_ns.iter_mut().flatten());
        for (disk, disk_next_ns) in disks {
            if disk_next_ns.is_some_and(|next_ns| next_ns <= now_ns) {
                disk.advance(now_ns, &mut self.ended);
                *disk_next_ns = disk.next_event_ns();
            }
        }
        let overhead_ns = u64::from(self.parameters.controller_overhead_us) * 1_000;
        for Done { id, .. } in self.ended.drain(..) {
            let Some(request) = self.request_of.remove(&id) else { continue };
            let Some(left) = self.left.get_mut(&request) else { continue };
            *left -= 1;
            if *left == 0 {
                self.left.remove(&request);
                self.leaving.note(now_ns + overhead_ns, request);
            }
        }
        while let Some((at_ns, id)) = self.leaving.due(now_ns) {
            done.push_back(Done { id, at_ns });
        }
    }
}
