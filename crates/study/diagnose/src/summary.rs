//! The whole document of a probe from its event log.
//!
//! Invariant: it works on any part of a log (interrupted, read-only, with points missing) and says
//! nothing about what was not measured.

use iostrata_run::{Event, ProbeDocument, ProbeHost};
use iostrata_stats::{Verdict, Verdicts};

use crate::advice::{advise, redo_table};
use crate::case::Case;
use crate::curve::curves_of;
use crate::finding::findings_of;
use crate::headline::headline;
use crate::loss::{comparisons_of, losses_of};
use crate::observed::Observed;
use crate::rung::rungs_of;
use crate::verify::verifications_of;

/// How a probe ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProbeEnd {
    /// Bytes written in all.
    pub bytes_written: u64,
    /// Seconds in all.
    pub duration_s: f64,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// Whether points failed because the file system filled up.
    pub is_full: bool,
}

/// Everything that a probe's events say.
pub fn summarise(host: ProbeHost, events: &[Event], end: ProbeEnd) -> ProbeDocument {
    let log = Observed::of(events);
    let case = Case { log: &log, host: &host };
    let findings = findings_of(&case);
    let comparisons = comparisons_of(&log);
    let mut document = ProbeDocument {
        headline: Vec::new(),
        rungs: rungs_of(&log),
        unknown: Vec::new(),
        losses: losses_of(&case),
        compared: comparisons.made,
        undecided: comparisons.undecided,
        advice: advise(&findings, &host),
        redo_table: redo_table(&findings),
        findings,
        curves: curves_of(&log),
        verifications: verifications_of(&log),
        unavailable: log.unavailable().iter().map(|&one| one.clone()).collect(),
        bytes_written: end.bytes_written,
        duration_s: end.duration_s,
        interrupted: end.interrupted,
        incomplete: incomplete(end),
        verdicts: run_verdicts(&log),
        report: None,
        host,
    }
    .checked();
    document.headline = headline(&document);
    document
}

/// Why parts are missing that would change what is concluded.
fn incomplete(end: ProbeEnd) -> Option<String> {
    let why = match end {
        ProbeEnd { is_full: true, .. } => "the file system filled up during the probe",
        ProbeEnd { interrupted: true, .. } => "the run was stopped before its end",
        _ => return None,
    };
    Some(why.to_owned())
}

/// Verdicts that at least a quarter of all replicates carry, of those that speak against a whole
/// run and not against one point.
fn run_verdicts(log: &Observed<'_>) -> Verdicts {
    let all: Vec<_> = log.points().iter().flat_map(|seen| &seen.replicates).collect();
    let of_a_run = [
        Verdict::ClockFallback,
        Verdict::DirectIgnored,
        Verdict::ForeignIo,
        Verdict::MemlockLimited,
        Verdict::Steal,
        Verdict::Throttled,
    ];
    let widespread = |verdict: &Verdict| {
        let carrying = all.iter().filter(|one| crate::disturbed::carries(one, *verdict)).count();
        carrying > 0 && carrying * 4 >= all.len()
    };
    of_a_run.into_iter().filter(widespread).collect()
}
