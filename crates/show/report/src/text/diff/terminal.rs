//! Two points beside each other for a terminal.

use iostrata_run::host::{OffCpuWait, ProfileDiff, ShareDiff};

use super::rows::{Pair, figures, path, points, points_range, waits};
use crate::PointDiff;
use crate::text::paper::{Paper, clean, cut, cut_middle, pad, right};
use crate::words;

/// Rows of symbols, of waits.
const SYMBOLS: usize = 15;
const WAITS: usize = 10;
/// Columns of a figure, of a share, of an interval in points.
const FIGURE: usize = 24;
const SHARE: usize = 8;
const RANGE: usize = 16;

/// The whole, with a newline at its end.
pub(crate) fn document(diff: &PointDiff<'_>, width: usize, colour: bool) -> String {
    lines(diff, &Paper::new(width, colour)).join("\n") + "\n"
}

/// The lines, each at most as wide as the paper.
fn lines(diff: &PointDiff<'_>, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    for (letter, (label, point)) in [("A", diff.a), ("B", diff.b)] {
        let text = format!("{label}: {}", point.title);
        let text = cut(&clean(&text), paper.width - 2);
        lines.push(format!("{} {text}", paper.bold(letter)));
    }
    lines.push(String::new());
    lines.extend(pairs("", &figures(diff, paper.plus_minus()), paper));
    match diff.profile {
        Some(profile) => lines.extend(on_cpu(profile, paper)),
        None => {
            lines.push(String::new());
            lines.push(paper.dim("On-CPU: not both points have a profile."));
        }
    }
    lines.extend(off_cpu(diff, paper));
    let segments = path(diff);
    if !segments.is_empty() {
        lines.push(String::new());
        lines.extend(pairs("Latency by layer, mean", &segments, paper));
    }
    lines
}

fn pairs(title: &str, all: &[Pair], paper: &Paper) -> Vec<String> {
    let name = paper.width.saturating_sub(2 + 2 * FIGURE).clamp(10, 30);
    let mut lines = vec![format!(
        "{}{}{}",
        paper.bold(&pad(title, name + 2)),
        paper.dim(&right("A", FIGURE)),
        paper.dim(&right("B", FIGURE))
    )];
    lines.extend(all.iter().map(|pair| {
        let [a, b] = &pair.both;
        let figure = |text: &str| right(&cut(&clean(text), FIGURE - 1), FIGURE);
        format!("  {}{}{}", pad(&pair.name, name), figure(a), figure(b)).trim_end().to_owned()
    }));
    lines
}

fn on_cpu(profile: &ProfileDiff, paper: &Paper) -> Vec<String> {
    let title =
        format!("On-CPU, percent of all samples ({} and {})", profile.samples_a, profile.samples_b);
    let mut lines = vec![String::new(), paper.bold(&title), share_head("layer", paper)];
    for row in &profile.layers {
        lines.push(share_line(row.layer.title(), "", &row.share, paper));
    }
    lines.push(String::new());
    lines.push(paper.bold("Functions, largest differences first"));
    lines.push(share_head("function", paper));
    for row in profile.symbols.iter().take(SYMBOLS) {
        lines.push(share_line(&row.symbol, &row.module, &row.share, paper));
    }
    if profile.symbols.len() > SYMBOLS {
        lines.push(paper.dim(&format!("  and {} more", profile.symbols.len() - SYMBOLS)));
    }
    lines.extend(
        profile.notes.iter().flat_map(|note| paper.wrapped(note, 2)).map(|line| paper.dim(&line)),
    );
    lines
}

/// Columns for a function and its module.
fn rooms(paper: &Paper) -> (usize, usize) {
    let room = paper.width.saturating_sub(2 + 3 * SHARE + 1 + RANGE);
    let module = (room / 4).clamp(8, 16);
    (room.saturating_sub(module), module)
}

fn share_head(what: &str, paper: &Paper) -> String {
    let (name, module) = rooms(paper);
    let heads = ["A", "B", "points"].map(|head| right(head, SHARE)).concat();
    paper.dim(&format!("  {}{heads} {}", pad(what, name + module), right("95 %", RANGE)))
}

/// `  lock                     7.8    56.8   +49.0 [+48.4, +49.6]`
fn share_line(name: &str, module: &str, share: &ShareDiff, paper: &Paper) -> String {
    let (room, module_room) = rooms(paper);
    let shown = [format!("{:.1}", share.pct_a), format!("{:.1}", share.pct_b)];
    let [a, b] = shown.map(|text| right(&text, SHARE));
    let line = format!(
        "  {}{}{a}{b}{} {}",
        pad(&cut_middle(&clean(name), room.saturating_sub(1)), room),
        pad(&cut(&clean(module), module_room - 1), module_room),
        right(&points(share.points), SHARE),
        right(&points_range(share.points_ci95), RANGE)
    );
    if share.is_significant { line } else { paper.dim(&line) }
}

fn off_cpu(diff: &PointDiff<'_>, paper: &Paper) -> Vec<String> {
    let all = waits(diff);
    if all.is_empty() {
        return Vec::new();
    }
    const CELL: usize = 10;
    let room = paper.width.saturating_sub(2 + 4 * CELL + 1 + 14);
    let heads = ["total A", "mean A", "total B", "mean B"].map(|head| right(head, CELL)).concat();
    let mut lines = vec![
        String::new(),
        paper.bold("Off-CPU waits, longest first"),
        paper.dim(&format!("  {}{heads} for", pad("waits in", room))),
    ];
    let times = |wait: Option<&OffCpuWait>| match wait {
        Some(wait) => {
            [wait.total_us, wait.mean_us].map(|us| right(&words::value(us, "us"), CELL)).concat()
        }
        None => right("-", CELL) + &right("-", CELL),
    };
    for wait in all.iter().take(WAITS) {
        let name = match wait.caller {
            Some(caller) => format!("{} by {caller}", wait.symbol),
            None => wait.symbol.to_owned(),
        };
        lines.push(format!(
            "  {}{}{} {}",
            pad(&cut_middle(&clean(&name), room.saturating_sub(1)), room),
            times(wait.both[0]),
            times(wait.both[1]),
            wait.layer
        ));
    }
    lines
}
