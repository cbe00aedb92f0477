//! Where a byte lies, on which track and at which angle, and how long the arm takes from track to
//! track: square root of the distance, then linear.
//!
//! Invariants: the medium is one spiral of turns; the bytes of a turn fall linearly from the first
//! to the last. A position is a number of turns from the first byte: its whole part is the track,
//! its fraction the angle. Reading on is turning on; switches of heads and tracks are inside the
//! rates. Any capacity is spread over the whole stroke: a small disk has fewer tracks, farther
//! apart. One track apart takes the data sheet's track-to-track time, the whole stroke its
//! full-stroke time, and the mean over pairs of tracks drawn evenly its average. The form follows
//! Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer, 1994); the two
//! pieces meet with the same slope, so that three figures fix the curve.

use super::{HddParameters, SeekTimes};

/// A wait of nearly a whole turn, by less than this part, is rounding: the head is there.
const HERE: f64 = 2e-5;

/// Tracks, angles and the times between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    outer_bytes_per_turn: f64,
    inner_bytes_per_turn: f64,
    turns: f64,
    turn_ns: f64,
    margin_ns: f64,
    phase: f64,
    read: SeekCurve,
    write: SeekCurve,
}

impl Geometry {
    /// Of a disk with so many bytes; at time 0 the angle `phase` (0 to 1) is under the head.
    pub(crate) fn new(parameters: &HddParameters, capacity_bytes: u64, phase: f64) -> Self {
        let turn_ns = parameters.turn_ns();
        let per_turn = |bytes_per_s: u64| bytes_per_s as f64 * turn_ns / 1e9;
        let outer_bytes_per_turn = per_turn(parameters.outer_bytes_per_s);
        let inner_bytes_per_turn = per_turn(parameters.inner_bytes_per_s);
        let mean = f64::midpoint(outer_bytes_per_turn, inner_bytes_per_turn);
        Self {
            outer_bytes_per_turn,
            inner_bytes_per_turn,
            turns: (capacity_bytes as f64 / mean).max(1.0),
            turn_ns,
            margin_ns: f64::from(parameters.choice_margin_turn_pct) / 100.0 * turn_ns,
            phase,
            read: SeekCurve::fit(parameters.seek_read),
            write: SeekCurve::fit(parameters.seek_write),
        }
    }

    /// The position of a byte, in turns.
    pub(crate) fn position(&self, at_bytes: u64) -> f64 {
        let fall = self.outer_bytes_per_turn - self.inner_bytes_per_turn;
        let part = at_bytes as f64 / self.turns;
        let outer = self.outer_bytes_per_turn;
        // The root of `outer r - fall r^2 / 2 = part` in the form that survives `fall = 0`.
        let root = (outer * outer - 2.0 * fall * part).max(0.0).sqrt();
        self.turns * 2.0 * part / (outer + root)
    }

    /// The byte at a position, rounded down.
    pub(crate) fn byte(&self, position: f64) -> u64 {
        let fall = self.outer_bytes_per_turn - self.inner_bytes_per_turn;
        let part = position / self.turns;
        (self.turns * (self.outer_bytes_per_turn * part - fall * part * part / 2.0)) as u64
    }

    /// The time for turning from one position on to a later one, in ns.
    pub(crate) fn transfer_ns(&self, from: f64, to: f64) -> f64 {
        (to - from).max(0.0) * self.turn_ns
    }

    /// How far the medium turns in a time, in turns.
    pub(crate) fn turned(&self, ns: u64) -> f64 {
        ns as f64 / self.turn_ns
    }

    fn seek_ns(&self, from: f64, to: f64, is_write: bool) -> f64 {
        let tracks = (whole(to) - whole(from)).abs();
        if tracks < 0.5 {
            return 0.0;
        }
        let curve = if is_write { &self.write } else { &self.read };
        curve.ns(((tracks - 1.0) / self.turns).min(1.0))
    }

    /// How long after `at_ns` the position comes under the head, in ns. A little less than 0 for
    /// one that is there up to rounding, so that a stream stays in step with the medium.
    fn wait_ns(&self, at_ns: f64, to: f64) -> f64 {
        let ahead = to - (at_ns / self.turn_ns + self.phase);
        let wait = ahead - whole(ahead);
        let wait = if wait > 1.0 - HERE { wait - 1.0 } else { wait };
        wait * self.turn_ns
    }

    /// Seek and rotation from `from` to `to`, for an arm that leaves at `now_ns`, in ns; as
    /// [`Geometry::wait_ns`], a little less than 0 for what is there.
    pub(crate) fn access_ns(&self, now_ns: u64, from: f64, to: f64, is_write: bool) -> f64 {
        let seek_ns = self.seek_ns(from, to, is_write);
        seek_ns + self.wait_ns(now_ns as f64 + seek_ns, to)
    }

    /// The same as firmware that chooses counts on it: a head that moves is on its track only some
    /// margin after the mean seek time, and what passes in the margin is a turn away.
    #[inline]
    pub(crate) fn expected_ns(&self, now_ns: u64, from: f64, to: f64, is_write: bool) -> f64 {
        let seek_ns = self.seek_ns(from, to, is_write);
        let sure_ns = if seek_ns > 0.0 { seek_ns + self.margin_ns } else { 0.0 };
        sure_ns + self.wait_ns(now_ns as f64 + sure_ns, to)
    }
}

/// The same as `floor` for what fits into 64 bits, without the call that the oldest processors of
/// the target need: the choice of a command comes here for every other one.
#[inline]
fn whole(turns: f64) -> f64 {
    let cut = turns as i64 as f64;
    if cut > turns { cut - 1.0 } else { cut }
}

/// A fitted curve.
#[derive(Clone, Copy, Debug)]
struct SeekCurve {
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
    use super::*;
    use crate::drive::hdd::{HDD_7K2, HDD_10K, HDD_15K};

    #[test]
    fn positions_and_bytes_are_inverse() {
        for capacity in [2 << 30, HDD_15K.capacity_bytes, HDD_7K2.capacity_bytes] {
            let geometry = Geometry::new(&HDD_7K2, capacity, 0.0);
            for part in 0..=1_000 {
                let byte = capacity / 1_000 * part;
                let back = geometry.byte(geometry.position(byte));
                assert!(back.abs_diff(byte) <= 64, "{byte} {back}");
            }
        }
    }

    #[test]
    fn the_rate_falls_from_the_outer_to_the_inner() {
        let capacity = HDD_15K.capacity_bytes;
        let geometry = Geometry::new(&HDD_15K, capacity, 0.0);
        let rate = |from: u64| {
            let to = from + (1 << 20);
            let ns = geometry.transfer_ns(geometry.position(from), geometry.position(to));
            (1 << 20) as f64 * 1e9 / ns
        };
        assert!((rate(0) / 89e6 - 1.0).abs() < 0.001);
        assert!((rate(capacity - (1 << 20)) / 57e6 - 1.0).abs() < 0.001);
    }

    #[test]
    fn a_small_disk_covers_the_whole_stroke() {
        for capacity in [1 << 30, HDD_15K.capacity_bytes] {
            let geometry = Geometry::new(&HDD_15K, capacity, 0.3);
            let last = geometry.position(capacity - 4_096);
            let access_ns = geometry.access_ns(0, 0.0, last, false);
            let turn_ns = HDD_15K.turn_ns();
            assert!((4.89e6..4.91e6 + turn_ns).contains(&access_ns), "{access_ns}");
        }
    }

    #[test]
    fn on_the_track_only_the_angle_counts() {
        let geometry = Geometry::new(&HDD_15K, 1 << 36, 0.0);
        let wait_ns = geometry.access_ns(0, 7.0, 7.25, false);
        assert!((wait_ns - 1e6).abs() < 10.0, "{wait_ns}");
        // Just missed: a whole turn.
        let wait_ns = geometry.access_ns(1_001_000, 7.0, 7.25, false);
        assert!((wait_ns - 3.999e6).abs() < 100.0, "{wait_ns}");
        assert!(geometry.access_ns(1_000_001, 7.0, 7.25, false) < 1.0);
    }

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
