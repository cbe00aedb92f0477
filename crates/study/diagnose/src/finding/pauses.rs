//! Pauses of a device: those that keep a period, and those that come at any time.
//!
//! Invariant: pauses of what lets requests through in portions are not its own.

use std::ops::RangeInclusive;

use iostrata_plan::Layer;
use iostrata_run::DevicePause;
use iostrata_run::host::DirectIoBehaviour;
use iostrata_stats::units::seconds;
use iostrata_stats::{Measured, Verdicts};

use super::capped::{confirmed, explains_requests};
use super::flush::has_dear_flushes;
use super::known_limit::reached;
use crate::below;
use crate::case::Case;
use crate::disturbed::is_undisturbed;
use crate::stalls::periodic_pauses;
use crate::statement::Statement;

/// Share of the time that pauses take, in percent: less is worth no line, and what is closed for
/// longer than it is open is a gate.
const SHARE_PCT: RangeInclusive<f64> = 1.5..=50.0;

/// Whether something that has a name lets requests through in portions, or memory answers and the
/// device writes back in bursts.
fn is_a_gate(case: &Case<'_, '_>) -> bool {
    is_cached(case) || explains_requests(case.log) || reached(case).is_some()
}

/// Whether memory answers and the device writes back in bursts.
fn is_cached(case: &Case<'_, '_>) -> bool {
    case.host.path.direct_io.behaviour == DirectIoBehaviour::Ignored
        || below::buffered_loop(case.host).is_some()
}

pub(crate) fn periodic(case: &Case<'_, '_>) -> Option<Statement> {
    let in_windows = || of_windows(case).filter(|_| !is_a_gate(case));
    // No gate that opens again and again is closed for a tenth of a second at a fixed period.
    let is_explained = is_cached(case) || confirmed(case.log).is_some() || reached(case).is_some();
    let watched = || of_the_watch(case).filter(|pauses| !is_explained && pauses.is_regular());
    in_windows().or_else(|| Some(watched()?.statement(case)))
}

/// Pauses of the whole device that keep no period.
pub(crate) fn irregular(case: &Case<'_, '_>) -> Option<Statement> {
    // A flush that takes long stops everything as well, and is named by itself.
    let is_named = of_windows(case).is_some() || has_dear_flushes(case);
    if is_a_gate(case) || is_named {
        return None;
    }
    Some(of_the_watch(case).filter(|pauses| !pauses.is_regular())?.statement(case))
}

/// What each request of such a moment pays.
const PAYS: &str = "Every request of that moment waits as long, whatever the mean is.";

fn of_windows(case: &Case<'_, '_>) -> Option<Statement> {
    let found = periodic_pauses(case.log)?;
    let share = |lasts_s: f64| (100.0 * lasts_s / found.period_s).clamp(0.0, 100.0);
    let effect = found.lasts_s.mapped(share);
    if !SHARE_PCT.contains(&effect.value) {
        return None;
    }
    let (lasts_s, seen) = (found.lasts_s.value, found.lasts_s.n);
    let text = format!(
        "I/O stops for {} every {} ({seen} of {} times): the drive's own upkeep, a snapshot, or \
         another machine on the same storage. {PAYS}",
        seconds(lasts_s),
        seconds(found.period_s),
        found.due.max(seen)
    );
    Some(
        Statement::sized(Layer::Device, &effect, text)
            .with("period_s", found.period_s)
            .with("lasts_ms", lasts_s * 1e3)
            .with("seen", seen)
            .with("due", found.due),
    )
}

/// Pauses that were seen by watching the device all the time.
struct Pauses<'a> {
    watched_s: f64,
    all: &'a [DevicePause],
}

/// Fewer are chance.
const PAUSES_MIN: usize = 3;
/// How far a distance may lie from a multiple of the period, as a share of it.
const AROUND: f64 = 0.15;

fn of_the_watch<'a>(case: &Case<'_, 'a>) -> Option<Pauses<'a>> {
    let (watched_s, all) = case.log.paused()?;
    let pauses = Pauses { watched_s, all };
    let measured = case.log.all_replicates();
    let disturbed = measured.iter().filter(|one| !is_undisturbed(one)).count();
    let is_told = all.len() >= PAUSES_MIN && 2 * disturbed < measured.len();
    (is_told && SHARE_PCT.contains(&pauses.share_pct())).then_some(pauses)
}

impl Pauses<'_> {
    fn share_pct(&self) -> f64 {
        let all_s: f64 = self.all.iter().map(|pause| pause.lasts_s).sum();
        100.0 * all_s / self.watched_s.max(1e-9)
    }

    /// The shortest distance between two of them, made precise by all.
    fn period_s(&self) -> f64 {
        let moments: Vec<f64> = self.all.iter().map(|pause| pause.at_s).collect();
        let distances = moments.windows(2).map(|two| two[1] - two[0]);
        let shortest_s = distances.fold(f64::INFINITY, f64::min);
        let span_s = moments[moments.len() - 1] - moments[0];
        span_s / (span_s / shortest_s).round().max(1.0)
    }

    fn is_regular(&self) -> bool {
        let period_s = self.period_s();
        let [first, .., last] = self.all else { return false };
        // Of a short period every distance is about a multiple: half of the pauses must be there.
        let due = (last.at_s - first.at_s) / period_s;
        let are_there = due <= 2.1 * (self.all.len() - 1) as f64;
        are_there
            && self.all.windows(2).all(|two| {
                let periods = (two[1].at_s - two[0].at_s) / period_s;
                (periods - periods.round()).abs() <= AROUND && periods.round() >= 1.0
            })
    }

    fn statement(&self, case: &Case<'_, '_>) -> Statement {
        let mean_s = self.all.iter().map(|one| one.lasts_s).sum::<f64>() / self.all.len() as f64;
        let longest_s = self.all.iter().map(|one| one.lasts_s).fold(0.0, f64::max);
        let (share_pct, n) = (self.share_pct(), self.all.len() as u64);
        let effect = Measured::without_interval(share_pct, n, Verdicts::none());
        let times = format!("{} times in {}", self.all.len(), seconds(self.watched_s));
        let device = case.host.path.devices.first().map_or("the device", |one| one.name.as_str());
        let text = match self.is_regular() {
            true => {
                let (lasts, every) = (seconds(mean_s), seconds(self.period_s()));
                format!(
                    "I/O of {device} stops for {lasts} every {every} ({times}): the drive's own \
                     upkeep, a snapshot, or another machine on the same storage. {PAYS}"
                )
            }
            false => {
                format!(
                    "I/O of {device} stopped {times} for {}, at most {}, at no period: garbage \
                     collection of a drive, or another machine on the same storage. {PAYS}",
                    seconds(mean_s),
                    seconds(longest_s)
                )
            }
        };
        let period_s = self.is_regular().then(|| self.period_s());
        Statement::sized(Layer::Device, &effect, text)
            .with_some("period_s", period_s)
            .with("lasts_ms", mean_s * 1e3)
            .with("longest_ms", longest_s * 1e3)
            .with("seen", self.all.len() as u64)
            .with("watched_s", self.watched_s)
    }
}
