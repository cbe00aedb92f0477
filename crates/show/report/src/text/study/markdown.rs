//! A study in Markdown.

use iostrata_run::{StudyAxis, StudyDocument, StudyEffect, StudyPoint, ThenRow};
use iostrata_stats::{Conclusion, Interval};

use super::evidence::{changes, latencies, layers, path, waits};
use super::response;
use crate::RunView;
use crate::study::{axis_words, factor_words, level_words, listed, varying};
use crate::text::markdown::{escaped, figure, table};
use crate::text::markdown_probe::{cautions, findings_list, unavailable_list, unknown};
use crate::words;

/// Everything below the title, section by section.
pub(crate) fn document(view: &RunView<'_>, study: &StudyDocument) -> String {
    let mut text = format!("# iostrata study {}\n", escaped(&study.study));
    for (n, sentence) in study.headline.iter().enumerate() {
        let strong = if n == 0 { "**" } else { "" };
        text.push_str(&format!("\n{strong}{}{strong}\n", escaped(sentence)));
    }
    text.push_str(&format!("\n{}. {}\n", escaped(&study.title), escaped(&study.question)));
    text.push_str(&response::markdown(study));
    text.push_str(&then(study));
    text.push_str(&points(study));
    text.push_str(&effects(study));
    text.push_str(&interactions(study));
    text.push_str(&axes(study));
    if !study.findings.is_empty() {
        text.push_str(&findings_list(&study.findings));
    }
    text.push_str(&latencies(study));
    text.push_str(&layers(study));
    text.push_str(&waits(study));
    text.push_str(&path(study));
    text.push_str(&changes(study));
    text.push_str(&unavailable_list(view));
    text.push_str(&cautions(view));
    text.push_str(&method(study));
    text
}

fn then(study: &StudyDocument) -> String {
    if study.then.is_empty() {
        return String::new();
    }
    let row = |row: &ThenRow| {
        let then = row.then.map(|low| words::printed(low, row.then_high, &row.unit));
        let now = row.now.map(|now| figure(now, row.now_ci95, row.now_n, &row.unit));
        let ci95 = row.now_ci95.filter(|_| row.now.is_some());
        vec![
            escaped(&row.text),
            escaped(&then.unwrap_or_default()),
            now.unwrap_or_default(),
            ci95.map_or(String::new(), |ci95| escaped(&words::interval(ci95, &row.unit))),
            row.times.filter(|times| times.is_finite()).map_or(String::new(), words::times),
            if row.now.is_some() { words::verdicts(&row.verdicts) } else { String::new() },
        ]
    };
    let rows: Vec<_> = study.then.iter().map(row).collect();
    let source = study.then_source.iter().chain(&study.then_machine);
    let source: Vec<String> = source.map(|part| escaped(part)).collect();
    let head = ["what", "then", "now", "95 %", "now / then", "verdicts"];
    format!("\n## Then and now\n\n{}\n{}", source.join(". "), table(&head, &rows))
}

fn points(study: &StudyDocument) -> String {
    let all: Vec<&StudyPoint> = study.points.iter().collect();
    if all.is_empty() {
        return "\nNo point was measured.\n".to_owned();
    }
    let factors = varying(study, &all);
    let mut head: Vec<String> =
        factors.iter().map(|factor| escaped(&axis_words(&factor.factor))).collect();
    if head.is_empty() {
        head.push("point".to_owned());
    }
    head.extend(
        ["value", "95 %", "aqu-sz", "%util", "processors busy", "verdicts"].map(str::to_owned),
    );
    let row = |point: &&StudyPoint| {
        let level = |factor: &str| point.levels.iter().find(|at| at.factor == factor);
        let mut cells: Vec<String> = factors
            .iter()
            .map(|factor| level(&factor.factor).map_or(String::new(), |at| escaped(&at.level)))
            .collect();
        if cells.is_empty() {
            cells.push(escaped(&point.title));
        }
        let device = point.device.as_ref();
        cells.extend([
            figure(point.value, point.value_ci95, point.value_n, &point.unit),
            ci95(point.value_ci95, &point.unit),
            device.map_or(String::new(), |device| words::value(device.queue_size, "")),
            device.map_or(String::new(), |device| words::value(device.util_pct, "percent")),
            point.cpu.as_ref().map_or(String::new(), |cpu| words::value(cpu.busy_pct(), "percent")),
            words::verdicts(&point.verdicts),
        ]);
        cells
    };
    let rows: Vec<_> = all.iter().map(row).collect();
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    format!("\n## The matrix\n{}{}", table(&head, &rows), unknown(&study.unknown))
}

/// An interval, or that there is none.
pub(super) fn ci95(ci95: Option<Interval>, unit: &str) -> String {
    ci95.map_or("none".to_owned(), |ci95| escaped(&words::interval(ci95, unit)))
}

fn ratio(ratio_ci95: Option<Interval>) -> String {
    ratio_ci95.map_or("none".to_owned(), words::times_range)
}

fn follows(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Higher => "more",
        Conclusion::Lower => "less",
        Conclusion::NoMeasurableDifference => "no measurable difference",
        Conclusion::TooFewPairs => "too few pairs",
    }
}

fn effects(study: &StudyDocument) -> String {
    if study.effects.is_empty() {
        return String::new();
    }
    let row = |one: &StudyEffect| {
        vec![
            escaped(&factor_words(&one.factor)),
            escaped(&level_words(&one.factor, &one.from)),
            escaped(&level_words(&one.factor, &one.to)),
            words::times(one.ratio),
            escaped(&ratio(one.ratio_ci95)),
            one.ratio_n.to_string(),
            escaped(&words::times_range([one.ratio_min, one.ratio_max])),
            follows(one.conclusion).to_owned(),
            escaped(&one.text),
            words::verdicts(&one.verdicts),
        ]
    };
    let rows: Vec<_> = study.effects.iter().map(row).collect();
    let head = [
        "factor",
        "from",
        "to",
        "ratio",
        "95 %",
        "pairs",
        "single pairs",
        "conclusion",
        "what it says",
        "verdicts",
    ];
    format!("\n## What each factor does\n{}", table(&head, &rows))
}

fn interactions(study: &StudyDocument) -> String {
    if study.interactions.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = study
        .interactions
        .iter()
        .map(|one| {
            let words_of = |level: &String| level_words(&one.factor, level);
            let by = |level: &String| level_words(&one.by, level);
            vec![
                escaped(&format!("{} to {}", words_of(&one.from), words_of(&one.to))),
                escaped(&format!("{} to {}", by(&one.by_from), by(&one.by_to))),
                words::times(one.ratio),
                escaped(&ratio(one.ratio_ci95)),
                one.ratio_n.to_string(),
                follows(one.conclusion).to_owned(),
                escaped(&one.text),
            ]
        })
        .collect();
    let head = ["effect", "depends on", "ratio", "95 %", "n", "conclusion", "what it says"];
    format!("\n## Where one factor depends on another\n{}", table(&head, &rows))
}

fn axes(study: &StudyDocument) -> String {
    if study.axes.is_empty() {
        return String::new();
    }
    let number = |x: Option<f64>| x.map_or(String::new(), |x| format!("{x}"));
    let with = |value: f64, ci95: Option<Interval>| {
        let range =
            ci95.map(|[low, high]| format!(" \\[{}, {}\\]", words::small(low), words::small(high)));
        format!("{}{}", words::small(value), range.unwrap_or_default())
    };
    let row = |axis: &StudyAxis| {
        let change = axis.change_pct.map(|change| words::value(change, "percent"));
        let range = axis.change_pct_ci95.map(|ci95| escaped(&words::range(ci95, "percent")));
        let usl = axis.usl.as_ref();
        vec![
            escaped(&axis_words(&axis.factor)),
            escaped(&listed(&axis.levels)),
            words::axis_kind(axis.kind).to_owned(),
            number(axis.at),
            change.unwrap_or_default() + &range.map_or(String::new(), |range| format!(" {range}")),
            number(axis.enough),
            usl.map_or(String::new(), |usl| with(usl.sigma, usl.sigma_ci95)),
            usl.map_or(String::new(), |usl| with(usl.kappa, usl.kappa_ci95)),
            usl.map_or(String::new(), |usl| words::value(usl.misses_pct_max, "percent")),
            escaped(&axis.text),
        ]
    };
    let rows: Vec<_> = study.axes.iter().map(row).collect();
    let head = [
        "over",
        "at",
        "shape",
        "from",
        "change to the end",
        "enough",
        "sigma",
        "kappa",
        "the law misses by",
        "what it says",
    ];
    format!("\n## Along the axes\n{}", table(&head, &rows))
}

fn method(study: &StudyDocument) -> String {
    let mut text = format!(
        "\n## How it was measured\n\n{} points in {}; at a fixed 60 s each it would have taken {}. \
         {} of them are within \u{b1} {}. {} replicates were dropped for the budget. {} written. \
         Intervals are 95 %.\n",
        study.points.len(),
        words::value(study.duration_s, "s"),
        words::value(study.fixed_minute_s, "s"),
        words::value(study.precise_pct, "percent"),
        words::value(study.precision * 100.0, "percent"),
        study.replicates_dropped,
        words::value(study.bytes_written as f64, "bytes"),
    );
    if study.interrupted {
        text.push_str("\nIt was stopped before its end.\n");
    }
    text.push('\n');
    for (name, what) in words::measured(&study.method) {
        text.push_str(&format!("- {}: {}\n", escaped(&name), escaped(&what)));
    }
    text
}
