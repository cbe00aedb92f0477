//! What a user may change about a model, and what not.
//!
//! Invariant: an option is applied or refused, never ignored.

use std::time::Duration;

use iostrata_plan::disk::{DiskModel, DiskSpec};

use super::ModelError;
use crate::drive::cloud::CloudParameters;
use crate::drive::flash::{FlashParameters, WriteCache};
use crate::drive::hdd::HddParameters;
use crate::drive::raid::{ProtectedCacheParameters, RaidParameters};
use crate::drive::table::MeasuredDrive;

pub(super) fn hdd(spec: &DiskSpec, sheet: HddParameters) -> Result<HddParameters, ModelError> {
    one_disk(spec)?;
    Ok(HddParameters {
        queue_depth: spec.queue_depth.unwrap_or(sheet.queue_depth),
        write_cache: spec.write_cache.unwrap_or(sheet.write_cache),
        flush_us_min: spec.flush.map_or(sheet.flush_us_min, whole_us),
        ..sheet
    })
}

/// An array and the protected cache in front of it; none with `cache=off`.
pub(super) fn raid(
    spec: &DiskSpec,
    sheet: RaidParameters,
    cache: ProtectedCacheParameters,
) -> (RaidParameters, Option<ProtectedCacheParameters>) {
    let flush_us_min = spec.flush.map_or(cache.flush_us_min, whole_us);
    let array = RaidParameters {
        spindles: spec.spindles.unwrap_or(sheet.spindles),
        queue_depth: spec.queue_depth.unwrap_or(sheet.queue_depth),
        disk: HddParameters { flush_us_min, ..sheet.disk },
        ..sheet
    };
    let cache = ProtectedCacheParameters { flush_us_min, ..cache };
    (array, spec.write_cache.unwrap_or(true).then_some(cache))
}

pub(super) fn flash(
    spec: &DiskSpec,
    sheet: FlashParameters,
) -> Result<FlashParameters, ModelError> {
    one_disk(spec)?;
    let cache = match (sheet.cache, spec.write_cache) {
        (WriteCache::Protected, Some(_)) => {
            let why = "its write cache is protected against power loss and is not for choice";
            return Err(refused(spec, "cache", why));
        }
        (cache, None | Some(true)) => cache,
        (_, Some(false)) => WriteCache::Off,
    };
    // Without a cache there is nothing to drain, and what a flush costs is in every write.
    let own_flush_ns = if cache == WriteCache::Off { 0 } else { sheet.flush_ns };
    Ok(FlashParameters {
        queue_depth: spec.queue_depth.unwrap_or(sheet.queue_depth),
        cache,
        flush_ns: spec.flush.map_or(own_flush_ns, whole_ns),
        ..sheet
    })
}

pub(super) fn cloud(
    spec: &DiskSpec,
    sheet: CloudParameters,
) -> Result<CloudParameters, ModelError> {
    one_disk(spec)?;
    if spec.write_cache.is_some() {
        let why = "what it reports as done is kept on several machines";
        return Err(refused(spec, "cache", why));
    }
    Ok(CloudParameters {
        queue_depth: spec.queue_depth.unwrap_or(sheet.queue_depth),
        flush_ns: spec.flush.map_or(sheet.flush_ns, whole_ns),
        ..sheet
    })
}

pub(super) fn table(spec: &DiskSpec, table: MeasuredDrive) -> Result<MeasuredDrive, ModelError> {
    one_disk(spec)?;
    if spec.write_cache.is_some() {
        let why = "it was measured with its cache as it was";
        return Err(refused(spec, "cache", why));
    }
    let table = match spec.queue_depth {
        Some(queue_depth) => table.with_queue_depth(queue_depth),
        None => table,
    };
    Ok(table.with_flush_ns_min(spec.flush.map_or(0, whole_ns)))
}

/// Refuses credits where the model has none.
pub(super) fn check_credits(spec: &DiskSpec) -> Result<(), ModelError> {
    if spec.credits.is_some() && spec.model != DiskModel::CloudBurst {
        return Err(refused(spec, "credits", "only cloud-burst lives on credits"));
    }
    Ok(())
}

fn one_disk(spec: &DiskSpec) -> Result<(), ModelError> {
    if spec.spindles.is_some() {
        return Err(refused(spec, "spindles", "it is one disk, only raid10-hdd has several"));
    }
    Ok(())
}

fn refused(spec: &DiskSpec, option: &'static str, why: &'static str) -> ModelError {
    ModelError::Option { model: spec.model.name(), option, why }
}

fn whole_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn whole_us(time: Duration) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1_000)).unwrap_or(u32::MAX)
}
