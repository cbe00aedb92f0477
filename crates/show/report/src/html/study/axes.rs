//! What becomes of throughput along each axis, with the fitted law over the measured points.

use iostrata_run::{AxisKind, StudyAxis, StudyDocument, UslDocument};
use maud::{Markup, html};

use crate::chart::{Chart, Charts, GREY, Hover, Mark, PanelTrace, Scale, line_colour, panel};
use crate::html::parts::{self, cell, number, place, table, text};
use crate::study::{axis_words, is_workload, level_words, listed};
use crate::words;

/// Curves that are listed openly, all of them.
const ROWS_OPEN: usize = 12;

/// Every curve; nothing without an axis.
pub(crate) fn section(study: &StudyDocument, charts: &mut Charts) -> Option<Markup> {
    if study.axes.is_empty() {
        return None;
    }
    let all = ordered(study);
    let fitted = study.axes.iter().any(|axis| axis.usl.is_some());
    Some(html! {
        @if fitted {
            p.say {
                "The fit is the universal scalability law: sigma is contention (a part that only "
                "one can do at a time), kappa is coherency (what each waits for all others), which "
                "makes throughput fall. A large miss says that another law is at work."
            }
        }
        (curves(study, charts))
        @let fallen: Vec<&StudyAxis> =
            all.iter().copied().filter(|axis| has_fallen(axis)).collect();
        @if study.axes.len() <= ROWS_OPEN { (rows(&all)) }
        @else {
            @if !fallen.is_empty() {
                h3 { "Where more does less" }
                (rows(&fallen))
            }
            details data-print { summary { "All " (all.len()) " curves as a table" } (rows(&all)) }
        }
        @if fitted { details data-print { summary { "Every fit as a table" } (fits(study)) } }
    })
}

/// Axes of load first; what becomes of larger requests is no question of scaling.
fn ordered(study: &StudyDocument) -> Vec<&StudyAxis> {
    let mut all: Vec<&StudyAxis> = study.axes.iter().collect();
    all.sort_by_key(|axis| is_workload(&axis.factor));
    all
}

fn has_fallen(axis: &StudyAxis) -> bool {
    axis.kind == AxisKind::Collapse && !is_workload(&axis.factor)
}

/// One curve at a time.
fn curves(study: &StudyDocument, charts: &mut Charts) -> Markup {
    let drawn: Vec<(String, Chart)> = ordered(study)
        .into_iter()
        .filter_map(|axis| {
            Some((format!("{}: {}", title(axis), words::axis_kind(axis.kind)), chart(study, axis)?))
        })
        .collect();
    let (titles, specs): (Vec<String>, Vec<Chart>) = drawn.into_iter().unzip();
    let Some(height) = specs.first().map(|spec| spec.height) else { return html! {} };
    charts.add_choice("axis", &specs);
    html! {
        (parts::choice("axis", "curve", &titles))
        figure { (place("axis", height, "Measured points and fitted law")) }
    }
}

fn chart(study: &StudyDocument, axis: &StudyAxis) -> Option<Chart> {
    let found = axis.points.iter().zip(&axis.x).filter_map(|(id, x)| {
        let point = study.points.iter().find(|point| point.id == *id)?;
        Some((*x, point))
    });
    let mark = |(x, point): (f64, &iostrata_run::StudyPoint)| Mark {
        x,
        y: point.value,
        ci95: point.value_ci95,
        hover: Hover {
            title: &point.title,
            value: point.value,
            unit: &point.unit,
            ci95: point.value_ci95,
            n: point.value_n,
            verdicts: Some(&point.verdicts),
        }
        .text(),
    };
    let marks: Vec<Mark> = found.map(mark).collect();
    if marks.is_empty() {
        return None;
    }
    let colour = line_colour(0);
    let line = |is_fit: bool, colour, marks| PanelTrace {
        name: words::axis_kind(axis.kind).to_owned(),
        colour,
        dash: 0,
        is_fit,
        marks,
    };
    let law = axis.usl.iter().flat_map(|usl| &usl.curve);
    let law: Vec<Mark> =
        law.map(|&[x, y]| Mark { x, y, ci95: None, hover: String::new() }).collect();
    let mut lines = vec![line(false, colour, marks)];
    if !law.is_empty() {
        lines.push(line(true, GREY, law));
    }
    let unit = study.points.first().map_or("IOPS", |point| point.unit.as_str());
    let x_title = axis_words(&axis.factor);
    Some(panel("axis", &x_title, unit, &lines, Scale::Own))
}

fn title(axis: &StudyAxis) -> String {
    let fixed = listed(&axis.levels);
    let over = axis_words(&axis.factor);
    if fixed.is_empty() { format!("over {over}") } else { format!("{fixed} over {over}") }
}

fn kind(kind: AxisKind) -> Markup {
    html! {
        @match kind {
            AxisKind::Collapse => span.tag.warn { (words::axis_kind(kind)) },
            AxisKind::Scaling => span.tag.good { (words::axis_kind(kind)) },
            AxisKind::NotClear | AxisKind::NoMeasurableDifference => {
                span.muted { (words::axis_kind(kind)) }
            }
            AxisKind::Flat | AxisKind::Saturating => span.tag { (words::axis_kind(kind)) },
        }
    }
}

fn rows(axes: &[&StudyAxis]) -> Markup {
    let columns = [
        text("Curve"),
        text("Shape"),
        number("From"),
        number("Change to the end"),
        number("Enough"),
        text("What it says"),
    ];
    let row = |axis: &&StudyAxis| {
        let level = |x: Option<f64>| {
            cell(x.map_or(String::new(), |x| level_words(&axis.factor, &format!("{x}"))))
        };
        vec![
            cell(title(axis)),
            kind(axis.kind),
            level(axis.at),
            change(axis),
            level(axis.enough),
            cell(&axis.text),
        ]
    };
    table(&columns, axes.iter().map(row).collect())
}

fn change(axis: &StudyAxis) -> Markup {
    html! {
        @if let Some(change) = axis.change_pct {
            span {
                (words::value(change, "percent"))
                @if let Some(ci95) = axis.change_pct_ci95 {
                    span.muted { " " (words::range(ci95, "percent")) }
                }
            }
        }
    }
}

fn fits(study: &StudyDocument) -> Markup {
    let columns = [
        text("Curve"),
        number("One worker"),
        number("sigma"),
        number("kappa"),
        number("Peak"),
        number("Levels"),
        number("r\u{b2}"),
        number("Misses by at most"),
    ];
    let row = |axis: &StudyAxis, usl: &UslDocument| {
        vec![
            cell(title(axis)),
            with_interval(usl.lambda, usl.lambda_ci95),
            with_interval(usl.sigma, usl.sigma_ci95),
            with_interval(usl.kappa, usl.kappa_ci95),
            peak(axis, usl),
            cell(usl.n.to_string()),
            cell(format!("{:.3}", usl.r2)),
            cell(words::value(usl.misses_pct_max, "percent")),
        ]
    };
    let rows = study.axes.iter().filter_map(|axis| Some(row(axis, axis.usl.as_ref()?)));
    table(&columns, rows.collect())
}

fn with_interval(value: f64, ci95: Option<iostrata_stats::Interval>) -> Markup {
    html! {
        span title=(words::exact(value)) {
            (words::small(value))
            @if let Some([low, high]) = ci95 {
                span.muted { " [" (words::small(low)) ", " (words::small(high)) "]" }
            }
        }
    }
}

fn peak(axis: &StudyAxis, usl: &UslDocument) -> Markup {
    html! {
        @if let Some(workers) = usl.peak_workers {
            span {
                @if let Some(value) = usl.peak_value { (words::value(value, "")) " at " }
                (level_words(&axis.factor, &format!("{workers:.0}")))
            }
        }
    }
}
