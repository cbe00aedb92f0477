//! The policies of history in a closed loop, and with samples that no engine gives.

use iostrata_innodb::flush::{
    Action, ActionOutcome, AgeLimits, Bound, FlushPolicy, FlushSample, FlushSettings, Ladder,
    LanesUse, Outlook, history,
};
use iostrata_innodb::{FlushWriteLimit, Lsn};
use proptest::prelude::*;

use crate::fluid::{Fluid, Load, Observations};

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
fn worst(seen: &Observations, from: usize) -> f64 {
    let least = seen.redo[from..].iter().min().copied().unwrap_or(0);
    least as f64 / (10 * MIB) as f64
}

/// Five minutes, and a device that is slow for 15 seconds after them.
fn with_a_slow_spell(policy: Box<dyn FlushPolicy>, load: Load) -> (Observations, Observations) {
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
    let Outlook { pages_per_s, raised_pages_per_s, .. } = fluid.outlook();
    assert!(raised_pages_per_s > 0);
    assert_eq!(pages_per_s, 200 + raised_pages_per_s);
    let seen = fluid.run(200).clone();
    assert_eq!(seen.user_flushes, early.user_flushes, "users flush no more");
    let late = seen.written[700..].iter().sum::<f64>() / 200.0;
    assert!(late > 450.0, "{late} pages per second in the end, by the cleaner");
    assert!(worst(&seen, 700) > 0.99, "{}", worst(&seen, 700));
}

#[test]
fn without_adaptive_flushing_no_master_loop_flushes_for_age_but_that_of_reflex() {
    let off = FlushSettings { adaptive_flushing: false, ..settings(200) };
    for (name, make) in &ALL[..7] {
        let mut fluid = Fluid::new(Load { settings: off, ..load(200) }, make());
        // Short of the async limit, and of ten seconds: then the master loop flushes in any case.
        let mut written = 0.0;
        for second in 0..65 {
            let at: f64 = fluid.run(1).written[second..].iter().sum();
            written += if second % 10 == 9 || second % 10 == 0 { 0.0 } else { at };
        }
        let is_reflex = *name == "reflex";
        let most = if is_reflex { f64::INFINITY } else { 1.0 };
        assert!(written <= most && (written > 100.0 || !is_reflex), "{name}: {written}");
    }
}

#[test]
fn a_policy_tells_its_cap_and_whether_that_holds_it_back() {
    let told = |policy: Box<dyn FlushPolicy>, write_limit, io_capacity_max, seconds| {
        let settings = FlushSettings { io_capacity_max, write_limit, ..settings(200) };
        let mut fluid = Fluid::new(Load { settings, ..load(200) }, policy);
        fluid.run(seconds);
        let Outlook { pages_per_s, bound, .. } = fluid.outlook();
        (pages_per_s, bound)
    };
    use FlushWriteLimit::{Free, Policy};
    assert_eq!(
        told(history::adaptive(), Policy, 2000, 3),
        (200, Bound::Nothing),
        "little is dirty"
    );
    assert_eq!(told(history::adaptive(), Policy, 2000, 60), (200, Bound::IoCapacity));
    assert_eq!(told(history::adaptive(), Free, 2000, 60), (0, Bound::Nothing));
    assert_eq!(told(history::estimate(), Policy, 2000, 60), (0, Bound::Nothing), "it has no cap");
    assert_eq!(told(history::page_cleaner_84(), Policy, 2000, 20), (2000, Bound::Nothing));
    let (cap, seconds) = (250, 100);
    assert_eq!(told(history::mariadb(), Policy, cap, seconds), (250, Bound::IoCapacityMax));
}

#[test]
fn a_free_limit_lifts_the_cap_of_page_cleaners_and_leaves_their_formula() {
    let write_limit = FlushWriteLimit::Free;
    let cleaners: [Make; 3] =
        [history::page_cleaner_57, history::page_cleaner_84, history::percona_high_checkpoint];
    for make in cleaners {
        // A tenth of the redo is full after ten seconds; the formula then requests little.
        let free = FlushSettings { write_limit, ..settings(200) };
        let seen = Fluid::new(Load { settings: free, ..load(200) }, make()).run(25).clone();
        let most = seen.written.iter().copied().fold(0.0, f64::max);
        assert!(most < 700.0, "{most} pages in one second of an almost empty redo");
    }
    // Short of the redo's end no second is above the cap, or above what the formula requests.
    let most = |write_limit: FlushWriteLimit| {
        let (io_capacity, io_capacity_max) = (250, 250);
        let low = FlushSettings { io_capacity, io_capacity_max, write_limit, ..settings(250) };
        let mut fluid = Fluid::new(Load { settings: low, ..load(250) }, history::page_cleaner_84());
        let mut second = 0;
        while fluid.age() < FILES / 4 * 3 && second < 300 {
            fluid.run(1);
            second += 1;
        }
        fluid.seen.written[..second - 1].iter().copied().fold(0.0, f64::max)
    };
    let (capped, free) = (most(FlushWriteLimit::Policy), most(FlushWriteLimit::Free));
    assert!(capped < 251.0 && free > 260.0, "{capped} pages under the cap, {free} without");
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

/// What the master loop flushes in the first ten seconds, with so many redo writes in each.
fn flushed_in_ten_seconds(redo_writes_per_s: u64) -> u32 {
    let mut policy = history::io_capacity();
    let (mut now_us, mut flushed, mut last) = (0, 0, ActionOutcome::default());
    while now_us < 10_500_000 {
        let now = FlushSample {
            now_us,
            lsn: Lsn(1 << 20),
            durable: Lsn(1 << 20),
            oldest: Some(Lsn(1 << 19)),
            limits: AgeLimits::of(FILES),
            redo_file_bytes: FILES,
            dirty_pages: 10_000,
            frames: 100_000,
            commits: now_us,
            redo_writes: redo_writes_per_s * (now_us / 1_000_000),
            settings: settings(100),
            ..FlushSample::default()
        };
        let action = policy.next(&now, std::mem::take(&mut last));
        match action {
            Action::Sleep { until_us, .. } => now_us = until_us,
            Action::Flush { pages, .. } => {
                last = ActionOutcome { flushed: pages, ..last };
                flushed += pages;
            }
            _ => {}
        }
    }
    flushed
}

#[test]
fn users_of_mariadb_and_percona_wait_for_frames_and_all_others_free_them() {
    for (name, make) in ALL {
        let waits = matches!(name, "mariadb" | "percona-high-checkpoint");
        assert_eq!(make().users_free_frames(), !waits, "{name}");
    }
    // Percona's second is not cut short for redo, but a thread of its own frees frames meanwhile.
    let mut policy = history::percona_high_checkpoint();
    let mut look = |now_us: u64, free_frames: u64| {
        let (frames, settings) = (100_000, settings(200));
        let now = FlushSample {
            now_us,
            free_frames,
            frames,
            settings,
            limits: AgeLimits::of(FILES),
            redo_file_bytes: FILES,
            ..FlushSample::default()
        };
        policy.next(&now, ActionOutcome::default())
    };
    let until_us = 1_000_000;
    let (soft, firm) =
        (Action::Sleep { until_us, firm: false }, Action::Sleep { until_us, firm: true });
    assert_eq!(look(0, 2000), soft);
    assert_eq!(look(10_000, 24), Action::Lru { pages: 1000 });
    assert_eq!(look(11_000, 1024), soft);
    assert_eq!(look(12_000, 1024), firm, "it was woken for something else");
}

#[test]
fn writes_of_the_redo_count_where_the_master_loop_looks_for_few() {
    // A tenth of io_capacity in any case, and all of it where ten seconds had few requests.
    assert_eq!(flushed_in_ten_seconds(0), 110);
    assert_eq!(flushed_in_ten_seconds(19), 110);
    assert_eq!(flushed_in_ten_seconds(30), 10);
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
fn no_redo_is_made_beyond_the_wall_whatever_the_device_does() {
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
            let mut last = ActionOutcome::default();
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
                    stalled_redo_writes: m,
                    pending_reads: n,
                    pending_writes: m,
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
                last = ActionOutcome { flushed: pages[1], freed: pages[2], took_us: i, has_purged };
            }
        }
    }
}
