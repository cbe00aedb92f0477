//! Little's law: requests in flight are their rate times their mean latency.
//!
//! Purpose: a rate and a latency that contradict each other are found before anyone reads them.
//! Invariant: what a meter counted right is never refused. Of requests that start and end within a
//! window, the latencies add up to no more than the requests in flight times its length; where the
//! window's start was moved, a request may reach back beyond it, by its latency.
//! For service latencies of requests that wait for each other. A response latency counts from a
//! schedule, and any number of requests may be late.

/// What rounding and intervals of the two may add, as a share.
const TOLERANCE: f64 = 0.05;

/// Mean number of requests in flight.
pub fn in_flight(rate_per_s: f64, latency_mean_us: f64) -> f64 {
    rate_per_s * latency_mean_us * 1e-6
}

/// Whether so many in flight on average are possible where at most `in_flight_max` were at a time,
/// in a window of `window_s` whose slowest request took `latency_max_us`. Give a `latency_max_us`
/// of 0 for a window that began before its first request.
pub fn is_possible_in_window(
    in_flight: f64,
    in_flight_max: f64,
    latency_max_us: f64,
    window_s: f64,
) -> bool {
    let reaching_back = latency_max_us * 1e-6 / window_s.max(f64::MIN_POSITIVE);
    in_flight <= in_flight_max * (1.0 + TOLERANCE + reaching_back)
}

/// Whether a rate and a mean latency can both be true where at most `in_flight_max` requests were
/// in flight at a time.
pub fn is_possible(rate_per_s: f64, latency_mean_us: f64, in_flight_max: f64) -> bool {
    in_flight(rate_per_s, latency_mean_us) <= in_flight_max * (1.0 + TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Measured, Verdicts, combine, combine_weighted};

    #[test]
    fn a_committer_alone_is_not_in_flight_eight_times() {
        assert!((in_flight(29_700.0, 291.0) - 8.64).abs() < 0.01);
        assert!(!is_possible(29_700.0, 291.0, 1.0));
        assert!(is_possible(29_700.0, 33.5, 1.0));
        assert!(!is_possible(29_700.0, 291.0, 8.0) && is_possible(29_700.0, 291.0, 9.0));
    }

    #[test]
    fn a_request_may_reach_back_beyond_the_start_of_a_window() {
        // One stalled for 2 s, 1.5 s of them cut off: a window of 1 s holds 2.5 s of waiting.
        assert!(is_possible_in_window(2.5, 1.0, 2e6, 1.0));
        assert!(!is_possible_in_window(2.5, 1.0, 0.0, 1.0));
        assert!(!is_possible_in_window(3.2, 1.0, 2e6, 1.0));
    }

    #[test]
    fn replicates_weighted_by_their_requests_keep_the_law() {
        // One request at a time: three calm replicates and one that stood still most of the time.
        let latencies_us = [25.0, 24.0, 26.0, 1_080.0];
        let rates = latencies_us.map(|us| 1e6 / us);
        let bare = |value: f64| Measured::without_interval(value, 40, Verdicts::none());
        let rate = combine(&rates.map(bare)).unwrap().value;
        let plain = combine(&latencies_us.map(bare)).unwrap().value;
        assert!(!is_possible(rate, plain, 1.0), "{rate} and {plain} are {}", rate * plain * 1e-6);
        let weighed: Vec<(f64, Measured)> = rates.into_iter().zip(latencies_us.map(bare)).collect();
        let mean = combine_weighted(&weighed).unwrap();
        assert!((in_flight(rate, mean.value) - 1.0).abs() < 1e-9, "{rate} and {mean:?}");
        let [low, high] = mean.ci95.unwrap();
        assert!(low < 25.0 && high > mean.value, "{mean:?}");
    }
}
