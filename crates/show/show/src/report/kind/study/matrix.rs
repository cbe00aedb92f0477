//! The matrix: small multiples for the page, rows of curves over the levels for a terminal.

use iostrata_plan::OpKind;
use iostrata_run::{AxisKind, StudyAxis, StudyDocument, StudyOp, StudyPoint, refusal};
use iostrata_stats::{Verdict, Verdicts};

use super::levels::{axis_words, level_at};
use super::panels::{Panel, PanelLine, Panels};
use super::then::is_rated;
use crate::report::cell::{Cell, Span, Text, Tone, empty, figure, text, verdicts};
use crate::report::chart::{
    Bar, Chart, Course, Hover, Line, Lines, Mark, Plot, Scale, Stroke, reach,
};
use crate::report::colour::Colour;
use crate::report::document::{self, Block, Blocks, On, Style, Table};
use crate::report::words;

/// The largest top of a panel over the smallest, up to which they share a scale.
pub(super) const SHARED_SCALE: f64 = 3.0;
/// Rows that a terminal shows at most; the rest is in the report.
const ROWS: usize = 30;

/// The section's name.
pub(super) fn name(study: &StudyDocument, set: &Panels<'_>) -> String {
    let unit = study.points.first().map_or("IOPS", |point| point.unit.as_str());
    match set.axis {
        Some(axis) => format!("{unit} over {}", axis_words(&axis.factor)),
        None => "The matrix".to_owned(),
    }
}

/// Whether the axis is one of given rates.
pub(super) fn is_given(study: &StudyDocument, set: &Panels<'_>) -> bool {
    set.axis.is_some_and(|axis| is_rated(study, &axis.factor))
}

/// All panels of one axis, or of none; for a terminal with what its marks mean, which is said once.
pub(super) fn section(
    study: &StudyDocument,
    number: usize,
    set: &Panels<'_>,
    has_marks: bool,
) -> Blocks {
    let unit = study.points.first().map_or("IOPS", |point| point.unit.as_str());
    let drawn = Drawn { number, set, unit, shared: shared_top(set) };
    let page = drawn.page();
    let mut body = Blocks::new();
    if let Some(usual) = &set.usual {
        for on in [On::PAGE, On::TERMINAL] {
            body.add(on, Block::Text(Style::Note(Tone::Plain), usual.as_str().into()));
        }
    }
    // Where requests come at a given rate, that is what is done, too: no picture of anything.
    if is_given(study, set) {
        body.add(On::PAGE, Block::Folded("What was done of each rate".to_owned(), page));
        return body;
    }
    body.0.extend(page.0);
    body.table(On::TERMINAL, table(study, set));
    if has_marks {
        body.add(On::TERMINAL, Block::Text(Style::Note(Tone::Plain), marks(study).into()));
    }
    body
}

/// The panels of one axis, or of none, that are shown at once.
pub(super) fn picture(study: &StudyDocument, set: &Panels<'_>) -> document::Panels {
    let unit = study.points.first().map_or("IOPS", |point| point.unit.as_str());
    let drawn = Drawn { number: 0, set, unit, shared: shared_top(set) };
    let charts = set.shown.iter().enumerate().filter_map(|(n, one)| drawn.value(n, one).ok());
    drawn.legend_with(charts.collect())
}

/// What all panels of a set share while they are drawn.
struct Drawn<'a> {
    number: usize,
    set: &'a Panels<'a>,
    unit: &'a str,
    shared: Option<f64>,
}

impl Drawn<'_> {
    fn page(&self) -> Blocks {
        let mut body = Blocks::new();
        let said = match (self.set.axis.is_some(), self.shared.is_some()) {
            (false, _) => "One panel for each workload; whiskers are 95 % intervals.".to_owned(),
            (true, shared) => format!(
                "{} by level, one panel for each workload; whiskers are 95 % intervals. {}",
                self.unit,
                if shared {
                    "The panels share one scale."
                } else {
                    "Each panel has its own scale."
                }
            ),
        };
        let hover = " On hover: the figure with its interval, n and cautions.";
        body.add(On::PAGE, Block::Text(Style::Say, (said + hover).into()));
        let values = |from: usize, panels: &[Panel<'_>]| -> (Vec<Chart>, Vec<Text>) {
            let (mut charts, mut alone) = (Vec::new(), Vec::new());
            for (n, one) in panels.iter().enumerate() {
                match self.value(from + n, one) {
                    Ok(chart) => charts.push(chart),
                    Err(said) => alone.push(said),
                }
            }
            (charts, alone)
        };
        let put = |body: &mut Blocks, from: usize, panels: &[Panel<'_>]| {
            let (charts, alone) = values(from, panels);
            body.add(On::PAGE, Block::Panels(self.legend_with(charts)));
            for said in alone {
                body.add(On::PAGE, Block::Text(Style::Plain, said));
            }
        };
        put(&mut body, 0, &self.set.shown);
        if !self.set.folded.is_empty() {
            let mut folded = Blocks::new();
            put(&mut folded, self.set.shown.len(), &self.set.folded);
            let name = format!("{} panels of further levels", self.set.folded.len());
            body.add(On::PAGE, Block::Folded(name, folded));
        }
        let latencies = self.set.all().enumerate().filter_map(|(n, one)| self.latency(n, one));
        let latencies: Vec<Chart> = latencies.collect();
        if !latencies.is_empty() {
            let mut folded = Blocks::new();
            let say = "Of the writes, where there are any, else of the reads; logarithmic. \
                       Percentiles are in the table of latencies.";
            folded.add(On::PAGE, Block::Text(Style::Say, say.into()));
            let (legend, charts) = (self.legend(), latencies);
            folded.add(
                On::PAGE,
                Block::Panels(document::Panels { legend, charts, has_switch: false }),
            );
            body.add(On::PAGE, Block::Folded("Mean latency in the same panels".to_owned(), folded));
        }
        body
    }

    /// Charts with the legend of their lines, if they have any.
    fn legend_with(&self, charts: Vec<Chart>) -> document::Panels {
        let has_switch = charts.iter().any(|chart| matches!(chart.plot, Plot::Lines(_)));
        let legend = if has_switch { self.legend() } else { Vec::new() };
        document::Panels { legend, charts, has_switch }
    }

    fn stroke(&self, look: usize) -> Stroke {
        let look = &self.set.looks[look];
        Stroke { colour: Colour::Line(look.colour), dash: look.dash, faint: 1.0 }
    }

    /// Names of the lines with colour and dash.
    fn legend(&self) -> Vec<(Stroke, String)> {
        let all = self.set.looks.iter().enumerate();
        all.map(|(n, look)| (self.stroke(n), look.label.clone())).collect()
    }

    /// Throughput; a figure that is alone is said.
    fn value(&self, n: usize, one: &Panel<'_>) -> Result<Chart, Text> {
        let name = format!("panel-{}-{n}", self.number);
        let Some(axis) = self.set.axis.filter(|_| has_course(one)) else {
            return self.rows(&name, one);
        };
        let line = |line: &PanelLine<'_>| self.line(line, |x, point| Some(hover(point)?.mark(x)));
        let lines = one.lines.iter().map(line).collect();
        let scale = self.shared.map_or(Scale::Linear, Scale::Shared);
        let lines = Lines::new(axis_words(&axis.factor), self.unit, lines).panel(scale);
        Ok(Chart::new(name, words::capital(&one.title), Plot::Lines(lines)))
    }

    /// Mean latency of the main requests.
    fn latency(&self, n: usize, one: &Panel<'_>) -> Option<Chart> {
        let axis = self.set.axis.filter(|_| has_course(one))?;
        let line = |line: &PanelLine<'_>| {
            self.line(line, |x, point| {
                let (what, op) = main_op(point).filter(|(_, op)| op.iops > 0.0)?;
                let title = format!("{}, mean of {what}", point.title);
                let (value, ci95) = (op.latency_us.mean, op.latency_us_mean_ci95);
                let n = op.iops_n;
                Some(Hover { title: &title, value, unit: "us", ci95, n, verdicts: None }.mark(x))
            })
        };
        let lines = one.lines.iter().map(line).collect();
        let x = axis_words(&axis.factor);
        let lines = Lines::new(x, "mean latency, us", lines).panel(Scale::Logarithmic(None));
        let name = format!("latency-{}-{n}", self.number);
        Some(Chart::new(name, words::capital(&one.title), Plot::Lines(lines)))
    }

    fn line(&self, line: &PanelLine<'_>, mark: impl Fn(f64, &StudyPoint) -> Option<Mark>) -> Line {
        let marks = line.points.iter().filter_map(|(x, point)| mark(*x, point)).collect();
        let course = Course::Points(marks);
        Line { name: String::new(), stroke: self.stroke(line.look), course, marked: None }
    }

    /// Without an axis: one bar for each combination.
    fn rows(&self, name: &str, one: &Panel<'_>) -> Result<Chart, Text> {
        let mut bars: Vec<Bar> = Vec::new();
        for line in &one.lines {
            for (_, point) in &line.points {
                let label = &self.set.looks[line.look].label;
                let title = if line.points.len() > 1 { &point.title } else { label };
                let Some(hover) = hover(point) else { continue };
                let hover = Hover { title, ..hover };
                bars.push(Bar::of(&hover, self.stroke(line.look).colour));
            }
        }
        let title = words::capital(&one.title);
        let mut points = one.points();
        if let (Some(only), None) = (points.next(), points.next()) {
            // A single bar compares nothing.
            let name = if title.is_empty() { only.title.clone() } else { title };
            let shown = words::shown(only.value, only.value_ci95, self.unit);
            let half = shown.half.map_or(", no interval".to_owned(), |half| format!(" {half}"));
            let said = Text::default().strong(name).plain(format!(" {}", shown.text));
            return Err(said.with(Span::Muted(half)));
        }
        if bars.is_empty() {
            return Err(Text::default().strong(title).plain(" no figure is known"));
        }
        Ok(Chart::new(name, title, Plot::Bars(self.unit.to_owned(), bars)))
    }
}

/// Whether some line of a panel has points at several places of the axis.
fn has_course(one: &Panel<'_>) -> bool {
    one.lines.iter().any(|line| line.points.iter().any(|(x, _)| *x != line.points[0].0))
}

/// The scale that all panels share, if none would be a flat line on it.
fn shared_top(set: &Panels<'_>) -> Option<f64> {
    let top = |one: &Panel<'_>| {
        let known = one.points().filter_map(hover);
        let figures: Vec<_> = known.map(|hover| (hover.value, hover.ci95)).collect();
        reach(&figures)[1]
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

/// A point's figure on hover, where it is known: what is not is never drawn.
pub(super) fn hover(point: &StudyPoint) -> Option<Hover<'_>> {
    let hover = Hover {
        title: &point.title,
        value: point.value,
        unit: &point.unit,
        ci95: point.value_ci95,
        n: point.value_n,
        verdicts: Some(&point.verdicts),
    };
    refusal(point.value, point.value_ci95).is_none().then_some(hover)
}

/// Every point: rows are curves, columns the levels of the axis.
fn table(study: &StudyDocument, set: &Panels<'_>) -> Table {
    let Some(axis) = set.axis else { return single(study, set) };
    let lines = set.all().flat_map(|panel| &panel.lines);
    let mut levels: Vec<f64> = lines.flat_map(|line| line.points.iter().map(|(x, _)| *x)).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let rows = set
        .all()
        .flat_map(|panel| panel.lines.iter().enumerate().map(move |(n, line)| (panel, n, line)));
    let mut table = Table::of(rows).words("", |(_, _, line)| text(&set.looks[line.look].label));
    for x in levels {
        table = table.numbers(&level_at(study, &axis.factor, x), |(_, _, line)| {
            let at = line.points.iter().find(|(at, _)| *at == x);
            at.map_or_else(|| text("-").toned(Tone::Dim), |(_, point)| marked(study, point))
        });
    }
    table
        .words("", |(_, _, line)| {
            let ids: Vec<&str> = line.points.iter().map(|(_, point)| point.id.as_str()).collect();
            let same = |one: &&StudyAxis| one.factor == axis.factor && one.points == ids;
            study.axes.iter().find(same).map_or_else(empty, |axis| shape(study, axis))
        })
        .spare()
        .each(|(panel, n, _), row| {
            row.group = Some(panel.title.clone()).filter(|title| *n == 0 && !title.is_empty());
        })
        .most(ROWS)
        .into()
}

/// A figure with its marks: `15.3K`, `9.1K~*`.
fn marked(study: &StudyDocument, point: &StudyPoint) -> Cell {
    if words::shown(point.value, point.value_ci95, "").why.is_some() {
        return text("?").toned(Tone::Warn);
    }
    let short = words::value(point.value, "").replace(' ', "");
    let wide = if is_wide(study, point) { "~" } else { "" };
    let star = if point.verdicts.is_sound() { "" } else { "*" };
    let tone = if wide.is_empty() && star.is_empty() { Tone::Plain } else { Tone::Warn };
    text(format!("{short}{wide}{star}")).toned(tone)
}

/// Whether a point's interval is wider than the precision that the study asked for.
pub(super) fn is_wide(study: &StudyDocument, point: &StudyPoint) -> bool {
    let wide = |[low, high]: [f64; 2]| (high - low) / 2.0 > study.precision * point.value.abs();
    point.value_ci95.is_none_or(wide)
}

/// `collapses at 4`, `flat`.
fn shape(study: &StudyDocument, axis: &StudyAxis) -> Cell {
    let word = match axis.kind {
        AxisKind::NoMeasurableDifference => "no difference",
        kind => words::axis_kind(kind),
    };
    let at = axis.at.map(|x| format!(" at {}", level_at(study, &axis.factor, x)));
    let at = at.unwrap_or_default();
    let tone = if axis.kind == AxisKind::Collapse { Tone::Warn } else { Tone::Dim };
    text(format!("{word}{at}")).toned(tone)
}

/// Points that lie on no axis.
fn single(study: &StudyDocument, set: &Panels<'_>) -> Table {
    let mut rows = Vec::new();
    for panel in set.all() {
        let mut group = Some(&panel.title).filter(|title| !title.is_empty());
        for line in &panel.lines {
            for (_, point) in &line.points {
                let label = &set.looks[line.look].label;
                let name = if line.points.len() > 1 { &point.title } else { label };
                rows.push((group.take(), name, *point));
            }
        }
    }
    let wide = |point: &StudyPoint| if is_wide(study, point) { "~" } else { "" };
    Table::of(rows)
        .words("", |(_, name, _)| text(*name))
        .numbers("", |(_, _, p)| figure(p.value, p.value_ci95, p.value_n, &p.unit))
        .words("", |(_, _, point)| text(wide(point)).toned(Tone::Warn))
        .words("", |(_, _, point)| verdicts(&point.verdicts))
        .each(|(group, ..), row| row.group = group.cloned())
        .most(ROWS)
        .into()
}

/// What the marks mean.
fn marks(study: &StudyDocument) -> String {
    let carried: Verdicts = study.points.iter().flat_map(|point| point.verdicts.iter()).collect();
    let why: Vec<&str> = carried.iter().map(Verdict::explain).collect();
    let star = if why.is_empty() { String::new() } else { format!("* {}; ", why.join(", or ")) };
    format!(
        "~ an interval wider than \u{b1} {}; {star}? not known: an interval wider than its value; \
         - not measured",
        words::value(study.precision * 100.0, "percent")
    )
}
