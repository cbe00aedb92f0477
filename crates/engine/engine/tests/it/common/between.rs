//! What happens between the calls of sessions: batches, tables that come and go, tickets, and the
//! background.

use iostrata_engine::{EngineError, Isolation, Table, Ticket, TransactionError};

use crate::common::committed::{RowKey, TableKey, Write};
use crate::common::engine::commit;
use crate::common::model::table_name;
use crate::common::plan::Op;
use crate::common::sessions::Sessions;

impl Sessions<'_> {
    pub(super) fn set(&mut self) -> Result<(), String> {
        if self.shape.live.is_empty() || self.may_fail {
            return Ok(());
        }
        let (name, values) = self.chance.pick(self.shape.live);
        let value = values[self.chance.below(values.len())];
        self.engine.set(name, value).map_err(|error| format!("{name} = {value}: {error}"))
    }

    pub(super) fn background(&mut self) -> Result<(), String> {
        for _ in 0..self.chance.within(1, 3) {
            self.now_us += 10_000;
            let result = self.engine.step(self.now_us).map(|_next_us| ());
            self.allowed(result)?;
        }
        Ok(())
    }

    /// The number of the change to come.
    pub(super) fn id(&self) -> u64 {
        self.world.committed.next() as u64
    }

    pub(super) fn create(&mut self, table: usize) -> Result<(), String> {
        let (id, name) = (self.id(), table_name(table));
        let result = self.engine.create_table(&name).map(|_table| ());
        let is_there = matches!(self.engine.table(&name), Ok(Some(_)));
        let is_stopped = self.engine.begin(Isolation::default()).is_err();
        // A crash may find it although it was not acknowledged.
        if is_there || is_stopped {
            self.world.committed.create(id, table);
            self.is_over = !is_there;
        }
        result.as_ref().ok().inspect(|()| self.disk.ack(id));
        self.allowed(result)
    }

    pub(super) fn create_or_drop(&mut self) -> Result<(), String> {
        let tables = self.world.committed.tables.clone();
        let newest = *tables.last().expect("there is a table");
        let is_free = |table: &usize| tables.iter().all(|other| other.table != *table);
        match (0..self.shape.tables).find(is_free) {
            Some(table) if self.chance.percent(70) => self.create(table),
            _ if tables.len() > 1 && self.chance.percent(25) && !self.may_fail => {
                self.saw("a drop");
                let id = self.id();
                self.world.committed.drop_table(id, newest);
                self.engine.drop_table(&table_name(newest.table)).map_err(|e| e.to_string())?;
                self.disk.ack(id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// One of the tables.
    pub(super) fn table(&mut self) -> (Table, TableKey) {
        let key = *self.chance.pick(&self.world.committed.tables);
        let table = self.engine.table(&table_name(key.table)).ok().flatten();
        (table.expect("a table of the model"), key)
    }

    pub(super) fn key(&mut self, table: TableKey) -> Vec<u8> {
        let number = self.chance.below(self.shape.keys()) as u64;
        match table.table {
            0 => number.to_be_bytes().to_vec(),
            1 => format!("{number}").into_bytes(),
            _ => {
                let mut key = vec![b'k'; self.shape.key_bytes / 2 + number as usize % 7];
                key.extend(number.to_be_bytes());
                key
            }
        }
    }

    /// Often the row that was changed last, durable or not.
    pub(super) fn row(&mut self, table: TableKey) -> RowKey {
        let newest = self.world.committed.newest(table).cloned();
        match newest {
            Some(key) if self.chance.percent(30) => (table, key),
            _ => (table, self.key(table)),
        }
    }

    pub(super) fn value(&mut self) -> Vec<u8> {
        let most = self.shape.value_bytes;
        let len = match self.chance.below(20) {
            0 => 0,
            1 => most,
            2..5 => self.chance.within(most / 4, most),
            _ => self.chance.within(8, (most / 4).max(8)),
        };
        self.chance.bytes(len)
    }

    pub(super) fn is_locked(&self, op: &Op) -> bool {
        let rows = self.world.locks.keys();
        let is_there = |table: &TableKey| self.world.committed.tables.contains(table);
        rows.into_iter()
            .any(|(table, key)| is_there(table) && table.table == op.table && *key == op.key)
    }

    /// A batch, which is refused as a whole when a session has locked one of its rows.
    pub(super) fn batch(&mut self) -> Result<(), String> {
        let mut ops = Vec::new();
        for _ in 0..self.chance.within(1, self.shape.rows) {
            let (_, table) = self.table();
            let (key, is_delete) = (self.key(table), self.chance.percent(self.delete_percent));
            let value = if is_delete { None } else { Some(self.value()) };
            ops.push(Op { table: table.table, key, value });
        }
        let is_locked = ops.iter().any(|op| self.is_locked(op));
        match commit(self.engine, &ops) {
            Ok((ticket, count)) if !ops[..count].iter().any(|op| self.is_locked(op)) => {
                let writes = ops[..count].iter().map(|op| self.write(op)).collect();
                self.saw("a batch");
                self.committed(writes, Some(ticket))
            }
            Ok(_) => Err("a batch changed a locked row".to_owned()),
            Err(EngineError::Transaction(TransactionError::LockTimeout { .. })) if is_locked => {
                self.saw("a batch that was refused");
                Ok(())
            }
            Err(error) => self.allowed(Err(error)),
        }
    }

    pub(super) fn write(&self, op: &Op) -> Write {
        let mut tables = self.world.committed.tables.iter();
        let table = tables.find(|table| table.table == op.table).expect("a table of the model");
        ((*table, op.key.clone()), op.value.clone())
    }

    pub(super) fn committed(
        &mut self,
        writes: Vec<Write>,
        ticket: Option<Ticket>,
    ) -> Result<(), String> {
        let id = self.id();
        self.world.committed.commit(id, writes);
        self.waiting.extend(ticket.map(|ticket| (id, ticket)));
        if self.chance.percent(30) { self.wait_all() } else { Ok(()) }
    }

    /// One of the tickets, whatever its place: it makes the older ones durable, too.
    pub(super) fn wait_one(&mut self) -> Result<(), String> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let place = self.chance.below(self.waiting.len());
        self.wait_for(place)
    }

    pub(super) fn wait_for(&mut self, place: usize) -> Result<(), String> {
        let (id, ticket) = self.waiting.swap_remove(place);
        let settled = if self.chance.percent(50) { ticket.try_wait() } else { Ok(false) };
        let waited = match settled {
            Ok(true) => Ok(()),
            Ok(false) => ticket.wait(),
            Err(error) => Err(error),
        };
        waited.as_ref().ok().inspect(|()| self.disk.ack(id));
        self.allowed(waited)
    }

    pub fn wait_all(&mut self) -> Result<(), String> {
        while !self.waiting.is_empty() {
            self.wait_one()?;
        }
        Ok(())
    }

    pub(super) fn plain_get(&mut self) -> Result<(), String> {
        let (table, key) = self.table();
        let row = self.row(key);
        match table.get(&row.1) {
            Ok(found) if found.as_ref() == self.world.committed.now.get(&row) => Ok(()),
            Ok(_) => Err("a plain read sees what is not committed".to_owned()),
            Err(error) => self.allowed(Err(error)),
        }
    }
}
