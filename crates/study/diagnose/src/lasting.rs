//! Which part of a run lasts: whether rates fell to another level on the way and stayed there.
//!
//! Method: every moment between two windows is tried. Points measured on both sides of it are its
//! witnesses: a witness fell when each of its rates before lies well above each after. The run fell
//! at the moment with the most such witnesses, where nearly all that could fall did.
//! Invariant: what the processors, the hypervisor or another process disturbed is no witness, and a
//! rate that came back did not fall. Reads and writes are examined separately, since either may be
//! limited alone.

use std::collections::BTreeMap;

use iostrata_plan::{Better, IoApi, OpKind, Pacing, Point};
use iostrata_run::Replicate;
use iostrata_stats::{Measured, loss_pct};

use crate::disturbed::shows_storage;
use crate::figure::{combined, median, metric_of};

/// How many times the rate before must be that after, seen by several points.
const FALL_MIN: f64 = 1.5;
/// The same where only one or two points saw it.
const FALL_MIN_FEW: f64 = 2.0;
/// Points from which on it is several.
const SEVERAL: usize = 3;
/// Windows on each side of the point that saw it best.
const WINDOWS_MIN: usize = 2;
/// Share of the points that could have fallen that must have.
const SHARE_MIN: f64 = 0.8;
/// Standard errors by which the levels must differ: every moment of a run is tried.
const ERRORS_MIN: f64 = 8.0;
/// Noise of the logarithm of a rate that is assumed at least.
const NOISE_MIN: f64 = 0.03;
/// Degrees of freedom behind that noise at least.
const FREEDOM_MIN: usize = 2;

/// A fall of the rate that lasted to the end.
#[derive(Clone, Debug)]
pub(crate) struct Fall {
    /// The kind of request that fell.
    pub kind: OpKind,
    /// When the last window before it ended and the first after it began, in seconds of the run.
    pub between_s: [f64; 2],
    /// Title of the point that saw it best.
    pub witness: String,
    /// Its rates before and after, and their unit.
    pub before: Measured,
    pub after: Measured,
    pub unit: String,
    /// How much of it is gone, in percent.
    pub loss: Measured,
    /// Points that fell.
    pub points: usize,
}

/// A window of a point that runs as fast as it can.
struct Window<'a> {
    replicate: &'a Replicate,
    /// Work per second.
    speed: f64,
}

impl Window<'_> {
    fn ended_s(&self) -> f64 {
        self.replicate.started_s + self.replicate.duration_s
    }
}

/// The falls of a run, at most one of each kind of request.
pub(crate) fn falls(replicates: &[&Replicate]) -> Vec<Fall> {
    [OpKind::Read, OpKind::Write].into_iter().filter_map(|kind| fall(replicates, kind)).collect()
}

/// Whether a window lies before a fall of what it did, so that its figures are not what lasts.
pub(crate) fn is_before(replicate: &Replicate, falls: &[Fall]) -> bool {
    let before = |fall: &Fall| replicate.started_s < fall.between_s[1];
    falls.iter().any(|fall| does(&replicate.point, fall.kind) && before(fall))
}

/// Whether a point does requests of a kind that reach the device.
fn does(point: &Point, kind: OpKind) -> bool {
    point.streams.iter().any(|stream| {
        let mix = stream.spec.mix;
        stream.spec.api != IoApi::Null
            && match kind {
                OpKind::Read => mix.reads(),
                _ => !mix.reads() || mix.writes(),
            }
    })
}

/// The kind of a point that can be a witness: one stream, direct, as fast as it can.
fn witnessed(point: &Point) -> Option<OpKind> {
    let [stream] = point.streams.as_slice() else { return None };
    let spec = &stream.spec;
    let is_fit = spec.direct && spec.api != IoApi::Null && spec.pacing == Pacing::Closed;
    match point.metric.op {
        OpKind::Read if is_fit => Some(OpKind::Read),
        OpKind::Write | OpKind::Sync if is_fit => Some(OpKind::Write),
        _ => None,
    }
}

fn window(replicate: &Replicate) -> Option<Window<'_>> {
    let value = metric_of(replicate)?.value;
    let speed = if replicate.point.metric.better == Better::Higher { value } else { 1.0 / value };
    (shows_storage(replicate) && value > 0.0).then_some(Window { replicate, speed })
}

fn fall(replicates: &[&Replicate], kind: OpKind) -> Option<Fall> {
    let mut windows: Vec<Window<'_>> = replicates
        .iter()
        .filter(|one| witnessed(&one.point) == Some(kind))
        .filter_map(|one| window(one))
        .collect();
    windows.sort_by(|a, b| a.replicate.started_s.total_cmp(&b.replicate.started_s));
    let moments = (1..windows.len()).filter_map(|at| Some((at, witnesses(&windows, at)?)));
    // Of equals the first: whatever comes after it counts as after.
    let (at, (_, fallen)) = moments.max_by(|a, b| a.1.0.cmp(&b.1.0).then(b.0.cmp(&a.0)))?;
    let best = fallen.iter().max_by(|a, b| {
        (a.before.len().min(a.after.len()), a.ratio())
            .partial_cmp(&(b.before.len().min(b.after.len()), b.ratio()))
            .unwrap_or(std::cmp::Ordering::Equal)
    })?;
    // A window by itself does not show what changes from window to window.
    if best.before.len().min(best.after.len()) < WINDOWS_MIN {
        return None;
    }
    let side = |side: &[&Window<'_>]| combined(side.iter().map(|window| window.replicate));
    let (before, after) = (side(&best.before)?, side(&best.after)?);
    let point = &best.before.first()?.replicate.point;
    let (fast, slow) = match point.metric.better {
        Better::Higher => (&before, &after),
        Better::Lower => (&after, &before),
    };
    let loss = loss_pct(fast, slow).ok()?;
    // The whole interval beyond the threshold: a fall is looked for at every moment.
    let is_proven = loss.ci95.is_some_and(|[low, _]| low >= 100.0 * (1.0 - 1.0 / FALL_MIN));
    is_proven.then_some(Fall {
        kind,
        between_s: [windows[at - 1].ended_s(), windows[at].replicate.started_s],
        witness: point.title.clone(),
        loss,
        unit: point.metric.unit.clone(),
        points: fallen.len(),
        before,
        after,
    })
}

/// A point measured on both sides of a moment.
struct Witness<'w> {
    before: Vec<&'w Window<'w>>,
    after: Vec<&'w Window<'w>>,
}

impl Witness<'_> {
    fn windows(&self) -> usize {
        self.before.len() + self.after.len()
    }

    fn middle(side: &[&Window<'_>]) -> f64 {
        median(side.iter().map(|window| window.speed).collect()).unwrap_or(0.0)
    }

    fn ratio(&self) -> f64 {
        Self::middle(&self.before) / Self::middle(&self.after)
    }

    /// Whether every window before was clearly faster than every one after.
    fn fell(&self) -> bool {
        let speeds = |side: &[&Window<'_>]| side.iter().map(|w| w.speed).collect::<Vec<f64>>();
        let slowest = speeds(&self.before).into_iter().fold(f64::INFINITY, f64::min);
        let fastest = speeds(&self.after).into_iter().fold(0.0, f64::max);
        slowest > fastest * FALL_MIN.sqrt() && self.ratio() >= FALL_MIN
    }
}

/// Whether the levels lie apart by much more than windows of one level do: the mean difference of
/// the logarithms over its standard error.
fn is_beyond_noise(fallen: &[Witness<'_>]) -> bool {
    let (mut squares, mut freedom, mut differences, mut variance) = (0.0, 0, 0.0, 0.0);
    for one in fallen {
        let means = [&one.before, &one.after].map(|side| {
            let logs: Vec<f64> = side.iter().map(|window| window.speed.ln()).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
            freedom += logs.len() - 1;
            variance += 1.0 / logs.len() as f64;
            mean
        });
        differences += means[0] - means[1];
    }
    let noise = (squares / freedom.max(1) as f64).sqrt().max(NOISE_MIN);
    freedom >= FREEDOM_MIN && differences >= ERRORS_MIN * noise * variance.sqrt()
}

/// The points that fell at the moment before window `at`, and how many windows speak for it less
/// those that speak against it; `None` where it was no fall.
fn witnesses<'w>(windows: &'w [Window<'w>], at: usize) -> Option<(isize, Vec<Witness<'w>>)> {
    let mut points: BTreeMap<&str, Witness<'w>> = BTreeMap::new();
    for (index, window) in windows.iter().enumerate() {
        let id = window.replicate.point.id.as_str();
        let none = || Witness { before: Vec::new(), after: Vec::new() };
        let witness = points.entry(id).or_insert_with(none);
        if index < at { witness.before.push(window) } else { witness.after.push(window) }
    }
    let both = points.into_values().filter(|one| !one.before.is_empty() && !one.after.is_empty());
    let (fallen, others): (Vec<Witness<'w>>, Vec<Witness<'w>>) = both.partition(Witness::fell);
    // What was slower than the new level all along had nothing to lose.
    let level = fallen.iter().map(|one| Witness::middle(&one.after)).fold(0.0, f64::max);
    let stood: Vec<&Witness<'w>> =
        others.iter().filter(|one| Witness::middle(&one.before) > FALL_MIN * level).collect();
    let share = fallen.len() as f64 / (fallen.len() + stood.len()).max(1) as f64;
    let several = fallen.len() >= SEVERAL;
    let clear = fallen.iter().any(|one| {
        one.before.len().min(one.after.len()) >= WINDOWS_MIN && one.ratio() >= FALL_MIN_FEW
    });
    let most = 2 * fallen.len() >= fallen.len() + others.len();
    let found = share >= SHARE_MIN && most && (several || clear) && is_beyond_noise(&fallen);
    let speak_for: usize = fallen.iter().map(Witness::windows).sum();
    let against: usize = stood.iter().map(|one| one.windows()).sum();
    found.then_some((speak_for as isize - against as isize, fallen))
}
