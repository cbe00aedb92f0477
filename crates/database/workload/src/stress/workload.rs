//! The load as a workload: its options, and what they come to.

use iostrata_database::target::{Schema, Target, TargetError};

use crate::condition::Checked;
use crate::filling::Loaded;
use crate::stress::check::check;
use crate::stress::mix::StressMix;
use crate::stress::prepare::{StressSpec, cleanup, dataset, prepare, read_all};
use crate::stress::schema::schema;
use crate::stress::terminals::{DEVIATIONS, StressTerminals};
use crate::workload::OptionForm::{Count, Flag, Percent, Text};
use crate::workload::Verb::{Check, Cleanup, Prepare, Run};
use crate::workload::{
    LOADERS, LoadOptions, RunnableWorkload, SourceOptions, VerbHelp, Workload, WorkloadError,
    WorkloadKind, WorkloadOption, WorkloadSettings,
};

/// About how large a row is.
const ROW_BYTES: u64 = 150;
/// History rows of an object at most: a transaction reads all of them.
const HISTORY_MAX: i64 = 1_000;
const MIX: &str = "50,0,50";

/// Objects and their history.
pub static WORKLOAD: WorkloadKind = WorkloadKind {
    name: "stress",
    about: "Read and change objects with a history of fixed length, on the engine or on a server",
    detail: "Inspired by dbSTRESS. A history row that is added replaces the oldest one, so that \
             the tables keep their size and only undo, the work of purge and dirty pages grow. \
             docs/loads.md describes tables and transactions.",
    members: &[],
    verbs: &[
        VerbHelp { verb: Prepare, about: "Make the tables and fill them", detail: "" },
        VerbHelp { verb: Run, about: "Run transactions and measure them", detail: "" },
        VerbHelp {
            verb: Check,
            about: "Check what holds of objects and history at every moment",
            detail: "Exit code 1 when one does not hold.",
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
        WorkloadOption::new("history", Count, "History rows of each object, always")
            .on(&[Prepare])
            .default("20"),
        LOADERS,
        WorkloadOption::new(
            "objects",
            Count,
            "Objects of --server [default: 100000]; else those that are loaded",
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
    /// Those that are loaded, where nothing is said.
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
    ) -> Result<Loaded, TargetError> {
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
    ) -> Result<(Checked, u64), TargetError> {
        let (objects, _history) = dataset(target)?;
        Ok((check(target, progress)?, objects as u64))
    }

    fn cleanup(&self, target: &dyn Target) -> Result<bool, TargetError> {
        cleanup(target)
    }
}
