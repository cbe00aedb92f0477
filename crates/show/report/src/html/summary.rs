//! The top of the page: what this storage can do, what is lost where, what to change.

use iostrata_run::ProbeDocument;
use maud::{Markup, html};

use super::{fio, io, parts, simulate, study};
use crate::RunView;
use crate::words;

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
    let starred = probe.rungs.iter().filter(|rung| !rung.verdicts.is_sound()).count();
    html! {
        h1 { (sentences.next().map_or("The probe has no verdict.", String::as_str)) }
        @for sentence in sentences { p.lead { (sentence) } }
        p.note {
            @if probe.interrupted { "Stopped before its end. " }
            (counted(probe.rungs.len(), "rung")) ", "
            (counted(view.replicates().count(), "replicate")) ", "
            (words::value(probe.duration_s, "s")) ", "
            (words::value(probe.bytes_written as f64, "bytes")) " written"
            @if starred > 0 { "; " (counted(starred, "figure")) " with a caution" }
            @if !probe.unknown.is_empty() {
                "; " (counted(probe.unknown.len(), "figure")) " not known"
            }
            ". " (parts::verdicts(&probe.verdicts))
        }
    }
}

/// A count with its noun.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
