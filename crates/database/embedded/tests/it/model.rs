//! A database that carries out its operations in the plainest way: rows in maps, a copy of
//! everything for each snapshot, a lock for each key.

use std::collections::{BTreeMap, BTreeSet};

use iostrata_database::target::{Access, Isolation, JoinBelow, Op, Order, Schema, Trouble};

use crate::values::{OwnedValue, Row, after, can_be, can_hold, folded, is_within, stored, wanted};

/// The rows of a table by their keys.
type TableRows = BTreeMap<Row, Row>;

/// One session's transaction.
#[derive(Default)]
struct Open {
    snapshot: Option<Vec<TableRows>>,
    writes: BTreeMap<(usize, Row), Option<Row>>,
}

/// The database.
pub struct Model {
    schema: Schema,
    isolation: Isolation,
    committed: Vec<TableRows>,
    last_number: Vec<i64>,
    open: Vec<Option<Open>>,
    locks: BTreeMap<(usize, Row), usize>,
}

/// What an operation gives: rows, and how many were found or changed.
pub type Outcome = Result<(Vec<Row>, u64), Trouble>;

impl Model {
    pub fn new(schema: &Schema, isolation: Isolation, sessions: usize) -> Self {
        Self {
            schema: schema.clone(),
            isolation,
            committed: vec![TableRows::new(); schema.tables.len()],
            last_number: vec![0; schema.tables.len()],
            open: (0..sessions).map(|_| None).collect(),
            locks: BTreeMap::new(),
        }
    }

    pub fn begin(&mut self, session: usize) {
        self.open[session] = Some(Open::default());
    }

    pub fn is_open(&self, session: usize) -> bool {
        self.open[session].is_some()
    }

    pub fn end(&mut self, session: usize, commits: bool) {
        let open = self.open[session].take().unwrap_or_default();
        self.locks.retain(|_, holder| *holder != session);
        for ((table, key), row) in open.writes.into_iter().filter(|_| commits) {
            match row {
                Some(row) => drop(self.committed[table].insert(key, row)),
                None => drop(self.committed[table].remove(&key)),
            }
        }
    }

    /// All that is committed.
    pub fn rows(&self, table: usize) -> Vec<Row> {
        self.committed[table].values().cloned().collect()
    }

    /// Adds a committed row.
    pub fn load(&mut self, table: usize, row: Row) {
        let row = stored(&self.schema.tables[table], row);
        let (row, key) = self.numbered(table, row);
        self.committed[table].insert(key, row);
    }

    /// After a restart the numbers go on behind the last row.
    pub fn restart(&mut self) {
        for (table, rows) in self.committed.iter().enumerate() {
            let last = rows.keys().next_back().and_then(|key| key.first());
            self.last_number[table] = match last {
                Some(OwnedValue::Int(number)) => (*number).max(0),
                _ => 0,
            };
        }
    }

    pub fn run(&mut self, session: usize, op: &Op, args: &[OwnedValue]) -> Outcome {
        let before = self.open[session].as_ref().map(|open| open.writes.clone()).unwrap();
        let outcome = self.run_open(session, op, args);
        match outcome {
            Err(Trouble::Retry) => self.end(session, false),
            Err(_) => self.open[session].as_mut().unwrap().writes = before,
            Ok(_) => {}
        }
        outcome
    }

    fn run_open(&mut self, session: usize, op: &Op, args: &[OwnedValue]) -> Outcome {
        let table = &self.schema.tables[op.table].clone();
        match &op.access {
            Access::Get { columns, locks } => {
                let keys: BTreeSet<Row> = args.chunks(table.key.len()).map(<[_]>::to_vec).collect();
                let mut rows = Vec::new();
                for key in keys.into_iter().filter(|key| can_be(table, &table.key, key)) {
                    if *locks {
                        self.lock(session, op.table, &key)?;
                    }
                    let row = self.view(session, *locks)[op.table].get(&key).cloned();
                    rows.extend(row.map(|row| wanted(&row, columns)));
                }
                let found = rows.len() as u64;
                Ok((rows, found))
            }
            Access::Scan { .. } => self.scan(session, op, args),
            Access::Insert => self.insert(session, op.table, args),
            Access::Modify { .. } => self.modify(session, op, args),
            Access::Delete => {
                let mut deleted = 0;
                for key in args.chunks(table.key.len()) {
                    if !can_be(table, &table.key, key) {
                        continue;
                    }
                    self.lock(session, op.table, key)?;
                    if self.view(session, true)[op.table].contains_key(key) {
                        self.write(session, (op.table, key.to_vec()), None);
                        deleted += 1;
                    }
                }
                Ok((Vec::new(), deleted))
            }
            Access::CountBelow(join) => Ok(self.count_below(session, op.table, join, args)),
            Access::Statement { .. } => panic!("only servers know it"),
        }
    }

    fn lock(&mut self, session: usize, table: usize, key: &[OwnedValue]) -> Result<(), Trouble> {
        let holder = *self.locks.entry((table, key.to_vec())).or_insert(session);
        if holder == session { Ok(()) } else { Err(Trouble::Retry) }
    }

    fn write(&mut self, session: usize, place: (usize, Row), row: Option<Row>) {
        self.open[session].as_mut().unwrap().writes.insert(place, row);
    }

    /// What a session sees: plain reads, or the newest rows.
    fn view(&mut self, session: usize, is_newest: bool) -> Vec<TableRows> {
        let open = self.open[session].as_mut().unwrap();
        let mut rows = match (is_newest, self.isolation) {
            (false, Isolation::RepeatableRead) => {
                open.snapshot.get_or_insert_with(|| self.committed.clone()).clone()
            }
            _ => self.committed.clone(),
        };
        for ((table, key), row) in &open.writes {
            match row {
                Some(row) => drop(rows[*table].insert(key.clone(), row.clone())),
                None => drop(rows[*table].remove(key)),
            }
        }
        rows
    }

    /// No rows.
    fn none(&self) -> Vec<TableRows> {
        vec![TableRows::new(); self.committed.len()]
    }

    /// A new row with its number, and its key.
    fn numbered(&mut self, table: usize, mut row: Row) -> (Row, Row) {
        let declared = &self.schema.tables[table];
        let last = &mut self.last_number[table];
        if declared.key.is_empty() {
            *last += 1;
            return (row, vec![OwnedValue::Int(*last)]);
        }
        if declared.auto_increment {
            match &mut row[declared.key[0]] {
                OwnedValue::Int(number) => *last = (*last).max(*number),
                key => {
                    *last += 1;
                    *key = OwnedValue::Int(*last);
                }
            }
        }
        let key = wanted(&row, &declared.key);
        (row, key)
    }

    fn insert(&mut self, session: usize, table: usize, args: &[OwnedValue]) -> Outcome {
        let declared = self.schema.tables[table].clone();
        let mut inserted = 0;
        for row in args.chunks(declared.columns.len()) {
            let (row, key) = self.numbered(table, stored(&declared, row.to_vec()));
            self.lock(session, table, &key)?;
            if self.view(session, true)[table].contains_key(&key) {
                return Err(Trouble::Exists);
            }
            self.write(session, (table, key), Some(row));
            inserted += 1;
        }
        Ok((Vec::new(), inserted))
    }

    fn modify(&mut self, session: usize, op: &Op, args: &[OwnedValue]) -> Outcome {
        let Access::Modify { prefix, set, returns } = &op.access else { unreachable!() };
        let declared = self.schema.tables[op.table].clone();
        let width = prefix + set.iter().filter(|assign| assign.change.takes_argument()).count();
        let rows: Vec<&[OwnedValue]> =
            if width == 0 { vec![&[]] } else { args.chunks(width).collect() };
        let (mut given, mut changed) = (Vec::new(), 0);
        for args in rows {
            if !can_be(&declared, &declared.key, &args[..*prefix]) {
                continue;
            }
            let view = self.view(session, true);
            let begins = |key: &&Row| key[..*prefix] == args[..*prefix];
            let mut keys: Vec<Row> = view[op.table].keys().filter(begins).cloned().collect();
            if *prefix == declared.key.len() && *prefix > 0 {
                // The key is locked whether or not the row exists.
                keys = vec![args[..*prefix].to_vec()];
            }
            for key in keys {
                self.lock(session, op.table, &key)?;
                let Some(row) = self.view(session, true)[op.table].get(&key).cloned() else {
                    continue;
                };
                given.push(wanted(&row, returns));
                let mut next = args[*prefix..].iter();
                let mut new = row;
                for assign in set {
                    let argument = assign.change.takes_argument().then(|| next.next().unwrap());
                    let cell = &mut new[assign.column];
                    *cell = after(assign.change, cell, argument.unwrap_or(&OwnedValue::Int(0)));
                }
                let new = stored(&declared, new);
                self.write(session, (op.table, key), Some(new));
                changed += 1;
            }
        }
        Ok((given, changed))
    }

    fn scan(&mut self, session: usize, op: &Op, args: &[OwnedValue]) -> Outcome {
        let Access::Scan { index, prefix, is_range, order, limit, locks, columns, fold } =
            &op.access
        else {
            unreachable!()
        };
        let declared = self.schema.tables[op.table].clone();
        let by = index.map_or(&declared.key, |index| &declared.indexes[index].columns);
        let span = (*prefix, *is_range);
        let most = limit.map_or(usize::MAX, |limit| limit as usize);
        let is_read = can_hold(&declared, by, span, args) && most > 0;
        // Nothing is read where nothing can be found, so that no snapshot is taken either.
        let view = if is_read { self.view(session, *locks) } else { self.none() };
        let mut found: Vec<(Row, &Row, &Row)> = view[op.table]
            .iter()
            .map(|(key, row)| (wanted(row, by), key, row))
            .filter(|(place, _, _)| is_within(place, span, args))
            .collect();
        found.sort();
        if *order == Order::Descending {
            found.reverse();
        }
        found.truncate(most);
        let keys: Vec<Row> = found.iter().map(|(_, key, _)| (*key).clone()).collect();
        let rows: Vec<Row> = found.iter().map(|(_, _, row)| wanted(row, columns)).collect();
        for key in keys.iter().filter(|_| *locks) {
            self.lock(session, op.table, key)?;
        }
        let rows = folded(rows, *fold);
        let found = rows.len() as u64;
        Ok((rows, found))
    }

    fn count_below(
        &mut self,
        session: usize,
        table: usize,
        join: &JoinBelow,
        args: &[OwnedValue],
    ) -> (Vec<Row>, u64) {
        let declared = &self.schema.tables[table].clone();
        let (bounds, limit) = args.split_at(join.prefix + 2);
        let is_read = can_hold(declared, &declared.key, (join.prefix, true), bounds);
        let view = if is_read { self.view(session, false) } else { self.none() };
        let rows = view[table]
            .values()
            .filter(|row| is_within(&wanted(row, &declared.key), (join.prefix, true), bounds));
        let led_to: BTreeSet<Row> = rows.map(|row| wanted(row, &join.leads_by)).collect();
        let others = led_to.iter().filter_map(|key| view[join.other].get(key));
        let is_below = |row: &&Row| {
            let tested = &row[join.tested];
            *tested != OwnedValue::Null && limit[0] != OwnedValue::Null && *tested < limit[0]
        };
        (vec![vec![OwnedValue::Int(others.filter(is_below).count() as i64)]], 1)
    }
}
