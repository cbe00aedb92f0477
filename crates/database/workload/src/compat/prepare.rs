//! Filling and removing the kit's tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_database::target::{
    Access, ColumnType, Op, OpId, Rows, SessionOptions, Target, TargetError,
};

use crate::compat::CompatSpec;
use crate::compat::rows::{KitRows, rows_of};
use crate::compat::schema::{KitTable, foreign_keys, schema};
use crate::filling::{Loaded, fill_all, refuse_stopped};
use crate::loaded_mark::refuse_foreign;

/// One thing to fill.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    table: KitTable,
    set: u32,
    warehouse: i64,
}

/// Makes and fills the tables, then adds the foreign keys. `progress` hears of rows so far and in
/// all, from several threads. Gives the number of rows.
///
/// # Errors
/// One of the tables is there already; what the target said; `stop` was set.
pub fn prepare(
    target: &dyn Target,
    spec: &CompatSpec,
    (threads, now_s): (usize, i64),
    stop: &AtomicBool,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Loaded, TargetError> {
    let schema = schema(spec.tables);
    if let Some(table) = target.present(&schema)?.first() {
        let text = format!("table {} is there already", schema.tables[*table].name);
        let fix = "remove the tables with `tpcc cleanup --compat sysbench-tpcc` first";
        return Err(TargetError::not_ready(&target.name(), "tables_exist", text, fix));
    }
    (0..schema.tables.len()).try_for_each(|table| target.create(&schema, table))?;
    let chunks = chunks(spec);
    let in_all = chunks.iter().map(|chunk| rows_of(chunk.table, spec)).sum::<u64>();
    let rows = AtomicU64::new(0);
    fill_all(&chunks, threads, stop, |chunk, is_over| {
        let Chunk { table, set, warehouse } = *chunk;
        let mut source = KitRows::new(table, (set, warehouse), *spec, now_s);
        let mut more = |buffer: &mut Rows| {
            if is_over() {
                return buffer.clear(1);
            }
            source.fill(buffer);
            let count = buffer.len() as u64;
            let rows = rows.fetch_add(count, Ordering::Relaxed) + count;
            progress(rows, in_all.max(rows));
        };
        let part = table.warehouse_column().map(|column| (column, warehouse));
        target.load(&schema, table.number(set), part, &mut more).map(drop)
    })?;
    let fix = "remove what is there with `tpcc cleanup --compat sysbench-tpcc`, begin again";
    refuse_stopped(target, stop, fix)?;
    target.finish(&schema)?;
    if spec.foreign_keys {
        add_foreign_keys(target, spec.tables)?;
    }
    Ok(Loaded { rows: rows.into_inner(), rows_before: 0 })
}

fn chunks(spec: &CompatSpec) -> Vec<Chunk> {
    let mut all = Vec::new();
    for set in 0..spec.tables {
        for table in KitTable::ALL {
            let warehouses = if table == KitTable::Item { 1..=1 } else { 1..=spec.scale };
            all.extend(warehouses.map(|warehouse| Chunk { table, set, warehouse }));
        }
    }
    all.sort_by_key(|chunk| std::cmp::Reverse(rows_of(chunk.table, spec)));
    all
}

fn add_foreign_keys(target: &dyn Target, sets: u32) -> Result<(), TargetError> {
    let op = |sql| Op {
        name: "foreign key",
        table: 0,
        access: Access::Statement { sql, gives: Vec::new() },
    };
    let ops: Arc<[Op]> = (1..=sets).flat_map(foreign_keys).map(op).collect();
    let count = ops.len();
    let options = SessionOptions { ops, autocommit: true, ..SessionOptions::default() };
    let mut session = target.session(&Arc::new(schema(sets)), &options)?;
    let mut rows = Rows::default();
    (0..count).try_for_each(|op| session.run(OpId(op), &[], &mut rows).map(drop))
}

/// How many warehouses the first set of tables has; none where the tables are not there.
///
/// # Errors
/// What the target said.
pub fn warehouses(target: &dyn Target) -> Result<Option<i64>, TargetError> {
    let schema = schema(1);
    let number = KitTable::Warehouse.number(0);
    if !target.present(&schema)?.contains(&number) {
        return Ok(None);
    }
    let sql = format!("SELECT COUNT(*) FROM {}", schema.tables[number].name);
    let gives = vec![ColumnType::Int { bytes: 8 }];
    let access = Access::Statement { sql, gives };
    let ops: Arc<[Op]> = [Op { name: "count of warehouses", table: number, access }].into();
    let options = SessionOptions { ops, autocommit: true, ..SessionOptions::default() };
    let mut session = target.session(&Arc::new(schema), &options)?;
    let mut rows = Rows::default();
    session.run(OpId(0), &[], &mut rows)?;
    Ok((!rows.is_empty()).then(|| rows.get(0, 0).int()))
}

/// Removes the kit's tables that are there; gives how many.
///
/// # Errors
/// What the target said.
pub fn cleanup(target: &dyn Target, tables: u32) -> Result<usize, TargetError> {
    let schema = schema(tables);
    let mut present = target.present(&schema)?;
    refuse_foreign(target, std::slice::from_ref(&schema), &present)?;
    // In the order of the schema, tables come after those that they refer to.
    present.reverse();
    present.iter().try_for_each(|table| target.remove(&schema, *table))?;
    Ok(present.len())
}
