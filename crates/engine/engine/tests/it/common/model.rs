//! What a store must hold: the states after each change, in the order of commit.
//!
//! Invariant: `digests[k]` stands for the state after the first `k` changes; a store is right when
//! its digest is the digest of some `k` not below the last change that was acknowledged.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};

use crate::common::plan::Op;

/// Rows by key, by table.
pub type Tables = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

/// Tables are known by number in plans and by name in stores.
pub fn table_name(number: usize) -> String {
    ["orders", "a", "stock"][number].to_owned()
}

/// Sums of these stand for whole contents, whatever the order.
pub fn row_digest(table: &str, key: &[u8], value: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in [table.as_bytes(), key, value] {
        hasher.write_u32(part.len() as u32);
        hasher.write(part);
    }
    hasher.finish()
}

/// What an empty table adds to a digest.
pub fn table_digest(table: &str) -> u64 {
    row_digest(table, b"", b"there is a table")
}

pub fn digest(tables: &Tables) -> u64 {
    let of_table = |(name, rows): (&String, &BTreeMap<Vec<u8>, Vec<u8>>)| {
        let rows = rows.iter().map(|(key, value)| row_digest(name, key, value));
        rows.fold(table_digest(name), u64::wrapping_add)
    };
    tables.iter().map(of_table).fold(0, u64::wrapping_add)
}

/// One thing that happens whole or not at all.
#[derive(Clone, Debug)]
pub enum Change {
    Create(usize),
    Drop(usize),
    Batch(Vec<Op>),
}

#[derive(Clone, Debug, Default)]
struct State {
    tables: Tables,
    digest: u64,
}

impl State {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Create(table) => {
                let name = table_name(*table);
                self.digest = self.digest.wrapping_add(table_digest(&name));
                self.tables.insert(name, BTreeMap::new());
            }
            Change::Drop(table) => {
                let name = table_name(*table);
                let rows = self.tables.remove(&name).expect("plans drop what is there");
                let gone = digest(&Tables::from([(name, rows)]));
                self.digest = self.digest.wrapping_sub(gone);
            }
            Change::Batch(ops) => ops.iter().for_each(|op| self.apply_op(op)),
        }
    }

    fn apply_op(&mut self, op: &Op) {
        let name = table_name(op.table);
        let rows = self.tables.get_mut(&name).expect("plans create a table before they use it");
        let before = match &op.value {
            Some(value) => {
                self.digest = self.digest.wrapping_add(row_digest(&name, &op.key, value));
                rows.insert(op.key.clone(), value.clone())
            }
            None => rows.remove(&op.key),
        };
        if let Some(before) = before {
            self.digest = self.digest.wrapping_sub(row_digest(&name, &op.key, &before));
        }
    }
}

/// Every change in the order of commit, and the state after each.
#[derive(Clone, Debug, Default)]
pub struct History {
    base: Tables,
    changes: Vec<(u64, Change)>,
    digests: Vec<u64>,
    last_with: HashMap<u64, usize>,
    place: HashMap<u64, usize>,
    newest: State,
}

impl History {
    pub fn new(base: Tables) -> Self {
        let digest = digest(&base);
        Self {
            newest: State { tables: base.clone(), digest },
            base,
            changes: Vec::new(),
            digests: vec![digest],
            last_with: HashMap::from([(digest, 0)]),
            place: HashMap::new(),
        }
    }

    pub fn push(&mut self, id: u64, change: Change) {
        self.newest.apply(&change);
        self.changes.push((id, change));
        let count = self.changes.len();
        self.digests.push(self.newest.digest);
        self.last_with.insert(self.newest.digest, count);
        self.place.insert(id, count);
    }

    /// Transaction `id` has read from the state after `count` changes.
    pub fn read(&mut self, id: u64, count: usize) {
        self.place.insert(id, count);
    }

    /// The first `count` changes.
    pub fn upto(&self, count: usize) -> Self {
        let mut part = Self::new(self.base.clone());
        self.changes[..count].iter().for_each(|(id, change)| part.push(*id, change.clone()));
        part
    }

    pub fn len(&self) -> usize {
        self.changes.len()
    }

    pub fn digest(&self, count: usize) -> u64 {
        self.digests[count]
    }

    /// The contents after the first `count` changes.
    pub fn state(&self, count: usize) -> Tables {
        let mut state = State { tables: self.base.clone(), digest: 0 };
        self.changes[..count].iter().for_each(|(_id, change)| state.apply(change));
        state.tables
    }

    /// How many changes must be there when these were acknowledged.
    pub fn needed(&self, acknowledged: &[u64]) -> usize {
        acknowledged.iter().map(|id| self.place[id]).max().unwrap_or(0)
    }

    /// How many changes a content holds, or what is wrong with it.
    pub fn judge(
        &self,
        needed: usize,
        found: u64,
        rows: impl Fn() -> Tables,
    ) -> Result<usize, String> {
        match self.last_with.get(&found) {
            Some(count) if *count >= needed => Ok(*count),
            Some(count) => Err(format!(
                "acknowledged and lost: the first {count} changes are there, {needed} must be"
            )),
            None => Err(self.explain(needed, &rows())),
        }
    }

    fn explain(&self, needed: usize, found: &Tables) -> String {
        let mut state = State { tables: self.base.clone(), digest: 0 };
        let mut best = (differences(&state.tables, found), 0);
        for (number, (_id, change)) in self.changes.iter().enumerate() {
            state.apply(change);
            let next = differences(&state.tables, found);
            if next.len() < best.0.len() {
                best = (next, number + 1);
            }
        }
        let (rows, count) = best;
        let some = rows[..rows.len().min(6)].join("; ");
        let total = self.len();
        format!(
            "no state of the history ({needed} of {total} changes needed); nearest is {count}, \
             with {} rows different: {some}",
            rows.len()
        )
    }
}

fn differences(wanted: &Tables, found: &Tables) -> Vec<String> {
    let mut all = Vec::new();
    let nothing = BTreeMap::new();
    let names: std::collections::BTreeSet<_> = wanted.keys().chain(found.keys()).collect();
    for name in names {
        if wanted.contains_key(name) != found.contains_key(name) {
            all.push(format!("table {name} there: {}", found.contains_key(name)));
        }
        let wanted = wanted.get(name).unwrap_or(&nothing);
        let found = found.get(name).unwrap_or(&nothing);
        for (key, value) in wanted {
            match found.get(key) {
                None => all.push(format!("{name} {} is missing", short(key))),
                Some(other) if other != value => {
                    let (other, value) = (short(other), short(value));
                    all.push(format!("{name} {} is {other}, not {value}", short(key)));
                }
                Some(_) => {}
            }
        }
        let extra = found.keys().filter(|key| !wanted.contains_key(*key));
        all.extend(extra.map(|key| format!("{name} {} is too much", short(key))));
    }
    all
}

fn short(bytes: &[u8]) -> String {
    let some: String = bytes.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{some}({} bytes)", bytes.len())
}
