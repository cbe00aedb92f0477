//! A probe in Markdown.

use iostrata_run::{Advice, Finding, Loss, ProbeDocument, Unknown};

use super::markdown::{code, escaped, figure, table};
use crate::RunView;
use crate::view::rung_title;
use crate::words;

/// Everything below the title, section by section.
pub(crate) fn document(view: &RunView<'_>, probe: &ProbeDocument) -> String {
    let path = code(&probe.host.path.path);
    let mut text = format!("# iostrata probe of `{path}`\n");
    for (n, sentence) in probe.headline.iter().enumerate() {
        let strong = if n == 0 { "**" } else { "" };
        text.push_str(&format!("\n{strong}{}{strong}\n", escaped(sentence)));
    }
    text.push_str(&rungs(probe));
    text.push_str(&losses(probe));
    text.push_str(&findings_list(&probe.findings));
    text.push_str(&changes(probe));
    text.push_str(&redo(probe));
    text.push_str(&verifications(probe));
    text.push_str(&rest(view, probe));
    text
}

fn rungs(probe: &ProbeDocument) -> String {
    let us = |us: Option<f64>| us.map_or(String::new(), |us| words::value(us, "us"));
    let rows: Vec<_> = probe
        .rungs
        .iter()
        .map(|rung| {
            vec![
                rung.layer.title().to_owned(),
                escaped(&rung.title),
                figure(rung.value, rung.value_ci95, rung.value_n, &rung.unit),
                us(rung.latency_us),
                us(rung.device_latency_us),
                words::verdicts(&rung.verdicts),
            ]
        })
        .collect();
    let head = ["layer", "rung", "value", "application latency", "device latency", "verdicts"];
    format!("\n## The ladder\n{}{}", table(&head, &rows), unknown(&probe.unknown))
}

/// What is not known, with the reason of each.
pub(crate) fn unknown(all: &[Unknown]) -> String {
    let line = |one: &Unknown| {
        let why = words::because(one.why, one.between, &one.unit);
        format!("- {}: {}\n", escaped(&one.title), escaped(&why))
    };
    let lines: String = all.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\nNot known:\n\n{lines}") }
}

fn losses(probe: &ProbeDocument) -> String {
    if probe.losses.is_empty() {
        return format!("\n## Losses\n\n{}\n{}", escaped(&words::no_loss(probe)), undecided(probe));
    }
    format!("\n## Losses\n{}{}", loss_table(probe, &probe.losses), undecided(probe))
}

fn undecided(probe: &ProbeDocument) -> String {
    if probe.undecided.is_empty() {
        return String::new();
    }
    format!("\nNot decided, because the figures vary:\n{}", loss_table(probe, &probe.undecided))
}

fn loss_table(probe: &ProbeDocument, losses: &[Loss]) -> String {
    let row = |loss: &Loss| {
        vec![
            loss.layer.title().to_owned(),
            escaped(rung_title(probe, &loss.from)),
            escaped(rung_title(probe, &loss.to)),
            words::value(loss.loss_pct, "percent"),
            loss.loss_pct_ci95.map_or(String::new(), |ci95| words::interval(ci95, "percent")),
            loss.loss_pct_n.to_string(),
            escaped(&loss.text),
        ]
    };
    let rows: Vec<_> = losses.iter().map(row).collect();
    table(&["layer", "from", "to", "loss", "95 %", "pairs", "what it says"], &rows)
}

/// Every finding with its evidence, or that nothing stands out.
pub(crate) fn findings_list(findings: &[Finding]) -> String {
    let mut text = String::from("\n## Findings\n");
    if findings.is_empty() {
        text.push_str("\nNothing stands out.\n");
    }
    for finding in findings {
        let effect = finding.effect_pct.map_or(String::new(), |effect| {
            let ci95 = finding.effect_pct_ci95;
            let range = ci95.map_or(String::new(), |ci95| words::interval(ci95, "percent"));
            let n = finding.effect_pct_n;
            format!(", effect {} ({range}, n = {n})", words::value(effect, "percent"))
        });
        let id = code(&finding.id);
        text.push_str(&format!("\n- {} (`{id}`{effect})\n", escaped(&finding.text)));
        for (name, what) in &finding.evidence {
            let (name, what) = words::evidence(name, what);
            text.push_str(&format!("  - {}: {}\n", escaped(&name), escaped(&what)));
        }
    }
    text
}

fn changes(probe: &ProbeDocument) -> String {
    let mut text = format!("\n## {}\n", words::changes_title(probe));
    if probe.advice.is_empty() {
        text.push_str("\nNothing was advised.\n");
        return text;
    }
    let row = |advice: &Advice| {
        vec![
            format!("`{} = {}`", code(&advice.setting), code(&advice.value)),
            escaped(advice.default.as_deref().unwrap_or("")),
            escaped(&advice.where_),
            escaped(&advice.text),
            words::risk(advice.risk).to_owned(),
            escaped(&advice.undo),
            advice.why.iter().map(|id| format!("`{}`", code(id))).collect::<Vec<_>>().join(", "),
        ]
    };
    let rows: Vec<_> = probe.advice.iter().map(row).collect();
    text.push_str(&table(
        &["setting", "default", "where", "why", "risk", "undo", "findings"],
        &rows,
    ));
    text
}

fn redo(probe: &ProbeDocument) -> String {
    if probe.redo_table.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = probe
        .redo_table
        .iter()
        .map(|row| {
            vec![
                words::value(row.redo_bytes_per_s, "bytes/s"),
                words::value(row.redo_capacity_bytes as f64, "bytes"),
                words::value(row.drain_s, "s"),
            ]
        })
        .collect();
    let head = ["redo written", "capacity for half an hour", "time to flush a full log's pages"];
    format!("\n## Redo log size\n{}", table(&head, &rows))
}

fn verifications(probe: &ProbeDocument) -> String {
    if probe.verifications.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = probe
        .verifications
        .iter()
        .map(|one| {
            vec![
                format!("`{}`", code(&one.setting)),
                escaped(&one.text),
                figure(one.before, one.before_ci95, one.before_n, &one.unit),
                figure(one.after, one.after_ci95, one.after_n, &one.unit),
                if one.confirmed { "confirmed" } else { "no measurable gain" }.to_owned(),
            ]
        })
        .collect();
    let head = ["setting", "what was tried", "before", "after", "result"];
    format!("\n## Tried here\n{}", table(&head, &rows))
}

fn rest(view: &RunView<'_>, probe: &ProbeDocument) -> String {
    let mut text = unavailable_list(view) + &cautions(view);
    text.push_str(&format!(
        "\n{} rungs in {}, {} written. Intervals are 95 %.\n",
        probe.rungs.len(),
        words::value(probe.duration_s, "s"),
        words::value(probe.bytes_written as f64, "bytes")
    ));
    text
}

/// What could not be measured here.
pub(crate) fn unavailable_list(view: &RunView<'_>) -> String {
    let mut text = String::new();
    let unavailable = view.unavailable();
    if !unavailable.is_empty() {
        text.push_str("\n## Not measured here\n\n");
    }
    for one in unavailable {
        let fix = one.fix.as_ref().map_or(String::new(), |fix| format!("; {}", escaped(fix)));
        text.push_str(&format!("- {}: {}{fix}\n", escaped(&one.what), escaped(&one.why)));
    }
    text
}

/// Every verdict that occurs, explained.
pub(crate) fn cautions(view: &RunView<'_>) -> String {
    let mut text = String::new();
    let verdicts = view.verdicts();
    if !verdicts.is_empty() {
        text.push_str("\n## Cautions in this run\n\n");
    }
    for verdict in verdicts {
        text.push_str(&format!("- `{}`: {}\n", words::verdict(verdict), verdict.explain()));
    }
    text
}
