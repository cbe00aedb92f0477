//! The checkpoint age on its way to the limit.

use iostrata_run::WatchSample;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::paper::{FigureText, Paper};
use super::words;
use crate::screen::bars::{self, Fold};
use crate::screen::course::Course;
use crate::screen::look::Look;

/// Rows of the block without its chart.
pub(crate) const ROWS: u16 = 4;

/// Where a target does not tell from which age on it flushes in earnest, in percent of the limit.
const ASYNC_PCT_ELSE: f64 = 85.0;
/// Where it does not tell from which age on flushing goes before all, in percent of the limit.
const SYNC_PCT_ELSE: f64 = 95.0;

/// A mark of the gauge.
struct Mark {
    name: &'static str,
    pct: f64,
    symbol: &'static str,
}

/// Draws figures, gauge, its marks and, in what is left of the room, the last minutes.
pub(crate) fn draw(paper: &mut Paper<'_>, at: Rect, course: &Course) {
    let none = WatchSample::default();
    let sample = course.last().unwrap_or(&none);
    paper.title(Rect { height: 1, ..at }, "Redo", Vec::new(), "");
    let row = |n: u16| Rect::new(at.x + 1, at.y + n, at.width.saturating_sub(2), 1);
    figures(paper, row(1), sample);
    gauge(paper, row(2), sample);
    legend(paper, row(3), sample);
    if at.height > ROWS {
        let room = Rect { height: at.height - ROWS, ..row(ROWS) };
        let look = paper.look;
        let width = usize::from(room.width);
        let shown = bars::bars(course, width, Fold::Max, |one| one.checkpoint_age_pct);
        // The scale is the limit, whatever the last minutes had.
        paper.bars(room, &shown, 100.0, |bar| match bar.value {
            Some(pct) => style(sample, pct, look),
            None => look.absent(),
        });
    }
}

fn figures(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    let look = paper.look;
    let pct = sample.checkpoint_age_pct;
    let age = format!(
        "{} of {}",
        words::bytes(sample.checkpoint_age_bytes),
        words::bytes(sample.checkpoint_age_limit_bytes),
    );
    let age = if sample.checkpoint_age_bytes.is_none() { words::NOT_TOLD.to_owned() } else { age };
    let made = words::told(sample.redo_bytes_per_s, |rate| {
        format!("{}/s", iostrata_stats::units::bytes(rate))
    });
    let style = pct.map_or(look.figure(), |pct| style(sample, pct, look));
    // The title says of what, where there is no room to say it again.
    let name = if at.width < 70 { "age" } else { "checkpoint age" };
    let mut figures = vec![FigureText::new(name, age)];
    if sample.checkpoint_age_bytes.is_some() {
        figures.push(FigureText::new("", words::percent(pct)).style(style));
    }
    figures.push(FigureText::new("full in", words::ahead(sample.redo_seconds_left)));
    figures.push(FigureText::new("redo", made));
    paper.figures(at, figures);
}

/// How an age is drawn: by the marks that it passed.
pub(crate) fn style(sample: &WatchSample, pct: f64, look: Look) -> Style {
    let of = |bytes, otherwise| share(sample, bytes).unwrap_or(otherwise);
    if pct >= of(sample.checkpoint_age_sync_bytes, SYNC_PCT_ELSE) {
        look.alarm_bar()
    } else if pct >= of(sample.checkpoint_age_async_bytes, ASYNC_PCT_ELSE) {
        look.warning()
    } else {
        look.good()
    }
}

/// A mark in percent of the limit.
fn share(sample: &WatchSample, bytes: Option<u64>) -> Option<f64> {
    let limit = sample.checkpoint_age_limit_bytes.filter(|limit| *limit > 0)?;
    Some(bytes? as f64 / limit as f64 * 100.0)
}

fn marks(sample: &WatchSample, look: Look) -> Vec<Mark> {
    let symbols = if look.unicode { ["\u{250a}", "\u{2507}", "\u{2503}"] } else { [":", "!", "|"] };
    let of = |name, bytes, symbol| {
        let pct = share(sample, bytes).filter(|pct| *pct < 100.0)?;
        Some(Mark { name, pct, symbol })
    };
    let mut marks = Vec::new();
    marks.extend(of("async", sample.checkpoint_age_async_bytes, symbols[0]));
    marks.extend(of("sync", sample.checkpoint_age_sync_bytes, symbols[1]));
    marks.push(Mark { name: "writers wait", pct: 100.0, symbol: symbols[2] });
    marks
}

fn gauge(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    let look = paper.look;
    let Some(pct) = sample.checkpoint_age_pct.filter(|pct| pct.is_finite()) else {
        let text = "no gauge: no checkpoint age with its limit is told";
        paper.write_within(at.x, at.y, at.width, Line::styled(text, look.absent()));
        return;
    };
    let cell = |pct: f64| (pct / 100.0 * f64::from(at.width)).round() as u16;
    let filled = cell(pct.clamp(0.0, 100.0)).min(at.width);
    let (full, empty) = if look.unicode { ("\u{2588}", "\u{2591}") } else { ("#", ".") };
    let bar = vec![
        Span::styled(full.repeat(usize::from(filled)), style(sample, pct, look)),
        Span::styled(empty.repeat(usize::from(at.width - filled)), look.label()),
    ];
    paper.write_within(at.x, at.y, at.width, Line::from(bar));
    for mark in marks(sample, look) {
        let column = cell(mark.pct).clamp(1, at.width.max(1)) - 1;
        // On the filled part a mark is cut out, so that it is seen there too.
        let is_passed = column < filled;
        let style = if is_passed && look.unicode { look.chosen() } else { look.figure() };
        paper.write_within(at.x + column, at.y, 1, Line::styled(mark.symbol, style));
    }
}

fn legend(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    if sample.checkpoint_age_pct.is_none() {
        return;
    }
    let look = paper.look;
    let told = |mark: Mark| format!("{} {} {:.0} %", mark.symbol, mark.name, mark.pct);
    let texts: Vec<String> = marks(sample, look).into_iter().map(told).collect();
    paper.write_right(at.x + at.width, at.y, &texts.join("   "), look.label());
}
