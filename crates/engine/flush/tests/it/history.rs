//! The policies of history in a closed loop, and with samples that no engine gives.

use iostrata_flush::{
    Action, AgeLimits, Finished, FlushPolicy, FlushSample, FlushSettings, Ladder, LanesUse, history,
};
use iostrata_page::Lsn;
use iostrata_settings::FlushWriteLimit;
use proptest::prelude::*;

use crate::fluid::{Fluid, Load, Seen};

const MIB: u64 = 1 << 20;
const FILES: u64 = 1 << 30;

type Make = fn() -> Box<dyn FlushPolicy>;

const ALL: [(&str, Make); 12] = [
    ("fixed-100", history::fixed_100),
    ("io-capacity", history::io_capacity),
    ("reflex", history::reflex),
    ("estimate", history::estimate),
    ("keep-average", history::keep_average),
    ("adaptive", history::adaptive),
    ("lsn-age", history::lsn_age),
    ("page-cleaner-56", history::page_cleaner_56),
    ("page-cleaner-57", history::page_cleaner_57),
    ("page-cleaner-84", history::page_cleaner_84),
    ("mariadb", history::mariadb),
    ("percona-high-checkpoint", history::percona_high_checkpoint),
];

fn settings(io_capacity: u32) -> FlushSettings {
    FlushSettings { io_capacity, io_capacity_max: io_capacity * 10, ..FlushSettings::default() }
}

/// 10 MiB of redo and 500 dirty pages a second; the device could write five times that.
fn load(io_capacity: u32) -> Load {
    Load {
        redo_bytes_per_s: 10 * MIB,
        pages_per_mib: 50.0,
        device_pages_per_s: 2500.0,
        file_bytes: FILES,
        frames: 200_000,
        commits: true,
        settings: settings(io_capacity),
    }
}

/// The least redo of a second after the first so many, as a share of what was offered.
fn worst(seen: &Seen, from: usize) -> f64 {
    let least = seen.redo[from..].iter().min().copied().unwrap_or(0);
    least as f64 / (10 * MIB) as f64
}

/// Five minutes, and a device that is slow for 15 seconds after them.
fn with_a_slow_spell(policy: Box<dyn FlushPolicy>, load: Load) -> (Seen, Seen) {
    let mut fluid = Fluid::new(load, policy);
    let before = fluid.run(300).clone();
    fluid.device(150.0);
    (before, fluid.run(15).clone())
}

#[test]
fn adaptive_runs_into_its_wall_where_its_cap_is_below_the_need() {
    let (before, after) = with_a_slow_spell(history::adaptive(), load(200));
    assert!(before.user_flushes > 100, "users flush: {}", before.user_flushes);
    let async_age = Ladder::mysql_5(FILES, 10.0).async_age;
    assert!(before.age_max > async_age, "{} of {async_age}", before.age_max);
    assert!(after.furious > 0, "a slow spell makes them wait");
    assert!(worst(&after, 300) < 0.5, "{}", worst(&after, 300));
    let (before, after) = with_a_slow_spell(history::adaptive(), load(2000));
    assert_eq!((before.user_flushes, after.furious), (0, 0), "with a cap above the need");
    assert!(worst(&after, 30) > 0.99);
}

#[test]
fn estimate_has_no_cap_and_meets_no_wall_at_the_same_setting() {
    let (before, after) = with_a_slow_spell(history::estimate(), load(200));
    assert_eq!((before.user_flushes, after.furious, after.walls), (0, 0, 0));
    assert!(worst(&after, 0) > 0.99);
    let written = before.written[200..].iter().sum::<f64>() / 100.0;
    assert!(written > 400.0, "{written} pages per second beyond io_capacity");
    // The limit is apart from the policy: with one it becomes like the other.
    let write_limit = FlushWriteLimit::Capped;
    let settings = FlushSettings { write_limit, ..settings(200) };
    let (before, after) = with_a_slow_spell(history::estimate(), Load { settings, ..load(200) });
    assert!(before.user_flushes > 100 && after.furious > 0, "capped by io_capacity");
}

#[test]
fn a_raised_limit_reaches_the_need() {
    let write_limit = FlushWriteLimit::AutoRaised;
    let settings = FlushSettings { write_limit, ..settings(200) };
    let mut fluid = Fluid::new(Load { settings, ..load(200) }, history::adaptive());
    let early = fluid.run(700).clone();
    assert!(early.user_flushes > 0, "the setting alone is below the need");
    let seen = fluid.run(200).clone();
    assert_eq!(seen.user_flushes, early.user_flushes, "users flush no more");
    let late = seen.written[700..].iter().sum::<f64>() / 200.0;
    assert!(late > 450.0, "{late} pages per second in the end, by the cleaner");
    assert!(worst(&seen, 700) > 0.99, "{}", worst(&seen, 700));
}

#[test]
fn mariadb_with_a_low_water_mark_of_0_sleeps_up_to_its_async_limit() {
    let async_age = Ladder::mariadb(FILES, 10.0).async_age;
    let mut fluid = Fluid::new(load(200), history::mariadb());
    let mut at_first_write = None;
    for _ in 0..200 {
        let age = fluid.age();
        let written: f64 = fluid.run(1).written.iter().sum();
        if written > 0.0 && at_first_write.is_none() {
            at_first_write = Some(age);
        }
    }
    let age = at_first_write.unwrap();
    assert!(age + 20 * MIB >= async_age, "it woke at {age} of {async_age}");
    let lwm = FlushSettings { max_dirty_pages_pct_lwm: 0.001, ..settings(200) };
    let seen = Fluid::new(Load { settings: lwm, ..load(200) }, history::mariadb()).run(30).clone();
    assert!(seen.written[..30].iter().sum::<f64>() > 1000.0, "and at once with another");
}

#[test]
fn page_cleaner_56_needs_its_averages_first() {
    let seen = Fluid::new(load(200), history::page_cleaner_56()).run(60).clone();
    assert_eq!(seen.written[..29].iter().sum::<f64>(), 0.0, "nothing for 30 passes");
    assert!(seen.written[32..].iter().sum::<f64>() > 100.0, "{:?}", seen.written);
}

#[test]
fn a_lone_user_is_taken_for_idle_by_the_old_loops_and_not_by_lsn_age() {
    // One transaction lasts longer than a tick: redo comes, and no commit.
    let lone = Load { commits: false, ..load(200) };
    let written = |policy: Box<dyn FlushPolicy>| {
        let seen = Fluid::new(lone, policy).run(10).clone();
        seen.written.iter().sum::<f64>() / 10.0
    };
    let old = written(history::adaptive());
    assert!(old > 450.0, "{old} pages per second: everything, at once, beyond io_capacity");
    let new = written(history::lsn_age());
    assert!(new < 50.0, "{new} pages per second below a tenth of the redo");
}

#[test]
fn nobody_makes_redo_beyond_the_wall_whatever_the_device_does() {
    for (name, make) in ALL {
        let slow = Load { device_pages_per_s: 100.0, ..load(200) };
        let mut fluid = Fluid::new(slow, make());
        let seen = fluid.run(400);
        let most = Ladder::mysql_8(FILES, 10.0).wait_age.max(Ladder::mysql_5(FILES, 10.0).wait_age);
        assert!(seen.age_max <= most + MIB, "{name}: {} of {most}", seen.age_max);
        let late: u64 = seen.redo[300..].iter().sum();
        assert!(late > 0, "{name} stops its users for good");
        assert!(late < 100 * 4 * MIB, "{name}: the device bears 2 MiB per second, not {late}");
    }
}

proptest! {
    #[test]
    fn no_sample_panics_and_no_sleep_is_of_no_time(
        numbers in any::<[u64; 14]>(),
        small in any::<bool>(),
        pages in any::<[u32; 7]>(),
        shares in any::<[f64; 4]>(),
        flags in any::<[bool; 4]>(),
        limit in 0_usize..4,
    ) {
        let numbers = numbers.map(|number| if small { number % 4096 } else { number });
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = numbers;
        let ages = [(Lsn(a), pages[0]), (Lsn(b), pages[1]), (Lsn(c), pages[2])];
        use FlushWriteLimit::{AutoRaised, Capped, Free, Policy};
        let settings = FlushSettings {
            io_capacity: pages[3],
            io_capacity_max: pages[4],
            flushing_avg_loops: pages[5],
            lru_scan_depth: pages[6],
            max_dirty_pages_pct: shares[0],
            max_dirty_pages_pct_lwm: shares[1],
            adaptive_flushing_lwm: shares[2],
            idle_flush_pct: shares[3],
            adaptive_flushing: flags[0],
            flush_sync: flags[1],
            flush_log_at_timeout_us: j,
            purge_threads: u32::from(flags[3]),
            doublewrite: flags[2],
            write_limit: [Policy, Capped, Free, AutoRaised][limit],
        };
        let limits = AgeLimits { capacity: d, async_age: e, sync_age: f, max_age: g };
        for (name, make) in ALL {
            let mut policy = make();
            let mut last = Finished::default();
            for (turn, now_us) in (0_u64..).zip([0, h, i, h, u64::MAX / 2, i, 0, 7].repeat(4)) {
                let now = FlushSample {
                    now_us,
                    lsn: Lsn(b.saturating_add(turn)),
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
                    redo_file_bytes: k,
                    commits: l.wrapping_add(turn),
                    page_ios: m,
                    redo_writes: m,
                    redo_write_us: n,
                    pending_ios: n,
                    lanes: LanesUse { list_pages: pages[0], cold_frames: pages[1] },
                    settings,
                };
                match policy.next(&now, last) {
                    Action::Sleep { until_us, .. } => prop_assert!(until_us > now_us, "{}", name),
                    Action::Flush { pages, .. } => {
                        prop_assert!(pages > 0 && u64::from(pages) <= e, "{}", name);
                    }
                    Action::Lru { pages } => prop_assert!(u64::from(pages) <= g, "{}", name),
                    _ => {}
                }
                let rule = policy.admit();
                prop_assert!(rule.wait_age <= g.max(1), "{}: a wall beyond the engine's", name);
                let has_purged = turn.is_multiple_of(2);
                last = Finished { flushed: pages[1], freed: pages[2], took_us: i, has_purged };
            }
        }
    }
}
