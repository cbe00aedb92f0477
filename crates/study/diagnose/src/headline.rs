//! The verdict in a few sentences.
//!
//! Invariant: two to five sentences, each true of what was measured; what was not measured is not
//! mentioned. The order is: what the storage can do, what it loses, what to change, how sure.

use iostrata_run::{Curve, Finding, FindingKind, ProbeDocument, Replicate};
use iostrata_stats::Verdict;
use iostrata_units::{bytes, count, microseconds, percent, seconds};

use crate::advice::is_fitting;
use crate::finding::{FindingId, SUSTAINED};
use crate::not_measured::{left_out, nothing_measured};
use crate::observed::Observed;
use crate::withheld::is_withheld;

/// The sentences for a document whose other parts are complete.
pub(crate) fn headline(document: &ProbeDocument, log: &Observed<'_>) -> Vec<String> {
    if let Some(sentences) = nothing_measured(document) {
        return sentences;
    }
    let can: Vec<String> = [reads(document), writes(document, log)].into_iter().flatten().collect();
    let mut sentences = can;
    sentences.push(lost(document));
    let changed = [Some(changes(document)), left_out(document)];
    sentences.push(changed.into_iter().flatten().collect::<Vec<_>>().join(" "));
    sentences.extend(caution(document));
    sentences
}

fn reads(document: &ProbeDocument) -> Option<String> {
    let parts: Vec<String> = [("read_4k", "4 KiB"), ("read_16k", "16 KiB")]
        .iter()
        .filter_map(|(name, size)| {
            let curve = document.curves.iter().find(|curve| curve.name == *name)?;
            let of_memory = curve.points.iter().any(|point| is_of_memory(document, &point.rung));
            if of_memory { None } else { read_part(curve, size) }
        })
        .collect();
    (!parts.is_empty()).then(|| format!("This storage serves {}.", parts.join(" and ")))
}

/// Whether the page cache answered what a rung is about: its figures are not the storage's.
fn is_of_memory(document: &ProbeDocument, name: &str) -> bool {
    let rung = document.rungs.iter().find(|rung| rung.name == name);
    let by_cache = [Verdict::Cached, Verdict::DirectIgnored];
    rung.is_some_and(|rung| by_cache.iter().any(|&verdict| rung.verdicts.has(verdict)))
}

fn read_part(curve: &Curve, size: &str) -> Option<String> {
    let knee = curve.points.iter().find(|point| Some(point.x) == curve.knee_x)?;
    let latency = knee.latency_mean_us.map(|us| format!(" in {} each", microseconds(us)));
    Some(format!(
        "{} random {size} reads/s{} with {} in flight",
        count(knee.value),
        latency.unwrap_or_default(),
        knee.x
    ))
}

fn writes(document: &ProbeDocument, log: &Observed<'_>) -> Option<String> {
    let commit = document.rungs.iter().find(|rung| rung.name == "commit_fdatasync");
    let commits = commit.map(|rung| {
        let each = rung.latency_us.map(|us| format!(" ({} each)", microseconds(us)));
        format!(
            "one committer makes {} durable commits/s{}",
            count(rung.value),
            each.unwrap_or_default()
        )
    });
    let parts = [commits, flushed(document), sustained(document, log)].into_iter().flatten();
    sentence(&parts.collect::<Vec<_>>().join("; "))
}

/// Pages per second that can be flushed, from the finding.
fn flushed(document: &ProbeDocument) -> Option<String> {
    if is_withheld(&document.findings) {
        return None;
    }
    let id = FindingId::FlushCapacity.name();
    let evidence = &document.findings.iter().find(|finding| finding.id == id)?.evidence;
    let number = |name: &str| evidence.get(name)?.as_f64();
    Some(format!(
        "{} pages/s can be flushed while the {:.0}th percentile of commits stays at {}",
        count(number("pages_per_s")?),
        number("commit_percentile").unwrap_or(99.0),
        microseconds(number("commit_p99_us")?)
    ))
}

/// How long and how much was written without the rate giving way.
fn sustained(document: &ProbeDocument, log: &Observed<'_>) -> Option<String> {
    let replicate: &Replicate = log.seen(SUSTAINED)?.replicates.last()?;
    if document.findings.iter().any(|finding| finding.id == FindingId::BurstLimit.name()) {
        return None;
    }
    let written = replicate.streams.first()?.write.as_ref()?.bytes;
    Some(format!(
        "no burst limit was seen in {} and {}",
        seconds(replicate.duration_s),
        bytes(written as f64)
    ))
}

/// A text as a sentence; `None` for an empty one.
fn sentence(text: &str) -> Option<String> {
    let mut letters = text.chars();
    let first = letters.next()?;
    Some(format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

fn lost(document: &ProbeDocument) -> String {
    let losses = document.findings.iter().filter(|finding| finding.kind == FindingKind::Loss);
    let worst = losses.clone().max_by(|a, b| size_of(a).total_cmp(&size_of(b)));
    match (worst, losses.count()) {
        (Some(worst), 1) => format!("It loses in one place: {}", worst.text),
        (Some(worst), many) => format!("It loses in {many} places, most here: {}", worst.text),
        (None, _) => match document.losses.first() {
            Some(loss) => {
                format!(
                    "Probably (it could not be confirmed) {} is lost in the {}: {}.",
                    percent(loss.loss_pct),
                    loss.layer.title(),
                    loss.text
                )
            }
            None if document.interrupted => {
                "No loss was seen before the run was stopped.".to_owned()
            }
            None => "No layer takes away anything that could be measured.".to_owned(),
        },
    }
}

/// A loss that is certain and was not measured, as a limit that was used up, comes first.
fn size_of(loss: &Finding) -> f64 {
    loss.effect_pct.unwrap_or(100.0)
}

fn is_loss(finding: &Finding) -> bool {
    finding.kind == FindingKind::Loss
}

fn changes(document: &ProbeDocument) -> String {
    let settings = |fitting: bool| {
        let chosen = document.advice.iter().filter(|advice| is_fitting(advice) == fitting);
        chosen
            .map(|advice| format!("{} = {}", advice.setting, advice.value))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let nothing = if document.interrupted {
        "Nothing to change was seen before the run was stopped"
    } else if document.losses.is_empty() && !document.findings.iter().any(is_loss) {
        match left_out(document) {
            None => "Nothing needs to change",
            Some(_) => "Nothing of what was measured needs to change",
        }
    } else {
        "No setting of the server gives that back"
    };
    match (settings(false), settings(true)) {
        (repairs, fits) if repairs.is_empty() && fits.is_empty() => format!("{nothing}."),
        (repairs, fits) if repairs.is_empty() => {
            format!("{nothing}; settings that fit this storage: {fits}.")
        }
        (repairs, fits) if fits.is_empty() => format!("Change {repairs}."),
        (repairs, fits) => format!("Change {repairs}; settings that fit this storage: {fits}."),
    }
}

/// What a caution means for the figures above, in a few words; nothing for those that do not touch
/// them.
fn caution_words(id: &str) -> Option<&'static str> {
    let known = FindingId::ALL.iter().find(|known| known.name() == id)?;
    match known {
        FindingId::FlushSuspiciouslyCheap => {
            Some("whether a flush survives a power cut cannot be told")
        }
        FindingId::BarriersOff => {
            Some("commits do not survive a power cut, because barriers are off")
        }
        FindingId::DirectIoIgnored => Some("direct I/O is not done here"),
        FindingId::PageCacheAnswered => Some("the page cache answered reads"),
        FindingId::NotALocalDisk => Some("this is not a disk of this machine"),
        FindingId::NotSteadyDevice => Some("the device is not steady"),
        FindingId::ForeignIo => Some("other processes used the device"),
        FindingId::Steal => Some("the hypervisor took processor time away"),
        FindingId::CpuQuota => Some("a CPU quota was often the limit"),
        FindingId::MisalignedStart => Some("the volume begins off the blocks of the disk"),
        FindingId::NearlyFull => Some("the file system is nearly full"),
        FindingId::CpuBoundHost => Some("the processors were often the limit"),
        _ => None,
    }
}

fn caution(document: &ProbeDocument) -> Option<String> {
    let stopped = document.interrupted.then_some("the run was stopped before its end");
    let cautions = document
        .findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Caution)
        .filter_map(|finding| caution_words(&finding.id));
    let reasons: Vec<&str> = stopped.into_iter().chain(cautions).collect();
    (!reasons.is_empty()).then(|| format!("Take it with caution: {}.", reasons.join("; ")))
}
