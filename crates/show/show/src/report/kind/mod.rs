//! Documents as reports: one builder for each kind.
//!
//! A new kind is a file here and a line in [`KINDS`], and a variant of `RunKind` and `RunResult`,
//! after which the compiler asks for the rest. Invariant: builders select, order and name; they
//! compute no figure and know no renderer but by what is for whom.

mod common;
mod diff;
mod expected;
mod fio;
mod flush;
mod host;
mod io;
mod partial;
mod prepare;
mod probe;
mod queue;
mod recordings;
mod study;
mod transaction_course;
mod transactions;
mod watch;

pub(crate) use diff::document as diff;
pub(crate) use recordings::sheet as sheet_of_recordings;

use iostrata_run::RunResult;

use crate::report::RunView;
use crate::report::document::{On, Report, Sheet};
use crate::report::head::Head;

/// A builder: the report of a run whose result is of its kind, for one renderer.
type Builder = fn(&RunView<'_>, On) -> Option<(Head, Report)>;

/// Every kind; the last one shows what there is of a run without a result.
const KINDS: [Builder; 10] = [
    probe::report,
    study::report,
    io::report,
    fio::report,
    queue::report,
    flush::report,
    transactions::report,
    prepare::report,
    watch::report,
    partial::report,
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
        Some(RunResult::Study(study)) => study::sheet(study),
        _ => None,
    }
}
