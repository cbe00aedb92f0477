//! What every drive promises, over any requests.

use proptest::prelude::*;

use super::*;
use crate::drive::Command;
use crate::drive::hdd::Hdd;
use crate::drive::hdd::tests::{Step, run_steps, steps};

const CAPACITY_BYTES: u64 = 1 << 30;

fn small(spindles: u32, write_cache: bool, queue_depth: u32) -> RaidParameters {
    let mut parameters = RaidParameters { spindles, queue_depth, ..RAID1_15K };
    parameters.stripe_bytes = 64 << 10;
    parameters.disk.write_cache = write_cache;
    parameters.disk.cache_bytes = 1 << 20;
    parameters.disk.write_cache_entries = 5;
    parameters
}

fn variants() -> impl Strategy<Value = RaidParameters> {
    let spindles = prop::sample::select(vec![2_u32, 4, 6]);
    let depth = prop::sample::select(vec![1_u32, 4, 64]);
    (spindles, any::<bool>(), depth)
        .prop_map(|(spindles, cache, depth)| small(spindles, cache, depth))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_request_is_done_once(
        parameters in variants(),
        steps in steps(80, 200_000),
        seed in any::<u64>(),
    ) {
        let drive = || Raid::new(parameters, CAPACITY_BYTES, seed);
        let run = || run_steps(&mut drive(), &steps, |_, _, _| {});
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn every_request_to_a_protected_array_is_done_once(
        parameters in variants(),
        cache_bytes in prop::sample::select(vec![64_u64 << 10, 1 << 20, 64 << 20]),
        steps in steps(80, 200_000),
        seed in any::<u64>(),
    ) {
        let cache = ProtectedCacheParameters { cache_bytes, ..BATTERY_512M };
        let run = || {
            let mut array = Protected::array(parameters, cache, CAPACITY_BYTES, seed);
            let done = run_steps(&mut array, &steps, |array, _, _| array.device().check_bounds());
            array.device().check_clean();
            done
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn a_write_is_done_when_both_disks_have_it() {
    let write = Step { gap_ns: 0, command: Command::WriteThrough, block: 1_000, blocks: 1 };
    let parameters = small(2, false, 8);
    let (mut both_ns, mut one_ns) = (0, 0);
    for seed in 0..200 {
        let mut array = Raid::new(parameters, CAPACITY_BYTES, seed);
        both_ns += run_steps(&mut array, &[write], |_, _, _| {})[0].at_ns;
        let mut disk = Hdd::new(parameters.disk, CAPACITY_BYTES, seed);
        one_ns += run_steps(&mut disk, &[write], |_, _, _| {})[0].at_ns;
    }
    // The later of two disks at angles of their own: two thirds of a turn, not half.
    let later_us = (both_ns - one_ns) / 200_000;
    assert!((450..1_000).contains(&later_us), "{later_us} us");
}

#[test]
fn facts_say_what_a_power_cut_could_take() {
    let volatile =
        |write_cache| Raid::new(small(4, write_cache, 8), CAPACITY_BYTES, 1).facts().volatile_bytes;
    assert_eq!((volatile(true), volatile(false)), (4 << 20, 0));
    let facts = Protected::array(small(4, true, 8), BATTERY_512M, CAPACITY_BYTES, 1).facts();
    assert_eq!((facts.volatile_bytes, facts.queue_depth), (0, 8));
    assert_eq!(facts.capacity_bytes, CAPACITY_BYTES);
}

#[test]
#[should_panic(expected = "no pairs")]
fn spindles_come_in_pairs() {
    Raid::new(small(3, true, 8), CAPACITY_BYTES, 1);
}
