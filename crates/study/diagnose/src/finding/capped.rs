//! A volume that takes so many requests or bytes per second and no more, whatever is done.

use iostrata_plan::{Layer, Point, rung};
use iostrata_stats::units::{bytes, count, microseconds};
use iostrata_stats::{PAIRS_MIN, paired};

use crate::cap::{CURVES, Cap, Unit, cap};
use crate::case::Case;
use crate::cause::{Cause, cause};
use crate::figure::application_latency_us;
use crate::observed::{EventIndex, Which};
use crate::statement::Statement;

/// Its name in the catalogue.
pub(crate) const VOLUME_CAP: &str = "volume_cap";
/// Writes that must end at the same rate.
const CONFIRM_WRITES: &str = rung::WRITE_16K_FILES_8;

/// The cap of a run, as far as it was confirmed.
pub(crate) fn confirmed(log: &EventIndex<'_>) -> Option<Cap> {
    cap(log, Which::Confirming(VOLUME_CAP))
}

/// Whether losses that only count requests are explained by a cap: a confirmed one, one that was
/// suspected and is yet to be confirmed, or that which a fall of the rates left.
pub(crate) fn explains_requests(log: &EventIndex<'_>) -> bool {
    !log.falls().is_empty()
        || match log.confirm_ids(VOLUME_CAP) {
            Some(_) => confirmed(log).is_some(),
            // A drive that its link binds looks as if both were capped, until the facts of the host
            // are checked.
            None => cap(log, Which::All).is_some_and(|cap| cap.bytes_per_s.is_none()),
        }
}

/// Whether requests wait above the device for a reason that has a name: a limit, a short queue.
fn is_known_otherwise(case: &Case<'_, '_>, cap: &Cap) -> bool {
    let point = format!("{}{}", CURVES[0], cap.depth_many);
    let is_of_link = cap.bytes_per_s.is_some() && is_own_drive(case);
    is_of_link || !cap.in_device && cause(case, &point) != Cause::Unknown
}

/// Whether a drive of this machine is below, which its link or its controller binds.
fn is_own_drive(case: &Case<'_, '_>) -> bool {
    let lowest = case.host.path.devices.last().and_then(|device| device.transport.as_deref());
    let is_local = lowest.is_some_and(|how| !["virtual", "iscsi"].contains(&how));
    is_local && case.host.machine.virtualisation.is_none()
}

/// One alone, some that meet the cap, many; both sizes; writes.
pub(crate) fn confirming(case: &Case<'_, '_>) -> Vec<Point> {
    let Some(cap) = cap(case.log, Which::All) else { return Vec::new() };
    if is_known_otherwise(case, &cap) {
        return Vec::new();
    }
    let depths = [1, cap.depth_min, cap.depth_many];
    let reads = CURVES.iter().flat_map(|curve| depths.map(|depth| format!("{curve}{depth}")));
    let ids: Vec<String> = reads.chain([CONFIRM_WRITES.to_owned()]).collect();
    case.points(&ids.iter().map(String::as_str).collect::<Vec<_>>())
}

pub(crate) fn conclude(case: &Case<'_, '_>, which: Which) -> Option<Statement> {
    let cap = confirmed(case.log).filter(|cap| !is_known_otherwise(case, cap))?;
    let latencies = |depth: u32| {
        let point = format!("{}{depth}", CURVES[0]);
        let all = case.log.replicates(&point, which);
        all.iter().filter_map(|(_, one)| application_latency_us(one)).collect::<Vec<f64>>()
    };
    let (alone, many) = (latencies(1), latencies(cap.depth_many));
    let pairs = alone.len().min(many.len());
    let waiting = paired(&many[..pairs], &alone[..pairs]).ok()?.loss_pct();
    if waiting.n < PAIRS_MIN as u64 {
        return None;
    }
    let layer = if cap.in_device { Layer::Device } else { Layer::Limit };
    let [low, high] = cap.per_s.ci95.unwrap_or([cap.per_s.value; 2]);
    let name = match cap.unit {
        Unit::Requests => "cap_iops",
        Unit::Bytes => "cap_bytes_per_s",
    };
    Some(
        Statement::sized(layer, &waiting, text(&cap))
            .with(name, cap.per_s.value)
            .with(&format!("{name}_low"), low)
            .with(&format!("{name}_high"), high)
            .with_some("also_cap_bytes_per_s", cap.bytes_per_s.as_ref().map(|bytes| bytes.value))
            .with_some("writes_cap_iops", cap.writes_per_s)
            .with("depth_reached", cap.depth_min)
            .with("alone_us", cap.alone_us)
            .with("waiting_us", cap.latency_us - cap.alone_us),
    )
}

fn text(cap: &Cap) -> String {
    let per_s = |value: f64| match cap.unit {
        Unit::Requests => count(value),
        Unit::Bytes => bytes(value),
    };
    let what = match cap.unit {
        Unit::Requests => " requests/s",
        Unit::Bytes => "/s",
    };
    let between = cap
        .per_s
        .ci95
        .map_or_else(String::new, |[low, high]| format!(" ({} to {})", per_s(low), per_s(high)));
    let sizes = match cap.bytes_per_s {
        Some(_) => "of 4 KiB",
        None => "of 4 or 16 KiB",
    };
    let directions = if cap.writes_too { ", read or written" } else { ", read" };
    let apart = cap.bytes_per_s.as_ref();
    let apart = apart.map(|most| format!(" Those of 16 KiB end at {}/s.", bytes(most.value)));
    let writes = cap.writes_per_s.map(|most| format!(" Writes end at {}/s.", count(most)));
    let whose = if cap.in_device { "The volume is capped" } else { "Capped above the device" };
    format!(
        "{whose} at {}{what}{between}, {sizes}{directions}.{}{} Beyond {} in flight only latency \
         grows: {} with {}, {} alone.",
        per_s(cap.per_s.value),
        apart.unwrap_or_default(),
        writes.unwrap_or_default(),
        cap.depth_min,
        microseconds(cap.latency_us),
        cap.depth_many,
        microseconds(cap.alone_us)
    )
}
