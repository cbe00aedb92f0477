//! The kit's load as a workload: what its settings come to. Its options are those of `tpcc`.

use iostrata_database::target::{Schema, Target, TargetError};

use crate::compat::prepare::{cleanup, prepare, warehouses};
use crate::compat::schema::schema;
use crate::compat::terminals::CompatTerminals;
use crate::compat::{CompatSpec, DEVIATIONS};
use crate::filling::Loaded;
use crate::tpcc::now_s;
use crate::workload::{
    LoadOptions, RunnableWorkload, SourceOptions, Workload, WorkloadError, WorkloadKind,
    WorkloadSettings,
};

/// Warehouses where nothing is said.
const WAREHOUSES: i64 = 4;

/// The load of sysbench-tpcc.
pub static WORKLOAD: WorkloadKind = WorkloadKind {
    name: "tpcc_compat",
    about: "",
    detail: "",
    members: &[],
    verbs: &[],
    keeps_loads: true,
    options: &[],
    named: |_, _| "tpcc_compat".to_owned(),
    has: |name| name == "tpcc_compat",
    of: |_, settings| Ok(Box::new(Kit::of(settings)?)),
};

/// The kit's load with its settings.
#[derive(Clone, Debug)]
struct Kit {
    /// Those of the tables, where nothing is said.
    warehouses: Option<i64>,
    /// With so many, or with as many as there are usually.
    spec: CompatSpec,
}

impl Kit {
    fn of(settings: &WorkloadSettings) -> Result<Self, WorkloadError> {
        let warehouses = settings.number::<u32>("warehouses")?.map(i64::from);
        if settings.loads && warehouses == Some(0) {
            return WorkloadError::setting("--warehouses 0: load at least one");
        }
        let spec = CompatSpec {
            scale: warehouses.unwrap_or(WAREHOUSES),
            tables: settings.number::<u32>("tables")?.unwrap_or(1).max(1),
            foreign_keys: settings.is_on("use-fk")?,
            ..CompatSpec::default()
        };
        Ok(Self { warehouses, spec })
    }

    /// How many warehouses the tables have, which is what was asked for, if anything was.
    fn found(&self, target: &dyn Target) -> Result<i64, WorkloadError> {
        let found = warehouses(target)?.filter(|warehouses| *warehouses > 0);
        let Some(found) = found else {
            return WorkloadError::setting(format!(
                "{}: no tables of sysbench-tpcc are there; load them with `tpcc prepare --compat \
                 sysbench-tpcc`",
                target.name()
            ));
        };
        match self.warehouses {
            Some(asked) if asked != found => WorkloadError::setting(format!(
                "--warehouses {asked}: the tables of sysbench-tpcc hold {found}; leave it out, or \
                 load others"
            )),
            _ => Ok(found),
        }
    }
}

impl Workload for Kit {
    fn name(&self) -> String {
        "tpcc".to_owned()
    }

    fn schema(&self) -> Schema {
        schema(self.spec.tables)
    }

    fn size(&self) -> (u64, &'static str) {
        (self.spec.scale as u64, "warehouses")
    }

    fn data_bytes(&self) -> Option<u64> {
        None
    }

    fn tables_name(&self) -> String {
        format!("kit-{}", self.spec.scale)
    }

    fn contents(&self) -> String {
        let CompatSpec { tables, scale, foreign_keys, .. } = self.spec;
        format!("sysbench-tpcc, {tables} sets of {scale} warehouses, foreign keys {foreign_keys}")
    }

    fn loading(&self) -> String {
        format!("loading {} warehouses", self.spec.scale)
    }

    fn load(
        &self,
        target: &dyn Target,
        options: &LoadOptions<'_>,
        progress: &(dyn Fn(f64) + Sync),
    ) -> Result<Loaded, TargetError> {
        if options.resets {
            cleanup(target, self.spec.tables)?;
        }
        let spec = CompatSpec { seed: options.seed, ..self.spec };
        prepare(target, &spec, (options.threads, now_s()), options.stop, &|rows, in_all| {
            progress(rows as f64 / in_all.max(1) as f64);
        })
    }

    fn source<'a>(
        &self,
        target: &'a dyn Target,
        options: &SourceOptions,
    ) -> Result<RunnableWorkload<'a>, WorkloadError> {
        let spec = CompatSpec { scale: self.found(target)?, seed: options.seed, ..self.spec };
        Ok(RunnableWorkload {
            settings: vec![
                ("compat", "sysbench-tpcc".to_owned()),
                ("warehouses", spec.scale.to_string()),
                ("tables", spec.tables.to_string()),
            ],
            deviations: DEVIATIONS.iter().map(|text| (*text).to_owned()).collect(),
            ..RunnableWorkload::new(CompatTerminals::new(target, spec, options.isolation)?)
        })
    }

    fn cleanup(&self, target: &dyn Target) -> Result<bool, TargetError> {
        cleanup(target, self.spec.tables).map(|tables| tables > 0)
    }
}
