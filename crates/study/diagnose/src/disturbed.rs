//! What a window still shows after others were at work in it.
//!
//! Invariant: the verdicts that rule a window out are listed here and nowhere else.

use iostrata_run::Replicate;
use iostrata_stats::Verdict;

/// Verdicts that something outside of the program was at work.
const FROM_OUTSIDE: [Verdict; 2] = [Verdict::ForeignIo, Verdict::Steal];
/// Verdicts after which a window shows processors, not storage.
const NO_WITNESS: [Verdict; 3] = [Verdict::CpuLimited, Verdict::ForeignIo, Verdict::Steal];
/// Verdicts after which a window shows something else than the device.
const NOT_THE_DEVICE: [Verdict; 5] = [
    Verdict::CpuLimited,
    Verdict::ForeignIo,
    Verdict::Steal,
    Verdict::Throttled,
    Verdict::ToolLimited,
];
/// Verdicts after which requests did other work than requested.
pub(crate) const OTHER_WORK: [Verdict; 3] =
    [Verdict::Cached, Verdict::DirectIgnored, Verdict::Sparse];
/// Replicates that must have been hit.
const REPLICATES_MIN: usize = 3;
/// Share of all replicates that must have been hit.
const SHARE_MIN: f64 = 0.1;

/// Whether a replicate or its main stream carries a verdict.
pub(crate) fn carries(replicate: &Replicate, verdict: Verdict) -> bool {
    let stream = replicate.streams.get(replicate.point.metric.stream);
    replicate.verdicts.has(verdict) || stream.is_some_and(|stream| stream.verdicts.has(verdict))
}

fn carries_none(replicate: &Replicate, verdicts: &[Verdict]) -> bool {
    verdicts.iter().all(|&verdict| !carries(replicate, verdict))
}

/// Whether its requests did the requested work.
pub(crate) fn did_its_work(replicate: &Replicate) -> bool {
    carries_none(replicate, &OTHER_WORK)
}

/// Whether neither another process nor the hypervisor interfered.
pub(crate) fn is_undisturbed(replicate: &Replicate) -> bool {
    carries_none(replicate, &FROM_OUTSIDE)
}

/// Whether a window shows storage: neither processors nor others decided it. Limits may have.
pub(crate) fn shows_storage(replicate: &Replicate) -> bool {
    carries_none(replicate, &NO_WITNESS)
}

/// Whether a window shows the device alone.
pub(crate) fn shows_the_device(replicate: &Replicate) -> bool {
    carries_none(replicate, &NOT_THE_DEVICE)
}

/// Whether enough replicates were hit, of more than one point.
pub(crate) fn is_widespread(hit: &[&Replicate], measured: usize) -> bool {
    let several = hit.iter().any(|one| one.point.id != hit[0].point.id);
    several && hit.len() >= REPLICATES_MIN && hit.len() as f64 >= SHARE_MIN * measured as f64
}
