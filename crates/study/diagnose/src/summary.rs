//! The whole document of a probe from its event log.
//!
//! Invariant: it works on any part of a log (interrupted, read-only, with points missing) and
//! states nothing about what was not measured.

use iostrata_plan::OpKind;
use iostrata_run::{Event, ProbeDocument, ProbeHost, UnavailableCause};
use iostrata_stats::{Verdict, Verdicts};

use crate::advice::{advise, redo_table};
use crate::bound::with_bounds;
use crate::case::Case;
use crate::curve::curves_of;
use crate::headline::headline;
use crate::loss::{add_comparisons, losses_of};
use crate::observed::EventIndex;
use crate::rules::findings_of;
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
}

impl ProbeEnd {
    /// How a run ended by its own last line; a killed run has none, and ends with what it stored.
    pub fn of(events: &[Event]) -> Self {
        let (duration_s, bytes_written, interrupted) = match events.last() {
            Some(Event::Finished { at_s, bytes_written }) => (*at_s, *bytes_written, false),
            Some(Event::Interrupted { at_s, bytes_written }) => (*at_s, *bytes_written, true),
            _ => {
                let replicates = || events.iter().filter_map(Event::replicate);
                let ends = replicates().map(|one| one.started_s + one.duration_s);
                let writes = replicates()
                    .flat_map(|one| &one.streams)
                    .filter_map(|stream| stream.ops[OpKind::Write].as_ref());
                (ends.fold(0.0, f64::max), writes.map(|write| write.bytes).sum(), true)
            }
        };
        Self { bytes_written, duration_s, interrupted }
    }
}

/// The summary of a probe's events.
pub fn summarise(host: ProbeHost, events: &[Event], end: ProbeEnd) -> ProbeDocument {
    let log = EventIndex::of(events);
    let case = Case { log: &log, host: &host };
    let findings = findings_of(&case);
    let rungs = with_bounds(rungs_of(&log), &case);
    let mut document = ProbeDocument {
        headline: Vec::new(),
        unknown: Vec::new(),
        losses: losses_of(&case, &rungs),
        rungs,
        compared: 0,
        undecided: Vec::new(),
        small_losses: Vec::new(),
        loss_at_most_pct: None,
        loss_at_most_us: None,
        advice: advise(&findings, &host),
        redo_table: redo_table(&findings),
        findings,
        curves: curves_of(&log),
        verifications: verifications_of(&log),
        unavailable: log.unavailable().iter().map(|&one| one.clone()).collect(),
        bytes_written: end.bytes_written,
        duration_s: end.duration_s,
        interrupted: end.interrupted,
        incomplete: incomplete(&log, end),
        verdicts: run_verdicts(&log),
        report: None,
        host: host.clone(),
    };
    add_comparisons(&mut document, &case);
    document.check();
    document.headline = headline(&document);
    document
}

/// Why parts are missing that would change what is concluded.
fn incomplete(log: &EventIndex<'_>, end: ProbeEnd) -> Option<String> {
    let has = |cause| log.unavailable().iter().any(|one| one.cause == cause);
    let why = if has(UnavailableCause::Broken) {
        "the storage failed during the probe"
    } else if has(UnavailableCause::NoRoom) {
        "the file system filled up during the probe"
    } else if end.interrupted {
        "the run was stopped before its end"
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// Verdicts that at least a quarter of all replicates carry, limited to those about a whole run and
/// not about one point.
fn run_verdicts(log: &EventIndex<'_>) -> Verdicts {
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
