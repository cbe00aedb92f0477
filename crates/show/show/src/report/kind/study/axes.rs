//! What becomes of throughput along each axis.

use iostrata_run::{AxisKind, StudyAxis, StudyDocument};

use super::levels::{axis_words, is_workload, level_at, level_words, listed};
use crate::report::cell::{Cell, Span, Text, Tone, empty, ranged, text};
use crate::report::chart::{Chart, Course, Line, Lines, Mark, Plot, Scale, solid};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, On, Table};
use crate::report::words;

/// Curves that are listed openly, all of them.
const ROWS_OPEN: usize = 12;

/// Every curve; nothing without an axis.
pub(super) fn section(study: &StudyDocument) -> Option<Blocks> {
    if study.axes.is_empty() {
        return None;
    }
    // Axes of load first; what becomes of larger requests is no question of scaling.
    let mut all: Vec<&StudyAxis> = study.axes.iter().collect();
    all.sort_by_key(|axis| is_workload(&axis.factor));
    let mut body = Blocks::new();
    let drawn = all.iter().enumerate().filter_map(|(n, axis)| {
        let name = format!("{}: {}", title(axis), words::axis_kind(axis.kind));
        Some((name, vec![chart(n, study, axis)?]))
    });
    let drawn: Vec<(String, Vec<Chart>)> = drawn.collect();
    if !drawn.is_empty() {
        body.add(On::PAGE, Block::Choice("curve", drawn));
    }
    if all.len() <= ROWS_OPEN {
        body.table(On::FILES, rows(study, &all));
    } else {
        let has_fallen =
            |axis: &&StudyAxis| axis.kind == AxisKind::Collapse && !is_workload(&axis.factor);
        let fallen: Vec<&StudyAxis> = all.iter().copied().filter(has_fallen).collect();
        if !fallen.is_empty() {
            body.title(On::PAGE, "Where more does less").table(On::PAGE, rows(study, &fallen));
        }
        body.folded(
            On::FILES,
            format!("All {} curves as a table", all.len()),
            Block::Table(rows(study, &all)),
        );
    }
    Some(body)
}

fn chart(n: usize, study: &StudyDocument, axis: &StudyAxis) -> Option<Chart> {
    let found = axis.points.iter().zip(&axis.x).filter_map(|(id, x)| {
        let point = study.points.iter().find(|point| point.id == *id)?;
        Some(super::matrix::hover(point)?.mark(*x))
    });
    let marks: Vec<Mark> = found.collect();
    if marks.is_empty() {
        return None;
    }
    let line =
        |colour, course| Line { name: String::new(), stroke: solid(colour), course, marked: None };
    let lines = vec![line(Colour::Line(0), Course::Points(marks))];
    let unit = study.points.first().map_or("IOPS", |point| point.unit.as_str());
    let lines = Lines::new(axis_words(&axis.factor), unit, lines).panel(Scale::Linear);
    Some(Chart::new(format!("axis-{n}"), "", Plot::Lines(lines)))
}

fn title(axis: &StudyAxis) -> String {
    let fixed = listed(&axis.levels);
    let over = axis_words(&axis.factor);
    if fixed.is_empty() { format!("over {over}") } else { format!("{fixed} over {over}") }
}

fn kind(kind: AxisKind) -> Cell {
    let tag = |tone| text(Text(vec![Span::Tag(tone, words::axis_kind(kind).to_owned())]));
    match kind {
        AxisKind::Collapse => tag(Tone::Warn),
        AxisKind::Scaling => tag(Tone::Good),
        AxisKind::NotClear | AxisKind::NoMeasurableDifference => {
            text(words::axis_kind(kind)).toned(Tone::Dim)
        }
        AxisKind::Flat | AxisKind::Saturating => tag(Tone::Plain),
    }
}

fn rows(study: &StudyDocument, axes: &[&StudyAxis]) -> Table {
    let level = |axis: &StudyAxis, x: Option<f64>| {
        let words = |x| level_words(&axis.factor, &level_at(study, &axis.factor, x));
        x.map_or_else(empty, |x| text(words(x)))
    };
    let percent: fn(f64) -> String = |pct| words::value(pct, "percent");
    let change = |axis: &StudyAxis| Some(ranged(axis.change_pct?, axis.change_pct_ci95, percent));
    Table::of(axes)
        .words("Curve", |axis| text(title(axis)))
        .words("Shape", |axis| kind(axis.kind))
        .numbers("From", |axis| level(axis, axis.at))
        .numbers("Change to the end", |axis| change(axis).unwrap_or_default())
        .numbers("Enough", |axis| level(axis, axis.enough))
        .words("What it says", |axis| text(&axis.text))
        .into()
}
