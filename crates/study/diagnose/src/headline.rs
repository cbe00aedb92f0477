//! The verdict in a few sentences.
//!
//! Invariant: two to five sentences, each true of what was measured; what was not measured is not
//! mentioned. The order is: what the storage can do, what it loses, what to change, how sure.

use iostrata_run::{Curve, ProbeDocument};
use iostrata_units::{count, microseconds, percent};

use crate::database::Database;
use crate::observed::Observed;

/// The sentences for a document whose other parts are complete.
pub(crate) fn headline(document: &ProbeDocument, log: &Observed<'_>) -> Vec<String> {
    if document.rungs.is_empty() {
        return vec!["Nothing was measured.".to_owned()];
    }
    let mut sentences: Vec<String> =
        [reads(document), commits(document, log)].into_iter().flatten().collect();
    sentences.push(lost(document));
    sentences.push(changes(document));
    sentences.extend(caution(document));
    sentences
}

fn reads(document: &ProbeDocument) -> Option<String> {
    let parts: Vec<String> = [("read_4k", "4 KiB"), ("read_16k", "16 KiB")]
        .iter()
        .filter_map(|(name, size)| {
            let curve = document.curves.iter().find(|curve| curve.name == *name)?;
            read_part(curve, size)
        })
        .collect();
    (!parts.is_empty()).then(|| format!("This storage serves {}.", parts.join(" and ")))
}

fn read_part(curve: &Curve, size: &str) -> Option<String> {
    let knee = curve.points.iter().find(|point| Some(point.x) == curve.knee_x)?;
    let latency = knee.latency_mean_us.map(|us| format!(" at {}", microseconds(us)));
    Some(format!(
        "{} random {size} reads per second{} with {} in flight",
        count(knee.value),
        latency.unwrap_or_default(),
        knee.x
    ))
}

fn commits(document: &ProbeDocument, log: &Observed<'_>) -> Option<String> {
    let commit = document.rungs.iter().find(|rung| rung.name == "commit_fdatasync");
    let database = Database::of(log);
    let one = commit.map(|rung| {
        let each = rung.latency_us.map(|us| format!(" of {} each", microseconds(us)));
        let each = each.unwrap_or_default();
        format!("one committer makes {} durable commits per second{each}", count(rung.value))
    });
    let flushed = database.carried().map(|level| {
        format!(
            "it flushes at least {} pages per second while the 99th percentile of commits stays at {}",
            count(level.pages_per_s),
            microseconds(level.commit_p99_us)
        )
    });
    let text = [one, flushed].into_iter().flatten().collect::<Vec<_>>().join("; ");
    let mut letters = text.chars();
    let first = letters.next()?;
    Some(format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

fn lost(document: &ProbeDocument) -> String {
    let worst = document.losses.iter().max_by(|a, b| a.loss_pct.total_cmp(&b.loss_pct));
    match (worst, document.losses.len()) {
        (None, _) if document.interrupted => {
            "No loss was seen between the rungs measured before the run was stopped.".to_owned()
        }
        (None, _) => {
            "No layer between the device and a commit loses anything measurable.".to_owned()
        }
        (Some(worst), 1) => {
            format!(
                "One loss, {} in the {}: {}.",
                percent(worst.loss_pct),
                worst.layer.title(),
                worst.text
            )
        }
        (Some(worst), many) => format!(
            "{many} losses, the largest {} in the {}: {}.",
            percent(worst.loss_pct),
            worst.layer.title(),
            worst.text
        ),
    }
}

fn changes(document: &ProbeDocument) -> String {
    let settings: Vec<String> = document
        .advice
        .iter()
        .map(|advice| format!("{}={}", advice.setting, advice.value))
        .collect();
    if settings.is_empty() {
        return "Nothing needs to change.".to_owned();
    }
    format!("Set {}.", settings.join(", "))
}

fn caution(document: &ProbeDocument) -> Option<String> {
    let doubted = document.rungs.iter().filter(|rung| !rung.verdicts.is_sound()).count();
    let stopped = document.interrupted.then_some("the run was stopped before its end");
    let share = 4 * doubted >= document.rungs.len();
    let verdicts =
        share.then(|| format!("{doubted} of {} rungs carry a verdict", document.rungs.len()));
    let reasons: Vec<String> = stopped.map(str::to_owned).into_iter().chain(verdicts).collect();
    (!reasons.is_empty()).then(|| format!("Take it with caution: {}.", reasons.join("; ")))
}
