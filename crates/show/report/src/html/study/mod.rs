//! A study as sections of the page: the matrix as charts, what each factor does, what happens along
//! the axes, and every point closely.
//!
//! Invariant: what is large (profiles, latencies of all points) is drawn or unfolded only when a
//! reader asks for it, so that the page opens at once.

mod answers;
mod axes;
mod changes;
mod closely;
mod effects;
mod header;
mod latency;
mod layers;
mod method;
mod panels;
mod points;
mod response;
mod then;

pub(crate) use closely::scripts;
pub(crate) use header::header;

use iostrata_run::StudyDocument;
use maud::Markup;

use super::page::Section;
use super::{findings, host, parts, tables};
use crate::RunView;
use crate::chart::Charts;
use crate::study::{all_panels, is_rated};

/// The sections that have something to say, in reading order.
pub(crate) fn sections(
    view: &RunView<'_>,
    study: &StudyDocument,
    charts: &mut Charts,
) -> Vec<Section> {
    let mut all = Vec::new();
    let mut add = |id: &'static str, name: &str, body: Option<Markup>| {
        all.extend(body.map(|body| Section { id, name: name.to_owned(), body }));
    };
    let sets = all_panels(study);
    add("response", "Response time over load", response::section(study, charts));
    add("then", "Then and now", then::section(study));
    for (n, set) in sets.iter().enumerate() {
        const IDS: [&str; 4] = ["matrix", "matrix-2", "matrix-3", "matrix-4"];
        let Some(id) = IDS.get(n) else { break };
        let matrix = panels::section(study, n, set, charts);
        // Where requests come at a given rate, that is what is done, too: no picture of anything.
        let is_given = set.axis.is_some_and(|axis| is_rated(study, &axis.factor));
        let matrix =
            if is_given { parts::folded("What was done of each rate", matrix) } else { matrix };
        add(id, &panels::name(set), Some(matrix));
    }
    add("answers", "What the answers rest on", answers::section(study));
    add("effects", "What each factor does", effects::section(study, charts));
    add("axes", "Along the axes", axes::section(study, charts));
    if !study.findings.is_empty() {
        let found = findings::section(&study.findings, study.interrupted, "");
        add("findings", "Findings", Some(found));
    }
    add("processors", "Where the processors were", layers::processors(&sets, charts));
    add("path", "Where the time goes", layers::path(&sets, charts));
    add("point", "Inside a point", closely::one(study));
    add("beside", "Two points beside each other", closely::two(study));
    add("points", "Every point", points::section(study));
    add("latencies", "Latencies", latency::section(study));
    add("changes", "What was changed on this system", changes::section(study));
    add("unavailable", "Not measured here", tables::unavailable(view));
    add("host", "The machine", host::section(view));
    add("method", "How it was measured", Some(method::section(view, study)));
    all
}
