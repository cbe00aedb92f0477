//! Settings as a workload.

use super::conflict::{Conflict, refuse};
use super::settings::Settings;
use crate::study::setting::{Choice, SettingId, SettingValue};
use crate::study::{IoLimits, Measuring};
use crate::{
    Access, Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, Mix, Pacing, Preparation,
    RateProcess, SyncWrites,
};

/// The workload. Its path is empty until the volume is there.
///
/// # Errors
/// When settings contradict each other.
pub(in crate::study) fn workload(
    settings: &Settings<'_>,
    limits: &IoLimits,
    measuring: &Measuring,
) -> Result<IoSpec, Conflict> {
    let count = |id| settings.count(id).and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
    let mut spec = IoSpec::new("");
    let (rw, read_pct) = (settings.rw(), settings.count(SettingId::Rwmixread).unwrap_or(50));
    spec.mix = rw.mix(read_pct.min(100) as u8);
    spec.access = match settings.value(SettingId::RandomDistribution) {
        Some(SettingValue::Access(access)) if rw.is_random() => *access,
        _ if rw.is_random() => Access::Uniform,
        _ => Access::Sequential,
    };
    spec.block_bytes = block_bytes(settings)?;
    spec.api = api(settings);
    spec.depth = count(SettingId::Iodepth);
    spec.jobs = count(SettingId::Workers);
    spec.processes = settings.is_on(SettingId::Process);
    spec.direct = settings.is_on(SettingId::Direct);
    spec.sync = promise(settings);
    spec.flush = flush(settings)?;
    spec.files = count(SettingId::Files);
    spec.size_bytes = settings.bytes(SettingId::Size).unwrap_or(spec.size_bytes);
    spec.preparation = preparation(settings);
    spec.pacing = pacing(settings, limits, spec.mix, spec.jobs)?;
    spec.seed = measuring.seed;
    spec.point_time = measuring.point_time;
    spec.precision = measuring.precision;
    Ok(spec)
}

fn block_bytes(settings: &Settings<'_>) -> Result<u32, Conflict> {
    let bytes = settings.bytes(SettingId::Bs).unwrap_or(4096);
    u32::try_from(bytes).or_else(|_| refuse(SettingId::Bs, "out of range", "use 512 to 1M"))
}

fn api(settings: &Settings<'_>) -> IoApi {
    match settings.value(SettingId::Ioengine) {
        Some(SettingValue::Choice(Choice::Engine(api))) => *api,
        _ => IoApi::Sync,
    }
}

fn promise(settings: &Settings<'_>) -> SyncWrites {
    match settings.value(SettingId::Sync) {
        Some(SettingValue::Choice(Choice::Sync(sync))) => *sync,
        _ => SyncWrites::None,
    }
}

fn preparation(settings: &Settings<'_>) -> Preparation {
    match settings.value(SettingId::Preparation) {
        Some(SettingValue::Choice(Choice::Preparation(preparation))) => *preparation,
        _ => Preparation::Written,
    }
}

fn flush(settings: &Settings<'_>) -> Result<Option<Flush>, Conflict> {
    let every = |id| settings.count(id).filter(|every| *every > 0);
    let (method, every) = match (every(SettingId::Fsync), every(SettingId::Fdatasync)) {
        (Some(_), Some(_)) => {
            let why = "fsync and fdatasync are both asked for";
            return refuse(SettingId::Fdatasync, why, "keep one of the two");
        }
        (Some(every), None) => (FlushMethod::Fsync, every),
        (None, Some(every)) => (FlushMethod::Fdatasync, every),
        (None, None) => return Ok(None),
    };
    let scope = match settings.value(SettingId::FsyncScope) {
        Some(SettingValue::Choice(Choice::Scope(scope))) => *scope,
        _ => FlushScope::File,
    };
    let count = match settings.value(SettingId::FsyncEvery) {
        Some(SettingValue::Choice(Choice::Count(count))) => *count,
        _ => FlushCount::Writes,
    };
    Ok(Some(Flush { method, every: every as u32, scope, count }))
}

fn pacing(
    settings: &Settings<'_>,
    limits: &IoLimits,
    mix: Mix,
    jobs: u32,
) -> Result<Pacing, Conflict> {
    let (rate, pct) = (settings.number(SettingId::RateIops), settings.number(SettingId::RatePct));
    if rate > 0.0 && pct > 0.0 {
        let why = "rate_iops and rate_pct are both asked for";
        return refuse(SettingId::RatePct, why, "keep one of the two");
    }
    let process = match settings.value(SettingId::RateProcess) {
        Some(SettingValue::Choice(Choice::Arrivals(process))) => *process,
        _ => RateProcess::Fixed,
    };
    if rate > 0.0 {
        return Ok(Pacing::Open { rate_iops: rate, process });
    }
    if pct <= 0.0 {
        return Ok(Pacing::Closed);
    }
    let Some(most) = limited_iops(limits, mix) else {
        let fix = "set iops_limit, or give rate_iops";
        return refuse(SettingId::RatePct, "there is no IOPS limit to take a percentage of", fix);
    };
    Ok(Pacing::Open { rate_iops: most * pct / 100.0 / f64::from(jobs), process })
}

/// Requests per second at which the first of the limits is reached.
fn limited_iops(limits: &IoLimits, mix: Mix) -> Option<f64> {
    let reads = match mix {
        Mix::Read => 1.0,
        Mix::Both { read_pct } => f64::from(read_pct) / 100.0,
        Mix::Write | Mix::FlushOnly(_) => 0.0,
    };
    let at = |limit: Option<u64>, share: f64| {
        limit.filter(|_| share > 0.0).map(|limit| limit as f64 / share)
    };
    match (at(limits.read_iops, reads), at(limits.write_iops, 1.0 - reads)) {
        (Some(read), Some(write)) => Some(read.min(write)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_reaches_the_limit_of_its_larger_share_first() {
        let limits =
            IoLimits { read_iops: Some(1500), write_iops: Some(1500), ..Default::default() };
        assert_eq!(limited_iops(&limits, Mix::Read), Some(1500.0));
        assert_eq!(limited_iops(&limits, Mix::Both { read_pct: 60 }), Some(2500.0));
        assert_eq!(limited_iops(&IoLimits::default(), Mix::Write), None);
    }
}
