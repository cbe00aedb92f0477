//! A load inspired by dbSTRESS: objects with sections, zones and statuses, and a history of fixed
//! length for each.
//!
//! Purpose: transactions that leave the tables as large as they were: a history row that is added
//! replaces the oldest one. What grows is undo, the work of purge, and dirty pages.

mod schema;

use std::sync::Arc;

use iostrata_database::target::{
    Op, OpId, Rows, Schema, Session, SessionOptions, Target, TargetError, Value,
};
use iostrata_load::Turn;
use iostrata_plan::OpKind;
use iostrata_stats::Random;

use crate::loaded_mark::LoadCounts;
use crate::slots::{Conclusion, PlainTerminals, Transactions};
use crate::tpcc::draw::letters;
use crate::tpcc::now_s;
use crate::workload::OptionForm::{Count, Flag, Percent, Text};
use crate::workload::Verb::{Check, Cleanup, Prepare, Run};
use crate::workload::{
    CheckResult, LOADERS, LoadOptions, RunnableWorkload, SourceOptions, VerbHelp, Workload,
    WorkloadError, WorkloadKind, WorkloadOption, WorkloadSettings,
};
use schema::{
    CHANGE_OBJECT, DELETE_OLDEST, HISTORY, INSERT_LATEST, LOCK_OBJECT, NOTE, OBJECT, READ_STATUSES,
    SECTION, ZONE, amount, ops, status,
};

pub use schema::{StressSpec, check, cleanup, dataset, prepare, read_all, schema};

// Which transaction comes next.

/// Shares of reads, read-writes and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StressMix([u64; 3]);

impl StressMix {
    /// The kinds, in the order of their shares.
    pub const KINDS: [OpKind; 3] = [OpKind::Read, OpKind::ReadWrite, OpKind::Write];

    /// With these shares; `None` where they sum up to nothing.
    pub fn new(shares: [u64; 3]) -> Option<Self> {
        let sum = shares.iter().try_fold(0_u64, |sum, share| sum.checked_add(*share));
        sum.filter(|sum| *sum > 0).map(|_| Self(shares))
    }

    /// So many reads in a hundred transactions, the others writes. More than a hundred are all.
    pub fn reads_pct(reads: u8) -> Self {
        let reads = u64::from(reads.min(100));
        Self([reads, 0, 100 - reads])
    }

    /// The kind of a transaction.
    fn kind(self, random: &mut Random) -> OpKind {
        let mut left = random.below(self.0.iter().sum());
        for (kind, share) in Self::KINDS.into_iter().zip(self.0) {
            match left.checked_sub(share) {
                Some(rest) => left = rest,
                None => return kind,
            }
        }
        OpKind::Write
    }
}

/// A write for every read.
impl Default for StressMix {
    fn default() -> Self {
        Self([50, 0, 50])
    }
}

impl std::fmt::Display for StressMix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [reads, read_writes, writes] = self.0;
        write!(f, "{reads},{read_writes},{writes}")
    }
}

// The load for the driver: what a terminal runs in its turn.

/// How it differs from dbSTRESS, which inspired it.
pub const DEVIATIONS: [&str; 3] = [
    "inspired by dbSTRESS, whose sources are not public: tables, columns and statements are \
     iostrata's own",
    "a read takes five statements by key in place of two joins",
    "foreign keys are not declared; `stress check` verifies that they hold",
];

/// All terminals of a run.
pub type StressTerminals<'a> = PlainTerminals<'a, StressTransactions<'a>>;

impl<'a> StressTerminals<'a> {
    /// Terminals over tables that are there. `blocks`: whether a session keeps its thread waiting.
    ///
    /// # Errors
    /// When nothing was prepared, or other numbers of rows than the spec's; the target's error.
    pub fn new(
        target: &'a dyn Target,
        spec: StressSpec,
        blocks: bool,
    ) -> Result<Self, TargetError> {
        let (objects, history) = dataset(target)?;
        if (objects, history) != (spec.objects, spec.history) {
            let what = format!(
                "{objects} objects with {history} history rows are there, and {} with {} are \
                 asked for",
                spec.objects, spec.history
            );
            let fix = "load those with `stress prepare --reset`";
            return Err(TargetError::not_ready(&target.name(), "other_dataset", what, fix));
        }
        let schema = Arc::new(schema());
        let ops = ops(&schema, spec.history);
        let session = SessionOptions {
            ops: Arc::clone(&ops),
            isolation: spec.isolation,
            autocommit: false,
            as_text: spec.as_text,
        };
        let (seed, transactions) = (spec.seed, StressTransactions { target, ops, spec });
        Ok(Self { target, schema, session, seed, blocks, transactions })
    }
}

/// Reads, read-writes and writes of one object each.
pub struct StressTransactions<'a> {
    target: &'a dyn Target,
    ops: Arc<[Op]>,
    spec: StressSpec,
}

/// What a worker keeps.
#[derive(Default)]
pub struct StressBuffers {
    rows: Rows,
    note: Vec<u8>,
    keys: Vec<i64>,
}

impl Transactions for StressTransactions<'_> {
    type Buffers = StressBuffers;

    fn buffers(&self) -> StressBuffers {
        StressBuffers::default()
    }

    fn kinds(&self) -> Vec<OpKind> {
        StressMix::KINDS.to_vec()
    }

    fn kind(&self, random: &mut Random) -> OpKind {
        self.spec.mix.kind(random)
    }

    fn run(
        &self,
        buffers: &mut StressBuffers,
        session: &mut dyn Session,
        kind: OpKind,
        _turn: Turn,
        random: &mut Random,
    ) -> Result<Conclusion, TargetError> {
        let StressBuffers { rows, note, keys } = buffers;
        let mut statements = Statements { of: self, rows, note, keys };
        statements.all(session, kind, random).map(|()| Conclusion::Commit)
    }
}

/// Runs the statements of transactions.
struct Statements<'a> {
    of: &'a StressTransactions<'a>,
    rows: &'a mut Rows,
    note: &'a mut Vec<u8>,
    keys: &'a mut Vec<i64>,
}

impl Statements<'_> {
    /// One transaction, on one object.
    fn all(
        &mut self,
        session: &mut dyn Session,
        kind: OpKind,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let object = 1 + random.below(self.of.spec.objects as u64) as i64;
        session.begin()?;
        if kind != OpKind::Write {
            self.read(session, object)?;
        }
        if kind != OpKind::Read {
            self.write(session, object, random)?;
        }
        Ok(())
    }

    /// The object with its section, zone and status, and its latest history with theirs.
    fn read(&mut self, session: &mut dyn Session, object: i64) -> Result<(), TargetError> {
        let [section, status] = self.one(session, OBJECT, object)?;
        let [zone] = self.one(session, SECTION, section)?;
        session.run(ZONE, &[zone.into()], self.rows)?;
        session.run(HISTORY, &[object.into()], self.rows)?;
        self.keys.clear();
        self.keys.push(status);
        self.keys.extend((0..self.rows.len()).map(|row| self.rows.get(row, 1).int()));
        let keys: Vec<Value<'_>> = self.keys.iter().map(|key| Value::Int(*key)).collect();
        session.run(READ_STATUSES, &keys, self.rows)?;
        Ok(())
    }

    /// Changes the object, and replaces the oldest row of its history.
    fn write(
        &mut self,
        session: &mut dyn Session,
        object: i64,
        random: &mut Random,
    ) -> Result<(), TargetError> {
        let [last] = self.one(session, LOCK_OBJECT, object)?;
        let (oldest, latest) = (last - self.of.spec.history + 1, last + 1);
        let (status, added) = (status(random), amount(object, latest));
        self.note.clear();
        letters(random, self.note, NOTE.0, NOTE.1);
        let note = Value::Text(self.note);
        let more = added - amount(object, oldest);
        let rows = &mut *self.rows;
        session.run(CHANGE_OBJECT, &[object.into(), status.into(), note, more.into()], rows)?;
        session.run(DELETE_OLDEST, &[object.into(), oldest.into()], rows)?;
        let row = [object, latest, status, added, now_s()].map(Value::Int);
        let [object, latest, status, added, at] = row;
        session.run(INSERT_LATEST, &[object, latest, status, added, at, note], rows)?;
        Ok(())
    }

    /// The first numbers of the row with a key, which has to be there.
    fn one<const N: usize>(
        &mut self,
        session: &mut dyn Session,
        op: OpId,
        key: i64,
    ) -> Result<[i64; N], TargetError> {
        session.run(op, &[key.into()], self.rows)?;
        if self.rows.is_empty() {
            let text = format!("{}: there is no row {key}", self.of.ops[op.0].name);
            let fix = "see what is missing by `stress check`";
            let name = self.of.target.name();
            return Err(TargetError::not_ready(&name, "missing_row", text, fix));
        }
        Ok(std::array::from_fn(|at| self.rows.get(0, at).int()))
    }
}

// The load as a workload: its options, and the resulting spec.

/// About how large a row is.
const ROW_BYTES: u64 = 150;
/// History rows of an object at most: a transaction reads all of them.
const HISTORY_MAX: i64 = 1_000;
const MIX: &str = "50,0,50";

/// Objects and their history.
pub static WORKLOAD: WorkloadKind = WorkloadKind {
    name: "stress",
    about: "Read and update objects with a history of fixed length, on the engine or on a server",
    detail: "Inspired by dbSTRESS. A new history row replaces the oldest one, so that the \
             tables keep their size and only undo, purge work and dirty pages grow. docs/loads.md \
             describes tables and transactions.",
    members: &[],
    verbs: &[
        VerbHelp { verb: Prepare, about: "Create and load the tables", detail: "" },
        VerbHelp { verb: Run, about: "Run transactions and measure them", detail: "" },
        VerbHelp {
            verb: Check,
            about: "Check the consistency conditions of objects and history",
            detail: "Exit code 1 if one fails.",
        },
        VerbHelp { verb: Cleanup, about: "Remove the tables", detail: "" },
    ],
    keeps_loads: true,
    options: &[
        WorkloadOption::new(
            "objects",
            Count,
            "Objects; 100000 with 20 history rows each are about 300 MB",
        )
        .on(&[Prepare])
        .default("100000"),
        WorkloadOption::new("history", Count, "History rows per object")
            .on(&[Prepare])
            .default("20"),
        LOADERS,
        WorkloadOption::new(
            "objects",
            Count,
            "Objects of --server [default: 100000]; otherwise the loaded ones",
        ),
        WorkloadOption::new(
            "history",
            Count,
            "History rows of each object of --server [default: 20]; else those that are loaded",
        ),
        WorkloadOption::new(
            "mix",
            Text("N,N,N"),
            "Shares of reads, read-writes (an object is read and changed in one transaction), \
             writes",
        )
        .alias("weight")
        .default(MIX),
        WorkloadOption::new(
            "read-pct",
            Percent("PCT"),
            "So many percent are reads, the others writes; in place of --mix",
        )
        .excludes(&["mix"]),
        WorkloadOption::new(
            "check",
            Flag,
            "Check all conditions after the run; exit code 1 when one does not hold",
        )
        .late(),
    ],
    named: |_, _| "stress".to_owned(),
    has: |name| name == "stress",
    of: |_, settings| Ok(Box::new(Stress::of(settings)?)),
};

/// The load with its settings.
#[derive(Clone, Debug)]
struct Stress {
    /// Those that are loaded, where none are set.
    objects: Option<i64>,
    history: Option<i64>,
    /// With so many, or with as many as there are usually.
    spec: StressSpec,
}

impl Stress {
    fn of(settings: &WorkloadSettings) -> Result<Self, WorkloadError> {
        let usual = StressSpec::default();
        let objects = settings.number::<i64>("objects")?;
        let history = settings.number::<i64>("history")?;
        let spec = StressSpec {
            objects: objects.unwrap_or(usual.objects),
            history: history.unwrap_or(usual.history),
            mix: mix(settings)?,
            ..usual
        };
        let limits =
            [("objects", spec.objects, i32::MAX.into()), ("history", spec.history, HISTORY_MAX)];
        for (name, found, most) in limits {
            if settings.loads && !(1..=most).contains(&found) {
                return WorkloadError::setting(format!("--{name} {found}: use 1 to {most}"));
            }
        }
        Ok(Self { objects, history, spec })
    }
}

/// Three shares, or a percentage of reads.
fn mix(settings: &WorkloadSettings) -> Result<StressMix, WorkloadError> {
    if let Some(reads) = settings.number("read-pct")? {
        return Ok(StressMix::reads_pct(reads));
    }
    let text = settings.text("mix").unwrap_or(MIX);
    let shares: Option<Vec<u64>> = text.split(',').map(|one| one.trim().parse().ok()).collect();
    let shares = shares.and_then(|shares| <[u64; 3]>::try_from(shares).ok());
    match shares.and_then(StressMix::new) {
        Some(mix) => Ok(mix),
        None => WorkloadError::setting(format!(
            "--mix {text}: write three shares such as {MIX} (reads, read-writes, writes)"
        )),
    }
}

impl Workload for Stress {
    fn name(&self) -> String {
        "stress".to_owned()
    }

    fn schema(&self) -> Schema {
        schema()
    }

    fn size(&self) -> (u64, &'static str) {
        (self.spec.objects as u64, "objects")
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(self.spec.objects as u64 * (1 + self.spec.history as u64) * ROW_BYTES)
    }

    fn tables_name(&self) -> String {
        format!("stress-{}", self.spec.objects)
    }

    fn contents(&self) -> String {
        let StressSpec { objects, history, .. } = self.spec;
        format!("stress, {objects} objects with {history} history rows")
    }

    fn storage_table(&self) -> Option<usize> {
        Some(schema().table("stress_history"))
    }

    fn loading(&self) -> String {
        format!("loading {} objects", self.spec.objects)
    }

    fn load(
        &self,
        target: &dyn Target,
        options: &LoadOptions<'_>,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<LoadCounts, TargetError> {
        let spec = StressSpec { seed: options.seed, ..self.spec.clone() };
        let how = (options.threads, options.resets);
        prepare(target, &spec, how, options.stop, &|rows, in_all| {
            progress(rows as f64 / in_all.max(1) as f64);
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
        let (objects, history) = dataset(target)?;
        let spec = StressSpec {
            objects: self.objects.unwrap_or(objects),
            history: self.history.unwrap_or(history),
            mix: self.spec.mix,
            seed: options.seed,
            isolation: options.isolation,
            as_text: options.as_text,
        };
        Ok(RunnableWorkload {
            settings: vec![
                ("objects", spec.objects.to_string()),
                ("history", spec.history.to_string()),
                ("mix", spec.mix.to_string()),
            ],
            deviations: DEVIATIONS.map(str::to_owned).to_vec(),
            ..RunnableWorkload::new(StressTerminals::new(target, spec, options.blocks)?)
        })
    }

    fn check(
        &self,
        target: &dyn Target,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(CheckResult, u64), TargetError> {
        let (objects, _history) = dataset(target)?;
        Ok((check(target, progress)?, objects as u64))
    }

    fn cleanup(&self, target: &dyn Target) -> Result<bool, TargetError> {
        cleanup(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(mix: StressMix) -> [f64; 3] {
        let (mut counts, mut random) = ([0_u32; 3], Random::new(4));
        for _ in 0..200_000 {
            let kind = mix.kind(&mut random);
            counts[StressMix::KINDS.iter().position(|one| *one == kind).unwrap()] += 1;
        }
        counts.map(|count| f64::from(count) / 2_000.0)
    }

    #[test]
    fn kinds_come_as_often_as_their_shares_say() {
        for (mix, expected) in [
            (StressMix::default(), [50.0, 0.0, 50.0]),
            (StressMix::new([1, 2, 1]).unwrap(), [25.0, 50.0, 25.0]),
            (StressMix::reads_pct(100), [100.0, 0.0, 0.0]),
            (StressMix::reads_pct(90), [90.0, 0.0, 10.0]),
        ] {
            for (found, expected) in shares(mix).into_iter().zip(expected) {
                assert!((found - expected).abs() < 0.5, "{mix}: {found}");
                assert!(expected > 0.0 || found == 0.0, "{mix}");
            }
        }
        assert_eq!(StressMix::new([0; 3]), None);
        assert_eq!(StressMix::new([u64::MAX, 1, 0]), None);
    }
}
