//! Findings of a study about the length of request queues, and about emulated disks.
//!
//! Invariant: an effect is stated for the disk that it was measured on, and only where the whole
//! interval lies beyond what is material; that there is none, only where a large one is ruled out
//! and the emulation kept its pace.

use std::collections::{BTreeMap, BTreeSet};

use iostrata_plan::Layer;
use iostrata_plan::study::Cell;
use iostrata_run::{DeviceChange, DeviceMetric, QueueChange, StudyPoint, Unavailable};
use iostrata_stats::{
    AXIS_MATERIAL_PCT, Conclusion, KNOWN_PCT_MAX, Measured, PAIRS_MIN, Verdicts, allowed_pct,
};
use serde_json::json;

use super::axis::place;
use super::points::without;
use super::queue::NR_REQUESTS;
use crate::case::{NamedStatement, StudyCase};
use crate::statement::Statement;

/// Names in the catalogue.
pub(crate) const HELPS: &str = "longer_queue_helps";
pub(crate) const HURTS: &str = "longer_queue_hurts";
pub(crate) const NO_DIFFERENCE: &str = "longer_queue_no_difference";
pub(crate) const REFUSED: &str = "queue_length_refused";
pub(crate) const LATE: &str = "emulation_late";
const DISK: &str = "disk";
/// Where more replies than this share of a point's are late, the emulation is what was measured.
const LATE_PCT_MAX: f64 = 10.0;

/// The points at which the emulation was late.
fn late(points: &[StudyPoint]) -> BTreeSet<&str> {
    let is_late = |point: &&StudyPoint| late_pct(point) > LATE_PCT_MAX;
    points.iter().filter(is_late).map(|point| point.id.as_str()).collect()
}

/// What the length of the queue does on each disk.
pub(crate) fn lengths(case: &StudyCase<'_>) -> Vec<NamedStatement> {
    let (changes, late) = (case.changes, late(case.points));
    let mut disks: Vec<Option<&str>> = Vec::new();
    for change in changes {
        if !disks.contains(&disk(change)) {
            disks.push(disk(change));
        }
    }
    let mut said = Vec::new();
    for name in disks {
        let on_it: Vec<&QueueChange> = changes.iter().filter(|one| disk(one) == name).collect();
        let (helps, hurts) = (moved(&on_it, true), moved(&on_it, false));
        said.extend(effect(&helps, &on_it, name).map(|one| (HELPS, one)));
        said.extend(effect(&hurts, &on_it, name).map(|one| (HURTS, one)));
        if helps.is_empty() && hurts.is_empty() {
            said.extend(indifferent(&on_it, name, &late).map(|one| (NO_DIFFERENCE, one)));
        }
    }
    said
}

fn disk(change: &QueueChange) -> Option<&str> {
    change.levels.iter().find(|at| at.factor == DISK).map(|at| at.level.as_str())
}

fn on(name: Option<&str>) -> String {
    match name {
        None | Some("none") => "the storage here".to_owned(),
        Some(name) => name.to_owned(),
    }
}

fn material(change: &QueueChange, up: bool) -> bool {
    let share = AXIS_MATERIAL_PCT / 100.0;
    match (change.conclusion, change.ratio_ci95) {
        (Conclusion::Higher, Some([low, _])) => up && low > 1.0 + share,
        (Conclusion::Lower, Some([_, high])) => !up && high < 1.0 - share,
        _ => false,
    }
}

/// Those that a longer queue moves this way, the largest first.
fn moved<'a>(changes: &[&'a QueueChange], up: bool) -> Vec<&'a QueueChange> {
    let mut moved: Vec<&QueueChange> =
        changes.iter().copied().filter(|change| material(change, up)).collect();
    moved.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    moved
}

fn effect(moved: &[&QueueChange], all: &[&QueueChange], name: Option<&str>) -> Option<Statement> {
    let most = moved.first()?;
    let [low, high] = most.ratio_ci95?;
    let others = without(&most.levels, DISK);
    let what = if most.ratio > 1.0 { "helps" } else { "takes throughput" };
    let [short, long] = most.took;
    let text = format!(
        "a longer request queue {what} on {} at {} of {} workloads; most at {}: {:.2} times the \
         requests per second with {long} as with {short} (95 % {low:.2} to {high:.2}){}",
        on(name),
        moved.len(),
        all.len(),
        place(&others),
        most.ratio,
        device_words(&most.device)
    );
    let (ci95, n, verdicts) = (most.ratio_ci95, most.ratio_n, Verdicts::none());
    let ratio = Measured { value: most.ratio, ci95, n, verdicts };
    let effect = ratio.mapped(|ratio| 100.0 * (ratio - 1.0));
    Some(Statement::sized(Layer::Block, &effect, text).with_all(evidence(moved)))
}

/// What became of the device's figures; a size that did not measurably change is reported as
/// unchanged.
fn device_words(device: &[DeviceChange]) -> String {
    let of = |metric: DeviceMetric| device.iter().find(|one| one.metric == metric);
    let mut words = Vec::new();
    if let Some(size) = of(DeviceMetric::RequestKib) {
        words.push(match size.conclusion {
            Conclusion::Higher | Conclusion::Lower => {
                let more = if size.to > size.from { "grow" } else { "shrink" };
                format!("its requests {more} from {:.1} to {:.1} KiB", size.from, size.to)
            }
            _ => format!("its requests stay at {:.1} KiB", size.to),
        });
    }
    if let Some(queue) = of(DeviceMetric::QueueSize) {
        words.push(format!("{:.0} instead of {:.0} are in flight", queue.to, queue.from));
    }
    if let Some(time) = of(DeviceMetric::AwaitMs) {
        let ms = |ms: f64| iostrata_stats::units::microseconds(1000.0 * ms);
        words.push(format!("each takes {} instead of {}", ms(time.to), ms(time.from)));
    }
    if words.is_empty() { String::new() } else { format!("; {}", words.join(", ")) }
}

/// That the length makes no difference on a disk, at those workloads where that is known.
fn indifferent(
    all: &[&QueueChange],
    name: Option<&str>,
    late: &BTreeSet<&str>,
) -> Option<Statement> {
    let is_known = |change: &&&QueueChange| {
        change.conclusion != Conclusion::TooFewPairs
            && change.ratio_n >= PAIRS_MIN as u64
            && change.ratio_ci95.is_some_and(|ci95| allowed_pct(ci95) <= KNOWN_PCT_MAX)
            && !change.points.iter().any(|id| late.contains(&**id))
    };
    let known: Vec<&QueueChange> = all.iter().filter(is_known).copied().collect();
    let allowed =
        known.iter().filter_map(|change| change.ratio_ci95.map(allowed_pct)).fold(0.0, f64::max);
    let short = known.iter().map(|change| change.took[0]).min()?;
    let long = known.iter().map(|change| change.took[1]).max()?;
    let rest = if known.len() == all.len() { "" } else { "; too little is known of the others" };
    let text = format!(
        "the length of the request queue, from {short} to {long} requests, makes no difference \
         that matters on {} at {} of {} workloads (up to {allowed:.1} % is not ruled out){rest}",
        on(name),
        known.len(),
        all.len()
    );
    let n = known.iter().map(|change| change.ratio_n).sum();
    Some(Statement::new(Layer::Block, n, text).with_all(evidence(&known)))
}

fn evidence(changes: &[&QueueChange]) -> BTreeMap<String, serde_json::Value> {
    let mut all = BTreeMap::new();
    for change in changes {
        let [short, long] = &change.points;
        all.insert(format!("{long}_over_{short}"), json!(change.ratio));
        for one in &change.device {
            let name = json!(one.metric).as_str().unwrap_or_default().to_owned();
            all.insert(format!("{long}_{name}"), json!([one.from, one.to]));
        }
    }
    all
}

/// Lengths that the kernel did not take, or took otherwise.
pub(crate) fn refused(case: &StudyCase<'_>) -> Vec<NamedStatement> {
    let points = case.points;
    let mut said: BTreeSet<(u64, String)> = BTreeSet::new();
    for taken in points.iter().flat_map(|point| point.queue.iter().map(move |one| (point, one))) {
        let (point, taken) = taken;
        if taken.attribute == NR_REQUESTS && taken.asked != taken.took {
            let scheduler = point.queue.iter().find(|one| one.attribute == "scheduler");
            let with = scheduler.map_or_else(String::new, |one| format!(" with {}", one.took));
            let asked = taken.asked.parse().unwrap_or(0);
            said.insert((asked, format!("of {asked}{with} the kernel took {}", taken.took)));
        }
    }
    for cell in case.plan.cells.iter().filter(|cell| was_refused(cell, case.unavailable)) {
        let set = |name: &str| {
            cell.conditions.queue.iter().find(|one| one.attribute == name).map(|one| &*one.value)
        };
        let with = set("scheduler").map_or_else(String::new, |name| format!(" with {name}"));
        let asked = set(NR_REQUESTS).unwrap_or_default();
        let number = asked.parse().unwrap_or(0);
        said.insert((number, format!("the kernel refused {asked}{with}")));
    }
    let longest = points
        .iter()
        .flat_map(|point| &point.queue)
        .filter(|one| one.attribute == NR_REQUESTS)
        .filter_map(|one| one.took.parse::<u64>().ok())
        .max();
    let words: Vec<String> = said.iter().map(|(_, words)| words.clone()).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "not every length of the request queue is available here: {}{}",
        words.join("; "),
        longest.map_or_else(String::new, |most| format!("; the longest measured is {most}"))
    );
    let each = said.iter().map(|(asked, words)| (format!("asked_{asked}"), json!(words)));
    vec![(REFUSED, Statement::new(Layer::Block, said.len() as u64, text).with_all(each))]
}

/// Whether a cell was left out because of the length of its queue.
fn was_refused(cell: &Cell, unavailable: &[Unavailable]) -> bool {
    let asks = cell.conditions.queue.iter().any(|one| one.attribute == NR_REQUESTS);
    asks && unavailable.iter().any(|one| one.what == cell.title && one.why.contains(NR_REQUESTS))
}

fn late_pct(point: &StudyPoint) -> f64 {
    point.emulated.as_ref().and_then(|disk| disk.late_pct()).unwrap_or(0.0)
}

/// Points at which this machine could not keep the pace of the disk.
pub(crate) fn emulation_late(case: &StudyCase<'_>) -> Vec<NamedStatement> {
    let (points, late) = (case.points, late(case.points));
    let worst = points.iter().max_by(|a, b| late_pct(a).total_cmp(&late_pct(b)));
    let Some(worst) = worst.filter(|_| !late.is_empty()) else { return Vec::new() };
    let text = format!(
        "at {} of {} points this machine did not keep the pace of the emulated disk: more than \
         {LATE_PCT_MAX:.0} % of its replies were over 100 us late, {:.0} % at {}; there the \
         emulation was measured, not the disk",
        late.len(),
        points.iter().filter(|point| point.emulated.is_some()).count(),
        late_pct(worst),
        worst.title
    );
    let each = points
        .iter()
        .filter(|point| late.contains(point.id.as_str()))
        .map(|point| (format!("{}_late_pct", point.id), json!(late_pct(point))));
    vec![(LATE, Statement::new(Layer::Device, late.len() as u64, text).with_all(each))]
}
