//! The losses of a run: rungs that do identical work and differ in one layer, and the time that
//! requests spend above the device.
//!
//! Invariant: a loss is beyond its interval and beyond the threshold of its pair. Where confirming
//! replicates exist they must show it by themselves; where they do not, the whole interval must lie
//! beyond the threshold.

use std::collections::BTreeSet;

use iostrata_plan::{Layer, rung};
use iostrata_run::{Loss, ProbeDocument, Resource, Rung};
use iostrata_stats::PAIRS_MIN;
use iostrata_stats::units::{count, microseconds, percent};

use crate::above_device::{AboveDevice, WATCHED, above_device};
use crate::below::FileSystemBetween;
use crate::bound::PAIRED_ROUNDS;
use crate::case::Case;
use crate::compared::{Bar, PairComparison, compare};
use crate::finding::above::LIMIT_ABOVE_DEVICE;
use crate::finding::pairs::telling;
use crate::observed::{EventIndex, Which};
use crate::pair::Pair;

/// The losses, in the order of the catalogue of pairs.
pub(crate) fn losses_of(case: &Case<'_, '_>, rungs: &[Rung]) -> Vec<Loss> {
    let log = case.log;
    let mut losses: Vec<Loss> = Vec::new();
    for pair in telling(case) {
        let Some(loss) = pair_loss(log, pair) else { continue };
        match losses.iter_mut().find(|other| other.to == loss.to && other.layer == loss.layer) {
            Some(other) if other.loss_pct >= loss.loss_pct => {}
            Some(other) => *other = loss,
            None => losses.push(loss),
        }
    }
    losses.extend(database_loss(log, rungs));
    if FileSystemBetween::of(case.host).is_none() {
        losses.extend(WATCHED.iter().filter_map(|&(id, us_min)| device_loss(case, id, us_min)));
    }
    losses
}

/// Compares every pair of a run, whether it lost or not, and states in its document what became of
/// them. Some are compared in both directions.
pub(crate) fn add_comparisons(document: &mut ProbeDocument, case: &Case<'_, '_>) {
    let log = case.log;
    let (mut made, mut open) = (BTreeSet::new(), BTreeSet::new());
    for pair in telling(case) {
        let Some(found) = compare(log, pair, Which::All) else { continue };
        let points = [pair.from.min(pair.to), pair.from.max(pair.to)];
        made.insert(points);
        if pair_loss(log, pair).is_some() {
            continue;
        }
        let is_small = is_small(pair, &found);
        if !is_small && !is_cleared(pair, &found) {
            if open.insert(points) {
                document.undecided.push(loss_of(pair, &found));
            }
            continue;
        }
        if is_small && !pair.is_inherent() {
            document.small_losses.push(loss_of(pair, &found));
        }
        let is_of_time = !found.loss.is_below(pair.loss_pct_min) && found.is_short(pair);
        let (most, high) = match is_of_time {
            true => (&mut document.loss_at_most_us, found.extra_us_at(found.loss_pct_max)),
            false => (&mut document.loss_at_most_pct, found.loss_pct_max),
        };
        *most = Some(most.unwrap_or(0.0).max(high));
    }
    document.compared = made.len() as u64;
}

/// Whether a pair is known not to lose as much as counts: by its interval, or because a request
/// takes hardly longer at the most. Points that were to confirm a loss and do not show it clear
/// nothing by that.
fn is_cleared(pair: &Pair, found: &PairComparison) -> bool {
    found.loss.is_below(pair.loss_pct_min) || found.is_short(pair)
}

/// Whether a pair loses beyond its interval, and less than counts.
fn is_small(pair: &Pair, found: &PairComparison) -> bool {
    let is_below = found.loss.value < pair.loss_pct_min || found.extra_us < pair.extra_us_min;
    found.loss.n >= PAIRS_MIN as u64 && found.loss.is_above_zero() && is_below
}

/// What the replicates that were to confirm a loss show.
enum Confirmation {
    Yes,
    /// A loss beyond its interval, below the threshold.
    Less,
    No,
}

impl Confirmation {
    fn of(reaches: bool, is_loss: bool) -> Self {
        match (reaches, is_loss) {
            (true, _) => Self::Yes,
            (false, true) => Self::Less,
            (false, false) => Self::No,
        }
    }
}

/// Whether an effect on these points is beyond doubt: confirmed where it was to be confirmed.
fn bar_of(
    log: &EventIndex<'_>,
    finding: &'static str,
    points: &[&str],
    confirmed: impl FnOnce(Which) -> Option<Confirmation>,
) -> Option<Bar> {
    let asked = log.confirm_ids(finding);
    let was_to_be = asked.is_some_and(|ids| points.iter().all(|point| ids.contains(point)));
    match was_to_be.then(|| confirmed(Which::Confirming(finding))).flatten() {
        Some(Confirmation::Yes) => Some(Bar::Finding),
        Some(Confirmation::No) => None,
        // A loss all the same, though perhaps not of that size.
        Some(Confirmation::Less) | None => Some(Bar::Margin),
    }
}

fn pair_loss(log: &EventIndex<'_>, pair: &Pair) -> Option<Loss> {
    let found = compare(log, pair, Which::All)?;
    let bar = bar_of(log, pair.finding, &[pair.from, pair.to], |which| {
        compare(log, pair, which).filter(|again| again.loss.n >= PAIRS_MIN as u64).map(|again| {
            Confirmation::of(again.reaches(pair, Bar::Finding), again.loss.is_above_zero())
        })
    })?;
    found.reaches(pair, bar).then(|| loss_of(pair, &found))
}

fn loss_of(pair: &Pair, found: &PairComparison) -> Loss {
    Loss {
        from: pair.from.to_owned(),
        to: pair.to.to_owned(),
        layer: pair.layer,
        loss_pct: found.loss.value,
        loss_pct_ci95: found.loss.ci95,
        loss_pct_n: found.loss.n,
        basis: "paired_rungs".to_owned(),
        text: pair_text(pair, found),
    }
}

fn pair_text(pair: &Pair, found: &PairComparison) -> String {
    // The middle of an undecided comparison may be a gain.
    let cost = match found.loss.value > 0.0 {
        true => percent(found.loss.value),
        false => "nothing in these windows".to_owned(),
    };
    format!(
        "{} cost {cost}: {} against {} {}",
        pair.words,
        count(found.upper),
        count(found.lower),
        found.unit
    )
}

fn device_loss(case: &Case<'_, '_>, id: &str, us_min: f64) -> Option<Loss> {
    let found = above_device(case, id, Which::All)?;
    let bar = bar_of(case.log, LIMIT_ABOVE_DEVICE, &[id], |which| {
        above_device(case, id, which)
            .filter(|again| again.share.n >= PAIRS_MIN as u64)
            .map(|again| Confirmation::of(again.reaches(us_min, Bar::Finding), false))
    })?;
    found.reaches(us_min, bar).then(|| Loss {
        from: "device".to_owned(),
        to: id.to_owned(),
        layer: found.layer,
        loss_pct: found.share.value,
        loss_pct_ci95: found.share.ci95,
        loss_pct_n: found.share.n,
        basis: "device_counters".to_owned(),
        text: device_text(case.log, id, &found),
    })
}

fn device_text(log: &EventIndex<'_>, id: &str, found: &AboveDevice) -> String {
    let title = log.seen(id).map_or(id, |seen| seen.point.title.as_str());
    format!(
        "{title}: the device answers in {}, the application waits {}; {} of the time is spent \
         above the device",
        microseconds(found.device_us),
        microseconds(found.application_us),
        percent(found.share.value)
    )
}

/// What a commit of a database must lose of what syncs allow, in percent.
const DATABASE_LOSS_PCT_MIN: f64 = 20.0;
/// Share of the time above the syncs that a commit must take without any.
const EXPLAINED_MIN: f64 = 0.5;

/// What a database loses of the commits that syncs allow one connection. The control is the same
/// commits without syncs: only what those take is the database's own, and only where that explains
/// most of the loss there is one to name. Without the control there is none.
fn database_loss(log: &EventIndex<'_>, rungs: &[Rung]) -> Option<Loss> {
    let known = |name| rungs.iter().find(|rung| rung.name == name);
    let (reached, control) = (known(rung::COMMITS_1)?, known(rung::COMMITS_1_UNSYNCED)?);
    let bound = reached.bound.as_ref().filter(|bound| bound.resource == Resource::Syncs)?;
    let [low, high] = bound.reached_pct_ci95?;
    let is_proven = bound.basis == PAIRED_ROUNDS && bound.reached_pct_n >= PAIRS_MIN as u64;
    if !is_proven || 100.0 - high < DATABASE_LOSS_PCT_MIN {
        return None;
    }
    let above_us = 1e6 / reached.value - 1e6 / bound.value;
    let [_, fastest] = control.value_ci95?;
    let own_us = 1e6 / control.value;
    if 1e6 / fastest < EXPLAINED_MIN * above_us {
        return None;
    }
    let syncs = log.seen(rung::COMMIT_FDATASYNC)?;
    Some(Loss {
        from: syncs.point.id.clone(),
        to: reached.name.clone(),
        layer: Layer::Engine,
        loss_pct: 100.0 - bound.reached_pct,
        loss_pct_ci95: Some([100.0 - high, 100.0 - low]),
        loss_pct_n: bound.reached_pct_n,
        basis: "computed_bound".to_owned(),
        text: format!(
            "the database's own work for a commit costs {}: {} against {} commits/s that its syncs \
             allow; without syncs a commit takes {}",
            percent(100.0 - bound.reached_pct),
            count(reached.value),
            count(bound.value),
            microseconds(own_us)
        ),
    })
}
