//! Sections that several kinds have: findings, advice, series, what is missing, cautions, the
//! machine and what lies under the directory.

use std::collections::BTreeSet;

use iostrata_plan::{Layer, Point};
use iostrata_run::host::{BlockLayer, DeviceFacts, IoLimit, LayerKind};
use iostrata_run::{
    Advice, Event, Finding, FindingKind, OpFigures, ProbeHost, Replicate, Risk, StreamFigures,
    Unavailable, Unknown, Verification,
};
use iostrata_stats::{LatencyUs, Verdict};
use serde_json::Value;

use crate::report::cell::{
    Span, Text, Tone, change, code, count, empty, figure, optional, text, verdicts,
};
use crate::report::chart::{Chart, Course, Line, Lines, Plot, Scale, Slices, Stroke};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, Entry, On, Style, Table, TableLayout, TableOf};
use crate::report::{RunView, words};

/// What could not be measured that a terminal names.
const UNAVAILABLE: usize = 4;
/// Where the settings of the server stand.
const SERVER: &str = "my.cnf";
/// How a place begins that is not of one known server.
const OPTION_FILE: &str = "my.cnf";
/// Evidence that names points; they stand in the curve's own row.
const POINTS: &str = "points";

/// Names with texts.
pub(super) fn facts(all: Vec<(String, String)>) -> Block {
    let plain = |(name, what): (String, String)| (name.into(), what.into());
    Block::Facts(all.into_iter().map(plain).collect(), usize::MAX)
}

/// Every finding, or that none was found; `cleared` states what that means, where it is known.
pub(super) fn findings(findings: &[Finding], interrupted: bool, cleared: Option<&str>) -> Blocks {
    let mut body = Blocks::new();
    let lead = |tone, words: &str| Block::Text(Style::Lead(tone), words.into());
    if findings.is_empty() && interrupted {
        let none = "Nothing was found before the run was stopped.";
        body.add(On::FILES, lead(Tone::Plain, none));
    } else if findings.is_empty() {
        body.add(On::FILES, lead(Tone::Good, "Nothing stands out."));
        if let Some(cleared) = cleared {
            body.say(cleared);
        }
    } else {
        let entry = |(n, one)| finding(findings, n, one);
        let all = findings.iter().enumerate().map(entry).collect();
        body.add(On::FILES, Block::Entries(all));
    }
    body
}

fn finding(all: &[Finding], n: usize, finding: &Finding) -> Entry {
    // Several findings of a study may share an id; links go to the first.
    let first = all.iter().position(|one| one.id == finding.id) == Some(n);
    let kind = match finding.kind {
        FindingKind::Loss => Span::Tag(Tone::Warn, "loss".to_owned()),
        FindingKind::Sizing => Span::Tag(Tone::Plain, "sizing".to_owned()),
        FindingKind::Caution => Span::Tag(Tone::Warn, "caution".to_owned()),
    };
    let mut about = Text(vec![kind, Span::Layer(finding.layer)]).plain(" \u{b7} ");
    if let Some(effect) = finding.effect_pct {
        about = about.plain("effect ").strong(words::value(effect, "percent"));
        if let Some(ci95) = finding.effect_pct_ci95 {
            let range = words::interval(ci95, Some(effect), "percent");
            about = about.plain(format!(" ({range}, n = {})", finding.effect_pct_n));
        }
        about = about.plain(" \u{b7} ");
    }
    let shown = |name: &str, what: &Value| !what.is_null() && name != POINTS;
    let facts = finding.evidence.iter().filter(|(name, what)| shown(name, what));
    let fact = |(name, what): (String, String)| (name.into(), what.into());
    Entry {
        anchor: first.then(|| format!("finding-{}", finding.id)),
        of: finding.id.clone(),
        title: finding.text.as_str().into(),
        about: about.with(Span::Code(finding.id.clone())),
        text: Vec::new(),
        facts: facts.map(|(name, what)| fact(words::evidence(name, what))).collect(),
    }
}

/// A fragment to copy for the server, then every advice with risk and undo.
pub(super) fn changes(all: &[Advice]) -> Blocks {
    let mut body = Blocks::new();
    if all.is_empty() {
        let none = "Nothing was advised.";
        body.add(On::FILES, Block::Text(Style::Lead(Tone::Plain), none.into()));
        return body;
    }
    let server = all.iter().filter(|advice| advice.where_.contains(SERVER));
    let lines: String = server.map(option_lines).collect();
    if !lines.is_empty() {
        body.title(On::PAGE, "For the server");
        body.add(On::PAGE, Block::Snippet("advice-my-cnf", format!("[mysqld]\n{lines}")));
    }
    body.add(On::ALL, Block::Entries(all.iter().map(advice).collect()));
    body
}

/// The lines of an option file. Where it is not known which server reads it, a setting that not all
/// of them have is prefixed, or the others would not start.
fn option_lines(advice: &Advice) -> String {
    // A value cannot bring lines of its own into a file that is copied.
    let one_line = |text: &str| text.replace(|c: char| c.is_control(), " ");
    let (setting, value) = (one_line(&advice.setting), one_line(&advice.value));
    match advice.versions.as_ref().filter(|_| advice.where_.starts_with(OPTION_FILE)) {
        Some(versions) => format!("# {}\nloose_{setting} = {value}\n", one_line(versions)),
        None => format!("{setting} = {value}\n"),
    }
}

fn advice(advice: &Advice) -> Entry {
    let tag = |tone, text: &str| Span::Tag(tone, text.to_owned());
    let mut about = Text::default();
    if let Some(default) = &advice.default {
        about = about.with(tag(Tone::Plain, &format!("default {default}")));
    }
    // The releases that have it are more useful than "the server's option file".
    let some = advice.versions.as_ref();
    about = about.with(tag(Tone::Plain, some.unwrap_or(&advice.where_)));
    let tone = if advice.risk == Risk::None { Tone::Good } else { Tone::Warn };
    about = about.with(tag(tone, words::risk(advice.risk)));
    for id in &advice.why {
        about = about.with(Span::Link(format!("finding-{id}"), id.clone())).plain(" ");
    }
    let statement = match advice.value.is_empty() {
        true => advice.setting.clone(),
        false => format!("{} = {}", advice.setting, advice.value),
    };
    Entry {
        of: advice.setting.clone(),
        title: Text(vec![Span::Code(statement)]),
        about,
        text: vec![advice.text.clone(), format!("To undo: {}", advice.undo)],
        facts: [("Where", some.map(|_| &advice.where_)), ("Source", advice.source.as_ref())]
            .into_iter()
            .filter_map(|(name, what)| Some((name.into(), what?.clone().into())))
            .collect(),
        ..Entry::default()
    }
}

/// Settings that were tried; `how` is the way.
pub(super) fn verifications(all: &[Verification], how: &str) -> Option<Blocks> {
    let result = |confirmed: bool| match confirmed {
        true => Span::Tag(Tone::Good, "confirmed".to_owned()),
        false => Span::Tag(Tone::Plain, "no measurable gain".to_owned()),
    };
    let table = Table::of(all)
        .words("Setting", |one| code(&one.setting))
        .words("What was tried", |one| text(&one.text))
        .numbers("Before", |one| figure(one.before, one.before_ci95, one.before_n, &one.unit))
        .numbers("After", |one| figure(one.after, one.after_ci95, one.after_n, &one.unit))
        .numbers("Effect", |one| match one.effect_pct {
            Some(effect) => change(effect, one.effect_pct_ci95, one.effect_pct_n, "percent"),
            None => empty(),
        })
        .words("Result", |one| text(Text(vec![result(one.confirmed)])))
        .kind(TableLayout::Tight);
    let mut body = Blocks::new();
    body.say(how);
    body.table(On::ALL, table);
    (!all.is_empty()).then_some(body)
}

/// What is not known, with the reason of each.
pub(super) fn unknown(body: &mut Blocks, all: &[Unknown]) {
    if all.is_empty() {
        return;
    }
    let why =
        |one: &Unknown| (one.title.clone(), words::because(one.why, one.between, None, &one.unit));
    body.title(On::FILES, "Not known");
    body.add(On::FILES, Block::Named(all.iter().map(why).collect(), usize::MAX));
}

/// What could not be measured here, by the document and by the events, once each.
pub(super) fn unavailable(view: &RunView<'_>, of_document: &[Unavailable]) -> Option<Blocks> {
    let from_events = view.events.iter().filter_map(|event| match event {
        Event::Unavailable(unavailable) => Some(unavailable),
        _ => None,
    });
    let mut all: Vec<&Unavailable> = Vec::new();
    for one in of_document.iter().chain(from_events) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    let words = |one: &&Unavailable| {
        let fix = one.fix.as_ref().map_or(String::new(), |fix| format!("; {fix}"));
        (one.what.clone(), format!("{}{fix}", one.why))
    };
    let named = Block::Named(all.iter().map(words).collect(), UNAVAILABLE);
    let mut body = Blocks::new();
    body.add(On::ALL, named);
    (!all.is_empty()).then_some(body)
}

/// Every verdict that occurs in the run, explained.
pub(super) fn cautions(body: &mut Blocks, all: BTreeSet<Verdict>) {
    if all.is_empty() {
        body.add(
            On::PAGE,
            Block::Text(Style::Plain, "No figure of this run carries a caution.".into()),
        );
    } else {
        body.title(On::FILES, "Cautions in this run");
        body.add(On::FILES, Block::Verdicts(all.into_iter().collect()));
    }
}

/// What the interval and the number of samples of a figure are.
pub(super) const INTERVAL: &str = "The interval shown is the wider of the one within replicates \
                                   and the one between them, at 95 %. n is the number of \
                                   independent samples behind it.";

/// How measured figures are made, and every verdict that occurs.
pub(super) fn method(has_losses: bool, all: BTreeSet<Verdict>) -> Blocks {
    let mut body = Blocks::new();
    body.say(format!(
        "Each point is measured in replicates, taken in turns with the points it is compared with. \
         A replicate is cut into at least 30 batches, long enough to be independent; its interval \
         comes from them. {INTERVAL}"
    ));
    if has_losses {
        body.say(
            "A loss is stated only between two rungs that do identical work and differ in one \
             layer, with the interval of the paired difference. Where further points can confirm \
             a finding, it is stated only after they have. No measurable difference is a result, \
             too.",
        );
    }
    body.say(
        "Latency is service latency: from the start of a request to its completion. Percentiles \
         are within 1 %. On hover a chart shows the rounded figure and, in brackets, the number as \
         the run directory has it.",
    );
    cautions(&mut body, all);
    body
}

/// The verdicts of every replicate and its streams.
pub(super) fn replicate_verdicts(view: &RunView<'_>) -> BTreeSet<Verdict> {
    let of = |one: &Replicate| {
        let streams = one.streams.iter().flat_map(|stream| stream.verdicts.iter());
        one.verdicts.iter().chain(streams).collect::<Vec<_>>()
    };
    view.replicates().flat_map(of).collect()
}

/// Every measured point over time, one at a time, and every replicate as a table.
pub(super) fn over_time(view: &RunView<'_>, table_on: On) -> Option<Blocks> {
    let mut measured = view.measured();
    measured.sort_by_key(|(point, _)| point.layer == Layer::Host);
    let choice: Vec<(String, Vec<Chart>)> = measured.iter().filter_map(time_charts).collect();
    let mut body = Blocks::new();
    if !choice.is_empty() {
        body.add(On::PAGE, Block::Text(
            Style::Say,
            "Completed requests per slice of time and their mean latency, every replicate of a \
             rung, later ones fainter. A steady rung is a flat line; a stall or a burst that ends \
             shows here."
                .into(),
        ));
        body.add(On::PAGE, Block::Choice("rung", choice));
    }
    let table = replicates(view);
    if table.rows.is_empty() {
        return None;
    }
    if table_on == On::PAGE {
        body.folded(On::PAGE, "Every replicate as a table", Block::Table(table));
    } else {
        body.table(table_on, table);
    }
    Some(body)
}

/// Requests per slice, and mean latency per slice, of every replicate of a point.
fn time_charts((point, replicates): &(&Point, Vec<&Replicate>)) -> Option<(String, Vec<Chart>)> {
    let (mut rates, mut latencies) = (Vec::new(), Vec::new());
    let mut width_s = 0.0_f64;
    for replicate in replicates {
        for (place, stream) in replicate.streams.iter().enumerate() {
            let series = &stream.series;
            width_s = width_s.max(series.width_s);
            let line = |name: &str, colour: usize, values: Vec<f64>, unit| {
                let faint = [1.0, 0.65, 0.45][replicate.replicate.min(2) as usize];
                let stroke = Stroke { colour: Colour::Line(colour), dash: 0, faint };
                let title = format!("{name}, replicate {}", replicate.replicate + 1);
                let name = if replicate.replicate == 0 { name.to_owned() } else { String::new() };
                let course =
                    Course::Slices(Slices { width_s: series.width_s, values, unit, title });
                Line { name, stroke, course, marked: None }
            };
            for (kind, counts) in series.counts.iter() {
                if counts.iter().any(|&count| count > 0) {
                    let values = counts.iter().map(|&count| f64::from(count)).collect();
                    let colour = place * 3 + kind as usize;
                    rates.push(line(&stream_op(stream, kind.plural()), colour, values, ""));
                }
            }
            if !series.latency_mean_us.is_empty() {
                let values = series.latency_mean_us.iter().map(|us| digits(*us)).collect();
                latencies.push(line(&stream.name, place * 3, values, "us"));
            }
        }
    }
    if rates.is_empty() && latencies.is_empty() {
        return None;
    }
    let x = "seconds in the measured window";
    let plot =
        |y: &str, lines| Plot::Lines(Lines { scale: Scale::Linear, ..Lines::new(x, y, lines) });
    let name = crate::report::chart::id_of(&point.id);
    let rates = plot(&format!("requests per {}", words::value(width_s, "s")), rates);
    let latencies = plot("mean latency, us", latencies);
    let charts = vec![
        Chart::new(format!("time-{name}"), "", rates),
        Chart::new(format!("time-{name}-latency"), "", latencies),
    ];
    Some((point.title.clone(), charts))
}

/// The number with the digits that the run directory has.
fn digits(us: f32) -> f64 {
    us.to_string().parse().unwrap_or_else(|_| f64::from(us))
}

fn stream_op(stream: &StreamFigures, op: &str) -> String {
    if stream.name == op { op.to_owned() } else { format!("{}: {op}", stream.name) }
}

/// Latencies of a kind of request from its start, then those from its schedule, and whether they
/// are the first. Those of no request are zeros that were not measured.
pub(super) fn latencies(
    has_completed: bool,
    service: LatencyUs,
    response: Option<LatencyUs>,
) -> impl Iterator<Item = (Option<LatencyUs>, bool)> {
    let known = move |us| has_completed.then_some(us);
    let response = response.map(|us| (known(us), false));
    [(known(service), true)].into_iter().chain(response)
}

/// The columns of percentiles.
pub(super) fn percentiles<T>(
    table: TableOf<T>,
    of: impl Fn(&T) -> Option<LatencyUs>,
) -> TableOf<T> {
    let us = |row: &T, at: fn(LatencyUs) -> f64| optional(of(row).map(at), "us");
    table
        .numbers("p50", |row| us(row, |us| us.p50))
        .numbers("p95", |row| us(row, |us| us.p95))
        .numbers("p99", |row| us(row, |us| us.p99))
        .numbers("p99.9", |row| us(row, |us| us.p99_9))
}

/// Every replicate that is there.
fn replicates(view: &RunView<'_>) -> Table {
    type Item<'a> = (&'a Replicate, &'a StreamFigures, &'static str, &'a OpFigures);
    let mut items: Vec<Item<'_>> = Vec::new();
    for replicate in view.replicates() {
        for stream in &replicate.streams {
            let all = stream.ops.named();
            items.extend(all.map(|(name, op)| (replicate, stream, name, op)));
        }
    }
    let title = |one: &Replicate| format!("{}, replicate {}", one.point.title, one.replicate + 1);
    let carried = |(replicate, stream, ..): &Item<'_>| {
        let mut carried = stream.verdicts.clone();
        carried.merge(&replicate.verdicts);
        verdicts(&carried)
    };
    let us = |op: &OpFigures, at: fn(&LatencyUs) -> f64| {
        optional((op.ios > 0).then(|| at(&op.latency_us)), "us")
    };
    Table::of(items)
        .words("Point", |(replicate, ..)| text(title(replicate)))
        .words("Requests", |(_, stream, name, _)| text(stream_op(stream, name)))
        .numbers_on(On::FILES, "Completed", |(.., op)| count(op.ios))
        .numbers("Per second", |(.., op)| figure(op.iops.value, op.iops.ci95, op.iops.n, "/s"))
        .numbers_on(On::FILES, "Mean", |(.., op)| us(op, |us| us.mean))
        .numbers_on(On::FILES, "p50", |(.., op)| us(op, |us| us.p50))
        .numbers("p99", |(.., op)| us(op, |us| us.p99))
        .numbers_on(On::FILES, "p99.9", |(.., op)| us(op, |us| us.p99_9))
        .numbers_on(On::FILES, "Slowest", |(.., op)| us(op, |us| us.max))
        .words_on(On::FILES, "Cautions", carried)
        .most(30)
        .into()
}

/// The machine and what lies under the directory; nothing when that was not kept.
pub(super) fn host(view: &RunView<'_>, host: Option<&ProbeHost>) -> Option<Blocks> {
    let host = host.or(view.manifest.host.as_ref())?;
    let mut body = Blocks::new();
    let mut part = |title: &str, all: Vec<(&str, Option<String>)>| {
        let known = all.into_iter().filter_map(|(name, what)| Some((name.to_owned(), what?)));
        body.title(On::FILES, title).add(On::FILES, facts(known.collect()));
    };
    part("Machine", machine(host));
    part("Directory", directory(host));
    for device in &host.path.devices {
        part(&format!("Device {}", device.name), of_device(device));
    }
    let mut note = |tone, words: String| {
        body.add(On::FILES, Block::Text(Style::Note(tone), words.into()));
    };
    if !host.path.block_stack.is_empty() {
        let layers = host.path.block_stack.iter().map(layer).collect::<Vec<_>>();
        note(Tone::Plain, format!("From the file system down: {}", layers.join(" \u{2192} ")));
    }
    host.path.limits.iter().for_each(|limit| note(Tone::Warn, limited(limit)));
    host.path.notes.iter().for_each(|words| note(Tone::Plain, words.clone()));
    Some(body)
}

fn size(bytes: u64) -> String {
    words::value(bytes as f64, "bytes")
}

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

fn machine(host: &ProbeHost) -> Vec<(&'static str, Option<String>)> {
    let machine = &host.machine;
    vec![
        ("Kernel", machine.kernel.clone()),
        ("Architecture", machine.architecture.clone()),
        ("Processor", machine.cpu_model.clone()),
        ("Processors", machine.cpus.map(|cpus| cpus.to_string())),
        ("Processors allowed", machine.cpus_allowed.map(|cpus| cpus.to_string())),
        ("Processor quota", machine.cgroup.cpu_quota_cpus.map(|cpus| cpus.to_string())),
        ("Memory", machine.memory_bytes.map(size)),
        ("Memory limit", machine.cgroup.memory_limit_bytes.map(size)),
        ("Virtualisation", machine.virtualisation.clone()),
        ("Container", machine.container.clone()),
        ("Clock source", machine.clock_source.clone()),
        ("Frequency governor", machine.cpu_governor.clone()),
        ("Root", Some(yes(machine.user_is_root))),
    ]
}

fn directory(host: &ProbeHost) -> Vec<(&'static str, Option<String>)> {
    let path = &host.path;
    let options = path.mount_options.join(",");
    let behaviour = match serde_json::to_value(path.direct_io.behaviour) {
        Ok(Value::String(name)) => name,
        other => unreachable!("a behaviour is a string, not {other:?}"),
    };
    let direct = path.direct_io.reason.iter().fold(behaviour, |it, why| format!("{it}: {why}"));
    vec![
        ("Path", Some(path.path.clone())),
        ("File system", path.file_system.clone()),
        ("Mounted from", path.mount_source.clone()),
        ("Mounted at", path.mount_point.clone()),
        ("Mount options", Some(options).filter(|options| !options.is_empty())),
        ("Size", path.total_bytes.map(size)),
        ("Free", path.free_bytes.map(size)),
        ("Block", path.block_bytes.map(size)),
        ("Direct I/O", Some(direct)),
    ]
}

fn of_device(device: &DeviceFacts) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("Model", device.model.clone()),
        ("Attached by", device.transport.clone()),
        ("Size", device.size_bytes.map(size)),
        ("Blocks", device.logical_block_bytes.map(|bytes| format!("{bytes} B logical"))),
        ("Physical block", device.physical_block_bytes.map(size)),
        ("Scheduler", device.scheduler.clone()),
        ("nr_requests", device.nr_requests.map(|n| n.to_string())),
        ("Hardware queues", device.queues.map(|n| n.to_string())),
        ("Read-ahead", device.read_ahead_kib.map(|kib| size(kib * 1024))),
        ("Write cache", device.write_cache.clone()),
        ("Forced unit access", device.fua.map(yes)),
        ("Rotational, claimed", device.rotational_flag.map(yes)),
        ("Atomic write", device.atomic_write_bytes_max.filter(|&bytes| bytes > 0).map(size)),
    ]
}

fn layer(layer: &BlockLayer) -> String {
    let kind = match &layer.kind {
        LayerKind::Partition { .. } => "partition",
        LayerKind::Lvm { .. } => "logical volume",
        LayerKind::Crypt { .. } => "encryption",
        LayerKind::Multipath { .. } => "multipath",
        LayerKind::DeviceMapper { .. } => "device mapper",
        LayerKind::Md { .. } => "RAID",
        LayerKind::Loop { .. } => "loop device",
        LayerKind::Bcache => "bcache",
        LayerKind::Zram => "zram",
        LayerKind::Disk => "disk",
    };
    format!("{} ({kind})", layer.name)
}

fn limited(limit: &IoLimit) -> String {
    let rates = [
        ("reads", limit.read_iops.map(|n| n as f64), "reads/s"),
        ("writes", limit.write_iops.map(|n| n as f64), "writes/s"),
        ("reads", limit.read_bytes_per_s.map(|n| n as f64), "bytes/s"),
        ("writes", limit.write_bytes_per_s.map(|n| n as f64), "bytes/s"),
    ];
    let rate = |(what, rate, unit): (&str, Option<f64>, &str)| {
        Some(format!("{what} at {}", words::value(rate?, unit)))
    };
    let parts: Vec<String> = rates.into_iter().filter_map(rate).collect();
    format!("Control group {} limits {} {}", limit.cgroup, limit.device, parts.join(", "))
}
