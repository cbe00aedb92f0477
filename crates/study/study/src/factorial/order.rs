//! In which order the points of a round are measured.
//!
//! Invariant: every round has its own random order, from the study's seed, so that a drift of the
//! machine falls on all points alike. Points that need the same conditions stand together, because
//! switching them takes time; the order of the conditions is random too. Pure.

use std::collections::BTreeMap;

use iostrata_plan::study::{Cell, Conditions};
use iostrata_stats::Random;

/// The order of the given points in a round.
pub(super) fn order(cells: &[Cell], chosen: &[usize], seed: u64, round: u32) -> Vec<usize> {
    let mut random = Random::of_stream(seed, u64::from(round) + 1);
    let mut together: BTreeMap<&Conditions, Vec<usize>> = BTreeMap::new();
    for &index in chosen {
        together.entry(&cells[index].conditions).or_default().push(index);
    }
    let mut groups: Vec<Vec<usize>> = together.into_values().collect();
    shuffle(&mut groups, &mut random);
    groups.iter_mut().for_each(|group| shuffle(group, &mut random));
    groups.concat()
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for last in (1..items.len()).rev() {
        let other = random.below(last as u64 + 1) as usize;
        items.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostrata_plan::IoSpec;
    use iostrata_plan::study::{Volume, VolumeKind};

    fn cell(number: usize) -> Cell {
        let memory_limit_bytes = number.is_multiple_of(3).then_some(1 << 30);
        Cell {
            id: format!("cell_{number}"),
            title: String::new(),
            parts: Vec::new(),
            levels: Vec::new(),
            volume: Volume {
                kind: VolumeKind::Raw,
                disk: None,
                bytes: None,
                count: 1,
                mkfs_options: Vec::new(),
                mount_options: Vec::new(),
            },
            conditions: Conditions { memory_limit_bytes, ..Conditions::default() },
            workload: IoSpec::new(""),
            transactions: None,
            second: None,
            readers: None,
        }
    }

    #[test]
    fn every_point_comes_once_and_conditions_stay_together() {
        let cells: Vec<Cell> = (0..30).map(cell).collect();
        let chosen: Vec<usize> = (0..30).collect();
        for round in 0..20 {
            let found = order(&cells, &chosen, 7, round);
            let mut sorted = found.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, chosen);
            let switches = found
                .windows(2)
                .filter(|two| cells[two[0]].conditions != cells[two[1]].conditions)
                .count();
            assert_eq!(switches, 1, "conditions are switched once a round");
        }
    }

    #[test]
    fn rounds_differ_and_seeds_replay() {
        let cells: Vec<Cell> = (0..30).map(cell).collect();
        let chosen: Vec<usize> = (0..30).collect();
        assert_ne!(order(&cells, &chosen, 7, 0), order(&cells, &chosen, 7, 1));
        assert_eq!(order(&cells, &chosen, 7, 1), order(&cells, &chosen, 7, 1));
        assert_ne!(order(&cells, &chosen, 8, 1), order(&cells, &chosen, 7, 1));
    }

    #[test]
    fn positions_are_spread_evenly() {
        let cells: Vec<Cell> = (0..4).map(|number| cell(number * 3)).collect();
        let chosen: Vec<usize> = (0..4).collect();
        let mut first = [0; 4];
        for round in 0..4_000 {
            first[order(&cells, &chosen, 3, round)[0]] += 1;
        }
        assert!(first.iter().all(|&count| (850..1150).contains(&count)), "{first:?}");
    }
}
