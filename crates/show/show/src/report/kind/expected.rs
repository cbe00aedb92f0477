//! What the advice of a recording is expected to change, by simulation.

use std::collections::BTreeSet;

use iostrata_run::{ExpectedEffect, ExpectedFigure, WatchDocument};
use iostrata_stats::Measured;

use crate::report::cell::{Cell, Text, change, empty, text};
use crate::report::document::{Block, Blocks, On, Table};

/// What the figures are, and what they leave out.
const HOW: &str = "A model of flushing is fitted to the recording and run in pairs, with the \
                   settings as they were and as advised. In brackets the interval in which 95 % of \
                   such pairs lie: what chance and the recording leave open. How far the model is \
                   from the server is not in it; watch --verify measures that.";

/// Effects beside the advice that they are of, each once, then that of all together.
pub(super) fn blocks(watched: &WatchDocument, body: &mut Blocks) {
    let mut all: Vec<&ExpectedEffect> = Vec::new();
    let of_one = watched.advice.iter().filter_map(|advice| advice.expected.as_ref());
    for effect in of_one.chain(&watched.expected_together) {
        if !all.contains(&effect) {
            all.push(effect);
        }
    }
    if all.is_empty() {
        return;
    }
    body.title(On::ALL, "What that is expected to change, by simulation");
    let known: Vec<&ExpectedEffect> = all.iter().copied().filter(|one| one.is_known()).collect();
    if !known.is_empty() {
        body.say(HOW);
        let table = Table::of(known)
            .words("set together", |effect| text(settings(effect)))
            .numbers("transactions/s", |effect| changed(effect.tps.as_ref(), "percent"))
            .numbers("worst second over mean", |effect| {
                changed(effect.min_over_mean_1s.as_ref(), "points")
            })
            .numbers("pages written per transaction", |effect| {
                changed(effect.pages_written_per_txn.as_ref(), "percent")
            });
        body.table(On::ALL, table);
    }
    // What is said of several alike is said once.
    let mut said: Vec<(BTreeSet<&str>, String)> = Vec::new();
    for effect in all {
        let names = effect.settings.keys().map(String::as_str);
        let text = effect.text.join(" ");
        match said.iter_mut().find(|(_, other)| *other == text) {
            Some((others, _)) => others.extend(names),
            None => said.push((names.collect(), text)),
        }
    }
    let in_words = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
    let said = said.into_iter().map(|(names, text)| (in_words(names), text)).collect();
    body.add(On::ALL, Block::Named(said, usize::MAX));
    if let Some(from) = &watched.expected_from {
        let said = from.text.iter().map(|one| one.as_str().into()).collect();
        body.folded(On::FILES, "The model of this recording", Block::List(said));
    }
}

fn settings(effect: &ExpectedEffect) -> Text {
    let one = |(name, value): (&String, &String)| format!("{name} = {value}");
    let all: Vec<String> = effect.settings.iter().map(one).collect();
    all.join(", ").into()
}

/// By how much a figure changes.
fn changed(figure: Option<&ExpectedFigure>, unit: &str) -> Cell {
    let of = |figure: &ExpectedFigure| {
        let Measured { value, ci95, n, .. } = figure.change_pct;
        change(value, ci95, n, unit)
    };
    figure.map_or_else(empty, of)
}
