//! The verdict of a study in a few sentences.
//!
//! Invariant: every sentence repeats something that stands in the document with its interval.

use iostrata_plan::disk::DiskModel;
use iostrata_run::{AxisKind, FindingKind, StudyDocument, StudyEffect};
use iostrata_stats::units::{capital, seconds};
use iostrata_stats::{KNOWN_PCT_MAX, Verdict, allowed_pct};

use super::answer::shared_cautions;
use super::axis::WORKERS;

/// Factors that change the work itself: that they matter is no news.
const WORK: [&str; 4] = ["rw", "bs", "rwmixread", "workload"];

/// The sentences, the most important first.
pub(crate) fn headline(document: &StudyDocument) -> Vec<String> {
    let mut sentences = Vec::new();
    if document.points.is_empty() && document.interrupted {
        return vec!["It was stopped before anything was measured.".to_owned()];
    }
    if document.points.is_empty() {
        let why = document.unavailable.first().map_or("no reason is known", |one| one.why.as_str());
        return vec![format!("Nothing could be measured: {why}.")];
    }
    if !document.answers.is_empty() {
        // The author listed the answers to the question; whatever else was seen stands below. The
        // first answer stays the first, whatever it is; of the others the known ones come first.
        let (first, others) = document.answers.split_at(1);
        let (known, unknown): (Vec<_>, Vec<_>) = others.iter().partition(|one| one.is_known);
        let answers = first.iter().chain(known).chain(unknown);
        sentences.extend(answers.map(|answer| sentence(&answer.text)));
        let shared: Vec<&str> =
            shared_cautions(&document.answers).into_iter().map(Verdict::explain).collect();
        if !shared.is_empty() {
            sentences.push(format!("Of all these answers: {}.", shared.join("; ")));
        }
        sentences.push(precision(document));
        return sentences;
    }
    let losses = document.findings.iter().filter(|finding| finding.kind == FindingKind::Loss);
    sentences.extend(losses.take(2).map(|finding| sentence(&finding.text)));
    // The question of a study that varies the queue, before what its other factors do.
    let queue = document.findings.iter().filter(|one| one.id.starts_with("longer_queue"));
    sentences.extend(queue.map(|finding| sentence(&finding.text)));
    let refused = document.findings.iter().filter(|one| one.id == "queue_length_refused");
    sentences.extend(refused.map(|finding| sentence(&finding.text)));
    sentences.extend(effects(document));
    let waits = document.findings.iter().filter(|finding| finding.id == "response_at_rate");
    sentences.extend(waits.take(2).map(|finding| sentence(&finding.text)));
    sentences.extend(workers(document));
    sentences.extend(then(document));
    sentences.push(precision(document));
    sentences
}

/// The largest effect of a factor that does not change the work itself, and the file systems that
/// are known to take nothing much.
fn effects(document: &StudyDocument) -> Vec<String> {
    let is_certain = |one: &&StudyEffect| one.conclusion.is_difference();
    let choices = document.effects.iter().filter(|one| !WORK.contains(&one.factor.as_str()));
    let size = |one: &StudyEffect| one.ratio.ln().abs();
    let largest = choices.filter(is_certain).max_by(|a, b| size(a).total_cmp(&size(b)));
    let from_raw = document.effects.iter().filter(|one| {
        let is_layer = one.factor == "filesystem" && one.from == "raw";
        let is_known = one.ratio_ci95.is_some_and(|ci95| allowed_pct(ci95) <= KNOWN_PCT_MAX);
        let takes = |text: &str| text.starts_with(&one.to);
        let mut losses = document.findings.iter().filter(|one| one.id == "filesystem_loss");
        is_layer && is_known && !losses.any(|finding| takes(&finding.text))
    });
    let mut shown: Vec<&StudyEffect> = largest.into_iter().collect();
    for effect in from_raw {
        if !shown.contains(&effect) {
            shown.push(effect);
        }
    }
    shown.into_iter().map(|effect| sentence(&effect.text)).collect()
}

/// How many curves along the workers have which shape.
fn workers(document: &StudyDocument) -> Option<String> {
    let curves: Vec<AxisKind> =
        document.axes.iter().filter(|axis| axis.factor == WORKERS).map(|axis| axis.kind).collect();
    let count = |kind: AxisKind| curves.iter().filter(|&&one| one == kind).count();
    let parts: Vec<String> = [
        (AxisKind::Scaling, "rise to the end"),
        (AxisKind::Saturating, "rise and then stay"),
        (AxisKind::Collapse, "fall after their best"),
        (AxisKind::Flat, "are flat"),
        (AxisKind::NoMeasurableDifference, "show no measurable difference"),
        (AxisKind::NotClear, "are not clear"),
    ]
    .into_iter()
    .filter(|(kind, _)| count(*kind) > 0)
    .map(|(kind, words)| format!("{} {words}", count(kind)))
    .collect();
    let all = curves.len();
    (all > 0).then(|| format!("Of {all} curves over the workers, {}.", parts.join(", ")))
}

/// How today's figures stand to the printed ones.
fn then(document: &StudyDocument) -> Option<String> {
    let times: Vec<f64> = document.then.iter().filter_map(|row| row.times).collect();
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let most = times.iter().copied().fold(0.0, f64::max);
    (!times.is_empty()).then(|| {
        format!(
            "{} of the {} published figures could be compared: they are {least:.2} to {most:.2} \
             times what was published.",
            times.len(),
            document.then.len()
        )
    })
}

fn precision(document: &StudyDocument) -> String {
    let dropped = match document.replicates_dropped {
        0 => String::new(),
        1 => "; the budget dropped 1 replicate".to_owned(),
        many => format!("; the budget dropped {many} replicates"),
    };
    format!(
        "{} points in {}; {:.0} % of them within {:.0} %{dropped}.",
        document.points.len(),
        seconds(document.duration_s),
        document.precise_pct,
        100.0 * document.precision
    )
}

/// Names of file systems keep their small letters, and so do those of disks.
const NAMES: [&str; 4] = ["ext4", "xfs", "btrfs", "raw"];

fn sentence(text: &str) -> String {
    let mut names = NAMES.into_iter().chain(DiskModel::NAMED.iter().map(DiskModel::name));
    if names.any(|name| text.starts_with(name)) {
        return format!("{text}.");
    }
    capital(text) + "."
}
