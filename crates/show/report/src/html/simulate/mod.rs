//! A simulated queue as sections of the page: the answer, curves over queue and index sizes, the
//! post beside the model, every run.

mod curves;
mod header;
mod method;
mod runs;
mod then;

pub(crate) use header::header;

use iostrata_run::QueueDocument;
use maud::Markup;

use super::page::Section;
use super::tables;
use crate::RunView;
use crate::chart::Charts;

/// The sections that have something to say, in reading order.
pub(crate) fn sections(
    view: &RunView<'_>,
    queue: &QueueDocument,
    charts: &mut Charts,
) -> Vec<Section> {
    let mut all = Vec::new();
    let mut add = |id: &'static str, name: &str, body: Option<Markup>| {
        all.extend(body.map(|body| Section { id, name: name.to_owned(), body }));
    };
    add("sizes", "Over the size of the queue", curves::over_queue(queue, charts));
    add("reader", "A reader beside the inserts", curves::reader(queue, charts));
    add("growth", "As the index grows", curves::over_index(queue, charts));
    add("then", "The post and the model", then::section(queue));
    add("compared", "One thing at a time", runs::compared(queue));
    add("runs", "Every run", runs::all(queue));
    add("unavailable", "Not simulated", tables::unavailable(view));
    add("method", "The method and its limits", Some(method::section(view, queue)));
    all
}
