//! Several targets, the worst first.

use iostrata_run::{Figure, WatchSample};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::blocks::{self, Event};
use super::paper::Paper;
use super::{header, words};
use crate::screen::course::{self, Bar, Course, Health};
use crate::screen::view::View;

/// Columns of a figure; of the number of a target, of its state, and the fewest of its name.
const FIGURE: u16 = 9;
const NUMBER: u16 = 5;
const STATE: u16 = 23;
const NAME_MIN: u16 = 20;
const NAME_MAX: usize = 44;

/// Fewest rows of the strip of events.
const EVENTS_MIN: u16 = 4;

/// Draws the table and, below it, what went wrong with any of them.
pub(crate) fn draw(paper: &mut Paper<'_>, view: &View) {
    let (width, height) = paper.size();
    let order = view.worst_first();
    let newest = view.shown().iter().filter_map(|one| Some(one.last()?.t_s)).fold(0.0, f64::max);
    let name = format!("{} targets, the worst first", order.len());
    header(paper, view, &name, &words::clock(newest));
    if let Some(lag_s) = view.lag_s() {
        let text = format!(" PAUSED, {} behind ", words::length(lag_s));
        paper.write(1, 1, Line::styled(text, paper.look.chosen()));
    }
    let columns = columns(width);
    let used = columns * FIGURE;
    let room = width.saturating_sub(NUMBER + STATE + used + 1);
    let names = view.shown().iter().map(|one| words::short_name(&one.target.name, NAME_MAX));
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0) as u16;
    let name_width = room.min(longest.max(NAME_MIN) + 2);
    let chart = Rect::new(NUMBER + STATE + used + name_width, 0, room - name_width, 1);
    titles(paper, columns, name_width, chart);
    // Three rows stand above the table, a title and the keys below it; events take the rest.
    let room = height.saturating_sub(3 + 2);
    let wanted = order.len() as u16 + 1;
    let rows = wanted.min(room.saturating_sub(EVENTS_MIN)).max(1);
    let event_rows = room.saturating_sub(rows);
    // What is chosen stays in sight.
    let at = order.iter().position(|index| *index == view.chosen()).unwrap_or(0);
    let from = at.saturating_sub(usize::from(rows) - 1);
    for (row, index) in (3..3 + rows).zip(order.iter().skip(from)) {
        line(paper, (row, *index), view, (columns, name_width, chart));
    }
    let shown = all_events(view);
    let at = Rect::new(0, height - 2 - event_rows, width, event_rows + 1);
    blocks::events(paper, at, &shown);
}

/// As many figures as leave room for a name; the first ones are left out last.
fn columns(width: u16) -> u16 {
    let fit = width.saturating_sub(NUMBER + STATE + NAME_MIN + 1) / FIGURE;
    fit.min(Figure::all_compared().count() as u16)
}

fn titles(paper: &mut Paper<'_>, columns: u16, name_width: u16, chart: Rect) {
    let look = paper.look;
    paper.write(NUMBER, 2, Line::styled("target", look.label()));
    paper.write(NUMBER + name_width, 2, Line::styled("state", look.label()));
    let mut end = NUMBER + name_width + STATE;
    for (_, name) in Figure::all_compared().take(columns.into()).filter_map(|one| one.compared) {
        end += FIGURE;
        paper.write_right(end, 2, name, look.label());
    }
    if chart.width > 8 {
        let name = if chart.width < 14 { "tps" } else { "transactions" };
        paper.write(chart.x + 2, 2, Line::styled(name, look.label()));
    }
}

fn line(
    paper: &mut Paper<'_>,
    (row, index): (u16, usize),
    view: &View,
    (columns, name_width, chart): (u16, u16, Rect),
) {
    let look = paper.look;
    let course = &view.shown()[index];
    let is_chosen = view.chosen() == index;
    let mark = if is_chosen { ">" } else { " " };
    let style = if is_chosen { look.figure() } else { Style::new() };
    paper.write(0, row, Line::styled(format!("{mark}{:>2}", index + 1), style));
    let name = words::short_name(&course.target.name, usize::from(name_width) - 1);
    paper.write(NUMBER, row, Line::styled(name, style));
    let (state, state_style) = match course.state() {
        Health::Waiting => ("waiting".to_owned(), look.label()),
        Health::Running => ("running".to_owned(), look.good()),
        Health::Stalled(one) | Health::Silent(one) => (format!(" {} ", one.words()), look.alarm()),
    };
    let state = Line::styled(state, state_style);
    paper.write_within(NUMBER + name_width, row, STATE - 1, state);
    let none = WatchSample::default();
    let sample = course.last().unwrap_or(&none);
    let mut end = NUMBER + name_width + STATE;
    for (place, figure) in Figure::all_compared().take(columns.into()).enumerate() {
        end += FIGURE;
        let value = (figure.of)(sample);
        let text = words::figure(figure, value);
        let style = match (place, value) {
            _ if text == words::NOT_REPORTED => look.absent(),
            (0, Some(pct)) => blocks::age_style(sample, pct, look),
            _ => look.figure(),
        };
        paper.write_right(end, row, &text, style);
    }
    if chart.width > 8 {
        transactions(paper, Rect::new(chart.x + 2, row, chart.width - 2, 1), course);
    }
}

fn transactions(paper: &mut Paper<'_>, at: Rect, course: &Course) {
    let look = paper.look;
    let shown = course::throughput(course, usize::from(at.width));
    let max = course::largest(&shown).unwrap_or(0.0);
    let style = |bar: &Bar| if bar.stalled { look.alarm() } else { look.good() };
    paper.bars(at, &shown, max, style);
}

/// What went wrong with any target, the last first.
fn all_events(view: &View) -> Vec<Event<'_>> {
    let of = |(index, course): (usize, &'_ Course)| {
        (index + 1, words::short_name(&course.target.name, 20))
    };
    let mut all = Vec::new();
    for one in view.shown().iter().enumerate() {
        let (number, name) = of(one);
        all.extend(blocks::events_of(one.1, Some(&format!("{number} {name}"))));
    }
    all.sort_by(|a, b| b.episode.t_s.total_cmp(&a.episode.t_s));
    all
}
