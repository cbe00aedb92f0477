//! What a workload of transactions is: its options, its tables, its transactions, its checks and
//! their results.
//!
//! Invariant: the commands that prepare, run, check and remove tables use this file and none of the
//! workloads; [`crate::WORKLOADS`] has them all.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use iostrata_database::target::{Isolation, Schema, TableWords, Target, TargetError};
use iostrata_load::TransactionSource;

use crate::loaded_mark::LoadCounts;

/// A command of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Makes the tables and fills them.
    Prepare,
    /// Runs transactions.
    Run,
    /// Checks what holds of the tables.
    Check,
    /// Removes the tables.
    Cleanup,
}

/// A command of a workload, as its help has it.
#[derive(Clone, Copy, Debug)]
pub struct VerbHelp {
    /// Which one.
    pub verb: Verb,
    /// Its first line.
    pub about: &'static str,
    /// What follows in the long help.
    pub detail: &'static str,
}

/// How the value of an option is written.
#[derive(Clone, Copy, Debug)]
pub enum OptionForm {
    /// A whole number.
    Count,
    /// A whole number of percent, under this name.
    Percent(&'static str),
    /// A number, under this name.
    Number(&'static str),
    /// Any text, under this name.
    Text(&'static str),
    /// One of some words with their help; the whole under this name.
    Word(&'static str, &'static [(&'static str, &'static str)]),
    /// On or off; the name alone is on.
    Switch,
    /// On or off, always with a value.
    OnOff,
    /// Given or not.
    Flag,
}

/// An option of a workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadOption {
    /// Its name on the command line, without the dashes before it.
    pub name: &'static str,
    /// One letter for it.
    pub short: Option<char>,
    /// Another name for it.
    pub alias: Option<&'static str>,
    /// How its value is written.
    pub form: OptionForm,
    /// What it is about.
    pub help: &'static str,
    /// Which commands take it.
    pub verbs: &'static [Verb],
    /// Its default.
    pub default: Option<&'static str>,
    /// An option that it needs.
    pub needs: Option<&'static str>,
    /// Options that it excludes.
    pub excludes: &'static [&'static str],
    /// Whether `run` lists it behind how transactions are driven.
    pub is_late: bool,
}

impl WorkloadOption {
    /// An option of `run` without anything else.
    pub const fn new(name: &'static str, form: OptionForm, help: &'static str) -> Self {
        Self {
            name,
            short: None,
            alias: None,
            form,
            help,
            verbs: &[Verb::Run],
            default: None,
            needs: None,
            excludes: &[],
            is_late: false,
        }
    }

    /// Of these commands.
    pub const fn on(self, verbs: &'static [Verb]) -> Self {
        Self { verbs, ..self }
    }

    /// With one letter.
    pub const fn short(self, short: char) -> Self {
        Self { short: Some(short), ..self }
    }

    /// With another name.
    pub const fn alias(self, alias: &'static str) -> Self {
        Self { alias: Some(alias), ..self }
    }

    /// With a default.
    pub const fn default(self, value: &'static str) -> Self {
        Self { default: Some(value), ..self }
    }

    /// With an option that it needs.
    pub const fn needs(self, other: &'static str) -> Self {
        Self { needs: Some(other), ..self }
    }

    /// With options that it excludes.
    pub const fn excludes(self, others: &'static [&'static str]) -> Self {
        Self { excludes: others, ..self }
    }

    /// Behind how transactions are driven.
    pub const fn late(self) -> Self {
        Self { is_late: true, ..self }
    }
}

/// How many loaders fill tables at the same time.
pub(crate) const LOADERS: WorkloadOption =
    WorkloadOption::new("threads", OptionForm::Count, "Loaders at the same time")
        .on(&[Verb::Prepare])
        .short('T')
        .default("4");

/// Makes the workload of a name from its settings.
pub type WorkloadConstructor =
    fn(&str, &WorkloadSettings) -> Result<Box<dyn Workload>, WorkloadError>;

/// A workload by its name, and how it is made.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadKind {
    /// Its command, or its own name where another's command stands for it.
    pub name: &'static str,
    /// The first line of the command's help.
    pub about: &'static str,
    /// What follows in the long help.
    pub detail: &'static str,
    /// Members of a family, of which the command wants one, with what they are; none where it is
    /// one workload.
    pub members: &'static [(&'static str, &'static str)],
    /// What its command can do; nothing where another's stands for it.
    pub verbs: &'static [VerbHelp],
    /// Whether `prepare` takes a seed, replaces what is there and keeps what it did as a run.
    pub keeps_loads: bool,
    /// Its own options, in the order of the help.
    pub options: &'static [WorkloadOption],
    /// The name of the workload that a command means: by its member, or by its settings.
    pub named: fn(&str, &WorkloadSettings) -> String,
    /// Whether a name is of this kind: `oltp_read_write`, `tpcc_compat`.
    pub has: fn(&str) -> bool,
    /// Makes the one of this name from its settings.
    pub of: WorkloadConstructor,
}

/// Why no such workload exists, or why it does not run on these tables.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// A setting that it cannot have, with what helps.
    #[error("{0}")]
    Setting(String),
    /// The target's error.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl WorkloadError {
    /// Refuses a setting.
    pub(crate) fn setting<T>(text: impl Into<String>) -> Result<T, Self> {
        Err(Self::Setting(text.into()))
    }
}

/// Settings of a workload by their names; `-` and `_` in them are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadSettings {
    by_name: BTreeMap<String, String>,
    /// Whether tables are loaded with them; otherwise those that are there are used.
    pub loads: bool,
}

impl WorkloadSettings {
    /// Settings of tables that are loaded with them.
    pub fn to_load<N: AsRef<str>, V: ToString>(all: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut settings = Self { loads: true, ..Self::default() };
        all.into_iter().for_each(|(name, value)| settings.set(name.as_ref(), value));
        settings
    }

    /// Sets one.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.by_name.insert(name.replace('-', "_"), value.to_string());
    }

    /// One as it was written.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.by_name.get(&name.replace('-', "_")).map(String::as_str)
    }

    /// A number.
    ///
    /// # Errors
    /// The invalid value.
    pub fn number<N: FromStr>(&self, name: &str) -> Result<Option<N>, WorkloadError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => WorkloadError::setting(format!("--{name} {text}: write a number")),
        }
    }

    /// Whether something is on or off, where that was set.
    ///
    /// # Errors
    /// What is neither.
    pub fn switch(&self, name: &str) -> Result<Option<bool>, WorkloadError> {
        match self.text(name) {
            None => Ok(None),
            Some("1" | "true") => Ok(Some(true)),
            Some("0" | "false") => Ok(Some(false)),
            Some(text) => WorkloadError::setting(format!("--{name} {text}: write 1 or 0")),
        }
    }

    /// Whether something is on.
    ///
    /// # Errors
    /// As [`WorkloadSettings::switch`].
    pub fn is_on(&self, name: &str) -> Result<bool, WorkloadError> {
        Ok(self.switch(name)?.unwrap_or(false))
    }
}

/// How tables are filled.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions<'a> {
    /// Loaders at the same time.
    pub threads: usize,
    /// Of everything that is drawn.
    pub seed: u64,
    /// Whether it takes the place of what is there of the workload.
    pub resets: bool,
    /// Ends it.
    pub stop: &'a AtomicBool,
}

/// How transactions are driven.
#[derive(Clone, Copy, Debug)]
pub struct SourceOptions {
    /// Of everything that is drawn.
    pub seed: u64,
    /// What sessions see of each other.
    pub isolation: Isolation,
    /// Statements are sent as text instead of being prepared.
    pub as_text: bool,
    /// Whether a session keeps its thread waiting for the target.
    pub blocks: bool,
    /// Terminals of the level that has fewest.
    pub terminals: u32,
}

/// Transactions over existing tables, with what a document holds about them.
pub struct RunnableWorkload<'a> {
    /// What the driver runs.
    pub source: Box<dyn TransactionSource + 'a>,
    /// Its settings, by their names in documents.
    pub settings: Vec<(&'static str, String)>,
    /// In what it differs from what it follows.
    pub deviations: Vec<String>,
    /// What users should know before it runs.
    pub note: Option<String>,
    /// Terminals that wait between transactions, where they do.
    pub homes: Option<u32>,
    /// In what else it differed, as is known when it has run.
    pub found_out: Option<Box<dyn Fn() -> Option<String> + 'a>>,
    /// A table that it makes grow.
    pub growing: Option<GrowingTable>,
}

impl<'a> RunnableWorkload<'a> {
    /// Transactions without anything for a document.
    pub(crate) fn new(source: impl TransactionSource + 'a) -> Self {
        Self {
            source: Box::new(source),
            settings: Vec::new(),
            deviations: Vec::new(),
            note: None,
            homes: None,
            found_out: None,
            growing: None,
        }
    }
}

/// A table that a run makes grow.
#[derive(Clone, Debug)]
pub struct GrowingTable {
    /// Its number.
    pub table: usize,
    /// Rows before the run.
    pub rows_before: u64,
    /// Rows of one commit.
    pub rows_per_commit: u32,
    /// Rows whose commits were acknowledged so far.
    pub committed: Arc<AtomicU64>,
}

/// A workload with its settings.
pub trait Workload: Debug + Send + Sync {
    /// Its name in documents: `tpcc`, `oltp_read_write`.
    fn name(&self) -> String;

    /// Its tables.
    fn schema(&self) -> Schema;

    /// How a server makes them.
    fn table_words(&self) -> TableWords {
        TableWords::default()
    }

    /// How large they are when they are loaded, and what that counts.
    fn size(&self) -> (u64, &'static str);

    /// About how many bytes they take then, where the embedded engine runs it.
    fn data_bytes(&self) -> Option<u64>;

    /// Their name, safe in paths: workloads of equal names can share them.
    fn tables_name(&self) -> String;

    /// What they hold, in one line: copies of equal lines are the same.
    fn contents(&self) -> String;

    /// The table whose storage engine is that of the workload, where any can be chosen.
    fn storage_table(&self) -> Option<usize> {
        None
    }

    /// What loading does, for those who wait.
    fn loading(&self) -> String;

    /// Makes the tables and fills them. Calls `progress` with the share that is done, from
    /// several threads.
    ///
    /// # Errors
    /// Other tables are there; the target's error; it was stopped.
    fn load(
        &self,
        target: &dyn Target,
        options: &LoadOptions<'_>,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<LoadCounts, TargetError>;

    /// Brings the tables into memory, where a scan of them is at hand; otherwise their rows come in
    /// while it is warmed up.
    ///
    /// # Errors
    /// The target's error.
    fn read_all(&self, _target: &dyn Target) -> Result<(), TargetError> {
        Ok(())
    }

    /// Whether it changes nothing.
    fn only_reads(&self) -> bool {
        false
    }

    /// Its transactions, over tables that are there.
    ///
    /// # Errors
    /// The tables are missing, or do not match the settings; the target's error.
    fn source<'a>(
        &self,
        target: &'a dyn Target,
        options: &SourceOptions,
    ) -> Result<RunnableWorkload<'a>, WorkloadError>;

    /// How many orders the tables hold, where they hold any.
    fn orders(&self, _target: &dyn Target) -> Option<u64> {
        None
    }

    /// What a check does, for those who wait.
    fn checking(&self) -> &'static str {
        "reading every row"
    }

    /// Checks what holds of the tables, and gives their size. Calls `progress` with the share that
    /// is done.
    ///
    /// # Errors
    /// The target's error; nothing was prepared. Conditions that do not hold are no error.
    fn check(
        &self,
        target: &dyn Target,
        _progress: &mut dyn FnMut(f64),
    ) -> Result<(CheckResult, u64), TargetError> {
        let text = format!("{} has no conditions", self.name());
        Err(TargetError::not_ready(&target.name(), "no_check", text, "run it without a check"))
    }

    /// Removes the tables; whether there were any.
    ///
    /// # Errors
    /// The target's error; tables that iostrata did not make.
    fn cleanup(&self, target: &dyn Target) -> Result<bool, TargetError>;
}

// The result of a condition that is checked.

/// Violations of one condition that are listed.
const TOLD_MAX: usize = 3;

/// The result of one condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Its text, where no specification has one.
    pub says: String,
    /// Places where it does not hold.
    pub violations: u64,
    /// The first of them, in words.
    pub told: Vec<String>,
    /// What was checked in its place, where it does not hold as written after a run.
    pub instead: Option<String>,
}

impl Condition {
    /// One that is to be checked.
    pub(crate) fn new(says: impl Into<String>) -> Self {
        Self { says: says.into(), ..Self::default() }
    }

    /// Notes that it does not hold somewhere.
    pub(crate) fn violated(&mut self, tell: impl FnOnce() -> String) {
        self.violations += 1;
        if self.told.len() < TOLD_MAX {
            self.told.push(tell());
        }
    }

    /// Notes whether it holds somewhere.
    pub(crate) fn wants(&mut self, holds: bool, tell: impl FnOnce() -> String) {
        if !holds {
            self.violated(tell);
        }
    }
}

/// How many rows a table has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableCount {
    /// Its name.
    pub table: String,
    /// Those that are there.
    pub rows: u64,
    /// Those that must be.
    pub expected: u64,
    /// Places with other numbers of rows.
    pub wrong: u64,
    /// The first of them, in words.
    pub told: Vec<String>,
}

impl TableCount {
    /// None yet.
    pub(crate) fn new(table: &str) -> Self {
        Self { table: table.to_owned(), ..Self::default() }
    }

    /// Adds the rows of a place.
    pub(crate) fn note(&mut self, place: impl FnOnce() -> String, rows: i64, expected: i64) {
        self.rows += rows.max(0) as u64;
        self.expected += expected.max(0) as u64;
        if rows != expected {
            self.wrong += 1;
            if self.told.len() < TOLD_MAX {
                self.told.push(format!("{rows} of {expected} rows in {}", place()));
            }
        }
    }

    /// Whether every place has as many rows as it must have.
    pub fn is_ok(&self) -> bool {
        self.wrong == 0
    }
}

/// The results of all conditions of a workload's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckResult {
    /// The rows of each table, where their numbers are known beforehand.
    pub counts: Vec<TableCount>,
    /// Each condition, counted from 1.
    pub conditions: Vec<Condition>,
    /// Rows that were read.
    pub rows: u64,
}

impl CheckResult {
    /// So many conditions, which their specification words.
    pub(crate) fn specified(conditions: usize) -> Self {
        Self { conditions: vec![Condition::default(); conditions], ..Self::default() }
    }

    /// Whether no row is missing and all conditions hold.
    pub fn is_ok(&self) -> bool {
        self.counts.iter().all(TableCount::is_ok)
            && self.conditions.iter().all(|condition| condition.violations == 0)
    }

    /// Notes that a condition, counted from 1, does not hold somewhere.
    pub(crate) fn violated(&mut self, condition: usize, tell: impl FnOnce() -> String) {
        self.conditions[condition - 1].violated(tell);
    }

    /// Notes whether two values are equal, as a condition, counted from 1, wants it.
    pub(crate) fn compare(
        &mut self,
        condition: usize,
        place: &dyn std::fmt::Display,
        (left, left_name): (i64, &str),
        (right, right_name): (i64, &str),
    ) {
        self.conditions[condition - 1].wants(left == right, || {
            format!("{place}: {left_name} is {left}, {right_name} is {right}")
        });
    }
}
