//! The blocks of a target's page: checkpoint age on its way to the limit, transactions, flushing by
//! reason, purge and requests in flight, the device in columns as iostat's, a row each for what
//! tasks waited for, what was written to which files and what clients sent, and the strip of what
//! went wrong.

use iostrata_run::host::{LimitedRate, PressureShare, ThrottleEvidence};
use iostrata_run::{FIGURES, Figure, FigureRow, FileClass, WatchDevice, WatchSample};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::paper::{FigureText, Paper};
use super::words;
use crate::screen::course::{self, Bar, Course, Episode, Fold, SAMPLES_PER_BAR, Trouble};
use crate::screen::look::Look;

/// Rows of the block without its chart.
pub(crate) const AGE_ROWS: u16 = 4;

/// Where a target does not report its async limit, in percent of the limit.
const ASYNC_PCT_ELSE: f64 = 85.0;
/// Where it does not report its sync limit, in percent of the limit.
const SYNC_PCT_ELSE: f64 = 95.0;

/// A mark of the gauge.
struct Mark {
    name: &'static str,
    pct: f64,
    symbol: &'static str,
}

/// Draws figures, gauge, its marks and, in what is left of the room, the last minutes.
pub(crate) fn age(paper: &mut Paper<'_>, at: Rect, course: &Course) {
    let none = WatchSample::default();
    let sample = course.last().unwrap_or(&none);
    paper.title(Rect { height: 1, ..at }, "Redo", Vec::new(), "");
    let row = |n: u16| Rect::new(at.x + 1, at.y + n, at.width.saturating_sub(2), 1);
    age_figures(paper, row(1), sample);
    gauge(paper, row(2), sample);
    age_legend(paper, row(3), sample);
    if at.height > AGE_ROWS {
        let room = Rect { height: at.height - AGE_ROWS, ..row(AGE_ROWS) };
        let look = paper.look;
        let width = usize::from(room.width);
        let shown = course::bars(course, width, Fold::Max, |one| one.checkpoint_age_pct);
        // The scale is the limit, whatever the last minutes had.
        paper.bars(room, &shown, 100.0, |bar| match bar.value {
            Some(pct) => age_style(sample, pct, look),
            None => look.absent(),
        });
    }
}

fn age_figures(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    let look = paper.look;
    let pct = sample.checkpoint_age_pct;
    let age = format!(
        "{} of {}",
        words::bytes(sample.checkpoint_age_bytes),
        words::bytes(sample.checkpoint_age_limit_bytes),
    );
    let age =
        if sample.checkpoint_age_bytes.is_none() { words::NOT_REPORTED.to_owned() } else { age };
    let style = pct.map_or(look.figure(), |pct| age_style(sample, pct, look));
    // The title names of what, where there is no room to repeat it.
    let name = if at.width < 70 { "age" } else { "checkpoint age" };
    let mut figures = vec![FigureText::new(name, age)];
    if sample.checkpoint_age_bytes.is_some() {
        figures.push(FigureText::new("", words::percent(pct)).style(style));
    }
    figures.extend(row_figures(FigureRow::Redo, sample));
    paper.figures(at, figures);
}

/// How an age is drawn: by the marks that it passed.
pub(crate) fn age_style(sample: &WatchSample, pct: f64, look: Look) -> Style {
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
        let text = "no gauge: no checkpoint age with its limit is known";
        paper.write_within(at.x, at.y, at.width, Line::styled(text, look.absent()));
        return;
    };
    let cell = |pct: f64| (pct / 100.0 * f64::from(at.width)).round() as u16;
    let filled = cell(pct.clamp(0.0, 100.0)).min(at.width);
    let (full, empty) = if look.unicode { ("\u{2588}", "\u{2591}") } else { ("#", ".") };
    let bar = vec![
        Span::styled(full.repeat(usize::from(filled)), age_style(sample, pct, look)),
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

fn age_legend(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    if sample.checkpoint_age_pct.is_none() {
        return;
    }
    let look = paper.look;
    let told = |mark: Mark| format!("{} {} {:.0} %", mark.symbol, mark.name, mark.pct);
    let texts: Vec<String> = marks(sample, look).into_iter().map(told).collect();
    paper.write_right(at.x + at.width, at.y, &texts.join("   "), look.label());
}

/// Draws the title and, below it, the bars; stalls have a mark above them.
pub(crate) fn throughput(paper: &mut Paper<'_>, at: Rect, course: &Course) {
    let look = paper.look;
    let room =
        Rect::new(at.x + 1, at.y + 1, at.width.saturating_sub(2), at.height.saturating_sub(1));
    let shown = course::throughput(course, usize::from(room.width));
    let max = course::largest(&shown);
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

/// Rows of the block.
pub(crate) const FLUSHING_ROWS: u16 = 6;

/// Columns of a name and of its figure, next to a chart.
const NAME: u16 = 12;
const FIGURE: u16 = 8;

/// The kind that must not be.
const LAST: &str = "sync";

/// Every kind that the table of figures has, with its name.
fn kinds() -> impl Iterator<Item = (&'static str, &'static Figure)> {
    // Statements have kinds as well.
    let is_kind = |figure: &Figure| {
        figure.label.is_some_and(|(name, _)| name == "kind") && figure.unit == "pages/s"
    };
    let named = |figure: &'static Figure| Some((figure.chart?.1, figure));
    FIGURES.iter().filter(move |figure| is_kind(figure)).filter_map(named)
}

/// Draws the kinds with their last minutes, all on one scale, and the dirty pages.
pub(crate) fn flushing(paper: &mut Paper<'_>, at: Rect, course: &Course) {
    let look = paper.look;
    let none = WatchSample::default();
    let sample = course.last().unwrap_or(&none);
    let chart = at.width.saturating_sub(NAME + FIGURE + 4);
    let of = |figure: &Figure| course::bars(course, usize::from(chart), Fold::Mean, figure.of);
    let charts: Vec<Vec<Bar>> = kinds().map(|(_, figure)| of(figure)).collect();
    let max = course::largest(charts.iter().flatten());
    let left = vec![
        Span::styled(words::count(sample.flushed_pages_per_s), look.figure()),
        Span::styled(" pages/s in all ", look.label()),
    ];
    let right = paper.scale(max);
    paper.title(Rect { height: 1, ..at }, "Flushing", left, &right);
    for (row, ((name, figure), shown)) in (at.y + 1..).zip(kinds().zip(&charts)) {
        let is_last = name == LAST;
        let now = (figure.of)(sample);
        let is_trouble = is_last && now.is_some_and(|rate| rate > 0.0);
        paper.write_within(at.x + 1, row, NAME, Line::styled(name, look.label()));
        let style = match now {
            None => look.absent(),
            Some(_) if is_trouble => look.alarm(),
            Some(_) => look.figure(),
        };
        paper.write_right(at.x + 1 + NAME + FIGURE, row, &words::count(now), style);
        let room = Rect::new(at.x + NAME + FIGURE + 3, row, chart, 1);
        let style = if is_last { look.alarm_bar() } else { look.good() };
        paper.bars(room, shown, max.unwrap_or(0.0), |_| style);
    }
    let room = Rect::new(at.x + 1, at.y + FLUSHING_ROWS - 1, at.width.saturating_sub(2), 1);
    paper.figures(room, row_figures(FigureRow::Pool, sample));
}

/// The figures of a row, as the table has them.
fn row_figures(row: FigureRow, sample: &WatchSample) -> Vec<FigureText<'static>> {
    let text = |figure: &Figure| {
        let (_, name, after) = figure.row.filter(|of| of.0 == row)?;
        let text = words::figure(figure, (figure.of)(sample));
        let after = if text == words::NOT_REPORTED { "" } else { after };
        Some(FigureText::new(name, text).after(after))
    };
    FIGURES.iter().filter_map(text).collect()
}

/// Seconds from which on an open transaction is shown, and from which on it is a warning: what it
/// sees is not purged.
const OLD_S: f64 = 10.0;
pub(crate) const TOO_OLD_S: f64 = 60.0;
/// Columns that have room for it next to the rest.
const ROOMY: u16 = 95;

/// Everything in one row.
pub(crate) fn purge_row(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    let mut figures = vec![
        FigureText::new("history", words::number(sample.history_list_length)),
        FigureText::new("purge", per_second(sample)),
    ];
    figures.extend(row_figures(FigureRow::Requests, sample));
    if at.width >= ROOMY {
        figures.extend(oldest(paper.look, sample));
    }
    paper.figures(at, figures);
}

/// History and purge with their last minutes, and what waits: three rows.
pub(crate) fn purge_rows(paper: &mut Paper<'_>, at: Rect, course: &Course) {
    let none = WatchSample::default();
    let sample = course.last().unwrap_or(&none);
    let history = |one: &WatchSample| one.history_list_length.map(|length| length as f64);
    purge_chart(
        paper,
        at,
        "history",
        &words::number(sample.history_list_length),
        (course, history),
    );
    let below = Rect { y: at.y + 1, ..at };
    purge_chart(paper, below, "purge", &per_second(sample), (course, |one| one.purge_per_s));
    let mut figures = row_figures(FigureRow::Requests, sample);
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

type PurgeChart<'a> = (&'a Course, fn(&WatchSample) -> Option<f64>);

fn purge_chart(
    paper: &mut Paper<'_>,
    at: Rect,
    name: &str,
    figure: &str,
    (course, of): PurgeChart<'_>,
) {
    let look = paper.look;
    paper.write_within(at.x, at.y, NAME, Line::styled(name.to_owned(), look.label()));
    let is_told = figure != words::NOT_REPORTED;
    let style = if is_told { look.figure() } else { look.absent() };
    paper.write_right(at.x + NAME + FIGURE, at.y, figure, style);
    let width = at.width.saturating_sub(NAME + FIGURE + 2);
    let shown = course::bars(course, usize::from(width), Fold::Mean, of);
    let max = course::largest(&shown).unwrap_or(0.0);
    let room = Rect::new(at.x + NAME + FIGURE + 2, at.y, width, 1);
    paper.bars(room, &shown, max, |_| look.good());
}

fn per_second(sample: &WatchSample) -> String {
    words::told(sample.purge_per_s, |rate| iostrata_stats::units::rate(rate).replace(" /s", "/s"))
}

/// Rows of it.
pub(crate) const DEVICE_ROWS: u16 = 2;

type DeviceColumn =
    (&'static str, &'static str, fn(&WatchDevice) -> Option<f64>, fn(Option<f64>) -> String);

/// Name, short name, value and how it is written.
const DEVICE_COLUMNS: [DeviceColumn; 6] = [
    ("reads/s", "r/s", |one| Some(one.reads_per_s), words::count),
    ("writes/s", "w/s", |one| Some(one.writes_per_s), words::count),
    ("flushes/s", "f/s", |one| one.flushes_per_s, words::count),
    ("read ms", "r ms", |one| one.read_ms, words::milliseconds),
    ("write ms", "w ms", |one| one.write_ms, words::milliseconds),
    ("in flight", "aqu-sz", |one| Some(one.in_flight), words::count),
];

/// Columns of a name of a device.
const DEVICE_NAME: u16 = 12;

/// Draws the names of the columns and the figures below them.
pub(crate) fn device(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    let look = paper.look;
    paper.write_within(at.x, at.y, DEVICE_NAME, Line::styled("device", look.label()));
    let Some(device) = &sample.device else {
        let text = "n/a: not on this host, or not found";
        let row = Rect { x: at.x + DEVICE_NAME, ..at };
        paper.write_within(
            row.x,
            row.y,
            at.width.saturating_sub(DEVICE_NAME),
            Line::styled(text, look.absent()),
        );
        return;
    };
    let name = words::short_name(&device.name, usize::from(DEVICE_NAME) - 1);
    paper.write_within(at.x, at.y + 1, DEVICE_NAME, Line::styled(name, look.figure()));
    let wide = at.width.saturating_sub(DEVICE_NAME) / DEVICE_COLUMNS.len() as u16;
    let wide = wide.min(12);
    for (end, (name, short, value, write)) in
        (1_u16..).map(|n| at.x + DEVICE_NAME + n * wide).zip(DEVICE_COLUMNS)
    {
        let name = if wide > 9 { name } else { short };
        paper.write_right(end, at.y, name, look.label());
        let text = write(value(device));
        let style = if text == words::NOT_REPORTED { look.absent() } else { look.figure() };
        paper.write_right(end, at.y + 1, &text, style);
    }
}

/// Rows of it, where there is room.
pub(crate) const HOST_ROWS: u16 = 3;

/// From this share of a limit on requests were held back, in percent.
const HELD_PCT: f64 = 90.0;

/// Draws as many rows as there are.
pub(crate) fn host(paper: &mut Paper<'_>, at: Rect, sample: &WatchSample) {
    let look = paper.look;
    let rows = [pressure(look, sample), files(sample), traffic(look, sample)];
    for (row, figures) in (at.y..at.y + at.height).zip(rows) {
        paper.figures(Rect { y: row, height: 1, ..at }, figures);
    }
}

fn pressure(look: Look, sample: &WatchSample) -> Vec<FigureText<'static>> {
    let pressure = sample.pressure.unwrap_or_default();
    let some = |share: Option<PressureShare>| {
        words::told(share.map(|share| share.some_pct), |pct| format!("{pct:.0} %"))
    };
    let mut figures = vec![
        FigureText::new("pressure  io", some(pressure.io)),
        FigureText::new("cpu", some(pressure.cpu)),
        FigureText::new("memory", some(pressure.memory)),
    ];
    let throttle = sample.throttle.as_ref();
    let used = throttle.and_then(|of| of.io_limit_used_pct);
    let limit = FigureText::new("I/O limit", words::told(used, |pct| format!("{pct:.0} %")));
    figures.push(match (throttle.and_then(bound), used) {
        (None, _) => limit,
        (Some(bound), used) => {
            let is_held = used.is_some_and(|used| used >= HELD_PCT);
            let style = if is_held { look.warning() } else { look.figure() };
            FigureText { text: format!("{} of {bound}", limit.text), ..limit }.style(style)
        }
    });
    let held = throttle.and_then(|of| of.cpu_throttled_us).map(|us| us as f64);
    figures.push(FigureText::new("quota", words::told(held, iostrata_stats::units::microseconds)));
    let stolen = words::told(sample.cpu_stolen_pct, |pct| format!("{pct:.0} %"));
    figures.push(FigureText::new("stolen", stolen));
    figures
}

/// Statements, misses of the pool, connections, and what else there is of replication and room.
fn traffic(look: Look, sample: &WatchSample) -> Vec<FigureText<'static>> {
    let count = |figure: Option<f64>| words::told(figure, iostrata_stats::units::count);
    let writes = [sample.inserts_per_s, sample.updates_per_s, sample.deletes_per_s];
    let writes = writes.into_iter().sum::<Option<f64>>();
    let misses = words::told(sample.pool_miss_pct, |pct| format!("{pct:.1} %"));
    let mut figures = vec![
        FigureText::new("reads", format!("{}/s", count(sample.selects_per_s))),
        FigureText::new("writes", format!("{}/s", count(writes))),
        FigureText::new("misses", misses),
    ];
    if let Some((now, limit)) = sample.connections.zip(sample.connections_limit) {
        let style = if 10 * now >= 9 * limit { look.warning() } else { look.figure() };
        let text = format!("{now} of {limit}");
        figures.push(FigureText::new("connections", text).style(style));
    }
    if let Some(lag_s) = sample.replica_lag_s {
        figures.push(FigureText::new("replica behind", words::length(lag_s as f64)));
    }
    if let Some(pct) = sample.flow_control_paused_pct {
        figures.push(FigureText::new("flow control", format!("{pct:.0} %")));
    }
    if let Some(free) = sample.disk_free_bytes {
        figures.push(FigureText::new("disk free", iostrata_stats::units::bytes(free as f64)));
    }
    figures
}

/// The limit that is used the most: `1.5 K writes/s`.
fn bound(throttle: &ThrottleEvidence) -> Option<String> {
    let rate = throttle.io_limit_rate?;
    let bound = throttle.io_limit.as_ref()?.bound(rate)? as f64;
    Some(match rate {
        LimitedRate::ReadBytes => format!("{}/s read", iostrata_stats::units::bytes(bound)),
        LimitedRate::WriteBytes => format!("{}/s written", iostrata_stats::units::bytes(bound)),
        LimitedRate::Reads => format!("{} reads/s", iostrata_stats::units::count(bound)),
        LimitedRate::Writes => format!("{} writes/s", iostrata_stats::units::count(bound)),
    })
}

/// What is written per second to the files of each class that is reported.
fn files(sample: &WatchSample) -> Vec<FigureText<'static>> {
    let Some(files) = &sample.files else {
        return vec![FigureText::new("written", words::NOT_REPORTED.to_owned())];
    };
    let written = |class: FileClass| {
        let bytes = files.class(class)?.write_bytes_per_s?;
        let text = iostrata_stats::units::bytes(bytes);
        Some(FigureText::new(class.word(), format!("{text}/s")))
    };
    let mut figures: Vec<FigureText<'static>> =
        FileClass::ALL.into_iter().filter_map(written).collect();
    if let Some(first) = figures.first_mut().filter(|first| first.name == FileClass::Data.word()) {
        first.name = "written  data";
    }
    figures
}

/// Below the trouble's name.
const EVIDENCE_INDENT: &str = "           ";

/// An episode and, where several targets are shown, whose it is.
pub(crate) struct Event<'a> {
    pub(crate) episode: &'a Episode,
    pub(crate) is_open: bool,
    pub(crate) target: Option<String>,
}

/// What went wrong with one target, the last first.
pub(crate) fn events_of<'a>(
    course: &'a Course,
    target: Option<&str>,
) -> impl Iterator<Item = Event<'a>> {
    let target = target.map(str::to_owned);
    let event = move |episode: &'a Episode| Event {
        episode,
        is_open: course.is_open(episode),
        target: target.clone(),
    };
    course.episodes().map(event)
}

/// Draws as many as there is room for.
pub(crate) fn events(paper: &mut Paper<'_>, at: Rect, events: &[Event<'_>]) {
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
    let lines = events.iter().flat_map(|event| event_lines(look, event, usize::from(width)));
    for (row, line) in (at.y + 1..at.y + at.height).zip(lines) {
        paper.write_within(at.x + 1, row, width, line);
    }
}

/// One line; two where the evidence does not fit next to the rest.
fn event_lines(look: Look, event: &Event<'_>, width: usize) -> Vec<Line<'static>> {
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
