//! One target on the whole screen.
//!
//! Invariant: on a low screen the strip of events shrinks first, then the chart of transactions,
//! then the device and the row of purge are left out. Room to spare goes to pressure and files,
//! then to charts.

use iostrata_run::WatchSample;
use ratatui::layout::Rect;

use super::blocks::{self, Event};
use super::paper::Paper;
use super::{header, status, words};
use crate::screen::course::Course;
use crate::screen::view::View;

/// From this width on, purge and device stand next to flushing.
const WIDE: u16 = 110;

/// Rows that are always there: header, status, redo, flushing, the titles of transactions and
/// events, keys.
const FIXED: u16 = 2 + blocks::AGE_ROWS + blocks::FLUSHING_ROWS + 2 + 1;

/// Rows of each part that can be more or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Division {
    is_wide: bool,
    /// The chart of transactions, without its title.
    tps: u16,
    /// The chart of the checkpoint age.
    age: u16,
    /// The strip of events, without its title.
    events: u16,
    has_purge: bool,
    has_device: bool,
    /// Pressure and files.
    host: u16,
}

impl Division {
    fn of(width: u16, height: u16) -> Self {
        let is_wide = width >= WIDE;
        let mut rest = height.saturating_sub(FIXED);
        let mut take = |rows: u16| {
            let taken = rows.min(rest);
            rest -= taken;
            taken
        };
        let (mut tps, mut events) = (take(1), take(1));
        let below = |taken: u16, rows: u16| is_wide || taken == rows;
        let has_purge = below(if is_wide { 0 } else { take(1) }, 1);
        let device_rows = if is_wide { 0 } else { take(blocks::DEVICE_ROWS) };
        let has_device = below(device_rows, blocks::DEVICE_ROWS);
        tps += take(2);
        events += take(2);
        let host = take(blocks::HOST_ROWS);
        events += take(2);
        let age = take(3);
        tps += take(5);
        events += take(4);
        let more = take(u16::MAX);
        tps += more / 3;
        events += more - more / 3;
        Self { is_wide, tps, age, events, has_purge, has_device, host }
    }
}

/// Draws all but the line of keys.
pub(crate) fn draw(paper: &mut Paper<'_>, view: &View) {
    let Some(course) = view.one() else {
        return;
    };
    let (width, height) = paper.size();
    let plan = Division::of(width, height);
    let none = WatchSample::default();
    let sample = course.last().unwrap_or(&none);
    let name = format!("{}  {}", course.target.name, words::version(&course.target));
    header(paper, view, &name, &words::clock(sample.t_s));
    status(paper, 1, course, view);
    let mut row = 2;
    let mut next = |rows: u16| {
        let at = Rect::new(0, row, width, rows);
        row += rows;
        at
    };
    blocks::age(paper, next(blocks::AGE_ROWS + plan.age), course);
    blocks::throughput(paper, next(1 + plan.tps), course);
    let at = next(blocks::FLUSHING_ROWS);
    let half = if plan.is_wide { width / 2 } else { width };
    blocks::flushing(paper, Rect { width: half, ..at }, course);
    if plan.is_wide {
        beside(paper, Rect { x: half, width: width - half, ..at }, course, sample);
    }
    let inner = |at: Rect| Rect { x: at.x + 1, width: at.width.saturating_sub(2), ..at };
    if !plan.is_wide && plan.has_purge {
        blocks::purge_row(paper, inner(next(1)), sample);
    }
    if !plan.is_wide && plan.has_device {
        blocks::device(paper, inner(next(blocks::DEVICE_ROWS)), sample);
    }
    blocks::host(paper, inner(next(plan.host)), sample);
    let shown: Vec<Event<'_>> = blocks::events_of(course, None).collect();
    blocks::events(paper, next(1 + plan.events), &shown);
}

/// Purge, what waits, and the device, next to flushing.
fn beside(paper: &mut Paper<'_>, at: Rect, course: &Course, sample: &WatchSample) {
    paper.title(Rect { height: 1, ..at }, "Purge and I/O", Vec::new(), "");
    let row = |n: u16| Rect::new(at.x + 1, at.y + n, at.width.saturating_sub(2), 1);
    blocks::purge_rows(paper, row(1), course);
    blocks::device(paper, row(4), sample);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_fill_every_screen() {
        for width in [40, 80, 109, 110, 200] {
            for height in 17..120 {
                let plan = Division::of(width, height);
                let mut rows = FIXED + plan.tps + plan.age + plan.events + plan.host;
                if !plan.is_wide {
                    rows += u16::from(plan.has_purge) + 2 * u16::from(plan.has_device);
                }
                // A row that is too few for the device may stay empty.
                assert!(rows <= height && rows + 1 >= height, "{width}x{height}: {plan:?}");
                assert!(plan.tps > 0 && plan.events > 0, "{width}x{height}: {plan:?}");
            }
        }
    }

    #[test]
    fn twenty_four_rows_hold_everything() {
        let plan = Division::of(80, 24);
        assert!(plan.has_purge && plan.has_device && !plan.is_wide);
        assert_eq!((plan.tps, plan.events, plan.age, plan.host), (3, 3, 0, 0));
        assert_eq!(Division::of(80, 27).host, blocks::HOST_ROWS);
        let plan = Division::of(120, 40);
        assert!(
            plan.is_wide
                && plan.host == blocks::HOST_ROWS
                && plan.age == 3
                && plan.tps >= 8
                && plan.events >= 6,
            "{plan:?}"
        );
    }
}
