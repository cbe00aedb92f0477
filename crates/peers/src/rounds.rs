//! Who runs when.
//!
//! Invariant: in every round each engine runs once, and every other round is the one before turned
//! round, so that what drifts evenly falls on all alike.

/// The order of the runners of one round, from 0.
pub fn order<T: Copy>(runners: &[T], round: usize) -> Vec<T> {
    let mut order = runners.to_vec();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_turns_round() {
        let all: String = (0..4).flat_map(|round| order(&['a', 'b', 'c'], round)).collect();
        assert_eq!(all, "abccbaabccba");
    }

    #[test]
    fn a_drift_falls_on_all_alike() {
        let runners = [0, 1, 2, 3, 4];
        let mut places = [0; 5];
        for round in 0..4 {
            for (place, runner) in order(&runners, round).into_iter().enumerate() {
                places[runner] += place;
            }
        }
        assert!(places.iter().all(|&sum| sum == places[0]), "{places:?}");
    }
}
