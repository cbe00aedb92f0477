//! Lines over an axis, with error bars and marked knees.

use iostrata_stats::Interval;
use plotly::common::{Anchor, DashType, HoverInfo, Marker, Mode};
use plotly::layout::{Annotation, Axis, AxisType, RangeMode, Shape, ShapeLine, ShapeType};
use plotly::{Scatter, Traces};

use super::frame::{axis, errors, layout, legend_above};
use super::{Chart, plain};

/// One point of a line.
pub(crate) struct Mark {
    /// Place on the horizontal axis.
    pub(crate) x: f64,
    /// Place on the vertical axis.
    pub(crate) y: f64,
    /// 95 % interval of `y`.
    pub(crate) ci95: Option<Interval>,
    /// Hover text in Plotly's markup.
    pub(crate) hover: String,
}

/// One line.
pub(crate) struct Line<'a> {
    /// Its name in the legend.
    pub(crate) name: &'a str,
    /// Colour.
    pub(crate) colour: &'static str,
    /// Whether it is dashed.
    pub(crate) dashed: bool,
    /// The points in the order in which they are joined.
    pub(crate) marks: Vec<Mark>,
    /// The x at which the line bends.
    pub(crate) knee: Option<(f64, String)>,
}

/// A chart of lines.
pub(crate) fn lines(name: &str, x_title: &str, y_title: &str, all: &[Line<'_>]) -> Chart {
    let height = 330;
    let mut data = Traces::new();
    for line in all {
        data.push(trace(line));
    }
    let xs: Vec<f64> = all.iter().flat_map(|line| line.marks.iter().map(|mark| mark.x)).collect();
    let ys = all.iter().flat_map(|line| line.marks.iter().map(|mark| mark.y));
    let log_x = doubles(&xs);
    let knees = || all.iter().filter_map(|line| line.knee.as_ref().map(|knee| (line, knee)));
    let layout = layout(height, [34, 12, 50, 56])
        .show_legend(all.len() > 1)
        .legend(legend_above())
        .x_axis(x_axis(x_title, &xs, log_x))
        .y_axis(y_axis(y_title, ys))
        .shapes(knees().map(|(line, (x, _))| knee_line(line.colour, *x)).collect())
        .annotations(
            knees().enumerate().map(|(n, (_, (x, text)))| knee_text(n, *x, text, log_x)).collect(),
        );
    Chart { name: name.to_owned(), height, data, layout }
}

fn trace(line: &Line<'_>) -> Box<Scatter<f64, f64>> {
    let column = |of: fn(&Mark) -> f64| line.marks.iter().map(of).collect::<Vec<f64>>();
    let values = column(|mark| mark.y);
    let intervals: Vec<_> = line.marks.iter().map(|mark| mark.ci95).collect();
    let dash = if line.dashed { DashType::Dot } else { DashType::Solid };
    Scatter::new(column(|mark| mark.x), values.clone())
        .name(plain(line.name))
        .mode(Mode::LinesMarkers)
        .line(plotly::common::Line::new().color(line.colour).width(2.0).dash(dash))
        .marker(Marker::new().color(line.colour).size(6))
        .error_y(errors(&values, &intervals, line.colour))
        .hover_text_array(line.marks.iter().map(|mark| mark.hover.clone()).collect())
        .hover_info(HoverInfo::Text)
}

/// Powers of two stand at equal distances, each with its own tick.
fn x_axis(title: &str, xs: &[f64], log: bool) -> Axis {
    if !log {
        return axis(title).range_mode(RangeMode::ToZero);
    }
    let mut ticks = xs.to_vec();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let labels = ticks.iter().map(|x| format!("{x}")).collect();
    axis(title).type_(AxisType::Log).tick_values(ticks).tick_text(labels)
}

/// From zero, or logarithmic where a line would else vanish in the other's shadow.
fn y_axis(title: &str, ys: impl Iterator<Item = f64>) -> Axis {
    let (low, high) = ys.fold((f64::INFINITY, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
    if low > 0.0 && high / low > 40.0 {
        axis(title).type_(AxisType::Log).dtick(1.0)
    } else {
        axis(title).range_mode(RangeMode::ToZero)
    }
}

fn doubles(xs: &[f64]) -> bool {
    let power = |x: &f64| *x >= 1.0 && x.log2().fract() == 0.0;
    xs.len() > 2 && xs.iter().all(power)
}

fn knee_line(colour: &'static str, x: f64) -> Shape {
    Shape::new()
        .shape_type(ShapeType::Line)
        .x_ref("x")
        .x0(x)
        .x1(x)
        .y_ref("paper")
        .y0(0.0)
        .y1(1.0)
        .line(ShapeLine::new().color(colour).width(1.0).dash(DashType::Dash))
}

fn knee_text(n: usize, x: f64, text: &str, log: bool) -> Annotation {
    Annotation::new()
        .x(if log { x.log10() } else { x })
        .y_ref("paper")
        .y(0.02)
        .y_anchor(Anchor::Bottom)
        .y_shift(16.0 * n as f64)
        .x_anchor(Anchor::Left)
        .x_shift(4.0)
        .show_arrow(false)
        .text(plain(text))
}
