//! The results of job files as a table.

use iostrata_run::{FioDocument, FioJobDocument, IoOpDocument};
use iostrata_units as units;

/// One row per job and kind of request, with what speaks against the figures below.
pub fn table(document: &FioDocument) -> String {
    let jobs = document.waves.iter().flat_map(|wave| &wave.jobs);
    let name = jobs.map(|job| job.name.chars().count()).max().unwrap_or(0).clamp(4, 30);
    let mut text = format!(
        "{:name$} {:8} {:>10} {:>8} {:>14} {:>10} {:>10} {:>10} {:>10}\n",
        "job", "", "rate", "+-", "bandwidth", "mean", "p50", "p99", "max"
    );
    for (number, wave) in document.waves.iter().enumerate() {
        if document.waves.len() > 1 {
            let seconds = units::seconds(wave.duration_s);
            text.push_str(&format!("wave {}, {seconds}\n", number + 1));
        }
        for job in &wave.jobs {
            text.push_str(&rows(job, name));
        }
    }
    text.push_str(&foot(document));
    text
}

fn rows(job: &FioJobDocument, width: usize) -> String {
    let figures = &job.figures;
    let mut text = String::new();
    for (kind, op) in figures.ops.named() {
        let name = if text.is_empty() { job.name.as_str() } else { "" };
        text.push_str(&row(name, kind, op, width));
    }
    for error in &figures.errors {
        text.push_str(&format!("  {} requests failed with error {}\n", error.count, error.errno));
    }
    for note in &figures.notes {
        text.push_str(&format!("  {note}\n"));
    }
    text
}

fn row(name: &str, kind: &str, op: &IoOpDocument, width: usize) -> String {
    let half = op.iops_ci95.map(|[low, high]| (high - low) / 2.0);
    let spread = half.filter(|_| op.iops > 0.0).map(|half| half / op.iops * 100.0);
    let spread = spread.map_or("-".to_owned(), units::percent);
    let bandwidth = match op.bytes_per_s {
        rate if rate > 0.0 => format!("{}/s", units::bytes(rate)),
        _ => String::new(),
    };
    let latency = &op.latency_us;
    format!(
        "{name:width$} {kind:8} {:>10} {spread:>8} {bandwidth:>14} {:>10} {:>10} {:>10} {:>10}\n",
        units::rate(op.iops),
        units::microseconds(latency.mean),
        units::microseconds(latency.p50),
        units::microseconds(latency.p99),
        units::microseconds(latency.max),
    )
}

fn foot(document: &FioDocument) -> String {
    let mut text = String::new();
    for verdict in document.verdicts.iter() {
        let name = serde_json::to_value(verdict).ok();
        let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
        text.push_str(&format!("{name}: {}\n", verdict.explain()));
    }
    let written = units::bytes(document.bytes_written as f64);
    text.push_str(&format!("{written} written"));
    if let Some(run) = &document.run {
        text.push_str(&format!("; kept in {run}"));
    }
    text.push('\n');
    text
}
