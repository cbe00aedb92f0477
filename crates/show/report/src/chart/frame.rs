//! What all charts share: margins, axes, error bars, hover text.

use iostrata_stats::{Interval, Verdicts};
use plotly::Layout;
use plotly::common::{Anchor, ErrorData, ErrorType, Font, Label, Orientation, Title};
use plotly::layout::{Axis, AxisRange, HoverMode, Legend, Margin};

use super::plain;
use crate::words;

/// A layout without colours of its own.
pub(crate) fn layout(height: usize, margin: [usize; 4]) -> Layout {
    let [top, right, bottom, left] = margin;
    Layout::new()
        .height(height)
        .auto_size(true)
        .font(Font::new().family("inherit").size(12))
        .margin(Margin::new().top(top).right(right).bottom(bottom).left(left))
        .hover_mode(HoverMode::Closest)
        .hover_label(Label::new().align("left").name_length(-1))
        .show_legend(false)
}

/// A legend in one row above the chart.
pub(crate) fn legend_above() -> Legend {
    Legend::new()
        .orientation(Orientation::Horizontal)
        .x(0.0)
        .x_anchor(Anchor::Left)
        .y(1.0)
        .y_anchor(Anchor::Bottom)
}

/// A value axis with its title, from zero.
pub(crate) fn axis(title: &str) -> Axis {
    Axis::new()
        .title(Title::with_text(plain(title)).font(Font::new().size(12)))
        .zero_line(false)
        .show_line(false)
        .separate_thousands(true)
        .auto_margin(true)
}

/// From zero to the end of the longest interval; one much longer than every value leaves the chart.
/// Told as a range and not left to the library, which forgets zero when a chart is drawn again.
pub(crate) fn reach(figures: impl Iterator<Item = (f64, Option<Interval>)> + Clone) -> AxisRange {
    let [low, high] = reach_of(figures);
    AxisRange::new(low, high)
}

/// The ends of [`reach`].
pub(crate) fn reach_of(figures: impl Iterator<Item = (f64, Option<Interval>)> + Clone) -> [f64; 2] {
    let values = || figures.clone().map(|(value, _)| value);
    let (low, high) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let ends = figures.clone().filter_map(|(_, ci95)| Some(ci95?[1]));
    let end = ends.fold(high, f64::max).min(high * 2.0).max(low + 1e-9);
    [low * 1.05, end * 1.05]
}

/// Error bars from intervals around values; an absent interval draws none.
pub(crate) fn errors(
    values: &[f64],
    intervals: &[Option<Interval>],
    colour: &'static str,
) -> ErrorData {
    let ends = |end: usize| -> Vec<f64> {
        let reach = |(value, interval): (&f64, &Option<Interval>)| {
            interval.map_or(0.0, |interval| (interval[end] - value).abs())
        };
        values.iter().zip(intervals).map(reach).collect()
    };
    ErrorData::new(ErrorType::Data)
        .symmetric(false)
        .array(ends(1))
        .array_minus(ends(0))
        .color(colour)
        .thickness(1.4)
        .width(4)
}

/// A figure on hover: rounded, then every digit, then how sure it is.
pub(crate) struct Hover<'a> {
    /// What it is.
    pub(crate) title: &'a str,
    /// The value as in the run directory.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: &'a str,
    /// Its 95 % interval.
    pub(crate) ci95: Option<Interval>,
    /// Samples behind it.
    pub(crate) n: u64,
    /// What speaks against it.
    pub(crate) verdicts: Option<&'a Verdicts>,
}

impl Hover<'_> {
    /// The text, in Plotly's markup.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![plain(self.title)];
        let shown = words::value(self.value, self.unit);
        lines.push(format!("<b>{}</b>  ({})", plain(&shown), words::exact(self.value)));
        match self.ci95 {
            Some(ci95) => {
                let width = words::shown(self.value, Some(ci95), self.unit).half;
                let width = width.map_or(String::new(), |width| format!(" (\u{b1} {width})"));
                lines.push(format!("95 %: {}{width}", plain(&words::interval(ci95, self.unit))));
            }
            None => lines.push("no interval".to_owned()),
        }
        lines.push(format!("n = {}", self.n));
        if let Some(verdicts) = self.verdicts.filter(|verdicts| !verdicts.is_sound()) {
            lines.push(words::verdicts(verdicts));
        }
        lines.join("<br>")
    }
}
