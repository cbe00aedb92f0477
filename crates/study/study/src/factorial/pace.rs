//! How long a window is, and which points get further replicates.
//!
//! Invariant: a budget is kept by dropping replicates, never points: the length of a window leaves
//! room for one round over all points, and every round costs what the earlier ones did. Pure: it is
//! told the time.

use std::time::Duration;

use iostrata_stats::Measured;

/// Shortest window that still holds thirty batches of fast requests.
const WINDOW_MIN: Duration = Duration::from_millis(250);
/// What opening files, starting workers and storing a replicate cost around a window.
const AROUND_WINDOW: Duration = Duration::from_millis(80);
/// Time beside the planned replicates that is kept for points that turn out to need more.
const EXTRA_SHARE: f64 = 0.35;
/// Length of a traced pass.
pub(super) const TRACED_PASS: Duration = Duration::from_millis(300);

/// What is known before the first window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    /// Points.
    pub points: usize,
    /// Replicates that every point shall have.
    pub replicates: u32,
    /// Whether every point gets a traced pass.
    pub traced: bool,
    /// The bound on a window.
    pub point_time: Duration,
    /// What is left of the budget, if there is one.
    pub left: Option<Duration>,
}

/// The longest that a window may be.
pub(super) fn window(task: &Task) -> Duration {
    let Some(left) = task.left else { return task.point_time };
    let points = task.points.max(1) as f64;
    let traced_s =
        if task.traced { (TRACED_PASS + AROUND_WINDOW).as_secs_f64() * points } else { 0.0 };
    let for_windows_s = (left.as_secs_f64() * (1.0 - EXTRA_SHARE) - traced_s).max(0.0);
    let each_s = for_windows_s / points / f64::from(task.replicates.max(1));
    let window_s = each_s - AROUND_WINDOW.as_secs_f64();
    let window = Duration::from_secs_f64(window_s.max(WINDOW_MIN.as_secs_f64()));
    window.min(task.point_time)
}

/// What a point has so far.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// The figures of its replicates.
    pub figures: Vec<Measured>,
}

/// The points that shall be measured once more, those first that need the fewest replicates to be
/// precise: so the largest number of points gets there.
pub(super) fn once_more(standings: &[Standing], precision: f64, most: u32) -> Vec<usize> {
    let mut wanting: Vec<(u32, usize)> = Vec::new();
    for (index, standing) in standings.iter().enumerate() {
        let have = standing.figures.len() as u32;
        if have == 0 || have >= most {
            continue;
        }
        match iostrata_stats::more_needed(&standing.figures, precision) {
            iostrata_stats::Need::Replicates(more) if have + more <= most.saturating_mul(2) => {
                wanting.push((more, index));
            }
            _ => {}
        }
    }
    wanting.sort_unstable();
    wanting.into_iter().map(|(_, index)| index).collect()
}

/// Whether one more replicate of this length still fits.
pub(super) fn fits(left: Option<Duration>, takes_s: f64) -> bool {
    left.is_none_or(|left| left.as_secs_f64() >= takes_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(points: usize, left_s: u64) -> Task {
        Task {
            points,
            replicates: 3,
            traced: false,
            point_time: Duration::from_secs(2),
            left: Some(Duration::from_secs(left_s)),
        }
    }

    #[test]
    fn planned_replicates_fit_into_the_budget() {
        for (points, left_s) in [(10, 60), (190, 1080), (300, 1200)] {
            let window_s = window(&task(points, left_s)).as_secs_f64();
            let all_s = (window_s + AROUND_WINDOW.as_secs_f64()) * points as f64 * 3.0;
            assert!(all_s <= left_s as f64, "{points} points of {window_s} s take {all_s} s");
        }
    }

    #[test]
    fn windows_have_bounds() {
        assert_eq!(window(&task(1, 10_000)), Duration::from_secs(2));
        assert_eq!(window(&task(10_000, 10)), WINDOW_MIN);
        let unbounded = Task { left: None, ..task(10_000, 0) };
        assert_eq!(window(&unbounded), Duration::from_secs(2));
    }

    fn standing(values: &[f64]) -> Standing {
        let figure = |&value: &f64| {
            Measured::new(value, [value * 0.99, value * 1.01], 40, Default::default())
        };
        Standing { figures: values.iter().map(figure).collect() }
    }

    #[test]
    fn points_that_are_nearly_precise_come_first() {
        let calm = standing(&[100.0, 100.5, 99.5]);
        let wild = standing(&[80.0, 100.0, 120.0]);
        let near = standing(&[97.0, 100.0, 103.0]);
        let all = [calm, wild, near];
        let order = once_more(&all, 0.05, 24);
        assert_eq!(order.first(), Some(&2), "{order:?}");
        assert!(!order.contains(&0), "a precise point needs nothing");
        assert!(once_more(&all, 0.05, 3).is_empty(), "nothing beyond the most");
    }

    #[test]
    fn nothing_starts_that_does_not_fit() {
        assert!(fits(None, 1e9) && fits(Some(Duration::from_secs(2)), 1.0));
        assert!(!fits(Some(Duration::from_secs(1)), 1.5));
    }
}
