//! Text and typed cells: what stands in a sentence or a table, before any renderer.
//!
//! Invariant: a cell holds the figure of the run directory; how many digits and which signs are
//! shown is decided in one place, [`Cell::number`].

use iostrata_plan::Layer;
use iostrata_stats::{Interval, Verdicts};

use crate::report::words::{self, MeasuredText};

/// How much a text matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As everything around it.
    #[default]
    Plain,
    /// Nothing speaks against it.
    Good,
    /// Something to look at.
    Warn,
    /// Beside the point.
    Dim,
}

/// A piece of a sentence.
#[derive(Clone, Debug)]
pub(crate) enum Span {
    Plain(String),
    Strong(String),
    Muted(String),
    Code(String),
    /// A word in a frame of its own.
    Tag(Tone, String),
    Layer(Layer),
    Verdicts(Verdicts),
    /// The element of the page that it leads to, and its text.
    Link(String, String),
}

/// A sentence, or a part of one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text(pub(crate) Vec<Span>);

impl Text {
    pub(crate) fn plain(self, text: impl Into<String>) -> Self {
        self.with(Span::Plain(text.into()))
    }

    pub(crate) fn strong(self, text: impl Into<String>) -> Self {
        self.with(Span::Strong(text.into()))
    }

    pub(crate) fn with(mut self, span: Span) -> Self {
        self.0.push(span);
        self
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self(vec![Span::Plain(text.into())])
    }
}

/// What a cell holds.
#[derive(Clone, Debug, Default)]
pub(crate) enum What {
    #[default]
    Empty,
    Text(Text),
    /// A number with its unit.
    Value(f64, String),
    /// A measured figure: value, interval, samples, unit. Unknown where its interval is
    /// meaningless.
    Figure(f64, Option<Interval>, u64, String),
    /// A change with its sign: value, interval, samples, unit. Below zero it is a result, and so
    /// is an interval with zero in it.
    Change(f64, Option<Interval>, u64, String),
    /// The figure that a 95 % interval surrounds, where it is known; the interval, or that there is
    /// none; the unit.
    Interval(Option<f64>, Option<Interval>, String),
    /// How many times as much.
    Ratio(f64),
    /// A ratio's 95 % interval, or that there is none.
    RatioInterval(f64, Option<Interval>),
    /// A number with its interval in brackets behind it, in words of its own.
    Ranged(f64, Option<Interval>, fn(f64) -> String),
    Count(u64),
    Verdicts(Verdicts),
    Layer(Layer),
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) what: What,
    /// What the page shows when the pointer rests on it.
    pub(crate) tip: Option<String>,
    pub(crate) tone: Tone,
    /// What the page sorts it by.
    pub(crate) order: Option<f64>,
}

/// A number in words.
pub(crate) struct Number {
    pub(crate) shown: MeasuredText,
    /// Its interval in brackets.
    pub(crate) range: Option<String>,
    /// The number as the run directory has it.
    pub(crate) exact: Option<f64>,
}

impl Number {
    fn of(text: String, exact: Option<f64>) -> Self {
        Self { shown: MeasuredText::plain(text), range: None, exact }
    }

    /// The interval around a value in brackets.
    fn range(
        value: f64,
        ci95: Option<Interval>,
        words_of: impl Fn(f64) -> String,
    ) -> Option<String> {
        let [low, high] = words::fitted(ci95?, Some(value)).map(words_of);
        Some(format!("[{low}, {high}]"))
    }
}

impl Cell {
    fn of(what: What) -> Self {
        Self { what, ..Self::default() }
    }

    pub(crate) fn tip(mut self, tip: impl Into<String>) -> Self {
        self.tip = Some(tip.into());
        self
    }

    pub(crate) fn toned(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// What every renderer shows of a number; nothing for what is none.
    pub(crate) fn number(&self) -> Option<Number> {
        let none = || "none".to_owned();
        Some(match &self.what {
            What::Value(value, unit) => Number::of(words::value(*value, unit), Some(*value)),
            What::Figure(value, ci95, _, unit) => {
                let shown = words::shown(*value, *ci95, unit);
                let known = shown.why.is_none().then_some(*value);
                Number { shown, range: None, exact: known }
            }
            What::Change(change, ci95, _, unit) => {
                let range = Number::range(*change, *ci95, words::signed);
                Number { range, ..Number::of(words::change(*change, unit), Some(*change)) }
            }
            What::Interval(figure, ci95, unit) => {
                let words_of = |ci95| words::interval(ci95, *figure, unit);
                Number::of(ci95.map_or_else(none, words_of), None)
            }
            What::Ratio(ratio) => Number::of(words::times(*ratio), Some(*ratio)),
            What::RatioInterval(ratio, ci95) => {
                let words_of = |ci95| words::times_range(ci95, *ratio);
                Number::of(ci95.map_or_else(none, words_of), None)
            }
            What::Ranged(value, ci95, words_of) => {
                let range = Number::range(*value, *ci95, words_of);
                Number { range, ..Number::of(words_of(*value), Some(*value)) }
            }
            What::Count(n) => Number::of(n.to_string(), None),
            What::Empty | What::Text(_) | What::Verdicts(_) | What::Layer(_) => return None,
        })
    }
}

pub(crate) fn empty() -> Cell {
    Cell::default()
}

pub(crate) fn text(text: impl Into<Text>) -> Cell {
    Cell::of(What::Text(text.into()))
}

pub(crate) fn code(code: impl Into<String>) -> Cell {
    text(Text(vec![Span::Code(code.into())]))
}

pub(crate) fn value(value: f64, unit: &str) -> Cell {
    Cell::of(What::Value(value, unit.to_owned()))
}

/// A value where it is known.
pub(crate) fn optional(found: Option<f64>, unit: &str) -> Cell {
    found.map_or_else(empty, |found| value(found, unit))
}

pub(crate) fn figure(value: f64, ci95: Option<Interval>, n: u64, unit: &str) -> Cell {
    Cell::of(What::Figure(value, ci95, n, unit.to_owned()))
}

pub(crate) fn change(change: f64, ci95: Option<Interval>, n: u64, unit: &str) -> Cell {
    Cell::of(What::Change(change, ci95, n, unit.to_owned()))
}

pub(crate) fn interval(figure: impl Into<Option<f64>>, ci95: Option<Interval>, unit: &str) -> Cell {
    let what = What::Interval(figure.into(), ci95, unit.to_owned());
    Cell { order: ci95.map(|[low, _]| low), ..Cell::of(what) }
}

pub(crate) fn ratio(ratio: f64) -> Cell {
    Cell::of(What::Ratio(ratio))
}

pub(crate) fn ratio_interval(ratio: f64, ci95: Option<Interval>) -> Cell {
    Cell { order: ci95.map(|[low, _]| low), ..Cell::of(What::RatioInterval(ratio, ci95)) }
}

pub(crate) fn ranged(value: f64, ci95: Option<Interval>, words_of: fn(f64) -> String) -> Cell {
    Cell::of(What::Ranged(value, ci95, words_of))
}

pub(crate) fn count(n: u64) -> Cell {
    Cell::of(What::Count(n))
}

pub(crate) fn verdicts(verdicts: &Verdicts) -> Cell {
    Cell::of(What::Verdicts(verdicts.clone()))
}

pub(crate) fn layer(layer: Layer) -> Cell {
    Cell::of(What::Layer(layer))
}
