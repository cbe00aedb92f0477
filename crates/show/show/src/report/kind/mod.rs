//! Documents as reports: one builder for each kind.
//!
//! A new kind is a file here and a line in [`KINDS`], and a variant of `RunKind` and `RunResult`,
//! after which the compiler requires the rest. Invariant: builders select, order and name; they
//! compute no figure and depend on no renderer but by what is for whom.

mod common;
mod diff;
mod flush;
mod io;
mod probe;
mod queue;
mod study;
mod transactions;
mod watch;

use common::{host, method, over_time, replicate_verdicts, unavailable};
use iostrata_run::RunResult;

use super::RunView;
use super::document::{On, Picture, Report, Sheet};
use super::view::Head;
pub(crate) use diff::document as diff;
pub(crate) use watch::sheet_of_recordings;

/// A builder: the report of a run whose result is of its kind, for one renderer.
type Builder = fn(&RunView<'_>, On) -> Option<(Head, Report)>;

/// Every kind; the last one shows what there is of a run without a result.
const KINDS: [Builder; 10] = [
    probe::report,
    study::report,
    io::report,
    io::fio_report,
    queue::report,
    flush::report,
    transactions::report,
    transactions::prepare_report,
    watch::report,
    partial_report,
];

/// A run as it is shown.
pub(crate) fn report(view: &RunView<'_>, on: On) -> (Head, Report) {
    match KINDS.iter().find_map(|kind| kind(view, on)) {
        Some(report) => report,
        None => unreachable!("a run without a result is partial"),
    }
}

/// The charts of a run that stand in a file of their own; nothing where its kind has none.
pub(crate) fn sheet(view: &RunView<'_>) -> Option<Sheet> {
    match view.result {
        Some(RunResult::SimulateFlush(flush)) => flush::sheet(flush),
        _ => None,
    }
}

/// What answers the question of a run, as a picture; nothing where its kind has none.
pub(crate) fn picture(view: &RunView<'_>) -> Option<Picture> {
    let Some(RunResult::Study(study)) = view.result else { return None };
    study::picture(study, &view.manifest.started_at.strftime("%-d %B %Y").to_string())
}

fn partial_report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let headline =
        ["A partial run", "It was stopped before its end. What was measured until then is below."];
    let mut report = Report::new(&headline.map(str::to_owned), "");
    report.add("time", "Measured until then", over_time(view, On::ALL));
    report.add("unavailable", "Not measured here", unavailable(view, &[]));
    report.add("host", "The machine", host(view, None));
    report.add("method", "How it was measured", method(true, replicate_verdicts(view)));
    Some((view.head(None, None), report))
}
