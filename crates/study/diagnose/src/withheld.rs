//! Why a flush capacity is not made into settings.
//!
//! A rate that the processors, a limit, other processes, the page cache or memory decided is not
//! the storage's: it is shown, and nothing is sized by it. How long reads take beside flushing is
//! left out then, as the same decided it.

use iostrata_run::{Finding, Replicate};
use iostrata_stats::Verdict;

use crate::below::{FileSystemBetween, in_memory, served_by_process};
use crate::case::Case;
use crate::database::{CURVE, Database};
use crate::disturbed::carries;
use crate::finding::above::LIMIT_ABOVE_DEVICE;
use crate::finding::cache::DIRECT_IO_IGNORED;
use crate::finding::place::LOOP_WITHOUT_DIRECT_IO;
use crate::finding::quota::CPU_QUOTA;
use crate::finding::sizing::{FLUSH_CAPACITY, READ_INTERFERENCE};

/// Name of the reason in the finding's evidence.
const WITHHELD: &str = "not_sized_because";

/// Adds to the flush capacity what it bounds, or why it bounds nothing.
pub(crate) fn withhold(case: &Case<'_, '_>, findings: &mut Vec<Finding>) {
    let reason = reason(case, findings);
    findings.retain(|finding| reason.is_none() || finding.id != READ_INTERFERENCE);
    let Some(capacity) = findings.iter_mut().find(|finding| finding.id == FLUSH_CAPACITY) else {
        return;
    };
    let what = match reason {
        Some(reason) => {
            capacity.evidence.insert(WITHHELD.to_owned(), reason.into());
            format!("It bounds no setting: {reason}.")
        }
        None if capacity.evidence.contains_key("pages_per_s") => {
            "It is an upper bound for innodb_io_capacity_max, no value to set: what has to be \
             flushed follows from the load, which iostrata watch measures."
                .to_owned()
        }
        None => return,
    };
    capacity.text = format!("{} {what}", capacity.text);
}

/// Whether a flush capacity is the storage's own.
pub(crate) fn is_withheld(findings: &[Finding]) -> bool {
    findings
        .iter()
        .any(|finding| finding.id == FLUSH_CAPACITY && finding.evidence.contains_key(WITHHELD))
}

/// What decided the figure instead of the storage.
fn reason(case: &Case<'_, '_>, findings: &[Finding]) -> Option<&'static str> {
    let get = |id: &str| findings.iter().find(|finding| finding.id == id);
    let limit = get(LIMIT_ABOVE_DEVICE);
    if in_memory(case.host).is_some() {
        return Some("the data are in memory");
    }
    if served_by_process(case.host).is_some() {
        return Some("a process in user space serves the files");
    }
    if let Some(FileSystemBetween::Overlay(_)) = FileSystemBetween::of(case.host) {
        return Some("an overlay stands between");
    }
    if get(LOOP_WITHOUT_DIRECT_IO).is_some() {
        return Some("the page cache below the loop device took the writes");
    }
    if get(DIRECT_IO_IGNORED).is_some() {
        return Some("the page cache took the writes");
    }
    if limit.is_some_and(|limit| limit.evidence.contains_key("limit_cgroup")) {
        return Some("a control group's limit set the pace");
    }
    if get(CPU_QUOTA).is_some() {
        return Some("the CPU quota set the pace");
    }
    let deciding = deciding(case);
    let mostly = |verdict: Verdict| {
        let hit = deciding.iter().filter(|one| carries(one, verdict)).count();
        2 * hit > deciding.len()
    };
    let disturbed = [
        (Verdict::Throttled, "a limit set the pace"),
        (Verdict::CpuLimited, "the processors set the pace"),
        (Verdict::Steal, "the hypervisor took the processors away"),
        (Verdict::ForeignIo, "other processes used the device"),
    ];
    disturbed.into_iter().find(|(verdict, _)| mostly(*verdict)).map(|(_, why)| why)
}

/// The replicates of the level that decided the capacity: the first that missed the objective, or
/// the highest where none did.
fn deciding<'a>(case: &Case<'_, 'a>) -> Vec<&'a Replicate> {
    let database = Database::of(case.log);
    let level = database.first_missed().or_else(|| database.carried());
    let Some(pages_per_s) = level.map(|level| level.pages_per_s) else { return Vec::new() };
    let on_level = case.log.points().iter().filter(|seen| {
        let place = seen.point.curve.as_ref();
        place.is_some_and(|place| place.curve == CURVE && place.x == pages_per_s)
    });
    on_level.flat_map(|seen| seen.replicates.iter().copied()).collect()
}
