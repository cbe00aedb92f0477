//! The course of a run of transactions: the rate over time, its drift, its stalls.

use iostrata_run::{DatasetGrowth, TransactionDocument};
use iostrata_stats::{Drift, Interval};

use super::common::facts;
use crate::report::cell::{text, value};
use crate::report::chart::{Chart, Course, Line, Lines, Plot, Scale, Slices, solid};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, On, Style, Table};
use crate::report::words;

/// What is counted per second.
const RATE: &str = "transactions/s";

fn percent_of(ratio: f64) -> String {
    words::value(ratio * 100.0, "percent")
}

/// The rate second by second, and how evenly it held.
pub(super) fn over_time(run: &TransactionDocument) -> Option<Blocks> {
    let mut body = Blocks::new();
    let seconds = &run.series;
    if let Some(width_s) = seconds.t_s.first().copied() {
        let course = Course::Slices(Slices {
            width_s,
            values: seconds.tps.clone(),
            unit: RATE,
            title: run.workload.clone(),
        });
        let line =
            Line { name: String::new(), stroke: solid(Colour::Line(0)), course, marked: None };
        let lines = Lines::new("seconds in the measured window", RATE, vec![line]);
        let plot = Plot::Lines(Lines { scale: Scale::Linear, ..lines });
        body.chart(Chart::new("time-transactions", "", plot).says(
            "Completed transactions per second. A stall of flushing or of the redo log is a hole \
             in this line, whatever the mean says.",
        ));
    }
    if let Some(stability) = &run.stability {
        body.say(
            "Steadiness is taken from windows of one and of two seconds that slide by a tenth of a \
             second, so that a hole between two whole seconds counts as well.",
        );
        let two = stability
            .min_over_mean_2s
            .map(|ratio| ("worst two seconds, of the mean".to_owned(), percent_of(ratio)));
        let down = match stability.longest_below_half_s {
            down if down > 0.0 => words::value(down, "s"),
            _ => "never".to_owned(),
        };
        let all = [
            Some(("worst second, of the mean".to_owned(), percent_of(stability.min_over_mean_1s))),
            two,
            Some(("variation between seconds".to_owned(), percent_of(stability.cov_1s))),
            Some(("longest below half the mean".to_owned(), down)),
        ];
        // A terminal has them in the headline.
        body.add(On::FILES, facts(all.into_iter().flatten().collect()));
    }
    if let Some(drift) = &run.drift {
        let on = if drift.is_significant() { On::ALL } else { On::FILES };
        body.add(on, Block::Text(Style::Say, drifted(drift).into()));
    }
    if let Some(grown) = run.dataset.as_ref().and_then(grown) {
        body.say(grown);
    }
    stalls(run, &mut body);
    let has_any = !seconds.tps.is_empty() || run.stability.is_some();
    has_any.then_some(body)
}

/// `The last third of the window was 12 % slower than the first ...`
fn drifted(drift: &Drift) -> String {
    let is_slower = drift.change_pct < 0.0;
    // "Slower by" takes a number without its sign.
    let shown = |[low, high]: Interval| match is_slower && drift.is_significant() {
        true => [-high, -low],
        false => [low, high],
    };
    let interval = drift.change_pct_ci95.map_or(String::new(), |interval| {
        format!(" (95 %: {})", words::interval(shown(interval), Some(drift.change_pct), "percent"))
    });
    let (first, last) = (words::value(drift.first_tps, RATE), words::value(drift.last_tps, RATE));
    if !drift.is_significant() {
        return format!(
            "No drift can be told from noise: {first} in the first third, {last} in the last, a \
             change of {}{interval}.",
            words::value(drift.change_pct, "percent")
        );
    }
    let way = if is_slower { "slower" } else { "faster" };
    format!(
        "The last third of the window was {} {way} than the first{interval}: {first} became {last}.",
        words::value(drift.change_pct.abs(), "percent")
    )
}

/// `Orders grew from ... to ...; the files from ... to ...`
fn grown(of: &DatasetGrowth) -> Option<String> {
    let from_to = |before: Option<u64>, after: Option<u64>, unit: &str| {
        let shown = |count: u64| match unit {
            "" => words::grouped(count),
            unit => words::value(count as f64, unit),
        };
        let (before, after) = (shown(before?), shown(after?));
        (before != after).then(|| format!("{before} to {after}"))
    };
    let orders = from_to(of.orders_before, of.orders_after, "");
    let bytes = from_to(of.bytes_before, of.bytes_after, "bytes");
    let all = [
        orders.map(|text| format!("orders from {text}")),
        bytes.map(|text| format!("files from {text}")),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| format!("The tables grew: {}.", all.join(", ")))
}

/// Every time below half the mean with its cause, and what finding the causes cost.
fn stalls(run: &TransactionDocument, body: &mut Blocks) {
    if !run.stalls.is_empty() {
        let table = Table::of(&run.stalls)
            .numbers("stall at", |stall| value(stall.t_s, "s"))
            .numbers("length", |stall| value(stall.length_s, "s"))
            .numbers("worst second", |stall| value(stall.min_tps, "/s"))
            .words("cause", |stall| text(stall.cause.to_string()))
            .words_on(On::FILES, "what speaks for it", |stall| text(stall.evidence.as_str()));
        body.table(On::ALL, table);
    }
    if let Some(cost) = &run.sampler {
        let failed = match cost.failed {
            0 => String::new(),
            failed => format!(", of which {failed} failed"),
        };
        body.say(format!(
            "The target was sampled {}{failed}; a sample took {} on average, at most {}.",
            iostrata_stats::units::times(cost.samples),
            words::value(cost.sample_us_mean, "us"),
            words::value(cost.sample_us_max, "us")
        ));
    }
}
