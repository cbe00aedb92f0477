//! Settings as a workload.

use super::conflict::{Conflict, refuse};
use super::settings::Settings;
use crate::study::setting::{SettingId, SettingValue};
use crate::study::{IoLimits, Measuring};
use crate::{Access, Flush, FlushMethod, IoApi, IoSpec, Mix, Pacing};

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
    if let Some(bytes) = settings.bytes(SettingId::Bs) {
        spec.block_bytes = u32::try_from(bytes)
            .or_else(|_| refuse(SettingId::Bs, "out of range", crate::block_range()))?;
    }
    spec.api = settings.word(SettingId::Ioengine).unwrap_or(IoApi::Sync);
    spec.depth = count(SettingId::Iodepth);
    spec.jobs = count(SettingId::Workers);
    spec.processes = settings.is_on(SettingId::Process);
    spec.direct = settings.is_on(SettingId::Direct);
    spec.sync = settings.word(SettingId::Sync).unwrap_or_default();
    spec.flush = flush(settings)?;
    spec.files = count(SettingId::Files);
    spec.size_bytes = settings.bytes(SettingId::Size).unwrap_or(spec.size_bytes);
    spec.preparation = settings.word(SettingId::Preparation).unwrap_or_default();
    spec.pacing = pacing(settings, limits, spec.mix, spec.jobs)?;
    spec.seed = measuring.seed;
    spec.point_time = measuring.point_time;
    spec.precision = measuring.precision;
    Ok(spec)
}

fn flush(settings: &Settings<'_>) -> Result<Option<Flush>, Conflict> {
    let every = |id| settings.count(id).filter(|every| *every > 0);
    let (method, every) = match (every(SettingId::Fsync), every(SettingId::Fdatasync)) {
        (Some(_), Some(_)) => {
            let why = "fsync and fdatasync are both given";
            return refuse(SettingId::Fdatasync, why, "keep one of the two");
        }
        (Some(every), None) => (FlushMethod::Fsync, every),
        (None, Some(every)) => (FlushMethod::Fdatasync, every),
        (None, None) => return Ok(None),
    };
    let scope = settings.word(SettingId::FsyncScope).unwrap_or_default();
    let count = settings.word(SettingId::FsyncEvery).unwrap_or_default();
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
        let why = "rate_iops and rate_pct are both given";
        return refuse(SettingId::RatePct, why, "keep one of the two");
    }
    let process = settings.word(SettingId::RateProcess).unwrap_or_default();
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
        Mix::Write | Mix::FlushOnly(_) | Mix::Trim | Mix::TrimWrite => 0.0,
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
