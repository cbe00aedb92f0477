//! TPC-C as a workload: its options, and the resulting plan.

use std::sync::atomic::Ordering;

use iostrata_database::target::{Schema, Target, TargetError};

use crate::loaded_mark::LoadCounts;
use crate::tpcc::check::{CheckPlan, check};
use crate::tpcc::dataset::{Dataset, PrepareOptions, Stage, cleanup, prepare};
use crate::tpcc::input::{Mix, Waits};
use crate::tpcc::schema::schema;
use crate::tpcc::terminals::{TerminalOptions, Terminals, deviations, now_s};
use crate::workload::OptionForm::{Count, Flag, Number, OnOff, Switch, Text, Word};
use crate::workload::Verb::{Check, Cleanup, Prepare, Run};
use crate::workload::{
    CheckResult, LOADERS, LoadOptions, RunnableWorkload, SourceOptions, VerbHelp, Workload,
    WorkloadError, WorkloadKind, WorkloadOption, WorkloadSettings,
};

/// Warehouses by default.
const WAREHOUSES: i64 = 4;
/// About how large one is.
const WAREHOUSE_BYTES: u64 = 100 << 20;
const MIX: &str = "45,43,4,4,4";

/// TPC-C; its command also runs the load of sysbench-tpcc.
pub static WORKLOAD: WorkloadKind = WorkloadKind {
    name: "tpcc",
    about: "Run TPC-C on the embedded engine or on a MySQL-family server",
    detail: "Prepare once, run as often as you like, check whenever you want. Results are \
             TPC-C-like and given as new orders per minute (NOPM); docs/tpcc.md lists the \
             deviations.",
    members: &[],
    verbs: &[
        VerbHelp {
            verb: Prepare,
            about: "Create and load the tables; continues an interrupted attempt",
            detail: "",
        },
        VerbHelp { verb: Run, about: "Run transactions and measure them", detail: "" },
        VerbHelp {
            verb: Check,
            about: "Check the twelve consistency conditions",
            detail: "Exit code 1 if one fails.",
        },
        VerbHelp { verb: Cleanup, about: "Remove the tables", detail: "" },
    ],
    keeps_loads: true,
    options: &[
        WorkloadOption::new(
            "compat",
            Word("KIT", &[(
                "sysbench-tpcc",
                "The statements and deviations of sysbench-tpcc, on its own tables",
            )]),
            "Another kit's load instead of TPC-C's, on the kit's own tables",
        )
        .on(&[Prepare, Run, Cleanup]),
        WorkloadOption::new(
            "tables",
            Count,
            "Sets of tables of sysbench-tpcc; implies --compat sysbench-tpcc",
        )
        .on(&[Prepare, Run, Cleanup]),
        WorkloadOption::new("use-fk", OnOff, "Foreign keys between that kit's tables")
            .on(&[Prepare, Run, Cleanup])
            .default("1"),
        WorkloadOption::new("warehouses", Count, "Warehouses, about 100 MB each")
            .on(&[Prepare])
            .short('w')
            .alias("scale")
            .default("4"),
        LOADERS,
        WorkloadOption::new(
            "warehouses",
            Count,
            "Warehouses of --compat, which does not keep their number, and of --server [default: 4]",
        )
        .short('w')
        .alias("scale"),
        WorkloadOption::new(
            "wait",
            Flag,
            "Ten terminals for each warehouse that key and think as specified, over --threads \
             sessions",
        )
        .excludes(&["rate", "latency_target", "compat"])
        .late(),
        WorkloadOption::new("keying-multiplier", Number("FACTOR"), "Factor of keying times")
            .default("1")
            .needs("wait")
            .late(),
        WorkloadOption::new("think-multiplier", Number("FACTOR"), "Factor of think times")
            .default("1")
            .needs("wait")
            .late(),
        WorkloadOption::new(
            "mix",
            Text("N,N,N,N,N|deck"),
            "Shares of new orders, payments, order statuses, deliveries, stock levels; or: deck",
        )
        .alias("weight")
        .default(MIX)
        .late(),
        WorkloadOption::new(
            "all-warehouses",
            Switch,
            "Let few threads work in all warehouses, each in its own share; 0 leaves each at one",
        )
        .default("1")
        .late(),
        WorkloadOption::new(
            "check",
            Flag,
            "Check the twelve consistency conditions after the run; exit code 1 when one does not \
             hold",
        )
        .excludes(&["compat"])
        .late(),
    ],
    named: |_, settings| {
        let is_kit = settings.text("compat").is_some() || settings.text("tables").is_some();
        if is_kit { "tpcc_compat".to_owned() } else { "tpcc".to_owned() }
    },
    has: |name| name == "tpcc",
    of: |_, settings| Ok(Box::new(Tpcc::of(settings)?)),
};

/// TPC-C with its settings.
#[derive(Clone, Debug)]
struct Tpcc {
    /// Those that are loaded, where none are set.
    warehouses: Option<i64>,
    mix: Mix,
    /// As it was written.
    mix_text: String,
    waits: Waits,
    /// Whether few terminals share all warehouses.
    shares_warehouses: bool,
}

impl Tpcc {
    fn of(settings: &WorkloadSettings) -> Result<Self, WorkloadError> {
        let warehouses = settings.number::<u32>("warehouses")?;
        if settings.loads && warehouses == Some(0) {
            return WorkloadError::setting("--warehouses 0: load at least one");
        }
        let mix_text = settings.text("mix").unwrap_or(MIX).to_owned();
        Ok(Self {
            warehouses: warehouses.map(i64::from),
            mix: mix(&mix_text)?,
            mix_text,
            waits: waits(settings)?,
            shares_warehouses: settings.is_on("all-warehouses")?,
        })
    }

    fn waits(&self) -> bool {
        self.waits != Waits::NONE
    }
}

/// Five weights, or a deck.
fn mix(text: &str) -> Result<Mix, WorkloadError> {
    if text == "deck" {
        return Ok(Mix::Deck);
    }
    let weights: Option<Vec<u64>> = text.split(',').map(|one| one.trim().parse().ok()).collect();
    let weights = weights.and_then(|weights| <[u64; 5]>::try_from(weights).ok());
    match weights.filter(|weights| weights.iter().sum::<u64>() > 0) {
        Some(weights) => Ok(Mix::Weights(weights)),
        None => WorkloadError::setting(format!(
            "--mix {text}: write five shares such as {MIX} (new orders, payments, order statuses, \
             deliveries, stock levels), or deck"
        )),
    }
}

fn waits(settings: &WorkloadSettings) -> Result<Waits, WorkloadError> {
    let factor = |name: &str| {
        let factor = settings.number::<f64>(name)?.unwrap_or(1.0);
        match (0.0..=1_000.0).contains(&factor) {
            true => Ok(factor),
            false => WorkloadError::setting(format!("--{name} {factor}: use 0 to 1000")),
        }
    };
    let (keying, think) = (factor("keying-multiplier")?, factor("think-multiplier")?);
    Ok(if settings.is_on("wait")? { Waits { keying, think } } else { Waits::NONE })
}

impl Workload for Tpcc {
    fn name(&self) -> String {
        "tpcc".to_owned()
    }

    fn schema(&self) -> Schema {
        schema()
    }

    fn size(&self) -> (u64, &'static str) {
        (self.warehouses.unwrap_or(WAREHOUSES) as u64, "warehouses")
    }

    fn data_bytes(&self) -> Option<u64> {
        Some(self.size().0 * WAREHOUSE_BYTES)
    }

    fn tables_name(&self) -> String {
        format!("tpcc-{}", self.size().0)
    }

    fn contents(&self) -> String {
        format!("tpcc, {} warehouses", self.size().0)
    }

    fn loading(&self) -> String {
        format!("loading {} warehouses", self.size().0)
    }

    fn load(
        &self,
        target: &dyn Target,
        options: &LoadOptions<'_>,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<LoadCounts, TargetError> {
        let options_of_tables = PrepareOptions {
            warehouses: self.warehouses.unwrap_or(WAREHOUSES),
            threads: options.threads,
            seed: options.seed,
            now_s: now_s(),
            reset: options.resets,
        };
        let prepared = prepare(target, &options_of_tables, options.stop, &|done| {
            progress(done.rows as f64 / done.rows_in_all.max(1) as f64);
        })?;
        Ok(prepared.loaded)
    }

    fn source<'a>(
        &self,
        target: &'a dyn Target,
        options: &SourceOptions,
    ) -> Result<RunnableWorkload<'a>, WorkloadError> {
        let mut dataset = Dataset::ready(target)?;
        let loaded = dataset.warehouses;
        if let Some(asked) = self.warehouses.filter(|asked| *asked != loaded) {
            return WorkloadError::setting(format!(
                "--warehouses {asked}: {loaded} are loaded; leave it out, or load them with \
                 `prepare --reset`"
            ));
        }
        dataset.mark_used(target)?;
        let terminals = TerminalOptions {
            mix: self.mix,
            waits: self.waits,
            isolation: options.isolation,
            seed: options.seed,
            as_text: options.as_text,
            blocks: options.blocks,
            sharing: self.shares_warehouses.then_some(options.terminals),
        };
        let in_use = match self.waits() || self.shares_warehouses {
            true => loaded,
            false => loaded.min(options.terminals.into()),
        };
        let mut all: Vec<String> = deviations(&terminals).into_iter().map(str::to_owned).collect();
        let note = format!("{in_use} of {loaded} warehouses are in use");
        if in_use < loaded {
            all.push(format!("{note}: one for each thread"));
        }
        let source = Terminals::new(target, &dataset, terminals);
        let (constants, skipped) = (source.constants(), source.skipped_deliveries());
        Ok(RunnableWorkload {
            settings: vec![
                ("warehouses", loaded.to_string()),
                ("warehouses_in_use", in_use.to_string()),
                ("mix", self.mix_text.clone()),
                ("c_load", dataset.c_load.to_string()),
                ("c_run", constants.last.to_string()),
            ],
            deviations: all,
            note: Some(note),
            homes: self.waits().then(|| u32::try_from(loaded * 10).unwrap_or(u32::MAX)),
            // Clause 2.7.4.2 requires their number.
            found_out: Some(Box::new(move || {
                let skipped = skipped.load(Ordering::Relaxed);
                (skipped > 0).then(|| {
                    format!(
                        "deliveries found no new order in a district, and skipped it, {skipped} \
                         times"
                    )
                })
            })),
            ..RunnableWorkload::new(source)
        })
    }

    fn orders(&self, target: &dyn Target) -> Option<u64> {
        Dataset::orders(target).ok()
    }

    fn check(
        &self,
        target: &dyn Target,
        progress: &mut dyn FnMut(f64),
    ) -> Result<(CheckResult, u64), TargetError> {
        let Dataset { warehouses, stage, .. } = Dataset::ready(target)?;
        let plan = CheckPlan { warehouses, is_fresh: stage == Stage::Loaded };
        Ok((check(target, plan, progress)?, warehouses as u64))
    }

    fn cleanup(&self, target: &dyn Target) -> Result<bool, TargetError> {
        cleanup(target)
    }
}
