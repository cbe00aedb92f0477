//! What is known to hold requests back above the device.

use iostrata_plan::{Layer, OpKind, rung};
use iostrata_run::Replicate;
use iostrata_run::host::{
    DeviceFacts, DirectIoBehaviour, IoControl, IoControlKind, IoLimit, LimitScope,
};

use crate::below::{block_layers, served_by_process};
use crate::case::Case;
use crate::figure::{application_latency_us, device_latency_us, median, weighted_mean};
use crate::finding::known_limit::limit_words;

/// What holds requests back above the device.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cause<'c> {
    /// The page cache answers: the device's requests are other ones.
    PageCache,
    /// A control group's limit.
    Limit(&'c IoLimit),
    /// A process in user space serves the file system.
    UserSpace(&'c str),
    /// The device's queue holds fewer requests than are in flight.
    Queue { device: &'c str, requests: u64 },
    /// Groups share the device out by weight, latency or cost.
    Control(&'c IoControl),
    /// Layers of blocks that do more than pass requests on.
    Layers(Vec<String>),
    /// Idle processors: only one request in flight waits.
    Idle { exit_us: Option<u64> },
    /// None of these.
    Unknown,
}

/// What is known to hold the requests of a point back.
pub(crate) fn cause<'c>(case: &Case<'c, '_>, point: &str) -> Cause<'c> {
    let path = &case.host.path;
    if path.direct_io.behaviour == DirectIoBehaviour::Ignored {
        return Cause::PageCache;
    }
    if let Some(limit) = path.limits.iter().find(|limit| limit.scope == LimitScope::Process) {
        return Cause::Limit(limit);
    }
    if let Some(file_system) = served_by_process(case.host) {
        return Cause::UserSpace(file_system);
    }
    if let Some((device, requests)) = queue_explains(case, point) {
        return Cause::Queue { device, requests };
    }
    if let Some(control) = control(case) {
        return Cause::Control(control);
    }
    if is_idle(case, point) {
        return Cause::Idle { exit_us: case.host.machine.idle_exit_us_max };
    }
    match block_layers(case.host) {
        none if none.is_empty() => Cause::Unknown,
        layers => Cause::Layers(layers),
    }
}

/// What shares the device out; weights only where something goes by them.
fn control<'c>(case: &Case<'c, '_>) -> Option<&'c IoControl> {
    let path = &case.host.path;
    let has_cost = path.io_controls.iter().any(|one| one.kind == IoControlKind::Cost);
    let has_bfq = path.devices.iter().any(|device| device.scheduler.as_deref() == Some("bfq"));
    path.io_controls.iter().find(|one| match one.kind {
        IoControlKind::Cost | IoControlKind::Latency => true,
        IoControlKind::Weight => has_cost || has_bfq,
        IoControlKind::BfqWeight => has_bfq,
    })
}

/// One request at a time, and as many as keep processors awake.
const ALONE: &str = rung::READ_4K_DEPTH_1;
const AWAKE: &str = rung::READ_4K_DEPTH_16;
/// Share of the wait of one request that may be left with many.
const LEFT_MAX: f64 = 0.5;
/// Share of the processors that must have been idle, in percent.
const IDLE_PCT_MIN: f64 = 50.0;

/// Whether requests wait above the device only where one is in flight and processors are idle
/// meanwhile. What limits requests would hold many back as well.
fn is_idle(case: &Case<'_, '_>, point: &str) -> bool {
    let is_alone = case.log.seen(point).is_some_and(|seen| match seen.point.streams.as_slice() {
        [stream] => stream.spec.jobs * stream.spec.depth == 1,
        _ => false,
    });
    let above_us = |id: &str| {
        let all = || case.log.seen(id).into_iter().flat_map(|seen| seen.replicates.iter().copied());
        let application = weighted_mean(all(), application_latency_us)?;
        Some(application - weighted_mean(all(), device_latency_us)?)
    };
    let idle_pct = || {
        let seen = case.log.seen(ALONE)?;
        let idle =
            |one: &&Replicate| one.evidence.as_ref()?.cpu.map(|cpu| cpu.idle_pct + cpu.iowait_pct);
        median(seen.replicates.iter().filter_map(idle).collect())
    };
    let waits = || Some(above_us(AWAKE)? <= LEFT_MAX * above_us(ALONE)?);
    is_alone && waits() == Some(true) && idle_pct().is_some_and(|idle| idle >= IDLE_PCT_MIN)
}

impl Cause<'_> {
    /// The layer that the cause belongs to. Where it is not known: writes that no known limit held
    /// back are the file system's, anything else a limit's.
    pub fn layer(&self, op: OpKind, held_back: bool) -> Layer {
        match self {
            Cause::Queue { .. } | Cause::Layers(_) => Layer::Block,
            Cause::PageCache | Cause::UserSpace(_) => Layer::Filesystem,
            Cause::Idle { .. } => Layer::Host,
            Cause::Unknown if op == OpKind::Write && !held_back => Layer::Filesystem,
            Cause::Limit(_) | Cause::Control(_) | Cause::Unknown => Layer::Limit,
        }
    }

    /// A word for the evidence.
    pub fn name(&self) -> &'static str {
        match self {
            Cause::PageCache => "page_cache",
            Cause::Limit(_) => "limit",
            Cause::UserSpace(_) => "user_space",
            Cause::Queue { .. } => "queue",
            Cause::Control(_) => "control",
            Cause::Layers(_) => "layers",
            Cause::Idle { .. } => "idle",
            Cause::Unknown => "unknown",
        }
    }

    pub fn sentence(&self) -> String {
        match self {
            Cause::PageCache => "The page cache stands between.".to_owned(),
            Cause::Limit(limit) => {
                format!("The control group {} allows {}.", limit.cgroup, limit_words(limit))
            }
            Cause::UserSpace(file_system) => format!(
                "A process in user space serves this file system ({file_system}): every request \
                 passes through it."
            ),
            Cause::Queue { device, requests } => format!(
                "The queue of {device} holds {requests} requests (nr_requests): the others wait \
                 for a free place."
            ),
            Cause::Control(control) => {
                let device = control.device.as_deref().unwrap_or("its devices");
                let how = match control.kind {
                    IoControlKind::Cost => "io.cost.qos",
                    IoControlKind::Latency => "io.latency",
                    IoControlKind::Weight => "weight",
                    IoControlKind::BfqWeight => "bfq weight",
                };
                format!(
                    "The control group {} shares {device} out by {how} ({}): others go first.",
                    control.cgroup, control.value
                )
            }
            Cause::Layers(layers) => format!(
                "Requests pass {} on their way: encryption, parity and copies take their time \
                 there.",
                layers.join(", ")
            ),
            Cause::Idle { exit_us } => {
                let exit =
                    exit_us.map_or_else(String::new, |us| format!(", by its own account {us} us"));
                format!(
                    "With 16 in flight the wait is gone: an idle processor takes that long to \
                     wake{exit}. Keep the processors awake (tuned-adm profile latency-performance, \
                     cpupower idle-set -D 10) where single requests matter."
                )
            }
            Cause::Unknown => "The cause is not known: no limit, queue or user-space process was \
                               found that explains it. To find it, look at the limits that the \
                               container's host or the hypervisor sets, and at where the kernel \
                               waits (perf, as root)."
                .to_owned(),
        }
    }
}

/// The device that has the queue.
pub(crate) fn queue_device<'c>(case: &Case<'c, '_>) -> Option<&'c DeviceFacts> {
    case.host.path.devices.first()
}

/// Requests that the queue holds, on all hardware queues together.
pub(crate) fn queue_requests(device: &DeviceFacts) -> Option<u64> {
    device.nr_requests?.checked_mul(u64::from(device.queues.unwrap_or(1)))
}

/// The device and its queue's size, where a point keeps more requests in flight than that.
pub(crate) fn queue_explains<'c>(case: &Case<'c, '_>, point: &str) -> Option<(&'c str, u64)> {
    let device = queue_device(case)?;
    let size = queue_requests(device)?;
    let [stream] = case.log.seen(point)?.point.streams.as_slice() else { return None };
    let in_flight = u64::from(stream.spec.jobs) * u64::from(stream.spec.depth);
    (in_flight > size).then_some((device.name.as_str(), size))
}
