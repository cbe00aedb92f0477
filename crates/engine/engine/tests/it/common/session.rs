//! One transaction and what it must see: each call is set against the model.

use iostrata_engine::{
    Direction, Engine, EngineError, Isolation, OwnedRow, Savepoint, Table, Ticket, Transaction,
    TransactionError, TransactionOptions,
};

use crate::common::answers::{Answer, Expected, Trouble, World, compare};
use crate::common::committed::{RowKey, Rows, TableKey, View, Write};

/// A transaction with what it must see.
pub struct Session {
    pub number: u64,
    pub level: Isolation,
    pub is_read_only: bool,
    /// Its ticket waits until it is durable.
    pub is_acknowledged: bool,
    /// Calls that it still makes.
    pub calls: usize,
    transaction: Transaction,
    view: Option<View>,
    own: Vec<Write>,
    savepoints: Vec<(Savepoint, usize)>,
    /// How many changes must be there once its reads are acknowledged.
    pub needed: usize,
}

/// How a session ended.
pub enum Ended {
    /// It has written this.
    Committed(Vec<Write>, Ticket),
    /// It has only read.
    Read(Ticket),
    /// Nothing of it is left.
    Refused,
}

impl Session {
    pub fn begin(
        engine: &Engine,
        options: TransactionOptions,
        world: &World,
    ) -> Result<Self, EngineError> {
        let transaction = engine.begin(options)?;
        let level = options.isolation;
        Ok(Self {
            number: transaction.number(),
            level,
            is_read_only: options.is_read_only,
            is_acknowledged: options.flush_log_at.is_none(),
            calls: 0,
            transaction,
            view: (level == Isolation::Snapshot).then(|| world.committed.now.clone()),
            own: Vec::new(),
            savepoints: Vec::new(),
            needed: 0,
        })
    }

    fn own(&self, row: &RowKey) -> Option<Option<&Vec<u8>>> {
        self.own.iter().rev().find(|(own, _)| own == row).map(|(_, value)| value.as_ref())
    }

    /// What plain reads see.
    fn view<'v>(&'v mut self, world: &'v World) -> &'v View {
        match self.level {
            Isolation::ReadCommitted => &world.committed.now,
            _ => self.view.get_or_insert_with(|| world.committed.now.clone()),
        }
    }

    pub fn get(&mut self, world: &World, table: &Table, row: &RowKey) -> Result<Answer, Trouble> {
        let expected = match self.own(row) {
            Some(own) => own.cloned(),
            None => {
                let view = self.view(world);
                let (count, expected) = (view.count, view.get(row).cloned());
                self.saw(world, count, |other| other == row);
                expected
            }
        };
        let found = self.transaction.get(table, &row.1);
        compare("get", Expected::Value(expected), found)
    }

    fn saw(&mut self, world: &World, count: usize, is_meant: impl Fn(&RowKey) -> bool) {
        self.needed = self.needed.max(world.committed.last(count, is_meant));
    }

    /// The newest row behind a lock that is taken, if it can be had. `looks`: whether the call
    /// reads the row in its page.
    fn locked(
        &mut self,
        world: &mut World,
        row: &RowKey,
        looks: bool,
    ) -> Expected<Option<Vec<u8>>> {
        if world.locks.get(row).is_some_and(|holder| *holder != self.number) {
            return Expected::Not(Answer::Blocked);
        }
        world.locks.insert(row.clone(), self.number);
        if let Some(own) = self.own(row) {
            return Expected::Value(own.cloned());
        }
        let now = world.committed.now.count;
        if self.level == Isolation::Snapshot {
            let at = self.view.as_ref().map_or(now, |view| view.count);
            if world.committed.last(now, |other| other == row) > at {
                return Expected::Not(Answer::Over);
            }
        }
        if looks {
            self.saw(world, now, |other| other == row);
        }
        Expected::Value(world.committed.now.get(row).cloned())
    }

    pub fn get_for_update(
        &mut self,
        world: &mut World,
        table: &Table,
        row: &RowKey,
    ) -> Result<Answer, Trouble> {
        let expected = self.locked(world, row, true);
        compare("get_for_update", expected, self.transaction.get_for_update(table, &row.1))
    }

    pub fn put(
        &mut self,
        world: &mut World,
        table: &Table,
        (row, value): (&RowKey, Vec<u8>),
    ) -> Result<Answer, Trouble> {
        let expected = match self.locked(world, row, self.level == Isolation::Snapshot) {
            Expected::Value(_) => Expected::Value(()),
            Expected::Not(answer) => Expected::Not(answer),
        };
        let answer = compare("put", expected, self.transaction.put(table, &row.1, &value))?;
        if answer == Answer::Fine {
            self.own.push((row.clone(), Some(value)));
        }
        Ok(answer)
    }

    pub fn insert(
        &mut self,
        world: &mut World,
        table: &Table,
        (row, value): (&RowKey, Vec<u8>),
    ) -> Result<Answer, Trouble> {
        let expected = match self.locked(world, row, true) {
            Expected::Value(Some(_)) => Expected::Not(Answer::Exists),
            Expected::Value(None) => Expected::Value(()),
            Expected::Not(answer) => Expected::Not(answer),
        };
        let answer = compare("insert", expected, self.transaction.insert(table, &row.1, &value))?;
        if answer == Answer::Fine {
            self.own.push((row.clone(), Some(value)));
        }
        Ok(answer)
    }

    /// Puts another value where there is one, which it compares first.
    pub fn modify(
        &mut self,
        world: &mut World,
        table: &Table,
        (row, value): (&RowKey, Vec<u8>),
    ) -> Result<Answer, Trouble> {
        let mut newest = None;
        let expected = match self.locked(world, row, true) {
            Expected::Value(found) => {
                newest = found;
                Expected::Value((newest.is_some(), newest.clone()))
            }
            Expected::Not(answer) => Expected::Not(answer),
        };
        let mut before = None;
        let changed = self.transaction.modify(table, &row.1, |bytes| {
            before = Some(std::mem::replace(bytes, value.clone()));
        });
        let found = changed.map(|is_there| (is_there, before));
        let answer = compare("modify", expected, found)?;
        if answer == Answer::Fine && newest.is_some() {
            self.own.push((row.clone(), Some(value)));
        }
        Ok(answer)
    }

    pub fn delete(
        &mut self,
        world: &mut World,
        table: &Table,
        row: &RowKey,
    ) -> Result<Answer, Trouble> {
        let mut is_there = false;
        let expected = match self.locked(world, row, true) {
            Expected::Value(found) => {
                is_there = found.is_some();
                Expected::Value(is_there)
            }
            Expected::Not(answer) => Expected::Not(answer),
        };
        let answer = compare("delete", expected, self.transaction.delete(table, &row.1))?;
        if answer == Answer::Fine && is_there {
            self.own.push((row.clone(), None));
        }
        Ok(answer)
    }

    /// The rows of a view with those of its own.
    fn with_own(&self, mut rows: Rows, at: TableKey) -> Rows {
        for ((table, key), value) in self.own.iter().filter(|((table, _), _)| *table == at) {
            assert_eq!(*table, at);
            match value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        rows
    }

    /// The first rows of a range, at most `most`.
    pub fn range(
        &mut self,
        world: &World,
        (table, at): (&Table, TableKey),
        (from, to): (&[u8], &[u8]),
        (direction, most): (Direction, usize),
    ) -> Result<Answer, Trouble> {
        let view = self.view(world);
        let (count, rows) = (view.count, view.rows(at));
        let rows = self.with_own(rows, at);
        let is_in = |key: &[u8]| key >= from && key < to;
        let mut expected: Vec<_> = rows.into_iter().filter(|(key, _)| is_in(key)).collect();
        if direction == Direction::Backward {
            expected.reverse();
        }
        let is_whole = expected.len() < most;
        expected.truncate(most);
        let last = expected.last().map(|(key, _)| key.clone()).unwrap_or_default();
        let is_given = |key: &[u8]| match direction {
            _ if is_whole => true,
            Direction::Forward => key <= last.as_slice(),
            Direction::Backward => key >= last.as_slice(),
        };
        self.saw(world, count, |(table, key)| *table == at && is_in(key) && is_given(key));
        let found = self.rows_of(table, (from, to), (direction, most));
        compare("range", Expected::Value(expected), found)
    }

    fn rows_of(
        &mut self,
        table: &Table,
        (from, to): (&[u8], &[u8]),
        (direction, most): (Direction, usize),
    ) -> Result<Vec<OwnedRow>, EngineError> {
        let mut cursor = self.transaction.cursor(table, from..to, direction)?;
        let mut rows = Vec::new();
        while rows.len() < most
            && let Some((key, value)) = cursor.next_row()?
        {
            rows.push((key.to_vec(), value.to_vec()));
        }
        Ok(rows)
    }

    pub fn first_for_update(
        &mut self,
        world: &mut World,
        (table, at): (&Table, TableKey),
        from: &[u8],
    ) -> Result<Answer, Trouble> {
        let rows = self.with_own(world.committed.now.rows(at), at);
        let first = rows.into_iter().find(|(key, _)| key.as_slice() >= from);
        let expected = match &first {
            None => Expected::Value(None),
            Some((key, _)) => match self.locked(world, &(at, key.clone()), true) {
                Expected::Value(value) => Expected::Value(value.map(|value| (key.clone(), value))),
                Expected::Not(answer) => Expected::Not(answer),
            },
        };
        compare("first_for_update", expected, self.transaction.first_for_update(table, from..))
    }

    pub fn savepoint(&mut self) {
        self.savepoints.push((self.transaction.savepoint(), self.own.len()));
    }

    /// Goes back to one of its savepoints.
    pub fn rollback_to(&mut self, at: usize) -> Result<(), Trouble> {
        if self.savepoints.is_empty() {
            return Ok(());
        }
        let at = at % self.savepoints.len();
        let (savepoint, len) = self.savepoints[at];
        self.transaction.rollback_to(savepoint)?;
        self.own.truncate(len);
        self.savepoints.truncate(at + 1);
        Ok(())
    }

    /// Every call of a finished transaction fails with that error.
    pub fn says_over(mut self, table: &Table) -> Result<(), Trouble> {
        let finished = TransactionError::Finished { transaction: self.number };
        let is_finished =
            |error| matches!(error, Some(EngineError::Transaction(e)) if e == finished);
        let got = is_finished(self.transaction.get(table, b"k").err());
        let put = is_finished(self.transaction.put(table, b"k", b"").err());
        if got && put && is_finished(self.transaction.commit().err()) {
            return Ok(());
        }
        Err(Trouble::Wrong("a call after the end of a transaction".to_owned()))
    }

    /// Commits. Into a table that was dropped nothing goes, and nothing else then.
    pub fn commit(self, world: &World) -> Result<Ended, Trouble> {
        let is_there = |(row, _): &Write| world.committed.tables.contains(&row.0);
        let can_commit = self.own.iter().all(is_there);
        let is_read = self.own.is_empty();
        match (self.transaction.commit_async(), can_commit) {
            (Ok(ticket), true) if is_read => Ok(Ended::Read(ticket)),
            (Ok(ticket), true) => Ok(Ended::Committed(self.own, ticket)),
            (Ok(_), false) => Err(Trouble::Wrong("a commit into a dropped table".to_owned())),
            (Err(EngineError::Transaction(TransactionError::TooLarge { .. })), _)
            | (Err(EngineError::Table(_)), false) => Ok(Ended::Refused),
            (Err(EngineError::Transaction(error)), _) => Err(Trouble::Wrong(error.to_string())),
            (Err(error), _) => Err(Trouble::Failed(error)),
        }
    }
}
