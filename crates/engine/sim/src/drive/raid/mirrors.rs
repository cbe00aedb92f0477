//! The pairs of disks: tasks in, tasks ended.
//!
//! Invariant: a task ends when all its commands to disks are done; a write goes to both disks of
//! its pair, a read to the one with less to do, or to the nearer head when both have as much. Ends
//! come in the order of their moments.

use std::collections::HashMap;

use super::layout::Part;
use super::parameters::RaidParameters;
use crate::drive::hdd::Hdd;
use crate::drive::{Command, Done, Drive, Request};

/// Mirrored pairs.
#[derive(Debug)]
pub(crate) struct Mirrors {
    pairs: Vec<[Hdd; 2]>,
    /// The next moment of each disk, kept as asking dozens of disks costs more than their work.
    next_ns: Vec<[Option<u64>; 2]>,
    task_of: HashMap<u64, u64>,
    left: HashMap<u64, u32>,
    next_command: u64,
    done: Vec<Done>,
}

impl Mirrors {
    pub(crate) fn new(parameters: &RaidParameters, disk_bytes: u64, seed: u64) -> Self {
        let disk = |index: u64| {
            let seed = seed.wrapping_add(index.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            Hdd::new(parameters.disk, disk_bytes, seed)
        };
        let pairs = u64::from(parameters.spindles / 2);
        Self {
            next_ns: vec![[None; 2]; pairs as usize],
            pairs: (0..pairs).map(|pair| [disk(2 * pair), disk(2 * pair + 1)]).collect(),
            task_of: HashMap::new(),
            left: HashMap::new(),
            next_command: 0,
            done: Vec::new(),
        }
    }

    /// Bytes that the disks' own caches could lose.
    pub(crate) fn volatile_bytes(&self) -> u64 {
        self.pairs.iter().flatten().map(|disk| disk.facts().volatile_bytes).sum()
    }

    fn command(&mut self, now_ns: u64, task: u64, place: (usize, usize), request: Request) {
        let id = self.next_command;
        self.next_command += 1;
        self.task_of.insert(id, task);
        *self.left.entry(task).or_insert(0) += 1;
        let (pair, side) = place;
        let disk = &mut self.pairs[pair][side];
        disk.submit(now_ns, Request { id, ..request });
        self.next_ns[pair][side] = disk.next_event_ns();
    }

    /// Reads a part from the better disk of its pair.
    pub(crate) fn read(&mut self, now_ns: u64, task: u64, part: Part) {
        let [left, right] = &self.pairs[part.pair];
        let cost = |disk: &Hdd| (disk.commands(), disk.turns_away(part.at_bytes));
        let side = usize::from(cost(right) < cost(left));
        self.command(now_ns, task, (part.pair, side), request(Command::Read, part));
    }

    /// Writes a part to both disks of its pair.
    pub(crate) fn write(&mut self, now_ns: u64, task: u64, command: Command, part: Part) {
        for side in 0..2 {
            self.command(now_ns, task, (part.pair, side), request(command, part));
        }
    }

    /// Makes everything that was done safe on every disk.
    pub(crate) fn flush(&mut self, now_ns: u64, task: u64) {
        let nothing = Request { id: 0, command: Command::Flush, at_bytes: 0, bytes: 0 };
        for pair in 0..self.pairs.len() {
            for side in 0..2 {
                self.command(now_ns, task, (pair, side), nothing);
            }
        }
    }

    /// The next moment at which a disk does something by itself.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.next_ns.iter().flatten().flatten().copied().min()
    }

    /// Lets the disks go on to `now_ns`, which is not after their next moment; names the tasks that
    /// end.
    pub(crate) fn advance(&mut self, now_ns: u64, ended: &mut Vec<u64>) {
        let disks = self.pairs.iter_mut().flatten().zip(self.next_ns.iter_mut().flatten());
        for (disk, disk_next_ns) in disks {
            if disk_next_ns.is_some_and(|next_ns| next_ns <= now_ns) {
                disk.advance(now_ns, &mut self.done);
                *disk_next_ns = disk.next_event_ns();
            }
        }
        for Done { id, .. } in self.done.drain(..) {
            let Some(task) = self.task_of.remove(&id) else { continue };
            let Some(left) = self.left.get_mut(&task) else { continue };
            *left -= 1;
            if *left == 0 {
                self.left.remove(&task);
                ended.push(task);
            }
        }
    }
}

fn request(command: Command, part: Part) -> Request {
    Request { id: 0, command, at_bytes: part.at_bytes, bytes: part.bytes }
}
