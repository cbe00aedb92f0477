//! How many rows the tables have, and how many they must have (clauses 1.2.1 and 4.3.3).
//!
//! Invariant: conditions that compare rows with each other hold over rows that are missing on both
//! sides; a count is what finds those.

use std::sync::Arc;

use iostrata_database::target::{OpId, Rows, Session, SessionOptions, Target, TargetError, Value};

use crate::condition::TableCount;
use crate::tpcc::ops::Declared;
use crate::tpcc::schema::{CUSTOMERS, DISTRICTS, ITEMS, TableId, schema};

/// Warehouses that are looked at before tables are called loaded: the first, the last, and others
/// between.
const WAREHOUSES_MAX: i64 = 32;

/// The rows of every table.
pub(super) struct Counts(pub Vec<TableCount>);

impl Counts {
    pub fn new() -> Self {
        let tables = &schema().tables[..TableId::Dataset.number()];
        Self(tables.iter().map(|table| TableCount::new(&table.name)).collect())
    }

    pub fn of(&mut self, table: TableId) -> &mut TableCount {
        &mut self.0[table.number()]
    }
}

/// The tables whose rows transactions neither add nor remove, with a column that has the number of
/// the warehouse, and how many rows each warehouse has.
const FIXED: [(TableId, &str, i64); 4] = [
    (TableId::Warehouse, "w_id", 1),
    (TableId::District, "d_w_id", DISTRICTS),
    (TableId::Customer, "c_w_id", DISTRICTS * CUSTOMERS),
    (TableId::Stock, "s_w_id", ITEMS),
];

/// Counts rows of a warehouse in tables of fixed size: a column that has its number in each of them
/// is summed up, which a server does without sending rows.
pub(super) struct FixedCounts([OpId; FIXED.len()]);

impl FixedCounts {
    pub fn declare(d: &mut Declared<'_>) -> Self {
        Self(FIXED.map(|(table, column, _)| d.sum("rows of a warehouse", table, column)))
    }

    pub fn stock(&self, session: &mut dyn Session, warehouse: i64) -> Result<i64, TargetError> {
        self.count(session, FIXED.len() - 1, warehouse)
    }

    fn count(
        &self,
        session: &mut dyn Session,
        at: usize,
        warehouse: i64,
    ) -> Result<i64, TargetError> {
        let mut rows = Rows::default();
        session.run(self.0[at], &[Value::Int(warehouse)], &mut rows)?;
        let sum = match rows.is_empty() {
            true => Value::Null,
            false => rows.get(0, 0),
        };
        Ok(if sum.is_null() { 0 } else { sum.int() / warehouse })
    }
}

/// What is missing of tables that are to be used: the rows of fixed number, in some warehouses.
///
/// # Errors
/// What the target said.
pub(super) fn missing(target: &dyn Target, warehouses: i64) -> Result<Option<String>, TargetError> {
    let schema = Arc::new(schema());
    let mut d = Declared::new(&schema);
    let fixed = FixedCounts::declare(&mut d);
    let options = SessionOptions { ops: d.done(), ..SessionOptions::default() };
    let mut session = target.session(&schema, &options)?;
    session.begin()?;
    let looked = warehouses.clamp(1, WAREHOUSES_MAX);
    let mut counts = Counts::new();
    for nth in 0..looked {
        let warehouse = 1 + nth * (warehouses - 1) / (looked - 1).max(1);
        for (at, (table, _, expected)) in FIXED.into_iter().enumerate() {
            let rows = fixed.count(&mut *session, at, warehouse)?;
            let place = || format!("warehouse {warehouse}");
            counts.of(table).note(place, rows, expected);
        }
    }
    session.rollback()?;
    let wrong: Vec<String> = counts.0.iter().filter(|count| !count.is_ok()).map(said).collect();
    Ok((!wrong.is_empty()).then(|| wrong.join("; ")))
}

fn said(count: &TableCount) -> String {
    format!("{} has {}", count.table, count.told.join(", "))
}
