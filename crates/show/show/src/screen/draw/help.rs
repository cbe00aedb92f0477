//! The help page: keys, and what the figures mean.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::header;
use super::paper::Paper;
use crate::screen::key::KEYS;
use crate::screen::view::View;

/// What is not plain from its name.
const FIGURES: &[(&str, &str)] = &[
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
    ("!, n/a", "above bars: a stall; the target does not tell it"),
];

const NAME: usize = 16;

/// Draws all but the line of keys.
pub(crate) fn draw(paper: &mut Paper<'_>, view: &View) {
    header(paper, view, "help", "");
    let (width, height) = paper.size();
    let look = paper.look;
    let mut lines: Vec<Line<'_>> = Vec::new();
    let explained = |name: &str, text: &str| {
        let name = Span::styled(format!("{name:<NAME$}"), look.figure());
        Line::from(vec![Span::raw("  "), name, Span::raw(text.to_owned())])
    };
    let keys = KEYS.iter().filter(|key| !key.several || view.has_several());
    lines.extend(keys.map(|key| explained(key.keys, key.long)));
    let missing = view.one().map(|course| course.target.missing.as_slice()).unwrap_or_default();
    lines.extend(missing.iter().map(|text| explained("not told", text)));
    lines.extend(FIGURES.iter().map(|(name, text)| explained(name, text)));
    for (row, line) in (2..height.saturating_sub(1)).zip(lines) {
        let at = Rect::new(0, row, width, 1);
        paper.write_within(at.x, at.y, at.width, line);
    }
}
