//! The verdict of a probe in at most 40 lines: headline, ladder, losses, what to change.

use iostrata_run::{Advice, Loss, ProbeDocument, Rung};

use super::paper::{Paper, clean, cut, cut_middle, pad, right};
use crate::RunView;
use crate::view::{UnitGroup, ladder};
use crate::words;

/// Most lines of the headline.
const HEADLINE: usize = 10;
/// Most rows of the ladder.
const RUNGS: usize = 14;
/// Most rows of losses, of advice, of what is not available.
const LOSSES: usize = 3;
const ADVICE: usize = 5;
const UNAVAILABLE: usize = 2;
/// Columns of a layer's name, of a value, of half an interval.
const LAYER: usize = 12;
const VALUE: usize = 16;
const SPREAD: usize = 9;

/// The lines below the origin.
pub(crate) fn lines(view: &RunView<'_>, probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    let mut lines = headline(probe, paper);
    lines.push(String::new());
    lines.extend(rungs(view, probe, paper));
    lines.push(String::new());
    lines.extend(losses(probe, paper));
    lines.extend(changes(probe, paper));
    lines.extend(missing(view, paper));
    lines.extend(foot(view, probe, paper));
    lines
}

fn headline(probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    let mut lines = Vec::new();
    for (n, sentence) in probe.headline.iter().enumerate() {
        let wrapped = paper.wrapped(sentence, 0);
        lines.extend(wrapped.into_iter().map(|line| if n == 0 { paper.bold(&line) } else { line }));
    }
    lines.truncate(HEADLINE);
    lines
}

fn rungs(view: &RunView<'_>, probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    let groups = ladder(view, probe);
    let all: usize = groups.iter().map(|group| group.rungs.len()).sum();
    let rows = groups.iter().flat_map(|group| group.rungs.iter().map(move |rung| (group, *rung)));
    let mut lines = vec![head(paper)];
    lines.extend(rows.take(RUNGS).map(|(group, rung)| row(group, rung, paper)));
    if all > RUNGS {
        lines.push(paper.dim(&format!("  and {} more in the report", all - RUNGS)));
    }
    lines
}

/// Columns left for titles and for bars.
fn rooms(paper: &Paper) -> (usize, usize) {
    let fixed = 2 + LAYER + 1 + 1 + VALUE + 1 + SPREAD;
    let room = paper.width.saturating_sub(fixed);
    let bar = (room / 5).clamp(6, 10);
    (room.saturating_sub(bar + 1), bar)
}

fn head(paper: &Paper) -> String {
    let (title, bar) = rooms(paper);
    let names = [pad("layer", LAYER), pad("rung", title), pad("per unit", bar)];
    paper.dim(&format!("  {} {}  95 %", names.join(" "), right("value", VALUE)))
}

/// `device  4 KiB random reads, one at a time  ####  9.84 K reads/s +- 0.4 %`
fn row(group: &UnitGroup<'_>, rung: &Rung, paper: &Paper) -> String {
    let (title, width) = rooms(paper);
    let longest = group.rungs.iter().map(|rung| rung.value).fold(0.0, f64::max);
    let bar = paper.of_layer(rung.layer, &paper.bar(rung.value / longest, width));
    let half = words::half_width(rung.value, rung.value_ci95);
    let spread = half.map_or(String::new(), |half| format!("{} {half}", paper.plus_minus()));
    let mark = if rung.verdicts.is_sound() { "" } else { "*" };
    format!(
        "  {} {} {bar} {} {}{}",
        paper.of_layer(rung.layer, &pad(rung.layer.title(), LAYER)),
        pad(&cut_middle(&clean(&rung.title), title), title),
        paper.bold(&right(&clean(&words::value(rung.value, &rung.unit)), VALUE)),
        paper.dim(&spread),
        paper.warn(mark),
    )
    .trim_end()
    .to_owned()
}

fn losses(probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    if probe.losses.is_empty() {
        let stopped = "No loss seen before the run was stopped.".to_owned();
        return vec![if probe.interrupted { stopped } else { paper.good("No loss found.") }];
    }
    let mut sorted: Vec<&Loss> = probe.losses.iter().collect();
    sorted.sort_by(|a, b| b.loss_pct.total_cmp(&a.loss_pct));
    let mut lines = vec![paper.bold("Losses")];
    for loss in sorted.iter().take(LOSSES) {
        let range = loss.loss_pct_ci95.map_or(String::new(), |ci95| words::range(ci95, "percent"));
        let share = words::value(loss.loss_pct, "percent");
        let layer = paper.of_layer(loss.layer, &pad(loss.layer.title(), LAYER));
        let text = cut(&clean(&loss.text), paper.width.saturating_sub(LAYER + 22));
        lines.push(format!(
            "  {layer} {} {} {text}",
            paper.bold(&right(&share, 6)),
            pad(&range, 10)
        ));
    }
    if sorted.len() > LOSSES {
        lines.push(paper.dim(&format!("  and {} more in the report", sorted.len() - LOSSES)));
    }
    lines
}

fn changes(probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    if probe.advice.is_empty() {
        let stopped = "Nothing to change was found before the run was stopped.".to_owned();
        return vec![if probe.interrupted { stopped } else { paper.good("Nothing need change.") }];
    }
    let mut lines = vec![paper.bold(words::changes_title(probe))];
    let line = |advice: &Advice| {
        let setting = pad(&clean(&format!("{} = {}", advice.setting, advice.value)), 38);
        let room = paper.width.saturating_sub(42);
        let place = format!("{}; {}", advice.where_, words::risk(advice.risk));
        format!("  {setting}  {}", paper.dim(&cut(&clean(&place), room)))
    };
    lines.extend(probe.advice.iter().take(ADVICE).map(line));
    if probe.advice.len() > ADVICE {
        lines.push(paper.dim(&format!("  and {} more in the report", probe.advice.len() - ADVICE)));
    }
    lines
}

/// What could not be measured, a line each.
pub(crate) fn missing(view: &RunView<'_>, paper: &Paper) -> Vec<String> {
    let all = view.unavailable();
    let line = |text: String| paper.dim(&cut(&clean(&text), paper.width));
    let mut lines: Vec<String> = all
        .iter()
        .take(UNAVAILABLE)
        .map(|one| line(format!("Not measured: {}: {}", one.what, one.why)))
        .collect();
    if all.len() > UNAVAILABLE {
        lines
            .push(line(format!("and {} more that could not be measured", all.len() - UNAVAILABLE)));
    }
    lines
}

fn foot(view: &RunView<'_>, probe: &ProbeDocument, paper: &Paper) -> Vec<String> {
    let cautions: Vec<String> = view.verdicts().into_iter().map(words::verdict).collect();
    let mut text = format!(
        "{} rungs in {}, {} written, 95 % intervals",
        probe.rungs.len(),
        words::value(probe.duration_s, "s"),
        words::value(probe.bytes_written as f64, "bytes"),
    );
    if probe.interrupted {
        text = format!("Stopped before its end; {text}");
    }
    if !cautions.is_empty() {
        text.push_str(&format!("; * cautions: {}", cautions.join(", ")));
    }
    let mut lines: Vec<String> =
        paper.wrapped(&text, 0).iter().map(|line| paper.dim(line)).collect();
    if let Some(report) = &probe.report {
        lines.push(format!("{} {}", paper.bold("Report:"), clean(report)));
    }
    lines
}
