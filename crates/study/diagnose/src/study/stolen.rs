//! Windows of transactions in which the hypervisor took processor time away: a stall of theirs may
//! be the machine's.
//!
//! Windows of which less than half is quiet are left out as long as another one is left. The worst
//! second of the others is looked for among the quiet seconds. Each window that stays keeps its
//! verdict.

use iostrata_run::{Replicate, Series};
use iostrata_stats::{Verdict, stability, worst_of_seconds};

/// A second is quiet in which the hypervisor took no more of the processors than this.
const QUIET_PCT_MAX: f64 = 10.0;
/// The share of the seconds of a window that has to be quiet.
const QUIET_SHARE_MIN: f64 = 0.5;

/// Takes the windows out that do not count; gives how many.
pub(super) fn leave_out(replicates: &mut Vec<&Replicate>) -> u32 {
    let before = replicates.len();
    if replicates.iter().any(|one| !is_lost_to_steal(one)) {
        replicates.retain(|one| !is_lost_to_steal(one));
    }
    (before - replicates.len()) as u32
}

/// Whether the hypervisor took so much of a window of transactions that it does not count, and is
/// worth measuring again.
pub fn is_lost_to_steal(of: &Replicate) -> bool {
    is_stolen(of) && worst_quiet_second(of).is_none()
}

/// The worst second of a window over its mean.
pub(super) fn worst_second(of: &Replicate) -> Option<f64> {
    let quiet = if is_stolen(of) { worst_quiet_second(of) } else { None };
    quiet.or_else(|| Some(stability(&counts(of)?, series(of)?.width_s)?.min_over_mean_1s))
}

/// Requests keep theirs: their intervals show the effect of a moment.
fn is_stolen(of: &Replicate) -> bool {
    of.point.transactions.is_some() && of.verdicts.has(Verdict::Steal)
}

fn series(of: &Replicate) -> Option<&Series> {
    of.streams.first().map(|stream| &stream.series)
}

fn counts(of: &Replicate) -> Option<Vec<f64>> {
    series(of).map(Series::totals)
}

/// The worst of the quiet seconds over their mean, where there are enough of them.
fn worst_quiet_second(of: &Replicate) -> Option<f64> {
    let device = of.evidence.as_ref()?.device_series.as_ref()?;
    let is_quiet = |from_s: f64, to_s: f64| {
        let taken = device.t_s.iter().zip(&device.cpu_steal_pct);
        let within = taken.filter(|(end_s, _)| **end_s > from_s && **end_s <= to_s);
        let known: Vec<f64> = within.filter_map(|(_, pct)| *pct).collect();
        !known.is_empty() && known.iter().sum::<f64>() / known.len() as f64 <= QUIET_PCT_MAX
    };
    let (worst, share) = worst_of_seconds(&counts(of)?, series(of)?.width_s, is_quiet)?;
    (share >= QUIET_SHARE_MIN).then_some(worst)
}

#[cfg(test)]
mod tests {
    use iostrata_run::Event;
    use iostrata_run::host::{DeviceSeries, Evidence};

    use super::super::points::by_point;
    use super::super::transactions::tests::replicate;
    use super::*;

    /// Ten slices of 0.2 s, with what was taken in each.
    fn stolen(counts: [u32; 10], taken_pct: [f64; 10]) -> Replicate {
        let device_series = DeviceSeries {
            t_s: (1..=10).map(|n| 0.2 * f64::from(n)).collect(),
            cpu_steal_pct: taken_pct.into_iter().map(Some).collect(),
            ..DeviceSeries::default()
        };
        let mut one = replicate(counts);
        one.verdicts.add(Verdict::Steal);
        one.evidence = Some(Evidence { device_series: Some(device_series), ..Evidence::default() });
        one
    }

    #[test]
    fn stolen_windows_are_left_out_as_long_as_one_is_left() {
        let good = replicate([10; 10]);
        let stolen = stolen([1; 10], [40.0; 10]);
        let mut some = vec![&good, &stolen, &stolen];
        assert_eq!((leave_out(&mut some), some.len()), (2, 1));
        let mut all = vec![&stolen, &stolen];
        assert_eq!((leave_out(&mut all), all.len()), (0, 2));
        let mut requests = stolen.clone();
        requests.point.transactions = None;
        let mut mixed = vec![&good, &requests];
        assert_eq!((leave_out(&mut mixed), mixed.len()), (0, 2), "requests keep theirs");
    }

    #[test]
    fn stolen_windows_stay_that_are_quiet_for_half_of_the_time() {
        let mut taken = [0.0; 10];
        taken[..3].fill(60.0);
        let partly = stolen([2, 2, 2, 10, 10, 10, 10, 10, 10, 10], taken);
        let (never, clean) = (stolen([10; 10], [40.0; 10]), replicate([10; 10]));
        let mut all = vec![&partly, &never, &clean];
        assert_eq!(leave_out(&mut all), 1);
        assert_eq!(all, [&partly, &clean]);
    }

    #[test]
    fn a_window_that_is_measured_again_counts_in_the_round_of_the_lost_one() {
        let numbered = |number: u32, mut one: Replicate| {
            one.replicate = number;
            Event::Replicate(Box::new(one))
        };
        let kept = |number| numbered(number, replicate([10; 10]));
        let lost = |number| numbered(number, stolen([1; 10], [40.0; 10]));
        let rounds = |events: &[Event]| -> Vec<(u32, u32)> {
            let points = by_point(events);
            let seen = points.values().next().unwrap();
            seen.rounds().map(|(round, one)| (round, one.replicate)).collect()
        };
        let whole = [kept(2), kept(0), kept(1)];
        assert_eq!(rounds(&whole), [(0, 0), (1, 1), (2, 2)], "in whatever order they are stored");
        let again = [kept(0), lost(1), kept(2), kept(3)];
        assert_eq!(rounds(&again), [(0, 0), (1, 2), (2, 3)]);
    }

    #[test]
    fn the_worst_second_of_a_stolen_window_is_a_quiet_one() {
        let counts = [2, 2, 2, 10, 10, 10, 10, 10, 10, 8];
        let mut taken = [0.0; 10];
        taken[..3].fill(60.0);
        let partly = stolen(counts, taken);
        let quiet = worst_second(&partly).unwrap();
        assert!((0.95..1.0).contains(&quiet), "{quiet}: of 50, 50 and 48 in a second");
        let whole = worst_second(&stolen(counts, [60.0; 10])).unwrap();
        assert!((0.6..0.75).contains(&whole), "{whole}: nothing of it is quiet");
        let clean = worst_second(&replicate(counts)).unwrap();
        assert_eq!(clean, whole);
        let mut unseen = partly.clone();
        unseen.evidence = None;
        assert_eq!(worst_second(&unseen), Some(whole), "when it was is unknown");
    }
}
