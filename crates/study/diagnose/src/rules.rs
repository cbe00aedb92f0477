//! The table of rules: every finding there is, of storage, of studies and of recordings.
//!
//! A finding is a function and one row here: its name, its kind, how urgent its confirmation is,
//! the points that confirm it, what concludes it, and its words in the headline. Findings have the
//! order of the rows.
//! Invariants: names are stored in run directories and never change their meaning. A finding about
//! the performance of storage rests on confirming replicates alone, measured after its suspicion
//! was logged; facts of the host and of the run need no further points.

use iostrata_plan::Point;
use iostrata_run::FindingKind::{self, Caution, Loss, Sizing};
use iostrata_run::{Advice, Event, Finding, ProbeHost, WatchDocument};

use crate::case::{Case, NamedStatement, StudyCase};
use crate::finding::{
    above, alignment, cache, capped, fell, flush, machine, pairs, pauses, place, queue, quota,
    room, seek, sizing, steady, write_back,
};
use crate::observed::{EventIndex, Which};
use crate::pair;
use crate::statement::Statement;
use crate::study::{finding as study, layer_loss, queue_finding, response};
use crate::watch::recording::Recording;
use crate::watch::{cleaner, commit, doublewrite, flushing, pool, purge, recording, redo, traps};
use crate::withheld::withhold;

type Confirming = fn(&Case<'_, '_>) -> Vec<Point>;
type Concluding = fn(&Case<'_, '_>, Which) -> Option<Statement>;
type Noticing = fn(&Case<'_, '_>) -> Option<Statement>;
type Stating = fn(&StudyCase<'_>) -> Vec<NamedStatement>;
type Judging = fn(&Recording<'_>) -> Option<Statement>;

/// How a finding comes about.
#[derive(Clone, Copy)]
enum Rule {
    /// Of storage: a fact of the host or of the run.
    Fact(Noticing),
    /// Of storage: confirmed by these points, the most urgent (0) first.
    Confirmed(u8, Confirming, Concluding),
    /// Of storage: a pair of points with its name that does the same work.
    Pair(u8),
    /// Of a study. It may make the statements of the rows below as well.
    Study(Stating),
    /// Of a study: made by a row above.
    Above,
    /// Of a recording that is long enough.
    Recording(Judging),
    /// Of the settings in a recording, however short it is.
    Settings(Judging),
    /// Of a recording that is too short for the others.
    Short(fn(&WatchDocument) -> Option<Statement>),
}

/// A name, what the finding mostly is, how it comes about, and its words in the headline.
type Row = (&'static str, FindingKind, Rule, &'static str);

use Rule::{Above, Confirmed, Fact, Pair, Recording as Recorded, Settings, Short, Study};

#[rustfmt::skip]
const RULES: &[Row] = &[
    (room::STORAGE_FAILED, Caution, Fact(room::storage_failed), ""),
    (place::FILE_SYSTEM_BETWEEN, Caution, Fact(place::file_system_between), ""),
    (place::LOOP_WITHOUT_DIRECT_IO, Caution, Fact(place::loop_without_direct_io),
        "memory answers for the loop device"),
    ("cache_below", Caution, Fact(place::cache_below), ""),
    (place::SYNC_MOUNT, Loss, Fact(place::sync_mount), ""),
    (pair::PER_FILE_WRITE_LOCK, Loss, Pair(1), ""),
    (pair::MIXED_FILE_LOCK, Loss, Pair(1), ""),
    (pair::UNWRITTEN_EXTENT_COST, Loss, Pair(2), ""),
    (pair::APPEND_ALLOCATION_COST, Loss, Pair(2), ""),
    (pair::BUFFERED_WRITE_COST, Loss, Pair(2), ""),
    (pair::FSYNC_JOURNAL_COST, Loss, Pair(1), ""),
    (pair::DSYNC_BEATS_FDATASYNC, Loss, Pair(2), ""),
    ("volatile_cache_flush_cost", Loss,
        Confirmed(1, flush::volatile_cache_confirming, flush::volatile_cache), ""),
    ("flush_suspiciously_cheap", Caution, Confirmed(3, flush::cheap_confirming, flush::cheap),
        "whether a flush survives a power cut is not known"),
    ("no_group_commit_gain", Sizing, Confirmed(3, flush::no_gain_confirming, flush::no_gain), ""),
    (pair::API_OVERHEAD, Loss, Pair(2), ""),
    (above::LIMIT_ABOVE_DEVICE, Loss, Confirmed(0, above::confirming, above::conclude), ""),
    (capped::VOLUME_CAP, Loss, Confirmed(0, capped::confirming, capped::conclude), ""),
    (fell::LIMIT_SET_MEANWHILE, Loss, Confirmed(0, fell::limit_set_confirming, fell::limit_set), ""),
    ("scheduler_cost", Caution, Fact(queue::scheduler_cost), ""),
    (queue::SMALL_QUEUE, Loss, Confirmed(3, queue::small_queue_confirming, queue::small_queue), ""),
    (alignment::MISALIGNED_START, Caution, Fact(alignment::misaligned_start),
        "the volume begins off the blocks of the disk"),
    (seek::SEEK_COST, Sizing, Confirmed(3, seek::seek_cost_confirming, seek::seek_cost), ""),
    (seek::ROTATIONAL_FLAG_WRONG, Sizing,
        Confirmed(3, seek::flag_wrong_confirming, seek::flag_wrong), ""),
    (cache::DIRECT_IO_IGNORED, Caution,
        Confirmed(1, cache::direct_ignored_confirming, cache::direct_ignored),
        "direct I/O is not done here"),
    ("page_cache_answered", Caution, Confirmed(3, cache::cached_confirming, cache::cached),
        "the page cache answered reads"),
    (place::BARRIERS_OFF, Caution, Fact(place::barriers_off),
        "commits do not survive a power cut, because barriers are off"),
    (place::NOT_A_LOCAL_DISK, Caution, Fact(place::not_a_local_disk), "the data are in memory"),
    ("nearly_full", Caution, Fact(room::nearly_full), "the file system is nearly full"),
    (write_back::SMALL_DIRTY_LIMIT, Caution, Fact(write_back::small_dirty_limit), ""),
    ("atomic_writes_promised", Sizing, Fact(place::atomic_writes_promised), ""),
    ("burst_limit", Loss, Confirmed(0, fell::allowance_confirming, steady::burst_limit), ""),
    ("write_buffer", Sizing, Fact(steady::write_buffer), ""),
    (steady::LASTING_RATE, Sizing, Fact(steady::lasting_rate), ""),
    ("periodic_pauses", Loss, Fact(pauses::periodic), ""),
    ("irregular_pauses", Loss, Fact(pauses::irregular), ""),
    ("memory_limit", Sizing, Fact(write_back::memory_limit), ""),
    ("not_steady_device", Caution, Fact(steady::not_steady), "the device is not steady"),
    ("foreign_io", Caution, Fact(machine::foreign_io), "other processes used the device"),
    ("steal", Caution, Fact(machine::steal), "the hypervisor took processor time away"),
    ("cpu_bound_host", Caution, Fact(machine::cpu_bound), "the processors were often the limit"),
    (quota::CPU_QUOTA, Caution, Fact(quota::cpu_quota), "a CPU quota was often the limit"),
    (sizing::READ_INTERFERENCE, Sizing, Fact(sizing::read_interference), ""),
    (sizing::FLUSH_CAPACITY, Sizing, Fact(sizing::flush_capacity), ""),
    ("commit_rate", Sizing, Fact(sizing::commit_rate), ""),

    (layer_loss::FILESYSTEM_LOSS, Loss, Study(study::losses), ""),
    (study::COLLAPSE, Loss, Above, ""),
    (response::RESPONSE, Sizing, Study(response::responses), ""),
    (study::ENOUGH, Sizing, Study(study::enough), ""),
    (study::INDIFFERENT, Sizing, Study(study::indifferent), ""),
    (study::LOOP_CEILING, Caution, Study(study::at_loop_ceiling), ""),
    (queue_finding::HELPS, Sizing, Study(queue_finding::lengths), ""),
    (queue_finding::HURTS, Sizing, Above, ""),
    (queue_finding::NO_DIFFERENCE, Sizing, Above, ""),
    (queue_finding::REFUSED, Caution, Study(queue_finding::refused), ""),
    (queue_finding::LATE, Caution, Study(queue_finding::emulation_late), ""),

    ("recording_short", Caution, Short(recording::too_short), ""),
    ("io_limit_binds", Loss, Recorded(recording::io_limit), ""),
    ("regular_pauses", Loss, Recorded(recording::regular_pauses), ""),
    ("page_cleaner_sleeps", Loss, Recorded(cleaner::sleeps), ""),
    ("adaptive_flushing_off", Loss, Recorded(cleaner::adaptive_off), ""),
    ("redo_too_small", Loss, Recorded(redo::too_small), ""),
    ("io_capacity_below_need", Loss, Recorded(flushing::capacity_below_need), ""),
    ("device_below_need", Sizing, Recorded(flushing::device_below_need), ""),
    ("pool_too_small", Loss, Recorded(pool::too_small), ""),
    ("log_buffer_small", Loss, Recorded(commit::log_buffer), ""),
    ("purge_held_by_view", Loss, Recorded(purge::held_by_view), ""),
    ("purge_behind", Loss, Recorded(purge::behind), ""),
    ("neighbors_without_seeks", Sizing, Recorded(cleaner::neighbors), ""),
    ("dirty_limit_binds", Sizing, Recorded(pool::dirty_limit), ""),
    ("doublewrite_share", Sizing, Recorded(doublewrite::share), ""),
    ("binlog_synced_per_commit", Sizing, Recorded(commit::binlog), ""),
    ("settings_left_changed", Caution, Settings(recording::settings_left), ""),
    ("flush_method_stale", Caution, Settings(traps::flush_method), ""),
    ("redo_size_ignored", Caution, Recorded(traps::redo_size), ""),
];

/// What findings are about, each with a catalogue in the documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Storage that is probed.
    Storage,
    /// The points of a study.
    Study,
    /// A recording of a server or an engine.
    Recording,
}

/// The name and the usual kind of every finding about something.
pub fn catalogue(of: Subject) -> impl Iterator<Item = (&'static str, FindingKind)> {
    let is_of = move |rule: Rule| {
        of == match rule {
            Fact(_) | Confirmed(..) | Pair(_) => Subject::Storage,
            Study(_) | Above => Subject::Study,
            Recorded(_) | Settings(_) | Short(_) => Subject::Recording,
        }
    };
    RULES.iter().filter(move |row| is_of(row.2)).map(|row| (row.0, row.1))
}

/// Something that the points measured so far hint at.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspicion {
    /// The finding that it would become.
    pub id: &'static str,
    /// The points that confirm or clear it: known ones to be measured again, interleaved, at least
    /// three replicates each. Log [`Event::Suspected`] first.
    pub confirm: Vec<Point>,
}

/// What the events hint at and what would confirm it, the most telling first, so that a run that
/// ends early has confirmed what matters: a limit, which explains much of the rest; other losses;
/// facts and cautions. Suspicions whose confirming points have run are not raised again.
pub fn suspect(events: &[Event], host: &ProbeHost) -> Vec<Suspicion> {
    let log = EventIndex::of(events);
    let case = Case { log: &log, host };
    let raised = |&(id, _, rule, _): &Row| match rule {
        Confirmed(urgency, confirming, _) => Some((urgency, id, confirming(&case))),
        Pair(urgency) => Some((urgency, id, pairs::confirming(id, &case))),
        _ => None,
    };
    let mut open: Vec<(u8, Suspicion)> = RULES
        .iter()
        .filter_map(raised)
        .map(|(urgency, id, confirm)| (urgency, Suspicion { id, confirm }))
        .filter(|(_, one)| !one.confirm.is_empty() && !has_run(&log, one))
        .collect();
    open.sort_by_key(|(urgency, _)| *urgency);
    open.into_iter().map(|(_, suspicion)| suspicion).collect()
}

fn has_run(log: &EventIndex<'_>, suspicion: &Suspicion) -> bool {
    let which = Which::Confirming(suspicion.id);
    let enough =
        |point: &Point| log.replicates(&point.id, which).len() >= iostrata_stats::PAIRS_MIN;
    suspicion.confirm.iter().all(enough)
}

/// What a rule of storage found: of a suspicion, by its confirming replicates.
fn of_storage(&(id, kind, rule, _): &Row, case: &Case<'_, '_>) -> Option<Finding> {
    let said = match rule {
        Fact(notice) => notice(case),
        Confirmed(_, _, conclude) => conclude(case, Which::Confirming(id)),
        Pair(_) => pairs::conclude(id, case),
        _ => None,
    };
    said.map(|said| said.named(id, kind))
}

/// Every finding of a probe.
pub(crate) fn findings_of(case: &Case<'_, '_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().filter_map(|row| of_storage(row, case)).collect();
    withhold(case, &mut findings);
    findings
}

/// What a caution means for the figures of a probe, in a few words; nothing for those that do not
/// touch them.
pub(crate) fn caution_words(id: &str) -> Option<&'static str> {
    RULES.iter().find(|row| row.0 == id).map(|row| row.3).filter(|words| !words.is_empty())
}

/// Every statement of a study.
pub(crate) fn statements_of(case: &StudyCase<'_>) -> Vec<Finding> {
    let stated = RULES.iter().filter_map(|row| match row.2 {
        Study(state) => Some(state(case)),
        _ => None,
    });
    let named = |(id, said): NamedStatement| {
        let row = RULES.iter().find(|row| row.0 == id);
        row.map(|row| said.named(id, row.1))
    };
    stated.flatten().filter_map(named).collect()
}

/// The findings and advice of a recording, the most important first. Advice for one setting is
/// given once.
pub fn diagnose_watch(document: &WatchDocument) -> (Vec<Finding>, Vec<Advice>) {
    let recording = Recording::of(document);
    let is_long_enough = recording.is_long_enough();
    let (mut findings, mut advice): (Vec<Finding>, Vec<Advice>) = Default::default();
    for &(id, kind, rule, _) in RULES {
        let concluded = match rule {
            Recorded(judge) if is_long_enough => judge(&recording),
            Short(judge) if !is_long_enough => judge(document),
            Settings(judge) => judge(&recording),
            _ => None,
        };
        let Some(mut said) = concluded else { continue };
        for mut one in std::mem::take(&mut said.advice) {
            one.why.push(id.to_owned());
            match advice.iter_mut().find(|other| other.setting == one.setting) {
                Some(other) => other.why.extend(one.why),
                None => advice.push(one),
            }
        }
        findings.push(said.named(id, kind));
    }
    (findings, advice)
}
