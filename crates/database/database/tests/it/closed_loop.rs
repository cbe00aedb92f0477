//! What tuning promises: after a minute the worst two seconds are near the mean, whatever the
//! device, the redo and the load do; and a server that needs nothing is left alone.

use iostrata_database::tune::Lever;
use iostrata_innodb::PolicyName;
use iostrata_sim::flush::{Demand, FlushChange, PageAccess};
use proptest::prelude::*;

use crate::rig::{PlantCase, run};
use crate::stage::is_long_form;

/// A pool that the dirty pages of 100 MB of redo nearly fill.
const SMALL_POOL: &str = "256M";
/// Flat from a second on: the worst two seconds over the mean.
const FLAT: f64 = 0.8;

#[test]
fn the_stall_is_there_without_and_gone_with_it() {
    let case = PlantCase::stall();
    let (own, tuned) = (run(&case, false), run(&case, true));
    // The model lets users go on after each batch, so its stall is milder than a server's.
    assert!(own.worst(20) < 0.3, "untuned: {}", own.worst(20));
    assert!(tuned.worst(60) > 0.9, "tuned: {}", tuned.worst(60));
    assert!(tuned.mean(60) > 0.9 * own.mean(60), "{} of {}", tuned.mean(60), own.mean(60));
    assert!(tuned.age_max(60) < 1.0, "the wall was met: {}", tuned.age_max(60));
    // Flat at a price: a page that is written earlier is changed fewer times before.
    let (own, tuned) = (own.pages_per_txn, tuned.pages_per_txn);
    assert!(tuned < 1.15 * own, "{tuned} pages written per transaction, {own} without");
}

#[test]
fn a_server_that_stalls_already_comes_to_rest() {
    // Above its async limit the server does not obey: it only can be kept from making it worse.
    for from in [60, 65, 70, 75, 80, 85] {
        let case = PlantCase { tuned_from_s: from, ..PlantCase::stall() };
        let (own, tuned) = (run(&case, false), run(&case, true));
        let minutes = [1, 2].map(|at| from as usize + 60 * at);
        let [first, second] = minutes.map(|minute| tuned.worst(minute));
        assert!(first > 0.6 && second > 0.88, "tuned from {from} s on: {first}, {second}");
        assert!(tuned.mean(minutes[0]) > 0.95 * own.mean(minutes[0]), "tuned from {from} s on");
    }
}

#[test]
fn whatever_the_redo_and_the_device_it_is_flat_after_a_minute() {
    for redo in ["100M", "500M"] {
        for iops in [800.0, 1500.0, 4000.0] {
            let case = PlantCase { redo, iops, ..PlantCase::stall() };
            let (own, tuned) = (run(&case, false), run(&case, true));
            assert!(tuned.worst(60) > FLAT, "{redo} {iops}: {}", tuned.worst(60));
            assert!(tuned.age_max(60) < 1.0, "{redo} {iops}: the wall was met");
            assert!(tuned.mean(60) > 0.9 * own.mean(60), "{redo} {iops}: {}", tuned.mean(60));
        }
    }
}

#[test]
fn a_device_that_is_halved_and_a_load_that_doubles_are_followed() {
    for (name, change) in [
        ("halved", FlushChange::IopsLimit(750.0)),
        ("doubled load", FlushChange::Load(2.0)),
        ("halved load", FlushChange::Load(0.5)),
    ] {
        let case = PlantCase { changes: vec![(180.0, change)], span_s: 480, ..PlantCase::stall() };
        let tuned = run(&case, true);
        assert!(tuned.worst(240) > FLAT, "{name}: {}", tuned.worst(240));
    }
}

#[test]
fn every_known_page_cleaner_is_led() {
    for policy in [PolicyName::PageCleaner56, PolicyName::PageCleaner57, PolicyName::PageCleaner84]
    {
        let case = PlantCase { policy, ..PlantCase::stall() };
        let (own, tuned) = (run(&case, false), run(&case, true));
        assert!(tuned.worst(90) > FLAT, "{policy}: {} of {}", tuned.worst(90), own.worst(90));
    }
}

#[test]
fn in_a_small_pool_the_limit_of_dirty_pages_goes_out_of_the_way() {
    let moved = |case: &PlantCase| {
        let tuned = run(case, true);
        let limits = tuned.moves.iter().filter(|one| one.1 == Lever::MaxDirtyPagesPct);
        limits.map(|one| one.2).collect::<Vec<f64>>()
    };
    for policy in [PolicyName::PageCleaner57, PolicyName::PageCleaner84] {
        let roomy = PlantCase { policy, span_s: 180, ..PlantCase::stall() };
        assert_eq!(moved(&roomy), [0.0; 0], "{policy}");
        let small = PlantCase { pool: SMALL_POOL, ..roomy };
        assert_eq!(moved(&small), [99.0], "{policy}");
    }
    let mariadb = PlantCase { pool: SMALL_POOL, span_s: 180, ..PlantCase::stall() };
    assert_eq!(moved(&mariadb), [0.0; 0], "it does not look at the limit");
}

#[test]
fn a_server_that_needs_nothing_is_left_alone() {
    // Few pages, changed again and again, and a redo that lasts for long.
    let access = PageAccess::HotSet { data_pct: 0.1, changes_pct: 99.0 };
    let case = PlantCase { redo: "8G", iops: 20_000.0, access, span_s: 200, ..PlantCase::stall() };
    let (own, tuned) = (run(&case, false), run(&case, true));
    assert_eq!(tuned.moves, []);
    assert_eq!(tuned.mean(0), own.mean(0));
}

#[test]
fn a_load_that_writes_little_is_left_alone() {
    for policy in [PolicyName::Mariadb, PolicyName::PageCleaner84] {
        let case = PlantCase { policy, ..PlantCase::quiet() };
        let (own, tuned) = (run(&case, false), run(&case, true));
        let (own, pages) = (own.pages_per_txn, tuned.pages_per_txn);
        assert!(pages <= 1.1 * own, "{policy}: {pages} pages per transaction, {own} without");
        assert_eq!(tuned.moves, [], "{policy}");
    }
}

#[test]
fn a_server_that_needs_few_pages_weighs_its_age_itself() {
    let changes = vec![(180.0, FlushChange::Load(0.02))];
    let demand = Demand::Rate(150.0);
    let case = PlantCase { demand, iops: 4000.0, changes, span_s: 400, ..PlantCase::stall() };
    let tuned = run(&case, true);
    assert_eq!(tuned.setting(Lever::AdaptiveFlushing, 170), Some(0.0), "{:?}", tuned.moves);
    assert_eq!(tuned.setting(Lever::AdaptiveFlushing, 220), Some(1.0), "{:?}", tuned.moves);
    assert_eq!(tuned.setting(Lever::IoCapacity, 399), Some(200.0), "it is given back");
}

#[test]
fn a_server_that_writes_more_without_having_stalled_is_given_back() {
    // Few pages take most changes; each that is written early is written once more. The first ten
    // minutes are quiet hours, in which it is seen with its own settings.
    let access = PageAccess::HotSet { data_pct: 10.0, changes_pct: 90.0 };
    let (quiet, demand) = ("[budget]\nquiet_hours_utc = [\"00:00-00:10\"]", Demand::Rate(300.0));
    let early = "set_point_pct = 10\n[budget]\nquiet_hours_utc = [\"00:00-00:10\"]";
    let policy = PolicyName::PageCleaner84;
    let stall = PlantCase { iops: 20_000.0, span_s: 1200, ..PlantCase::stall() };
    let even = PlantCase { policy, access, demand, ..stall };
    for (config, is_refused) in [(quiet, false), (early, true)] {
        let tuned = run(&PlantCase { config, ..even.clone() }, true);
        let said = format!("{config}: {:?}, {:?}", tuned.rest, tuned.moves);
        assert_eq!(tuned.moves.first().map(|one| one.0), Some(600), "{said}");
        assert_eq!(
            tuned.rest.is_some_and(|why| why.starts_with("tuned it wrote")),
            is_refused,
            "{said}"
        );
        let last = tuned.moves.iter().rfind(|one| one.1 == Lever::IoCapacity).map(|one| one.2);
        assert_eq!(last == Some(200.0), is_refused, "{said}");
    }
}

#[test]
fn neighbours_are_left_out_only_where_the_disk_is_known_not_to_seek() {
    for seeks in [None, Some(true), Some(false)] {
        let tuned = run(&PlantCase { seeks, span_s: 120, ..PlantCase::stall() }, true);
        let moved = tuned.setting(Lever::FlushNeighbors, 120).is_some();
        assert_eq!(moved, seeks == Some(false), "{seeks:?}");
        assert!(tuned.setting(Lever::IoCapacity, 120).is_some(), "it is tuned all the same");
    }
}

#[test]
fn no_more_is_asked_for_than_the_budget_has() {
    let config = "[budget]\npages_per_s_max = 300\npages_per_day_max = 20_000";
    let tuned = run(&PlantCase { config, span_s: 240, ..PlantCase::stall() }, true);
    let capacities = tuned.moves.iter().filter(|one| one.1 == Lever::IoCapacity);
    assert!(capacities.clone().all(|one| one.2 <= 300.0) && capacities.count() > 0);
    let (_, _, last) = tuned.moves.iter().rfind(|one| one.1 == Lever::IoCapacityMax).unwrap();
    assert_eq!(*last, 2000.0, "{:?}", tuned.moves);
    assert!(tuned.rest.as_ref().unwrap().starts_with("the 20000 pages"), "{:?}", tuned.rest);
}

#[test]
fn a_surge_after_a_quiet_time_meets_what_the_user_has_set() {
    for (policy, capacity) in
        [(PolicyName::Mariadb, ["200", "2000"]), (PolicyName::PageCleaner84, ["2000", "4000"])]
    {
        // From a load that is tuned to a greater one.
        let changes = vec![(150.0, FlushChange::Load(0.1)), (300.0, FlushChange::Load(1.0))];
        let stall = PlantCase { span_s: 400, iops: 6000.0, ..PlantCase::stall() };
        let case = PlantCase { policy, capacity, demand: Demand::Rate(700.0), changes, ..stall };
        let (own, tuned) = (run(&case, false), run(&case, true));
        let (own, found) = (own.tps(300..320), tuned.tps(300..320));
        assert!(found > 0.97 * own, "{policy}: {found} of {own}; {:?}", tuned.moves);
        let least = tuned.moves.iter().filter(|one| (301..310).contains(&one.0));
        let of = |lever| tuned.setting(lever, 303).unwrap();
        let own: f64 = capacity[1].parse().unwrap();
        assert!(of(Lever::IoCapacityMax) >= own, "{policy}: {:?}", least.collect::<Vec<_>>());
    }
}

#[test]
fn a_mariadb_keeps_its_reserve_while_the_age_is_low() {
    let tuned = run(&PlantCase::stall(), true);
    for (at_s, second) in tuned.seconds.iter().enumerate() {
        let share = second.checkpoint_age as f64 / tuned.wall_age as f64;
        let max = tuned.setting(Lever::IoCapacityMax, at_s as u32 + 2).unwrap_or(2000.0);
        assert!(share > 0.72 || max >= 2000.0, "{at_s}: {share} {max}");
    }
}

#[test]
fn a_redo_that_goes_round_in_no_time_is_left_alone() {
    // It goes round in eight seconds, and then in four.
    let changes = vec![(60.0, FlushChange::Load(2.0))];
    let stall = PlantCase { redo: "24M", iops: 20_000.0, span_s: 200, ..PlantCase::stall() };
    let case = PlantCase { demand: Demand::Rate(380.0), changes, ..stall };
    let (own, tuned) = (run(&case, false), run(&case, true));
    assert!(tuned.setting(Lever::IoCapacity, 60).is_some(), "it is tuned until then");
    assert_eq!(tuned.setting(Lever::IoCapacity, 90), Some(200.0), "{:?}", tuned.moves);
    assert_eq!(tuned.moves.iter().filter(|one| one.0 > 90).count(), 0, "{:?}", tuned.moves);
    assert!(tuned.mean(90) > 0.98 * own.mean(90), "{} of {}", tuned.mean(90), own.mean(90));
    let why = tuned.rest.unwrap();
    assert!(why.starts_with("the redo goes round in ") && why.contains("enlarge it to"), "{why}");
}

#[test]
fn a_server_gets_its_own_settings_back_when_the_load_has_gone() {
    let changes = vec![(120.0, FlushChange::Load(0.0))];
    let tuned = run(&PlantCase { changes, span_s: 400, ..PlantCase::stall() }, true);
    let last = |lever| tuned.moves.iter().rfind(|(_, one, _)| *one == lever).map(|one| one.2);
    assert_eq!(last(Lever::IoCapacity), Some(200.0), "{:?}", tuned.moves);
    assert_eq!(last(Lever::MaxDirtyPagesPctLwm), Some(0.0));
    assert_eq!(last(Lever::AdaptiveFlushing), Some(1.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if is_long_form() { 64 } else { 6 }))]

    #[test]
    fn whatever_goes_on_settings_stay_in_bounds_and_the_wall_is_not_met_for_long(
        iops in 1200.0_f64..6000.0,
        users in 2_u32..32,
        noise in 0.0_f64..0.5,
        half_at in 60.0_f64..120.0,
        seed in any::<u64>(),
    ) {
        let changes = vec![(half_at, FlushChange::IopsLimit(iops / 2.0))];
        let stall = PlantCase { span_s: 300, ..PlantCase::stall() };
        let demand = Demand::Users(users);
        let case = PlantCase { iops, demand, noise, changes, seed, ..stall };
        let (own, tuned) = (run(&case, false), run(&case, true));
        for (_, lever, to) in &tuned.moves {
            prop_assert!((0.0..=1e6).contains(to), "{lever:?} {to}");
        }
        let stopped = |ran: &crate::rig::Ran| {
            let still = ran.seconds[180..].iter().filter(|second| second.commits < 1.0);
            still.count()
        };
        prop_assert!(stopped(&tuned) <= stopped(&own), "{} {}", stopped(&tuned), stopped(&own));
        // Right after the halving, pages are still written at the old pace for some seconds.
        prop_assert!(tuned.worst(180) > 0.5, "{}", tuned.worst(180));
    }
}
