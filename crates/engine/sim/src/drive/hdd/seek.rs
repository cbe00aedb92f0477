//! How long the arm takes from track to track: square root of the distance, then linear.
//!
//! Invariant: one track apart takes the data sheet's track-to-track time, the whole stroke its
//! full-stroke time, and the mean over pairs of tracks drawn evenly its average. The form is that
//! of Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer, 1994); the two
//! pieces meet with the same slope, so that three figures fix the curve.

use super::parameters::SeekTimes;

/// A fitted curve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeekCurve {
    shortest_ns: f64,
    root_ns: f64,
    knee: f64,
    slope_ns: f64,
}

/// Mean over pairs of a curve from 0 to 1 that is a root up to `knee` and then its tangent. The
/// distance of an even pair has the density `2 (1 - d)`.
fn mean_over_pairs(knee: f64) -> f64 {
    let root = 2.0 * knee.sqrt() / (1.0 + knee);
    let slope = root / (2.0 * knee.sqrt());
    let at_knee = root * knee.sqrt();
    let root_part = root * (4.0 / 3.0 * knee.powf(1.5) - 4.0 / 5.0 * knee.powf(2.5));
    let rest = 1.0 - knee;
    root_part + at_knee * rest.powi(2) + slope * rest.powi(3) / 3.0
}

impl SeekCurve {
    /// The curve through a data sheet's figures. Averages that no such curve has (below a third or
    /// above 8/15 of the way from the shortest to the longest) give the nearest one.
    pub(crate) fn fit(times: SeekTimes) -> Self {
        let shortest_ns = f64::from(times.track_to_track_us) * 1e3;
        let span_ns = f64::from(times.full_stroke_us) * 1e3 - shortest_ns;
        let wanted = (f64::from(times.average_us) * 1e3 - shortest_ns) / span_ns;
        let (mut low, mut high) = (1e-9, 1.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if mean_over_pairs(middle) < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        let root = 2.0 * low.sqrt() / (1.0 + low);
        Self {
            shortest_ns,
            root_ns: root * span_ns,
            knee: low,
            slope_ns: root / (2.0 * low.sqrt()) * span_ns,
        }
    }

    /// The time for a distance beyond the first track, as a part of the whole stroke, in ns.
    #[inline]
    pub(crate) fn ns(&self, distance: f64) -> f64 {
        if distance <= self.knee {
            self.shortest_ns + self.root_ns * distance.sqrt()
        } else {
            let at_knee_ns = self.root_ns * self.knee.sqrt();
            self.shortest_ns + at_knee_ns + self.slope_ns * (distance - self.knee)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parameters::{HDD_7K2, HDD_10K, HDD_15K};
    use super::*;

    fn curves() -> Vec<SeekTimes> {
        [HDD_7K2, HDD_10K, HDD_15K].iter().flat_map(|p| [p.seek_read, p.seek_write]).collect()
    }

    #[test]
    fn the_ends_are_those_of_the_data_sheet() {
        for times in curves() {
            let curve = SeekCurve::fit(times);
            assert!((curve.ns(0.0) / 1e3 - f64::from(times.track_to_track_us)).abs() < 1.0);
            assert!((curve.ns(1.0) / 1e3 - f64::from(times.full_stroke_us)).abs() < 1.0);
        }
    }

    #[test]
    fn the_mean_over_pairs_is_that_of_the_data_sheet() {
        for times in curves() {
            let curve = SeekCurve::fit(times);
            let tracks: i32 = 1_000;
            let mut sum_ns = 0.0;
            for from in 0..tracks {
                for to in 0..tracks {
                    let apart = f64::from((from - to).abs()) / f64::from(tracks);
                    sum_ns += curve.ns(apart);
                }
            }
            let mean_us = sum_ns / f64::from(tracks * tracks) / 1e3;
            let ratio = mean_us / f64::from(times.average_us);
            assert!((0.98..=1.02).contains(&ratio), "{times:?}: {mean_us:.0} us");
        }
    }

    #[test]
    fn farther_takes_longer_and_the_pieces_meet() {
        for times in curves() {
            let curve = SeekCurve::fit(times);
            let all: Vec<f64> = (0..=10_000).map(|i| curve.ns(f64::from(i) / 10_000.0)).collect();
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]));
            let step = curve.ns(curve.knee + 1e-9) - curve.ns(curve.knee - 1e-9);
            assert!(step.abs() < 10.0, "{step}");
        }
    }
}
