//! Many threads: what a snapshot may need is always readable, and every key is purged once.
//!
//! Rows have a latch each, which stands for the latch of the leaf: a commit takes it before it
//! takes its number.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use iostrata_engine::version::Versions;

use crate::version::support::*;

const ROWS: u64 = 8;
const COMMITS: u64 = 30_000;
const WRITERS: u64 = 3;

/// A row as in its leaf.
#[derive(Clone, Default)]
struct Row {
    number: u64,
    older: u64,
    is_tombstone: bool,
}

/// The bytes of a version: number, pointer to the one before, whose row it is.
fn bytes_of(row: &Row, key: u64) -> Vec<u8> {
    let len = 24 + (row.number % 300) as usize;
    let mut bytes = [row.number, row.older, key].map(u64::to_le_bytes).concat();
    bytes.resize(len, row.number as u8);
    bytes
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

struct Table {
    rows: Vec<Mutex<Row>>,
    /// For every deleting commit: how often its key was handed out.
    deleted: Mutex<BTreeMap<u64, u32>>,
}

impl Table {
    fn write(&self, versions: &Versions, key: u64, is_delete: bool) {
        let mut row = self.rows[key as usize].lock().unwrap();
        let number = versions.registry.tick();
        let old = bytes_of(&row, key);
        let mut older = 0;
        if is_delete {
            self.deleted.lock().unwrap().insert(number, 0);
            older = versions.log.keep().deleted(number, 1, &key.to_be_bytes(), 1, &old);
        } else if versions.registry.is_any_below(number) {
            older = versions.log.keep().replaced(number, 1, &old);
        }
        *row = Row { number, older, is_tombstone: is_delete };
    }

    /// Reads a row under a snapshot: the first version at or below it. All chains begin at 100.
    fn read(&self, versions: &Versions, key: u64, at: u64) -> u64 {
        let Row { mut number, mut older, .. } = *self.rows[key as usize].lock().unwrap();
        let mut value = Vec::new();
        while number > at {
            assert_ne!(older, 0, "snapshot {at} needs what {number} replaced");
            let flags = versions.log.read(older, &mut value).unwrap();
            assert_eq!(flags, Some(1), "what {number} replaced was dropped under {at}");
            assert_eq!(u64_at(&value, 16), key);
            assert!(u64_at(&value, 0) < number);
            (number, older) = (u64_at(&value, 0), u64_at(&value, 8));
            assert_eq!(value, bytes_of(&Row { number, older, is_tombstone: false }, key));
        }
        number
    }

    fn purge(&self, versions: &Versions, round: u64) -> bool {
        let batch = versions.take_purge(20).unwrap();
        let (is_empty, oldest) = (batch.is_empty(), versions.registry.oldest());
        if round % 7 == 3 {
            versions.put_back(batch);
            return is_empty;
        }
        for item in &batch.items {
            assert!(item.number <= oldest, "{} was purged under {oldest}", item.number);
            let mut key = [0; 8];
            key.copy_from_slice(&item.key);
            let mut row = self.rows[u64::from_be_bytes(key) as usize].lock().unwrap();
            if row.number == item.number {
                assert!(row.is_tombstone);
                row.is_tombstone = false;
            }
            *self.deleted.lock().unwrap().get_mut(&item.number).unwrap() += 1;
        }
        versions.finish_purge(batch);
        is_empty
    }
}

fn read_all(table: &Table, versions: &Versions, round: u64) {
    let snapshot = versions.registry.open(round);
    let at = snapshot.at();
    let first: Vec<u64> = (0..ROWS).map(|key| table.read(versions, key, at)).collect();
    if round.is_multiple_of(16) {
        thread::yield_now();
    }
    for (key, number) in first.iter().enumerate() {
        assert_eq!(table.read(versions, key as u64, at), *number, "it saw another one before");
    }
}

#[test]
fn readers_find_what_they_need_beside_writers_and_purge() {
    let (versions, _) = versions(4096, 64 * 1024);
    let row = Row { number: 100, ..Row::default() };
    let rows = (0..ROWS).map(|_| Mutex::new(row.clone())).collect();
    let table = Table { rows, deleted: Mutex::default() };
    let is_over = AtomicBool::new(false);
    let (versions, table, is_over) = (&*versions, &table, &is_over);
    let until_over = |mut work: Box<dyn FnMut(u64) + Send>| {
        let mut round = 0;
        while !is_over.load(Ordering::Relaxed) {
            round += 1;
            work(round);
        }
    };
    thread::scope(|scope| {
        for _ in 0..3 {
            let work = Box::new(|round| read_all(table, versions, round));
            scope.spawn(move || until_over(work));
        }
        for _ in 0..2 {
            scope.spawn(move || until_over(Box::new(|round| _ = table.purge(versions, round))));
        }
        scope.spawn(move || until_over(Box::new(|_| _ = versions.log.spill_step().unwrap())));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    for at in 0..COMMITS {
                        table.write(versions, (at * 5 + writer) % ROWS, at % 10 == writer);
                    }
                })
            })
            .collect();
        let results: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        results.into_iter().for_each(|result| result.unwrap());
    });
    while !table.purge(versions, 0) {}
    let deleted = table.deleted.lock().unwrap();
    assert!(!deleted.is_empty() && deleted.values().all(|times| *times == 1));
    let rows = table.rows.iter().map(|row| row.lock().unwrap());
    assert!(rows.into_iter().all(|row| !row.is_tombstone), "every last tombstone was purged");
    let stats = versions.stats();
    assert_eq!((stats.history, stats.snapshots, stats.spilled_bytes), (0, 0, 0));
}
