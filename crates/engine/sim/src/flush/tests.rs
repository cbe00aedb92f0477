//! The model as a whole: nothing is lost, nothing is random, and what a policy is known for shows.

use iostrata_innodb::{PolicyName, Settings};
use iostrata_stats::stability;
use proptest::prelude::*;

use super::*;

fn settings(policy: PolicyName, redo: &str) -> Settings {
    let mut settings = Settings { policy, ..Settings::default() };
    for (name, value) in [
        ("redo_log_capacity", redo),
        ("buffer_pool_size", "12G"),
        ("io_capacity", "200"),
        ("io_capacity_max", "2000"),
    ] {
        settings.set(name, value).unwrap();
    }
    settings
}

fn load() -> FlushLoad {
    FlushLoad {
        demand: Demand::Users(32),
        pages_per_txn: 6.0,
        redo_bytes_per_txn: 5000.0,
        data_bytes: 8 << 30,
        access: PageAccess::Zipf(0.9),
        cpu_us_per_txn: 500.0,
        processors: 4,
    }
}

/// A plan on a volume held to 1,500 requests each way.
fn plan(policy: PolicyName, redo: &str, span_s: f64) -> FlushPlan {
    let (settings, load) = (settings(policy, redo), load());
    let sizes = (u64::from(settings.page_size), load.data_bytes);
    let spec = "nvme".parse().unwrap();
    let device = FlushDevice::new(&spec, None, Some(1500.0), sizes, 1).unwrap();
    FlushPlan { settings, device, load, changes: Vec::new(), span_s, seed: 1 }
}

/// The worst second over the mean, once the redo was full for the first time.
fn worst(outcome: &FlushOutcome, from: usize) -> f64 {
    let tps: Vec<f64> = outcome.seconds.iter().skip(from).map(|second| second.commits).collect();
    stability(&tps, 1.0).unwrap().min_over_mean_1s
}

fn check_kept(plan: &FlushPlan, outcome: &FlushOutcome) {
    let policy = plan.settings.policy;
    let kept = outcome.written_pages + outcome.left_pages;
    let lost = (outcome.dirtied_pages - kept).abs() / outcome.dirtied_pages.max(1.0);
    assert!(lost < 1e-6, "{policy}: {} became dirty, {kept} are known", outcome.dirtied_pages);
    let per_second: f64 = outcome.seconds.iter().map(|second| second.redo_bytes).sum();
    assert!((outcome.redo_bytes - per_second) / outcome.redo_bytes.max(1.0) < 0.05);
    // Those who were admitted before the wall may still append.
    let reserve = outcome.capacity - outcome.max_age;
    assert!(outcome.age_max <= outcome.max_age + reserve, "{policy}: age {}", outcome.age_max);
}

#[test]
fn no_page_and_no_byte_is_lost_under_any_policy() {
    for &policy in PolicyName::ALL {
        let plan = plan(policy, "100M", 300.0);
        let outcome = run(&plan).unwrap();
        check_kept(&plan, &outcome);
        assert_eq!(outcome.seconds.len(), 300, "{policy}");
        let commits: f64 = outcome.seconds.iter().map(|second| second.commits).sum();
        let redo = commits * plan.load.redo_bytes_per_txn;
        assert!((redo / outcome.redo_bytes - 1.0).abs() < 0.01, "{policy}: {redo}");
    }
}

#[test]
fn the_same_plan_gives_the_same_outcome_and_another_seed_another() {
    let of = |seed: u64| {
        let plan = FlushPlan { seed, ..plan(PolicyName::Steady, "100M", 120.0) };
        run(&plan).unwrap().seconds
    };
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
}

#[test]
fn policies_of_history_stop_everybody_and_steady_nobody() {
    // The last one's users wait for redo behind its pages more than they stand at the wall.
    let all = [
        (PolicyName::Adaptive, 0.2),
        (PolicyName::Mariadb, 0.2),
        (PolicyName::PageCleaner84, 0.02),
    ];
    for (policy, stopped) in all {
        let outcome = run(&plan(policy, "100M", 600.0)).unwrap();
        assert!(outcome.stopped_share > stopped, "{policy}: {}", outcome.stopped_share);
        let wall = outcome.wall_age as f64;
        assert!(outcome.age_max as f64 >= wall, "{policy}: the wall was never reached");
    }
    for policy in [PolicyName::Adaptive, PolicyName::Mariadb] {
        let worst = worst(&run(&plan(policy, "100M", 600.0)).unwrap(), 60);
        assert!(worst < 0.2, "{policy}: {worst}");
    }
    let steady = run(&plan(PolicyName::Steady, "100M", 600.0)).unwrap();
    assert_eq!(steady.stopped_share, 0.0);
    assert!(worst(&steady, 60) > 0.9, "{}", worst(&steady, 60));
    assert!(steady.age_max < steady.wall_age);
}

#[test]
fn a_limit_that_is_halved_halves_the_pages_written() {
    let changes = vec![(300.0, FlushChange::IopsLimit(750.0))];
    let plan = FlushPlan { changes, ..plan(PolicyName::Steady, "100M", 600.0) };
    let outcome = run(&plan).unwrap();
    let written = |range: std::ops::Range<usize>| -> f64 {
        let seconds = &outcome.seconds[range];
        seconds.iter().map(|second| second.flushed_pages).sum::<f64>() / seconds.len() as f64
    };
    let ratio = written(400..600) / written(100..300);
    assert!((0.3..0.7).contains(&ratio), "{ratio}");
}

#[test]
fn purge_that_is_behind_holds_writers_back() {
    let mut held = plan(PolicyName::Steady, "1G", 60.0);
    held.load.cpu_us_per_txn = 10.0;
    held.settings.purge_threads = 0;
    let free = run(&held).unwrap();
    held.settings.set("max_purge_lag", "1000").unwrap();
    held.settings.set("max_purge_lag_delay", "50000").unwrap();
    let commits =
        |outcome: &FlushOutcome| outcome.seconds.iter().map(|second| second.commits).sum::<f64>();
    let delayed = run(&held).unwrap();
    assert!(commits(&delayed) < commits(&free) / 3.0, "{} {}", commits(&delayed), commits(&free));
}

#[test]
fn a_pool_smaller_than_the_data_reads_and_frees_frames() {
    for policy in [PolicyName::Steady, PolicyName::PageCleaner57] {
        let mut small = plan(policy, "1G", 120.0);
        small.settings.set("buffer_pool_size", "1G").unwrap();
        let outcome = run(&small).unwrap();
        check_kept(&small, &outcome);
        assert!(outcome.read_requests > 10_000.0, "{policy}: {}", outcome.read_requests);
        let done = outcome.seconds.iter().filter(|second| second.commits > 0.0).count();
        assert!(done > 100, "{policy}: commits in {done} of 120 seconds");
    }
}

#[test]
fn an_open_rate_is_met_where_it_can_be() {
    let mut open = plan(PolicyName::Steady, "100M", 300.0);
    open.load.demand = Demand::Rate(150.0);
    let outcome = run(&open).unwrap();
    let commits: f64 = outcome.seconds.iter().map(|second| second.commits).sum();
    assert!((commits / 300.0 / 150.0 - 1.0).abs() < 0.05, "{}", commits / 300.0);
}

#[test]
fn neighbours_are_written_along_where_much_is_dirty_and_cost_writes() {
    let with = |neighbors: u32, data_bytes: u64| {
        let mut plan = plan(PolicyName::Mariadb, "100M", 60.0);
        plan.settings.flush_neighbors = neighbors;
        plan.load = FlushLoad { data_bytes, access: PageAccess::Uniform, ..plan.load };
        let outcome = run(&plan).unwrap();
        check_kept(&plan, &outcome);
        let commits: f64 = outcome.seconds.iter().map(|second| second.commits).sum();
        outcome.written_pages / commits
    };
    let [none, run, extent] = [0, 1, 2].map(|neighbors| with(neighbors, 256 << 20));
    assert!(none < run * 0.95 && run < extent * 1.05, "{none} {run} {extent} pages each");
    // Hardly a page of large data has a dirty one beside it.
    let [none, run] = [0, 1].map(|neighbors| with(neighbors, 64 << 30));
    assert!((run / none - 1.0).abs() < 0.1, "{none} {run} pages each");
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let refused = |change: &dyn Fn(&mut FlushPlan)| {
        let mut plan = plan(PolicyName::Steady, "100M", 60.0);
        change(&mut plan);
        run(&plan).unwrap_err().to_string()
    };
    let of = refused(&|plan| plan.load.pages_per_txn = 0.0);
    assert_eq!(of, "pages per transaction is 0; it takes 0.01 to 10,000");
    let of = refused(&|plan| plan.load.redo_bytes_per_txn = 1e6);
    assert!(of.contains("too small"), "{of}");
    let of = refused(&|plan| plan.settings.log_buffer_size = 1 << 20);
    assert!(of.starts_with("log_buffer_size = 1M: the model does not follow"), "{of}");
    let of = refused(&|plan| plan.changes = vec![(60.0, FlushChange::Load(2.0))]);
    assert!(of.contains("outside the span"), "{of}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn whatever_the_load_nothing_is_lost_and_no_age_is_too_great(
        policy in 0..PolicyName::ALL.len(),
        users in 1_u32..200,
        pages in 0.5_f64..40.0,
        redo in 100.0_f64..20_000.0,
        data in 1_u64..4000,
        limit in 50.0_f64..20_000.0,
        factor in 0.0_f64..4.0,
        hot in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut plan = plan(PolicyName::ALL[policy], "64M", 40.0);
        plan.load = FlushLoad {
            demand: Demand::Users(users),
            pages_per_txn: pages,
            redo_bytes_per_txn: redo,
            data_bytes: data << 20,
            ..plan.load
        };
        if hot {
            plan.load.access = PageAccess::HotSet { data_pct: 10.0, changes_pct: 80.0 };
        }
        plan.settings.set("buffer_pool_size", "256M").unwrap();
        plan.seed = seed;
        plan.changes =
            vec![(10.0, FlushChange::IopsLimit(limit)), (20.0, FlushChange::Load(factor))];
        let outcome = run(&plan).unwrap();
        check_kept(&plan, &outcome);
    }
}
