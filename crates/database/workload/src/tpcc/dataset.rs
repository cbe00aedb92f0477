//! What a target holds of TPC-C, as a table of its own says: how much, from which seed, how far
//! loaded, and whether anything has run since.
//!
//! Invariant: the table is made before any other and removed after all of them, so that tables
//! without it are somebody else's and are never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use iostrata_database::target::{OpId, Rows, Session, SessionOptions, Target, TargetError, Value};

use crate::loaded_mark::{VERSION, are_ours, refuse_version};
use crate::tpcc::ops::{Declared, ScanBy};
use crate::tpcc::population::Population;
use crate::tpcc::schema::{TableId, schema};

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

/// What the table says.
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
    /// What the target said; a table of another version; tables without the one that says whose
    /// they are.
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
                let what = format!("table iostrata_dataset says {name} = {:?}", text(name));
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
    /// What the target said.
    pub fn mark_used(&mut self, target: &dyn Target) -> Result<(), TargetError> {
        if self.stage == Stage::Loaded {
            Notes::open(target)?.set("stage", Stage::Used.name())?;
            self.stage = Stage::Used;
        }
        Ok(())
    }

    /// How many orders there are: the next number of each district, of which the first is 1.
    ///
    /// # Errors
    /// What the target said.
    pub fn orders(target: &dyn Target) -> Result<u64, TargetError> {
        let schema = Arc::new(schema());
        let mut d = Declared::new(&schema);
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
pub(crate) struct Notes {
    session: Box<dyn Session>,
    rows: Rows,
}

const ALL: OpId = OpId(0);
const ADD: OpId = OpId(1);
const SET: OpId = OpId(2);

impl Notes {
    pub fn open(target: &dyn Target) -> Result<Self, TargetError> {
        let schema = Arc::new(schema());
        let mut d = Declared::new(&schema);
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
