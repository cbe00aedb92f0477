//! All points at once: where the processors were, what threads waited for, and in which part of the
//! path requests spent their time.

use iostrata_run::host::{KernelLayer, OffCpu, PathSegment, SegmentLatency, SegmentTimes};
use iostrata_run::{StudyDocument, StudyPoint};

use super::levels::{axis_words, level, level_words};
use super::matrix::{Panel, Panels};
use crate::report::cell::{Span, Text, count, optional, text, value};
use crate::report::chart::{Chart, Plot, Stack};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, On, Style, Table};
use crate::report::words;

/// Functions and waits of a point that are named.
const NAMED: usize = 3;

/// Reads or writes of a part of the path.
type TimesOf = fn(&SegmentLatency) -> Option<SegmentTimes>;

/// On-CPU time by layer of the kernel, and the hottest functions.
pub(super) fn processors(study: &StudyDocument, sets: &[Panels<'_>]) -> Option<Blocks> {
    let profiles: Vec<_> =
        study.points.iter().filter_map(|point| Some((point, point.profile.as_ref()?))).collect();
    if profiles.is_empty() {
        return None;
    }
    let mut body = Blocks::new();
    body.say(
        "Share of all processor time by layer of the kernel, sampled while the points were \
         measured; idle is shown. What is idle here waits: see the off-CPU waits of a point.",
    );
    let parts = |point: &StudyPoint| -> Vec<(Colour, f64, String)> {
        let Some(profile) = &point.profile else { return Vec::new() };
        let part = |layer: KernelLayer| {
            let share = profile.layers.iter().find(|one| one.layer == layer)?;
            let (title, pct, samples) = (layer.title(), share.pct, share.samples);
            let hover = format!(
                "{}\n{title} {pct:.1} %\n{samples} of {} samples",
                point.title, profile.samples
            );
            Some((Colour::Kernel(layer), pct, hover))
        };
        KernelLayer::ALL.into_iter().filter_map(part).collect()
    };
    let names = KernelLayer::ALL.map(|layer| (Colour::Kernel(layer), layer.title()));
    let mut charts = Vec::new();
    for (n, (title, stacks)) in stacked(sets, parts).into_iter().enumerate() {
        charts.extend(shares(format!("cpu-{n}"), title, &names, stacks));
    }
    body.add(On::PAGE, Block::Choice("workload", charts));
    let occurs = |layer: &KernelLayer| {
        profiles.iter().any(|(_, profile)| profile.layers.iter().any(|one| one.layer == *layer))
    };
    let layers = KernelLayer::ALL.into_iter().filter(occurs);
    let mut table = Table::of(&profiles)
        .words("Point", |(point, _)| text(&point.title))
        .numbers("Samples", |(_, profile)| count(profile.samples));
    for layer in layers {
        table = table.numbers(&format!("{}, %", layer.title()), |(_, profile)| {
            let found = profile.layers.iter().find(|one| one.layer == layer);
            text(found.map_or(String::new(), |one| format!("{:.1}", one.pct)))
        });
    }
    let table = table.words("Hottest functions", |(_, profile)| {
        let symbols = profile.symbols.iter().take(NAMED).flat_map(|one| {
            [Span::Code(one.symbol.clone()), Span::Plain(format!(" {:.1} % ", one.pct))]
        });
        text(Text(symbols.collect()))
    });
    body.table(On::MARKDOWN, table);
    Some(body)
}

/// Waits by layer, and the longest. The page shows them point by point.
pub(super) fn waits(study: &StudyDocument) -> Option<Blocks> {
    let named = |off: &OffCpu| {
        let mut named = Text::default();
        for one in off.waits.iter().take(NAMED) {
            named = named.with(Span::Code(one.symbol.clone()));
            if let Some(caller) = &one.caller {
                named = named.plain(" by ").with(Span::Code(caller.clone()));
            }
            let (total, mean) = (words::value(one.total_us, "us"), words::value(one.mean_us, "us"));
            named = named.plain(format!(": {total}, mean {mean}; "));
        }
        text(named)
    };
    let shares = |off: &OffCpu| {
        let shares = off.layers.iter().map(|one| format!("{} {:.1} %", one.layer.title(), one.pct));
        text(shares.collect::<Vec<_>>().join(", "))
    };
    let points = study.points.iter();
    let with = points.filter_map(|point| Some((point, point.profile.as_ref()?.off_cpu.as_ref()?)));
    let table = Table::of(with)
        .words("Point", |(point, _)| text(&point.title))
        .numbers("Waits", |(_, off)| count(off.count))
        .numbers("In all", |(_, off)| value(off.total_us, "us"))
        .words("By layer", |(_, off)| shares(off))
        .words("Longest in all", |(_, off)| named(off));
    let mut body = Blocks::new();
    let is_there = !table.is_empty();
    body.table(On::MARKDOWN, table);
    is_there.then_some(body)
}

/// Mean latency by segment of the path.
pub(super) fn path(study: &StudyDocument, sets: &[Panels<'_>]) -> Option<Blocks> {
    let both: [(&str, TimesOf); 2] = [("reads", |one| one.reads), ("writes", |one| one.writes)];
    let names = PathSegment::ALL.map(|one| (Colour::Segment(one), words::segment(one)));
    let (mut charts, mut rows) = (Vec::new(), Vec::new());
    for (which, (what, of)) in both.into_iter().enumerate() {
        for (n, (title, stacks)) in stacked(sets, |point| parts(point, of)).into_iter().enumerate()
        {
            let name = format!("path-{which}-{n}");
            charts.extend(shares(name, format!("{title}: {what}"), &names, stacks));
        }
    }
    for point in &study.points {
        for (what, of) in both {
            let found = PathSegment::ALL.map(|segment| times(point, segment, of));
            if found.iter().any(Option::is_some) {
                rows.push((point, what, found));
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let mut body = Blocks::new();
    body.say(
        "Mean latency of a request by part of its way, from the kernel's block events in a pass \
         apart from the measured ones.",
    );
    let share = "Bars are shares of the mean; microseconds are on hover.";
    body.add(On::PAGE, Block::Text(Style::Say, share.into()));
    body.add(On::PAGE, Block::Choice("workload", charts));
    let mut table = Table::of(rows)
        .words("Point", |row| text(&row.0.title))
        .words("Requests", |row| text(row.1));
    for (n, segment) in PathSegment::ALL.into_iter().enumerate() {
        table = table.numbers(words::segment(segment), |row| {
            optional(row.2[n].map(|times| times.latency_us.mean), "us")
        });
    }
    body.table(On::MARKDOWN, table);
    Some(body)
}

fn times(point: &StudyPoint, segment: PathSegment, of: TimesOf) -> Option<SegmentTimes> {
    of(point.latency_by_layer.as_ref()?.segment(segment)?)
}

fn parts(point: &StudyPoint, of: TimesOf) -> Vec<(Colour, f64, String)> {
    let part = |segment: PathSegment| {
        let times = times(point, segment, of)?;
        let hover = format!(
            "{}\n{} mean {}, p99 {}\nn = {}",
            point.title,
            words::segment(segment),
            words::value(times.latency_us.mean, "us"),
            words::value(times.latency_us.p99, "us"),
            times.count
        );
        Some((Colour::Segment(segment), times.latency_us.mean, hover))
    };
    PathSegment::ALL.into_iter().filter_map(part).collect()
}

/// The chart of one workload with its title; nothing without bars. The legend has what occurs.
fn shares(
    name: String,
    title: String,
    names: &[(Colour, &'static str)],
    stacks: Vec<Stack>,
) -> Option<(String, Vec<Chart>)> {
    let occurs = |colour: &Colour| {
        stacks.iter().any(|stack| stack.parts.iter().any(|part| part.0 == *colour))
    };
    let legend = names.iter().filter(|(colour, _)| occurs(colour));
    let legend: Vec<(Colour, String)> =
        legend.map(|(colour, name)| (*colour, (*name).to_owned())).collect();
    let chart = Chart::new(name, "", Plot::Shares(legend, stacks));
    let is_there = matches!(&chart.plot, Plot::Shares(_, stacks) if !stacks.is_empty());
    is_there.then(|| (title, vec![chart]))
}

/// The stacks of each workload, with its title.
fn stacked(
    sets: &[Panels<'_>],
    parts: impl Fn(&StudyPoint) -> Vec<(Colour, f64, String)>,
) -> Vec<(String, Vec<Stack>)> {
    let mut all = Vec::new();
    for (set, one) in sets.iter().flat_map(|set| set.all().map(move |one| (set, one))) {
        let title = match set.axis {
            Some(axis) => format!("{}, over {}", one.title, axis_words(&axis.factor)),
            None => one.title.clone(),
        };
        let stacks = labelled(set, one).into_iter().map(|(group, title, point)| Stack {
            group,
            title,
            parts: parts(point),
        });
        let stacks = stacks.filter(|stack| !stack.parts.is_empty()).collect();
        all.push((title.trim_start_matches(", ").to_owned(), stacks));
    }
    all
}

/// The points of a panel with the line that they lie on and their level.
fn labelled<'a>(set: &Panels<'a>, one: &Panel<'a>) -> Vec<(String, String, &'a StudyPoint)> {
    let mut all = Vec::new();
    for line in &one.lines {
        for (_, point) in &line.points {
            let look = set.looks[line.look].label.clone();
            all.push(match set.axis {
                Some(axis) => {
                    let level = level(&point.levels, &axis.factor).unwrap_or_default();
                    (look, level_words(&axis.factor, level), *point)
                }
                None if line.points.len() > 1 => (look, point.title.clone(), *point),
                None => (String::new(), look, *point),
            });
        }
    }
    all
}
