//! One frame of the screen.
//!
//! Invariant: pure, and fits into every size; what does not fit is left out from the least.

mod blocks;
mod one;
mod paper;
mod table;
mod words;

use paper::Paper;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::course::{Course, Episode, Health};
use super::look::Look;
use super::view::{KEYS, Page, View};
pub use words::short_name;

/// Narrowest and lowest screen that shows anything of use.
const SIZE_MIN: (u16, u16) = (40, 17);

/// Draws all of it.
pub(crate) fn draw(buffer: &mut Buffer, view: &View, look: Look) {
    let mut paper = Paper::new(buffer, look, view.is_log);
    let (width, height) = paper.size();
    if width == 0 || height == 0 {
        return;
    }
    if width < SIZE_MIN.0 || height < SIZE_MIN.1 {
        too_small(&mut paper, view);
        return;
    }
    match (view.is_help, view.page) {
        (true, _) => help(&mut paper, view),
        (false, Page::Table) => table::draw(&mut paper, view),
        (false, Page::One) => one::draw(&mut paper, view),
    }
    keys(&mut paper, view);
}

/// How it is, and what room the rest needs.
fn too_small(paper: &mut Paper<'_>, view: &View) {
    if let Some(course) = view.one() {
        status(paper, 0, course, view);
    }
    let (width, height) = paper.size();
    let (columns, rows) = SIZE_MIN;
    let text = format!("{width}x{height} is too small: {columns}x{rows}");
    if height > 1 {
        paper.write(0, 1, Line::from(text));
    }
}

/// What is watched, which of how many, and since when.
fn header(paper: &mut Paper<'_>, view: &View, name: &str, right: &str) {
    let look = paper.look;
    let mut spans = vec![Span::styled(" iostrata watch  ", look.title())];
    if view.has_several() && view.page == Page::One {
        let which = format!("{}/{}  ", view.chosen() + 1, view.shown().len());
        spans.push(Span::styled(which, look.label()));
    }
    spans.push(Span::styled(name.to_owned(), look.figure()));
    paper.write(0, 0, Line::from(spans));
    let right = format!("  {right} ");
    let from = paper.size().0.saturating_sub(right.chars().count() as u16);
    paper.write(from, 0, Line::from(right));
}

/// How a target is, across the whole line; trouble in reverse.
fn status(paper: &mut Paper<'_>, row: u16, course: &Course, view: &View) {
    let (text, is_trouble) = status_words(course);
    let look = paper.look;
    if is_trouble {
        paper.fill(row, look.alarm());
    }
    let style = if is_trouble { look.alarm() } else { look.good() };
    let mut spans = Vec::new();
    if let Some(lag_s) = view.lag_s() {
        let text = format!(" PAUSED, {} behind ", words::length(lag_s));
        spans.push(Span::styled(text, look.chosen()));
    }
    spans.push(Span::styled(format!(" {text}"), style));
    paper.write(0, row, Line::from(spans));
}

fn status_words(course: &Course) -> (String, bool) {
    let lasting = |one: &Episode| {
        let length = words::length(one.length_s());
        let evidence = if one.evidence.is_empty() { "" } else { ": " };
        (format!("{} for {length}{evidence}{}", one.words(), one.evidence), true)
    };
    match course.state() {
        Health::Waiting => ("waiting for the first sample".to_owned(), false),
        Health::Stalled(one) | Health::Silent(one) => lasting(&one),
        Health::Running => {
            let now = course.last().map_or(0.0, |last| last.t_s);
            let old = course.last().and_then(|last| {
                let age_s =
                    last.oldest_transaction_s.filter(|age_s| *age_s >= blocks::TOO_OLD_S)?;
                Some(format!("; a transaction is open for {}", blocks::oldest_words(last, age_s)))
            });
            let text = match course.episodes().find(|one| one.is_stall()) {
                Some(one) => {
                    let ago = words::length(now - one.end_s);
                    let length = words::length(one.length_s());
                    format!("running; last stall {ago} ago, for {length}: {}", one.cause())
                }
                None => "running; no stall so far".to_owned(),
            };
            (text + &old.unwrap_or_default(), false)
        }
    }
}

/// The line of keys at the bottom.
fn keys(paper: &mut Paper<'_>, view: &View) {
    let look = paper.look;
    let mut spans = vec![Span::raw(" ")];
    for key in KEYS.iter().filter(|key| !key.several || view.has_several()) {
        spans.push(Span::styled(key.keys, look.figure()));
        spans.push(Span::styled(format!(" {}   ", key.short), look.label()));
    }
    let (_, height) = paper.size();
    paper.write(0, height - 1, Line::from(spans));
}

/// What is not plain from its name.
const HELP_FIGURES: &[(&str, &str)] = &[
    ("checkpoint age", "redo that recovery would read; at the limit writers wait"),
    ("async", "the age from which pages are flushed as fast as possible"),
    ("sync", "the age from which flushing goes before everything else"),
    ("full in", "time to the limit at this rate and without a checkpoint"),
    ("adaptive", "pages written ahead, so that redo does not run out"),
    ("LRU", "pages written to free their frames"),
    ("background", "pages written because nothing else was to be done"),
    ("sync", "pages written because redo was about to run out"),
    ("history", "commits whose old row versions are not purged yet"),
    ("pressure", "share of time in which tasks waited for it (I/O, cpu, memory)"),
    ("limit, quota", "use of a control group's limit; time held back by a quota"),
    ("stolen", "share of processor time that the hypervisor gave to others"),
    ("stall", "a second below half the median rate of the last minute"),
    ("!, n/a", "above bars: a stall; not reported by the target"),
];

const HELP_NAME: usize = 16;

/// Draws all but the line of keys.
pub(crate) fn help(paper: &mut Paper<'_>, view: &View) {
    header(paper, view, "help", "");
    let (width, height) = paper.size();
    let look = paper.look;
    let mut lines: Vec<Line<'_>> = Vec::new();
    let explained = |name: &str, text: &str| {
        let name = Span::styled(format!("{name:<HELP_NAME$}"), look.figure());
        Line::from(vec![Span::raw("  "), name, Span::raw(text.to_owned())])
    };
    let keys = KEYS.iter().filter(|key| !key.several || view.has_several());
    lines.extend(keys.map(|key| explained(key.keys, key.long)));
    let missing = view.one().map(|course| course.target.missing.as_slice()).unwrap_or_default();
    lines.extend(missing.iter().map(|text| explained("missing", text)));
    lines.extend(HELP_FIGURES.iter().map(|(name, text)| explained(name, text)));
    for (row, line) in (2..height.saturating_sub(1)).zip(lines) {
        let at = Rect::new(0, row, width, 1);
        paper.write_within(at.x, at.y, at.width, line);
    }
}
