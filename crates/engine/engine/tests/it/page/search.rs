//! Searching: every size, shared prefixes, equal heads.

use std::collections::BTreeSet;

use iostrata_engine::page::{PageKind, PageSize, shortest_separator};
use proptest::prelude::*;

use crate::page::twin::Twin;

fn check(size: PageSize, keys: &BTreeSet<Vec<u8>>, probes: impl Iterator<Item = Vec<u8>>) {
    let mut twin = Twin::new(size, PageKind::Leaf);
    // Neither ascending nor descending, so that prefixes shrink on the way.
    let (even, odd): (Vec<_>, Vec<_>) = keys.iter().enumerate().partition(|(at, _)| at % 2 == 0);
    for (_, key) in even.into_iter().rev().chain(odd) {
        twin.insert(key, b"v").unwrap();
    }
    for probe in probes.chain(keys.iter().cloned()) {
        let before = keys.range(..probe.clone()).count();
        let expected = if keys.contains(&probe) { Ok(before) } else { Err(before) };
        assert_eq!(twin.view().find(&probe), expected, "{probe:?} in {keys:?}");
    }
}

#[test]
fn composite_keys_of_every_size() {
    for size in PageSize::ALL {
        let keys = (0..120u32).map(|order| {
            let mut key = 17u32.to_be_bytes().to_vec();
            key.push(3);
            key.extend((order * 3).to_be_bytes());
            key
        });
        let keys: BTreeSet<Vec<u8>> = keys.chain([Vec::new()]).collect();
        let probes = keys.iter().flat_map(|key| {
            (0..=key.len()).flat_map(|cut| {
                let short = key[..cut].to_vec();
                let mut higher = short.clone();
                if let Some(last) = higher.last_mut() {
                    *last = last.wrapping_add(1);
                }
                [short, higher, [&key[..cut], &[0]].concat(), [&key[..cut], &[255, 255]].concat()]
            })
        });
        check(size, &keys, probes.collect::<Vec<_>>().into_iter());
    }
}

proptest! {
    #![proptest_config(crate::page::twin::cases(200))]

    #[test]
    fn keys_that_end_in_zeros_and_share_heads(
        keys in prop::collection::btree_set(prop::collection::vec(0u8..2, 0..10), 1..60),
        probes in prop::collection::vec(prop::collection::vec(0u8..3, 0..11), 1..60),
    ) {
        check(PageSize::MIN, &keys, probes.into_iter());
    }

    #[test]
    fn a_separator_is_short_and_tells_apart(
        one in prop::collection::vec(0u8..3, 0..8),
        other in prop::collection::vec(0u8..3, 0..8),
    ) {
        prop_assume!(one != other);
        let (below, above) = if one < other { (one, other) } else { (other, one) };
        let separator = shortest_separator(&below, &above);
        prop_assert!(below.as_slice() < separator && separator <= above.as_slice());
        prop_assert!(separator[..separator.len() - 1] <= below[..]);
    }
}
