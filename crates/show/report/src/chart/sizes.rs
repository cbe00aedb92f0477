//! Lines over sizes that grow by powers of ten, one tick for each size.

use plotly::common::{HoverInfo, Marker, Mode};
use plotly::layout::AxisType;
use plotly::{Scatter, Traces};

use super::frame::{axis, errors, layout};
use super::lines::Mark;
use super::panel::PanelTrace;
use super::{Chart, plain};

/// Height in pixels.
const HEIGHT: usize = 290;

/// A tick of the horizontal axis.
pub(crate) struct Tick {
    /// Where.
    pub(crate) at: f64,
    /// What it says.
    pub(crate) label: String,
}

/// The vertical axis: its title and the ends that several charts share, both logarithmic.
pub(crate) struct Vertical<'a> {
    /// Title.
    pub(crate) title: &'a str,
    /// From a positive figure to a larger one.
    pub(crate) ends: [f64; 2],
}

/// A chart of lines on two logarithmic axes.
pub(crate) fn sizes(
    name: &str,
    x_title: &str,
    ticks: &[Tick],
    vertical: &Vertical<'_>,
    lines: &[PanelTrace],
) -> Chart {
    let mut data = Traces::new();
    for line in lines {
        data.push(trace(line));
    }
    let range = vertical.ends.map(f64::log10);
    let x = axis(x_title)
        .type_(AxisType::Log)
        .tick_values(ticks.iter().map(|tick| tick.at).collect())
        .tick_text(ticks.iter().map(|tick| plain(&tick.label)).collect());
    let y = axis(vertical.title).type_(AxisType::Log).range(range.to_vec());
    let layout = layout(HEIGHT, [8, 14, 46, 56]).x_axis(x).y_axis(y);
    Chart { name: name.to_owned(), height: HEIGHT, data, layout }
}

fn trace(line: &PanelTrace) -> Box<Scatter<f64, f64>> {
    let column = |of: fn(&Mark) -> f64| line.marks.iter().map(of).collect::<Vec<f64>>();
    let values = column(|mark| mark.y);
    let intervals: Vec<_> = line.marks.iter().map(|mark| mark.ci95).collect();
    let trace = Scatter::new(column(|mark| mark.x), values.clone())
        .name(plain(&line.name))
        .mode(Mode::LinesMarkers)
        .line(
            plotly::common::Line::new()
                .color(line.colour)
                .width(2.0)
                .dash(super::panel::dash_of(line.dash)),
        )
        .marker(
            Marker::new().color(line.colour).size(7).line(plotly::common::Line::new().width(0.0)),
        )
        .hover_text_array(line.marks.iter().map(|mark| mark.hover.clone()).collect())
        .hover_info(HoverInfo::Text);
    if intervals.iter().all(Option::is_none) {
        return trace;
    }
    trace.error_y(errors(&values, &intervals, line.colour))
}
