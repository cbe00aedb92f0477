//! What binds the transactions of a study's point: which resource was at work for most of the time.
//!
//! Invariants: a study measures no rungs below its points, so that each window is set against what
//! its own devices and processors did in it: a resource at work for a share of the time while so
//! many transactions were done allows as many as it would in the whole time. Only what is done one
//! at a time, or held to a limit, is a share of the time; what is not counted bounds nothing.

use iostrata_run::host::{DeviceDelta, LimitedRate, ThrottleEvidence};
use iostrata_run::{BoundResource, Replicate, Resource, ResourceUse, TransactionBound};
use iostrata_stats::{Measured, Verdicts, combine};

/// How the bound was found, in addition to the ways of rungs.
const OWN_WINDOW: &str = "own_window";

/// One window: transactions per second, what one of them used, and what was seen of the machine.
#[derive(Clone, Copy)]
pub(super) struct WindowUsage<'a> {
    pub tps: f64,
    pub used: ResourceUse,
    pub replicate: &'a Replicate,
}

impl WindowUsage<'_> {
    fn throttle(&self) -> Option<&ThrottleEvidence> {
        self.replicate.evidence.as_ref()?.throttle.as_ref()
    }

    fn delta(&self) -> Option<DeviceDelta> {
        self.replicate.evidence.as_ref()?.device_delta
    }

    /// The share of the time, from 0 to 1, in which a resource was at work; the volume's limit
    /// takes the share of `limited`.
    fn share(&self, of: Resource, limited: Resource) -> Option<f64> {
        let pct = match of {
            _ if of == limited => self.throttle()?.io_limit_used_pct?,
            Resource::Cpu => self.replicate.evidence.as_ref()?.cpu?.busy_pct(),
            // The kernel combines flushes that wait at the same time: one is under way at a time.
            Resource::Syncs => {
                let delta = self.delta()?;
                delta.counters.flush_ms? as f64 / 10.0 / delta.seconds
            }
            _ => return None,
        };
        Some((pct / 100.0).clamp(0.0, 1.0)).filter(|share| *share > 0.0)
    }

    fn per_txn(&self, resource: Resource) -> Option<f64> {
        let done = self.tps * self.replicate.duration_s;
        let used = match resource {
            Resource::Syncs => {
                self.used.redo_syncs_at_most()? + self.used.binlog_syncs.unwrap_or(0.0)
            }
            Resource::LogWrites => self.used.redo_bytes?,
            Resource::PageWrites => self.used.page_writes?,
            Resource::PageReads => self.used.page_reads?,
            Resource::Cpu => self.used.cpu_us?,
        };
        (done > 0.0).then(|| used / done)
    }
}

/// What the limit of a volume was used for: for what most of the limited requests or bytes were.
fn limited(windows: &[WindowUsage<'_>]) -> Resource {
    let sum =
        |of: &dyn Fn(&WindowUsage<'_>) -> Option<f64>| windows.iter().map(of).sum::<Option<f64>>();
    // Pages of the doublewrite go together: they are few requests.
    let pages = sum(&|one| one.used.page_writes);
    let redo = sum(&|one| one.used.redo_bytes);
    let writes = sum(&|one| Some(one.delta()?.counters.writes as f64));
    let bytes = sum(&|one| Some(one.delta()?.written_bytes() as f64));
    let is_most = |part: Option<f64>, all: Option<f64>| {
        part.zip(all).is_some_and(|(part, all)| part > 0.5 * all)
    };
    match windows.iter().find_map(|one| one.throttle()?.io_limit_rate) {
        Some(LimitedRate::Reads | LimitedRate::ReadBytes) => Resource::PageReads,
        Some(LimitedRate::WriteBytes) if is_most(redo, bytes) => Resource::LogWrites,
        Some(LimitedRate::Writes) if pages.is_some() && !is_most(pages, writes) => {
            Resource::LogWrites
        }
        _ => Resource::PageWrites,
    }
}

/// What binds, over all windows; nothing where no resource is known to have been at work.
pub(super) fn bound(windows: &[WindowUsage<'_>]) -> Option<TransactionBound> {
    let alone = |value: f64| Measured::without_interval(value, 1, Verdicts::none());
    let over_all = |of: &dyn Fn(&WindowUsage<'_>) -> Option<f64>| {
        let each: Option<Vec<Measured>> = windows.iter().map(|one| of(one).map(alone)).collect();
        combine(&each?)
    };
    let limited = limited(windows);
    let share_of = |one: &WindowUsage<'_>, resource: Resource| one.share(resource, limited);
    let all: Vec<(Option<Measured>, Option<Measured>, BoundResource)> = Resource::ALL
        .into_iter()
        .map(|name| {
            let share = over_all(&|one| share_of(one, name));
            let allows = over_all(&|one| Some(one.tps / share_of(one, name)?));
            let resource = BoundResource {
                name,
                allows_per_s: allows.as_ref().map(|allows| allows.value),
                allows_per_s_ci95: allows.as_ref().and_then(|allows| allows.ci95),
                per_txn: over_all(&|one| one.per_txn(name)).map(|used| used.value),
                unit: name.unit().to_owned(),
                rungs: Vec::new(),
            };
            (share, allows, resource)
        })
        .collect();
    let known = all
        .iter()
        .filter_map(|(share, allows, of)| Some((share.as_ref()?, allows.as_ref()?, of.name)));
    let (share, allows, resource) = known.max_by(|a, b| a.0.value.total_cmp(&b.0.value))?;
    Some(TransactionBound {
        value: allows.value,
        value_ci95: allows.ci95,
        value_n: allows.n,
        unit: windows.first()?.replicate.point.metric.unit.clone(),
        resource,
        reached_pct: 100.0 * share.value,
        reached_pct_ci95: share.ci95.map(|ends| ends.map(|end| (100.0 * end).clamp(0.0, 100.0))),
        reached_pct_n: share.n,
        basis: OWN_WINDOW.to_owned(),
        resources: all.into_iter().map(|(_, _, resource)| resource).collect(),
    })
}
