//! What is known to hold requests back above the device.

use iostrata_run::host::{DeviceFacts, DirectIoBehaviour, IoLimit, LimitScope};
use iostrata_spec::{Layer, OpKind};

use crate::case::Case;
use crate::finding::{limit_words, served_by_process};

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
    if let Some(file_system) = served_by_process(case) {
        return Cause::UserSpace(file_system);
    }
    match queue_explains(case, point) {
        Some((device, requests)) => Cause::Queue { device, requests },
        None => Cause::Unknown,
    }
}

impl Cause<'_> {
    /// The layer that the cause belongs to. Where it is not known: writes that no known limit held
    /// back are the file system's, anything else a limit's.
    pub fn layer(&self, op: OpKind, held_back: bool) -> Layer {
        match self {
            Cause::Queue { .. } => Layer::Block,
            Cause::PageCache | Cause::UserSpace(_) => Layer::Filesystem,
            Cause::Unknown if op == OpKind::Write && !held_back => Layer::Filesystem,
            Cause::Limit(_) | Cause::Unknown => Layer::Limit,
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
