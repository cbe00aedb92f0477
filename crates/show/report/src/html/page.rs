//! The page around the sections.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    advice, comparison, curves, findings, fio, host, io, ladder, losses, method, series, simulate,
    study, summary, tables,
};
use crate::RunView;
use crate::chart::{Charts, plotly_script};
use crate::words;

/// Nothing may be loaded from anywhere; scripts and styles are those in the page.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("../../assets/report.css");
const STUDY_STYLE: &str = include_str!("../../assets/study.css");
const SCRIPT: &str = include_str!("../../assets/report.js");

/// One section: its id, its name in the list of contents, its content.
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) name: String,
    pub(crate) body: Markup,
}

/// The whole page.
pub(crate) fn page(view: &RunView<'_>) -> String {
    let mut charts = Charts::default();
    let sections = sections(view, &mut charts);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="generator" content={ "iostrata " (view.manifest.program_version) };
                meta name="referrer" content="no-referrer";
                title { (summary::page_title(view)) }
                style { (PreEscaped(STYLE)) }
                @if view.study().is_some() || view.queue().is_some() {
                    style { (PreEscaped(STUDY_STYLE)) }
                }
            }
            body {
                main {
                    (summary::header(view))
                    nav aria-label="Contents" {
                        @for section in &sections { a href={ "#" (section.id) } { (section.name) } }
                    }
                    noscript { p.warn {
                        "Charts need JavaScript. The tables hold the same figures."
                    } }
                    @for section in &sections {
                        section id=(section.id) { h2 { (section.name) } (section.body) }
                    }
                    (footer(view))
                }
                script { (PreEscaped(plotly_script())) }
                script type="application/json" id="chart-data" { (PreEscaped(charts.json())) }
                script { (PreEscaped(SCRIPT)) }
                @if let Some(study) = view.study() { (study::scripts(study)) }
            }
        }
    }
    .into_string()
}

/// The sections that have something to say, in reading order.
fn sections(view: &RunView<'_>, charts: &mut Charts) -> Vec<Section> {
    if let Some(study) = view.study() {
        return study::sections(view, study, charts);
    }
    if let Some(queue) = view.queue() {
        return simulate::sections(view, queue, charts);
    }
    let mut all = Vec::new();
    let mut add = |id: &'static str, name: &'static str, body: Option<Markup>| {
        all.extend(body.map(|body| Section { id, name: name.to_owned(), body }));
    };
    if let Some(probe) = view.probe() {
        add("ladder", "The ladder", Some(ladder::section(probe, charts)));
        add("losses", "Losses", Some(losses::section(probe, charts)));
        add("load", "Under load", curves::section(probe, charts));
        add("comparisons", "Side by side", comparison::section(view, probe, charts));
    }
    if let Some(io) = view.io() {
        add("requests", "Requests", Some(io::section(io)));
    }
    if let Some(fio) = view.fio() {
        add("jobs", "Jobs", Some(fio::section(fio)));
    }
    add("time", "Over time", series::section(view, charts));
    if let Some(probe) = view.probe() {
        let cleared = "Every suspicion that was raised was cleared by the points that test it.";
        let found = findings::section(&probe.findings, probe.interrupted, cleared);
        add("findings", "Findings", Some(found));
        add("advice", words::changes_title(probe), Some(advice::section(probe)));
        add("redo", "Redo log size", tables::redo(probe));
        add("verified", "Tried here", tables::verifications(probe));
        add("latency", "Application and device", tables::latency(probe));
    }
    add("unavailable", "Not measured here", tables::unavailable(view));
    add("host", "The machine", host::section(view));
    add("method", "How it was measured", Some(method::section(view)));
    all
}

fn footer(view: &RunView<'_>) -> Markup {
    html! {
        footer {
            "iostrata " (view.manifest.program_version) ", started "
            (view.manifest.started_at.to_string()) ". Command: "
            code { "iostrata " (view.manifest.arguments.join(" ")) }
        }
    }
}
