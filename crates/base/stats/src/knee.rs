//! The knee of throughput over concurrency.
//!
//! Purpose: the smallest concurrency that brings (nearly) all the throughput there is; more then
//! only buys latency. Invariant: with any valid point there is a knee; whether it was really seen,
//! or the curve was still rising at its end, is said beside it.
//! It fits no model: saturating, scaling and collapsing curves are all read the same way.

/// Share of the best throughput that the knee must reach.
const NEARLY_ALL: f64 = 0.95;

/// One point of a throughput curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadPoint {
    /// Requests kept in flight.
    pub concurrency: u32,
    /// Requests completed per second.
    pub iops: f64,
    /// Their mean latency in microseconds.
    pub latency_us_mean: f64,
}

/// Where more concurrency stops to pay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Index of the knee in the points given.
    pub index: usize,
    /// Index of the point with the best throughput.
    pub best_index: usize,
    /// The knee's point.
    pub point: LoadPoint,
    /// Whether a higher concurrency was measured and brought less than 5 % more. If not, the knee
    /// lies at or beyond the last point.
    pub seen: bool,
}

/// The knee: the smallest concurrency within 5 % of the best throughput. Points may come in any
/// order. `None` without a point of positive, finite throughput.
pub fn knee(points: &[LoadPoint]) -> Option<Knee> {
    let usable = |point: &LoadPoint| point.iops.is_finite() && point.iops > 0.0;
    let mut order: Vec<usize> = (0..points.len()).filter(|&at| usable(&points[at])).collect();
    order.sort_by_key(|&at| points[at].concurrency);
    let best_index =
        order.iter().copied().max_by(|&a, &b| points[a].iops.total_cmp(&points[b].iops))?;
    let enough = NEARLY_ALL * points[best_index].iops;
    let index = order.iter().copied().find(|&at| points[at].iops >= enough)?;
    let last = order.iter().copied().next_back()?;
    Some(Knee {
        index,
        best_index,
        point: points[index],
        seen: points[index].concurrency < points[last].concurrency,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A curve from its throughput at 1, 2, 4, ...; latency follows from Little's law.
    fn curve(iops: &[f64]) -> Vec<LoadPoint> {
        let point = |(step, &iops): (usize, &f64)| {
            let concurrency = 1 << step;
            LoadPoint { concurrency, iops, latency_us_mean: f64::from(concurrency) / iops * 1e6 }
        };
        iops.iter().enumerate().map(point).collect()
    }

    #[test]
    fn a_saturating_curve_has_its_knee_where_it_flattens() {
        let points = curve(&[1e4, 1.9e4, 3.6e4, 4.9e4, 5.0e4, 5.05e4, 5.02e4]);
        let found = knee(&points).unwrap();
        assert_eq!((found.point.concurrency, found.best_index), (8, 5));
        assert!(found.seen);
        assert!((found.point.latency_us_mean - 8.0 / 4.9e4 * 1e6).abs() < 1e-9);
    }

    #[test]
    fn a_scaling_curve_has_none_in_sight() {
        let found = knee(&curve(&[1e4, 2e4, 4e4, 8e4])).unwrap();
        assert_eq!(found.point.concurrency, 8);
        assert!(!found.seen);
    }

    #[test]
    fn a_collapsing_curve_has_its_knee_before_the_fall() {
        let found = knee(&curve(&[1e4, 1.8e4, 3e4, 2e4, 1e4])).unwrap();
        assert_eq!(found.point.concurrency, 4);
        assert!(found.seen);
    }

    #[test]
    fn order_does_not_matter_and_bad_points_are_passed_over() {
        let mut points = curve(&[1e4, 3e4, 3e4]);
        points[0].iops = f64::NAN;
        points.reverse();
        assert_eq!(knee(&points).unwrap().index, 1);
        assert_eq!(knee(&[]), None);
        assert_eq!(knee(&curve(&[0.0])), None);
        assert!(!knee(&curve(&[7.0])).unwrap().seen);
    }

    #[test]
    fn a_flat_curve_has_its_knee_at_once() {
        assert_eq!(knee(&curve(&[1e4, 1.01e4, 1.0e4])).unwrap().index, 0);
    }
}
