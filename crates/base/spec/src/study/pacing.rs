//! How long a window may be, so that a budget holds enough replicates.
//!
//! Invariant: pure; what a plan says beforehand and what its runner does come from here. Replicates
//! differ by more than one long window shows, so a budget is better spent on more of them than on
//! longer ones: windows are made short enough for [`REPLICATES_AIMED_AT`].

/// Time beside each measured window, in seconds: starting and stopping workers and observers.
pub const WINDOW_OVERHEAD_S: f64 = 0.08;
/// Length of a traced pass beside its overhead, in seconds.
pub const TRACED_S: f64 = 0.3;
/// Replicates of every point that a budget should hold. At eight, Student's t costs little: the
/// interval is 0.84 standard deviations wide to each side, and 2.5 at three.
pub const REPLICATES_AIMED_AT: u32 = 8;
/// A budget makes windows shorter, down to this; after that replicates are dropped.
const WINDOW_S_MIN: f64 = 0.3;

/// What decides the length of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// Points to be measured.
    pub points: usize,
    /// Replicates that every point shall have.
    pub replicates: u32,
    /// Whether every point gets a traced pass.
    pub traced: bool,
    /// The longest that the study allows a window, in seconds.
    pub point_time_s: f64,
    /// Seconds that are left for windows and traced passes, if there is a bound.
    pub left_s: Option<f64>,
}

impl Pacing {
    /// Seconds of all traced passes.
    pub fn traced_s(&self) -> f64 {
        if self.traced { (TRACED_S + WINDOW_OVERHEAD_S) * self.points as f64 } else { 0.0 }
    }

    /// The longest that a window may be, in seconds.
    pub fn window_s(&self) -> f64 {
        let Some(left_s) = self.left_s else { return self.point_time_s };
        let wanted = f64::from(self.replicates.max(REPLICATES_AIMED_AT));
        let each_s = (left_s - self.traced_s()).max(0.0) / self.points.max(1) as f64 / wanted;
        (each_s - WINDOW_OVERHEAD_S).max(WINDOW_S_MIN).min(self.point_time_s)
    }

    /// Replicates of every point, on average, that there is time for.
    pub fn replicates_fitting(&self) -> f64 {
        let Some(left_s) = self.left_s else { return f64::from(self.replicates) };
        let round_s = (self.window_s() + WINDOW_OVERHEAD_S) * self.points.max(1) as f64;
        ((left_s - self.traced_s()) / round_s).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacing(points: usize, left_s: f64) -> Pacing {
        Pacing { points, replicates: 3, traced: true, point_time_s: 2.0, left_s: Some(left_s) }
    }

    #[test]
    fn enough_replicates_fit_into_a_budget_that_holds_them() {
        for (points, left_s) in [(10, 120.0), (166, 1080.0), (300, 1800.0)] {
            let fitting = pacing(points, left_s).replicates_fitting();
            assert!(fitting >= 7.9, "{points} points in {left_s} s: {fitting}");
        }
    }

    #[test]
    fn windows_have_bounds() {
        assert_eq!(pacing(1, 10_000.0).window_s(), 2.0);
        assert_eq!(pacing(10_000, 10.0).window_s(), WINDOW_S_MIN);
        let unbounded = Pacing { left_s: None, ..pacing(10_000, 0.0) };
        assert_eq!((unbounded.window_s(), unbounded.replicates_fitting()), (2.0, 3.0));
        assert_eq!(pacing(10_000, 10.0).replicates_fitting(), 1.0);
    }
}
