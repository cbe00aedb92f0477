//! A point over time: requests per slice above, mean latency per slice below, every replicate.

use iostrata_run::{Replicate, Series};
use iostrata_spec::Point;
use plotly::common::Mode;
use plotly::layout::RangeMode;
use plotly::{Scatter, Traces};

use super::frame::{axis, layout, legend_above};
use super::{Chart, line_colour, plain};
use crate::words;

/// A measured point with what it has over time.
pub(crate) struct TimePoint<'a> {
    /// The point.
    pub(crate) point: &'a Point,
    /// Its replicates.
    pub(crate) replicates: Vec<&'a Replicate>,
}

/// One line to draw: a kind of request of one stream in one replicate.
struct Track<'a> {
    label: String,
    colour: &'static str,
    replicate: u32,
    width_s: f64,
    counts: &'a [u32],
}

/// The chart of a point; nothing when no replicate kept a series.
pub(crate) fn time_series(name: &str, time: &TimePoint<'_>) -> Option<Chart> {
    let height = 420;
    let mut data = Traces::new();
    let mut width_s = 0.0_f64;
    for replicate in &time.replicates {
        for (place, stream) in replicate.streams.iter().enumerate() {
            width_s = width_s.max(stream.series.width_s);
            for track in tracks(place, &stream.name, replicate.replicate, &stream.series) {
                data.push(rate(&track));
            }
            if !stream.series.latency_mean_us.is_empty() {
                data.push(latency(place, &stream.name, replicate.replicate, &stream.series));
            }
        }
    }
    if data.is_empty() {
        return None;
    }
    let layout = layout(height, [34, 12, 50, 56])
        .show_legend(true)
        .legend(legend_above())
        .x_axis(axis("seconds in the measured window").anchor("y2").range_mode(RangeMode::ToZero))
        .y_axis(
            axis(&format!("requests per {}", words::value(width_s, "s")))
                .domain(&[0.44, 1.0])
                .range_mode(RangeMode::ToZero),
        )
        .y_axis2(
            axis("mean latency, us").anchor("x").domain(&[0.0, 0.34]).range_mode(RangeMode::ToZero),
        );
    Some(Chart { name: name.to_owned(), height, data, layout })
}

fn tracks<'a>(place: usize, stream: &str, replicate: u32, series: &'a Series) -> Vec<Track<'a>> {
    let counted = series.counts.iter().filter(|(_, counts)| counts.iter().any(|&count| count > 0));
    counted
        .map(|(kind, counts)| Track {
            label: match kind.plural() {
                label if label == stream => label.to_owned(),
                label => format!("{stream}: {label}"),
            },
            colour: line_colour(place * 2 + kind as usize),
            replicate,
            width_s: series.width_s,
            counts,
        })
        .collect()
}

/// Later replicates are fainter; the legend names a line once, for all replicates.
fn faint(replicate: u32) -> f64 {
    [1.0, 0.65, 0.45][replicate.min(2) as usize]
}

/// What a slice says on hover; names from outside stand in `meta`, which is not read as a template.
const COUNT: &str = "%{meta}<br><b>%{y}</b> from %{x:.3~f} s<extra></extra>";
const LATENCY: &str = "%{meta}<br><b>%{y} us</b> mean from %{x:.3~f} s<extra></extra>";

fn rate(track: &Track<'_>) -> Box<Scatter<f64, u32>> {
    sliced(track.width_s, track.replicate, &track.label)
        .y(track.counts.to_vec())
        .legend_group(&track.label)
        .show_legend(track.replicate == 0)
        .line(plotly::common::Line::new().color(track.colour).width(1.5))
        .hover_template(COUNT)
}

fn latency(place: usize, stream: &str, replicate: u32, series: &Series) -> Box<Scatter<f64, f32>> {
    sliced(series.width_s, replicate, stream)
        .y(series.latency_mean_us.clone())
        .show_legend(false)
        .y_axis("y2")
        .line(plotly::common::Line::new().color(line_colour(place * 2)).width(1.5))
        .hover_template(LATENCY)
}

/// A line whose slices follow one another from 0.
fn sliced<Y: serde::Serialize + Clone + 'static>(
    width_s: f64,
    replicate: u32,
    label: &str,
) -> Box<Scatter<f64, Y>> {
    Box::<Scatter<f64, Y>>::default()
        .x0(0.0)
        .dx(width_s)
        .name(plain(label))
        .meta(format!("{}, replicate {}", plain(label), replicate + 1))
        .mode(Mode::Lines)
        .opacity(faint(replicate))
}
