//! The verdict of a probe: what the storage does, the ladder in rows that are the same in every
//! run, what is lost, what to change, what was tried, what is missing.
//!
//! Invariant: fits the width it is given, wraps and cuts nothing; green is only what nothing
//! speaks against.

use iostrata_run::{Advice, Loss, ProbeDocument, Unavailable, Verification};
use iostrata_stats::{Verdict, Verdicts};

use super::paper::{Paper, clean, pad, right};
use crate::RunView;
use crate::rows::{Depth, LADDER, Row};
use crate::words;

/// Most entries of losses, of comparisons that are open, of advice, of what is not available.
const LOSSES: usize = 3;
const OPEN: usize = 3;
const ADVICE: usize = 6;
const UNAVAILABLE: usize = 4;
/// Columns of a layer's name, of a value, of half an interval, of a latency.
const LAYER: usize = 11;
const VALUE: usize = 10;
const SPREAD: usize = 8;
const LATENCY: usize = 7;
/// Columns before a row, and of the reason behind one where there is room for it.
const INDENT: usize = 2;
const REASON: usize = 10;
/// Columns that the longest title needs.
const TITLE: usize = 28;

/// The lines below the origin.
pub(crate) fn lines(view: &RunView<'_>, probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    let mut lines = headline(probe, paper);
    lines.push(String::new());
    lines.extend(ladder(probe, paper));
    lines.push(String::new());
    lines.extend(losses(probe, paper));
    lines.extend(changes(probe, paper));
    lines.extend(tried(probe, paper));
    lines.extend(missing(view, paper));
    lines.extend(foot(probe, paper));
    lines
}

fn headline(probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    for (n, sentence) in probe.headline.iter().enumerate() {
        let wrapped = paper.wrapped(sentence, 0);
        lines.extend(wrapped.into_iter().map(|line| if n == 0 { paper.bold(&line) } else { line }));
    }
    lines
}

fn ladder(probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    for (n, depth) in LADDER.iter().enumerate() {
        lines.push(head(depth, n == 0, paper));
        for row in depth.rows(probe) {
            lines.extend(row_lines(&row, depth.unit, paper));
        }
    }
    lines.extend(legend(probe, paper));
    lines
}

/// Columns for titles, and whether a reason stands behind a row.
fn rooms(paper: &Paper) -> (usize, bool) {
    let fixed = INDENT + LAYER + 1 + 1 + VALUE + 1 + SPREAD + 1 + LATENCY;
    let room = paper.width.saturating_sub(fixed);
    let beside = room >= TITLE + REASON;
    (if beside { room - REASON } else { room }.clamp(12, 44), beside)
}

/// `One request in flight     per second  95 %    each`
fn head(depth: &Depth, first: bool, paper: &Paper) -> String {
    let title = paper.bold(depth.title);
    if !first {
        return title;
    }
    let (room, _) = rooms(paper);
    let width = INDENT + LAYER + 1 + room + 1 + VALUE;
    let value = right("per second", width.saturating_sub(depth.title.len()));
    let rest = format!("{value} {} {}", pad("95 %", SPREAD), right("each", LATENCY));
    format!("{title}{}", paper.dim(&rest))
}

/// `  device      4 KiB random reads     9.84 K/s +- 0.4 %  101 us *unsteady`
fn row_lines(row: &Row<'_>, unit: &str, paper: &Paper) -> Vec<String> {
    let (room, beside) = rooms(paper);
    let mut titles = super::paper::wrapped_to(row.title, room).into_iter();
    let layer = paper.of_layer(row.layer, &pad(row.layer.title(), LAYER));
    let title = pad(&titles.next().unwrap_or_default(), room);
    let reason = row.rung.and_then(|rung| reason(&rung.verdicts));
    let reason = reason.map(|reason| paper.warn(&format!("*{reason}")));
    let figures = match (row.rung, row.unknown) {
        (Some(rung), _) => {
            let shown = words::shown(rung.value, rung.value_ci95, unit);
            let half = shown.half.map(|half| format!("{} {half}", paper.plus_minus()));
            let each = rung.latency_us.map(|us| words::value(us, "us"));
            format!(
                "{} {} {}",
                paper.bold(&right(&clean(&shown.text), VALUE)),
                paper.dim(&pad(&half.unwrap_or_default(), SPREAD)),
                right(&each.unwrap_or_default(), LATENCY),
            )
        }
        (None, Some(_)) => paper.warn(&right(words::UNKNOWN, VALUE)),
        (None, None) => paper.dim(&right("-", VALUE)),
    };
    let behind = reason.as_ref().filter(|_| beside).map(|reason| format!(" {reason}"));
    let indent = " ".repeat(INDENT);
    let first = format!("{indent}{layer} {title} {figures}{}", behind.unwrap_or_default());
    let mut lines = vec![first.trim_end().to_owned()];
    let below = " ".repeat(INDENT + LAYER + 1);
    lines.extend(titles.map(|rest| format!("{below}{rest}")));
    lines.extend(reason.filter(|_| !beside).map(|reason| format!("{below}{reason}")));
    let why = row.unknown.map(|one| words::because(one.why, one.between, unit));
    let why = why.map(|why| paper.wrapped(&why, below.len()));
    lines.extend(why.into_iter().flatten().map(|line| paper.dim(&line)));
    lines
}

/// The gravest reason in a word.
fn reason(verdicts: &Verdicts) -> Option<&'static str> {
    verdicts.iter().map(word).next()
}

/// A verdict in a word that fits beside a figure.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::ToolLimited => "meter",
        Verdict::CpuLimited => "CPU busy",
        Verdict::Cached => "cached",
        Verdict::DirectIgnored => "buffered",
        Verdict::Sparse => "sparse",
        Verdict::UnwrittenExtents => "unfilled",
        Verdict::NotSteady => "unsteady",
        Verdict::BurstLimited => "fell off",
        Verdict::TooFewSamples => "few runs",
        Verdict::DepthNotReached => "shallow",
        Verdict::LoopLimited => "loop",
        Verdict::Throttled => "limited",
        Verdict::ForeignIo => "others",
        Verdict::ClockFallback => "clock",
        Verdict::MemlockLimited => "buffers",
        Verdict::Steal => "stolen",
    }
}

/// What the words behind stars mean, once each.
fn legend(probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    let rows = LADDER.iter().flat_map(|depth| depth.rows(probe));
    let mut all: Vec<Verdict> = rows.filter_map(|row| row.rung?.verdicts.iter().next()).collect();
    all.sort();
    all.dedup();
    let line = |verdict: Verdict| format!("*{}: {}", word(verdict), verdict.explain());
    let lines = all.into_iter().flat_map(|verdict| paper.wrapped(&line(verdict), INDENT));
    lines.map(|line| paper.warn(&line)).collect()
}

fn losses(probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    if probe.losses.is_empty() {
        lines.extend(paper.wrapped(&words::no_loss(probe), 0));
        let sure = probe.incomplete.is_none() && probe.undecided.is_empty() && probe.compared > 0;
        if sure {
            lines = lines.iter().map(|line| paper.good(line)).collect();
        }
    } else {
        lines.push(paper.bold("Losses"));
        let mut sorted: Vec<&Loss> = probe.losses.iter().collect();
        sorted.sort_by(|a, b| b.loss_pct.total_cmp(&a.loss_pct));
        lines.extend(entries(&sorted, LOSSES, paper));
    }
    if !probe.undecided.is_empty() {
        lines.push(paper.bold("Not decided: the figures vary too much"));
        lines.extend(entries(&probe.undecided.iter().collect::<Vec<_>>(), OPEN, paper));
    }
    lines
}

/// `  file system  74 % [73, 75]: writes into a fallocated file ...`
fn entries(all: &[&Loss], most: usize, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    for loss in all.iter().take(most) {
        let range = loss.loss_pct_ci95.map_or(String::new(), |ci95| words::range(ci95, "percent"));
        let share = words::value(loss.loss_pct, "percent");
        let text = format!("{}: {share} {range}: {}", loss.layer.title(), loss.text);
        lines.extend(paper.hanging(&text, INDENT));
    }
    if all.len() > most {
        lines.push(paper.dim(&format!("  and {} more in the report", all.len() - most)));
    }
    lines
}

fn changes(probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    if probe.advice.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![paper.bold(words::changes_title(probe))];
    let one = |advice: &Advice| {
        let setting = format!("{} = {}", advice.setting, advice.value);
        let default = advice.default.as_ref().map_or(String::new(), |is| format!("default {is}; "));
        let place = format!("{default}{}; {}", advice.where_, words::risk(advice.risk));
        let whole = format!("{setting}  ({place})");
        if whole.len() + INDENT <= paper.width {
            return vec![format!(
                "  {}  {}",
                clean(&setting),
                paper.dim(&clean(&format!("({place})")))
            )];
        }
        let mut both = paper.wrapped(&setting, INDENT);
        both.extend(paper.wrapped(&place, 2 * INDENT).iter().map(|line| paper.dim(line)));
        both
    };
    lines.extend(probe.advice.iter().take(ADVICE).flat_map(one));
    if probe.advice.len() > ADVICE {
        lines.push(paper.dim(&format!("  and {} more in the report", probe.advice.len() - ADVICE)));
    }
    lines
}

/// Settings that were tried, before and after.
fn tried(probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    if probe.verifications.is_empty() {
        return Vec::new();
    }
    let one = |tried: &Verification| {
        let shown =
            |value, ci95| words::shown(value, ci95, &tried.unit).with_spread(paper.plus_minus());
        let text = format!(
            "{}: {}: {} before, {} after: {}",
            tried.setting,
            tried.text,
            shown(tried.before, tried.before_ci95),
            shown(tried.after, tried.after_ci95),
            if tried.confirmed { "confirmed" } else { "no measurable gain" },
        );
        paper.hanging(&text, INDENT)
    };
    let head = paper.bold("Tried here, in turns");
    std::iter::once(head).chain(probe.verifications.iter().flat_map(one)).collect()
}

/// What could not be measured, each with its reason and the way to make it possible.
pub(crate) fn missing(view: &RunView<'_>, paper: &Paper) -> Vec<String> {
    let all = view.unavailable();
    let line = |one: &&Unavailable| {
        let fix = one.fix.as_ref().map_or(String::new(), |fix| format!("; {fix}"));
        let text = format!("Not measured: {}: {}{fix}", one.what, one.why);
        paper.hanging(&text, 0).iter().map(|line| paper.dim(line)).collect::<Vec<_>>()
    };
    let mut lines: Vec<String> = all.iter().take(UNAVAILABLE).flat_map(line).collect();
    if all.len() > UNAVAILABLE {
        let more = format!("and {} more that could not be measured", all.len() - UNAVAILABLE);
        lines.push(paper.dim(&more));
    }
    lines
}

fn foot(probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    let mut text = format!(
        "{} rungs in {}, {} written; {} is half the 95 % interval",
        probe.rungs.len(),
        words::value(probe.duration_s, "s"),
        words::value(probe.bytes_written as f64, "bytes"),
        paper.plus_minus(),
    );
    if probe.interrupted {
        text = format!("Stopped before its end; {text}");
    }
    paper.wrapped(&text, 0).iter().map(|line| paper.dim(line)).collect()
}
