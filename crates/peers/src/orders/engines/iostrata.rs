//! The engine of this repository: row locks, one frame per transaction, tickets.

use std::collections::VecDeque;
use std::path::Path;

use iostrata_engine::{
    Counter, Engine, EngineError, Isolation, Table, Ticket, Transaction, TransactionError,
};

use crate::engines::iostrata;
use crate::error::PeerError;
use crate::orders::rows::{Relation, RowKey, Scale};
use crate::orders::store::{Body, EngineCounts, OrderStore, OrderThread, RowError, Rows};
use crate::store::Setup;

const NAME: &str = "iostrata";

/// An open store: a table for each relation.
pub struct Iostrata {
    engine: Engine,
    tables: Vec<Table>,
}

impl Iostrata {
    /// Opens or makes `dir/iostrata`.
    pub fn open(dir: &Path, setup: Setup) -> Result<Self, PeerError> {
        let engine = iostrata::engine(dir, setup)?;
        let tables = Relation::ALL.iter().map(|relation| engine.open_table(relation.name()));
        let tables =
            tables.collect::<Result<_, _>>().map_err(PeerError::of(NAME, "open a table"))?;
        Ok(Self { engine, tables })
    }
}

impl OrderStore for Iostrata {
    fn load(&self, scale: Scale) -> Result<(), PeerError> {
        for (relation, table) in Relation::ALL.into_iter().zip(&self.tables) {
            let rows = scale.rows(relation);
            let rows = rows.map(|(key, value)| (key.within().to_vec(), value));
            table.bulk_load(rows).map_err(PeerError::of(NAME, "load"))?;
        }
        self.engine.checkpoint().map_err(PeerError::of(NAME, "checkpoint"))
    }

    fn thread(&self) -> Result<Box<dyn OrderThread + '_>, PeerError> {
        Ok(Box::new(Thread { store: self, tickets: VecDeque::new(), value: Vec::new() }))
    }

    fn counts(&self) -> Option<EngineCounts> {
        let counters = self.engine.counters();
        Some(EngineCounts {
            rows_ns: counters[Counter::CpuNsRows],
            commit_ns: counters[Counter::CpuNsCommit],
            cleaner_ns: counters[Counter::CpuNsCleaner],
            purge_ns: counters[Counter::CpuNsPurge],
            redo_bytes: counters[Counter::LsnCurrent],
            syncs: counters[Counter::OsLogFsyncs],
            history: counters[Counter::HistoryListLength],
        })
    }

    fn close(self: Box<Self>) -> Result<(), PeerError> {
        let Self { engine, tables } = *self;
        drop(tables);
        engine.close().map_err(PeerError::of(NAME, "close"))
    }
}

struct Thread<'s> {
    store: &'s Iostrata,
    /// Not settled yet, the oldest first.
    tickets: VecDeque<Ticket>,
    value: Vec<u8>,
}

impl OrderThread for Thread<'_> {
    fn transact(&mut self, body: &mut Body<'_>) -> Result<(), RowError> {
        let store = self.store;
        let transaction = store.engine.begin(Isolation::RepeatableRead).map_err(failed)?;
        let mut rows = OpenRows { transaction, tables: &store.tables, value: &mut self.value };
        body(&mut rows)?;
        self.tickets.push_back(rows.transaction.commit_async().map_err(failed)?);
        Ok(())
    }

    fn settle(&mut self, unsettled: usize) -> Result<u64, PeerError> {
        let failed = PeerError::of::<EngineError>;
        let mut settled = 0;
        while let Some(ticket) = self.tickets.front() {
            if self.tickets.len() > unsettled {
                ticket.wait().map_err(failed(NAME, "make a commit durable"))?;
            } else if !ticket.try_wait().map_err(failed(NAME, "ask for a commit"))? {
                break;
            }
            self.tickets.pop_front();
            settled += 1;
        }
        Ok(settled)
    }
}

struct OpenRows<'s> {
    transaction: Transaction,
    tables: &'s [Table],
    value: &'s mut Vec<u8>,
}

impl Rows for OpenRows<'_> {
    fn get(&mut self, key: &RowKey, seen: &mut dyn FnMut(&[u8])) -> Result<bool, RowError> {
        let table = &self.tables[key.relation() as usize];
        let found = self.transaction.get_into(table, key.within(), self.value).map_err(failed)?;
        if found {
            seen(self.value);
        }
        Ok(found)
    }

    fn insert(&mut self, key: &RowKey, value: &[u8]) -> Result<(), RowError> {
        let table = &self.tables[key.relation() as usize];
        self.transaction.insert(table, key.within(), value).map_err(failed)
    }

    fn modify(
        &mut self,
        key: &RowKey,
        change: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<bool, RowError> {
        let table = &self.tables[key.relation() as usize];
        self.transaction.modify(table, key.within(), change).map_err(failed)
    }

    fn delete(&mut self, key: &RowKey) -> Result<bool, RowError> {
        let table = &self.tables[key.relation() as usize];
        self.transaction.delete(table, key.within()).map_err(failed)
    }
}

fn failed(error: EngineError) -> RowError {
    match error {
        EngineError::Transaction(
            TransactionError::Deadlock { .. }
            | TransactionError::LockTimeout { .. }
            | TransactionError::Conflict { .. },
        ) => RowError::Conflict,
        error => RowError::Failed(PeerError::of(NAME, "run a transaction")(error)),
    }
}
