//! The verdict in three sentences that a colleague would say, and a fourth where care is needed.
//!
//! Invariant: each is true of what was measured and agrees with every other view of the run; what
//! was not measured is not praised. The order is: what the storage does, what it loses, what to
//! change, how sure.
//!
//! What a probe did not measure, and why: nothing may be concluded about that.

use iostrata_plan::{Layer, rung};
use iostrata_run::{
    Advice, Finding, FindingKind, Loss, ProbeDocument, Resource, Rung, Unavailable,
};
use iostrata_stats::Verdict;
use iostrata_stats::units::{capital, count, microseconds, percent};

use crate::advice::{SettingPlace, is_fitting};
use crate::finding::place::{
    BARRIERS_OFF, FILE_SYSTEM_BETWEEN, LOOP_WITHOUT_DIRECT_IO, NOT_A_LOCAL_DISK,
};
use crate::finding::room::STORAGE_FAILED;
use crate::rules::caution_words;

/// Random reads that the first sentence names, the first that is known.
const READS: [(&str, &str); 4] = [
    (rung::READ_4K_DEPTH_32, "random 4 KiB reads/s with 32 in flight"),
    (rung::READ_4K_DEPTH_16, "random 4 KiB reads/s with 16 in flight"),
    (rung::READ_4K_DEPTH_8, "random 4 KiB reads/s with 8 in flight"),
    (rung::READ_4K_DEPTH_1, "random 4 KiB reads/s, one at a time"),
];
const COMMITS: &str = rung::COMMIT_FDATASYNC;

/// The sentences for a document whose other parts are complete.
pub(crate) fn headline(document: &ProbeDocument) -> Vec<String> {
    let first: Vec<String> = first(document).map(|finding| finding.text.clone()).collect();
    if let Some(sentences) = nothing_measured(document) {
        return [first, sentences].concat();
    }
    if document.unavailable.iter().any(Unavailable::ended_it) {
        let after = [can(document), changes(document)];
        return first.into_iter().chain(after).chain(not_measured(document)).collect();
    }
    let changed = [Some(changes(document)), not_measured(document)];
    let changed = changed.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let reached = transactions(document);
    let mut sentences: Vec<String> =
        first.into_iter().chain([can(document)]).chain(reached).collect();
    sentences.extend([lost(document), changed]);
    sentences.extend(caution(document));
    sentences
}

/// What comes before everything else: storage that failed, a layer that every figure passes.
fn first(document: &ProbeDocument) -> impl Iterator<Item = &Finding> {
    const FIRST: [&str; 2] = [STORAGE_FAILED, FILE_SYSTEM_BETWEEN];
    FIRST.into_iter().filter_map(|id| finding(document, id))
}

fn finding<'d>(document: &'d ProbeDocument, id: &str) -> Option<&'d Finding> {
    document.findings.iter().find(|finding| finding.id == id)
}

fn can(document: &ProbeDocument) -> String {
    let is_buffered = finding(document, LOOP_WITHOUT_DIRECT_IO).is_some();
    let reads = READS.iter().filter(|_| !is_buffered).find_map(|(name, words)| {
        let rung = document.known(name).filter(|rung| !is_of_memory(rung))?;
        Some(format!("{} {words}", count(rung.value)))
    });
    let commits = document.known(COMMITS).map(|rung| {
        let each = rung.latency_us.map(|us| format!(", {} each", microseconds(us)));
        let survives =
            !is_of_memory(rung) && LOSES_COMMITS.iter().all(|id| finding(document, id).is_none());
        let durable = if survives { "durable " } else { "" };
        format!("{} {durable}commits/s{}", count(rung.value), each.unwrap_or_default())
    });
    let parts: Vec<String> = [reads, commits].into_iter().flatten().collect();
    if parts.is_empty() {
        let is_there = |name: &str| document.rungs.iter().any(|rung| rung.name == name);
        return match READS.iter().map(|(name, _)| *name).chain([COMMITS]).any(is_there) {
            true => "Random reads and commits were answered by memory, or are too uncertain to \
                     state."
                .to_owned(),
            false => "Random reads and commits were not measured.".to_owned(),
        };
    }
    format!("This storage does {}.", parts.join(" and "))
}

/// What a database reaches of what the storage allows, on one connection.
fn transactions(document: &ProbeDocument) -> Option<String> {
    let reached = document.known(rung::COMMITS_1)?;
    let Some(bound) = &reached.bound else {
        return Some(format!(
            "The database does {} commits/s on one connection.",
            count(reached.value)
        ));
    };
    let allowing = match bound.resource {
        Resource::Cpu => "The processors allow",
        _ => "The disk allows",
    };
    let binding = bound.resources.iter().find(|one| one.name == bound.resource);
    let per_txn = binding.and_then(|one| Some((one.per_txn?, one.unit.as_str())));
    let per_txn = per_txn.map_or(String::new(), |(per_txn, unit)| match unit {
        "us" => format!(": {} for each commit", microseconds(per_txn)),
        "syncs" if (per_txn - 1.0).abs() < 0.05 => ": one for each commit".to_owned(),
        unit => format!(": {per_txn:.1} {unit} for each commit"),
    });
    Some(format!(
        "{allowing} {} commits/s on one connection; the database reaches {} ({}). The limit is \
         {}{per_txn}.",
        count(bound.value),
        count(reached.value),
        percent(bound.reached_pct),
        bound.resource.title(),
    ))
}

/// Whether the page cache answered what a rung is about: its figures are not the storage's.
fn is_of_memory(rung: &Rung) -> bool {
    [Verdict::Cached, Verdict::DirectIgnored].iter().any(|&verdict| rung.verdicts.has(verdict))
}

fn lost(document: &ProbeDocument) -> String {
    let losses = document.findings.iter().filter(|finding| is_loss(finding));
    let worst = losses.clone().max_by(|a, b| size_of(a).total_cmp(&size_of(b)));
    match (worst, losses.count()) {
        (Some(worst), 1) => format!("1 loss: {}", worst.text),
        (Some(worst), many) => format!("{many} losses; the largest: {}", worst.text),
        (None, _) => match document.losses.first() {
            Some(loss) => format!(
                "Not confirmed: the {} costs {}: {}.",
                loss.layer.title(),
                percent(loss.loss_pct),
                loss.text
            ),
            None => nothing_lost(document),
        },
    }
}

/// What the layers cost at most where no loss was found, with what that rests on.
fn nothing_lost(document: &ProbeDocument) -> String {
    let certain = certain_losses(document).count() as u64;
    let open = document.undecided.len() as u64 - certain;
    let decided = document.compared.saturating_sub(open + certain);
    if document.interrupted {
        return "No loss was seen before the run was stopped.".to_owned();
    }
    if finding(document, FILE_SYSTEM_BETWEEN).is_some() {
        return "What it costs is not known: nothing below it could be measured.".to_owned();
    }
    let stayed = |open| format!("{open} stayed open: their intervals hold a loss and none");
    let said = match (decided, open) {
        (0, 0) if certain == 0 => {
            "Nothing could be compared, so nothing is known of losses.".to_owned()
        }
        (0, 0) => small(document).trim_start().to_owned(),
        (0, 1) => "Nothing is known of losses: the interval of 1 comparison of equal work holds a \
                   loss and none."
            .to_owned(),
        (0, open) => format!(
            "Nothing is known of losses: the intervals of {} of equal work hold a loss and none.",
            comparisons(open)
        ),
        (_, 0) if document.incomplete.is_some() => {
            format!(
                "{}; the others are missing.{}",
                costs_at_most(document, decided),
                small(document)
            )
        }
        (_, 0) => format!("{}.{}", costs_at_most(document, decided), small(document)),
        (_, 1) => format!(
            "{}; 1 stayed open: its interval holds a loss and none.{}",
            costs_at_most(document, decided),
            small(document)
        ),
        (_, open) => {
            format!("{}; {}.{}", costs_at_most(document, decided), stayed(open), small(document))
        }
    };
    let is_wide = |most| decided > 0 && most >= WIDE_PCT;
    match document.loss_at_most_pct.is_some_and(is_wide) {
        true => format!("{said} That rules out little; repeat it on a calmer machine."),
        false => said,
    }
}

/// With these no flush makes a commit durable.
const LOSES_COMMITS: [&str; 2] = [BARRIERS_OFF, NOT_A_LOCAL_DISK];

/// An upper bound of what a layer costs that says little, in percent.
const WIDE_PCT: f64 = 50.0;

/// The highest end of the intervals of what was decided, rounded up.
fn costs_at_most(document: &ProbeDocument, decided: u64) -> String {
    let most = document.cost_at_most();
    format!("{most} ({} of equal work)", comparisons(decided))
}

/// The largest of the losses that are certain and small.
fn small(document: &ProbeDocument) -> String {
    let worst = |losses: Vec<&Loss>, what: &str| {
        let worst = losses.into_iter().max_by(|a, b| a.loss_pct.total_cmp(&b.loss_pct));
        worst.map_or_else(String::new, |loss| {
            let [low, high] = loss.loss_pct_ci95.unwrap_or([loss.loss_pct; 2]);
            format!(" {what}: {} (95 % {low:.0} to {high:.0} %).", loss.text)
        })
    };
    let certain = worst(certain_losses(document).collect(), "A loss, perhaps below the threshold");
    let small = worst(document.small_losses.iter().collect(), "Measured, below the threshold");
    format!("{certain}{small}")
}

/// Undecided comparisons that are losses for certain: their intervals hold the threshold, not 0.
fn certain_losses(document: &ProbeDocument) -> impl Iterator<Item = &Loss> {
    let is_certain = |loss: &&Loss| loss.loss_pct_ci95.is_some_and(|[low, _]| low > 0.0);
    document.undecided.iter().filter(is_certain)
}

fn comparisons(n: u64) -> String {
    if n == 1 { "1 comparison".to_owned() } else { format!("{n} comparisons") }
}

/// A loss that is certain and was not measured, as a limit that was used up, comes first.
fn size_of(loss: &Finding) -> f64 {
    loss.effect_pct.unwrap_or(100.0)
}

fn is_loss(finding: &Finding) -> bool {
    finding.kind == FindingKind::Loss
}

fn changes(document: &ProbeDocument) -> String {
    let (fits, repairs): (Vec<&Advice>, Vec<&Advice>) =
        document.advice.iter().partition(|advice| is_fitting(advice));
    let (moves, repairs): (Vec<&Advice>, Vec<&Advice>) =
        repairs.into_iter().partition(|advice| advice.where_ == SettingPlace::DataDirectory.name());
    let (raises, changes): (Vec<&Advice>, Vec<&Advice>) =
        repairs.into_iter().partition(|advice| advice.where_ == SettingPlace::Volume.name());
    let moves = moves.iter().map(|advice| format!("give the data {}", advice.value));
    let raises =
        raises.iter().map(|advice| format!("raise the {} {}", advice.setting, advice.value));
    let mut clauses: Vec<String> = moves.chain(raises).collect();
    let settings = |chosen: &[&Advice]| {
        let pairs = chosen.iter().map(|advice| format!("{} = {}", advice.setting, advice.value));
        pairs.collect::<Vec<_>>().join(", ")
    };
    if !changes.is_empty() {
        clauses.push(format!("change {}", settings(&changes)));
    }
    if !fits.is_empty() {
        clauses.push(format!("set {}, unless the server has it already", settings(&fits)));
    }
    match clauses.join("; ") {
        none if none.is_empty() => nothing_to_change(document),
        all => capital(&all) + ".",
    }
}

fn nothing_to_change(document: &ProbeDocument) -> String {
    if let Some(why) = &document.incomplete {
        return format!("What to change cannot be said: {why}.");
    }
    if !document.losses.is_empty() || document.findings.iter().any(is_loss) {
        return "No setting of the server gives that back.".to_owned();
    }
    if not_measured(document).is_some() {
        return "No change is needed, as far as was measured.".to_owned();
    }
    let written = document.rungs.iter().any(|rung| rung.unit == "writes/s");
    match (written, document.undecided.is_empty()) {
        (true, true) => "Nothing needs to change.".to_owned(),
        (true, false) => {
            let open = document.undecided.len() as u64;
            format!("No change is needed as far as was decided; {} stayed open.", comparisons(open))
        }
        (false, _) => "Nothing needs to change as far as reads go.".to_owned(),
    }
}

/// A drive whose cache is protected reports no more than that it has one: that is no caution.
fn is_usual(finding: &Finding) -> bool {
    finding.evidence.get("kept_by").is_some_and(|by| by == "drive")
}

fn caution(document: &ProbeDocument) -> Option<String> {
    let cautions = document
        .findings
        .iter()
        .filter(|finding| finding.kind == FindingKind::Caution && !is_usual(finding))
        .filter_map(|finding| caution_words(&finding.id));
    let reasons: Vec<&str> = document.incomplete.as_deref().into_iter().chain(cautions).collect();
    (!reasons.is_empty()).then(|| format!("Take it with caution: {}.", reasons.join("; ")))
}

/// Parts that are named one by one.
const NAMED_MAX: usize = 3;

/// The sentences of a document without any figure of the storage; `None` where there is one.
pub(crate) fn nothing_measured(document: &ProbeDocument) -> Option<Vec<String>> {
    if document.rungs.iter().any(|rung| rung.layer != Layer::Host) {
        return None;
    }
    let mut sentences = vec!["Nothing was measured.".to_owned()];
    if let Some(why) = document.unavailable.iter().rev().find(|one| one.was_planned()) {
        sentences.push(format!("{}.", capital(&why.why)));
    }
    if !document.interrupted {
        sentences.push("Nothing can be said about this storage or what to change.".to_owned());
    }
    Some(sentences)
}

/// The parts that were planned and left out, or failed, in a sentence; `None` where there are none.
pub(crate) fn not_measured(document: &ProbeDocument) -> Option<String> {
    let missing: Vec<&Unavailable> =
        document.unavailable.iter().filter(|one| one.was_planned()).collect();
    let last = missing.last()?;
    let mut names: Vec<&str> = missing.iter().map(|one| one.what.as_str()).collect();
    names.dedup();
    let more = match names.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names.truncate(NAMED_MAX);
    Some(format!("Not measured: {}{more} ({}).", names.join("; "), last.why))
}
