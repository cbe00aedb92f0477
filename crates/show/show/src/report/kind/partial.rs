//! A run that was stopped before its end: what it has.

use super::common::{method, over_time, replicate_verdicts, unavailable};
use super::host::host;
use crate::report::RunView;
use crate::report::document::{On, Report};
use crate::report::head::Head;

pub(super) fn report(view: &RunView<'_>, _on: On) -> Option<(Head, Report)> {
    let headline =
        ["A partial run", "It was stopped before its end. What was measured until then is below."];
    let mut report = Report::new(&headline.map(str::to_owned), "");
    report.add("time", "Measured until then", over_time(view, On::ALL));
    report.add("unavailable", "Not measured here", unavailable(view, &[]));
    report.add("host", "The machine", host(view, None));
    report.add("method", "How it was measured", method(true, replicate_verdicts(view)));
    Some((view.head(None, None), report))
}
