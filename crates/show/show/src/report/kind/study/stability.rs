//! Transactions of a study: how even and how high their rate is, what holds them up, what they
//! demand of the storage, and the rate over time, one small chart for each point.
//!
//! Invariant: charts of rates that are alike share their vertical scale, so that what stands still
//! is seen next to what does not; a target that is many times faster does not flatten the others.

use iostrata_plan::study::ThenMetric;
use iostrata_run::{StallCause, StudyDocument, StudyPoint, StudyTransactions};

use super::levels::{Naming, factor_words, level, varying};
use super::matrix::SHARED_SCALE;
use crate::report::cell::{Cell, count, empty, figure, interval, text, value, verdicts};
use crate::report::chart::{Chart, Course, Line, Lines, Mark, Plot, Scale, solid};
use crate::report::colour::Colour;
use crate::report::document::{Block, Blocks, On, Panels, Table, TableLayout, TableOf};
use crate::report::words;

/// A point with its transactions.
type Item<'a> = (&'a StudyPoint, &'a StudyTransactions);

/// Points of transactions.
fn items(study: &StudyDocument) -> Vec<Item<'_>> {
    study.points.iter().filter_map(|one| Some((one, one.transactions.as_ref()?))).collect()
}

fn naming<'a>(study: &'a StudyDocument, all: &[Item<'a>]) -> Naming<'a> {
    let points: Vec<&StudyPoint> = all.iter().map(|item| item.0).collect();
    let levels: Vec<_> = points.iter().map(|point| point.levels.as_slice()).collect();
    Naming::of(&levels, &varying(study, &points))
}

/// The rate of some points over time, a chart for each, and what their titles leave out.
pub(super) fn courses(
    study: &StudyDocument,
    of: &[&StudyPoint],
    name: &str,
) -> (Vec<Chart>, Option<String>) {
    let mut all = items(study);
    all.retain(|(point, _)| of.iter().any(|one| one.id == point.id));
    let naming = naming(study, &all);
    (over_time(&naming, &all, name).charts, naming.says())
}

/// The section; nothing where no point is one of transactions.
pub(super) fn section(study: &StudyDocument) -> Option<Blocks> {
    let all = items(study);
    if all.is_empty() {
        return None;
    }
    let naming = naming(study, &all);
    let mut body = Blocks::new();
    body.say(
        "The worst second of a window over its mean: 1 is perfectly even, 0 a second in which \
         nothing was done. Stalled is the share of the time below half the mean rate, with what \
         the database waited for most of it. Busiest is what was at work for most of the time: \
         flushes of the device, its I/O limit with what most of that went to, or the processors. \
         Each window begins when the redo has gone round. Charts of rates that are alike share a \
         scale.",
    );
    if let Some(usual) = naming.says() {
        body.note(usual);
    }
    body.table(On::ALL, speed(&naming, &all));
    body.add(On::PAGE, Block::Panels(over_time(&naming, &all, "rate")));
    body.title(On::FILES, "What the load demands of the storage");
    body.table(On::FILES, asked(&naming, &all));
    Some(body)
}

/// A column for each factor that is named at every point, and one for what is seldom different.
fn with_levels<'a>(naming: &Naming<'_>, all: &[Item<'a>]) -> TableOf<Item<'a>> {
    let mut table = Table::of(all.iter().copied());
    let factors = naming.always();
    for factor in &factors {
        let name = factor.factor.as_str();
        table = table.words(&factor_words(name), |item| {
            text(level(&item.0.levels, name).unwrap_or_default())
        });
    }
    if naming.says().is_some() {
        return table.words("Differs in", |item| text(naming.differences(&item.0.levels)));
    }
    if factors.is_empty() { table.words("Point", |item| text(&item.0.title)) } else { table }
}

fn of(item: &Item<'_>, metric: ThenMetric) -> Cell {
    // The head of the column names what it is of. None of a thing, or hardly any, is a result here,
    // however wide its interval is.
    let unit = if metric == ThenMetric::MinOverMean1s { "" } else { metric.unit() };
    let found = item.1.figures.get(metric.name());
    found.map_or_else(empty, |found| value(found.value, unit))
}

fn speed(naming: &Naming<'_>, all: &[Item<'_>]) -> Table {
    let table = with_levels(naming, all)
        .numbers("Transactions/s", |item| {
            let point = item.0;
            figure(point.value, point.value_ci95, point.value_n, "")
        })
        .numbers_on(On::FILES, "95 %", |item| interval(item.0.value, item.0.value_ci95, ""))
        .numbers("Worst second", |item| of(item, ThenMetric::MinOverMean1s))
        .numbers_on(On::FILES, "95 %", |item| {
            let found = item.1.figures.get(ThenMetric::MinOverMean1s.name());
            found.map_or_else(empty, |found| interval(found.value, found.ci95, ""))
        })
        .numbers("99.9 % within", |item| of(item, ThenMetric::LatencyP999Us))
        .numbers("Stalled", |item| of(item, ThenMetric::StalledPct));
    let has_stalls = all.iter().any(|item| !item.1.stalls.is_empty());
    let table = if has_stalls { table.words("By", |item| text(main_cause(item.1))) } else { table };
    table
        .words("Busiest", |item| text(busiest(item.1)))
        .words_on(On::FILES, "Cautions", |item| verdicts(&item.0.verdicts))
        .each(|item, row| row.point = Some((item.0.id.clone(), item.0.title.clone())))
        .kind(TableLayout::Broad)
        .into()
}

fn asked(naming: &Naming<'_>, all: &[Item<'_>]) -> Table {
    const COLUMNS: [(&str, ThenMetric); 25] = [
        ("Redo", ThenMetric::RedoBytesPerS),
        ("Pages dirtied", ThenMetric::PagesDirtiedPerS),
        ("Pages a transaction", ThenMetric::PagesPerTransaction),
        ("Log syncs a transaction", ThenMetric::SyncsPerTransaction),
        ("Device flushes", ThenMetric::FlushesPerTransaction),
        ("Device writes", ThenMetric::DeviceWritesPerTransaction),
        ("Device bytes", ThenMetric::DeviceWriteBytesPerTransaction),
        ("Device reads", ThenMetric::DeviceReadsPerTransaction),
        ("Doublewrite pages", ThenMetric::DoublewritePagesPerTransaction),
        ("Processor time", ThenMetric::CpuUsPerTransaction),
        ("Redo volume, writes", ThenMetric::RedoDeviceWritesPerS),
        ("Its KiB", ThenMetric::RedoDeviceKibPerS),
        ("Its flushes", ThenMetric::RedoDeviceFlushesPerS),
        ("Written for lack of redo", ThenMetric::FlushedForRedoPct),
        ("Stalls", ThenMetric::StallsPerMin),
        ("Furious flushes", ThenMetric::FuriousFlushesPerMin),
        ("Age, mean", ThenMetric::CheckpointAgePct),
        ("Age, most", ThenMetric::CheckpointAgeMaxPct),
        ("History", ThenMetric::HistoryLength),
        ("Second engine", ThenMetric::SecondTps),
        ("Its pages", ThenMetric::SecondPagesPerS),
        ("Of all pages", ThenMetric::SecondPagesPct),
        ("Concurrent reads", ThenMetric::ReaderIops),
        ("Their latency", ThenMetric::ReaderLatencyMeanUs),
        ("99th percentile", ThenMetric::ReaderLatencyP99Us),
    ];
    let mut table = with_levels(naming, all);
    for (head, metric) in COLUMNS {
        let is_there = all.iter().any(|item| item.1.figures.contains_key(metric.name()));
        if is_there {
            table = table.numbers(head, move |item| of(item, metric));
        }
    }
    table
        .numbers("Windows", |item| count(u64::from(item.0.replicates)))
        .numbers("Left out", |item| count(u64::from(item.1.left_out)))
        .kind(TableLayout::Wide)
        .into()
}

/// The resource that was at work for most of the time, and for how much of it.
fn busiest(of: &StudyTransactions) -> String {
    of.bound.as_ref().map_or_else(String::new, |bound| {
        format!("{} {:.0} %", bound.resource.title(), bound.reached_pct)
    })
}

/// What the database waited for in most of the time that was lost.
fn main_cause(of: &StudyTransactions) -> String {
    of.main_cause.map_or_else(String::new, |cause| match cause {
        StallCause::Unknown => "an unknown cause".to_owned(),
        cause => cause.to_string(),
    })
}

fn over_time(naming: &Naming<'_>, all: &[Item<'_>], name: &str) -> Panels {
    let top = |item: &Item<'_>| item.1.series.tps.iter().copied().fold(0.0, f64::max);
    let tops: Vec<f64> = all.iter().map(top).collect();
    let chart = |(n, (point, found)): (usize, &Item<'_>)| {
        let title = match naming.name(&point.levels) {
            none if none.is_empty() => point.title.clone(),
            title => words::capital(&title),
        };
        let mark = |(t_s, tps): (&f64, &f64)| {
            let rate = words::value(*tps, "");
            let hover = format!("{title}\n{} s: {rate} transactions/s", words::exact(*t_s));
            Mark { x: *t_s, y: *tps, ci95: None, hover }
        };
        let marks = found.series.t_s.iter().zip(&found.series.tps).map(mark).collect();
        let (label, stroke) = (String::new(), solid(Colour::Line(0)));
        let line = Line { name: label, stroke, course: Course::Points(marks), marked: None };
        let lines = Lines::new("s", "transactions/s", vec![line])
            .panel(Scale::Shared(shared_top(&tops, n)));
        Chart::new(format!("{name}-{n}"), title.clone(), Plot::Lines(lines))
    };
    let charts = all.iter().enumerate().map(chart).collect();
    Panels { legend: Vec::new(), charts, has_switch: false }
}

/// The top of the scale of a chart: the highest of the similar ones, from the lowest top on. A
/// target that did nothing at all is like any other.
fn shared_top(tops: &[f64], of: usize) -> f64 {
    let mut rising: Vec<f64> = tops.iter().copied().filter(|top| *top > 0.0).collect();
    rising.sort_by(f64::total_cmp);
    let mut lowest = f64::NEG_INFINITY;
    let mut alike = Vec::new();
    for top in rising {
        if top > lowest * SHARED_SCALE {
            if tops[of] > 0.0 && alike.last().is_some_and(|last| *last >= tops[of]) {
                break;
            }
            (lowest, alike) = (top, Vec::new());
        }
        alike.push(top);
    }
    alike.last().copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_target_does_not_flatten_the_others() {
        let tops = [1_900.0, 4_100.0, 73_000.0, 400.0, 5_000.0, 60_000.0];
        let scales: Vec<f64> = (0..tops.len()).map(|n| shared_top(&tops, n)).collect();
        assert_eq!(scales, [5_000.0, 5_000.0, 73_000.0, 400.0, 5_000.0, 73_000.0]);
        assert_eq!(shared_top(&[900.0, 0.0, 2_600.0], 0), 2_600.0);
        assert_eq!(shared_top(&[900.0, 0.0, 9_600.0], 1), 9_600.0, "nothing was done at all");
        assert_eq!(shared_top(&[3.0], 0), 3.0);
    }
}
