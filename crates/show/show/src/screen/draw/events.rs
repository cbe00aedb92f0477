//! The strip of what went wrong, the last first.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::paper::Paper;
use super::words;
use crate::screen::course::Course;
use crate::screen::episode::{Episode, Trouble};
use crate::screen::look::Look;

/// Below the trouble's name.
const EVIDENCE_INDENT: &str = "           ";

/// An episode and, where several targets are shown, whose it is.
pub(crate) struct Event<'a> {
    pub(crate) episode: &'a Episode,
    pub(crate) is_open: bool,
    pub(crate) target: Option<String>,
}

/// What went wrong with one target, the last first.
pub(crate) fn of<'a>(course: &'a Course, target: Option<&str>) -> impl Iterator<Item = Event<'a>> {
    let target = target.map(str::to_owned);
    let event = move |episode: &'a Episode| Event {
        episode,
        is_open: course.is_open(episode),
        target: target.clone(),
    };
    course.episodes().map(event)
}

/// Draws as many as there is room for.
pub(crate) fn draw(paper: &mut Paper<'_>, at: Rect, events: &[Event<'_>]) {
    let right = match events.len() {
        0 => String::new(),
        count => format!("{count} in all"),
    };
    paper.title(Rect { height: 1, ..at }, "Events", Vec::new(), &right);
    let look = paper.look;
    if events.is_empty() {
        let line = Line::styled("nothing went wrong so far", look.label());
        paper.write_within(at.x + 1, at.y + 1, at.width.saturating_sub(2), line);
    }
    let width = at.width.saturating_sub(2);
    let lines = events.iter().flat_map(|event| lines(look, event, usize::from(width)));
    for (row, line) in (at.y + 1..at.y + at.height).zip(lines) {
        paper.write_within(at.x + 1, row, width, line);
    }
}

/// One line; two where the evidence does not fit beside the rest.
fn lines(look: Look, event: &Event<'_>, width: usize) -> Vec<Line<'static>> {
    let episode = event.episode;
    let length = words::length(episode.length_s());
    // One that goes on has no length yet.
    let length = if event.is_open { format!("{length} so far") } else { length };
    let style = match episode.trouble {
        Trouble::Stall(_) | Trouble::Silent => look.alarm(),
        Trouble::Furious(_) | Trouble::Restart => look.warning(),
    };
    let mut spans = vec![Span::styled(words::clock(episode.t_s), look.label()), Span::raw("  ")];
    if let Some(target) = &event.target {
        spans.push(Span::styled(format!("{target}  "), look.figure()));
    }
    spans.push(Span::styled(format!(" {} ", episode.words()), style));
    spans.push(Span::styled(format!("  {length}"), look.figure()));
    if let Some(tps) = episode.tps_min.filter(|_| episode.is_stall()) {
        spans.push(Span::raw(format!(", min {} tps", iostrata_stats::units::count(tps))));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let evidence = episode.evidence.clone();
    if evidence.is_empty() {
        vec![Line::from(spans)]
    } else if used + 2 + evidence.chars().count() <= width {
        spans.push(Span::raw(format!(": {evidence}")));
        vec![Line::from(spans)]
    } else {
        vec![Line::from(spans), Line::raw(format!("{EVIDENCE_INDENT}{evidence}"))]
    }
}
