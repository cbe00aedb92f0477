//! The knee of throughput over concurrency.
//!
//! Purpose: the smallest concurrency that brings (nearly) all the throughput there is; more then
//! only buys latency. Invariant: with any valid point there is a knee; whether it was really seen,
//! or the curve was still rising at its end, is reported with it. It fits no model: saturating,
//! scaling and collapsing curves are all read the same way.

/// Share of the best throughput that the knee must reach.
const NEARLY_ALL: f64 = 0.95;

/// Where more concurrency stops to pay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Index of the knee in the points given.
    pub index: usize,
    /// Index of the point with the best throughput.
    pub best_index: usize,
    /// Whether a higher concurrency was measured and brought less than 5 % more. If not, the knee
    /// lies at or beyond the last point.
    pub seen: bool,
}

/// The knee: the smallest concurrency within 5 % of the best throughput. Points are requests kept
/// in flight with those completed per second, in any order. `None` without a point of positive,
/// finite throughput.
pub fn knee(points: &[(u32, f64)]) -> Option<Knee> {
    let usable = |at: &usize| points[*at].1.is_finite() && points[*at].1 > 0.0;
    let mut order: Vec<usize> = (0..points.len()).filter(usable).collect();
    order.sort_by_key(|&at| points[at].0);
    let best_index = order.iter().copied().max_by(|&a, &b| points[a].1.total_cmp(&points[b].1))?;
    let enough = NEARLY_ALL * points[best_index].1;
    let index = order.iter().copied().find(|&at| points[at].1 >= enough)?;
    let last = order.iter().copied().next_back()?;
    Some(Knee { index, best_index, seen: points[index].0 < points[last].0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A curve from its throughput at 1, 2, 4, ...
    fn curve(per_s: &[f64]) -> Vec<(u32, f64)> {
        per_s.iter().enumerate().map(|(step, &per_s)| (1 << step, per_s)).collect()
    }

    /// The concurrency at the knee, and whether it was seen.
    fn found(per_s: &[f64]) -> (u32, bool) {
        let points = curve(per_s);
        let knee = knee(&points).unwrap();
        (points[knee.index].0, knee.seen)
    }

    #[test]
    fn a_saturating_curve_has_its_knee_where_it_flattens() {
        let per_s = [1e4, 1.9e4, 3.6e4, 4.9e4, 5.0e4, 5.05e4, 5.02e4];
        assert_eq!((found(&per_s), knee(&curve(&per_s)).unwrap().best_index), ((8, true), 5));
    }

    #[test]
    fn other_curves_have_theirs_at_the_end_before_the_fall_or_at_once() {
        assert_eq!(found(&[1e4, 2e4, 4e4, 8e4]), (8, false), "it scales: none is in sight");
        assert_eq!(found(&[1e4, 1.8e4, 3e4, 2e4, 1e4]), (4, true), "it collapses");
        assert_eq!(found(&[1e4, 1.01e4, 1.0e4]), (1, true), "it is flat");
    }

    #[test]
    fn order_does_not_matter_and_bad_points_are_passed_over() {
        let mut points = curve(&[f64::NAN, 3e4, 3e4]);
        points.reverse();
        assert_eq!(knee(&points).unwrap().index, 1);
        assert_eq!(knee(&[]), None);
        assert_eq!(knee(&curve(&[0.0])), None);
        assert_eq!(found(&[7.0]), (1, false));
    }
}
