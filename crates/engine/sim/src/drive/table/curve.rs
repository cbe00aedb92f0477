//! Time per request over requests in flight, as it was measured at some depths.

/// Points by rising depth; at least one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// From depths and rates per second; rates that are not above 0 are left out. `None` without
    /// any.
    pub(super) fn new(points: impl IntoIterator<Item = (u32, f64)>) -> Option<Self> {
        let mut points: Vec<(f64, f64)> = points
            .into_iter()
            .filter(|(depth, rate)| *depth > 0 && rate.is_finite() && *rate > 0.0)
            .map(|(depth, rate)| (f64::from(depth), rate))
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        (!points.is_empty()).then_some(Self(points))
    }

    /// Time between two that are done, in ns, with so many in flight: the measured one at measured
    /// depths. Between two depths the rate follows the logarithm of the depth; below the first it
    /// falls with the depth, beyond the last it stays.
    pub(super) fn each_ns(&self, depth: u32) -> f64 {
        1e9 / self.rate(f64::from(depth.max(1)))
    }

    /// Deepest point.
    pub(super) fn depth_max(&self) -> u32 {
        self.0.last().map_or(1, |(depth, _)| *depth as u32)
    }

    fn rate(&self, depth: f64) -> f64 {
        let above = self.0.partition_point(|(known, _)| *known < depth);
        match (above.checked_sub(1).map(|below| self.0[below]), self.0.get(above)) {
            (Some((low, low_rate)), Some((high, high_rate))) => {
                let share = (depth / low).ln() / (high / low).ln();
                low_rate + share * (high_rate - low_rate)
            }
            (None, Some((first, rate))) => rate * depth / first,
            (Some((_, rate)), None) => rate,
            (None, None) => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_passes_through_its_points() {
        let curve = Curve::new([(8, 40_000.0), (2, 20_000.0), (4, 0.0)]).unwrap();
        assert_eq!(curve.each_ns(2), 50_000.0);
        assert_eq!(curve.each_ns(8), 25_000.0);
        assert_eq!(curve.each_ns(1), 100_000.0, "half the depth, half the rate");
        assert_eq!(curve.each_ns(64), 25_000.0);
        assert!((curve.each_ns(4) - 1e9 / 30_000.0).abs() < 1e-6, "half way in logarithms");
        assert_eq!(curve.depth_max(), 8);
        assert_eq!(Curve::new([(1, f64::NAN), (0, 5.0)]), None);
    }
}
