//! What is committed, as transactions must see it.
//!
//! A view is everything as it was after some number of changes. A table that is dropped and made
//! again is another table: an older view finds nothing in it.

use std::collections::{BTreeMap, HashMap};

use crate::common::model::{Change, History, table_name};
use crate::common::plan::Op;

pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A table: its number in plans, and how many changes there were before it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableKey {
    pub table: usize,
    pub made: usize,
}

pub type RowKey = (TableKey, Vec<u8>);
pub type Write = (RowKey, Option<Vec<u8>>);

/// Everything as it was after some number of changes.
#[derive(Clone, Debug, Default)]
pub struct View {
    pub count: usize,
    tables: HashMap<TableKey, Rows>,
}

impl View {
    pub fn get(&self, row: &RowKey) -> Option<&Vec<u8>> {
        self.tables.get(&row.0).and_then(|rows| rows.get(&row.1))
    }

    pub fn rows(&self, table: TableKey) -> Rows {
        self.tables.get(&table).cloned().unwrap_or_default()
    }
}

/// The committed rows, and which change touched which of them.
pub struct Committed {
    pub history: History,
    pub now: View,
    /// The tables that are there.
    pub tables: Vec<TableKey>,
    touched: Vec<(usize, RowKey)>,
}

impl Committed {
    /// What a history leads to.
    pub fn new(history: History) -> Self {
        let count = history.len();
        let (mut now, mut tables) = (View { count, ..View::default() }, Vec::new());
        let mut rows = history.state(count);
        for table in 0..3 {
            if let Some(rows) = rows.remove(&table_name(table)) {
                let key = TableKey { table, made: count };
                tables.push(key);
                now.tables.insert(key, rows);
            }
        }
        Self { history, now, tables, touched: Vec::new() }
    }

    /// The number of the change to come.
    pub fn next(&self) -> usize {
        self.now.count + 1
    }

    pub fn create(&mut self, id: u64, table: usize) {
        self.history.push(id, Change::Create(table));
        let key = TableKey { table, made: self.now.count };
        self.now.count += 1;
        self.tables.push(key);
        self.now.tables.insert(key, Rows::new());
    }

    pub fn drop_table(&mut self, id: u64, key: TableKey) {
        self.history.push(id, Change::Drop(key.table));
        self.now.count += 1;
        self.tables.retain(|other| *other != key);
        self.now.tables.remove(&key);
    }

    /// One commit: of several writes of a row the last counts.
    pub fn commit(&mut self, id: u64, writes: Vec<Write>) {
        let op = |((table, key), value): &Write| {
            let (table, key, value) = (table.table, key.clone(), value.clone());
            Op { table, key, value }
        };
        self.history.push(id, Change::Batch(writes.iter().map(op).collect()));
        self.now.count += 1;
        for (row, value) in writes.into_iter().collect::<BTreeMap<_, _>>() {
            let rows = self.now.tables.get_mut(&row.0).expect("no commit into a dropped table");
            let is_change = match value {
                Some(value) => {
                    rows.insert(row.1.clone(), value);
                    true
                }
                None => rows.remove(&row.1).is_some(),
            };
            // Deleting nothing changes nothing.
            if is_change {
                self.touched.push((self.now.count, row));
            }
        }
    }

    /// The row of a table that was changed last.
    pub fn newest(&self, table: TableKey) -> Option<&Vec<u8>> {
        let mut newest = self.touched.iter().rev();
        newest.find(|(_, row)| row.0 == table).map(|(_, row)| &row.1)
    }

    /// The last change up to `count` that touched one of these rows.
    pub fn last(&self, count: usize, is_meant: impl Fn(&RowKey) -> bool) -> usize {
        let mut newest = self.touched.iter().rev();
        newest.find(|(at, row)| *at <= count && is_meant(row)).map_or(0, |(at, _)| *at)
    }
}
