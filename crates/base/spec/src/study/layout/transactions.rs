//! Settings as a load of transactions.

use std::time::Duration;

use super::conflict::{Conflict, refuse};
use super::settings::Settings;
use crate::study::setting::{SettingId, SettingValue};
use crate::study::{Measuring, VolumeKind};
use crate::{Access, Overload, TransactionPacing, TransactionSpec};

/// Arrivals that may wait for a session: more than any window brings.
const QUEUE_MAX: u32 = 10_000_000;

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
    let text = |id| settings.assigned(id).map(|set| set.label.clone());
    let mut spec = TransactionSpec {
        threads: settings.count(SettingId::Workers).unwrap_or(1) as u32,
        pacing: pacing(settings),
        // What comes before a window is a matter of how far the redo has come, not of time.
        warm_up: Some(Duration::ZERO),
        runtime: Some(measuring.point_time),
        point_time: measuring.point_time,
        precision: measuring.precision,
        seed: measuring.seed,
        ..TransactionSpec::new(settings.workload(), text(SettingId::Target).unwrap_or_default())
    };
    for id in [SettingId::Rows, SettingId::RowUpdates, SettingId::RandomDistribution] {
        let own = settings.assigned(id).map(|set| (set.setting.name.to_owned(), set.label.clone()));
        spec.settings.extend(own);
    }
    spec.settings
        .extend(settings.of_database().map(|(name, set)| (name.to_owned(), set.label.clone())));
    Ok(Some(spec))
}

fn pacing(settings: &Settings<'_>) -> TransactionPacing {
    let rate_per_s = settings.number(SettingId::RateTps);
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
