//! What was watched of a target: its course, its stalls, and what was changed on it.

use iostrata_run::{
    FileClass, RunResult, SamplerCost, StallCause, TransactionStall, TunedSetting, WatchDocument,
    WatchSample,
};

use super::common::{changes, facts, findings, unavailable, verifications};
use super::expected;
use crate::RunView;
use crate::cell::{Text, Tone, text, value};
use crate::chart::{Chart, Course, Line, Lines, Plot, Scale, Slices, solid};
use crate::colour::Colour;
use crate::document::{Block, Blocks, Card, On, Report, Style, Table};
use crate::head::Head;
use crate::words;

/// What is counted per second.
const RATE: &str = "transactions/s";
/// How settings are tried out.
const TRIED: &str = "Set on the server under the load that it had, and measured in turns with the \
                     settings of before, which it has again. A pair is two windows one after the \
                     other.";
/// Stalls that a terminal lists.
const STALLS: usize = 10;

type Figure = fn(&WatchSample) -> Option<f64>;
/// A chart's name, title and unit.
type Named = (&'static str, &'static str, &'static str);
/// A chart and its lines.
type Drawn<'a> = (Named, &'a [(&'static str, Figure)]);

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Watch(watched)) = view.result else { return None };
    let mut report = Report::new(&headline(watched), "");
    report.question = Some(
        Text::default()
            .strong(&watched.target.name)
            .plain(format!(": {} {}", watched.target.flavour, watched.target.version)),
    );
    report.strip = cards(watched);
    report.add("stalls", "Stalls", stalls(watched));
    report.add("course", "Second by second", course(watched));
    report.add("changed", "What was set", changed(&watched.settings));
    if !watched.findings.is_empty() {
        report.add("findings", "Findings", findings(&watched.findings, false, None));
    }
    if !watched.advice.is_empty() {
        report.add("advice", "What to change", advised(watched));
    }
    report.add("verified", "Tried here, in turns", verifications(&watched.verifications, TRIED));
    report.add("unavailable", "Not tried", unavailable(view, &watched.unavailable));
    report.add("settings", "The target", target(watched));
    Some((view.head(None, None).with_place(&watched.target.name), report))
}

/// What to change, what that is expected to do, and how to see more of it beforehand.
fn advised(watched: &WatchDocument) -> Blocks {
    let mut body = changes(&watched.advice);
    expected::blocks(watched, &mut body);
    if watched.settings.is_empty() && watched.verifications.is_empty() {
        let say = "What a setting of flushing or the redo would do, before it is set: iostrata \
                   simulate flush --from with this run directory. watch --verify tries it.";
        body.add(On::ALL, Block::Text(Style::Note(Tone::Plain), say.into()));
    }
    body
}

fn headline(watched: &WatchDocument) -> Vec<String> {
    let rate = watched.tps.map_or("Throughput is unknown".to_owned(), |tps| {
        format!("{} on average", words::value(tps, RATE))
    });
    let stalled = match &watched.stalls[..] {
        [] => "it never stalled".to_owned(),
        [only] => {
            let length = words::value(only.length_s, "s");
            format!("it stalled once, for {length}: {}", only.cause)
        }
        all => {
            let length = words::value(watched.stalled_s, "s");
            format!("it stalled {} times, {length} together", all.len())
        }
    };
    vec![format!("{rate} in {}; {stalled}", words::value(watched.duration_s, "s"))]
}

fn cards(watched: &WatchDocument) -> Vec<Card> {
    let mut cards = Vec::new();
    if let Some(tps) = watched.tps {
        let big = words::value(tps, "/s").into();
        let of = format!("mean over {}", words::value(watched.duration_s, "s"));
        cards.push(Card { title: "transactions", big, text: of.into() });
    }
    if let Some(most) = watched.checkpoint_age_pct_max {
        let big = words::value(most, "percent").into();
        let of = "the highest checkpoint age, of the age at which writers wait";
        cards.push(Card { title: "redo", big, text: of.into() });
    }
    if let Some(pages) = watched.pages_written_per_txn {
        let of = "pages written per transaction";
        cards.push(Card { title: "flushing", big: words::small(pages).into(), text: of.into() });
    }
    let longest = watched.stalls.iter().max_by(|a, b| a.length_s.total_cmp(&b.length_s));
    if let Some(TransactionStall { t_s, length_s, cause, .. }) = longest {
        let of = format!("at {}: {cause}", words::value(*t_s, "s"));
        let big = words::value(*length_s, "s").into();
        cards.push(Card { title: "longest stall", big, text: of.into() });
    }
    cards
}

fn stalls(watched: &WatchDocument) -> Blocks {
    let mut body = Blocks::new();
    if watched.stalls.is_empty() {
        let never = "No second had less than half of what was usual in the minute before.";
        body.add(On::FILES, Block::Text(Style::Lead(Tone::Good), never.into()));
        return body;
    }
    let table = Table::of(&watched.stalls)
        .numbers("at", |stall| value(stall.t_s, "s"))
        .numbers("length", |stall| value(stall.length_s, "s"))
        .numbers("lowest rate", |stall| value(stall.min_tps, RATE))
        .words("cause", |stall| text(stall.cause.to_string()))
        .words("what speaks for it", |stall| text(stall.evidence.as_str()))
        .most(STALLS);
    body.table(On::ALL, table);
    if watched.stalls.iter().any(|stall| stall.cause == StallCause::Unknown) {
        body.say("Where the cause is unknown, nothing that the target tells explains the stall.");
    }
    body
}

/// A chart of figures, those of them that are told.
fn chart(
    watched: &WatchDocument,
    (name, title, unit): (&str, &str, &'static str),
    lines: &[(&str, Figure)],
) -> Option<Chart> {
    let n = watched.samples.len();
    let width_s = watched.duration_s / n.checked_sub(1)?.max(1) as f64;
    let mut drawn = Vec::new();
    for (at, (label, figure)) in lines.iter().enumerate() {
        let mut last = watched.samples.iter().find_map(figure)?;
        // Where the target did not answer, the line goes on as it was.
        let values = watched.samples.iter().map(|one| {
            last = figure(one).unwrap_or(last);
            last
        });
        let slices = Slices { width_s, values: values.collect(), unit, title: (*label).to_owned() };
        drawn.push(Line {
            name: if lines.len() > 1 { (*label).to_owned() } else { String::new() },
            stroke: solid(Colour::Line(at)),
            course: Course::Slices(slices),
            marked: None,
        });
    }
    let lines = Lines::new("seconds since watching began", unit, drawn);
    let plot = Plot::Lines(Lines { scale: Scale::Linear, ..lines });
    Some(Chart::new(format!("watch-{name}"), title, plot))
}

/// The lines of which the target tells anything.
fn told<'a>(watched: &WatchDocument, lines: &[(&'a str, Figure)]) -> Vec<(&'a str, Figure)> {
    let is_told = |figure: &Figure| watched.samples.iter().any(|one| figure(one).is_some());
    lines.iter().filter(|(_, figure)| is_told(figure)).copied().collect()
}

/// What held the target back, and what it did with its files.
const BESIDE: [Drawn<'static>; 6] = [
    (
        ("pressure", "Time in which tasks waited (some of them, all of them)", "percent"),
        &[
            ("I/O, some", |one| Some(one.pressure?.io?.some_pct)),
            ("I/O, all", |one| one.pressure?.io?.full_pct),
            ("processors, some", |one| Some(one.pressure?.cpu?.some_pct)),
            ("memory, some", |one| Some(one.pressure?.memory?.some_pct)),
        ],
    ),
    (
        ("stolen", "Processor time that the hypervisor gave to others", "percent"),
        &[("stolen", |one| one.cpu_stolen_pct)],
    ),
    (
        ("limit", "Use of the tightest I/O limit of its control groups", "percent"),
        &[("limit", |one| one.throttle.as_ref()?.io_limit_used_pct)],
    ),
    (
        ("quota", "Time held back by a processor quota, each sample", "ms"),
        &[("held back", |one| Some(one.throttle.as_ref()?.cpu_throttled_us? as f64 / 1e3))],
    ),
    (
        ("files-written", "Written to files, by what they hold", "bytes/s"),
        &[
            ("data", |one| written(one, FileClass::Data)),
            ("redo", |one| written(one, FileClass::Redo)),
            ("doublewrite", |one| written(one, FileClass::Doublewrite)),
            ("undo", |one| written(one, FileClass::Undo)),
            ("temporary", |one| written(one, FileClass::Temporary)),
            ("binlog", |one| written(one, FileClass::Binlog)),
            ("other", |one| written(one, FileClass::Other)),
        ],
    ),
    (
        ("files-sync", "Mean time of a sync, by what the files hold", "ms"),
        &[
            ("data", |one| sync_ms(one, FileClass::Data)),
            ("redo", |one| sync_ms(one, FileClass::Redo)),
            ("binlog", |one| sync_ms(one, FileClass::Binlog)),
        ],
    ),
];

fn course(watched: &WatchDocument) -> Option<Blocks> {
    let all: [Drawn<'_>; 8] = [
        (("tps", "Throughput", RATE), &[("transactions", |one| one.tps)]),
        (
            ("age", "Checkpoint age, of the age at which writers wait", "percent"),
            &[("checkpoint age", |one| one.checkpoint_age_pct)],
        ),
        (
            ("flush", "Pages written, by reason", "pages/s"),
            &[
                ("all", |one| one.flushed_pages_per_s),
                ("adaptive", |one| one.flush_adaptive_pages_per_s),
                ("LRU", |one| one.flush_lru_pages_per_s),
                ("background", |one| one.flush_background_pages_per_s),
                ("sync", |one| one.flush_sync_pages_per_s),
            ],
        ),
        (("dirty", "Dirty pages", "percent"), &[("dirty pages", |one| one.dirty_pct)]),
        (
            ("history", "History list", "commits"),
            &[("history list", |one| one.history_list_length.map(|count| count as f64))],
        ),
        (
            ("open", "Age of the oldest open transaction", "s"),
            &[("oldest transaction", |one| one.oldest_transaction_s)],
        ),
        (
            ("device", "The device", "requests/s"),
            &[
                ("reads", |one| Some(one.device.as_ref()?.reads_per_s)),
                ("writes", |one| Some(one.device.as_ref()?.writes_per_s)),
            ],
        ),
        (
            ("latency", "The device's mean time of a request", "ms"),
            &[
                ("reads", |one| one.device.as_ref()?.read_ms),
                ("writes", |one| one.device.as_ref()?.write_ms),
            ],
        ),
    ];
    let mut body = Blocks::new();
    for (of, lines) in all.into_iter().chain(BESIDE) {
        let lines = told(watched, lines);
        if let Some(chart) = chart(watched, of, &lines).filter(|_| !lines.is_empty()) {
            body.chart(chart);
        }
    }
    (watched.samples.len() > 1).then_some(body)
}

fn written(sample: &WatchSample, class: FileClass) -> Option<f64> {
    sample.files.as_ref()?.class(class)?.write_bytes_per_s
}

fn sync_ms(sample: &WatchSample, class: FileClass) -> Option<f64> {
    sample.files.as_ref()?.class(class)?.sync_ms
}

fn changed(settings: &[TunedSetting]) -> Option<Blocks> {
    let table = Table::of(settings)
        .numbers("at", |one| value(one.t_s, "s"))
        .words("setting", |one| text(one.name.as_str()))
        .numbers("from", |one| text(one.from.as_str()))
        .numbers("to", |one| text(one.to.as_str()))
        .words("why", |one| text(one.why.as_str()))
        .most(STALLS);
    let mut body = Blocks::new();
    body.table(On::ALL, table);
    (!settings.is_empty()).then_some(body)
}

/// What it is, what it does not tell, and what asking it cost.
fn target(watched: &WatchDocument) -> Blocks {
    let mut body = Blocks::new();
    let SamplerCost { samples, failed, sample_us_max, .. } = watched.sampler;
    if samples > 0 {
        body.say(format!(
            "The target was asked {}; the longest answer took {}.",
            iostrata_units::times(samples),
            words::value(sample_us_max, "us")
        ));
    }
    if failed > 0 {
        body.note(format!("It did not answer {}.", iostrata_units::times(failed)));
    }
    if !watched.target.missing.is_empty() {
        body.title(On::FILES, "What it does not tell");
        let missing = watched.target.missing.iter().map(|one| one.as_str().into()).collect();
        body.add(On::FILES, Block::List(missing));
    }
    let settings = watched.target.settings.clone().into_iter().collect();
    body.folded(On::PAGE, "Its settings", facts(settings));
    body
}
