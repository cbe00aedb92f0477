//! What the device below the data does, in columns as iostat's.

use iostrata_run::{WatchDevice, WatchSample};
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::paper::Paper;
use super::words;

/// Rows of it.
pub(crate) const ROWS: u16 = 2;

type DeviceColumn =
    (&'static str, &'static str, fn(&WatchDevice) -> Option<f64>, fn(Option<f64>) -> String);

/// Name, short name, value and how it is written.
const COLUMNS: [DeviceColumn; 6] = [
    ("reads/s", "r/s", |one| Some(one.reads_per_s), words::count),
    ("writes/s", "w/s", |one| Some(one.writes_per_s), words::count),
    ("flushes/s", "f/s", |one| one.flushes_per_s, words::count),
    ("read ms", "r ms", |one| one.read_ms, words::milliseconds),
    ("write ms", "w ms", |one| one.write_ms, words::milliseconds),
    ("in flight", "aqu-sz", |one| Some(one.in_flight), words::count),
];

/// Columns of a name of a device.
const NAME: u16 = 12;

/// Draws the names of the columns and the figures below them.
pub(crate) fn draw(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    let look = paper.look;
    paper.write_within(at.x, at.y, NAME, Line::styled("device", look.label()));
    let Some(device) = &sample.device else {
        let text = "n/a: not on this host, or not found";
        let row = Rect { x: at.x + NAME, ..at };
        paper.write_within(
            row.x,
            row.y,
            at.width.saturating_sub(NAME),
            Line::styled(text, look.absent()),
        );
        return;
    };
    let name = words::short_name(&device.name, usize::from(NAME) - 1);
    paper.write_within(at.x, at.y + 1, NAME, Line::styled(name, look.figure()));
    let wide = at.width.saturating_sub(NAME) / COLUMNS.len() as u16;
    let wide = wide.min(12);
    for (end, (name, short, value, write)) in (1_u16..).map(|n| at.x + NAME + n * wide).zip(COLUMNS)
    {
        let name = if wide > 9 { name } else { short };
        paper.write_right(end, at.y, name, look.label());
        let text = write(value(device));
        let style = if text == words::NOT_TOLD { look.absent() } else { look.figure() };
        paper.write_right(end, at.y + 1, &text, style);
    }
}
