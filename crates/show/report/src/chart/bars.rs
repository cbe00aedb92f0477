//! Horizontal bars with error bars: one row per figure, its name above the bar and its value in a
//! column at the right, so that it reads without hovering and on a narrow screen.

use iostrata_stats::{Interval, Verdicts};
use plotly::Traces;
use plotly::color::NamedColor;
use plotly::common::{Anchor, Font, HoverInfo, Marker, Orientation};
use plotly::layout::{Annotation, Axis, AxisRange, BarMode};

use super::frame::{Hover, axis, errors, layout, reach};
use super::{Chart, plain};
use crate::words;

/// Pixels from one row to the next.
const ROW: usize = 42;
/// Pixels below the rows for the axis.
const FOOT: usize = 40;
/// Pixels at the right for the values.
const VALUES: usize = 138;
/// Colour of the error bars: readable on every bar and every page.
const WHISKER: &str = "#8a8f98";

/// One row.
pub(crate) struct Bar<'a> {
    /// Its name.
    pub(crate) title: &'a str,
    /// Length of the bar.
    pub(crate) value: f64,
    /// 95 % interval.
    pub(crate) ci95: Option<Interval>,
    /// Samples behind it.
    pub(crate) n: u64,
    /// Colour.
    pub(crate) colour: &'static str,
    /// What speaks against it.
    pub(crate) verdicts: Option<&'a Verdicts>,
}

/// A chart of rows that share a unit.
pub(crate) fn bars(name: &str, unit: &str, axis_title: &str, rows: &[Bar<'_>]) -> Chart {
    let height = rows.len() * ROW + FOOT;
    let values: Vec<f64> = rows.iter().map(|row| row.value).collect();
    let places: Vec<f64> = (0..rows.len()).map(|row| -(row as f64)).collect();
    let intervals: Vec<_> = rows.iter().map(|row| row.ci95).collect();
    let colours: Vec<&'static str> = rows.iter().map(|row| row.colour).collect();
    let hover: Vec<String> = rows.iter().map(|row| hover(row, unit)).collect();
    let mut data = Traces::new();
    data.push(
        plotly::Bar::new(values.clone(), places)
            .orientation(Orientation::Horizontal)
            .width(0.34)
            .marker(Marker::new().color_array(colours))
            .error_x(errors(&values, &intervals, WHISKER))
            .hover_text_array(hover)
            .hover_info(HoverInfo::Text),
    );
    let annotations: Vec<Annotation> =
        rows.iter().enumerate().flat_map(|(row, bar)| captions(row, bar, unit)).collect();
    let rows_axis = Axis::new()
        .visible(false)
        .fixed_range(true)
        .range(AxisRange::new(0.45 - rows.len() as f64, 0.82));
    let layout = layout(height, [0, VALUES, FOOT, 4])
        .bar_mode(BarMode::Overlay)
        .x_axis(
            axis(axis_title).n_ticks(6).range(reach(rows.iter().map(|row| (row.value, row.ci95)))),
        )
        .y_axis(rows_axis)
        .annotations(annotations);
    Chart { name: name.to_owned(), height, data, layout }
}

/// The name above the bar and the value beside it.
fn captions(row: usize, bar: &Bar<'_>, unit: &str) -> [Annotation; 2] {
    let at = |x: f64| {
        Annotation::new()
            .x_ref("paper")
            .x(x)
            .y_ref("y")
            .y(-(row as f64))
            .x_anchor(Anchor::Left)
            .show_arrow(false)
            .border_pad(0.0)
    };
    let mark = if bar.verdicts.is_some_and(|verdicts| !verdicts.is_sound()) { " *" } else { "" };
    let width = words::shown(bar.value, bar.ci95, unit).half.filter(|_| unit != "percent");
    let spread = match (width, bar.ci95) {
        (Some(width), _) => format!(" \u{b1} {width}"),
        (None, Some(ci95)) => format!("  {}", words::range(ci95, unit)),
        (None, None) => String::new(),
    };
    let shown = short(bar.value, unit);
    [
        at(0.0).name("row").text(plain(bar.title)).y_anchor(Anchor::Bottom).y_shift(7.0),
        at(1.0)
            .name("value")
            .text(format!("<b>{}</b>{}{mark}", plain(&shown), plain(&spread)))
            .font(Font::new().size(12))
            .background_color(NamedColor::Transparent)
            .x_shift(10.0),
    ]
}

/// The value without the words of its unit, which the axis has.
fn short(value: f64, unit: &str) -> String {
    let text = words::value(value, unit);
    text.strip_suffix(&format!(" {unit}")).map_or(text.clone(), str::to_owned)
}

fn hover(row: &Bar<'_>, unit: &str) -> String {
    Hover {
        title: row.title,
        value: row.value,
        unit,
        ci95: row.ci95,
        n: row.n,
        verdicts: row.verdicts,
    }
    .text()
}
