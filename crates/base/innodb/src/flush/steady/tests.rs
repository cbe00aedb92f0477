//! The policy action by action.

use crate::Lsn;
use proptest::prelude::*;

use super::*;
use crate::flush::{AgeLimits, FlushSettings};

const LIMITS: AgeLimits =
    AgeLimits { capacity: 100_000, async_age: 60_000, sync_age: 70_000, max_age: 80_000 };

/// A pool of 10,000 frames with 1000 dirty pages that lie evenly over `age` bytes.
fn sample(now_us: u64, age: u64, ages: &[(Lsn, u32)]) -> FlushSample<'_> {
    let lsn = Lsn(1_000_000);
    let oldest = Lsn(lsn.0 - age);
    FlushSample {
        now_us,
        lsn,
        durable: lsn,
        checkpoint: oldest,
        oldest: Some(oldest),
        limits: LIMITS,
        dirty_pages: 1000,
        free_frames: 5000,
        frames: 10_000,
        age_histogram: ages,
        ..FlushSample::default()
    }
}

const EVEN: [(Lsn, u32); 1] = [(Lsn(0), 1000)];

fn is_sleep(action: Action) -> bool {
    matches!(action, Action::Sleep { .. })
}

#[test]
fn little_age_is_left_alone_and_much_is_flushed() {
    let first = |age| Steady::default().next(&sample(1000, age, &EVEN), ActionOutcome::default());
    assert!(is_sleep(first(5000)));
    assert!(matches!(first(61_000), Action::Flush { furious: false, cause: Cause::Adaptive, .. }));
    assert!(matches!(first(71_000), Action::Flush { furious: true, cause: Cause::Sync, .. }));
}

#[test]
fn without_flush_sync_nothing_is_furious() {
    let settings = FlushSettings { flush_sync: false, ..FlushSettings::default() };
    let now = FlushSample { settings, ..sample(1000, 79_000, &EVEN) };
    let action = Steady::default().next(&now, ActionOutcome::default());
    assert!(matches!(action, Action::Flush { furious: false, .. }), "{action:?}");
}

#[test]
fn without_adaptive_flushing_the_async_limit_is_the_first() {
    let settings = FlushSettings { adaptive_flushing: false, ..FlushSettings::default() };
    let first = |age| {
        let now = FlushSample { settings, ..sample(1000, age, &EVEN) };
        Steady::default().next(&now, ActionOutcome::default())
    };
    assert!(is_sleep(first(59_000)));
    assert!(matches!(first(60_000), Action::Flush { .. }));
}

#[test]
fn short_frames_come_before_redo_and_not_twice_in_a_row() {
    let mut policy = Steady::default();
    let now = FlushSample { free_frames: 100, ..sample(1000, 65_000, &EVEN) };
    let first = policy.next(&now, ActionOutcome::default());
    assert_eq!(first, Action::Lru { pages: 924 }, "up to lru_scan_depth");
    let now = FlushSample { now_us: 2000, ..now };
    let freed = ActionOutcome { flushed: 3, freed: 10, took_us: 900, ..ActionOutcome::default() };
    assert!(matches!(policy.next(&now, freed), Action::Flush { .. }));
    let now = FlushSample { now_us: 3000, ..now };
    let flushed = ActionOutcome { flushed: 64, took_us: 900, ..ActionOutcome::default() };
    assert!(matches!(policy.next(&now, flushed), Action::Lru { .. }));
}

#[test]
fn a_small_pool_keeps_an_eighth_free() {
    let now = FlushSample { frames: 64, free_frames: 2, ..sample(1000, 10, &EVEN) };
    let action = Steady::default().next(&now, ActionOutcome::default());
    assert_eq!(action, Action::Lru { pages: 6 });
}

#[test]
fn pages_that_cannot_be_written_are_not_asked_for_without_a_pause() {
    let mut policy = Steady::default();
    let mut flushes = 0;
    let mut now_us = 0;
    for _ in 0..1000 {
        now_us += 10;
        match policy.next(&sample(now_us, 75_000, &EVEN), ActionOutcome::default()) {
            Action::Flush { .. } => flushes += 1,
            Action::Sleep { until_us, .. } => now_us = until_us,
            other => panic!("{other:?}"),
        }
    }
    assert!(flushes <= 501, "{flushes} of 1000");
}

#[test]
fn an_order_that_is_being_written_is_looked_at_now_and_then() {
    let (mut policy, mut now_us, mut looks) = (Steady::default(), 1000, 0);
    let first = policy.next(&sample(now_us, 75_000, &EVEN), ActionOutcome::default());
    let Action::Flush { pages, .. } = first else { panic!("{first:?}") };
    let lanes = crate::flush::LanesUse { list_pages: pages, cold_frames: 0 };
    while now_us < 101_000 {
        let now = FlushSample { lanes, ..sample(now_us, 75_000, &EVEN) };
        let action = policy.next(&now, ActionOutcome::default());
        let Action::Sleep { until_us, .. } = action else { panic!("{action:?}") };
        (now_us, looks) = (until_us, looks + 1);
    }
    assert!((20..=2_000).contains(&looks), "{looks} looks in a tenth of a second");
}

#[test]
fn an_idle_engine_is_cleaned_with_its_share_of_io_capacity() {
    let settings =
        FlushSettings { io_capacity: 500, idle_flush_pct: 20.0, ..FlushSettings::default() };
    let mut policy = Steady::default();
    let (mut now_us, mut asked, mut flushed) = (0, 0, ActionOutcome::default());
    while now_us < 11_000_000 {
        let now = FlushSample { settings, ..sample(now_us, 100, &EVEN) };
        match policy.next(&now, flushed) {
            Action::Flush { pages, until, cause: Cause::Background, .. } => {
                assert!(until > now.lsn, "all of them");
                asked += pages;
                now_us += 10_000;
                flushed =
                    ActionOutcome { flushed: pages, took_us: 10_000, ..ActionOutcome::default() };
            }
            Action::Sleep { until_us, .. } => {
                now_us = until_us;
                flushed = ActionOutcome::default();
            }
            other => panic!("{other:?}"),
        }
    }
    assert!((900..=1050).contains(&asked), "100 per second for 10 s: {asked}");
}

#[test]
fn dirty_pages_beyond_their_share_are_flushed() {
    let flushed = |dirty_pages| {
        let mut policy = Steady::default();
        let now = |at: u64| FlushSample {
            dirty_pages,
            lsn: Lsn(1_000_000 + at),
            ..sample(at * 50_000, 10, &EVEN)
        };
        (0..10).any(|at| !is_sleep(policy.next(&now(at), ActionOutcome::default())))
    };
    assert!(!flushed(7000));
    assert!(flushed(9500));
}

#[test]
fn unsynced_redo_is_synced_in_time() {
    let mut policy = Steady::default();
    let mut syncs = Vec::new();
    for at in 0..50 {
        let now_us = at * 100_000;
        let now = FlushSample { durable: Lsn(5), ..sample(now_us, 10, &EVEN) };
        if policy.next(&now, ActionOutcome::default()) == Action::SyncRedo {
            syncs.push(now_us);
        }
    }
    assert_eq!(syncs, [1_000_000, 2_000_000, 3_000_000, 4_000_000]);
}

#[test]
fn a_checkpoint_that_frees_much_is_taken_without_writing() {
    let mut policy = Steady::default();
    let now = FlushSample { oldest: None, dirty_pages: 0, ..sample(1000, 50_000, &[]) };
    assert_eq!(policy.next(&now, ActionOutcome::default()), Action::Checkpoint);
    let again = policy.next(&FlushSample { now_us: 1100, ..now }, ActionOutcome::default());
    assert!(is_sleep(again), "one that did not help is not repeated at once: {again:?}");
}

#[test]
fn admission_follows_the_limits() {
    let mut policy = Steady::default();
    assert_eq!(policy.admit().wait_age, u64::MAX, "nothing is known before the first sample");
    policy.next(&sample(1000, 10, &EVEN), ActionOutcome::default());
    let rule = policy.admit();
    assert_eq!((rule.delay_age, rule.wait_age), (60_000, 80_000));
    assert_eq!(rule.flush_age, u64::MAX, "no user thread flushes");
}

proptest! {
    #[test]
    fn no_sample_panics(
        numbers in any::<[u64; 10]>(),
        pages in any::<[u32; 6]>(),
        shares in any::<[f64; 4]>(),
        flags in any::<[bool; 3]>(),
    ) {
        let [a, b, c, d, e, f, g, h, i, j] = numbers;
        let ages = [(Lsn(a), pages[0]), (Lsn(b), pages[1]), (Lsn(c), pages[2])];
        let settings = FlushSettings {
            io_capacity: pages[3],
            io_capacity_max: pages[4],
            flushing_avg_loops: pages[5],
            lru_scan_depth: pages[0],
            max_dirty_pages_pct: shares[0],
            max_dirty_pages_pct_lwm: shares[1],
            adaptive_flushing_lwm: shares[2],
            idle_flush_pct: shares[3],
            adaptive_flushing: flags[0],
            flush_sync: flags[1],
            flush_log_at_timeout_us: j,
            ..FlushSettings::default()
        };
        let limits = AgeLimits { capacity: d, async_age: e, sync_age: f, max_age: g };
        let mut policy = Steady::default();
        let mut last = ActionOutcome::default();
        for now_us in [h, i, h.max(i), u64::MAX, 0] {
            let now = FlushSample {
                now_us,
                lsn: Lsn(b),
                durable: Lsn(c),
                checkpoint: Lsn(d),
                oldest: flags[2].then_some(Lsn(a)),
                limits,
                dirty_pages: e,
                free_frames: f,
                frames: g,
                age_histogram: &ages,
                lru_flushed: h,
                list_flushed: i,
                settings,
                ..FlushSample::default()
            };
            let action = policy.next(&now, last);
            if let Action::Sleep { until_us, .. } = action {
                prop_assert!(until_us > now_us || now_us == u64::MAX);
            }
            let [_, flushed, freed, ..] = pages;
            last = ActionOutcome { flushed, freed, took_us: i, has_purged: flags[0] };
        }
    }
}

#[test]
fn it_tells_what_it_learned_of_the_device_and_what_holds_it_back() {
    let seen = |settings: FlushSettings, age: u64| {
        let mut policy = Steady::default();
        assert_eq!(policy.outlook(), Outlook::default(), "nothing is known before the first batch");
        let (mut now_us, mut flushed) = (0, ActionOutcome::default());
        for _ in 0..200 {
            let now = FlushSample { settings, ..sample(now_us, age, &EVEN) };
            // 2000 pages per second, whatever the length of a batch.
            match policy.next(&now, std::mem::take(&mut flushed)) {
                Action::Flush { pages, .. } => {
                    let took_us = u64::from(pages) * 500;
                    flushed = ActionOutcome { flushed: pages, took_us, ..ActionOutcome::default() };
                    now_us += took_us;
                }
                Action::Sleep { until_us, .. } => now_us = until_us,
                _ => now_us += 100,
            }
        }
        policy.outlook()
    };
    let free = FlushSettings::default();
    let Outlook { pages_per_s, bound, .. } = seen(free, 75_000);
    assert!((1900..=2100).contains(&pages_per_s), "{pages_per_s}");
    assert_eq!(bound, Bound::Device, "the redo is nearly full");
    let capped = FlushSettings { io_capacity_max: 700, flush_sync: false, ..free };
    let Outlook { pages_per_s, bound, .. } = seen(capped, 65_000);
    assert!((1900..=2100).contains(&pages_per_s), "{pages_per_s}");
    assert_eq!(bound, Bound::IoCapacityMax);
}
