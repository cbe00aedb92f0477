//! Purge, and requests of files in flight.

use iostrata_run::WatchSample;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::paper::{FigureText, Paper};
use super::words;
use crate::screen::bars::{self, Fold};
use crate::screen::course::Course;
use crate::screen::look::Look;

/// Columns of a name and of its figure, beside a chart.
const NAME: u16 = 12;
const FIGURE: u16 = 8;
/// Seconds from which on an open transaction is shown, and from which on it is a warning: what it
/// sees is not purged.
const OLD_S: f64 = 10.0;
pub(crate) const TOO_OLD_S: f64 = 60.0;
/// Columns that have room for it beside the rest.
const ROOMY: u16 = 95;

/// Everything in one row.
pub(crate) fn row(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    let mut figures = vec![
        FigureText::new("history", words::number(sample.history_list_length)),
        FigureText::new("purge", per_second(sample)),
    ];
    figures.extend(waiting(sample));
    if at.width >= ROOMY {
        figures.extend(oldest(paper.look, sample));
    }
    paper.figures(at, figures);
}

/// History and purge with their last minutes, and what waits: three rows.
pub(crate) fn rows(paper: &mut Paper<'_>, at: Rect, course: &Course) {
    let none = WatchSample::default();
    let sample = course.last().unwrap_or(&none);
    let history = |one: &WatchSample| one.history_list_length.map(|length| length as f64);
    chart(paper, at, "history", &words::number(sample.history_list_length), (course, history));
    let below = Rect { y: at.y + 1, ..at };
    chart(paper, below, "purge", &per_second(sample), (course, |one| one.purge_per_s));
    let mut figures = waiting(sample);
    figures.extend(oldest(paper.look, sample));
    paper.figures(Rect { y: at.y + 2, ..at }, figures);
}

/// The oldest open transaction, once it is old enough to matter.
fn oldest(look: Look, sample: &WatchSample) -> Option<FigureText<'static>> {
    let age_s = sample.oldest_transaction_s.filter(|age_s| *age_s >= OLD_S)?;
    let style = if age_s >= TOO_OLD_S { look.warning() } else { look.figure() };
    Some(FigureText::new("open", oldest_words(sample, age_s)).style(style))
}

/// `74 s (id 41)`.
pub(crate) fn oldest_words(sample: &WatchSample, age_s: f64) -> String {
    let id = sample.oldest_transaction_id.map_or(String::new(), |id| format!(" (id {id})"));
    format!("{}{id}", words::length(age_s))
}

type Chart<'a> = (&'a Course, fn(&WatchSample) -> Option<f64>);

fn chart(paper: &mut Paper<'_>, at: Rect, name: &str, figure: &str, (course, of): Chart<'_>) {
    let look = paper.look;
    paper.write_within(at.x, at.y, NAME, Line::styled(name.to_owned(), look.label()));
    let is_told = figure != words::NOT_TOLD;
    let style = if is_told { look.figure() } else { look.absent() };
    paper.write_right(at.x + NAME + FIGURE, at.y, figure, style);
    let width = at.width.saturating_sub(NAME + FIGURE + 2);
    let shown = bars::bars(course, usize::from(width), Fold::Mean, of);
    let max = bars::largest(&shown).unwrap_or(0.0);
    let room = Rect::new(at.x + NAME + FIGURE + 2, at.y, width, 1);
    paper.bars(room, &shown, max, |_| look.good());
}

fn per_second(sample: &WatchSample) -> String {
    words::told(sample.purge_per_s, |rate| iostrata_stats::units::rate(rate).replace(" /s", "/s"))
}

fn waiting(sample: &WatchSample) -> Vec<FigureText<'static>> {
    vec![
        FigureText::new("pending reads", words::number(sample.pending_reads)),
        FigureText::new("writes", words::number(sample.pending_writes)),
        FigureText::new("syncs", words::number(sample.pending_syncs)),
    ]
}
