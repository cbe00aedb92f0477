//! The evidence of a study's points in Markdown: latencies, profiles, waits, the path, changes.

use iostrata_run::StudyDocument;
use iostrata_run::host::{KernelLayer, PathSegment};

use super::markdown::ci95;
use crate::text::markdown::{code, escaped, figure, table};
use crate::words;

/// Functions of a point that are named.
const SYMBOLS: usize = 3;

/// Every latency of every point.
pub(super) fn latencies(study: &StudyDocument) -> String {
    let us = |us: f64| words::value(us, "us");
    let mut rows = Vec::new();
    for point in &study.points {
        for (name, op) in point.ops.named() {
            let latency = &op.latency_us;
            let mut row = vec![
                escaped(&point.title),
                name.to_owned(),
                figure(op.iops, op.iops_ci95, op.iops_n, "/s"),
                us(latency.mean),
                ci95(op.latency_us_mean_ci95, "us"),
            ];
            row.extend([latency.p50, latency.p95, latency.p99, latency.p99_9, latency.max].map(us));
            row.push(op.response_us.map_or(String::new(), |response| us(response.p99)));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let head = [
        "point",
        "requests",
        "per second",
        "mean",
        "95 %",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "max",
        "response p99",
    ];
    format!("\n## Latencies\n{}", table(&head, &rows))
}

/// On-CPU shares and the hottest functions.
pub(super) fn layers(study: &StudyDocument) -> String {
    let with: Vec<_> =
        study.points.iter().filter_map(|point| Some((point, point.profile.as_ref()?))).collect();
    if with.is_empty() {
        return String::new();
    }
    let occurs = |layer: &KernelLayer| {
        with.iter().any(|(_, profile)| profile.layers.iter().any(|one| one.layer == *layer))
    };
    let layers: Vec<KernelLayer> = KernelLayer::ALL.into_iter().filter(occurs).collect();
    let rows: Vec<_> = with
        .iter()
        .map(|(point, profile)| {
            let mut row = vec![escaped(&point.title), profile.samples.to_string()];
            let share = |layer: &KernelLayer| {
                let found = profile.layers.iter().find(|one| one.layer == *layer);
                found.map_or(String::new(), |one| format!("{:.1}", one.pct))
            };
            row.extend(layers.iter().map(share));
            let symbols = profile.symbols.iter().take(SYMBOLS);
            let symbols = symbols.map(|one| format!("`{}` {:.1} %", code(&one.symbol), one.pct));
            row.push(symbols.collect::<Vec<_>>().join(", "));
            row
        })
        .collect();
    let mut head = vec!["point", "samples"];
    head.extend(layers.iter().map(|layer| layer.title()));
    head.push("hottest functions");
    format!("\n## Where the processors were, percent\n{}", table(&head, &rows))
}

/// Waits by layer, and the longest.
pub(super) fn waits(study: &StudyDocument) -> String {
    let mut rows = Vec::new();
    for point in &study.points {
        let Some(off) = point.profile.as_ref().and_then(|profile| profile.off_cpu.as_ref()) else {
            continue;
        };
        let named = off.waits.iter().take(SYMBOLS).map(|one| {
            let caller =
                one.caller.as_ref().map_or(String::new(), |by| format!(" by `{}`", code(by)));
            let (total, mean) = (words::value(one.total_us, "us"), words::value(one.mean_us, "us"));
            format!("`{}`{caller}: {total}, mean {mean}", code(&one.symbol))
        });
        let shares = off.layers.iter().map(|one| format!("{} {:.1} %", one.layer.title(), one.pct));
        rows.push(vec![
            escaped(&point.title),
            off.count.to_string(),
            words::value(off.total_us, "us"),
            shares.collect::<Vec<_>>().join(", "),
            named.collect::<Vec<_>>().join("; "),
        ]);
    }
    if rows.is_empty() {
        return String::new();
    }
    let head = ["point", "waits", "in all", "by layer", "longest in all"];
    format!("\n## What threads waited for\n{}", table(&head, &rows))
}

/// Mean latency by layer.
pub(super) fn path(study: &StudyDocument) -> String {
    let mut rows = Vec::new();
    for point in &study.points {
        let Some(traced) = &point.latency_by_layer else { continue };
        for (name, is_read) in [("reads", true), ("writes", false)] {
            let mean = |segment: &PathSegment| {
                let found = traced.segment(*segment)?;
                if is_read { found.reads } else { found.writes }
            };
            let found = PathSegment::ALL.map(|segment| mean(&segment));
            if found.iter().all(Option::is_none) {
                continue;
            }
            let mut row = vec![escaped(&point.title), name.to_owned()];
            row.extend(found.map(|times| {
                times.map_or(String::new(), |times| words::value(times.latency_us.mean, "us"))
            }));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut head = vec!["point", "requests"];
    head.extend(PathSegment::ALL.map(words::segment));
    format!("\n## Where the time goes, mean\n{}", table(&head, &rows))
}

/// System changes.
pub(super) fn changes(study: &StudyDocument) -> String {
    if study.changes.is_empty() {
        return String::new();
    }
    let optional = |text: &Option<String>| text.as_deref().map_or(String::new(), escaped);
    let rows: Vec<_> = study
        .changes
        .iter()
        .map(|one| vec![escaped(&one.text), optional(&one.asked), optional(&one.took)])
        .collect();
    format!("\n## What was changed on this system\n{}", table(&["change", "asked", "took"], &rows))
}
