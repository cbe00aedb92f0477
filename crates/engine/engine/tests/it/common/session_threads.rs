//! Transactions of several threads on the same rows of one engine; their tickets give the order.
//!
//! Every value is written once, so a read that is acknowledged shows which commits must be there.

use std::collections::HashMap;
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use iostrata_engine::{Engine, EngineError, Table, Ticket, Transaction, TransactionOptions};
use iostrata_io::disk::{MemDisk, TraceDisk};

use crate::common::chance::Chance;
use crate::common::engine::How;
use crate::common::model::{Change, History, Tables, table_name};
use crate::common::plan::{Op, Shape};
use crate::common::record::Recording;
use crate::common::sessions::LEVELS;

/// Different keys of a table, which all threads share.
const KEYS: usize = 12;
/// Bytes of a value that no other value has.
const UNIQUE_BYTES: usize = 16;

/// A commit: its place, its number and its changes.
type Commit = (u64, u64, Vec<Op>);

/// What the threads did.
#[derive(Default)]
struct WorkerOutcome {
    commits: Vec<Commit>,
    /// Numbers of readers, each with the values that it has read.
    reads: Vec<(u64, Vec<Vec<u8>>)>,
    refused: usize,
}

/// What ends a transaction without a commit.
fn may_refuse(error: EngineError) -> Result<(), EngineError> {
    if matches!(error, EngineError::Transaction(_)) { Ok(()) } else { Err(error) }
}

/// One thread's work.
struct Worker<'a> {
    engine: &'a Engine,
    disk: &'a TraceDisk,
    shape: &'a Shape,
    tables: &'a [Table],
    chance: Chance,
    next: u64,
    waiting: Vec<(u64, Ticket)>,
    outcome: WorkerOutcome,
}

impl Worker<'_> {
    fn all(mut self) -> Result<WorkerOutcome, EngineError> {
        for _ in 0..self.shape.batches {
            if let Err(error) = self.transaction() {
                may_refuse(error)?;
                self.outcome.refused += 1;
            }
            if self.chance.percent(5) {
                self.engine.checkpoint()?;
            }
            if self.chance.percent(40) {
                self.wait_all()?;
            }
        }
        self.wait_all()?;
        Ok(self.outcome)
    }

    fn wait_all(&mut self) -> Result<(), EngineError> {
        for (id, ticket) in self.waiting.drain(..) {
            ticket.wait()?;
            self.disk.ack(id);
        }
        Ok(())
    }

    fn transaction(&mut self) -> Result<(), EngineError> {
        let mut options = TransactionOptions::from(*self.chance.pick(&LEVELS));
        options.is_read_only = self.chance.percent(30);
        options.lock_wait_timeout = Some(Duration::from_millis(3));
        let mut transaction = self.engine.begin(options)?;
        let (mut ops, mut read) = (Vec::new(), Vec::new());
        for _ in 0..self.chance.within(1, self.shape.rows) {
            if self.chance.percent(20) {
                // Others get into the middle of it.
                std::thread::sleep(Duration::from_micros(100));
            }
            if options.is_read_only || self.chance.percent(25) {
                self.read(&mut transaction, &mut read)?;
            } else {
                self.write(&mut transaction, &mut ops)?;
            }
        }
        if self.chance.percent(20) {
            return Ok(());
        }
        self.next += 1;
        let ticket = transaction.commit_async()?;
        if ops.is_empty() {
            self.outcome.reads.push((self.next, read));
        } else {
            self.outcome.commits.push((ticket.lsn(), self.next, ops));
        }
        self.waiting.push((self.next, ticket));
        Ok(())
    }

    fn row(&mut self) -> (usize, Vec<u8>) {
        let key = self.chance.below(KEYS) as u64;
        (self.chance.below(self.tables.len()), key.to_be_bytes().to_vec())
    }

    /// Rows up to a key, or one row.
    fn read(
        &mut self,
        transaction: &mut Transaction,
        read: &mut Vec<Vec<u8>>,
    ) -> Result<(), EngineError> {
        let (table, key) = self.row();
        if self.chance.percent(30) {
            for row in transaction.range(&self.tables[table], ..key.as_slice())? {
                read.push(row?.1);
            }
        } else {
            read.extend(transaction.get(&self.tables[table], &key)?);
        }
        Ok(())
    }

    fn write(
        &mut self,
        transaction: &mut Transaction,
        ops: &mut Vec<Op>,
    ) -> Result<(), EngineError> {
        let (table, key) = self.row();
        let len = UNIQUE_BYTES + self.chance.below(self.shape.value_bytes / 3);
        let value = self.chance.bytes(len);
        let of = &self.tables[table];
        let put = match self.chance.below(4) {
            0 => Some(transaction.put(of, &key, &value).map(|()| Some(value))?),
            1 => match transaction.get_for_update(of, &key)? {
                Some(_) => None,
                None => Some(transaction.insert(of, &key, &value).map(|()| Some(value))?),
            },
            2 => transaction
                .modify(of, &key, |bytes| bytes.clone_from(&value))?
                .then_some(Some(value)),
            _ => transaction.delete(of, &key)?.then_some(None),
        };
        ops.extend(put.map(|value| Op { table, key, value }));
        Ok(())
    }
}

/// Runs transactions on so many threads.
pub fn record_session_threads(
    seed: u64,
    threads: u64,
    shape: &Shape,
    how: &How,
) -> Result<Recording, String> {
    let said = |error: EngineError| error.to_string();
    let disk = TraceDisk::new(MemDisk::new());
    let engine = how.open(Arc::new(disk.clone())).map_err(said)?;
    let opened = disk.points() - 1;
    let mut history = History::new(Tables::new());
    let mut tables = Vec::new();
    for table in 0..shape.tables {
        history.push(table as u64, Change::Create(table));
        tables.push(engine.create_table(&table_name(table)).map_err(said)?);
        disk.ack(table as u64);
    }
    let (all, start) = (Mutex::new(Vec::new()), Barrier::new(threads as usize));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let chance = Chance::new(seed * 100 + thread);
            let (outcome, waiting, next) =
                (WorkerOutcome::default(), Vec::new(), (thread + 1) << 32);
            let (engine, disk, tables) = (&engine, &disk, &tables);
            let worker = Worker { engine, disk, shape, tables, chance, next, waiting, outcome };
            let (all, start) = (&all, &start);
            scope.spawn(move || {
                start.wait();
                // Before the lock is taken.
                let outcome = worker.all();
                all.lock().expect("no panic").push(outcome);
            });
        }
    });
    let all = all.into_inner().map_err(|_| "a thread panicked".to_owned())?;
    let all: Vec<WorkerOutcome> = all.into_iter().collect::<Result<_, _>>().map_err(said)?;
    drop(tables);
    engine.close().map_err(said)?;
    let history = ordered(history, all)?;
    Ok(Recording { seed, disk, history, opened })
}

/// All commits in the order of their frames, and what readers need.
fn ordered(mut history: History, all: Vec<WorkerOutcome>) -> Result<History, String> {
    let mut commits: Vec<Commit> = Vec::new();
    let (mut reads, mut refused) = (Vec::new(), 0);
    for outcome in all {
        commits.extend(outcome.commits);
        reads.extend(outcome.reads);
        refused += outcome.refused;
    }
    commits.sort_by_key(|(place, _, _)| *place);
    let count = commits.len();
    let mut written: HashMap<Vec<u8>, usize> = HashMap::new();
    for (_place, id, ops) in commits {
        let values = ops.iter().filter_map(|op| op.value.clone());
        written.extend(values.map(|value| (value, history.len() + 1)));
        history.push(id, Change::Batch(ops));
    }
    let readers = reads.len();
    for (id, values) in reads {
        let mut needed = 0;
        for value in values {
            let place = written.get(&value).ok_or("a reader saw what was never committed")?;
            needed = needed.max(*place);
        }
        history.read(id, needed);
    }
    if count == 0 || readers == 0 || refused == 0 {
        return Err(format!("{count} commits, {readers} readers, {refused} refused"));
    }
    Ok(history)
}
