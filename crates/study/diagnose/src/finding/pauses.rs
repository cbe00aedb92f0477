//! Pauses that keep a period.

use iostrata_run::Finding;
use iostrata_spec::Layer;
use iostrata_units::seconds;

use super::FindingId;
use super::statement::{Effect, WithEvidence, loss};
use crate::case::Case;
use crate::stalls::periodic_pauses;

pub(super) fn periodic(case: &Case<'_, '_>) -> Option<Finding> {
    let found = periodic_pauses(case.log)?;
    let share = |lasts_s: f64| (100.0 * lasts_s / found.period_s).clamp(0.0, 100.0);
    let around = found.lasts_half_width_s;
    let effect = Effect {
        pct: share(found.lasts_s),
        ci95: Some([share(found.lasts_s - around), share(found.lasts_s + around)]),
        n: found.seen as u64,
    };
    let text = format!(
        "Every {} nothing is answered for {} ({} of {} moments at which that was due): every \
         request of that moment waits so long, whatever the mean says. Something below does other \
         work in between: the drive's own upkeep, a snapshot, another machine on the same storage.",
        seconds(found.period_s),
        seconds(found.lasts_s),
        found.seen,
        found.due.max(found.seen)
    );
    Some(
        loss(FindingId::PeriodicPauses, Layer::Device, effect, text)
            .with("period_s", found.period_s)
            .with("lasts_ms", found.lasts_s * 1e3)
            .with("seen", found.seen as u64)
            .with("due", found.due as u64),
    )
}
