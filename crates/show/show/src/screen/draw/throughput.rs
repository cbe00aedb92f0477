//! Transactions per second and their last minutes.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paper::Paper;
use super::words;
use crate::screen::bars::{self, Bar, Fold, SAMPLES_PER_BAR};
use crate::screen::course::Course;

/// Draws the title and, below it, the bars; stalls have a mark above them.
pub(crate) fn draw(paper: &mut Paper<'_>, at: Rect, course: &Course) {
    let look = paper.look;
    let room =
        Rect::new(at.x + 1, at.y + 1, at.width.saturating_sub(2), at.height.saturating_sub(1));
    let shown = bars::bars(course, usize::from(room.width), Fold::Throughput, |one| one.tps);
    let max = bars::largest(&shown);
    let now = course.last();
    let style = if now.is_some_and(|one| one.stalled) { look.alarm() } else { look.figure() };
    let figure = |count: Option<u64>| {
        let style = if count.is_some() { look.figure() } else { look.absent() };
        Span::styled(format!("{} ", words::number(count)), style)
    };
    let left = vec![
        Span::styled(words::count(now.and_then(|one| one.tps)), style),
        Span::styled(" tps   sessions ", look.label()),
        figure(now.and_then(|one| one.sessions_running)),
        Span::styled("  row lock waits ", look.label()),
        figure(now.and_then(|one| one.row_locks_waiting)),
    ];
    let right = match max {
        Some(_) => format!("{}; last {}", paper.scale(max), span(course, shown.len())),
        None => String::new(),
    };
    paper.title(Rect { height: 1, ..at }, "Transactions", left, &right);
    let bar_style = |bar: &Bar| if bar.stalled { look.alarm_bar() } else { look.good() };
    paper.bars(room, &shown, max.unwrap_or(0.0), bar_style);
    if room.height > 0 {
        let left = room.x + room.width - shown.len() as u16;
        for (column, _) in (left..).zip(&shown).filter(|(_, bar)| bar.stalled) {
            paper.write_within(column, room.y, 1, Line::styled("!", look.alarm()));
        }
    }
}

/// The time that so many bars stand for.
fn span(course: &Course, bars: usize) -> String {
    let (_, samples) = course.samples();
    let from = samples.len().saturating_sub(bars * SAMPLES_PER_BAR);
    let ends = samples.get(from).zip(samples.back());
    let length_s = ends.map_or(0.0, |(first, last)| last.t_s - first.t_s);
    words::length(length_s.round())
}
