//! One of several small charts that share looks and, where it helps, a scale.
//!
//! Invariant: the same line has the same colour and dash in every panel; which is which stands once
//! beside them all, not in each.

use plotly::Scatter;
use plotly::Traces;
use plotly::common::{DashType, HoverInfo, Marker, Mode};
use plotly::layout::{AxisRange, AxisType};

use super::frame::{axis, errors, layout, reach_of};
use super::lines::{Mark, doubles, x_axis};
use super::{Chart, plain};

/// Height of a panel in pixels.
const HEIGHT: usize = 250;

/// One line of a panel.
pub(crate) struct PanelTrace {
    /// Its name on hover of a fit.
    pub(crate) name: String,
    /// Colour.
    pub(crate) colour: &'static str,
    /// Which dash.
    pub(crate) dash: usize,
    /// Whether it is a law and not measured: no points, no hover.
    pub(crate) is_fit: bool,
    /// The points in the order in which they are joined.
    pub(crate) marks: Vec<Mark>,
}

/// The vertical scale of a panel.
#[derive(Clone, Copy)]
pub(crate) enum Scale {
    /// From zero to its own largest figure.
    Own,
    /// From zero to an end that several panels share.
    Shared(f64),
    /// Logarithmic.
    Logarithmic,
}

/// The n-th dash as the style of a border, for the legend.
pub(crate) fn dash_style(dash: usize) -> &'static str {
    ["solid", "dotted", "dashed", "double"][dash % 4]
}

/// The n-th dash of a line.
pub(super) fn dash_of(dash: usize) -> DashType {
    match dash % 4 {
        0 => DashType::Solid,
        1 => DashType::Dot,
        2 => DashType::Dash,
        _ => DashType::DashDot,
    }
}

/// A panel.
pub(crate) fn panel(
    name: &str,
    x_title: &str,
    y_title: &str,
    lines: &[PanelTrace],
    scale: Scale,
) -> Chart {
    let mut data = Traces::new();
    for line in lines {
        data.push(trace(line));
    }
    let measured = || lines.iter().filter(|line| !line.is_fit);
    let xs: Vec<f64> = measured().flat_map(|line| line.marks.iter().map(|mark| mark.x)).collect();
    let figures: Vec<_> =
        lines.iter().flat_map(|line| line.marks.iter().map(|mark| (mark.y, mark.ci95))).collect();
    let [low, high] = reach_of(figures.into_iter());
    let y_axis = match scale {
        Scale::Own => axis(y_title).n_ticks(6).range(AxisRange::new(low, high)),
        Scale::Shared(top) => axis(y_title).n_ticks(6).range(AxisRange::new(low, top)),
        Scale::Logarithmic => axis(y_title).type_(AxisType::Log).dtick(1.0),
    };
    let layout =
        layout(HEIGHT, [8, 10, 42, 52]).x_axis(x_axis(x_title, &xs, doubles(&xs))).y_axis(y_axis);
    Chart { name: name.to_owned(), height: HEIGHT, data, layout }
}

fn trace(line: &PanelTrace) -> Box<Scatter<f64, f64>> {
    let column = |of: fn(&Mark) -> f64| line.marks.iter().map(of).collect::<Vec<f64>>();
    let values = column(|mark| mark.y);
    let stroke = plotly::common::Line::new().color(line.colour);
    let trace = Scatter::new(column(|mark| mark.x), values.clone()).name(plain(&line.name));
    if line.is_fit {
        return trace
            .mode(Mode::Lines)
            .line(stroke.width(1.5).dash(DashType::Dash))
            .hover_info(HoverInfo::Skip);
    }
    let intervals: Vec<_> = line.marks.iter().map(|mark| mark.ci95).collect();
    let trace = trace
        .mode(Mode::LinesMarkers)
        .line(stroke.width(2.0).dash(dash_of(line.dash)))
        .marker(
            Marker::new().color(line.colour).size(6).line(plotly::common::Line::new().width(0.0)),
        )
        .hover_text_array(line.marks.iter().map(|mark| mark.hover.clone()).collect())
        .hover_info(HoverInfo::Text);
    if intervals.iter().all(Option::is_none) {
        return trace;
    }
    trace.error_y(errors(&values, &intervals, line.colour))
}
