//! Losses between points that do identical work: locks, allocation, page cache, journal, APIs.
//!
//! Signature and confirmation are the same for all: the pair differs beyond its interval and beyond
//! its threshold, first in the planned replicates, then again in new ones.

use iostrata_plan::{Layer, Point, rung};
use iostrata_stats::units::{capital, count, microseconds, percent};

use super::capped::explains_requests;
use super::place::sync_option;
use crate::below::{self, FileSystemBetween};
use crate::case::Case;
use crate::compared::{Bar, PairComparison, compare};
use crate::observed::Which;
use crate::pair::{
    APPEND_ALLOCATION_COST, BUFFERED_WRITE_COST, DSYNC_BEATS_FDATASYNC, FSYNC_JOURNAL_COST,
    MIXED_FILE_LOCK, PAIRS, PER_FILE_WRITE_LOCK, Pair, UNWRITTEN_EXTENT_COST,
};
use crate::statement::Statement;

/// Share of the best rate that counts as enough files.
const ENOUGH: f64 = 0.9;

/// Findings that a mount which makes every write durable answers by itself.
const OF_A_SYNC_MOUNT: [&str; 5] = [
    UNWRITTEN_EXTENT_COST,
    APPEND_ALLOCATION_COST,
    BUFFERED_WRITE_COST,
    FSYNC_JOURNAL_COST,
    DSYNC_BEATS_FDATASYNC,
];

/// The pairs that can show a loss. Where the volume is capped, work that takes more requests takes
/// longer by as much: that is the cap, not the work. Behind a file system that passes requests on
/// every difference is its doing.
pub(crate) fn telling(case: &Case<'_, '_>) -> impl Iterator<Item = &'static Pair> {
    let capped = explains_requests(case.log);
    let is_between = FileSystemBetween::of(case.host).is_some();
    let is_sync = sync_option(case).is_some_and(|(option, _)| option == "sync");
    PAIRS.iter().filter(move |pair| {
        let answered = is_sync && OF_A_SYNC_MOUNT.contains(&pair.finding);
        !(is_between || answered || capped && pair.is_inherent())
    })
}

fn looked_at(id: &str, case: &Case<'_, '_>) -> Vec<&'static Pair> {
    telling(case).filter(|pair| pair.finding == id).collect()
}

pub(crate) fn confirming(id: &str, case: &Case<'_, '_>) -> Vec<Point> {
    let hinted = looked_at(id, case).into_iter().filter(|pair| {
        compare(case.log, pair, Which::All).is_some_and(|found| found.reaches(pair, Bar::Suspicion))
    });
    let ids: Vec<&str> = hinted.flat_map(|pair| [pair.from, pair.to]).collect();
    case.points(&ids)
}

pub(crate) fn conclude(id: &'static str, case: &Case<'_, '_>) -> Option<Statement> {
    let confirmed = looked_at(id, case).into_iter().filter_map(|pair| {
        let found = compare(case.log, pair, Which::Confirming(id))?;
        found.reaches(pair, Bar::Finding).then_some((pair, found))
    });
    // Of several, one that a setting can undo comes first, then the largest.
    let (pair, found) = confirmed.max_by(|(a, of_a), (b, of_b)| {
        let by_size = of_a.loss.value.total_cmp(&of_b.loss.value);
        a.settable.cmp(&b.settable).then(by_size)
    })?;
    let text = format!("{}{}", sentence(pair, &found), consequence(id, case));
    // The first touch of a thin volume is the volume's work.
    let is_thin = is_first_touch(id) && below::thin_volume(case.host).is_some();
    let layer = if is_thin { Layer::Block } else { pair.layer };
    let said = Statement::sized(layer, &found.loss, text)
        .with("from", pair.from)
        .with("to", pair.to)
        .with("from_value", found.lower)
        .with("to_value", found.upper)
        .with("unit", found.unit)
        .with("extra_us_per_request", found.extra_us);
    let of_16 = |rung: &str| {
        let seen = case.log.seen(rung).filter(|_| id == DSYNC_BEATS_FDATASYNC)?;
        seen.figure().map(|figure| figure.value)
    };
    let said = said
        .with_some("dsync_of_16", of_16(rung::COMMIT_DSYNC_16))
        .with_some("fdatasync_of_16", of_16(rung::COMMIT_FDATASYNC_16));
    let files = (id == PER_FILE_WRITE_LOCK).then(|| files_enough(case)).flatten();
    Some(said.with_some("files_enough", files))
}

fn sentence(pair: &Pair, found: &PairComparison) -> String {
    format!(
        "{} cost {}: {} against {} {}, {} more per request.",
        capital(pair.words),
        percent(found.loss.value),
        count(found.upper),
        count(found.lower),
        found.unit,
        microseconds(found.extra_us)
    )
}

/// Whether the work writes where nothing was written before.
fn is_first_touch(id: &str) -> bool {
    [UNWRITTEN_EXTENT_COST, APPEND_ALLOCATION_COST].contains(&id)
}

fn consequence(id: &str, case: &Case<'_, '_>) -> String {
    if is_first_touch(id)
        && let Some(pool) = below::thin_volume(case.host)
    {
        return format!(
            " The volume is thin: what is written for the first time takes room in {pool}."
        );
    }
    let of_file_system = match id {
        PER_FILE_WRITE_LOCK => {
            " Writers of one file wait for each other; spread busy tables over more files."
        }
        MIXED_FILE_LOCK => " Readers and writers of one file wait for each other.",
        UNWRITTEN_EXTENT_COST => {
            " Space that was only allocated is converted at its first write; let the server write \
             new space out."
        }
        APPEND_ALLOCATION_COST => " Logs of a fixed size that are overwritten avoid it.",
        BUFFERED_WRITE_COST => " Direct I/O is the right choice here.",
        FSYNC_JOURNAL_COST => {
            " fsync also writes the file's times into the journal; fdatasync does not."
        }
        DSYNC_BEATS_FDATASYNC => {
            " A durable write needs one trip to the device instead of a write and a flush."
        }
        _ => "",
    };
    let may_be_volume = is_first_touch(id) && case.host.machine.virtualisation.is_some();
    let of_volume = match may_be_volume {
        true => " A volume from a snapshot, or a thin image, pays for its first touch as well.",
        false => "",
    };
    format!("{of_file_system}{of_volume}")
}

/// The fewest files that reach nearly the rate of the best number of files.
fn files_enough(case: &Case<'_, '_>) -> Option<u64> {
    let rates: Vec<(u64, f64)> = [1, 2, 4, 8]
        .iter()
        .filter_map(|&files| {
            let seen = case.log.seen(&format!("write_16k_files_{files}"))?;
            Some((files, seen.figure()?.value))
        })
        .collect();
    let best = rates.iter().map(|&(_, rate)| rate).fold(0.0, f64::max);
    rates.iter().find(|&&(_, rate)| rate >= ENOUGH * best).map(|&(files, _)| files)
}
