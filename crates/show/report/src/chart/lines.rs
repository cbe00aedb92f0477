//! Lines over an axis, with error bars and marked knees.

use iostrata_stats::Interval;
use plotly::common::{Anchor, DashType, HoverInfo, Marker, Mode};
use plotly::layout::{Annotation, Axis, AxisType, RangeMode};
use plotly::{Scatter, Traces};

use super::frame::{axis, errors, layout, legend_above, reach};
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
    /// The x of a point to be marked, and the word beside it.
    pub(crate) marked: Option<(f64, &'static str)>,
}

/// A chart of lines.
pub(crate) fn lines(name: &str, x_title: &str, y_title: &str, all: &[Line<'_>]) -> Chart {
    let height = 330;
    let mut data = Traces::new();
    for line in all {
        data.push(trace(line));
    }
    let column = |of: fn(&Mark) -> f64| -> Vec<f64> {
        all.iter().flat_map(|line| line.marks.iter().map(of)).collect()
    };
    let (xs, ys) = (column(|mark| mark.x), column(|mark| mark.y));
    let (log_x, log_y) = (doubles(&xs), spans_decades(&ys));
    let named = all.iter().filter(|line| !line.dashed).count() > 1;
    let top = if named { 34 } else { 10 };
    let layout = layout(height, [top, 12, 46, 56])
        .show_legend(named)
        .legend(legend_above())
        .x_axis(x_axis(x_title, &xs, log_x))
        .y_axis(y_axis(y_title, all, log_y))
        .annotations(all.iter().filter_map(marked_text(log_x, log_y)).collect());
    Chart { name: name.to_owned(), height, data, layout }
}

fn trace(line: &Line<'_>) -> Box<Scatter<f64, f64>> {
    let column = |of: fn(&Mark) -> f64| line.marks.iter().map(of).collect::<Vec<f64>>();
    let values = column(|mark| mark.y);
    let intervals: Vec<_> = line.marks.iter().map(|mark| mark.ci95).collect();
    let dash = if line.dashed { DashType::Dot } else { DashType::Solid };
    let trace = Scatter::new(column(|mark| mark.x), values.clone())
        .name(plain(line.name))
        .mode(Mode::LinesMarkers)
        .line(plotly::common::Line::new().color(line.colour).width(2.0).dash(dash))
        .show_legend(!line.dashed)
        .marker(marker(line))
        .hover_text_array(line.marks.iter().map(|mark| mark.hover.clone()).collect())
        .hover_info(HoverInfo::Text);
    if intervals.iter().all(Option::is_none) {
        return trace;
    }
    trace.error_y(errors(&values, &intervals, line.colour))
}

/// Points are dots; a marked one is larger.
fn marker(line: &Line<'_>) -> Marker {
    let is_marked = |mark: &Mark| line.marked.is_some_and(|(x, _)| x == mark.x);
    let sizes = line.marks.iter().map(|mark| if is_marked(mark) { 12 } else { 6 }).collect();
    Marker::new()
        .color(line.colour)
        .size_array(sizes)
        .opacity(1.0)
        .line(plotly::common::Line::new().width(0.0))
}

/// Powers of two stand at equal distances, each with its own tick.
pub(super) fn x_axis(title: &str, xs: &[f64], log: bool) -> Axis {
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
fn y_axis(title: &str, all: &[Line<'_>], log: bool) -> Axis {
    if log {
        axis(title).type_(AxisType::Log).dtick(1.0)
    } else {
        let marks = all.iter().flat_map(|line| &line.marks);
        axis(title).range(reach(marks.map(|mark| (mark.y, mark.ci95))))
    }
}

fn spans_decades(ys: &[f64]) -> bool {
    let low = ys.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ys.iter().copied().fold(0.0, f64::max);
    low > 0.0 && high / low > 40.0
}

pub(super) fn doubles(xs: &[f64]) -> bool {
    let power = |x: &f64| *x >= 1.0 && x.log2().fract() == 0.0;
    xs.len() > 2 && xs.iter().all(power)
}

/// The word beside the marked point.
fn marked_text(log_x: bool, log_y: bool) -> impl Fn(&Line<'_>) -> Option<Annotation> {
    move |line| {
        let (x, word) = line.marked?;
        let mark = line.marks.iter().find(|mark| mark.x == x)?;
        Some(
            Annotation::new()
                .x(if log_x { mark.x.log10() } else { mark.x })
                .y(if log_y { mark.y.log10() } else { mark.y })
                .x_anchor(Anchor::Left)
                .y_anchor(Anchor::Top)
                .x_shift(6.0)
                .y_shift(-5.0)
                .show_arrow(false)
                .name("marked")
                .text(word),
        )
    }
}
