//! Bars of parts that make a whole: what share of each point went where.

use plotly::Traces;
use plotly::color::NamedColor;
use plotly::common::{Font, HoverInfo, Marker};
use plotly::layout::{Axis, AxisRange, BarMode, BarNorm, TraceOrder};

use super::frame::{layout, legend_above};
use super::{Chart, plain};

/// Height in pixels.
const HEIGHT: usize = 380;

/// One part of one bar.
pub(crate) struct Share {
    /// Its size, in any unit that all parts of the bar share.
    pub(crate) value: f64,
    /// Hover text in Plotly's markup.
    pub(crate) hover: String,
}

/// One part in every bar; absent where the bar has none.
pub(crate) struct Stack {
    /// Its name in the legend.
    pub(crate) name: &'static str,
    /// Colour.
    pub(crate) colour: &'static str,
    /// The part of each bar.
    pub(crate) shares: Vec<Option<Share>>,
}

/// Bars that all reach 100 %, each under a group and its own label.
pub(crate) fn stacks(name: &str, labels: &[(String, String)], parts: Vec<Stack>) -> Chart {
    let column = |of: fn(&(String, String)) -> &String| -> Vec<String> {
        labels.iter().map(|label| plain(of(label))).collect()
    };
    let both = vec![column(|label| &label.0), column(|label| &label.1)];
    let mut data = Traces::new();
    for part in parts {
        let values: Vec<Option<f64>> =
            part.shares.iter().map(|share| share.as_ref().map(|share| share.value)).collect();
        let hover =
            part.shares.into_iter().map(|share| share.map_or(String::new(), |share| share.hover));
        data.push(
            plotly::Bar::new(both.clone(), values)
                .name(part.name)
                .marker(
                    Marker::new().color(part.colour).line(
                        plotly::common::Line::new().width(0.0).color(NamedColor::Transparent),
                    ),
                )
                .hover_text_array(hover.collect())
                .hover_info(HoverInfo::Text),
        );
    }
    let share_axis = Axis::new()
        .range(AxisRange::new(0.0, 100.0))
        .n_ticks(6)
        .tick_suffix(" %")
        .zero_line(false)
        .fixed_range(true);
    let label_axis = Axis::new().auto_margin(true).tick_font(Font::new().size(11));
    let layout = layout(HEIGHT, [40, 8, 60, 46])
        .bar_mode(BarMode::Stack)
        .bar_norm(BarNorm::Percent)
        .bar_gap(0.18)
        .show_legend(true)
        .legend(legend_above().trace_order(TraceOrder::Normal))
        .x_axis(label_axis)
        .y_axis(share_axis);
    Chart { name: name.to_owned(), height: HEIGHT, data, layout }
}
