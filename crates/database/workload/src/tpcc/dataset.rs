//! What a target holds of TPC-C, recorded in a table of its own: how much, from which seed, how far
//! loaded, and whether anything has run since; and the loading.
//!
//! Invariant: the table is made before any other and removed after all of them, so that tables
//! without it are foreign and are never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use iostrata_database::target::{
    OpId, Part, Rows, Session, SessionOptions, Target, TargetError, Trouble, Value,
};

use crate::loaded_mark::{
    LoadCounts, VERSION, are_ours, fill_all, refuse_foreign, refuse_stopped, refuse_version,
};
use crate::tpcc::check;
use crate::tpcc::population::{Population, rows_per_warehouse};
use crate::tpcc::schema::{OperationSet, ScanBy, TableId, schema};

/// How far a dataset has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It is being loaded, or that was interrupted.
    Loading,
    /// It is loaded, and nothing has run since.
    Loaded,
    /// Something has run.
    Used,
}

impl Stage {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Loading, "loading"), (Self::Loaded, "loaded"), (Self::Used, "used")];

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// The row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// Warehouses.
    pub warehouses: i64,
    /// Of the rows that were loaded.
    pub seed: u64,
    /// When they were made, in seconds since 1970.
    pub loaded_at_s: i64,
    /// The constant that last names were loaded with.
    pub c_load: i64,
    /// How far it has come.
    pub stage: Stage,
    /// Parts that are loaded, while it is loading.
    pub(crate) parts: BTreeSet<String>,
}

impl Dataset {
    /// One that is to be loaded.
    pub(crate) fn new(warehouses: i64, population: &Population) -> Self {
        Self {
            warehouses,
            seed: population.seed,
            loaded_at_s: population.now_s,
            c_load: population.constants.last,
            stage: Stage::Loading,
            parts: BTreeSet::new(),
        }
    }

    /// The rows that it was, or is to be, loaded with.
    pub(crate) fn population(&self) -> Population {
        Population::new(self.seed, self.loaded_at_s)
    }

    /// What a target holds; none where the table is missing.
    ///
    /// # Errors
    /// The target's error; a table of another version; tables without the table that marks their
    /// owner.
    pub fn read(target: &dyn Target) -> Result<Option<Self>, TargetError> {
        let schema = schema();
        if !are_ours(target, &schema, TableId::Dataset.number())? {
            return Ok(None);
        }
        let mut notes = Notes::open(target)?;
        Self::of_notes(target, &notes.all()?).map(Some)
    }

    fn of_notes(
        target: &dyn Target,
        notes: &BTreeMap<String, String>,
    ) -> Result<Self, TargetError> {
        let text = |name: &str| notes.get(name).map(String::as_str).unwrap_or_default();
        let number = |name: &str| {
            text(name).parse::<i64>().map_err(|_not_a_number| {
                let what = format!("table iostrata_dataset has {name} = {:?}", text(name));
                TargetError::not_ready(
                    &target.name(),
                    "dataset",
                    what,
                    "load it again with `tpcc prepare --reset`",
                )
            })
        };
        refuse_version(target, "tpcc", number("version")?)?;
        let stage = Stage::ALL.into_iter().find(|(_, name)| *name == text("stage"));
        let loaded = notes.keys().filter_map(|name| name.strip_prefix(LOADED));
        Ok(Self {
            warehouses: number("warehouses")?,
            seed: number("seed")? as u64,
            loaded_at_s: number("loaded_at_s")?,
            c_load: number("c_load")?,
            stage: stage.map_or(Stage::Loading, |(stage, _)| stage),
            parts: loaded.map(str::to_owned).collect(),
        })
    }

    /// A dataset that can be used.
    ///
    /// # Errors
    /// As [`Dataset::read`]; nothing was prepared, or not to the end.
    pub fn ready(target: &dyn Target) -> Result<Self, TargetError> {
        let fix = "load it with `tpcc prepare`";
        match Self::read(target)? {
            None => Err(TargetError::not_ready(
                &target.name(),
                "not_prepared",
                "no TPC-C tables are there".into(),
                fix,
            )),
            Some(Self { stage: Stage::Loading, .. }) => {
                let what = "the TPC-C tables are not loaded to the end".to_owned();
                Err(TargetError::not_ready(
                    &target.name(),
                    "not_prepared",
                    what,
                    "run the same `tpcc prepare` again",
                ))
            }
            Some(dataset) => Ok(dataset),
        }
    }

    /// Notes that something runs, so that condition 11 does not hold as written any more.
    ///
    /// # Errors
    /// The target's error.
    pub fn mark_used(&mut self, target: &dyn Target) -> Result<(), TargetError> {
        if self.stage == Stage::Loaded {
            Notes::open(target)?.set("stage", Stage::Used.name())?;
            self.stage = Stage::Used;
        }
        Ok(())
    }

    /// The number of orders: the next number of each district, of which the first is 1.
    ///
    /// # Errors
    /// The target's error.
    pub fn orders(target: &dyn Target) -> Result<u64, TargetError> {
        let schema = Arc::new(schema());
        let mut d = OperationSet::new(&schema);
        let all = d.scan("all districts", TableId::District, ScanBy::default(), &["d_next_o_id"]);
        let options = SessionOptions { ops: d.done(), ..SessionOptions::default() };
        let mut session = target.session(&schema, &options)?;
        let mut rows = Rows::default();
        session.begin()?;
        session.run(all, &[], &mut rows)?;
        session.rollback()?;
        Ok((0..rows.len()).map(|row| (rows.get(row, 0).int() - 1).max(0) as u64).sum())
    }

    /// Writes down what is to be loaded.
    pub(crate) fn begin(&self, target: &dyn Target) -> Result<(), TargetError> {
        let mut notes = Notes::open(target)?;
        for (name, value) in [
            ("version", VERSION.to_string()),
            ("warehouses", self.warehouses.to_string()),
            ("seed", (self.seed as i64).to_string()),
            ("loaded_at_s", self.loaded_at_s.to_string()),
            ("c_load", self.c_load.to_string()),
            ("stage", self.stage.name().to_owned()),
        ] {
            notes.add(name, &value)?;
        }
        Ok(())
    }
}

/// Before the names of parts that are loaded.
const LOADED: &str = "part ";

/// The table's rows.
struct Notes {
    session: Box<dyn Session>,
    rows: Rows,
}

const ALL: OpId = OpId(0);
const ADD: OpId = OpId(1);
const SET: OpId = OpId(2);

impl Notes {
    pub fn open(target: &dyn Target) -> Result<Self, TargetError> {
        let schema = Arc::new(schema());
        let mut d = OperationSet::new(&schema);
        d.scan("all notes", TableId::Dataset, ScanBy::default(), &["name", "value"]);
        d.insert("add note", TableId::Dataset);
        d.set("set note", TableId::Dataset, "value");
        let options = SessionOptions { ops: d.done(), ..SessionOptions::default() };
        Ok(Self { session: target.session(&schema, &options)?, rows: Rows::default() })
    }

    fn all(&mut self) -> Result<BTreeMap<String, String>, TargetError> {
        self.session.begin()?;
        self.session.run(ALL, &[], &mut self.rows)?;
        self.session.rollback()?;
        let text = |value: Value<'_>| String::from_utf8_lossy(value.text()).into_owned();
        let row = |row| (text(self.rows.get(row, 0)), text(self.rows.get(row, 1)));
        Ok((0..self.rows.len()).map(row).collect())
    }

    fn change(&mut self, op: OpId, name: &str, value: &str) -> Result<(), TargetError> {
        self.session.begin()?;
        self.session.run(op, &[name.into(), value.into()], &mut self.rows)?;
        let ticket = self.session.commit()?;
        self.session.settle(ticket, true).map(drop)
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), TargetError> {
        self.change(ADD, name, value)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), TargetError> {
        self.change(SET, name, value)
    }

    /// Notes that a part is loaded.
    pub fn part_loaded(&mut self, part: &str) -> Result<(), TargetError> {
        self.add(&format!("{LOADED}{part}"), "")
    }

    /// Notes that everything is.
    pub fn all_loaded(&mut self) -> Result<(), TargetError> {
        self.set("stage", Stage::Loaded.name())
    }
}

// Loading: makes the tables and fills them, several parts at a time, and resumes where an earlier
// attempt was interrupted.
//
// Invariant: a part that was noted as loaded is durable and whole; one that was not is loaded
// again from its first row.

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
pub struct PreparedRows {
    /// What is there now.
    pub dataset: Dataset,
    /// What was loaded; of it what an earlier attempt had loaded are whole parts.
    pub loaded: LoadCounts,
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
/// The target's error; other tables or another dataset are there; `stop` was set.
pub fn prepare(
    target: &dyn Target,
    options: &PrepareOptions,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<PreparedRows, TargetError> {
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
    let mut prepared = PreparedRows { dataset: dataset.clone(), loaded: LoadCounts::default() };
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
        None => check::missing(target, dataset.warehouses)?,
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
/// The target's error; tables that iostrata did not make.
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
    // The table that marks their owner goes last: it is the last one of the schema.
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
