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
    let watched =
        || of_the_watch(case).filter(|pauses| !is_explained && pauses.regular().is_some());
    in_windows().or_else(|| Some(watched()?.statement(case)))
}

/// Pauses of the whole device that keep no period.
pub(crate) fn irregular(case: &Case<'_, '_>) -> Option<Statement> {
    // A flush that takes long stops everything as well, and is named by itself.
    let is_named = of_windows(case).is_some() || has_dear_flushes(case);
    if is_a_gate(case) || is_named {
        return None;
    }
    Some(of_the_watch(case).filter(|pauses| pauses.regular().is_none())?.statement(case))
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
/// The same for fewer pauses than these, or with others beside them: three at any moments are
/// within the larger one in every second case, within this one in every tenth.
const AROUND_FEW: f64 = 0.03;
const FEW: usize = 5;
/// Beside pauses of other origin a period needs so many of its own, of all and of those due.
const KEPT_MIN: usize = 4;
const KEPT_OF_ALL_MIN: f64 = 0.6;
const KEPT_OF_DUE_MIN: f64 = 0.75;
/// As they are more than the others, the next pause of a period is among so many.
const NEXT_MAX: usize = 8;

fn of_the_watch<'a>(case: &Case<'_, 'a>) -> Option<Pauses<'a>> {
    let (watched_s, all) = case.log.paused()?;
    let pauses = Pauses { watched_s, all };
    let measured = case.log.all_replicates();
    let disturbed = measured.iter().filter(|one| !is_undisturbed(one)).count();
    let is_told = all.len() >= PAUSES_MIN && 2 * disturbed < measured.len();
    (is_told && SHARE_PCT.contains(&pauses.share_pct(all.iter()))).then_some(pauses)
}

/// Pauses that keep a period.
struct Regular<'a> {
    period_s: f64,
    pauses: Vec<&'a DevicePause>,
}

impl<'a> Pauses<'a> {
    fn share_pct<'p>(&self, pauses: impl Iterator<Item = &'p DevicePause>) -> f64 {
        let all_s: f64 = pauses.map(|pause| pause.lasts_s).sum();
        100.0 * all_s / self.watched_s.max(1e-9)
    }

    /// The period that most of them keep closely, or all of them roughly.
    fn regular(&self) -> Option<Regular<'a>> {
        let period_s = self.period_s();
        let of_all = || Regular { period_s, pauses: self.all.iter().collect() };
        self.of_most().or_else(|| self.all_keep(period_s).then(of_all))
    }

    /// The shortest distance between two of them, made precise by all.
    fn period_s(&self) -> f64 {
        let moments: Vec<f64> = self.all.iter().map(|pause| pause.at_s).collect();
        let distances = moments.windows(2).map(|two| two[1] - two[0]);
        let shortest_s = distances.fold(f64::INFINITY, f64::min);
        let span_s = moments[moments.len() - 1] - moments[0];
        span_s / (span_s / shortest_s).round().max(1.0)
    }

    fn all_keep(&self, period_s: f64) -> bool {
        let [first, .., last] = self.all else { return false };
        // Of a short period every distance is about a multiple: half of the pauses must be there.
        let due = (last.at_s - first.at_s) / period_s;
        let are_there = due <= 2.1 * (self.all.len() - 1) as f64;
        let around = if self.all.len() < FEW { AROUND_FEW } else { AROUND };
        are_there
            && self.all.windows(2).all(|two| {
                let periods = (two[1].at_s - two[0].at_s) / period_s;
                (periods - periods.round()).abs() <= around && periods.round() >= 1.0
            })
    }

    /// The period that most of them keep: the distance of two pauses at which most others lie.
    fn of_most(&self) -> Option<Regular<'a>> {
        let pairs = self.all.iter().enumerate().flat_map(|(at, first)| {
            let next = self.all[at + 1..].iter().take(NEXT_MAX);
            next.map(move |second| (first, second.at_s - first.at_s))
        });
        let found = pairs.filter_map(|(anchor, period_s)| self.kept(anchor, period_s));
        found.max_by_key(|regular| regular.pauses.len())
    }

    /// The pauses at the moments of a period that one of them begins.
    fn kept(&self, anchor: &DevicePause, period_s: f64) -> Option<Regular<'a>> {
        let periods = |pause: &DevicePause| (pause.at_s - anchor.at_s) / period_s;
        let is_near =
            |pause: &&DevicePause| (periods(pause) - periods(pause).round()).abs() <= AROUND_FEW;
        let mut pauses: Vec<&DevicePause> = self.all.iter().filter(is_near).collect();
        pauses.dedup_by_key(|pause| periods(pause).round() as i64);
        let [first, .., last] = pauses[..] else { return None };
        let due = (periods(last) - periods(first)).round() + 1.0;
        let kept = pauses.len() as f64;
        let is_kept = pauses.len() >= KEPT_MIN
            && kept >= KEPT_OF_ALL_MIN * self.all.len() as f64
            && kept >= KEPT_OF_DUE_MIN * due
            && SHARE_PCT.contains(&self.share_pct(pauses.iter().copied()));
        let period_s = (last.at_s - first.at_s) / (due - 1.0);
        is_kept.then_some(Regular { period_s, pauses })
    }

    fn statement(&self, case: &Case<'_, '_>) -> Statement {
        let regular = self.regular();
        let named = match &regular {
            Some(regular) => regular.pauses.clone(),
            None => self.all.iter().collect(),
        };
        let mean_s = named.iter().map(|one| one.lasts_s).sum::<f64>() / named.len() as f64;
        let longest_s = named.iter().map(|one| one.lasts_s).fold(0.0, f64::max);
        let (share_pct, n) = (self.share_pct(named.iter().copied()), named.len() as u64);
        let effect = Measured::without_interval(share_pct, n, Verdicts::none());
        let times = format!("{} times in {}", named.len(), seconds(self.watched_s));
        let device = case.host.path.devices.first().map_or("the device", |one| one.name.as_str());
        let others = match self.all.len() - named.len() {
            0 => String::new(),
            1 => ", and once at another moment".to_owned(),
            others => format!(", and {others} times at other moments"),
        };
        let text = match &regular {
            Some(Regular { period_s, .. }) => {
                let (lasts, every) = (seconds(mean_s), seconds(*period_s));
                format!(
                    "I/O of {device} stops for {lasts} every {every} ({times}{others}): the drive's \
                     own upkeep, a snapshot, or another machine on the same storage. {PAYS}"
                )
            }
            None => {
                format!(
                    "I/O of {device} stopped {times} for {}, at most {}, at no period: garbage \
                     collection of a drive, or another machine on the same storage. {PAYS}",
                    seconds(mean_s),
                    seconds(longest_s)
                )
            }
        };
        Statement::sized(Layer::Device, &effect, text)
            .with_some("period_s", regular.map(|regular| regular.period_s))
            .with("lasts_ms", mean_s * 1e3)
            .with("longest_ms", longest_s * 1e3)
            .with("seen", n)
            .with("watched_s", self.watched_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regular_s(moments: &mut [f64]) -> Option<f64> {
        moments.sort_by(f64::total_cmp);
        let all: Vec<DevicePause> =
            moments.iter().map(|&at_s| DevicePause { at_s, lasts_s: 0.5 }).collect();
        let pauses = Pauses { watched_s: 100.0, all: &all };
        pauses.regular().map(|regular| regular.period_s)
    }

    /// Numbers from 0 to 1 that look random.
    fn numbers(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn chance_seldom_keeps_a_period() {
        let mut number = numbers(1);
        for (pauses, most_pct) in [(3, 13), (4, 2), (5, 3), (6, 3), (7, 2), (10, 1)] {
            let draws = (0..1_000).filter(|_| {
                let mut moments: Vec<f64> = (0..pauses).map(|_| 100.0 * number()).collect();
                regular_s(&mut moments).is_some()
            });
            let kept = draws.count();
            assert!(kept <= 10 * most_pct, "{pauses} pauses: {kept} of 1000");
        }
    }

    #[test]
    fn a_period_is_found_beside_pauses_of_other_origin() {
        let mut number = numbers(2);
        for others in 0..=3 {
            let draws = (0..200).filter(|_| {
                let first_s = 20.0 * number();
                let mut moments: Vec<f64> = (0..5)
                    .map(|at| first_s + 20.0 * f64::from(at) + 0.4 * (number() - 0.5))
                    .collect();
                moments.extend((0..others).map(|_| 100.0 * number()));
                regular_s(&mut moments).is_some_and(|period_s| (period_s / 20.0 - 1.0).abs() < 0.03)
            });
            let found = draws.count();
            assert!(found >= 194, "{others} others: {found} of 200");
        }
    }
}
