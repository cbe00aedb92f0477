//! What the page's own script shows of single points, as compact data, stacks as a flame graph.
//!
//! Why: profiles of 190 points as tables and charts would make a page that no browser opens in a
//! moment. Names are kept once, figures are those of the document (text where they carry a unit),
//! and a point is drawn when it is chosen. Invariant: the value of a frame is the sum of the stacks
//! through it, so that it is the sum of its callees and its own; the smallest frames are left out
//! first, and what they held stays in their callers.

use std::collections::BTreeMap;

use iostrata_plan::study::FactorLevels;
use iostrata_run::host::{
    BlockLatency, KernelLayer, OffCpu, PathSegment, Profile, ReadsWrites, SegmentTimes,
};
use iostrata_run::{StudyDocument, StudyPoint};
use serde::Serialize;
use serde_json::{Value, json};

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
/// and names are given by their places in the lists of `layers`, `segments` and `names`.
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

/// Texts that occur many times, each kept once.
#[derive(Default)]
pub(super) struct Names {
    places: BTreeMap<String, usize>,
}

impl Names {
    /// The place of a text.
    pub(super) fn place(&mut self, text: &str) -> usize {
        if let Some(place) = self.places.get(text) {
            return *place;
        }
        let place = self.places.len();
        self.places.insert(text.to_owned(), place);
        place
    }

    /// The texts by their places.
    pub(super) fn listed(self) -> Vec<String> {
        let mut both: Vec<(usize, String)> =
            self.places.into_iter().map(|(text, place)| (place, text)).collect();
        both.sort();
        both.into_iter().map(|(_, text)| text).collect()
    }
}

/// A layer's place in [`KernelLayer::ALL`].
fn layer_place(layer: KernelLayer) -> usize {
    KernelLayer::ALL.iter().position(|one| *one == layer).unwrap_or(KernelLayer::ALL.len() - 1)
}

/// Frames from the outermost in, each before its callees: four columns of equal length.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Flame {
    /// Place of the name.
    n: Vec<usize>,
    /// Depth: a frame's caller is the nearest one before it that is less deep.
    d: Vec<usize>,
    /// Samples or microseconds.
    v: Vec<u64>,
    /// Place of the layer that nearly all of them count for; -1 where several share them.
    l: Vec<isize>,
}

/// One frame while the tree grows.
struct Node {
    name: usize,
    depth: usize,
    callees: BTreeMap<usize, usize>,
    layers: BTreeMap<usize, u64>,
}

impl Node {
    fn new(name: usize, depth: usize) -> Self {
        Self { name, depth, callees: BTreeMap::new(), layers: BTreeMap::new() }
    }

    fn value(&self) -> u64 {
        self.layers.values().sum()
    }

    fn main_layer(&self) -> isize {
        let most = self.layers.iter().max_by_key(|(_, value)| **value);
        let main = most.filter(|(_, value)| **value * 10 >= self.value() * 9);
        main.and_then(|(layer, _)| isize::try_from(*layer).ok()).unwrap_or(-1)
    }
}

impl Flame {
    /// The graph of stacks, at most `frames_max` frames.
    pub(super) fn of<'a>(
        stacks: impl Iterator<Item = (&'a [String], KernelLayer, u64)>,
        frames_max: usize,
        names: &mut Names,
    ) -> Self {
        let tree = tree(stacks, names);
        // A caller is older and never smaller than its callee: taking the largest, the older one
        // first, takes every caller before its callees.
        let mut order: Vec<usize> = (1..tree.len()).collect();
        order.sort_by_key(|at| (std::cmp::Reverse(tree[*at].value()), *at));
        order.truncate(frames_max);
        let mut kept = vec![false; tree.len()];
        for at in order {
            kept[at] = true;
        }
        let mut flame = Self::default();
        flame.add_callees(&tree, &kept);
        flame
    }

    /// Every kept frame, callees after their caller, the largest first.
    fn add_callees(&mut self, tree: &[Node], kept: &[bool]) {
        let callees = |at: usize| {
            let mut callees: Vec<usize> =
                tree[at].callees.values().copied().filter(|callee| kept[*callee]).collect();
            callees.sort_by_key(|callee| (tree[*callee].value(), std::cmp::Reverse(*callee)));
            callees
        };
        let mut open = callees(0);
        while let Some(at) = open.pop() {
            let node = &tree[at];
            self.n.push(node.name);
            self.d.push(node.depth);
            self.v.push(node.value());
            self.l.push(node.main_layer());
            open.extend(callees(at));
        }
    }
}

/// The tree of stacks; its first node is no frame but what all stacks start from.
fn tree<'a>(
    stacks: impl Iterator<Item = (&'a [String], KernelLayer, u64)>,
    names: &mut Names,
) -> Vec<Node> {
    let mut tree = vec![Node::new(0, 0)];
    for (frames, layer, value) in stacks {
        let mut at = 0;
        for (depth, frame) in frames.iter().enumerate() {
            let name = names.place(frame);
            at = match tree[at].callees.get(&name) {
                Some(known) => *known,
                None => {
                    tree.push(Node::new(name, depth));
                    let new = tree.len() - 1;
                    tree[at].callees.insert(name, new);
                    new
                }
            };
            *tree[at].layers.entry(layer_place(layer)).or_default() += value;
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(frames: &[&str]) -> Vec<String> {
        frames.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn stacks_share_what_they_begin_with() {
        let (read, write, idle) = (
            stack(&["user", "vfs_read", "ext4_read"]),
            stack(&["user", "vfs_write"]),
            stack(&["cpu_startup", "idle"]),
        );
        let all = [
            (&read[..], KernelLayer::Filesystem, 5),
            (&write[..], KernelLayer::Vfs, 3),
            (&idle[..], KernelLayer::Idle, 20),
        ];
        let mut names = Names::default();
        let flame = Flame::of(all.into_iter(), 100, &mut names);
        assert_eq!(flame.v, [20, 20, 8, 5, 5, 3]);
        assert_eq!(flame.d, [0, 1, 0, 1, 2, 1]);
        let names = names.listed();
        let shown: Vec<&str> = flame.n.iter().map(|place| names[*place].as_str()).collect();
        assert_eq!(shown, ["cpu_startup", "idle", "user", "vfs_read", "ext4_read", "vfs_write"]);
        let place = |layer| isize::try_from(layer_place(layer)).unwrap();
        assert_eq!(flame.l[1..4], [place(KernelLayer::Idle), -1, place(KernelLayer::Filesystem)]);
    }

    #[test]
    fn small_frames_go_first_and_callers_stay() {
        let deep = stack(&["user", "a", "b", "c"]);
        let small = stack(&["user", "z"]);
        let all = [(&deep[..], KernelLayer::Vfs, 9), (&small[..], KernelLayer::Vfs, 1)];
        let flame = Flame::of(all.into_iter(), 4, &mut Names::default());
        assert_eq!((flame.v, flame.d), (vec![10, 9, 9, 9], vec![0, 1, 2, 3]));
        assert_eq!(Flame::of([].into_iter(), 4, &mut Names::default()), Flame::default());
    }
}
