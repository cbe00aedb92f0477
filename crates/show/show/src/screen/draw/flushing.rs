//! Pages written, by the reason for which they were.

use iostrata_run::{FIGURES, Figure, WatchSample};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paper::{FigureText, Paper};
use super::words;
use crate::screen::bars::{self, Bar, Fold};
use crate::screen::course::Course;

/// Rows of the block.
pub(crate) const ROWS: u16 = 6;

/// Columns of a kind's name and of its rate.
const NAME: u16 = 12;
const RATE: u16 = 8;

/// The kind that must not be.
const LAST: &str = "sync";

/// Every kind that the table of figures has, with its name.
fn kinds() -> impl Iterator<Item = (&'static str, &'static Figure)> {
    // Statements have kinds as well.
    let is_kind = |figure: &Figure| {
        figure.label.is_some_and(|(name, _)| name == "kind") && figure.unit == "pages/s"
    };
    let named = |figure: &'static Figure| Some((figure.chart?.1, figure));
    FIGURES.iter().filter(move |figure| is_kind(figure)).filter_map(named)
}

/// Draws the kinds with their last minutes, all on one scale, and the dirty pages.
pub(crate) fn draw(paper: &mut Paper<'_>, at: Rect, course: &Course) {
    let look = paper.look;
    let none = WatchSample::default();
    let sample = course.last().unwrap_or(&none);
    let chart = at.width.saturating_sub(NAME + RATE + 4);
    let of = |figure: &Figure| bars::bars(course, usize::from(chart), Fold::Mean, figure.of);
    let charts: Vec<Vec<Bar>> = kinds().map(|(_, figure)| of(figure)).collect();
    let max = bars::largest(charts.iter().flatten());
    let left = vec![
        Span::styled(words::count(sample.flushed_pages_per_s), look.figure()),
        Span::styled(" pages/s in all ", look.label()),
    ];
    let right = paper.scale(max);
    paper.title(Rect { height: 1, ..at }, "Flushing", left, &right);
    for (row, ((name, figure), shown)) in (at.y + 1..).zip(kinds().zip(&charts)) {
        let is_last = name == LAST;
        let now = (figure.of)(sample);
        let is_trouble = is_last && now.is_some_and(|rate| rate > 0.0);
        paper.write_within(at.x + 1, row, NAME, Line::styled(name, look.label()));
        let style = match now {
            None => look.absent(),
            Some(_) if is_trouble => look.alarm(),
            Some(_) => look.figure(),
        };
        paper.write_right(at.x + 1 + NAME + RATE, row, &words::count(now), style);
        let room = Rect::new(at.x + NAME + RATE + 3, row, chart, 1);
        let style = if is_last { look.alarm_bar() } else { look.good() };
        paper.bars(room, shown, max.unwrap_or(0.0), |_| style);
    }
    let room = Rect::new(at.x + 1, at.y + ROWS - 1, at.width.saturating_sub(2), 1);
    paper.figures(room, pool(sample));
}

/// What of the pool is to be written, and what writing costs.
fn pool(sample: &WatchSample) -> Vec<FigureText<'static>> {
    let is_told = sample.dirty_pages.is_some();
    let dirty = FigureText::new("dirty", words::number(sample.dirty_pages));
    vec![
        if is_told { dirty.after(" pages") } else { dirty },
        FigureText::new("", words::percent(sample.dirty_pct)),
        FigureText::new("pages per transaction", words::count(sample.pages_written_per_txn)),
        FigureText::new("furious flushes", words::number(sample.furious_flushes)),
    ]
}
