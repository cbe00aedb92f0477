//! A small store that proves the proof: sound, it passes the sweep; with any one defect it does
//! not.
//!
//! One append-only file of checksummed batches; a checkpoint writes the contents to a new file and
//! renames it over the old.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};

use iostrata_io::SyncKind;
use iostrata_io::disk::{Aligned, Disk, DiskError, Durability, Ending, FileId, FileMode, FileName};

use crate::common::model::{Tables, digest};
use crate::common::plan::{Op, Shape};
use crate::common::quiet::quietly;
use crate::common::record::record;
use crate::common::store::Store;
use crate::common::sweep::{Sweep, parse, prove, text};

/// What the toy leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    /// An acknowledgement waits for no sync.
    Sync,
    /// A batch is believed without its checksum.
    Checksum,
    /// Names are never made durable.
    DirectorySync,
    /// The new file of a checkpoint is named before it is durable.
    CheckpointSync,
    /// Each row of a batch is a batch of its own.
    Atomicity,
    /// What opening finds is synced, and not written again.
    CachedFrames,
}

struct Toy {
    disk: Arc<dyn Disk>,
    defect: Defect,
    inner: Mutex<Inner>,
}

struct Inner {
    log: FileId,
    end: u64,
    tables: Tables,
}

fn name(text: &str) -> FileName {
    FileName::new(text).unwrap()
}

fn checksum(at: u64, body: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(at);
    hasher.write(body);
    hasher.finish()
}

/// A row: length and bytes of table, key and value; a deleted one has no value.
fn encode(table: &str, key: &[u8], value: Option<&[u8]>, body: &mut Vec<u8>) {
    for part in [Some(table.as_bytes()), Some(key), value] {
        let len = part.map_or(u32::MAX, |part| part.len() as u32);
        body.extend(len.to_le_bytes());
        body.extend(part.unwrap_or_default());
    }
}

fn part<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = body.split_first_chunk::<4>()?;
    let len = u32::from_le_bytes(*len) as usize;
    *body = rest;
    if len == u32::MAX as usize {
        return None;
    }
    let (part, rest) = rest.split_at_checked(len)?;
    *body = rest;
    Some(part)
}

fn apply(tables: &mut Tables, mut body: &[u8]) {
    while !body.is_empty() {
        let (Some(table), Some(key)) = (part(&mut body), part(&mut body)) else { return };
        let table = String::from_utf8_lossy(table).into_owned();
        let rows = tables.entry(table.clone()).or_default();
        match part(&mut body) {
            // An empty key marks that the table exists, or, with a value, that it does not.
            None if key.is_empty() => {}
            Some(_) if key.is_empty() => {
                tables.remove(table.as_str());
            }
            Some(value) => {
                rows.insert(key.to_vec(), value.to_vec());
            }
            None => {
                rows.remove(key);
            }
        }
    }
}

impl Toy {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    fn append(&self, inner: &mut Inner, body: &[u8]) -> Result<(), DiskError> {
        let mut frame = (body.len() as u64).to_le_bytes().to_vec();
        frame.extend(checksum(inner.end, body).to_le_bytes());
        frame.extend(body);
        let block = Aligned::from_slice(&frame);
        self.disk.write(inner.log, inner.end, &block, Durability::Volatile)?;
        inner.end += frame.len() as u64;
        apply(&mut inner.tables, body);
        Ok(())
    }

    fn sync(&self) -> Result<(), DiskError> {
        let log = self.lock().log;
        if self.defect == Defect::Sync { Ok(()) } else { self.disk.sync(log, SyncKind::Fdatasync) }
    }

    fn define(&self, table: &str, value: Option<&[u8]>) -> Result<(), DiskError> {
        let mut body = Vec::new();
        encode(table, b"", value, &mut body);
        self.append(&mut self.lock(), &body)?;
        self.sync()
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        if self.defect == Defect::DirectorySync { Ok(()) } else { self.disk.sync_dir() }
    }

    fn recover(&self) -> Result<(), DiskError> {
        let mut inner = self.lock();
        let len = self.disk.len(inner.log)?;
        if len == 0 {
            return self.sync_dir();
        }
        let mut bytes = Aligned::zeroed(len as usize);
        self.disk.read(inner.log, 0, &mut bytes)?;
        let mut rest = &bytes[..];
        while let Some((head, after)) = rest.split_first_chunk::<16>() {
            let (size, sum) = head.split_at(8);
            let [size, sum] = [size, sum].map(|word| u64::from_le_bytes(word.try_into().unwrap()));
            let Some((body, after)) = after.split_at_checked(size as usize) else { break };
            let is_whole = checksum(inner.end, body) == sum || self.defect == Defect::Checksum;
            if size == 0 || !is_whole {
                break;
            }
            apply(&mut inner.tables, body);
            inner.end += 16 + size;
            rest = after;
        }
        self.disk.set_len(inner.log, inner.end)?;
        if inner.end > 0 && self.defect != Defect::CachedFrames {
            bytes.set_len(inner.end as usize);
            self.disk.write(inner.log, 0, &bytes, Durability::Volatile)?;
        }
        self.disk.sync(inner.log, SyncKind::Fsync)?;
        self.sync_dir()
    }

    fn rewrite(&self) -> Result<(), DiskError> {
        self.sync()?;
        let new = self.disk.open(&name("log.new"), FileMode::Create)?;
        self.disk.set_len(new, 0)?;
        let mut inner = self.lock();
        (inner.log, inner.end) = (new, 0);
        let mut body = Vec::new();
        for (table, rows) in &inner.tables {
            encode(table, b"", None, &mut body);
            rows.iter().for_each(|(key, value)| encode(table, key, Some(value), &mut body));
        }
        self.append(&mut inner, &body)?;
        if self.defect != Defect::CheckpointSync {
            self.disk.sync(new, SyncKind::Fsync)?;
        }
        self.disk.rename(&name("log.new"), &name("log"))?;
        self.sync_dir()
    }
}

fn said(error: DiskError) -> String {
    error.to_string()
}

impl Store for Toy {
    type How = Defect;
    type Ticket = u64;

    fn open(disk: Arc<dyn Disk>, how: &Defect) -> Result<Self, String> {
        let log = disk.open(&name("log"), FileMode::Create).map_err(said)?;
        let inner = Mutex::new(Inner { log, end: 0, tables: BTreeMap::new() });
        let toy = Self { disk, defect: *how, inner };
        toy.recover().map_err(said)?;
        Ok(toy)
    }

    fn create_table(&self, name: &str) -> Result<(), String> {
        self.define(name, None).map_err(said)
    }

    fn drop_table(&self, name: &str) -> Result<(), String> {
        self.define(name, Some(b"none")).map_err(said)
    }

    fn commit(&self, ops: &[Op]) -> Result<(u64, usize), String> {
        let mut inner = self.lock();
        let mut body = Vec::new();
        for op in ops {
            let table = crate::common::model::table_name(op.table);
            encode(&table, &op.key, op.value.as_deref(), &mut body);
            if self.defect == Defect::Atomicity {
                self.append(&mut inner, &body).map_err(said)?;
                body.clear();
            }
        }
        if !body.is_empty() {
            self.append(&mut inner, &body).map_err(said)?;
        }
        Ok((inner.end, ops.len()))
    }

    fn place(ticket: &u64) -> u64 {
        *ticket
    }

    fn wait(&self, _ticket: u64) -> Result<(), String> {
        self.sync().map_err(said)
    }

    fn step(&self, _now_us: u64) -> Result<(), String> {
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), String> {
        self.rewrite().map_err(said)
    }

    fn set(&self, _name: &str, _value: &str) -> Result<(), String> {
        Ok(())
    }

    fn scan(&self, table: &str, _is_backward: bool) -> Result<usize, String> {
        Ok(self.lock().tables.get(table).map_or(0, BTreeMap::len))
    }

    fn digest(&self) -> Result<u64, String> {
        Ok(digest(&self.lock().tables))
    }

    fn contents(&self) -> Result<Tables, String> {
        Ok(self.lock().tables.clone())
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn close(self) -> Result<(), String> {
        self.sync().map_err(said)
    }
}

const SHAPE: Shape = Shape {
    batches: 60,
    tables: 3,
    rows: 8,
    key_bytes: 100,
    value_bytes: 1_500,
    batch_bytes: 9_000,
    live: &[],
};

#[test]
fn a_sound_toy_passes() {
    let how = Defect::None;
    let sweep = Sweep::<Toy>::new(&how, &SHAPE);
    prove("toy::a_sound_toy_passes", &sweep, &[1, 2], 600, |seed| {
        record::<Toy>(seed, &SHAPE, &how)
    });
}

#[test]
fn every_defect_of_a_toy_is_found() {
    let all = [
        Defect::Sync,
        Defect::Checksum,
        Defect::DirectorySync,
        Defect::CheckpointSync,
        Defect::Atomicity,
        Defect::CachedFrames,
    ];
    for how in all {
        let ending = (how == Defect::CachedFrames).then_some(Ending::SyncFailed);
        let sweep = Sweep::<Toy> { ending, ..Sweep::new(&how, &SHAPE) };
        let swept = |seed| sweep.run(&record::<Toy>(seed, &SHAPE, &how).unwrap(), 2_000);
        let outcomes = (1..6).map(swept);
        let found = outcomes.filter_map(|outcome| outcome.violation).next();
        let found = found.unwrap_or_else(|| panic!("{how:?} was not found"));
        eprintln!("{how:?} at {}: {}", found.replay, found.what);
        let (seed, crash) = parse(&found.replay).unwrap();
        assert_eq!(text(seed, crash), found.replay);
        let again = record::<Toy>(seed, &SHAPE, &how).unwrap();
        let again = quietly(|| sweep.one(&again, crash, true));
        assert_eq!(again.unwrap_err(), found.what, "a replay shows the same");
    }
}
