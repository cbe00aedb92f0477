//! What the page's own script shows of single points, as compact data.
//!
//! Why: profiles of 190 points as tables and charts would make a page that no browser opens in a
//! moment. Names are kept once, figures are those of the document (text where they carry a unit),
//! and a point is drawn when it is chosen.

use iostrata_plan::study::FactorLevels;
use iostrata_run::host::{
    BlockLatency, KernelLayer, OffCpu, PathSegment, Profile, ReadsWrites, SegmentTimes,
};
use iostrata_run::{StudyDocument, StudyPoint};
use serde_json::{Value, json};

use super::flame::{Flame, Names, layer_place};
use super::levels::{factor_words, level, level_words, varying};
use crate::report::colour::Colour;
use crate::report::words;

/// Frames of all flame graphs of a page together.
const FRAMES: usize = 30_000;
/// Fewest and most frames of one flame graph.
const FRAMES_OF_ONE: [usize; 2] = [80, 1_500];

/// Mean, median, 99th percentile and longest in words, and how many.
type Times = (String, String, String, String, u64);

/// What `assets/points.js` reads; nothing when no point has a profile or a trace. Layers, segments
/// and names are told by their places in the lists of `layers`, `segments` and `names`.
pub(super) fn data(study: &StudyDocument) -> Option<String> {
    let with = study.points.iter().filter(|point| has_evidence(point)).count();
    if with == 0 {
        return None;
    }
    let frames = (FRAMES / (2 * with)).clamp(FRAMES_OF_ONE[0], FRAMES_OF_ONE[1]);
    let mut names = Names::default();
    let all: Vec<&StudyPoint> = study.points.iter().collect();
    let factors = varying(study, &all);
    // The place of a point's level of each factor; -1 where it has none.
    let places = |point: &StudyPoint| -> Vec<isize> {
        let place = |factor: &&FactorLevels| {
            let level = level(&point.levels, &factor.factor)?;
            let place = factor.levels.iter().position(|one| one == level)?;
            isize::try_from(place).ok()
        };
        factors.iter().map(|factor| place(factor).unwrap_or(-1)).collect()
    };
    let mut point = |one: &StudyPoint| {
        let profile = one.profile.as_ref();
        let sampled = profile.filter(|profile| profile.samples > 0);
        let off = profile.and_then(|profile| profile.off_cpu.as_ref());
        json!({
            "t": one.title,
            "k": places(one),
            "v": figure(one),
            "w": one.verdicts.iter().map(words::verdict).collect::<Vec<_>>(),
            "cpu": sampled.map(|profile| on_cpu(profile, frames, &mut names)),
            "off": off.map(|off| waits(off, frames, &mut names)),
            "lat": one.latency_by_layer.as_ref().map(latency),
        })
    };
    let points: Vec<Value> = study.points.iter().map(&mut point).collect();
    let layer = |one: KernelLayer| json!({ "t": one.title(), "c": Colour::Kernel(one).css() });
    let segment =
        |one: PathSegment| json!({ "t": words::segment(one), "c": Colour::Segment(one).css() });
    let levels = |factor: &FactorLevels| -> Vec<String> {
        factor.levels.iter().map(|one| level_words(&factor.factor, one)).collect()
    };
    let factor = |one: &&FactorLevels| json!({ "t": factor_words(&one.factor), "l": levels(one) });
    let data = json!({
        "names": names.listed(),
        "layers": KernelLayer::ALL.map(layer),
        "segments": PathSegment::ALL.map(segment),
        "factors": factors.iter().map(factor).collect::<Vec<_>>(),
        "points": points,
        "start": start(study),
    });
    Some(data.to_string())
}

/// Whether there is something to look at closely.
pub(super) fn has_evidence(point: &StudyPoint) -> bool {
    point.profile.is_some() || point.latency_by_layer.is_some()
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
    let half = shown.half.map_or(String::new(), |half| format!(" {half}"));
    format!("{}{half}{none}, n = {}", shown.text, point.value_n)
}

/// One decimal, as profilers print shares.
fn tenth(pct: f64) -> f64 {
    (pct * 10.0).round() / 10.0
}

/// How it was sampled; layer, samples and percent; the layer that took the lock; function, module,
/// layer, samples and percent; stacks.
fn on_cpu(profile: &Profile, frames: usize, names: &mut Names) -> Value {
    let lost = if profile.lost > 0 { format!(", {} lost", profile.lost) } else { String::new() };
    let how = format!(
        "{} samples{lost} of {} processors in {}, {} at {} Hz",
        profile.samples,
        profile.cpus,
        words::value(profile.seconds, "s"),
        profile.clock,
        profile.hz
    );
    let layers = profile.layers.iter();
    let layers = layers.map(|one| (layer_place(one.layer), one.samples, tenth(one.pct)));
    let lock = profile.layers.iter().flat_map(|layer| &layer.taken_in);
    let lock = lock.map(|one| (layer_place(one.layer), one.samples));
    let symbols = profile.symbols.iter().map(|one| {
        let (symbol, module) = (names.place(&one.symbol), names.place(&one.module));
        (symbol, module, layer_place(one.layer), one.samples, tenth(one.pct))
    });
    let symbols: Vec<_> = symbols.collect();
    let stacks = profile.stacks.iter().map(|one| (&one.frames[..], one.layer, one.samples));
    json!({
        "how": how,
        "samples": profile.samples,
        "notes": profile.notes,
        "layers": layers.collect::<Vec<_>>(),
        "lock": lock.collect::<Vec<_>>(),
        "symbols": symbols,
        "flame": Flame::of(stacks, frames, names),
    })
}

/// Layer, waits, time in words, percent; function, caller or -1, layer, layer that takes the lock
/// or -1, waits, total, mean, longest; stacks.
fn waits(off: &OffCpu, frames: usize, names: &mut Names) -> Value {
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
    let layers = off.layers.iter();
    let layers =
        layers.map(|one| (layer_place(one.layer), one.count, us(one.total_us), tenth(one.pct)));
    let waits = off.waits.iter().map(|one| {
        let place =
            |place: Option<usize>| place.and_then(|at| isize::try_from(at).ok()).unwrap_or(-1);
        let symbol = names.place(&one.symbol);
        let caller = place(one.caller.as_ref().map(|caller| names.place(caller)));
        let (layer, taken) = (layer_place(one.layer), place(one.taken_in.map(layer_place)));
        let [total, mean, longest] = [one.total_us, one.mean_us, one.max_us].map(us);
        (symbol, caller, layer, taken, one.count, total, mean, longest)
    });
    let waits: Vec<_> = waits.collect();
    json!({
        "how": how,
        "total_us": off.total_us as u64,
        "layers": layers.collect::<Vec<_>>(),
        "waits": waits,
        "flame": Flame::of(stacks, frames, names),
    })
}

fn latency(traced: &BlockLatency) -> Value {
    let mut how = format!(
        "{} requests of {} followed in {}",
        traced.requests,
        traced.device,
        words::value(traced.seconds, "s")
    );
    for (count, what) in [
        (traced.calls, "calls of the application"),
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
    let bars: Vec<Value> = reads.into_iter().chain(writes).collect();
    json!({ "how": how, "notes": traced.notes, "bars": bars })
}

/// The application's mean and what no segment explains, in words, empty where not known; segment,
/// mean in microseconds and its times; what the queue is made of, and flushes.
fn bar(
    traced: &BlockLatency,
    title: &'static str,
    app: Option<f64>,
    rest: Option<f64>,
    of: fn(&ReadsWrites) -> Option<SegmentTimes>,
) -> Option<Value> {
    let optional = |value: Option<f64>| value.map_or(String::new(), |us| words::value(us, "us"));
    let place = |of: PathSegment| PathSegment::ALL.iter().position(|one| *one == of).unwrap_or(0);
    let rows = traced.segments.iter().filter_map(|one| {
        let found = of(&ReadsWrites { reads: one.reads, writes: one.writes })?;
        Some((place(one.segment), tenth(found.latency_us.mean), times(&found)))
    });
    let rows: Vec<(usize, f64, Times)> = rows.collect();
    let steps = traced.queue_steps.iter().filter_map(|one| {
        let found = of(&ReadsWrites { reads: one.reads, writes: one.writes })?;
        Some((words::queue_step(one.step), times(&found)))
    });
    let mut more: Vec<(&str, Times)> = steps.collect();
    let flushes = traced.flushes.filter(|_| title == "writes");
    more.extend(flushes.map(|flushes| ("flush of the device", times(&flushes))));
    more.extend(of(&traced.call_latency).map(|calls| ("traced call in all", times(&calls))));
    let (app, rest) = (optional(app), optional(rest));
    let is_there = !rows.is_empty();
    is_there.then(|| json!({ "t": title, "app": app, "rest": rest, "rows": rows, "more": more }))
}

fn times(one: &SegmentTimes) -> Times {
    let us = |us: f64| words::value(us, "us");
    let latency = one.latency_us;
    (us(latency.mean), us(latency.p50), us(latency.p99), us(latency.max), one.count)
}
