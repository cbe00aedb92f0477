//! The matrix: small multiples for the page, rows of curves over the levels for a terminal.
//!
//! Method: what lies between the device and the requests (file system, method, mount options) makes
//! lines, as long as they can be distinguished; the workload (requests, block size) and every
//! further factor make panels. Invariant: a point is in a panel with its own levels, and nowhere
//! twice for the same axis.

use std::collections::{BTreeMap, BTreeSet};

use iostrata_plan::OpKind;
use iostrata_plan::study::FactorLevels;
use iostrata_run::{AxisKind, StudyAxis, StudyDocument, StudyOp, StudyPoint, refusal};
use iostrata_stats::{Verdict, Verdicts};

use super::levels::{Naming, axis_words, is_workload, level_at, number, place, varying};
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

/// All panels of one axis, or of none; for a terminal with what its marks mean, which is stated
/// once.
pub(super) fn section(
    study: &StudyDocument,
    number: usize,
    set: &Panels<'_>,
    has_marks: bool,
) -> Blocks {
    let unit = study.points.first().map_or("IOPS", |point| point.unit.as_str());
    let drawn = PanelGrid { number, set, unit, shared: shared_top(set) };
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
    let drawn = PanelGrid { number: 0, set, unit, shared: shared_top(set) };
    let charts = set.shown.iter().enumerate().filter_map(|(n, one)| drawn.value(n, one).ok());
    drawn.legend_with(charts.collect())
}

/// What all panels of a set share while they are drawn.
struct PanelGrid<'a> {
    number: usize,
    set: &'a Panels<'a>,
    unit: &'a str,
    shared: Option<f64>,
}

impl PanelGrid<'_> {
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

    /// Throughput; a single figure is written as text.
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

/// Whether a point's interval is wider than the precision that the study requires.
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

/// Most lines of a panel.
const LINES_MAX: usize = 6;
/// Most panels that are shown openly when there are others of the same kind.
const OPEN_MAX: usize = 6;
/// Most rows of a panel without an axis.
const ROWS_MAX: usize = 12;
/// How a line looks, the same in every panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// Its levels in words.
    pub(super) label: String,
    /// Which colour: the level of the first factor of the lines.
    pub(super) colour: usize,
    /// Which dash: the levels of the others.
    pub(super) dash: usize,
}

/// One line of a panel, or one group of its rows.
pub(super) struct PanelLine<'a> {
    /// Index into the looks.
    pub(super) look: usize,
    /// The points by rising level, with the level as a number; 0 without an axis.
    pub(super) points: Vec<(f64, &'a StudyPoint)>,
}

/// One panel.
pub(super) struct Panel<'a> {
    /// The levels that its points share, in words; empty where there is one panel only.
    pub(super) title: String,
    /// Its lines in the order of the looks.
    pub(super) lines: Vec<PanelLine<'a>>,
}

impl<'a> Panel<'a> {
    /// Its points, line by line.
    pub(super) fn points(&self) -> impl Iterator<Item = &'a StudyPoint> + '_ {
        self.lines.iter().flat_map(|line| line.points.iter().map(|(_, point)| *point))
    }
}

/// Panels that share an axis.
pub(super) struct Panels<'a> {
    /// The axis; absent for points that lie on none.
    pub(super) axis: Option<&'a FactorLevels>,
    /// How the lines look.
    pub(super) looks: Vec<Look>,
    /// The panels to be shown at once.
    pub(super) shown: Vec<Panel<'a>>,
    /// Panels of further levels of another axis.
    pub(super) folded: Vec<Panel<'a>>,
    /// What titles and lines leave out, since most points have it.
    pub(super) usual: Option<String>,
}

impl<'a> Panels<'a> {
    /// Every panel.
    pub(super) fn all(&self) -> impl Iterator<Item = &Panel<'a>> {
        self.shown.iter().chain(&self.folded)
    }
}

/// Every set of panels: one per axis, the axis with most points first, then the points that lie on
/// none.
pub(super) fn all_panels(study: &StudyDocument) -> Vec<Panels<'_>> {
    let axes = axes(study);
    let mut all = Vec::new();
    let mut rest: Vec<&StudyPoint> = study.points.iter().collect();
    for axis in &axes {
        let points = along(study, axis);
        rest.retain(|point| !points.iter().any(|one| one.id == point.id));
        if !points.is_empty() {
            all.push(panels(study, &points, Some(axis), &axes));
        }
    }
    all.sort_by_key(|one| {
        std::cmp::Reverse(one.all().map(|panel| panel.points().count()).sum::<usize>())
    });
    if !rest.is_empty() {
        all.push(panels(study, &rest, None, &axes));
    }
    all
}

/// The axes that the document speaks of, those of the workload aside; without any, factors of at
/// least three numbers.
fn axes(study: &StudyDocument) -> Vec<&FactorLevels> {
    let spoken_of = |factor: &&FactorLevels| {
        let of_load = !is_workload(&factor.factor);
        let has_curves = study.axes.iter().any(|axis| axis.factor == factor.factor);
        of_load && has_curves && factor.levels.len() > 1
    };
    let found: Vec<&FactorLevels> = study.factors.iter().filter(spoken_of).collect();
    if !found.is_empty() {
        return found;
    }
    study.factors.iter().filter(|factor| factor.is_curve()).collect()
}

/// A point's levels of every factor but one.
fn others(study: &StudyDocument, point: &StudyPoint, axis: &FactorLevels) -> Vec<usize> {
    let others = study.factors.iter().filter(|factor| factor.factor != axis.factor);
    others.map(|factor| place(point, factor)).collect()
}

/// The points that differ from another one in nothing but this axis.
fn along<'a>(study: &'a StudyDocument, axis: &FactorLevels) -> Vec<&'a StudyPoint> {
    let on_it = |point: &&StudyPoint| x_of(point, axis).is_some();
    let mut levels: BTreeMap<Vec<usize>, BTreeSet<usize>> = BTreeMap::new();
    for point in study.points.iter().filter(on_it) {
        levels.entry(others(study, point, axis)).or_default().insert(place(point, axis));
    }
    let has_neighbours = |point: &&StudyPoint| {
        levels.get(&others(study, point, axis)).is_some_and(|levels| levels.len() > 1)
    };
    study.points.iter().filter(on_it).filter(has_neighbours).collect()
}

fn x_of(point: &StudyPoint, axis: &FactorLevels) -> Option<f64> {
    let level = super::levels::level(&point.levels, &axis.factor)?;
    number(&axis.factor, level)
}

fn panels<'a>(
    study: &'a StudyDocument,
    points: &[&'a StudyPoint],
    axis: Option<&'a FactorLevels>,
    axes: &[&FactorLevels],
) -> Panels<'a> {
    let is = |one: &FactorLevels, other: &FactorLevels| one.factor == other.factor;
    let free: Vec<&FactorLevels> = varying(study, points)
        .into_iter()
        .filter(|factor| !axis.is_some_and(|axis| is(axis, factor)))
        .collect();
    let lines_max = if axis.is_some() { LINES_MAX } else { ROWS_MAX };
    let by_line = line_factors(points, &free, axes, lines_max);
    let by_panel: Vec<&FactorLevels> =
        free.into_iter().filter(|factor| !by_line.iter().any(|line| is(line, factor))).collect();
    let levels: Vec<_> = points.iter().map(|point| point.levels.as_slice()).collect();
    let naming = [&by_line, &by_panel].map(|factors| Naming::of(&levels, factors));
    let looks = looks(points, &by_line, &naming[0]);
    let mut grouped: BTreeMap<Vec<usize>, Vec<&StudyPoint>> = BTreeMap::new();
    for point in points {
        grouped.entry(places(point, &by_panel)).or_default().push(point);
    }
    let usual = usual_places(points, &by_panel, axes);
    let (mut shown, mut folded) = (Vec::new(), Vec::new());
    let many = grouped.len() > OPEN_MAX;
    for (key, points) in grouped {
        let panel = panel(&points, axis, &by_line, &naming[1], &looks);
        let is_usual =
            key.iter().zip(&usual).all(|(place, usual)| usual.is_none_or(|u| u == *place));
        if many && !is_usual { folded.push(panel) } else { shown.push(panel) }
    }
    let looks = looks.into_iter().map(|(_, look)| look).collect();
    let usual: Vec<String> = naming.iter().filter_map(Naming::says).collect();
    let usual = (!usual.is_empty()).then(|| usual.join(" "));
    Panels { axis, looks, shown, folded, usual }
}

fn places(point: &StudyPoint, factors: &[&FactorLevels]) -> Vec<usize> {
    factors.iter().map(|factor| place(point, factor)).collect()
}

/// The factors that make lines: those of the system first, until there are too many lines.
fn line_factors<'a>(
    points: &[&StudyPoint],
    free: &[&'a FactorLevels],
    axes: &[&FactorLevels],
    most: usize,
) -> Vec<&'a FactorLevels> {
    let of_system = |factor: &&&FactorLevels| {
        let name = factor.factor.as_str();
        !is_workload(name) && !axes.iter().any(|axis| axis.factor == name)
    };
    let mut lines: Vec<&FactorLevels> = Vec::new();
    for factor in free.iter().filter(of_system) {
        let mut tried = lines.clone();
        tried.push(factor);
        let mut combinations: Vec<Vec<usize>> =
            points.iter().map(|point| places(point, &tried)).collect();
        combinations.sort();
        combinations.dedup();
        if combinations.len() <= most {
            lines = tried;
        }
    }
    lines
}

/// The combinations that make lines, each with its look.
fn looks(
    points: &[&StudyPoint],
    by_line: &[&FactorLevels],
    naming: &Naming<'_>,
) -> Vec<(Vec<usize>, Look)> {
    let mut found: BTreeMap<Vec<usize>, &StudyPoint> = BTreeMap::new();
    for point in points {
        found.entry(places(point, by_line)).or_insert(point);
    }
    let mut tails: Vec<Vec<usize>> = found.keys().map(|key| tail(key)).collect();
    tails.sort();
    tails.dedup();
    let look = |(key, point): (Vec<usize>, &StudyPoint)| {
        let label = naming.name(&point.levels);
        let label = if label.is_empty() { "all".to_owned() } else { label };
        let colour = key.first().copied().unwrap_or(0);
        let dash = tails.iter().position(|one| *one == tail(&key)).unwrap_or(0);
        (key, Look { label, colour, dash })
    };
    found.into_iter().map(look).collect()
}

fn tail(key: &[usize]) -> Vec<usize> {
    key.iter().skip(1).copied().collect()
}

/// Of every other axis the level that most points have: where it differs, a panel is folded.
fn usual_places(
    points: &[&StudyPoint],
    by_panel: &[&FactorLevels],
    axes: &[&FactorLevels],
) -> Vec<Option<usize>> {
    let usual = |factor: &&FactorLevels| {
        axes.iter().find(|axis| axis.factor == factor.factor)?;
        let mut count: BTreeMap<usize, usize> = BTreeMap::new();
        for point in points {
            *count.entry(place(point, factor)).or_default() += 1;
        }
        count
            .into_iter()
            .max_by_key(|(place, count)| (*count, std::cmp::Reverse(*place)))
            .map(|most| most.0)
    };
    by_panel.iter().map(usual).collect()
}

fn panel<'a>(
    points: &[&'a StudyPoint],
    axis: Option<&FactorLevels>,
    by_line: &[&FactorLevels],
    by_panel: &Naming<'_>,
    looks: &[(Vec<usize>, Look)],
) -> Panel<'a> {
    let mut lines = Vec::new();
    for (look, (key, _)) in looks.iter().enumerate() {
        let mut on: Vec<(f64, &StudyPoint)> = points
            .iter()
            .filter(|point| places(point, by_line) == *key)
            .map(|point| (axis.and_then(|axis| x_of(point, axis)).unwrap_or(0.0), *point))
            .collect();
        on.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !on.is_empty() {
            lines.push(PanelLine { look, points: on });
        }
    }
    // A raw device has no files: the title takes them from a point that has.
    let fullest = points.iter().max_by_key(|point| point.levels.len());
    let title = fullest.map_or(String::new(), |point| by_panel.name(&point.levels));
    Panel { title, lines }
}
