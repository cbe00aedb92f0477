//! How long windows are and how many rounds a budget holds.
//!
//! Invariant: pure; what a plan says beforehand and what its runner does come from here, so that a
//! study takes as long as its plan. Replicates differ by more than one long window shows, so a
//! budget is better spent on more of them than on longer ones: windows are made short enough for
//! [`REPLICATES_AIMED_AT`].

/// Time around each measured window: starting and stopping workers and observers. The first round
/// of a study shows the real value. In seconds.
const WINDOW_OVERHEAD_S: f64 = 0.08;
/// The same of transactions: the database is opened and closed.
const DATABASE_OVERHEAD_S: f64 = 4.0;
/// Before a window of transactions the redo goes round. That is expected to take as long as the
/// window, and takes this many windows at most.
pub const WARM_UP_WINDOWS_MAX: f64 = 3.0;
/// The same of a server beyond that: it is started under the point's conditions, and shut down with
/// every dirty page written.
const SERVER_OVERHEAD_S: f64 = 4.0;
/// Length of a traced pass without its overhead, in seconds.
pub const TRACED_S: f64 = 0.3;
/// Replicates of every point that a budget should hold. At eight, Student's t costs little: the
/// interval is 0.84 standard deviations wide to each side, and 2.5 at three.
pub const REPLICATES_AIMED_AT: u32 = 8;
/// A budget makes windows shorter, down to this; after that replicates are dropped.
const WINDOW_S_MIN: f64 = 0.3;
/// The same of transactions: a shorter one is not worth its warm-up.
const DATABASE_WINDOW_S_MIN: f64 = 5.0;

/// What decides the length of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// Points to be measured.
    pub points: usize,
    /// Points of them with a warm-up before each window.
    pub warmed_points: usize,
    /// Points that are on servers.
    pub server_points: usize,
    /// Replicates that every point shall have.
    pub replicates: u32,
    /// More are never spent on one point.
    pub replicates_max: u32,
    /// Whether every point gets a traced pass.
    pub traced: bool,
    /// The longest that the study allows a window, in seconds.
    pub point_time_s: f64,
    /// Seconds that are left for windows and traced passes, if bounded.
    pub left_s: Option<f64>,
}

impl Pacing {
    /// Seconds of all traced passes.
    pub fn traced_s(&self) -> f64 {
        let traced = self.points.saturating_sub(self.warmed_points);
        if self.traced { (TRACED_S + WINDOW_OVERHEAD_S) * traced as f64 } else { 0.0 }
    }

    fn warmed_share(&self) -> f64 {
        self.warmed_points as f64 / self.points.max(1) as f64
    }

    /// The overhead of a window that does not depend on its length, in seconds.
    pub fn overhead_s(&self) -> f64 {
        let server_share = self.server_points as f64 / self.points.max(1) as f64;
        let of_databases = DATABASE_OVERHEAD_S * self.warmed_share();
        WINDOW_OVERHEAD_S + of_databases + SERVER_OVERHEAD_S * server_share
    }

    /// Replicates that windows are made short enough for.
    fn replicates_aimed_at(&self) -> u32 {
        REPLICATES_AIMED_AT.min(self.replicates_max).max(self.replicates)
    }

    /// Length of a window, in seconds.
    pub fn window_s(&self) -> f64 {
        let Some(left_s) = self.left_s else { return self.point_time_s };
        let windows = self.points.max(1) as f64 * f64::from(self.replicates_aimed_at());
        let each_s = (left_s - self.traced_s()) / windows;
        self.window_within((each_s - self.overhead_s()) / (1.0 + self.warmed_share()), 0.0)
    }

    /// Length of a window where each may take `each_s` with its overhead.
    fn window_within(&self, each_s: f64, overhead_s: f64) -> f64 {
        let least_s = if self.warmed_points > 0 { DATABASE_WINDOW_S_MIN } else { WINDOW_S_MIN };
        (each_s - overhead_s).max(least_s).min(self.point_time_s)
    }

    /// The same once `done` rounds have shown the overhead of a window and `left_s` are left for
    /// the others.
    pub fn window_after_s(&self, done: u32, left_s: f64, overhead_s: f64) -> f64 {
        let rounds = self.replicates_aimed_at().saturating_sub(done).max(1);
        let windows = self.points.max(1) as f64 * f64::from(rounds);
        self.window_within(left_s / windows, overhead_s)
    }

    /// Replicates of every point, on average, that there is time for: all requested ones without a
    /// bound, and never more than windows are made for.
    pub fn replicates_fitting(&self) -> f64 {
        let Some(left_s) = self.left_s else { return f64::from(self.replicates) };
        let fitting = (left_s - self.traced_s()) / self.round_s();
        // Windows that were made to fit do fit, however the division rounds.
        let fitting =
            if (fitting - fitting.round()).abs() < 1e-9 { fitting.round() } else { fitting };
        fitting.clamp(1.0, f64::from(self.replicates_aimed_at()))
    }

    /// Seconds of all rounds that fit into the time.
    pub fn rounds_s(&self) -> f64 {
        self.replicates_fitting() * self.round_s()
    }

    /// Seconds that a budget leaves for the rounds. Where the overhead of a window is longer than
    /// expected, all of them are used before a replicate is dropped.
    pub fn left_for_rounds_s(&self) -> Option<f64> {
        self.left_s.map(|left_s| left_s - self.traced_s())
    }

    /// Seconds of the same rounds where every warm-up takes as long as it may.
    pub fn rounds_s_max(&self) -> f64 {
        let longer_s = self.warmed_points as f64 * (WARM_UP_WINDOWS_MAX - 1.0) * self.window_s();
        let all_s = self.replicates_fitting() * (self.round_s() + longer_s);
        // The first round is measured whatever the budget is.
        self.left_for_rounds_s().map_or(all_s, |left_s| all_s.min(left_s).max(self.rounds_s()))
    }

    /// The expected overhead of a window, the warm-up included, in seconds.
    pub fn beside_s(&self) -> f64 {
        self.overhead_s() + self.warmed_share() * self.window_s()
    }

    /// Seconds of one round.
    pub fn round_s(&self) -> f64 {
        (self.window_s() + self.beside_s()) * self.points.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacing(points: usize, left_s: f64) -> Pacing {
        Pacing {
            points,
            warmed_points: 0,
            server_points: 0,
            replicates: 3,
            replicates_max: 30,
            traced: true,
            point_time_s: 2.0,
            left_s: Some(left_s),
        }
    }

    #[test]
    fn enough_replicates_fit_into_a_budget_that_holds_them() {
        for (points, left_s) in [(10, 120.0), (166, 1080.0), (300, 1800.0)] {
            let fitting = pacing(points, left_s).replicates_fitting();
            assert!(fitting >= 7.9, "{points} points in {left_s} s: {fitting}");
        }
    }

    #[test]
    fn rounds_end_with_their_budget_or_with_their_replicates() {
        let within = pacing(100, 1000.0);
        let whole = within.rounds_s() + within.traced_s();
        assert!((whole - 1000.0).abs() < 1.0, "the budget is used: {whole}");
        let few = pacing(4, 1000.0);
        assert_eq!((few.window_s(), few.replicates_fitting()), (2.0, 8.0));
        assert!(few.rounds_s() < 70.0, "no more than eight replicates are waited for");
        assert!(few.left_for_rounds_s().unwrap() > 990.0, "unless they take longer than expected");
        assert_eq!(few.rounds_s_max(), few.rounds_s(), "nothing is warmed up");
        let three = Pacing { replicates_max: 3, ..few };
        assert_eq!(three.replicates_fitting(), 3.0);
    }

    #[test]
    fn a_window_of_transactions_is_worth_its_warm_up() {
        let of = |warmed_points| Pacing { warmed_points, point_time_s: 20.0, ..pacing(6, 400.0) };
        assert_eq!(of(6).window_after_s(1, 20.0, 34.0), DATABASE_WINDOW_S_MIN);
        assert_eq!(of(0).window_after_s(1, 20.0, 34.0), WINDOW_S_MIN);
        let short = Pacing { point_time_s: 2.0, ..of(6) };
        assert_eq!(short.window_after_s(1, 20.0, 34.0), 2.0, "as long as was asked for at most");
    }

    #[test]
    fn windows_give_way_to_what_is_beside_them() {
        let pacing = pacing(100, 1000.0);
        // After one of eight rounds, with 0.5 s of overhead per window.
        let window_s = pacing.window_after_s(1, 840.0, 0.5);
        assert!((100.0 * 7.0 * (window_s + 0.5) - 840.0).abs() < 1e-6, "{window_s}");
        assert_eq!(pacing.window_after_s(7, 10.0, 0.5), WINDOW_S_MIN);
    }

    #[test]
    fn transactions_have_time_to_warm_up() {
        let warmed = Pacing {
            points: 6,
            warmed_points: 6,
            replicates_max: 3,
            point_time_s: 30.0,
            ..pacing(6, 900.0)
        };
        assert!((warmed.rounds_s() - 900.0).abs() < 1.0, "{}", warmed.rounds_s());
        assert!((20.0..25.0).contains(&warmed.window_s()), "{}", warmed.window_s());
        assert_eq!(warmed.traced_s(), 0.0, "they have no traced pass");
    }

    #[test]
    fn warm_ups_may_take_longer_than_expected_but_not_longer_than_the_budget() {
        let short = Pacing {
            warmed_points: 6,
            replicates_max: 3,
            point_time_s: 5.0,
            traced: false,
            ..pacing(6, 900.0)
        };
        assert!((short.rounds_s_max() - short.rounds_s() - 3.0 * 6.0 * 10.0).abs() < 1e-6);
        let bounded = Pacing { left_s: Some(300.0), ..short };
        assert_eq!(bounded.rounds_s_max(), 300.0);
    }

    #[test]
    fn servers_take_time_to_start_and_to_end() {
        let engines = Pacing { warmed_points: 6, ..pacing(6, 400.0) };
        let servers = Pacing { server_points: 6, ..engines };
        assert_eq!(servers.overhead_s() - engines.overhead_s(), SERVER_OVERHEAD_S);
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
