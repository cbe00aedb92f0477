//! The top of the page: what this storage can do, what is lost where, what to change.

use iostrata_run::{ProbeDocument, Rung};
use maud::{Markup, html};

use super::{fio, io, parts, simulate, study};
use crate::RunView;
use crate::view::key_rungs;
use crate::words;

/// Most cards of key figures.
const CARDS: usize = 6;

/// The name of the page in tabs and bookmarks.
pub(crate) fn page_title(view: &RunView<'_>) -> String {
    let name = view.study().map(|study| study.study.as_str());
    match name.or(place(view)) {
        Some(name) => format!("iostrata {}: {name}", command(view)),
        None => format!("iostrata {}", command(view)),
    }
}

/// Title, verdict, key figures.
pub(crate) fn header(view: &RunView<'_>) -> Markup {
    html! {
        header {
            p.origin {
                b { "iostrata " (command(view)) }
                @if let Some(study) = view.study() { " " b { (study.study) } }
                @if let Some(path) = place(view) {
                    @if view.study().is_some() { " in " } @else { " of " }
                    b { (path) }
                }
                @for part in origin(view) { " \u{b7} " (part) }
            }
            @if let Some(probe) = view.probe() {
                (verdict(view, probe))
            } @else if let Some(document) = view.study() {
                (study::header(document))
            } @else if let Some(document) = view.io() {
                (io::header(document))
            } @else if let Some(document) = view.queue() {
                (simulate::header(document))
            } @else if let Some(document) = view.fio() {
                (fio::header(document))
            } @else {
                h1 { "A partial run" }
                p.lead { "It was stopped before its end. What was measured until then is below." }
            }
            @for note in view.notes { p.note.below { (note) } }
        }
    }
}

fn command(view: &RunView<'_>) -> &'static str {
    words::command(view.manifest.kind)
}

/// The measured path.
fn place<'a>(view: &RunView<'a>) -> Option<&'a str> {
    view.host().map(|host| host.path.path.as_str())
}

fn origin(view: &RunView<'_>) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(host) = view.host() {
        parts.extend(host.path.file_system.clone());
        parts.extend(host.path.devices.first().map(|device| device.name.clone()));
        parts.extend(host.machine.cpus.map(|cpus| format!("{cpus} processors")));
        parts.extend(host.machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    }
    parts.push(view.manifest.started_at.strftime("%Y-%m-%d %H:%M UTC").to_string());
    parts
}

fn verdict(view: &RunView<'_>, probe: &ProbeDocument) -> Markup {
    let mut sentences = probe.headline.iter();
    html! {
        h1 { (sentences.next().map_or("The probe has no verdict.", String::as_str)) }
        @for sentence in sentences { p.lead { (sentence) } }
        div.strip { (lost(probe)) (to_change(probe)) (how_sure(view, probe)) }
        @let keys = key_rungs(probe);
        div.cards.four[keys.len() == 4] {
            @for rung in keys.into_iter().take(CARDS) { (card(rung)) }
        }
    }
}

fn lost(probe: &ProbeDocument) -> Markup {
    let largest = probe.losses.iter().max_by(|a, b| a.loss_pct.total_cmp(&b.loss_pct));
    html! {
        div {
            h2 { "Lost on the way" }
            @match largest {
                None if probe.interrupted => {
                    p.big { "No loss seen so far" }
                    p { "The run was stopped before every pair of rungs was measured." }
                }
                None => {
                    p.big.good { "No loss found" }
                    p { "No layer takes a measurable share of what the layer below it gives." }
                }
                Some(loss) => {
                    p.big { (words::value(loss.loss_pct, "percent")) " in the " (loss.layer.title()) }
                    p { (loss.text) }
                    @if probe.losses.len() > 1 {
                        p { a href="#losses" { "All " (probe.losses.len()) " losses" } }
                    }
                }
            }
        }
    }
}

fn to_change(probe: &ProbeDocument) -> Markup {
    html! {
        div {
            h2 { (words::changes_title(probe)) }
            @if probe.advice.is_empty() && probe.interrupted {
                p.big { "Nothing so far" }
                p { "The run was stopped before every setting was looked at." }
            } @else if probe.advice.is_empty() {
                p.big.good { "Nothing need change" }
                p { "Every setting that was looked at is already right." }
            } @else {
                p.big { (counted(probe.advice.len(), "setting")) }
                @for advice in probe.advice.iter().take(4) {
                    p { code { (advice.setting) " = " (advice.value) } }
                }
                @if probe.advice.len() > 4 { p { a href="#advice" { "and more" } } }
            }
        }
    }
}

fn how_sure(view: &RunView<'_>, probe: &ProbeDocument) -> Markup {
    let doubtful = probe.rungs.iter().filter(|rung| !rung.verdicts.is_sound()).count();
    let replicates = view.replicates().count();
    html! {
        div {
            h2 { "How sure" }
            @if probe.interrupted {
                p.big.warn { "Stopped before its end" }
            } @else if !probe.verdicts.is_sound() {
                p.big.warn { (words::verdicts(&probe.verdicts)) }
            } @else if doubtful == 0 {
                p.big.good { "Every figure is sound" }
            } @else {
                p.big { (doubtful) " of " (probe.rungs.len()) " figures carry a caution" }
            }
            p {
                @if probe.interrupted && doubtful > 0 {
                    (doubtful) " of " (probe.rungs.len()) " figures carry a caution. "
                }
                (counted(probe.rungs.len(), "rung")) ", " (counted(replicates, "replicate")) ", "
                (words::value(probe.duration_s, "s")) ", "
                (words::value(probe.bytes_written as f64, "bytes")) " written. "
                "Intervals are 95 %."
            }
        }
    }
}

fn card(rung: &Rung) -> Markup {
    html! {
        div.card {
            (parts::big(rung.value, &rung.unit))
            div.spread {
                @match words::half_width(rung.value, rung.value_ci95) {
                    Some(half) => { "\u{b1} " (half) ", n = " (rung.value_n) },
                    None => { "no interval, n = " (rung.value_n) },
                }
            }
            p.what { (rung.title) }
            p.note { (parts::layer(rung.layer)) }
            (parts::verdicts(&rung.verdicts))
        }
    }
}

/// A count with its noun.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
