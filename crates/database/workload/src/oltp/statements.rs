//! The tables and statements of the family, declared for every table; filling and removing them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_database::target::{
    Access, Assign, Change, Column, ColumnType, Fold, Index, Op, OpId, Order, Rows, Schema,
    SessionOptions, Table, Target, TargetError, Value,
};
use iostrata_stats::Random;

use crate::loaded_mark::{LoadCounts, fill_all, refuse_foreign, refuse_stopped};
use crate::oltp::spec::{Chooser, Member, OltpSpec};

/// Groups of digits in `c` and in `pad`.
const C_GROUPS: usize = 10;
const PAD_GROUPS: usize = 5;
const GROUP_DIGITS: usize = 11;

/// Columns, by their places.
const ID: usize = 0;
const K: usize = 1;
const C: usize = 2;
const PAD: usize = 3;

/// The statements of a table, by their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    PointSelect,
    SimpleRange,
    SumRange,
    OrderRange,
    DistinctRange,
    IndexUpdate,
    NonIndexUpdate,
    Delete,
    Insert,
    /// Random points: of a server the whole select, of an engine one value of it.
    Points,
    /// Random ranges, likewise.
    Ranges,
}

const STATEMENTS: usize = 11;

impl Statement {
    /// The operation of a table, counted from 0.
    pub fn of(self, table: u32) -> OpId {
        OpId(table as usize * STATEMENTS + self as usize)
    }
}

impl OltpSpec {
    /// `sbtest1` and so on; those of bulk inserts have an id and a number only.
    pub fn schema(&self) -> Schema {
        let mut schema = full_schema(self.tables, self.auto_inc);
        if self.member == Member::BulkInsert {
            for table in &mut schema.tables {
                table.columns.truncate(C);
                table.indexes.clear();
                table.auto_increment = false;
            }
        }
        schema
    }
}

fn full_schema(tables: u32, auto_inc: bool) -> Schema {
    let column = |name: &str, of| Column { name: name.to_owned(), of, is_nullable: false };
    let table = |number| Table {
        name: format!("sbtest{number}"),
        columns: vec![
            column("id", ColumnType::Int { bytes: 4 }),
            column("k", ColumnType::Int { bytes: 4 }),
            column("c", ColumnType::Char(120)),
            column("pad", ColumnType::Char(60)),
        ],
        key: vec![ID],
        indexes: vec![Index { name: format!("k_{number}"), columns: vec![K], is_late: true }],
        auto_increment: auto_inc,
    };
    Schema { tables: (1..=tables).map(table).collect() }
}

/// The statements of all tables. `is_server`: whether the target takes SQL.
pub(super) fn ops(spec: &OltpSpec, is_server: bool) -> Arc<[Op]> {
    if spec.member == Member::BulkInsert {
        let insert = |table| Op { name: "bulk insert", table, access: Access::Insert };
        return (0..spec.tables as usize).map(insert).collect();
    }
    let tables = spec.tables;
    let range = |columns: usize, fold| Access::Scan {
        index: None,
        prefix: 0,
        is_range: true,
        order: Order::Any,
        limit: None,
        locks: false,
        columns: vec![columns],
        fold,
    };
    let set = |column, change| {
        let set = vec![Assign { column, change }];
        Access::Modify { prefix: 1, set, returns: Vec::new() }
    };
    let by_index = |is_range: bool, columns: Vec<usize>| Access::Scan {
        index: Some(0),
        prefix: usize::from(!is_range),
        is_range,
        order: Order::Any,
        limit: None,
        locks: false,
        columns,
        fold: Fold::Rows,
    };
    let [points, ranges] = match is_server {
        true => [points_sql(spec.points), ranges_sql(spec.ranges)],
        false => [by_index(false, vec![ID, K, C, PAD]), by_index(true, vec![K])],
    };
    let all: [(&str, Access); STATEMENTS] = [
        ("point select", Access::Get { columns: vec![C], locks: false }),
        ("simple range", range(C, Fold::Rows)),
        ("sum range", range(K, Fold::Sum)),
        ("order range", range(C, Fold::Sorted)),
        ("distinct range", range(C, Fold::Distinct)),
        ("index update", set(K, Change::AddConst(1))),
        ("non-index update", set(C, Change::Set)),
        ("delete", Access::Delete),
        ("insert", Access::Insert),
        ("random points", points),
        ("random ranges", ranges),
    ];
    let of = |table: u32| {
        all.iter().map(move |(name, access)| {
            let (table, access) = (table as usize, access.clone());
            Op { name, table, access }
        })
    };
    (0..tables).flat_map(of).collect()
}

/// sysbench's select of rows with some values.
fn points_sql(points: u32) -> Access {
    let values = vec!["?"; points.max(1) as usize].join(", ");
    let sql = format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({values})");
    let number = ColumnType::Int { bytes: 4 };
    Access::Statement {
        sql,
        gives: vec![number, number, ColumnType::Char(120), ColumnType::Char(60)],
    }
}

/// sysbench's count of rows within some ranges.
fn ranges_sql(ranges: u32) -> Access {
    let ranges = vec!["k BETWEEN ? AND ?"; ranges.max(1) as usize].join(" OR ");
    let sql = format!("SELECT count(k) FROM sbtest1 WHERE {ranges}");
    Access::Statement { sql, gives: vec![ColumnType::Int { bytes: 8 }] }
}

/// The greatest id of each table.
pub(super) fn last_ids(tables: u32) -> Arc<[Op]> {
    let last = |table: u32| Op {
        name: "last id",
        table: table as usize,
        access: Access::Scan {
            index: None,
            prefix: 0,
            is_range: false,
            order: Order::Descending,
            limit: Some(1),
            locks: false,
            columns: vec![ID],
            fold: Fold::Rows,
        },
    };
    (0..tables).map(last).collect()
}

/// Appends the value of a `c`: groups of random digits with dashes between.
pub(super) fn c_value(random: &mut Random, text: &mut Vec<u8>) {
    groups(random, text, C_GROUPS);
}

/// The same for a `pad`.
pub(super) fn pad_value(random: &mut Random, text: &mut Vec<u8>) {
    groups(random, text, PAD_GROUPS);
}

fn groups(random: &mut Random, text: &mut Vec<u8>, count: usize) {
    for group in 0..count {
        if group > 0 {
            text.push(b'-');
        }
        let mut digits = random.below(10_u64.pow(GROUP_DIGITS as u32));
        for _ in 0..GROUP_DIGITS {
            text.push(b'0' + (digits % 10) as u8);
            digits /= 10;
        }
    }
}

// Filling and removing the tables, several at a time.

/// Rows that are made at once.
const BATCH: i64 = 256;

/// Makes and fills the tables. `progress` gets the rows so far.
///
/// # Errors
/// One of the tables is there already; the target's error; `stop` was set.
pub fn prepare(
    target: &dyn Target,
    spec: &OltpSpec,
    threads: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<LoadCounts, TargetError> {
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
    Ok(LoadCounts { rows: rows.into_inner(), rows_before: 0 })
}

/// Reads every row once, so that the target has in memory what has room there.
///
/// # Errors
/// The target's error.
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
/// The target's error.
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

    #[test]
    fn values_have_their_shape() {
        let (mut random, mut text) = (Random::new(1), Vec::new());
        c_value(&mut random, &mut text);
        assert_eq!(text.len(), 119);
        assert!(text.split(|byte| *byte == b'-').all(|group| group.len() == 11));
        text.clear();
        pad_value(&mut random, &mut text);
        assert_eq!(text.len(), 59);
    }

    #[test]
    fn selects_of_random_values_are_sysbench_s() {
        let of = |access: &Access| match access {
            Access::Statement { sql, .. } => sql.clone(),
            _ => String::new(),
        };
        let points = "SELECT id, k, c, pad FROM sbtest1 WHERE k IN (?, ?, ?)";
        assert_eq!(of(&points_sql(3)), points);
        let ranges = "SELECT count(k) FROM sbtest1 WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ?";
        assert_eq!(of(&ranges_sql(2)), ranges);
        let bulk = OltpSpec { tables: 2, ..OltpSpec::new(Member::BulkInsert) };
        assert_eq!(bulk.schema().tables[1].columns.len(), 2);
    }

    #[test]
    fn every_table_has_its_statements() {
        let ops = ops(&OltpSpec { tables: 3, ..OltpSpec::new(Member::ReadWrite) }, true);
        assert_eq!(ops.len(), 33);
        let op = &ops[Statement::Insert.of(2).0];
        assert_eq!((op.table, &op.access), (2, &Access::Insert));
        assert_eq!(full_schema(3, true).tables[2].indexes[0].name, "k_3");
    }
}

#[cfg(test)]
mod prepare_tests {
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
