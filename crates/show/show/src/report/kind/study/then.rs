//! What was printed then, compared with what is measured now, and how long requests wait as their
//! rate comes near the limit.

use iostrata_run::{StudyAxis, StudyDocument, StudyResponse, ThenRow};

use super::levels::{axis_words, listed};
use crate::report::cell::{Cell, Text, empty, figure, interval, ratio, text, value, verdicts};
use crate::report::chart::{Chart, Course, Line, Lines, Mark, Plot, solid};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, On, Panels, Table};
use crate::report::words;

/// Units of what the device counts (merged requests, bytes moved, requests in its queue) and of the
/// history. There zero is a figure like any other; of requests it would mean that none completed.
const MAY_BE_ZERO: [&str; 4] = ["/s", "MiB/s", "requests", "commits"];

/// The table; nothing for a study that replicates nothing. Blank where nothing was printed.
pub(super) fn section(study: &StudyDocument) -> Option<Blocks> {
    let mut source = Text::default();
    if let Some(from) = &study.then_source {
        source = source.plain("Then: ").strong(from).plain(". ");
    }
    let machine = study.then_machine.iter().map(|machine| format!("{machine}. "));
    let mut body = Blocks::new();
    body.say(source.plain(machine.collect::<String>()).plain(
        "Only figures that the original prints stand under then; what could be read off its \
         graphs is left blank.",
    ));
    let table = Table::of(&study.then)
        .words("What", |row| text(&row.text).tip(row.points.join(", ")))
        .numbers("Then", |row| {
            text(
                row.then.map_or(String::new(), |low| words::printed(low, row.then_high, &row.unit)),
            )
        })
        .numbers("Now", now)
        .numbers_on(On::FILES, "95 %", |row| {
            row.now.map_or_else(empty, |_| interval(row.now, row.now_ci95, &row.unit))
        })
        .numbers("Times", |row| {
            row.times.filter(|times| times.is_normal()).map_or_else(empty, ratio)
        })
        .words("Cautions", |row| row.now.map_or_else(empty, |_| verdicts(&row.verdicts)));
    body.table(On::ALL, table);
    (!study.then.is_empty()).then_some(body)
}

fn now(row: &&ThenRow) -> Cell {
    let Some(now) = row.now else { return empty() };
    let unsure = if row.now_ci95.is_none() { ", no interval" } else { "" };
    let tip = format!("{}{unsure}, n = {}", words::exact(now), row.now_n);
    let cell = match MAY_BE_ZERO.contains(&row.unit.as_str()) {
        true => value(now, &row.unit),
        false => figure(now, row.now_ci95, row.now_n, &row.unit),
    };
    cell.tip(tip)
}

/// Every axis of rates with its response times.
fn rated(study: &StudyDocument) -> impl Iterator<Item = (&StudyAxis, &StudyResponse)> {
    study.axes.iter().filter_map(|axis| Some((axis, axis.response.as_ref()?)))
}

/// Whether a factor is one of rates.
pub(super) fn is_rated(study: &StudyDocument, factor: &str) -> bool {
    rated(study).any(|(axis, _)| axis.factor == factor)
}

/// The levels in which an axis of rates differs from the others, in words.
fn rated_place(study: &StudyDocument, axis: &StudyAxis) -> String {
    let mut levels = axis.levels.clone();
    levels.retain(|at| rated(study).any(|(other, _)| !other.levels.contains(at)));
    listed(&levels)
}

/// A curve for each axis of rates; nothing where no request has a schedule.
pub(super) fn response(study: &StudyDocument) -> Option<Blocks> {
    let first = rated(study).next()?.0;
    let mut body = Blocks::new();
    body.say(
        "From the moment that the schedule gives a request to its end, so that a request counts \
         its time in the queue even if its worker was still busy with others.",
    );
    let charts = responses(study, "response");
    body.add(On::PAGE, Block::Panels(Panels { legend: Vec::new(), charts, has_switch: false }));
    let mut rows = Vec::new();
    for (axis, response) in rated(study) {
        let values = axis.x.iter().zip(&response.mean_us).zip(&response.p99_us).enumerate();
        let place = rated_place(study, axis);
        rows.extend(values.map(|(n, ((x, mean), p99))| {
            let group = (n == 0 && !place.is_empty()).then(|| place.clone());
            (group, *x, *mean, *p99, response)
        }));
    }
    let table = Table::of(rows)
        .numbers(&words::capital(&axis_words(&first.factor)), |row| text(format!("{}", row.1)))
        .numbers("Mean", |row| value(row.2, "us"))
        .numbers("99 % within", |row| value(row.3, "us"))
        .words("", |row| text(remark(row.1, row.4)))
        .each(|row, shown| shown.group.clone_from(&row.0));
    body.folded(On::ALL, "As a table", table);
    Some(body)
}

/// The response time over the rate, a chart for each axis of rates.
pub(super) fn responses(study: &StudyDocument, name: &str) -> Vec<Chart> {
    let curve = |(n, (axis, response))| {
        curve(format!("{name}-{n}"), &rated_place(study, axis), axis, response)
    };
    rated(study).enumerate().map(curve).collect()
}

/// The remark on a rate: where waiting begins, where the queue grows.
fn remark(x: f64, response: &StudyResponse) -> String {
    let backlog = response.backlog.as_ref().filter(|backlog| backlog.at == x);
    match backlog {
        Some(backlog) => format!("the queue grows by {} /s", words::value(backlog.per_s, "")),
        None if response.knee == Some(x) => "waiting begins".to_owned(),
        None => String::new(),
    }
}

fn curve(name: String, place: &str, axis: &StudyAxis, response: &StudyResponse) -> Chart {
    let title = if place.is_empty() { "Response time".to_owned() } else { words::title(place) };
    let line = |name: &str, colour, values: &[f64], marked| {
        let mark = |(x, y): (&f64, &f64)| {
            let (shown, exact) = (words::value(*y, "us"), words::exact(*y));
            let hover = format!("{title}, {x} % of the limit\n{name} {shown}  ({exact})");
            Mark { x: *x, y: *y, ci95: None, hover }
        };
        let marks = axis.x.iter().zip(values).map(mark).collect();
        Line { name: name.to_owned(), stroke: solid(colour), course: Course::Points(marks), marked }
    };
    let knee = response.knee.map(|knee| (knee, "waiting begins"));
    let lines = vec![
        line("99th percentile", Colour::Line(0), &response.p99_us, knee),
        line("mean", Colour::Grey, &response.mean_us, None),
    ];
    let says = response.backlog.as_ref().map_or_else(String::new, |backlog| {
        format!(
            "At {} % the queue grows by {} requests every second ({}), for as long as that lasts.",
            backlog.at,
            words::value(backlog.per_s, ""),
            words::interval(backlog.per_s_ci95, Some(backlog.per_s), ""),
        )
    });
    let plot = Plot::Lines(Lines::new(axis_words(&axis.factor), "response time, us", lines));
    Chart::new(name, title, plot).says(says)
}
