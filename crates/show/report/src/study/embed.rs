//! What the page's own script shows of single points, as compact data.
//!
//! Why: profiles of 190 points as tables and charts would make a page that no browser opens in a
//! moment. Names are kept once, figures are those of the document (text where they carry a unit),
//! and a point is drawn when it is chosen.

use iostrata_run::host::{
    BlockLatency, KernelLayer, OffCpu, PathSegment, Profile, QueueStepLatency, ReadsWrites,
    SegmentLatency, SegmentTimes,
};
use iostrata_run::{StudyDocument, StudyPoint};
use serde::Serialize;

use super::flame::{Flame, Names, layer_place};
use super::levels::{factor_words, level, level_words, varying};
use crate::chart::{kernel_colour, segment_colour};
use crate::words;

/// Frames of all flame graphs of a page together.
const FRAMES: usize = 30_000;
/// Fewest and most frames of one flame graph.
const FRAMES_OF_ONE: [usize; 2] = [80, 1_500];

/// Everything that the chooser of points needs.
#[derive(Serialize)]
pub(crate) struct Closely {
    names: Vec<String>,
    layers: Vec<Named>,
    segments: Vec<Named>,
    factors: Vec<Factor>,
    points: Vec<Point>,
    /// Points to begin with: the first alone, both beside each other.
    start: [usize; 2],
}

/// A layer or segment with its colour.
#[derive(Serialize)]
struct Named {
    t: &'static str,
    c: &'static str,
}

/// A factor in which points differ, with its levels in words.
#[derive(Serialize)]
struct Factor {
    t: String,
    l: Vec<String>,
}

#[derive(Serialize)]
struct Point {
    /// Title.
    t: String,
    /// Place of its level per factor; -1 where it has none.
    k: Vec<isize>,
    /// Its figure with how sure it is.
    v: String,
    /// Cautions.
    w: Vec<String>,
    cpu: Option<OnCpu>,
    off: Option<Waits>,
    lat: Option<Latency>,
}

#[derive(Serialize)]
struct OnCpu {
    /// How it was sampled.
    how: String,
    samples: u64,
    notes: Vec<String>,
    /// Layer, samples, percent.
    layers: Vec<(usize, u64, f64)>,
    /// Layer that took the lock, samples.
    lock: Vec<(usize, u64)>,
    /// Function, module, layer, samples, percent.
    symbols: Vec<(usize, usize, usize, u64, f64)>,
    flame: Flame,
}

#[derive(Serialize)]
struct Waits {
    how: String,
    total_us: u64,
    /// Layer, waits, time in words, percent.
    layers: Vec<(usize, u64, String, f64)>,
    waits: Vec<Wait>,
    flame: Flame,
}

/// Function, caller or -1, layer, layer that takes the lock or -1, waits, total, mean, longest.
type Wait = (usize, isize, usize, isize, u64, String, String, String);

#[derive(Serialize)]
struct Latency {
    how: String,
    notes: Vec<String>,
    /// One bar each: reads, writes.
    bars: Vec<LatencyBar>,
}

#[derive(Serialize)]
struct LatencyBar {
    t: &'static str,
    /// The application's mean and what no segment explains, in words; empty where not known.
    app: String,
    rest: String,
    /// Segment, mean in microseconds, its times.
    rows: Vec<(usize, f64, Times)>,
    /// What the queue is made of, and flushes: name, times.
    more: Vec<(&'static str, Times)>,
}

/// Mean, median, 99th percentile and longest in words, and how many.
type Times = (String, String, String, String, u64);

impl Closely {
    /// The data of a study; nothing when no point has a profile or a trace.
    pub(crate) fn of(study: &StudyDocument) -> Option<Self> {
        let has = |point: &StudyPoint| point.profile.is_some() || point.latency_by_layer.is_some();
        let with = study.points.iter().filter(|point| has(point)).count();
        if with == 0 {
            return None;
        }
        let frames = (FRAMES / (2 * with)).clamp(FRAMES_OF_ONE[0], FRAMES_OF_ONE[1]);
        let mut names = Names::default();
        let all: Vec<&StudyPoint> = study.points.iter().collect();
        let factors = varying(study, &all);
        let places = |point: &StudyPoint| {
            let place = |factor: &&iostrata_spec::study::FactorLevels| {
                let level = level(&point.levels, &factor.factor)?;
                let place = factor.levels.iter().position(|one| one == level)?;
                isize::try_from(place).ok()
            };
            factors.iter().map(|factor| place(factor).unwrap_or(-1)).collect()
        };
        let mut point = |one: &StudyPoint| Point {
            t: one.title.clone(),
            k: places(one),
            v: figure(one),
            w: one.verdicts.iter().map(words::verdict).collect(),
            cpu: one
                .profile
                .as_ref()
                .filter(|one| one.samples > 0)
                .map(|one| on_cpu(one, frames, &mut names)),
            off: one
                .profile
                .as_ref()
                .and_then(|one| Some(waits(one.off_cpu.as_ref()?, frames, &mut names))),
            lat: one.latency_by_layer.as_ref().map(latency),
        };
        let points: Vec<Point> = study.points.iter().map(&mut point).collect();
        Some(Self {
            start: start(study),
            names: names.listed(),
            layers: KernelLayer::ALL
                .map(|layer| Named { t: layer.title(), c: kernel_colour(layer) })
                .into(),
            segments: PathSegment::ALL
                .map(|segment| Named { t: words::segment(segment), c: segment_colour(segment) })
                .into(),
            factors: factors
                .iter()
                .map(|factor| Factor {
                    t: factor_words(&factor.factor),
                    l: factor.levels.iter().map(|one| level_words(&factor.factor, one)).collect(),
                })
                .collect(),
            points,
        })
    }
}

/// Where something happens along an axis: from there to its end. Else the first profile.
fn start(study: &StudyDocument) -> [usize; 2] {
    let place = |id: &String| {
        let profiled = |point: &StudyPoint| point.id == *id && point.profile.is_some();
        study.points.iter().position(profiled)
    };
    let bends = study.axes.iter().filter_map(|axis| {
        let at = axis.x.iter().position(|x| Some(*x) == axis.at)?;
        let first = place(axis.points.get(at)?)?;
        let last = place(axis.points.last()?)?;
        (first != last).then_some((axis.change_pct.unwrap_or(0.0), [last, first]))
    });
    let worst = bends.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, pair)| pair);
    worst.unwrap_or_else(|| {
        let mut with = study.points.iter().enumerate().filter(|(_, one)| one.profile.is_some());
        let first = with.next().map_or(0, |(at, _)| at);
        [first, with.next_back().map_or(first, |(at, _)| at)]
    })
}

/// `38.1 K IOPS +- 1.2 %, n = 90`.
fn figure(point: &StudyPoint) -> String {
    let shown = words::shown(point.value, point.value_ci95, &point.unit);
    let none = if point.value_ci95.is_none() { ", no interval" } else { "" };
    format!("{}{none}, n = {}", shown.with_spread("\u{b1}"), point.value_n)
}

/// One decimal, as profilers print shares.
fn tenth(pct: f64) -> f64 {
    (pct * 10.0).round() / 10.0
}

fn on_cpu(profile: &Profile, frames: usize, names: &mut Names) -> OnCpu {
    let lost = if profile.lost > 0 { format!(", {} lost", profile.lost) } else { String::new() };
    let lock = profile.layers.iter().flat_map(|layer| &layer.taken_in);
    let stacks = profile.stacks.iter().map(|one| (&one.frames[..], one.layer, one.samples));
    OnCpu {
        how: format!(
            "{} samples{lost} of {} processors in {}, {} at {} Hz",
            profile.samples,
            profile.cpus,
            words::value(profile.seconds, "s"),
            profile.clock,
            profile.hz
        ),
        samples: profile.samples,
        notes: profile.notes.clone(),
        layers: profile
            .layers
            .iter()
            .map(|one| (layer_place(one.layer), one.samples, tenth(one.pct)))
            .collect(),
        lock: lock.map(|one| (layer_place(one.layer), one.samples)).collect(),
        symbols: profile
            .symbols
            .iter()
            .map(|one| {
                let (symbol, module) = (names.place(&one.symbol), names.place(&one.module));
                (symbol, module, layer_place(one.layer), one.samples, tenth(one.pct))
            })
            .collect(),
        flame: Flame::of(stacks, frames, names),
    }
}

fn waits(off: &OffCpu, frames: usize, names: &mut Names) -> Waits {
    let us = |us: f64| words::value(us, "us");
    let mut how = format!(
        "{} waits of {} threads in {}, {} in all",
        off.count,
        off.threads,
        words::value(off.seconds, "s"),
        us(off.total_us)
    );
    if off.lost > 0 {
        how.push_str(&format!("; {} switches were lost", off.lost));
    }
    let stacks = off.stacks.iter().map(|one| (&one.frames[..], one.layer, one.total_us as u64));
    let row = |one: &iostrata_run::host::OffCpuWait| {
        let mut optional = |text: &Option<String>| {
            let place = text.as_ref().map(|text| names.place(text));
            place.and_then(|place| isize::try_from(place).ok()).unwrap_or(-1)
        };
        let caller = optional(&one.caller);
        let taken = one.taken_in.and_then(|layer| isize::try_from(layer_place(layer)).ok());
        (
            names.place(&one.symbol),
            caller,
            layer_place(one.layer),
            taken.unwrap_or(-1),
            one.count,
            us(one.total_us),
            us(one.mean_us),
            us(one.max_us),
        )
    };
    Waits {
        how,
        total_us: off.total_us as u64,
        layers: off
            .layers
            .iter()
            .map(|one| (layer_place(one.layer), one.count, us(one.total_us), tenth(one.pct)))
            .collect(),
        waits: off.waits.iter().map(row).collect(),
        flame: Flame::of(stacks, frames, names),
    }
}

fn latency(traced: &BlockLatency) -> Latency {
    let mut how = format!(
        "{} requests of {} followed in {}",
        traced.requests,
        traced.device,
        words::value(traced.seconds, "s")
    );
    if traced.calls > 0 {
        how.push_str(&format!(", {} calls of the application", traced.calls));
    }
    for (count, what) in [
        (traced.held_back, "held back by a limit"),
        (traced.merged, "merged"),
        (traced.requeued, "handed back by the driver"),
        (traced.unmatched, "seen in part only"),
        (traced.lost_events, "events lost"),
    ] {
        if count > 0 {
            how.push_str(&format!(", {count} {what}"));
        }
    }
    let app = traced.application.unwrap_or_default();
    let rest = traced.unexplained.unwrap_or_default();
    let reads = bar(traced, "reads", app.read_us_mean, rest.read_us_mean, |one| one.reads);
    let writes = bar(traced, "writes", app.write_us_mean, rest.write_us_mean, |one| one.writes);
    let bars = [reads, writes].into_iter().filter(|bar| !bar.rows.is_empty()).collect();
    Latency { how, notes: traced.notes.clone(), bars }
}

fn bar(
    traced: &BlockLatency,
    title: &'static str,
    app: Option<f64>,
    rest: Option<f64>,
    of: fn(&ReadsWrites) -> Option<SegmentTimes>,
) -> LatencyBar {
    let optional = |value: Option<f64>| value.map_or(String::new(), |us| words::value(us, "us"));
    let row = |one: &SegmentLatency| {
        let found = of(&ReadsWrites { reads: one.reads, writes: one.writes })?;
        Some((segment_place(one.segment), tenth(found.latency_us.mean), times(&found)))
    };
    let step = |one: &QueueStepLatency| {
        let found = of(&ReadsWrites { reads: one.reads, writes: one.writes })?;
        Some((words::queue_step(one.step), times(&found)))
    };
    let mut more: Vec<_> = traced.queue_steps.iter().filter_map(step).collect();
    let flushes = traced.flushes.filter(|_| title == "writes");
    more.extend(flushes.map(|flushes| ("flush of the device", times(&flushes))));
    more.extend(of(&traced.call_latency).map(|calls| ("traced call in all", times(&calls))));
    let rows = traced.segments.iter().filter_map(row).collect();
    LatencyBar { t: title, app: optional(app), rest: optional(rest), rows, more }
}

fn times(one: &SegmentTimes) -> Times {
    let us = |us: f64| words::value(us, "us");
    let latency = one.latency_us;
    (us(latency.mean), us(latency.p50), us(latency.p99), us(latency.max), one.count)
}

fn segment_place(segment: PathSegment) -> usize {
    PathSegment::ALL.iter().position(|one| *one == segment).unwrap_or(0)
}
