//! From the arguments of `simulate flush` to a plan, and the plan in words.

use std::collections::BTreeMap;

use iostrata_innodb::Settings;
use iostrata_plan::disk::DiskModel;
use iostrata_run::FlushTurn;
use iostrata_sim::flush::{
    Demand, FOLLOWED, FlushChange, FlushDevice, FlushLoad, FlushPlan, PageAccess,
};
use iostrata_stats::units::Size;

use crate::args::{FlushArgs, TimedValue};
use crate::disk_command::measured;
use crate::exit_error::ExitError;

/// The limit of a volume by default.
const IOPS_LIMIT: f64 = 1500.0;
/// Users by default.
const USERS: u32 = 32;
/// What servers had for most of their history.
pub const SERVER_SETTINGS: [(&str, &str); 2] =
    [("io_capacity", "200"), ("io_capacity_max", "2000")];
/// Sizes of redo and pool by default.
pub const REDO_BYTES: u64 = 1 << 30;
pub const POOL_BYTES: u64 = 12 << 30;
/// The load by default.
pub const LOAD: FlushLoad = FlushLoad {
    demand: Demand::Users(USERS),
    pages_per_txn: 6.0,
    redo_bytes_per_txn: 5000.0,
    data_bytes: 8 << 30,
    access: PageAccess::Zipf(0.9),
    cpu_us_per_txn: 500.0,
    processors: 4,
};

/// The plan that all policies share; the policy is the settings' own.
///
/// # Errors
/// Whatever can't be simulated, with its option.
pub fn plan(args: &FlushArgs) -> Result<FlushPlan, ExitError> {
    let mut base = Settings::default();
    for (name, value) in SERVER_SETTINGS {
        base.set(name, value).map_err(|error| usage(error.to_string()))?;
    }
    (base.redo_log_capacity, base.buffer_pool_size) = (REDO_BYTES, POOL_BYTES);
    let settings = settings(args, base)?;
    let demand = demand(args).unwrap_or(LOAD.demand);
    let load = FlushLoad { demand, ..load_of(args, &LOAD) };
    finished(args, settings, load)
}

/// The demand for transactions, where the arguments give it.
pub fn demand(args: &FlushArgs) -> Option<Demand> {
    args.rate.map(Demand::Rate).or(args.users.map(Demand::Users))
}

/// The load with the arguments applied.
pub fn load_of(args: &FlushArgs, base: &FlushLoad) -> FlushLoad {
    let cpu_us = args.cpu_per_txn.map(|time| time.as_secs_f64() * 1e6);
    FlushLoad {
        demand: base.demand,
        pages_per_txn: args.pages_per_txn.unwrap_or(base.pages_per_txn),
        redo_bytes_per_txn: args.redo_per_txn.map_or(base.redo_bytes_per_txn, |of| of as f64),
        data_bytes: args.data.unwrap_or(base.data_bytes),
        access: args.distribution.unwrap_or(base.access),
        cpu_us_per_txn: cpu_us.unwrap_or(base.cpu_us_per_txn),
        processors: args.processors.unwrap_or(base.processors),
    }
}

/// The plan of these settings and this load, on the device and with the changes of the arguments.
///
/// # Errors
/// Whatever can't be simulated.
pub fn finished(
    args: &FlushArgs,
    settings: Settings,
    load: FlushLoad,
) -> Result<FlushPlan, ExitError> {
    let disk = match &args.device {
        Some(disk) => disk.clone(),
        None => "nvme".parse().map_err(|error| usage(format!("{error}")))?,
    };
    let limit = match args.iops_limit {
        Some(limit) => Some(f64::from(limit)),
        None if args.device.is_none() && args.from.is_none() => Some(IOPS_LIMIT),
        None => None,
    };
    let measured = measured(&disk)?;
    let sizes = (u64::from(settings.page_size), load.data_bytes);
    let seed = args.common.seed;
    let device = FlushDevice::new(&disk, measured.as_ref(), limit, sizes, seed)
        .map_err(|error| usage(error.to_string()))?;
    let changes = changes(args);
    let span_s = args.span.as_secs_f64();
    let plan = FlushPlan { settings, device, load, changes, span_s, seed };
    plan.check().map_err(|error| usage(error.to_string()))?;
    Ok(plan)
}

fn usage(text: String) -> ExitError {
    ExitError::Usage(text)
}

/// Settings with the arguments applied.
///
/// # Errors
/// A value that a setting does not take, with the option.
pub fn settings(args: &FlushArgs, base: Settings) -> Result<Settings, ExitError> {
    let mut settings = base;
    let mut set = |option: &str, name: &str, value: &str| {
        settings.set(name, value).map_err(|error| usage(format!("{option}: {error}")))
    };
    if let Some(redo) = args.redo {
        set("--redo", "redo_log_capacity", &Size(redo).to_string())?;
    }
    if let Some(pool) = args.pool {
        set("--pool", "buffer_pool_size", &Size(pool).to_string())?;
    }
    if let Some(lag) = args.max_purge_lag {
        set("--max-purge-lag", "max_purge_lag", &lag.to_string())?;
    }
    if let Some(threads) = args.purge_threads {
        set("--purge-threads", "purge_threads", &threads.to_string())?;
    }
    if let Some(limit) = args.flush_write_limit {
        set("--flush-write-limit", "flush_write_limit", limit.word())?;
    }
    for (name, value) in &args.set {
        if iostrata_innodb::find(name).is_some_and(|setting| setting.name == "policy") {
            return Err(usage("--set policy: name policies with --policy".to_owned()));
        }
        set("--set", name, value)?;
    }
    let is_old = settings.max_purge_lag_version == iostrata_innodb::MaxPurgeLagVersion::Mysql55;
    if settings.max_purge_lag > 0 && settings.max_purge_lag_delay == 0 && !is_old {
        let fix = "give --set max_purge_lag_delay=US, or --set max_purge_lag_version=5.5";
        return Err(usage(format!(
            "--max-purge-lag {}: without max_purge_lag_delay it has no effect; {fix}",
            settings.max_purge_lag
        )));
    }
    Ok(settings)
}

fn changes(args: &FlushArgs) -> Vec<(f64, FlushChange)> {
    let limit = |one: &TimedValue| (one.at_s, FlushChange::IopsLimit(one.value));
    let load = |one: &TimedValue| (one.at_s, FlushChange::Load(one.value));
    let mut changes: Vec<_> = args.limit_at.iter().map(limit).collect();
    changes.extend(args.load_at.iter().map(load));
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    changes
}

/// What changes on the way, in words.
pub fn turns(plan: &FlushPlan) -> Vec<FlushTurn> {
    let text = |change: FlushChange| match change {
        FlushChange::IopsLimit(iops) => format!("limit {iops} requests/s each way"),
        FlushChange::Load(factor) => format!("load times {factor}"),
    };
    plan.changes.iter().map(|(t_s, change)| FlushTurn { t_s: *t_s, text: text(*change) }).collect()
}

/// Whether the arguments name a disk that turns.
pub fn disk_turns(args: &FlushArgs) -> bool {
    use DiskModel::{Hdd7k2, Hdd10k, Hdd15k, Raid10Hdd};
    let model = args.device.as_ref().map(|disk| &disk.model);
    matches!(model, Some(Hdd7k2 | Hdd10k | Hdd15k | Raid10Hdd))
}

/// The device in words.
pub fn device(plan: &FlushPlan) -> String {
    match plan.device.iops_limit() {
        Some(iops) => format!("{}, at most {iops} reads and {iops} writes per second", plan.disk()),
        None => plan.disk().to_string(),
    }
}

/// The load in words.
pub fn load(plan: &FlushPlan) -> String {
    let load = &plan.load;
    // What is fitted has more digits than it is known to.
    let short = |value: f64| (value * 1e3).round() / 1e3;
    let demand = match load.demand {
        Demand::Users(1) => "1 user".to_owned(),
        Demand::Users(users) => format!("{users} users"),
        Demand::Rate(rate) => format!("{} transactions per second", short(rate)),
    };
    let access = match load.access {
        PageAccess::Uniform => "uniform".to_owned(),
        PageAccess::Zipf(power) => format!("zipf {}", short(power)),
        PageAccess::HotSet { data_pct, changes_pct } => {
            format!("{changes_pct} % of the changes on {data_pct} % of the data")
        }
    };
    format!(
        "{demand}; a transaction changes {} pages, makes {} bytes of redo and takes {} us of {} \
         processors; {} of data, {access}",
        short(load.pages_per_txn),
        short(load.redo_bytes_per_txn),
        short(load.cpu_us_per_txn),
        load.processors,
        Size(load.data_bytes),
    )
}

/// Settings that are followed, by name.
pub fn settings_of(plan: &FlushPlan) -> BTreeMap<String, String> {
    let followed = FOLLOWED.iter().filter(|name| **name != "policy");
    let value = |name: &&str| Some(((*name).to_owned(), plan.settings.get(name).ok()?));
    followed.filter_map(value).collect()
}
