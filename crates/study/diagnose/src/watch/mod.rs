//! From a recording of a server or an engine to findings and advice.
//!
//! Method: what is concluded needs both a setting and what it did in the recording; a setting that
//! is unusual and did no harm is left alone. Rates carry the interval of the mean over the
//! recording. Invariant: pure. Of a short recording it is only said how long it must be. A value
//! that is set already is never advised, and nothing is advised that could lose data: the
//! doublewrite stays on and commits stay durable; what they cost is said.

mod advised;
mod cleaner;
mod commit;
mod course;
mod doublewrite;
mod evidence;
mod expected;
mod flushing;
mod pool;
mod purge;
mod recording;
mod redo;
mod traps;
mod trial;
mod tuned;

#[cfg(test)]
mod expected_tests;
#[cfg(test)]
mod made;
#[cfg(test)]
mod tests;

use iostrata_run::{Advice, Finding, WatchDocument};

pub use expected::{
    ModelBasis, expected_effect, judge_expected, modelled_advice, modelled_together, not_expected,
};
use recording::Recording;
pub use trial::WatchTrial;
pub use tuned::{CommitTimes, tuned_figures};

/// Every statement by name; `docs/watch-findings.md` has an entry for each.
pub const WATCH_FINDINGS: [&str; 19] = [
    "io_limit_binds",
    "regular_pauses",
    "settings_left_changed",
    "recording_short",
    "redo_too_small",
    "io_capacity_below_need",
    "device_below_need",
    "page_cleaner_sleeps",
    "neighbors_without_seeks",
    "dirty_limit_binds",
    "doublewrite_share",
    "pool_too_small",
    "purge_behind",
    "purge_held_by_view",
    "log_buffer_small",
    "binlog_synced_per_commit",
    "flush_method_stale",
    "redo_size_ignored",
    "adaptive_flushing_off",
];

/// A statement and what follows from it.
struct Concluded {
    finding: Finding,
    advice: Vec<Advice>,
}

impl Concluded {
    /// A statement from which nothing follows that could be set.
    fn only(finding: Finding) -> Self {
        Self { finding, advice: Vec::new() }
    }
}

/// What a recording says, the most telling first. Advice for one setting is given once.
pub fn diagnose_watch(document: &WatchDocument) -> (Vec<Finding>, Vec<Advice>) {
    let Some(recording) = Recording::of(document) else {
        return (course::too_short(document).into_iter().collect(), Vec::new());
    };
    let concluded = [
        course::io_limit(&recording),
        course::regular_pauses(&recording),
        cleaner::sleeps(&recording),
        cleaner::adaptive_off(&recording),
        redo::too_small(&recording),
        flushing::capacity_below_need(&recording),
        flushing::device_below_need(&recording),
        pool::too_small(&recording),
        commit::log_buffer(&recording),
        purge::held_by_view(&recording),
        purge::behind(&recording),
        cleaner::neighbors(&recording),
        pool::dirty_limit(&recording),
        doublewrite::share(&recording),
        commit::binlog(&recording),
        course::settings_left(&recording),
        traps::flush_method(&recording),
        traps::redo_size(&recording),
    ];
    let (mut findings, mut advice): (Vec<Finding>, Vec<Advice>) = Default::default();
    for Concluded { finding, advice: more } in concluded.into_iter().flatten() {
        for one in more {
            match advice.iter_mut().find(|other| other.setting == one.setting) {
                Some(other) => other.why.extend(one.why),
                None => advice.push(one),
            }
        }
        findings.push(finding);
    }
    (findings, advice)
}
