//! Ratios with their intervals on one logarithmic axis: what is right of 1 is more, left of it is
//! less, and what touches 1 is no measurable difference.

use iostrata_stats::Interval;
use plotly::Scatter;
use plotly::Traces;
use plotly::common::{Anchor, Font, HoverInfo, Marker, Mode};
use plotly::layout::{
    Annotation, Axis, AxisRange, AxisType, Shape, ShapeLayer, ShapeLine, ShapeType,
};

use super::frame::{axis, errors, layout};
use super::{Chart, GREY, plain};
use crate::words;

/// Pixels from one row to the next.
const ROW: usize = 44;
/// Pixels below the rows for the axis.
const FOOT: usize = 44;
/// Pixels at the right for the values.
const VALUES: usize = 168;

/// One row.
pub(crate) struct Branch {
    /// What is compared with what.
    pub(crate) title: String,
    /// The ratio.
    pub(crate) ratio: f64,
    /// 95 % interval.
    pub(crate) ci95: Option<Interval>,
    /// The smallest and largest ratio of single pairs; drawn thin.
    pub(crate) range: Option<Interval>,
    /// Colour; grey for no measurable difference.
    pub(crate) colour: &'static str,
    /// Hover text in Plotly's markup.
    pub(crate) hover: String,
}

/// A chart of ratios.
pub(crate) fn forest(name: &str, axis_title: &str, rows: &[Branch]) -> Chart {
    let height = rows.len() * ROW + FOOT;
    let mut data = Traces::new();
    for (place, row) in rows.iter().enumerate() {
        let y = -(place as f64);
        if let Some(range) = row.range {
            data.push(spread(range, y, row));
        }
        data.push(dot(y, row));
    }
    let [low, high] = ends(rows);
    let ticks = ticks(low, high);
    let labels = ticks.iter().map(|tick| format!("{tick}x")).collect();
    let rows_axis = Axis::new()
        .visible(false)
        .fixed_range(true)
        .range(AxisRange::new(0.4 - rows.len() as f64, 0.8));
    let ratio_axis = axis(axis_title)
        .type_(AxisType::Log)
        .tick_values(ticks)
        .tick_text(labels)
        .tick_angle(0.0)
        .range(AxisRange::new(low.log10(), high.log10()));
    let layout = layout(height, [4, VALUES, FOOT, 8])
        .x_axis(ratio_axis)
        .y_axis(rows_axis)
        .shapes(vec![one_times()])
        .annotations(rows.iter().enumerate().flat_map(|(at, row)| captions(at, row)).collect());
    Chart { name: name.to_owned(), height, data, layout }
}

/// Ticks between two ends, not so many that they touch on a phone.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    const FINE: [f64; 9] = [0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5];
    const MIDDLE: [f64; 9] = [0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0];
    const COARSE: [f64; 7] = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];
    const WIDE: [f64; 7] = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0];
    let inside = |all: &[f64]| -> Vec<f64> {
        all.iter().copied().filter(|tick| (low..=high).contains(tick)).collect()
    };
    match high / low {
        span if span < 2.5 => inside(&FINE),
        span if span < 30.0 => inside(&MIDDLE),
        span if span < 300.0 => inside(&COARSE),
        _ => inside(&WIDE),
    }
}

/// The axis holds every interval and 1; a range far beyond leaves the chart.
fn ends(rows: &[Branch]) -> [f64; 2] {
    let of = |row: &Branch| [row.ci95.unwrap_or([row.ratio; 2]), [row.ratio; 2]];
    let all: Vec<f64> = rows
        .iter()
        .flat_map(|row| of(row).into_iter().chain(row.range))
        .flatten()
        .filter(|end| end.is_finite() && *end > 0.0)
        .collect();
    let low = all.iter().copied().fold(0.9, f64::min).max(0.005);
    let high = all.iter().copied().fold(1.1, f64::max).min(2000.0);
    let room = (high / low).powf(0.04);
    [low / room, high * room]
}

fn dot(y: f64, row: &Branch) -> Box<Scatter<f64, f64>> {
    Scatter::new(vec![row.ratio], vec![y])
        .mode(Mode::Markers)
        .marker(Marker::new().color(row.colour).size(10))
        .error_x(errors(&[row.ratio], &[row.ci95], row.colour))
        .hover_text_array(vec![row.hover.clone()])
        .hover_info(HoverInfo::Text)
}

/// From the smallest to the largest single ratio.
fn spread(range: Interval, y: f64, row: &Branch) -> Box<Scatter<f64, f64>> {
    Scatter::new(range.to_vec(), vec![y, y])
        .mode(Mode::Lines)
        .opacity(0.28)
        .line(plotly::common::Line::new().color(row.colour).width(7.0))
        .hover_info(HoverInfo::Skip)
}

/// The line of no difference.
fn one_times() -> Shape {
    Shape::new()
        .shape_type(ShapeType::Line)
        .layer(ShapeLayer::Below)
        .x_ref("x")
        .x0(1.0)
        .x1(1.0)
        .y_ref("paper")
        .y0(0.0)
        .y1(1.0)
        .line(ShapeLine::new().color(GREY).width(1.5))
}

/// The name above the dot and the ratio beside it.
fn captions(place: usize, row: &Branch) -> [Annotation; 2] {
    let at = |x: f64| {
        Annotation::new()
            .x_ref("paper")
            .x(x)
            .y_ref("y")
            .y(-(place as f64))
            .x_anchor(Anchor::Left)
            .show_arrow(false)
            .border_pad(0.0)
    };
    let range = row.ci95.map_or(String::new(), |ci95| format!(" {}", words::times_range(ci95)));
    let shown = format!("<b>{}</b>{}", words::times(row.ratio), plain(&range));
    [
        at(0.0).name("row").text(plain(&row.title)).y_anchor(Anchor::Bottom).y_shift(7.0),
        at(1.0).name("value").text(shown).font(Font::new().size(12)).x_shift(10.0),
    ]
}
