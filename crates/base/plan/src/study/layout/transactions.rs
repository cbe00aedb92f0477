//! Settings as a load of transactions.

use std::time::Duration;

use super::conflict::{Conflict, refuse};
use super::settings::Settings;
use crate::study::setting::{
    OF_BOTH, OF_ENGINE, OF_SECOND, OF_SERVER, Setting, SettingId, SettingValue, TPCC_COMPAT,
};
use crate::study::{Measuring, VolumeKind};
use crate::{Access, IoSpec, Overload, TransactionPacing, TransactionSpec};

/// Arrivals that may wait for a session: more than any window brings.
const QUEUE_MAX: u32 = 10_000_000;
/// What the tables are, and what is done with them.
const OF_TABLES: [SettingId; 8] = [
    SettingId::Rows,
    SettingId::RowUpdates,
    SettingId::RandomDistribution,
    SettingId::Warehouses,
    SettingId::Objects,
    SettingId::ReadPct,
    SettingId::CommitRows,
    SettingId::StorageEngine,
];
/// Between the seeds of two engines: more than a study has replicates.
const SECOND_SEED: u64 = 1 << 32;
/// What readers that run with a database read: pages of its size, in a file that no cache of a disk
/// holds.
const READ_BYTES: u32 = 16 << 10;
const READ_FILE_BYTES: u64 = 256 << 20;

/// The load; none where requests are what runs. Its target is the kind of the database until its
/// directory is there.
///
/// # Errors
/// When settings contradict each other.
pub(in crate::study) fn transactions(
    settings: &Settings<'_>,
    measuring: &Measuring,
) -> Result<Option<TransactionSpec>, Conflict> {
    if settings.makes_requests() {
        return Ok(None);
    }
    if settings.filesystem() == VolumeKind::Raw {
        let why = "a database keeps files, and there is no file system for them";
        return refuse(SettingId::Filesystem, why, "use ext4, xfs, btrfs or here");
    }
    if settings.count(SettingId::Volumes).is_some_and(|volumes| volumes > 1) {
        let why = "a database lies on one volume";
        return refuse(SettingId::Volumes, why, "use 1");
    }
    if let Some(SettingValue::Access(Access::Coverage)) =
        settings.value(SettingId::RandomDistribution)
    {
        let why = "transactions choose rows, not blocks";
        return refuse(SettingId::RandomDistribution, why, "use uniform or zipf:0.99");
    }
    if settings.workload() == TPCC_COMPAT && settings.is_on_engine() {
        let why = "sends statements as text, which only servers take";
        return refuse(SettingId::Workload, why, "use tpcc, or a server as target");
    }
    if settings.is_on(SettingId::RedoVolume) && settings.filesystem() == VolumeKind::Here {
        let why = "no volume is made for the directory as it is";
        return refuse(SettingId::RedoVolume, why, "use filesystem ext4, xfs or btrfs");
    }
    let text = |id| settings.assigned(id).map(|set| set.label.clone());
    let mut spec = TransactionSpec {
        threads: settings.count(SettingId::Workers).unwrap_or(1) as u32,
        pacing: pacing(settings, SettingId::RateTps),
        // What comes before a window is a matter of how far the redo has come, not of time.
        warm_up: Some(Duration::ZERO),
        runtime: Some(measuring.point_time),
        point_time: measuring.point_time,
        precision: measuring.precision,
        seed: measuring.seed,
        ..TransactionSpec::new(settings.workload(), text(SettingId::Target).unwrap_or_default())
    };
    for id in OF_TABLES {
        let own =
            settings.assigned(id).map(|set| (set.setting.name.to_string(), set.label.clone()));
        spec.settings.extend(own);
    }
    if settings.is_on(SettingId::RedoVolume) {
        spec.settings.insert(Setting::of(SettingId::RedoVolume).name.to_string(), true.to_string());
    }
    if settings.is_on_engine() {
        // Settings of the engine itself override settings of every database.
        spec.settings.extend(of_engine(settings, OF_BOTH));
        spec.settings.extend(of_engine(settings, OF_ENGINE));
    } else {
        for prefix in [OF_BOTH, OF_SERVER] {
            let named = settings.of_database(prefix);
            spec.settings
                .extend(named.map(|(own, set)| (format!("{prefix}{own}"), set.label.clone())));
        }
    }
    Ok(Some(spec))
}

/// The load of a second engine that runs with the first: the same transactions on tables of its
/// own, under its own settings, by the names that the first one's have; none where there is none.
///
/// # Errors
/// When its settings do not go together.
pub(in crate::study) fn second(
    settings: &Settings<'_>,
    first: Option<&TransactionSpec>,
) -> Result<Option<TransactionSpec>, Conflict> {
    let workers = settings.count(SettingId::SecondWorkers).unwrap_or(0) as u32;
    let Some(first) = first else {
        if workers == 0 {
            return Ok(None);
        }
        let why = "a second engine runs transactions, and requests are what runs here";
        let fix = "set workload, such as workload = \"updates\", or leave it out";
        return refuse(SettingId::SecondWorkers, why, fix);
    };
    let said = settings.of_database(OF_SECOND).map(|(_, set)| set.setting.id).next();
    if workers == 0 {
        let own = [SettingId::SecondRowUpdates, SettingId::SecondRateTps].into_iter();
        let said = said.or_else(|| own.into_iter().find(|id| settings.assigned(*id).is_some()));
        let why = "no session works on a second engine";
        let fix =
            "set the number of its sessions, such as second_workers = 4, or 0 for no such engine";
        return said.map_or(Ok(None), |id| refuse(id, why, fix));
    }
    if !settings.is_on_engine() {
        let why = "a second engine runs only with an engine, and the target is a server";
        return refuse(SettingId::SecondWorkers, why, "use target = \"engine\", or leave it out");
    }
    if said.is_none() {
        let why = "the second engine has no setting";
        let fix = "give it a setting, such as \"second.policy\" = \"adaptive\", or use 0";
        return refuse(SettingId::SecondWorkers, why, fix);
    }
    let mut spec = TransactionSpec {
        threads: workers,
        pacing: pacing(settings, SettingId::SecondRateTps),
        // Two engines that change the same rows at the same time are no two engines.
        seed: first.seed.wrapping_add(SECOND_SEED),
        ..first.clone()
    };
    spec.settings.retain(|name, _| !name.starts_with(OF_ENGINE));
    if let Some(rows) = settings.assigned(SettingId::SecondRowUpdates) {
        let name = Setting::of(SettingId::RowUpdates).name;
        spec.settings.insert(name.to_string(), rows.label.clone());
    }
    spec.settings.extend(of_engine(settings, OF_SECOND));
    Ok(Some(spec))
}

/// Threads that read a file while a database runs; `None` without any.
pub(in crate::study) fn readers(
    settings: &Settings<'_>,
    beside: &TransactionSpec,
) -> Option<IoSpec> {
    let jobs = settings.count(SettingId::Readers).filter(|threads| *threads > 0)? as u32;
    Some(IoSpec {
        jobs,
        block_bytes: READ_BYTES,
        size_bytes: READ_FILE_BYTES,
        direct: true,
        seed: beside.seed,
        ..IoSpec::new("")
    })
}

/// The settings of one of the engines, by the names that the first one's have.
fn of_engine(
    settings: &Settings<'_>,
    prefix: &'static str,
) -> impl Iterator<Item = (String, String)> {
    let named = settings.of_database(prefix);
    named.map(|(own, set)| (format!("{OF_ENGINE}{own}"), set.label.clone()))
}

fn pacing(settings: &Settings<'_>, rate: SettingId) -> TransactionPacing {
    let rate_per_s = settings.number(rate);
    if rate_per_s <= 0.0 {
        return TransactionPacing::Closed;
    }
    TransactionPacing::Open {
        rate_per_s,
        process: settings.word(SettingId::RateProcess).unwrap_or_default(),
        queue_max: QUEUE_MAX,
        overload: Overload::Queue,
    }
}
