//! Server settings of which one bounds another, and the order in which they are set.
//!
//! Invariant: at no moment between two steps is a lower one above its bound. MySQL cuts the value
//! that is set, MariaDB moves the other variable; in this order neither has a reason to.

use std::collections::BTreeSet;

use crate::variables::{ServerSetting, ServerValues};

/// The lower one, and what bounds it from above.
pub(crate) const BOUNDED: [(&str, &str); 2] = [
    ("innodb_io_capacity", "innodb_io_capacity_max"),
    ("innodb_max_dirty_pages_pct_lwm", "innodb_max_dirty_pages_pct"),
];

/// The other one of a pair.
fn partner(name: &str) -> Option<&'static str> {
    BOUNDED.into_iter().find_map(|(low, high)| match name {
        _ if name == low => Some(high),
        _ if name == high => Some(low),
        _ => None,
    })
}

/// These names and those that setting them may move.
pub(crate) fn with_partners<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    names.into_iter().flat_map(|name| [Some(name), partner(name)]).flatten().collect()
}

/// What of `wanted` has to be set, and in which order: bounds that rise, what they bound, bounds
/// that fall; then the rest as it is given.
pub(crate) fn steps(now: &ServerValues, wanted: &[ServerSetting]) -> Vec<ServerSetting> {
    let is_new =
        |one: &&ServerSetting| now.get(&one.name).is_none_or(|value| !is_same(value, &one.value));
    let mut steps: Vec<ServerSetting> = wanted.iter().filter(is_new).cloned().collect();
    steps.sort_by_key(|one| {
        let rises = || now.get(&one.name).is_some_and(|value| is_below(value, &one.value));
        match BOUNDED.into_iter().find(|(low, high)| one.name == *low || one.name == *high) {
            None => 3,
            Some((low, _)) if one.name == low => 1,
            Some(_) if rises() => 0,
            Some(_) => 2,
        }
    });
    steps
}

/// Whether two texts are one value: `0.001` is `0.001000`.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let whole = |text: &str| text.parse::<i128>().ok();
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one == other,
        _ => match (one.parse::<f64>(), other.parse::<f64>()) {
            (Ok(one), Ok(other)) => one == other,
            _ => one == other,
        },
    }
}

/// Whether both are numbers and the first is less.
pub(crate) fn is_below(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one < other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of(now: [&str; 4], wanted: [&str; 4]) -> Vec<String> {
        let names = BOUNDED.map(|(low, high)| [low, high]).concat();
        let now = names.iter().zip(now).map(|(name, value)| ((*name).into(), value.into()));
        let wanted: Vec<ServerSetting> = names
            .iter()
            .zip(wanted)
            .map(|(name, value)| ServerSetting::new(*name, value))
            .collect();
        let steps = steps(&now.collect(), &wanted);
        steps.iter().map(|one| format!("{}={}", &one.name["innodb_".len()..], one.value)).collect()
    }

    #[test]
    fn bounds_rise_first_and_fall_last() {
        assert_eq!(
            steps_of(["200", "2000", "0", "90"], ["5000", "9000", "0.000", "5"]),
            ["io_capacity_max=9000", "io_capacity=5000", "max_dirty_pages_pct=5"]
        );
        assert_eq!(
            steps_of(["5000", "9000", "10", "90"], ["200", "2000", "0.001", "5.000000"]),
            [
                "io_capacity=200",
                "max_dirty_pages_pct_lwm=0.001",
                "io_capacity_max=2000",
                "max_dirty_pages_pct=5.000000"
            ]
        );
        assert!(
            steps_of(
                ["1", "18446744073709551615", "0", "9"],
                ["1", "18446744073709551615", "0.0", "9.0"]
            )
            .is_empty()
        );
    }

    #[test]
    fn large_numbers_are_told_apart() {
        assert!(!is_same("18446744073709551615", "18446744073709551614"));
        assert!(is_same("0.001", "0.001000") && !is_same("ON", "OFF") && is_same("ON", "ON"));
        assert!(is_below("200", "1000") && !is_below("ON", "1000"));
    }

    #[test]
    fn what_may_move_is_named() {
        let names = with_partners(["innodb_io_capacity", "innodb_flush_neighbors"]);
        let all = ["innodb_flush_neighbors", "innodb_io_capacity", "innodb_io_capacity_max"];
        assert_eq!(names, BTreeSet::from(all));
    }
}
