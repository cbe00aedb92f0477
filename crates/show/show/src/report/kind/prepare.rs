//! What loading the tables of a workload did.

use iostrata_run::RunResult;

use crate::report::RunView;
use crate::report::document::{Card, On, Report};
use crate::report::head::Head;
use crate::report::words;

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let Some(RunResult::Prepare(prepared)) = view.result else { return None };
    let mut report = Report::new(&[], "");
    let size = format!("{} {}", prepared.size, prepared.size_unit);
    report.headline = vec![format!("{size} of {} on {}", prepared.workload, prepared.target)];
    let rows = words::value(prepared.rows as f64, "rows");
    let before = match prepared.rows_before {
        0 => String::new(),
        before => format!("; {} were there", words::value(before as f64, "rows")),
    };
    let speed = words::value(prepared.rows_per_s, "rows/s");
    let text = format!("in {}, {speed}{before}", words::value(prepared.duration_s, "s"));
    report.strip = vec![Card { title: "loaded", big: rows.into(), text: text.into() }];
    Some((view.head(None, None), report))
}
