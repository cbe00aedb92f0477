//! Filling and removing the tables, several at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_database::target::{Rows, SessionOptions, Target, TargetError, Value};
use iostrata_stats::Random;

use crate::filling::{Loaded, fill_all, refuse_stopped};
use crate::loaded_mark::refuse_foreign;
use crate::oltp::distribution::Chooser;
use crate::oltp::spec::{Member, OltpSpec};
use crate::oltp::statements::{Statement, c_value, ops, pad_value};

/// Rows that are made at once.
const BATCH: i64 = 256;

/// Makes and fills the tables. `progress` hears of the rows so far.
///
/// # Errors
/// One of the tables is there already; what the target said; `stop` was set.
pub fn prepare(
    target: &dyn Target,
    spec: &OltpSpec,
    threads: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Loaded, TargetError> {
    let schema = spec.schema();
    if let Some(table) = target.present(&schema)?.first() {
        let name = &schema.tables[*table].name;
        let text = format!("table {name} is there already");
        let fix = "remove the tables with `oltp ... cleanup` first";
        return Err(TargetError::not_ready(&target.name(), "tables_exist", text, fix));
    }
    let rows = AtomicU64::new(0);
    let tables: Vec<u32> = (0..spec.tables).collect();
    fill_all(&tables, threads, stop, |table, is_over| {
        target.create(&schema, *table as usize)?;
        if spec.member == Member::BulkInsert {
            return Ok(());
        }
        let mut source = TableSource::new(spec, *table);
        let mut more = |buffer: &mut Rows| {
            if is_over() {
                return buffer.clear(4);
            }
            source.fill(buffer);
            let count = buffer.len() as u64;
            progress(rows.fetch_add(count, Ordering::Relaxed) + count);
        };
        target.load(&schema, *table as usize, None, &mut more).map(drop)
    })?;
    let fix = "remove what is there with `oltp ... cleanup`, and begin again";
    refuse_stopped(target, stop, fix)?;
    target.finish(&schema)?;
    Ok(Loaded { rows: rows.into_inner(), rows_before: 0 })
}

/// Reads every row once, so that the target has in memory what has room there.
///
/// # Errors
/// What the target said.
pub fn read_all(target: &dyn Target, spec: &OltpSpec) -> Result<(), TargetError> {
    let options = SessionOptions { ops: ops(spec, false), ..SessionOptions::default() };
    let mut session = target.session(&Arc::new(spec.schema()), &options)?;
    let (all, mut sums) = ([1.into(), spec.table_size.into()], Rows::default());
    session.begin()?;
    for table in 0..spec.tables {
        session.run(Statement::SumRange.of(table), &all, &mut sums)?;
    }
    session.rollback()
}

/// Removes the tables that are there; gives how many.
///
/// # Errors
/// What the target said.
pub fn cleanup(target: &dyn Target, spec: &OltpSpec) -> Result<u32, TargetError> {
    let schema = spec.schema();
    let present = target.present(&schema)?;
    let others = [spec.member, Member::BulkInsert, Member::ReadWrite];
    let others = others.map(|member| OltpSpec { member, ..spec.clone() }.schema());
    refuse_foreign(target, &others, &present)?;
    present.iter().try_for_each(|table| target.remove(&schema, *table))?;
    Ok(present.len() as u32)
}

/// The rows of a table, in the order of their keys.
struct TableSource {
    next: i64,
    last: i64,
    keys: Chooser,
    random: Random,
    text: Vec<u8>,
}

impl TableSource {
    fn new(spec: &OltpSpec, table: u32) -> Self {
        Self {
            next: 1,
            last: spec.table_size,
            keys: spec.chooser(),
            random: Random::of_stream(spec.seed, 1 << 63 | u64::from(table)),
            text: Vec::new(),
        }
    }

    fn fill(&mut self, rows: &mut Rows) {
        rows.clear(4);
        let end = (self.next + BATCH - 1).min(self.last);
        for id in self.next..=end {
            rows.push(id.into());
            rows.push(self.keys.draw(&mut self.random).into());
            for value in [c_value, pad_value] {
                self.text.clear();
                value(&mut self.random, &mut self.text);
                rows.push(Value::Text(&self.text));
            }
        }
        self.next = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oltp::spec::Member;

    #[test]
    fn rows_are_counted_from_one() {
        let spec = OltpSpec { table_size: 300, ..OltpSpec::new(Member::ReadWrite) };
        let mut source = TableSource::new(&spec, 0);
        let (mut rows, mut ids) = (Rows::default(), Vec::new());
        loop {
            source.fill(&mut rows);
            if rows.is_empty() {
                break;
            }
            ids.extend((0..rows.len()).map(|row| rows.get(row, 0).int()));
            assert!((0..rows.len()).all(|row| (1..=300).contains(&rows.get(row, 1).int())));
        }
        assert!(ids.into_iter().eq(1..=300));
    }
}
