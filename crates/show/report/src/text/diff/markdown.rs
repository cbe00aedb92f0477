//! Two points beside each other in Markdown.

use iostrata_run::host::{OffCpuWait, ProfileDiff, ShareDiff};

use super::rows::{Pair, figures, path, points, points_range, waits};
use crate::PointDiff;
use crate::text::markdown::{code, escaped, table};
use crate::words;

/// The whole document.
pub(crate) fn document(diff: &PointDiff<'_>) -> String {
    let (a, b) = (diff.a, diff.b);
    let mut text = format!("# {} and {}\n", escaped(a.0), escaped(b.0));
    for (letter, (label, point)) in [("A", a), ("B", b)] {
        text.push_str(&format!("\n- **{letter}** {}: {}", escaped(label), escaped(&point.title)));
    }
    text.push('\n');
    text.push_str(&pairs(&figures(diff, "\u{b1}"), ""));
    match diff.profile {
        Some(profile) => text.push_str(&on_cpu(profile)),
        None => text.push_str("\n## On-CPU\n\nNot both points have a profile.\n"),
    }
    text.push_str(&off_cpu(diff));
    let segments = path(diff);
    if !segments.is_empty() {
        text.push_str("\n## Latency by layer, mean\n");
        text.push_str(&pairs(&segments, "part"));
    }
    text
}

fn pairs(all: &[Pair], head: &str) -> String {
    let row = |pair: &Pair| {
        let [a, b] = &pair.both;
        vec![escaped(&pair.name), escaped(a), escaped(b)]
    };
    table(&[head, "A", "B"], &all.iter().map(row).collect::<Vec<_>>())
}

fn share(share: &ShareDiff) -> Vec<String> {
    let points = points(share.points);
    vec![
        format!("{:.1} %", share.pct_a),
        format!("{:.1} %", share.pct_b),
        if share.is_significant { format!("**{points}**") } else { points },
        escaped(&points_range(share.points_ci95)),
    ]
}

fn on_cpu(profile: &ProfileDiff) -> String {
    let layer = |row: &iostrata_run::host::LayerDiff| {
        let mut cells = vec![row.layer.title().to_owned()];
        cells.extend(share(&row.share));
        cells
    };
    let symbol = |row: &iostrata_run::host::SymbolDiff| {
        let mut cells =
            vec![format!("`{}`", code(&row.symbol)), format!("`{}`", code(&row.module))];
        cells.extend(share(&row.share));
        cells
    };
    let layers: Vec<_> = profile.layers.iter().map(layer).collect();
    let symbols: Vec<_> = profile.symbols.iter().map(symbol).collect();
    let mut text = format!(
        "\n## On-CPU\n\nShares of {} and {} samples; differences in points with their 95 % \
         interval, bold where it leaves out 0.\n{}\n## Functions\n{}",
        profile.samples_a,
        profile.samples_b,
        table(&["layer", "A", "B", "points", "95 %"], &layers),
        table(&["function", "DSO", "A", "B", "points", "95 %"], &symbols)
    );
    for note in &profile.notes {
        text.push_str(&format!("\n{}\n", escaped(note)));
    }
    text
}

fn off_cpu(diff: &PointDiff<'_>) -> String {
    let all = waits(diff);
    if all.is_empty() {
        return String::new();
    }
    let times = |wait: Option<&OffCpuWait>| match wait {
        Some(wait) => [
            words::value(wait.total_us, "us"),
            words::value(wait.mean_us, "us"),
            wait.count.to_string(),
        ],
        None => [String::new(), String::new(), String::new()],
    };
    let rows: Vec<_> = all
        .iter()
        .map(|wait| {
            let mut cells = vec![
                format!("`{}`", code(wait.symbol)),
                wait.caller.map_or(String::new(), |caller| format!("`{}`", code(caller))),
                wait.layer.to_owned(),
            ];
            cells.extend(wait.both.into_iter().flat_map(times));
            cells
        })
        .collect();
    let head = [
        "waits in", "asked by", "for", "total A", "mean A", "waits A", "total B", "mean B",
        "waits B",
    ];
    format!("\n## Off-CPU waits\n{}", table(&head, &rows))
}
