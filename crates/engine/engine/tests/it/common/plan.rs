//! Work for a store, made from a seed: batches that grow and shrink up to three tables, with
//! overwrites, scans, checkpoints and settings changed between them.
//!
//! Invariant: the same seed and shape give the same steps; a table is created before it is used.

use std::collections::BTreeSet;

use crate::common::chance::Chance;

/// One row written or, without a value, deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    pub table: usize,
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

/// One step of a plan.
#[derive(Clone, Debug)]
pub enum Step {
    Create(usize),
    /// The table created last, with all its rows.
    Drop(usize),
    /// Committed; `is_awaited`: the next step comes only after it is durable.
    Batch {
        ops: Vec<Op>,
        is_awaited: bool,
    },
    /// Everything committed becomes durable.
    WaitAll,
    Checkpoint,
    Set(&'static str, &'static str),
    /// So many steps of the background.
    Background(u32),
    Scan {
        table: usize,
        is_backward: bool,
    },
}

/// What kind of work.
#[derive(Clone, Debug)]
pub struct Shape {
    pub batches: usize,
    pub tables: usize,
    /// Rows of most batches, at most; some have up to 30.
    pub rows: usize,
    /// The longest key and the longest value, in bytes.
    pub key_bytes: usize,
    pub value_bytes: usize,
    /// About the most that one batch changes, in bytes.
    pub batch_bytes: usize,
    /// Settings that may change while the store runs: name and the values to choose from.
    pub live: Live,
}

/// Settings by name, with values.
pub type Live = &'static [(&'static str, &'static [&'static str])];

impl Shape {
    /// Different keys of a table that sessions use: so few that they meet.
    pub fn keys(&self) -> usize {
        self.batches + 10
    }
}

struct Planner<'a> {
    chance: Chance,
    shape: &'a Shape,
    keys: Vec<BTreeSet<Vec<u8>>>,
    created: usize,
    appended: u64,
}

/// The steps of a seed.
pub fn plan(seed: u64, shape: &Shape) -> Vec<Step> {
    let keys = vec![BTreeSet::new(); shape.tables];
    let chance = Chance::new(seed);
    let mut planner = Planner { chance, shape, keys, created: 0, appended: 0 };
    let mut steps = vec![planner.create()];
    for number in 0..shape.batches {
        let phase = number * 5 / shape.batches;
        // Grow, shrink, grow, shrink nearly to nothing, grow.
        let delete_percent = [2, 40, 10, 80, 20][phase];
        planner.between(&mut steps);
        let ops = planner.batch(delete_percent);
        let is_awaited = planner.chance.percent(70);
        steps.push(Step::Batch { ops, is_awaited });
    }
    steps.push(Step::WaitAll);
    steps
}

/// A few batches over tables that are there, each awaited, and now and then a checkpoint.
pub fn more(seed: u64, shape: &Shape, created: usize, batches: usize) -> Vec<Step> {
    let keys = vec![BTreeSet::new(); shape.tables];
    let chance = Chance::new(seed);
    let mut planner = Planner { chance, shape, keys, created, appended: seed % 500 };
    let mut steps = Vec::new();
    if created == 0 {
        steps.push(planner.create());
    }
    for _ in 0..batches {
        let ops = planner.batch(10);
        steps.push(Step::Batch { ops, is_awaited: true });
        if planner.chance.percent(30) {
            steps.push(Step::Checkpoint);
        }
    }
    steps
}

/// Keys of a thread begin with its number, so that threads do not meet.
pub fn of_thread(thread: usize, mut steps: Vec<Step>) -> Vec<Step> {
    for step in &mut steps {
        if let Step::Batch { ops, .. } = step {
            ops.iter_mut().for_each(|op| op.key.insert(0, thread as u8));
        }
    }
    steps.retain(|step| !matches!(step, Step::Create(_) | Step::Drop(_)));
    steps
}

impl Planner<'_> {
    fn create(&mut self) -> Step {
        self.created += 1;
        Step::Create(self.created - 1)
    }

    /// What happens besides batches.
    fn between(&mut self, steps: &mut Vec<Step>) {
        if self.created < self.shape.tables && self.chance.percent(20) {
            steps.push(self.create());
        }
        if self.created > 1 && self.chance.below(self.shape.batches / 2) == 0 {
            self.created -= 1;
            self.keys[self.created].clear();
            steps.push(Step::Drop(self.created));
        }
        let table = self.chance.below(self.created);
        match self.chance.below(100) {
            0..4 => steps.push(Step::Checkpoint),
            4..12 => steps.push(Step::Scan { table, is_backward: self.chance.percent(50) }),
            12..20 => steps.push(Step::WaitAll),
            20..60 => steps.push(Step::Background(self.chance.within(1, 3) as u32)),
            60..64 if !self.shape.live.is_empty() => {
                let (name, values) = self.chance.pick(self.shape.live);
                let value = values[self.chance.below(values.len())];
                steps.push(Step::Set(name, value));
            }
            _ => {}
        }
    }

    fn batch(&mut self, delete_percent: usize) -> Vec<Op> {
        let most = if self.chance.percent(6) { 30 } else { self.shape.rows };
        let count = self.chance.within(1, most);
        let mut ops: Vec<Op> = Vec::new();
        let bytes = |op: &Op| op.key.len() + op.value.as_ref().map_or(0, Vec::len);
        while ops.len() < count && ops.iter().map(bytes).sum::<usize>() < self.shape.batch_bytes {
            let table = self.chance.below(self.created);
            if self.chance.percent(delete_percent) {
                self.delete(table, &mut ops);
            } else {
                let op = self.put(table);
                ops.push(op);
            }
        }
        ops
    }

    /// Up to eight neighbours, so that pages empty and merge; now and then one that is not there.
    fn delete(&mut self, table: usize, ops: &mut Vec<Op>) {
        let from = self.key(table);
        let count = self.chance.within(1, 8);
        let mut keys: Vec<_> =
            self.keys[table].range(from.clone()..).take(count).cloned().collect();
        if keys.is_empty() {
            keys.extend(self.keys[table].first().cloned());
        }
        if keys.is_empty() || self.chance.percent(3) {
            keys.push(from);
        }
        for key in keys {
            self.keys[table].remove(&key);
            ops.push(Op { table, key, value: None });
        }
    }

    fn put(&mut self, table: usize) -> Op {
        let overwritten = if self.chance.percent(25) {
            let from = self.key(table);
            self.keys[table].range(from..).next().cloned()
        } else {
            None
        };
        let key = overwritten.unwrap_or_else(|| self.key(table));
        self.keys[table].insert(key.clone());
        let most = self.shape.value_bytes;
        let len = match self.chance.below(20) {
            0 => 0,
            1 => most,
            2..5 => self.chance.within(most / 4, most),
            _ => self.chance.within(8, (most / 4).max(8)),
        };
        Op { table, key, value: Some(self.chance.bytes(len)) }
    }

    /// Appended numbers in the first table, short random keys in the second, long keys with one
    /// beginning in the third.
    fn key(&mut self, table: usize) -> Vec<u8> {
        match table {
            0 if self.chance.percent(60) => {
                self.appended += 1;
                self.appended.to_be_bytes().to_vec()
            }
            0 => (self.chance.next() % (self.appended + 1)).to_be_bytes().to_vec(),
            1 => {
                let len = self.chance.within(1, 3);
                let mut key = self.chance.bytes(len);
                key[0] &= 31;
                key
            }
            _ => {
                let most = self.shape.key_bytes;
                let len = self.chance.within(most / 3, most) - 1;
                let mut key = vec![b'k'; len];
                key.extend((self.chance.below(500) as u16).to_be_bytes());
                key.truncate(most);
                key
            }
        }
    }
}
