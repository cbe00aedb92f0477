//! Response time over load as text: one row for each rate.

use iostrata_run::{StudyAxis, StudyDocument, StudyResponse};

use crate::study::{axis_words, rated, rated_place};
use crate::text::markdown::{escaped, table};
use crate::text::paper::{Paper, clean, pad, right};
use crate::words;

/// Columns of a rate, of a time.
const RATE: usize = 10;
const TIME: usize = 14;

/// What stands beside a rate: where waiting begins, where the queue grows.
fn remark(x: f64, response: &StudyResponse) -> String {
    let backlog = response.backlog.as_ref().filter(|backlog| backlog.at == x);
    match backlog {
        Some(backlog) => format!("the queue grows by {} /s", words::value(backlog.per_s, "")),
        None if response.knee == Some(x) => "waiting begins".to_owned(),
        None => String::new(),
    }
}

/// For a terminal.
pub(super) fn lines(study: &StudyDocument, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    for (axis, response) in rated(study) {
        if lines.is_empty() {
            lines.push(paper.bold(&format!("Response time over {}", axis_words(&axis.factor))));
            let head = right("mean", TIME) + &right("99 % within", TIME);
            lines.push(paper.dim(&format!("  {}{head}", pad("", RATE))));
        }
        lines.push(paper.dim(&format!("  {}", clean(&rated_place(study, axis)))));
        for ((x, mean), p99) in axis.x.iter().zip(&response.mean_us).zip(&response.p99_us) {
            let times = [mean, p99].map(|us| right(&words::value(*us, "us"), TIME)).concat();
            let line =
                format!("  {}{times}  {}", right(&format!("{x}"), RATE), remark(*x, response));
            lines.push(line.trim_end().to_owned());
        }
    }
    lines
}

/// In Markdown; nothing where no request has a schedule.
pub(super) fn markdown(study: &StudyDocument) -> String {
    let row = |(axis, response): (&StudyAxis, &StudyResponse), n: usize| {
        vec![
            escaped(&rated_place(study, axis)),
            format!("{}", axis.x[n]),
            words::value(response.mean_us[n], "us"),
            words::value(response.p99_us[n], "us"),
            remark(axis.x[n], response),
        ]
    };
    let rows: Vec<Vec<String>> = rated(study)
        .flat_map(|one| (0..one.1.p99_us.len().min(one.0.x.len())).map(move |n| row(one, n)))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = ["at", "rate", "mean", "99 % within", ""];
    format!("\n## Response time over load\n\n{}", table(&head, &rows))
}
