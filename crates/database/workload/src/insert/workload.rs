//! The load as a workload: its options, and what they come to.

use iostrata_database::target::{Schema, Target, TargetError};

use crate::condition::Checked;
use crate::filling::Loaded;
use crate::insert::check::{check, read_all};
use crate::insert::prepare::{InsertSpec, cleanup, prepare, rows, rows_loaded};
use crate::insert::row::{TABLE, schema};
use crate::insert::terminals::{DEVIATIONS, InsertTerminals};
use crate::workload::OptionForm::{Count, Flag};
use crate::workload::Verb::{Check, Cleanup, Prepare, Run};
use crate::workload::{
    GrowingTable, LoadOptions, RunnableWorkload, SourceOptions, VerbHelp, Workload, WorkloadError,
    WorkloadKind, WorkloadOption, WorkloadSettings,
};

/// About how large a row is, its places in three indexes included.
const ROW_BYTES: u64 = 160;
/// Rows of a commit at most: one transaction has to hold them.
const ROWS_PER_COMMIT_MAX: u32 = 100_000;

/// Rows into random places of three indexes.
pub static WORKLOAD: WorkloadKind = WorkloadKind {
    name: "insert",
    about: "Insert rows with three random secondary keys, on the engine or on a server",
    detail: "Reports rows per second against the size of the indexes; on servers with MyISAM, \
             Aria, InnoDB or RocksDB. docs/loads.md describes the table and what is counted.",
    members: &[],
    verbs: &[
        VerbHelp {
            verb: Prepare,
            about: "Make the table and load its first rows in bulk",
            detail: "",
        },
        VerbHelp { verb: Run, about: "Insert rows and measure that", detail: "" },
        VerbHelp {
            verb: Check,
            about: "Check that every row is whole and every index leads to the same rows",
            detail: "Exit code 1 when one does not hold.",
        },
        VerbHelp { verb: Cleanup, about: "Remove the table", detail: "" },
    ],
    keeps_loads: true,
    options: &[
        WorkloadOption::new(
            "rows",
            Count,
            "Rows to load, about 180 bytes each with their indexes; 0 for an empty table",
        )
        .on(&[Prepare])
        .default("1000000"),
        WorkloadOption::new("rows", Count, "Rows that --server is loaded with [default: 1000000]"),
        WorkloadOption::new("rows-per-commit", Count, "Rows that one commit inserts").default("1"),
        WorkloadOption::new(
            "check",
            Flag,
            "Check rows and indexes after the run; exit code 1 when something is wrong",
        )
        .late(),
    ],
    named: |_, _| "insert".to_owned(),
    has: |name| name == "insert",
    of: |_, settings| Ok(Box::new(of(settings)?)),
};

fn of(settings: &WorkloadSettings) -> Result<InsertSpec, WorkloadError> {
    let usual = InsertSpec::default();
    // In a study its name is another one.
    let rows_per_commit = match settings.number("rows-per-commit")? {
        Some(rows) => rows,
        None => settings.number("commit-rows")?.unwrap_or(usual.rows_per_commit),
    };
    if !(1..=ROWS_PER_COMMIT_MAX).contains(&rows_per_commit) {
        return WorkloadError::setting(format!(
            "--rows-per-commit {rows_per_commit}: use 1 to {ROWS_PER_COMMIT_MAX}"
        ));
    }
    let rows = settings.number::<u32>("rows")?;
    if let (Some(rows), false) = (rows, settings.loads) {
        return WorkloadError::setting(format!(
            "--rows {rows}: only the tables of --server are loaded by `run`; load others with \
             `insert prepare --rows {rows}`"
        ));
    }
    let rows = rows.map_or(usual.rows, i64::from);
    if rows > i32::MAX.into() {
        return WorkloadError::setting(format!("--rows {rows}: use 0 to {}", i32::MAX));
    }
    Ok(InsertSpec { rows, rows_per_commit, ..usual })
}

impl Workload for InsertSpec {
    fn name(&self) -> String {
        "insert".to_owned()
    }

    fn schema(&self) -> Schema {
        schema()
    }

    fn size(&self) -> (u64, &'static str) {
        (self.rows as u64, "rows")
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(self.rows as u64 * ROW_BYTES)
    }

    fn tables_name(&self) -> String {
        format!("insert-{}", self.rows)
    }

    fn contents(&self) -> String {
        format!("insert, {} rows", self.rows)
    }

    fn storage_table(&self) -> Option<usize> {
        Some(TABLE)
    }

    fn loading(&self) -> String {
        format!("loading {} rows, then making indexes", self.rows)
    }

    fn load(
        &self,
        target: &dyn Target,
        options: &LoadOptions<'_>,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Loaded, TargetError> {
        let spec = Self { seed: options.seed, ..self.clone() };
        prepare(target, &spec, options.resets, options.stop, &|rows| {
            progress(rows as f64 / spec.rows.max(1) as f64);
        })
    }

    fn read_all(&self, target: &dyn Target) -> Result<(), TargetError> {
        read_all(target)
    }

    fn source<'a>(
        &self,
        target: &'a dyn Target,
        options: &SourceOptions,
    ) -> Result<RunnableWorkload<'a>, WorkloadError> {
        let spec = Self {
            rows: rows_loaded(target)?,
            rows_per_commit: self.rows_per_commit,
            seed: options.seed,
            isolation: options.isolation,
            as_text: options.as_text,
        };
        let rows_before = rows(target)?;
        let source = InsertTerminals::new(target, &spec, options.blocks)?;
        let growing = GrowingTable {
            table: TABLE,
            rows_before,
            rows_per_commit: spec.rows_per_commit,
            committed: source.committed(),
        };
        Ok(RunnableWorkload {
            settings: vec![
                ("rows_per_commit", spec.rows_per_commit.to_string()),
                ("rows_before", rows_before.to_string()),
            ],
            deviations: DEVIATIONS.map(str::to_owned).to_vec(),
            growing: Some(growing),
            ..RunnableWorkload::new(source)
        })
    }

    fn checking(&self) -> &'static str {
        "reading every row and every index"
    }

    fn check(
        &self,
        target: &dyn Target,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(Checked, u64), TargetError> {
        let checked = check(target, progress)?;
        let rows = checked.rows;
        Ok((checked, rows))
    }

    fn cleanup(&self, target: &dyn Target) -> Result<bool, TargetError> {
        cleanup(target)
    }
}
