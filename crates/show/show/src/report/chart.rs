//! Charts as data: rows of bars, ratios or shares, and lines over an axis.
//!
//! Invariant: every number is the run directory's own, so that what a reader sees on hover is what
//! was measured. Scales and ticks are chosen where a chart is drawn.

use iostrata_stats::units::count;
use iostrata_stats::{Interval, Verdicts};

use crate::report::colour::Colour;
use crate::report::words;

/// A chart with its name in the page, its title and the sentence about what it shows.
pub(crate) struct Chart {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) says: String,
    pub(crate) plot: Plot,
}

impl Chart {
    pub(crate) fn new(name: impl Into<String>, title: impl Into<String>, plot: Plot) -> Self {
        Self { name: name.into(), title: title.into(), says: String::new(), plot }
    }

    pub(crate) fn says(mut self, says: impl Into<String>) -> Self {
        self.says = says.into();
        self
    }
}

pub(crate) enum Plot {
    /// One row below the other; the title of their axis.
    Bars(String, Vec<Bar>),
    /// Changes that multiply to a whole, each from where the one before it ends, on a logarithmic
    /// axis.
    Steps(Vec<Step>),
    /// Ratios on a logarithmic axis: right of 1 is more, what touches 1 no measurable difference.
    Ratios(String, Vec<Branch>),
    /// Parts that make a whole.
    Shares(Vec<(Colour, String)>, Vec<Stack>),
    Lines(Lines),
}

/// A figure with its name.
pub(crate) struct Bar {
    /// The name of the bars from here on, its own name.
    pub(crate) group: String,
    pub(crate) title: String,
    pub(crate) value: f64,
    pub(crate) ci95: Option<Interval>,
    pub(crate) colour: Colour,
    /// The value as it stands next to the bar.
    pub(crate) shown: String,
    /// What stands behind it: how sure it is.
    pub(crate) spread: String,
    pub(crate) hover: String,
}

impl Bar {
    /// A bar of a measured figure.
    pub(crate) fn of(hover: &Hover<'_>, colour: Colour) -> Self {
        let Hover { title, value, unit, ci95, .. } = *hover;
        let starred = hover.verdicts.is_some_and(|verdicts| !verdicts.is_sound());
        let half = words::shown(value, ci95, unit).half.filter(|_| unit != "percent");
        let spread = match (half, ci95) {
            (Some(half), _) => half,
            (None, Some(ci95)) => words::range(ci95, value, unit),
            (None, None) => String::new(),
        };
        // The axis has a unit that is a plain word.
        let shown = words::scaled(value, unit).unwrap_or_else(|| count(value));
        let spread = if starred { format!("{spread} *") } else { spread };
        let (group, title) = (String::new(), title.to_owned());
        Self { group, title, value, ci95, colour, shown, spread, hover: hover.text() }
    }
}

/// A change, or what several come to.
pub(crate) struct Step {
    pub(crate) title: String,
    /// Where it begins and where it ends, in times of where the first begins.
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// 95 % interval of its end.
    pub(crate) ci95: Option<Interval>,
    pub(crate) colour: Colour,
    /// How many times as much it makes, and how sure that is.
    pub(crate) shown: String,
    pub(crate) spread: String,
    pub(crate) hover: String,
}

/// A ratio with its name.
pub(crate) struct Branch {
    pub(crate) title: String,
    pub(crate) ratio: f64,
    pub(crate) ci95: Option<Interval>,
    /// The smallest and largest ratio of single pairs; drawn as a band.
    pub(crate) range: Option<Interval>,
    pub(crate) colour: Colour,
    pub(crate) hover: String,
}

/// Shares of one whole, in any unit that they have in common.
pub(crate) struct Stack {
    /// What several wholes share, and its own name.
    pub(crate) group: String,
    pub(crate) title: String,
    /// Colour, size, hover.
    pub(crate) parts: Vec<(Colour, f64, String)>,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stroke {
    pub(crate) colour: Colour,
    /// Solid, dotted, dashed, dash and dot.
    pub(crate) dash: usize,
    /// Of 1: later replicates are fainter.
    pub(crate) faint: f64,
}

/// A solid line.
pub(crate) fn solid(colour: Colour) -> Stroke {
    Stroke { colour, dash: 0, faint: 1.0 }
}

/// Lines over an axis.
pub(crate) struct Lines {
    pub(crate) x: String,
    pub(crate) y: String,
    /// The ticks of a logarithmic axis; without them it is chosen by the points.
    pub(crate) ticks: Option<Vec<(f64, String)>>,
    pub(crate) scale: Scale,
    pub(crate) lines: Vec<Line>,
    /// Whether the lines are named above the chart.
    pub(crate) has_legend: bool,
}

impl Lines {
    pub(crate) fn new(x: impl Into<String>, y: impl Into<String>, lines: Vec<Line>) -> Self {
        let has_legend = lines.iter().filter(|line| !line.name.is_empty()).count() > 1;
        Self { x: x.into(), y: y.into(), ticks: None, scale: Scale::Chosen, lines, has_legend }
    }

    /// Whether the vertical axis is a time in microseconds, whose labels have their own units.
    pub(crate) fn is_time(&self) -> bool {
        self.y == "time" || self.y.ends_with(", us")
    }

    /// The same as one of several panels, with a scale of their own and a legend in common.
    pub(crate) fn panel(mut self, scale: Scale) -> Self {
        (self.scale, self.has_legend) = (scale, false);
        self
    }
}

/// The vertical scale of lines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scale {
    /// From zero, or logarithmic where a line would else vanish in the other's shadow.
    Chosen,
    /// From zero to its own largest figure.
    Linear,
    /// From zero to an end that several panels share.
    Shared(f64),
    /// Logarithmic, between ends that several panels share.
    Logarithmic(Option<Interval>),
}

/// One line.
pub(crate) struct Line {
    /// Its name in the legend; empty where it has none.
    pub(crate) name: String,
    pub(crate) stroke: Stroke,
    pub(crate) course: Course,
    /// The x of a point to be marked, and the word next to it.
    pub(crate) marked: Option<(f64, &'static str)>,
}

/// Where a line goes.
pub(crate) enum Course {
    /// Measured points, joined in their order.
    Points(Vec<Mark>),
    /// A law and not measured: no points, no hover.
    Fit(Vec<[f64; 2]>),
    Slices(Slices),
}

/// Slices of time that follow one another from 0.
pub(crate) struct Slices {
    pub(crate) width_s: f64,
    pub(crate) values: Vec<f64>,
    /// What stands behind a value on hover.
    pub(crate) unit: &'static str,
    pub(crate) title: String,
}

/// A measured point of a line.
pub(crate) struct Mark {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) ci95: Option<Interval>,
    pub(crate) hover: String,
}

/// A figure on hover: rounded, then every digit, then how sure it is.
pub(crate) struct Hover<'a> {
    pub(crate) title: &'a str,
    pub(crate) value: f64,
    pub(crate) unit: &'a str,
    pub(crate) ci95: Option<Interval>,
    /// Samples behind it.
    pub(crate) n: u64,
    pub(crate) verdicts: Option<&'a Verdicts>,
}

impl Hover<'_> {
    pub(crate) fn text(&self) -> String {
        let shown = words::value(self.value, self.unit);
        let mut lines =
            vec![self.title.to_owned(), format!("{shown}  ({})", words::exact(self.value))];
        lines.push(match self.ci95 {
            Some(ci95) => {
                let half = words::shown(self.value, Some(ci95), self.unit).half;
                let half = half.map_or(String::new(), |half| format!(" ({half})"));
                format!("95 %: {}{half}", words::interval(ci95, Some(self.value), self.unit))
            }
            None => "no interval".to_owned(),
        });
        lines.push(format!("n = {}", self.n));
        if let Some(verdicts) = self.verdicts.filter(|verdicts| !verdicts.is_sound()) {
            lines.push(words::verdicts(verdicts));
        }
        lines.join("\n")
    }

    /// The point of a line.
    pub(crate) fn mark(&self, x: f64) -> Mark {
        Mark { x, y: self.value, ci95: self.ci95, hover: self.text() }
    }
}

/// A name that can stand in an element's id.
pub(crate) fn id_of(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    text.chars().map(plain).collect()
}

/// From zero to the largest figure, or to the end of its interval unless that is much farther. A
/// figure far above all others leaves the scale, so that it flattens nothing.
pub(crate) fn reach(figures: &[(f64, Option<Interval>)]) -> Interval {
    let mut values: Vec<f64> = figures.iter().map(|one| one.0).filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let low = values.first().map_or(0.0, |low| low.min(0.0));
    let high = values.last().map_or(0.0, |high| high.max(0.0));
    // One in twenty, at least one, may be far out.
    let usual = values.len().checked_sub(2 + values.len() / 20).map_or(high, |at| values[at]);
    let high =
        if values.len() > 3 && usual > 0.0 && high > usual * 12.0 { usual * 2.5 } else { high };
    let ends = figures.iter().filter_map(|(_, ci95)| Some(ci95.as_ref()?[1]));
    let end = ends.filter(|end| end.is_finite()).fold(high, f64::max);
    let end = end.min(high * 2.0).max(low + 1e-9);
    [low * 1.05, end * 1.05]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlier_flattens_nothing() {
        let plain = |values: &[f64]| values.iter().map(|v| (*v, None)).collect::<Vec<_>>();
        assert_eq!(reach(&plain(&[1.0, 2.0, 4.0, 4.0])), [0.0, 4.2]);
        assert_eq!(reach(&plain(&[1.0, 2.0, 4.0, 400.0])), [0.0, 4.0 * 2.5 * 1.05]);
        assert_eq!(reach(&plain(&[1.0, 400.0])), [0.0, 420.0], "two are no crowd");
        assert_eq!(reach(&[(10.0, Some([5.0, 15.0]))])[1], 15.75);
        assert_eq!(reach(&[(10.0, Some([5.0, 90.0]))])[1], 21.0);
    }

    #[test]
    fn names_can_stand_in_ids() {
        assert_eq!(id_of("reads/s <b>"), "reads-s--b-");
    }
}
