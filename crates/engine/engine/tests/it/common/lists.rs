//! Transactions of several threads on lists of numbers, recorded to be judged.

use std::sync::Barrier;

use iostrata_engine::{
    Direction, Engine, EngineError, Isolation, RequestError, Savepoint, Table, Transaction,
    TransactionError,
};

use crate::common::chance::Chance;
use crate::common::history::{Event, History};

pub const THREADS: usize = 8;
const KEYS: usize = 20;
/// Elements that still fit into a row of the smallest page.
const LIST_MAX: usize = 380;
/// Bytes in front of each list, so that there are several leaves from the beginning.
const FILLER_BYTES: usize = 300;
/// Elements of one thread.
const ELEMENTS: u32 = 1 << 24;

fn list_key(key: usize) -> [u8; 2] {
    [b'k', key as u8]
}

fn list_of(row: &[u8]) -> Vec<u32> {
    let words = row[FILLER_BYTES..].chunks_exact(4);
    words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Why a transaction did not commit.
enum Ended {
    RolledBack,
    /// What must not happen.
    Failed(String),
}

impl From<EngineError> for Ended {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Transaction(
                TransactionError::Deadlock { .. }
                | TransactionError::Conflict { .. }
                | TransactionError::LockTimeout { .. },
            )
            | EngineError::Request(RequestError::NotAsExpected { .. }) => Self::RolledBack,
            other => Self::Failed(other.to_string()),
        }
    }
}

/// One thread.
struct Worker<'e> {
    engine: &'e Engine,
    table: &'e Table,
    level: Isolation,
    thread: usize,
    chance: Chance,
    /// The element appended last.
    element: u32,
}

impl Worker<'_> {
    /// Runs transactions; gives those that committed.
    fn run(&mut self, transactions: usize) -> Result<Vec<Vec<Event>>, String> {
        let mut committed = Vec::new();
        for _ in 0..transactions {
            let is_batch = self.chance.percent(8);
            match if is_batch { self.batch() } else { self.transaction() } {
                Ok(events) => committed.push(events),
                Err(Ended::RolledBack) => {}
                Err(Ended::Failed(what)) => return Err(what),
            }
        }
        Ok(committed)
    }

    fn transaction(&mut self) -> Result<Vec<Event>, Ended> {
        let mut t = self.engine.begin(self.level)?;
        let (mut events, mut savepoint) = (Vec::new(), None);
        for _ in 0..self.chance.within(1, 6) {
            self.operation(&mut t, &mut events)?;
            self.go_back(&mut t, &mut events, &mut savepoint)?;
            if self.chance.percent(40) {
                std::thread::yield_now();
            }
        }
        if self.chance.percent(10) {
            t.rollback();
            return Err(Ended::RolledBack);
        }
        let ticket = t.commit_async()?;
        if self.chance.percent(10) {
            ticket.wait()?;
        }
        Ok(events)
    }

    /// A batch that appends to a list if it is still what was read.
    fn batch(&mut self) -> Result<Vec<Event>, Ended> {
        let key = self.chance.below(KEYS);
        let row = self.table.get(&list_key(key))?;
        let list = self.list(row.clone())?;
        if list.len() >= LIST_MAX {
            return Err(Ended::RolledBack);
        }
        std::thread::yield_now();
        let element = self.next_element();
        let new = [row.as_deref().unwrap_or_default(), &element.to_le_bytes()].concat();
        let mut batch = self.engine.batch();
        batch.compare_and_set(self.table, &list_key(key), row.as_deref(), Some(&new))?;
        let _durable_later = batch.commit_async()?;
        Ok(vec![Event::Locked { key, list }, Event::Append { key, element }])
    }

    fn operation(&mut self, t: &mut Transaction, events: &mut Vec<Event>) -> Result<(), Ended> {
        let (table, key) = (self.table, self.chance.below(KEYS));
        let read = |t: &mut Transaction| t.get(table, &list_key(key));
        let lock = |t: &mut Transaction| t.get_for_update(table, &list_key(key));
        match self.chance.below(100) {
            0..35 => {
                let list = self.list(read(t)?)?;
                events.push(Event::Read { key, list });
            }
            35..42 => events.push(self.scan(t)?),
            42..50 => self.noise(t)?,
            50..75 => self.modify(t, key, events)?,
            75..90 if self.level == Isolation::Snapshot => {
                let row = read(t)?;
                let list = self.list(row.clone())?;
                events.push(Event::Read { key, list });
                self.put(t, (key, row), events)?;
            }
            _ => {
                let row = lock(t)?;
                let list = self.list(row.clone())?;
                events.push(Event::Locked { key, list });
                if self.chance.percent(70) {
                    self.put(t, (key, row), events)?;
                }
            }
        }
        Ok(())
    }

    fn list(&self, row: Option<Vec<u8>>) -> Result<Vec<u32>, Ended> {
        let gone = || Ended::Failed("a row is gone that was never deleted".to_owned());
        row.as_deref().map(list_of).ok_or_else(gone)
    }

    fn next_element(&mut self) -> u32 {
        self.element += 1;
        self.element
    }

    fn modify(
        &mut self,
        t: &mut Transaction,
        key: usize,
        events: &mut Vec<Event>,
    ) -> Result<(), Ended> {
        let element = self.next_element();
        let (mut list, mut is_full) = (Vec::new(), false);
        let is_there = t.modify(self.table, &list_key(key), |row| {
            list = list_of(row);
            is_full = list.len() >= LIST_MAX;
            if !is_full {
                row.extend_from_slice(&element.to_le_bytes());
            }
        })?;
        if !is_there {
            return Err(Ended::Failed("a row is gone that was never deleted".to_owned()));
        }
        events.push(Event::Locked { key, list });
        if !is_full {
            events.push(Event::Append { key, element });
        }
        Ok(())
    }

    /// Puts a list that was read with one element more.
    fn put(
        &mut self,
        t: &mut Transaction,
        (key, row): (usize, Option<Vec<u8>>),
        events: &mut Vec<Event>,
    ) -> Result<(), Ended> {
        let mut row = row.unwrap_or_default();
        if list_of(&row).len() >= LIST_MAX {
            return Ok(());
        }
        let element = self.next_element();
        row.extend_from_slice(&element.to_le_bytes());
        t.put(self.table, &list_key(key), &row)?;
        events.push(Event::Append { key, element });
        Ok(())
    }

    fn scan(&mut self, t: &mut Transaction) -> Result<Event, Ended> {
        let is_backward = self.chance.percent(50);
        let direction = if is_backward { Direction::Backward } else { Direction::Forward };
        let mut cursor = t.cursor(self.table, .., direction)?;
        let mut lists = Vec::new();
        while let Some((key, row)) = cursor.next_row()? {
            if key.len() == 2 {
                lists.push(list_of(row));
            }
        }
        if is_backward {
            lists.reverse();
        }
        if lists.len() != KEYS {
            return Err(Ended::Failed(format!("a scan saw {} of {KEYS} lists", lists.len())));
        }
        Ok(Event::Scan { lists })
    }

    /// Makes or deletes a row of this thread between the lists: leaves split, purge has work.
    fn noise(&mut self, t: &mut Transaction) -> Result<(), Ended> {
        let key = [b'k', self.chance.below(KEYS) as u8, self.thread as u8];
        if !t.delete(self.table, &key)? {
            let len = self.chance.below(200);
            t.insert(self.table, &key, &vec![7; len])?;
        }
        Ok(())
    }

    /// Takes a savepoint, or goes back to the last one.
    fn go_back(
        &mut self,
        t: &mut Transaction,
        events: &mut Vec<Event>,
        savepoint: &mut Option<(Savepoint, usize)>,
    ) -> Result<(), Ended> {
        match self.chance.below(100) {
            0..15 => *savepoint = Some((t.savepoint(), events.len())),
            15..25 => {
                let Some((place, since)) = savepoint.take() else { return Ok(()) };
                t.rollback_to(place)?;
                let appended = |event: &Event| match event {
                    Event::Append { key, .. } => Some(Event::TakenBack { key: *key }),
                    _ => None,
                };
                let back: Vec<_> = events[since..].iter().rev().filter_map(appended).collect();
                events.extend(back);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Runs so many transactions of each thread on a new table; what they did and what is left. An
/// error is what no history may have: a row that is gone, a broken invariant.
pub fn history(
    engine: &Engine,
    name: &str,
    level: Isolation,
    transactions: usize,
) -> Result<History, String> {
    let table = &engine.create_table(name).unwrap();
    let mut batch = engine.batch();
    for key in 0..KEYS {
        batch.put(table, &list_key(key), &[b'.'; FILLER_BYTES]).unwrap();
    }
    batch.commit().unwrap();
    let start = &Barrier::new(THREADS);
    let threads: Result<Vec<_>, String> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let chance = Chance::new(name.len() as u64 * 1_000 + thread as u64);
            let element = thread as u32 * ELEMENTS;
            let mut worker = Worker { engine, table, level, thread, chance, element };
            start.wait();
            worker.run(transactions)
        };
        let running: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let row = |key: usize| table.get(&list_key(key)).map_err(|error| error.to_string());
    let list = |key| row(key)?.as_deref().map(list_of).ok_or("a list is gone".to_owned());
    let finals: Result<Vec<_>, String> = (0..KEYS).map(list).collect();
    Ok(History { threads: threads?, finals: finals? })
}
