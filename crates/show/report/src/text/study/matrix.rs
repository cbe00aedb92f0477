//! The matrix of a study for a terminal: rows are curves, columns the levels of the axis.

use iostrata_run::{AxisKind, StudyAxis, StudyDocument, StudyPoint};
use iostrata_stats::{Verdict, Verdicts};

use crate::study::{Panel, PanelLine, Panels, all_panels, axis_words, is_rated};
use crate::text::paper::{Paper, clean, cut, cut_middle, pad, right};
use crate::words;

/// Columns of a figure, of a figure with its unit, of half an interval.
const CELL: usize = 8;
const FIGURE: usize = 18;
const SPREAD: usize = 9;
/// Columns at most for the shape of a curve.
const SHAPE: usize = 16;
/// Rows that are shown at most; the rest is in the report.
const ROWS: usize = 60;

/// Every point: rows are curves, columns the levels of the axis.
pub(super) fn matrix(study: &StudyDocument, paper: &Paper) -> Vec<String> {
    let mut sets = all_panels(study);
    // Of given rates, those are what is done; their response times stand above.
    sets.retain(|set| !set.axis.is_some_and(|axis| is_rated(study, &axis.factor)));
    let (first, rest) = match sets.split_first() {
        Some(parts) => parts,
        None => return Vec::new(),
    };
    let mut lines = Vec::new();
    for set in std::iter::once(first).chain(rest) {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.extend(set_lines(study, set, paper));
    }
    if lines.len() > ROWS {
        let more = lines.len() - ROWS;
        lines.truncate(ROWS);
        lines.push(paper.dim(&format!("  and {more} more lines in the report")));
    }
    let carried: Verdicts = study.points.iter().flat_map(|point| point.verdicts.iter()).collect();
    let why: Vec<&str> = carried.iter().map(Verdict::explain).collect();
    let star = if why.is_empty() { String::new() } else { format!("* {}; ", why.join(", or ")) };
    let marks = format!(
        "~ an interval wider than {} {}; {star}? not known: an interval wider than its value; \
         - not measured",
        paper.plus_minus(),
        words::value(study.precision * 100.0, "percent")
    );
    lines.extend(paper.wrapped(&marks, 2).iter().map(|line| paper.dim(line)));
    lines
}

fn set_lines(study: &StudyDocument, set: &Panels<'_>, paper: &Paper) -> Vec<String> {
    let levels = levels(set);
    let unit = study.points.first().map_or("IOPS", |point| point.unit.as_str());
    let name = set.axis.map(|axis| format!(" over {}", axis_words(&axis.factor)));
    let mut lines = vec![paper.bold(&format!("{}{}", clean(unit), name.unwrap_or_default()))];
    let layout = Layout::of(paper, levels.len());
    if set.axis.is_some() {
        let head: String = levels.iter().map(|x| right(&format!("{x}"), layout.cell)).collect();
        lines.push(paper.dim(&format!("  {}{head}", pad("", layout.label))));
    }
    for panel in set.all() {
        lines.extend(panel_lines(study, set, panel, &levels, &layout, paper));
    }
    lines
}

/// How wide the parts of a row are.
struct Layout {
    label: usize,
    cell: usize,
    has_shape: bool,
}

impl Layout {
    fn of(paper: &Paper, levels: usize) -> Self {
        let all = paper.width.saturating_sub(4);
        let has_shape = all >= 20 + SHAPE + 6 * levels;
        let room = if has_shape { all - SHAPE } else { all };
        let cell = (room.saturating_sub(20) / levels.max(1)).clamp(5, CELL);
        Self { label: room.saturating_sub(cell * levels).clamp(12, 40), cell, has_shape }
    }
}

/// The levels of the axis over all panels.
fn levels(set: &Panels<'_>) -> Vec<f64> {
    let lines = set.all().flat_map(|panel| &panel.lines);
    let mut all: Vec<f64> = lines.flat_map(|line| line.points.iter().map(|(x, _)| *x)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

fn panel_lines(
    study: &StudyDocument,
    set: &Panels<'_>,
    panel: &Panel<'_>,
    levels: &[f64],
    layout: &Layout,
    paper: &Paper,
) -> Vec<String> {
    let mut lines = Vec::new();
    if !panel.title.is_empty() {
        lines.push(paper.dim(&format!("  {}", cut(&clean(&panel.title), paper.width - 2))));
    }
    for line in &panel.lines {
        let label = &set.looks[line.look].label;
        if set.axis.is_some() {
            lines.push(curve_line(study, set, line, label, levels, layout, paper));
        } else {
            let of = |point: &StudyPoint| single_line(study, point, label, line, paper);
            lines.extend(line.points.iter().map(|(_, point)| of(point)));
        }
    }
    lines
}

fn curve_line(
    study: &StudyDocument,
    set: &Panels<'_>,
    line: &PanelLine<'_>,
    label: &str,
    levels: &[f64],
    layout: &Layout,
    paper: &Paper,
) -> String {
    let cell = |x: &f64| {
        let point = line.points.iter().find(|(at, _)| at == x).map(|(_, point)| *point);
        match point {
            Some(point) => marked(study, point, layout.cell, paper),
            None => right("-", layout.cell),
        }
    };
    let cells: String = levels.iter().map(cell).collect();
    let label = pad(&cut_middle(&clean(label), layout.label - 3), layout.label - 2);
    let ids: Vec<&str> = line.points.iter().map(|(_, point)| point.id.as_str()).collect();
    let same = |axis: &&StudyAxis| {
        set.axis.is_some_and(|one| one.factor == axis.factor) && axis.points == ids
    };
    let axis = study.axes.iter().find(same).filter(|_| layout.has_shape);
    let shape = axis.map_or(String::new(), |axis| shape(axis, paper));
    format!("    {label}{cells}  {shape}").trim_end().to_owned()
}

/// A figure with its marks, at the right of its column: `15.3K`, `9.1K~*`.
fn marked(study: &StudyDocument, point: &StudyPoint, width: usize, paper: &Paper) -> String {
    if words::shown(point.value, point.value_ci95, "").why.is_some() {
        return right("?", width);
    }
    let short = words::value(point.value, "").replace(' ', "");
    let wide = is_wide(study, point);
    let marks = match (wide, point.verdicts.is_sound()) {
        (false, true) => "",
        (true, true) => "~",
        (false, false) => "*",
        (true, false) => "~*",
    };
    // Marks hang at the right, so that figures stand below each other.
    let hang = 1;
    let figure = right(&short, width.saturating_sub(hang));
    let rest = pad(marks, hang.max(marks.len()));
    let cut_by = marks.len().saturating_sub(hang);
    let figure: String = figure.chars().skip(cut_by).collect();
    format!("{figure}{}", paper.warn(&rest))
}

/// Whether a point's interval is wider than the precision that the study asked for.
fn is_wide(study: &StudyDocument, point: &StudyPoint) -> bool {
    point
        .value_ci95
        .is_none_or(|[low, high]| (high - low) / 2.0 > study.precision * point.value.abs())
}

/// `collapses from 4`, `flat`.
fn shape(axis: &StudyAxis, paper: &Paper) -> String {
    let word = match axis.kind {
        AxisKind::NoMeasurableDifference => "no difference",
        kind => words::axis_kind(kind),
    };
    let at = axis.at.map_or(String::new(), |x| format!(" at {x}"));
    match axis.kind {
        AxisKind::Collapse => paper.warn(&cut(&format!("{word}{at}"), SHAPE)),
        _ => paper.dim(&cut(&format!("{word}{at}"), SHAPE)),
    }
}

/// A point that lies on no axis, with its interval.
fn single_line(
    study: &StudyDocument,
    point: &StudyPoint,
    label: &str,
    line: &PanelLine<'_>,
    paper: &Paper,
) -> String {
    let name = if line.points.len() > 1 { point.title.as_str() } else { label };
    let shown = words::shown(point.value, point.value_ci95, &point.unit);
    let spread = shown.half.map_or(String::new(), |half| format!("{} {half}", paper.plus_minus()));
    let width = paper.width.saturating_sub(4 + FIGURE + 2 + SPREAD + 3);
    let mark = match (is_wide(study, point), point.verdicts.is_sound()) {
        (false, true) => "",
        (true, true) => "~",
        (false, false) => "*",
        (true, false) => "~*",
    };
    format!(
        "    {}{} {}{}",
        pad(&cut_middle(&clean(name), width.saturating_sub(1)), width),
        paper.bold(&right(&clean(&shown.text), FIGURE)),
        paper.dim(&spread),
        paper.warn(mark)
    )
}
