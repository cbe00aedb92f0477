//! All points at once: where the processors were, and in which part of the path requests spent
//! their time. One workload at a time.

use iostrata_run::StudyPoint;
use iostrata_run::host::{BlockLatency, KernelLayer, PathSegment, SegmentLatency, SegmentTimes};
use maud::{Markup, html};

use crate::chart::{Chart, Charts, Share, Stack, kernel_colour, plain, segment_colour, stacks};
use crate::html::parts::{self, place};
use crate::study::{Panel, Panels, axis_words, level_words};
use crate::words;

/// A point with the two labels under its bar.
type Labelled<'a> = ((String, String), &'a StudyPoint);

/// On-CPU time by layer of the kernel.
pub(crate) fn processors(sets: &[Panels<'_>], charts: &mut Charts) -> Option<Markup> {
    let chart = |points: &[Labelled<'_>]| {
        let with: Vec<&Labelled<'_>> =
            points.iter().filter(|one| one.1.profile.is_some()).collect();
        let labels: Vec<_> = with.iter().map(|one| one.0.clone()).collect();
        let part = |layer: KernelLayer| {
            let shares = with.iter().map(|one| cpu_share(one.1, layer)).collect();
            Stack { name: layer.title(), colour: kernel_colour(layer), shares }
        };
        drawn("cpu", &labels, KernelLayer::ALL.map(part).into())
    };
    let choice = choices(sets, |points, title| vec![(title.to_owned(), chart(points))]);
    Some(html! {
        p.say {
            "Share of all processor time by layer of the kernel, sampled while the points were "
            "measured; idle is shown. What is idle here waits: see the off-CPU waits of a point."
        }
        (choose("cpu", choice, charts)?)
    })
}

fn cpu_share(point: &StudyPoint, layer: KernelLayer) -> Option<Share> {
    let profile = point.profile.as_ref()?;
    let share = profile.layers.iter().find(|one| one.layer == layer)?;
    let hover = format!(
        "{}<br><b>{}</b> {:.1} %<br>{} of {} samples",
        plain(&point.title),
        layer.title(),
        share.pct,
        share.samples,
        profile.samples
    );
    Some(Share { value: share.pct, hover })
}

/// Mean latency by segment of the path.
pub(crate) fn path(sets: &[Panels<'_>], charts: &mut Charts) -> Option<Markup> {
    let both = |points: &[Labelled<'_>], title: &str| {
        let reads = latency_chart(points, |one| one.reads);
        let writes = latency_chart(points, |one| one.writes);
        vec![(format!("{title}: reads"), reads), (format!("{title}: writes"), writes)]
    };
    Some(html! {
        p.say {
            "Share of a request's mean latency by part of its way, from the kernel's block events "
            "in a pass apart from the measured ones. Microseconds are on hover."
        }
        (choose("path", choices(sets, both), charts)?)
    })
}

fn latency_chart(
    points: &[Labelled<'_>],
    of: fn(&SegmentLatency) -> Option<SegmentTimes>,
) -> Option<Chart> {
    let traced = |one: &&Labelled<'_>| {
        one.1
            .latency_by_layer
            .as_ref()
            .is_some_and(|all| all.segments.iter().any(|one| of(one).is_some()))
    };
    let with: Vec<&Labelled<'_>> = points.iter().filter(traced).collect();
    let labels: Vec<_> = with.iter().map(|one| one.0.clone()).collect();
    let part = |segment: PathSegment| {
        let share = |one: &&Labelled<'_>| {
            latency_share(one.1, one.1.latency_by_layer.as_ref()?, segment, of)
        };
        let shares = with.iter().map(share).collect();
        Stack { name: words::segment(segment), colour: segment_colour(segment), shares }
    };
    drawn("path", &labels, PathSegment::ALL.map(part).into())
}

fn latency_share(
    point: &StudyPoint,
    traced: &BlockLatency,
    segment: PathSegment,
    of: fn(&SegmentLatency) -> Option<SegmentTimes>,
) -> Option<Share> {
    let times = of(traced.segment(segment)?)?;
    let hover = format!(
        "{}<br><b>{}</b> mean {}, p99 {}<br>n = {}",
        plain(&point.title),
        words::segment(segment),
        words::value(times.latency_us.mean, "us"),
        words::value(times.latency_us.p99, "us"),
        times.count
    );
    Some(Share { value: times.latency_us.mean, hover })
}

/// A chart without parts that no bar has; nothing without bars.
fn drawn(name: &str, labels: &[(String, String)], parts: Vec<Stack>) -> Option<Chart> {
    let found = parts.into_iter().filter(|part| part.shares.iter().any(Option::is_some));
    let found: Vec<Stack> = found.collect();
    (!found.is_empty()).then(|| stacks(name, labels, found))
}

/// A title and a chart for each workload, where there is something to draw.
fn choices(
    sets: &[Panels<'_>],
    charts: impl Fn(&[Labelled<'_>], &str) -> Vec<(String, Option<Chart>)>,
) -> Vec<(String, Chart)> {
    let mut all = Vec::new();
    for (set, one) in sets.iter().flat_map(|set| set.all().map(move |one| (set, one))) {
        let labelled = labelled(set, one);
        let title = match set.axis {
            Some(axis) => {
                format!("{}, over {}", one.title, axis_words(&axis.factor))
            }
            None => one.title.clone(),
        };
        let title = title.trim_start_matches(", ");
        let found = charts(&labelled, title).into_iter();
        all.extend(found.filter_map(|(title, chart)| Some((title, chart?))));
    }
    all
}

fn labelled<'a>(set: &Panels<'a>, one: &Panel<'a>) -> Vec<Labelled<'a>> {
    let mut all = Vec::new();
    for line in &one.lines {
        for (x, point) in &line.points {
            let look = set.looks[line.look].label.clone();
            let label = match set.axis {
                Some(axis) => match axis.factor.as_str() {
                    "workers" | "files" => format!("{x}"),
                    factor => level_words(factor, &format!("{x}")),
                },
                None if line.points.len() > 1 => point.title.clone(),
                None => String::new(),
            };
            all.push(((look, label), *point));
        }
    }
    all
}

fn choose(name: &str, choice: Vec<(String, Chart)>, charts: &mut Charts) -> Option<Markup> {
    let (titles, specs): (Vec<String>, Vec<Chart>) = choice.into_iter().unzip();
    let height = specs.first()?.height;
    charts.add_choice(name, &specs);
    Some(html! {
        (parts::choice(name, "workload", &titles))
        figure { (place(name, height, "Shares by layer")) }
    })
}
