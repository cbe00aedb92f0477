//! The matrix as small multiples.

use iostrata_run::{StudyDocument, StudyOp, StudyPoint, refusal};
use iostrata_spec::OpKind;
use maud::{Markup, html};

use crate::chart::{
    Bar, Charts, Hover, Mark, PanelTrace, Scale, bars, dash_style, line_colour, panel, reach_of,
};
use crate::html::parts;
use crate::study::{Look, Panel, PanelLine, Panels, axis_words};
use crate::words;

/// The largest top of a panel over the smallest, up to which they share a scale.
const SHARED_SCALE: f64 = 3.0;

/// The section's name.
pub(crate) fn name(set: &Panels<'_>) -> String {
    match set.axis {
        Some(axis) => format!("Over {}", axis_words(&axis.factor)),
        None => "The matrix".to_owned(),
    }
}

/// All panels of one axis, or of none.
pub(crate) fn section(
    study: &StudyDocument,
    set_number: usize,
    set: &Panels<'_>,
    charts: &mut Charts,
) -> Markup {
    let unit = study.points.first().map_or("IOPS", |point| point.unit.as_str());
    let drawn = Drawn { set_number, set, unit, shared: shared_top(set) };
    html! {
        p.say {
            @if set.axis.is_some() {
                (unit) " by level, one panel for each workload; whiskers are 95 % intervals. "
                @if drawn.shared.is_some() { "The panels share one scale. " }
                @else { "Each panel has its own scale. " }
            } @else {
                "One panel for each workload; whiskers are 95 % intervals. "
            }
            "On hover: the figure with its interval, n and cautions."
        }
        @if set.axis.is_some() { (legend(&set.looks, set_number)) }
        div.panels {
            @for (n, one) in set.shown.iter().enumerate() { (drawn.value(n, one, charts)) }
        }
        @if !set.folded.is_empty() {
            details {
                summary { (set.folded.len()) " panels of further levels" }
                div.panels {
                    @for (n, one) in set.folded.iter().enumerate() {
                        (drawn.value(set.shown.len() + n, one, charts))
                    }
                }
            }
        }
        @if set.axis.is_some() {
            details {
                summary { "Mean latency in the same panels" }
                p.say {
                    "Of the writes, where there are any, else of the reads; logarithmic. "
                    "Percentiles are in the table of latencies."
                }
                div.panels {
                    @for (n, one) in set.all().enumerate() { (drawn.latency(n, one, charts)) }
                }
            }
        }
    }
}

/// Names of the lines with colour and dash, and the switch between scales.
fn legend(looks: &[Look], set_number: usize) -> Markup {
    html! {
        div.legend {
            ul.layers {
                @for look in looks {
                    li {
                        span.stroke style={
                            "border-top:3px " (dash_style(look.dash)) " " (line_colour(look.colour))
                        } {}
                        (look.label)
                    }
                }
            }
            label.switch hidden {
                input type="checkbox" data-log={ "panel-" (set_number) "-" };
                " logarithmic"
            }
        }
    }
}

/// What all panels of a set share while they are drawn.
struct Drawn<'a> {
    set_number: usize,
    set: &'a Panels<'a>,
    unit: &'a str,
    shared: Option<f64>,
}

impl Drawn<'_> {
    /// Throughput.
    fn value(&self, n: usize, one: &Panel<'_>, charts: &mut Charts) -> Markup {
        let name = format!("panel-{}-{n}", self.set_number);
        let Some(axis) = self.set.axis.filter(|_| has_course(one)) else {
            return self.rows(&name, one, charts);
        };
        let line = |line: &PanelLine<'_>| {
            self.trace(line, |x, point| {
                let known = refusal(point.value, point.value_ci95).is_none();
                let ci95 = point.value_ci95;
                known.then(|| Mark { x, y: point.value, ci95, hover: hover(point) })
            })
        };
        let lines: Vec<PanelTrace> = one.lines.iter().map(line).collect();
        let x_title = axis_words(&axis.factor);
        let scale = self.shared.map_or(Scale::Own, Scale::Shared);
        let chart = panel(&name, &x_title, self.unit, &lines, scale);
        parts::figure(charts, &chart, &first_upper(&one.title), "")
    }

    /// Mean latency of the main requests.
    fn latency(&self, n: usize, one: &Panel<'_>, charts: &mut Charts) -> Markup {
        let Some(axis) = self.set.axis.filter(|_| has_course(one)) else { return html! {} };
        let line = |line: &PanelLine<'_>| {
            self.trace(line, |x, point| {
                let (what, op) = main_op(point)?;
                let (y, ci95) = (op.latency_us.mean, op.latency_us_mean_ci95);
                let title = format!("{}, mean of {what}", point.title);
                let hover = Hover {
                    title: &title,
                    value: y,
                    unit: "us",
                    ci95,
                    n: op.iops_n,
                    verdicts: None,
                };
                Some(Mark { x, y, ci95, hover: hover.text() })
            })
        };
        let lines: Vec<PanelTrace> = one.lines.iter().map(line).collect();
        let name = format!("latency-{}-{n}", self.set_number);
        let x_title = axis_words(&axis.factor);
        let chart = panel(&name, &x_title, "mean latency, us", &lines, Scale::Logarithmic);
        parts::figure(charts, &chart, &first_upper(&one.title), "")
    }

    fn trace(
        &self,
        line: &PanelLine<'_>,
        mark: impl Fn(f64, &StudyPoint) -> Option<Mark>,
    ) -> PanelTrace {
        let look = &self.set.looks[line.look];
        PanelTrace {
            name: look.label.clone(),
            colour: line_colour(look.colour),
            dash: look.dash,
            is_fit: false,
            marks: line.points.iter().filter_map(|(x, point)| mark(*x, point)).collect(),
        }
    }

    /// Without an axis: one bar for each combination.
    fn rows(&self, name: &str, one: &Panel<'_>, charts: &mut Charts) -> Markup {
        let row = |line: &PanelLine<'_>, point: &StudyPoint| {
            let look = &self.set.looks[line.look];
            let title =
                if line.points.len() > 1 { point.title.clone() } else { look.label.clone() };
            (title, line_colour(look.colour), point.clone())
        };
        let all: Vec<_> = one
            .lines
            .iter()
            .flat_map(|line| line.points.iter().map(move |(_, point)| row(line, point)))
            .collect();
        let rows: Vec<Bar<'_>> = all
            .iter()
            .map(|(title, colour, point)| Bar {
                title,
                value: point.value,
                ci95: point.value_ci95,
                n: point.value_n,
                colour,
                verdicts: Some(&point.verdicts),
            })
            .collect();
        let title = first_upper(&one.title);
        if let [only] = rows.as_slice() {
            // A single bar compares nothing.
            let (title, point) =
                if title.is_empty() { (only.title, "") } else { (&*title, only.title) };
            return html! {
                p {
                    b { (title) } " " (point) " "
                    span title=(words::exact(only.value)) {
                        (parts::value(only.value, only.ci95, self.unit))
                    }
                    @if only.ci95.is_none() { ", no interval" }
                }
            };
        }
        let chart = bars(name, self.unit, self.unit, &rows);
        parts::figure(charts, &chart, &title, "")
    }
}

/// Whether some line of a panel has points at several places of the axis.
fn has_course(one: &Panel<'_>) -> bool {
    one.lines.iter().any(|line| line.points.iter().any(|(x, _)| *x != line.points[0].0))
}

/// The scale that all panels share, if none would be a flat line on it.
fn shared_top(set: &Panels<'_>) -> Option<f64> {
    let top = |one: &Panel<'_>| {
        let figures: Vec<_> = one.points().map(|point| (point.value, point.value_ci95)).collect();
        reach_of(figures.into_iter())[1]
    };
    let tops: Vec<f64> = set.all().map(top).collect();
    let least = tops.iter().copied().fold(f64::INFINITY, f64::min);
    let most = tops.iter().copied().fold(0.0, f64::max);
    (most <= least * SHARED_SCALE).then_some(most)
}

/// The requests that a point is about: its writes, else its reads.
fn main_op(point: &StudyPoint) -> Option<(&'static str, &StudyOp)> {
    let of = |kind: OpKind| Some((kind.plural(), point.ops[kind].as_ref()?));
    of(OpKind::Write).or_else(|| of(OpKind::Read))
}

fn hover(point: &StudyPoint) -> String {
    Hover {
        title: &point.title,
        value: point.value,
        unit: &point.unit,
        ci95: point.value_ci95,
        n: point.value_n,
        verdicts: Some(&point.verdicts),
    }
    .text()
}

fn first_upper(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
