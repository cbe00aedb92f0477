//! A quota on processor time that ran out.
//!
//! Invariant: counted by the group's own `cpu.stat` before and after each window. Replicates that a
//! quota held back are no evidence of how busy the machine's processors were.

use iostrata_plan::Layer;
use iostrata_run::Replicate;
use iostrata_run::host::ThrottleEvidence;

use crate::case::Case;
use crate::disturbed::is_widespread;
use crate::statement::Statement;

/// Its name in the catalogue.
pub(crate) const CPU_QUOTA: &str = "cpu_quota";
/// A quota that ran out in more than this share of its periods set the pace, in percent.
const PERIODS_PCT_MAX: f64 = 5.0;

fn periods(replicate: &Replicate) -> Option<(u64, u64)> {
    let throttle: &ThrottleEvidence = replicate.evidence.as_ref()?.throttle.as_ref()?;
    Some((throttle.cpu_periods?, throttle.cpu_periods_throttled?))
}

/// Whether the quota, and not the processors themselves, held a replicate back.
pub(super) fn is_held_back(replicate: &Replicate) -> bool {
    periods(replicate)
        .is_some_and(|(all, out)| all > 0 && out as f64 / all as f64 * 100.0 > PERIODS_PCT_MAX)
}

pub(crate) fn cpu_quota(case: &Case<'_, '_>) -> Option<Statement> {
    let all = case.log.all_replicates();
    let hit: Vec<&Replicate> = all.iter().copied().filter(|one| is_held_back(one)).collect();
    if !is_widespread(&hit, all.len()) {
        return None;
    }
    let (counted, out) = all
        .iter()
        .filter_map(|one| periods(one))
        .fold((0, 0), |(all, out), one| (all + one.0, out + one.1));
    let cgroup = &case.host.machine.cgroup;
    let group = cgroup.cpu_quota_group.as_deref().unwrap_or("of this process");
    let allows = cgroup
        .cpu_quota_cpus
        .map(|cpus| format!(" ({} of a processor's time)", share(cpus)))
        .unwrap_or_default();
    let text = format!(
        "The CPU quota of the control group {group}{allows} ran out in {out} of {counted} periods: \
         in {} of {} measurements the quota, not the storage, set the pace.",
        hit.len(),
        all.len()
    );
    Some(
        Statement::new(Layer::Limit, hit.len() as u64, text)
            .with("limited", hit.len() as u64)
            .with("measured", all.len() as u64)
            .with("periods", counted)
            .with("periods_throttled", out)
            .with_some("quota_cpus", cgroup.cpu_quota_cpus)
            .with_some("cgroup", cgroup.cpu_quota_group.clone()),
    )
}

/// A number of processors as a share or a multiple of one.
fn share(cpus: f64) -> String {
    if cpus < 1.0 { format!("{:.0} %", cpus * 100.0) } else { format!("{cpus:.1} times") }
}
