//! Loading: makes the tables and fills them, several parts at a time, and goes on where an earlier
//! attempt was interrupted.
//!
//! Invariant: a part that was noted as loaded is durable and whole; one that was not is loaded
//! again from its first row.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_database::target::{Part, Rows, Target, TargetError, Trouble};

use crate::filling::{Loaded, fill_all, refuse_stopped};
use crate::loaded_mark::refuse_foreign;
use crate::tpcc::counts;
use crate::tpcc::dataset::{Dataset, Notes, Stage};
use crate::tpcc::population::{Population, rows_per_warehouse};
use crate::tpcc::schema::{TableId, schema};

/// What is to be loaded.
#[derive(Clone, Copy, Debug)]
pub struct PrepareOptions {
    /// Warehouses.
    pub warehouses: i64,
    /// Loaders at the same time.
    pub threads: usize,
    /// Of all random values.
    pub seed: u64,
    /// The present moment, in seconds since 1970.
    pub now_s: i64,
    /// Removes what is there of TPC-C and loads it again.
    pub reset: bool,
}

/// How far loading has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows that are loaded, those of earlier attempts included.
    pub rows: u64,
    /// About how many there will be.
    pub rows_in_all: u64,
}

/// What loading did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// What is there now.
    pub dataset: Dataset,
    /// What was loaded; of it what an earlier attempt had loaded are whole parts.
    pub loaded: Loaded,
}

/// One thing to load.
#[derive(Clone, Debug)]
struct Chunk {
    table: TableId,
    warehouses: RangeInclusive<i64>,
    part: Part,
    name: String,
    rows: u64,
}

/// Loads TPC-C. `progress` is called often, from several threads.
///
/// # Errors
/// What the target said; other tables or another dataset are there; `stop` was set.
pub fn prepare(
    target: &dyn Target,
    options: &PrepareOptions,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Prepared, TargetError> {
    let mut found = Dataset::read(target)?;
    if options.reset && found.take().is_some() {
        remove(target)?;
    }
    let mut dataset = match found {
        Some(dataset) => dataset,
        None => begin(target, options)?,
    };
    if dataset.warehouses != options.warehouses {
        let what = format!("{} warehouses are there", dataset.warehouses);
        let fix = "name that number, or load others in their place with --reset";
        return Err(TargetError::not_ready(&target.name(), "other_dataset", what, fix));
    }
    let mut prepared = Prepared { dataset: dataset.clone(), loaded: Loaded::default() };
    if dataset.stage != Stage::Loading {
        refuse_damaged(target, &dataset)?;
        return Ok(prepared);
    }
    let schema = schema();
    let present = target.present(&schema)?;
    for table in TableId::ALL.map(TableId::number) {
        if !present.contains(&table) {
            target.create(&schema, table)?;
        }
    }
    let (done, left): (Vec<Chunk>, Vec<Chunk>) = chunks(&dataset, target.loads_parts())
        .into_iter()
        .partition(|chunk| dataset.parts.contains(&chunk.name));
    prepared.loaded.rows_before = done.iter().map(|chunk| chunk.rows).sum();
    let in_all = prepared.loaded.rows_before + left.iter().map(|chunk| chunk.rows).sum::<u64>();
    let (population, rows) = (dataset.population(), AtomicU64::new(0));
    fill_all(&left, options.threads, stop, |chunk, is_over| {
        let mut source = population.source(chunk.table, chunk.warehouses.clone());
        let mut next = |buffer: &mut Rows| {
            if is_over() {
                return buffer.clear(1);
            }
            source.fill(buffer);
            let count = buffer.len() as u64;
            let rows =
                prepared.loaded.rows_before + rows.fetch_add(count, Ordering::Relaxed) + count;
            progress(Progress { rows, rows_in_all: in_all.max(rows) });
        };
        target.load(&schema, chunk.table.number(), chunk.part, &mut next)?;
        match is_over() {
            true => Ok(()),
            false => Notes::open(target)?.part_loaded(&chunk.name),
        }
    })?;
    refuse_stopped(target, stop, "the same command goes on where it was stopped")?;
    prepared.loaded.rows = rows.into_inner();
    target.finish(&schema)?;
    Notes::open(target)?.all_loaded()?;
    dataset.stage = Stage::Loaded;
    prepared.dataset = dataset;
    Ok(prepared)
}

/// Tables that lack rows are not there already, whatever is noted of them.
fn refuse_damaged(target: &dyn Target, dataset: &Dataset) -> Result<(), TargetError> {
    let schema = schema();
    let present = target.present(&schema)?;
    let gone = schema.tables.iter().enumerate().find(|(at, _)| !present.contains(at));
    let missing = match gone {
        Some((_, table)) => Some(format!("table {} is not there", table.name)),
        None => counts::missing(target, dataset.warehouses)?,
    };
    missing.map_or(Ok(()), |missing| {
        let what = format!("the TPC-C tables were loaded and lack rows since: {missing}");
        let fix = "load them again with `tpcc prepare --reset`";
        Err(TargetError::not_ready(&target.name(), "damaged", what, fix))
    })
}

fn begin(target: &dyn Target, options: &PrepareOptions) -> Result<Dataset, TargetError> {
    let population = Population::new(options.seed, options.now_s);
    let dataset = Dataset::new(options.warehouses, &population);
    target.create(&schema(), TableId::Dataset.number())?;
    dataset.begin(target)?;
    Ok(dataset)
}

/// Removes all tables of TPC-C, if this program made them.
///
/// # Errors
/// What the target said; tables that somebody else made.
pub fn cleanup(target: &dyn Target) -> Result<bool, TargetError> {
    // Of another version or damaged, but ours.
    match Dataset::read(target) {
        Ok(None) => return Ok(false),
        Err(error) if error.code == "foreign_tables" => return Err(error),
        Err(error) if error.trouble != Trouble::NotReady => return Err(error),
        _ => {}
    }
    remove(target).map(|()| true)
}

fn remove(target: &dyn Target) -> Result<(), TargetError> {
    let schema = schema();
    refuse_foreign(target, std::slice::from_ref(&schema), &target.present(&schema)?)?;
    // The table that says whose they are goes last: it is the last one of the schema.
    TableId::ALL.into_iter().try_for_each(|table| target.remove(&schema, table.number()))
}

/// Everything to load, the largest first.
fn chunks(dataset: &Dataset, in_parts: bool) -> Vec<Chunk> {
    let mut all = Vec::new();
    for table in TableId::ALL.into_iter().filter(|table| *table != TableId::Dataset) {
        let rows = rows_per_warehouse(table);
        let name = &schema().tables[table.number()].name;
        let warehouses = 1..=dataset.warehouses;
        match by_warehouse(table).filter(|_| in_parts) {
            Some(column) => all.extend(warehouses.map(|warehouse| Chunk {
                table,
                warehouses: warehouse..=warehouse,
                part: Some((column, warehouse)),
                name: format!("{name} {warehouse}"),
                rows,
            })),
            None => {
                let times = if table == TableId::Item { 1 } else { dataset.warehouses as u64 };
                let (name, rows) = (name.clone(), rows * times);
                all.push(Chunk { table, warehouses, part: None, name, rows });
            }
        }
    }
    all.sort_by_key(|chunk| std::cmp::Reverse(chunk.rows));
    all
}

/// The column with the warehouse, where loading warehouses apart pays.
fn by_warehouse(table: TableId) -> Option<usize> {
    let column = match table {
        TableId::Customer => "c_w_id",
        TableId::History => "h_w_id",
        TableId::Orders => "o_w_id",
        TableId::OrderLine => "ol_w_id",
        TableId::Stock => "s_w_id",
        _ => return None,
    };
    Some(schema().tables[table.number()].column(column))
}
