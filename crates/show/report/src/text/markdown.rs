//! The report in Markdown: the figures of the HTML report as tables.
//!
//! Invariant: text from outside cannot make markup: it is escaped, or stands in a code span without
//! backticks.

use iostrata_run::{IoDocument, IoOpDocument};

use super::{fio, markdown_probe, simulate, study};
use crate::RunView;
use crate::words;

/// The whole document.
pub(crate) fn document(view: &RunView<'_>) -> String {
    let mut text = String::new();
    if let Some(probe) = view.probe() {
        text.push_str(&markdown_probe::document(view, probe));
    } else if let Some(document) = view.study() {
        text.push_str(&study::markdown::document(view, document));
    } else if let Some(io) = view.io() {
        text.push_str(&one_workload(io));
    } else if let Some(document) = view.queue() {
        text.push_str(&simulate::markdown::document(document));
    } else if let Some(document) = view.fio() {
        text.push_str(&fio::document(document));
    } else {
        text.push_str("# A partial run\n\nIt was stopped before its end.\n");
        text.push_str(&measured(view));
    }
    for note in view.notes {
        text.push_str(&format!("\nNote: {}\n", escaped(note)));
    }
    text.push_str(&format!(
        "\n---\niostrata {}, started {}, `iostrata {}`\n",
        escaped(&view.manifest.program_version),
        view.manifest.started_at,
        code(&view.manifest.arguments.join(" "))
    ));
    text
}

/// Text from outside in running text or in a table.
pub(crate) fn escaped(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let inside_word = |at: usize| {
        let word = |at: Option<usize>| {
            at.and_then(|at| letters.get(at)).is_some_and(|c| c.is_alphanumeric())
        };
        word(at.checked_sub(1)) && word(at.checked_add(1))
    };
    let mut out = String::with_capacity(text.len());
    for (at, &letter) in letters.iter().enumerate() {
        match letter {
            '_' if inside_word(at) => out.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '!' => {
                out.push('\\');
                out.push(letter);
            }
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

/// Text from outside in a code span.
pub(crate) fn code(text: &str) -> String {
    let plain = |c: char| {
        if c == '`' {
            '\''
        } else if c.is_control() {
            ' '
        } else {
            c
        }
    };
    text.chars().map(plain).collect::<String>().replace('|', "\\|")
}

/// A table; cells are Markdown already.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("\n| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}

/// A value with half its interval and its number of samples.
pub(crate) fn figure(
    value: f64,
    ci95: Option<iostrata_stats::Interval>,
    n: u64,
    unit: &str,
) -> String {
    let shown = words::shown(value, ci95, unit);
    let why = shown.why.as_ref().map_or(String::new(), |why| format!(": {}", escaped(why)));
    format!("{}{why} (n = {n})", escaped(&shown.with_spread("\u{b1}")))
}

fn one_workload(io: &IoDocument) -> String {
    format!("# iostrata io\n{}", workload(io))
}

/// Figures of one workload, and what speaks against them.
pub(crate) fn workload(io: &IoDocument) -> String {
    let row = |name: &str, op: &IoOpDocument| {
        let us = |us: f64| words::value(us, "us");
        let latency = &op.latency_us;
        vec![
            name.to_owned(),
            figure(op.iops, op.iops_ci95, op.iops_n, "/s"),
            words::value(op.bytes_per_s, "bytes/s"),
            us(latency.mean),
            us(latency.p50),
            us(latency.p95),
            us(latency.p99),
            us(latency.p99_9),
            us(latency.max),
        ]
    };
    let rows: Vec<_> = io.ops.named().map(|(name, op)| row(name, op)).collect();
    let head = ["", "per second", "bandwidth", "mean", "p50", "p95", "p99", "p99.9", "max"];
    let mut text = table(&head, &rows);
    for one in &io.unknown {
        let why = words::because(one.why, one.between, &one.unit);
        text.push_str(&format!("\n- {}s unknown: {}\n", escaped(&one.name), escaped(&why)));
    }
    for verdict in io.verdicts.iter() {
        text.push_str(&format!("\n- `{}`: {}\n", words::verdict(verdict), verdict.explain()));
    }
    for note in &io.notes {
        text.push_str(&format!("\n- {}\n", escaped(note)));
    }
    text
}

/// Every replicate that is there.
fn measured(view: &RunView<'_>) -> String {
    let mut rows = Vec::new();
    for replicate in view.replicates() {
        for stream in &replicate.streams {
            for (name, op) in stream.ops.named() {
                rows.push(vec![
                    escaped(&replicate.point.title),
                    (replicate.replicate + 1).to_string(),
                    escaped(&format!("{}: {name}", stream.name)),
                    figure(op.iops.value, op.iops.ci95, op.iops.n, "/s"),
                    words::value(op.latency_us.p99, "us"),
                ]);
            }
        }
    }
    table(&["point", "replicate", "requests", "per second", "p99"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_makes_no_markup() {
        assert_eq!(escaped("a_b *c* <d>|\n[e](f)"), "a_b \\*c\\* \\<d\\>\\| \\[e\\](f)");
        assert_eq!(escaped("_a_"), "\\_a\\_");
        assert_eq!(code("a`b|c\n"), "a'b\\|c ");
    }
}
