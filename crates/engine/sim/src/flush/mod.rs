//! Flushing in virtual time: the engine's policies on a model of its pool, redo and device.
//!
//! Purpose: what a policy does to a load in an hour, in a second; or step by step, observed and set
//! from outside while it runs, as a server is tuned. Method: dirty pages are a quantity by class
//! and age, since an hour has millions of page writes; users, writes of redo and batches of pages
//! are events. The policies, the sample that they see and the rule that users obey are the engine's
//! own.
//! Invariants: pure; the same plan gives the same outcome. One moment follows the other, and from
//! outside time goes on only by a call; a setting takes effect at the cleaner's next look, as in
//! the engine.
//! Left out: latches, row locks, the shape of trees, the growth of files, and reads other than
//! those of the pages that are changed.

mod dirty;
mod fit;
mod plan;
mod state;
mod tasks;
mod users;
mod volume;

use std::collections::VecDeque;

use iostrata_innodb::SettingError;
use iostrata_innodb::flush::{ActionOutcome, AdmitRule, AgeLimits, WritePace, policy};
use iostrata_stats::{LatencyHistogram, Random};

pub use fit::{FitFreedom, FlushFit, RecordedWindow, fit, steady};
pub use plan::{
    Demand, FOLLOWED, FlushChange, FlushLoad, FlushOutcome, FlushPlan, FlushPlanError, FlushSecond,
    PageAccess, SPAN_S_MAX, USERS_MAX,
};
pub use volume::{DeviceError, FlushDevice};

use crate::drive::Agenda;
use dirty::{DirtyPages, classes};
use state::{CleanerThread, FlushCounts, Happening, PageWriter, Redo, TASKS, User, World};
use volume::Volume;

const SECOND_NS: u64 = 1_000_000_000;
/// Share of the redo files that the age may take before reserves: all segments but one.
const SEGMENTS: u64 = 32;
/// Dirty pages are distinguished by so many parts of the redo.
const AGE_PARTS: u64 = 256;
/// Sessions that serve an open rate.
const SESSIONS: usize = 256;
/// Transactions per second that are followed one by one; of more, several are done in one go.
const FOLLOWED_PER_S: f64 = 400.0;
/// What the load was is forgotten at this rate per second.
const KEPT: f64 = 0.95;

/// Simulates a plan.
///
/// # Errors
/// A plan that can't be simulated.
pub fn run(plan: &FlushPlan) -> Result<FlushOutcome, FlushPlanError> {
    run_while(plan, FOLLOWED_PER_S, |_| false)
}

/// Simulates a plan until a second after which it `is_over`, at most as long as the plan lasts. Of
/// more transactions than are followed per second, several are done in one go.
///
/// # Errors
/// A plan that can't be simulated.
fn run_while(
    plan: &FlushPlan,
    followed_per_s: f64,
    mut is_over: impl FnMut(&FlushSecond) -> bool,
) -> Result<FlushOutcome, FlushPlanError> {
    plan.check()?;
    let mut world = World::new(plan);
    world.followed_per_s = followed_per_s;
    world.start();
    let end_ns = (plan.span_s * 1e9) as u64;
    let mut looked = 0;
    while world.now_ns < end_ns {
        world.run_until((world.now_ns + SECOND_NS).min(end_ns));
        if world.seconds[looked..].iter().any(&mut is_over) {
            break;
        }
        looked = world.seconds.len();
    }
    Ok(world.outcome())
}

impl World {
    fn new(plan: &FlushPlan) -> Self {
        let settings = &plan.settings;
        let page_bytes = u64::from(settings.page_size);
        let capacity = settings.redo_log_capacity / SEGMENTS * (SEGMENTS - 1);
        let limits = AgeLimits::of(capacity);
        let frames = settings.frames() as f64;
        let pages = (plan.load.data_bytes / page_bytes).max(1) as f64;
        let depth = f64::from(settings.lru_scan_depth).min(frames / 8.0);
        let users = match plan.load.demand {
            Demand::Users(users) => (f64::from(users) * plan.load_max()).ceil() as usize,
            Demand::Rate(_) => SESSIONS,
        };
        Self {
            plan: plan.clone(),
            limits,
            now_ns: 0,
            agenda: Agenda::new(),
            random: Random::new(plan.seed),
            volume: Volume::new(&plan.device, page_bytes, settings.data_files),
            dirty: DirtyPages::new(classes(plan.load.access, pages, frames), capacity / AGE_PARTS),
            redo: Redo::default(),
            cleaner: CleanerThread {
                policy: policy(settings.policy),
                last: ActionOutcome::default(),
                turn: 0,
                looked_ns: 0,
                sleeps_until_ns: None,
                is_firm: false,
                is_woken: false,
                is_furious: false,
                flushed_carry: 0.0,
                freed_carry: 0.0,
                ages: Vec::new(),
                pace: WritePace::FREE,
            },
            rule: AdmitRule::wall(limits.max_age),
            tasks: [None; TASKS],
            writers: vec![PageWriter::IDLE; TASKS - 1 + settings.page_cleaners.max(1) as usize],
            paced_ns: 0.0,
            users: vec![User::IDLE; users],
            active: 0,
            idle: (0..users as u32).rev().collect(),
            queued: VecDeque::new(),
            load: 1.0,
            weight: 1.0,
            followed_per_s: FOLLOWED_PER_S,
            tps_recent: 0.0,
            parked: Vec::new(),
            paced: VecDeque::new(),
            wants_flush: VecDeque::new(),
            frames,
            free_frames: (frames - pages).max(depth),
            cpu_free_ns: 0.0,
            reads_carry: 0.0,
            history: 0.0,
            purged_ns: 0,
            counts: FlushCounts::default(),
            commit_waits: LatencyHistogram::new(),
            second: FlushSecond::default(),
            seconds: Vec::new(),
        }
    }

    fn start(&mut self) {
        self.note_look(0);
        self.note(SECOND_NS, Happening::Second);
        for at in 0..self.plan.changes.len() {
            self.note((self.plan.changes[at].0 * 1e9) as u64, Happening::Change(at));
        }
        match self.plan.load.demand {
            Demand::Users(users) => self.set_active(users as usize),
            Demand::Rate(_) => self.note(0, Happening::Arrival),
        }
    }

    /// Lets everything happen that is due until then.
    fn run_until(&mut self, end_ns: u64) {
        while let Some((at_ns, what)) = self.agenda.due(end_ns) {
            self.now_ns = at_ns;
            self.happen(what);
        }
        self.now_ns = end_ns.max(self.now_ns);
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::User { user, turn } => self.user_moves(user, turn),
            Happening::Arrival => {
                self.arrive();
                self.note_arrival();
            }
            Happening::RedoDurable => self.redo_durable(),
            Happening::Gathered { turn } => self.gathered(turn),
            Happening::Cleaner { turn } => self.look(turn),
            Happening::Writer(writer) => self.go_on(writer),
            Happening::Second => self.second_is_over(),
            Happening::Change(at) => self.change(self.plan.changes[at].1),
        }
    }

    fn note_arrival(&mut self) {
        let Demand::Rate(rate) = self.plan.load.demand else { return };
        let rate = rate * self.load;
        if rate > 0.0 {
            let gap_ns = self.random.exponential() * self.weight / rate * 1e9;
            self.note(self.now_ns + gap_ns as u64, Happening::Arrival);
        }
    }

    fn change(&mut self, change: FlushChange) {
        match change {
            FlushChange::IopsLimit(iops) => self.volume.set_limit(iops),
            FlushChange::Load(factor) => {
                let was = std::mem::replace(&mut self.load, factor);
                match self.plan.load.demand {
                    Demand::Users(users) => {
                        self.set_active((f64::from(users) * factor).round() as usize);
                    }
                    Demand::Rate(_) if was == 0.0 => self.note_arrival(),
                    Demand::Rate(_) => {}
                }
            }
        }
    }

    fn second_is_over(&mut self) {
        let mut second = std::mem::take(&mut self.second);
        second.checkpoint_age = second.checkpoint_age.max(self.redo.lsn - self.redo.checkpoint);
        second.dirty_pages = self.dirty.pages();
        second.history = self.history;
        self.tps_recent = second.commits.max(self.tps_recent * KEPT);
        self.seconds.push(second);
        self.weight = self.weight_of(self.tps_recent);
        self.note(self.now_ns + SECOND_NS, Happening::Second);
    }

    /// Transactions done in one go: so many that the events of a second stay few, and so few that
    /// all users together stay well inside the redo's reserve.
    fn weight_of(&self, tps: f64) -> f64 {
        let all = self.users.len() as f64 * self.plan.load.redo_bytes_per_txn;
        let most = (self.limits.reserve_bytes() as f64 / (4.0 * all)).floor().max(1.0);
        (tps / self.followed_per_s).ceil().clamp(1.0, most)
    }

    fn outcome(mut self) -> FlushOutcome {
        self.dirty.spread(self.redo.lsn);
        let users = match self.plan.load.demand {
            Demand::Users(users) => f64::from(users),
            Demand::Rate(_) => SESSIONS as f64,
        };
        let all_s = users * self.plan.span_s;
        FlushOutcome {
            furious_flushes: self.counts.furious,
            checkpoints: self.counts.checkpoints,
            max_age: self.limits.max_age,
            wall_age: self.rule.wait_age.min(self.limits.max_age),
            capacity: self.limits.capacity,
            age_max: self.counts.age_max,
            delayed_share: self.counts.delayed_s / all_s,
            stopped_share: self.counts.stopped_s / all_s,
            dirtied_pages: self.dirty.dirtied,
            written_pages: self.dirty.written,
            left_pages: self.dirty.pages(),
            redo_bytes: self.redo.lsn as f64,
            write_requests: self.volume.write_requests,
            read_requests: self.volume.read_requests,
            commit_waits: self.commit_waits,
            seconds: self.seconds,
        }
    }
}

/// What a server would report. Counters count from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlantView {
    /// End of the redo, in bytes.
    pub redo_end_bytes: u64,
    /// The last checkpoint.
    pub checkpoint_bytes: u64,
    /// The max checkpoint age: writers wait there.
    pub wall_age_bytes: u64,
    /// Size of the redo.
    pub redo_file_bytes: u64,
    /// Dirty pages.
    pub dirty_pages: u64,
    /// Frames of the pool.
    pub pool_pages: u64,
    /// Pages written.
    pub pages_written: u64,
    /// Commits.
    pub commits: u64,
    /// Transactions that purge has before it.
    pub history: u64,
}

/// A plan that is being simulated.
pub struct FlushPlant {
    world: World,
}

impl FlushPlant {
    /// At its beginning.
    ///
    /// # Errors
    /// A plan that can't be simulated.
    pub fn new(plan: &FlushPlan) -> Result<Self, FlushPlanError> {
        plan.check()?;
        let mut world = World::new(plan);
        world.start();
        Ok(Self { world })
    }

    /// Lets everything happen up to a moment, in seconds from the beginning.
    pub fn run_until(&mut self, at_s: f64) {
        self.world.run_until((at_s * 1e9) as u64);
    }

    /// What it would report now.
    pub fn look(&mut self) -> PlantView {
        let world = &mut self.world;
        world.dirty.spread(world.redo.lsn);
        PlantView {
            redo_end_bytes: world.redo.lsn,
            checkpoint_bytes: world.redo.checkpoint,
            wall_age_bytes: world.rule.wait_age.min(world.limits.max_age),
            redo_file_bytes: world.plan.settings.redo_log_capacity,
            dirty_pages: world.dirty.pages() as u64,
            pool_pages: world.frames as u64,
            pages_written: world.dirty.written as u64,
            commits: world.counts.commits as u64,
            history: world.history as u64,
        }
    }

    /// The present value of a setting.
    pub fn setting(&self, name: &str) -> Option<String> {
        self.world.plan.settings.get(name).ok()
    }

    /// Changes a setting.
    ///
    /// # Errors
    /// A name or value that is none.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let settings = &mut self.world.plan.settings;
        let before = settings.policy;
        settings.set(name, value)?;
        if settings.policy != before {
            self.world.cleaner.policy = policy(settings.policy);
        }
        Ok(())
    }

    /// Changes the device or the load, now.
    pub fn change(&mut self, change: FlushChange) {
        self.world.change(change);
    }

    /// What came of it so far.
    pub fn outcome(self) -> FlushOutcome {
        self.world.outcome()
    }
}

/// The model as a whole: nothing is lost, nothing is random, and what a policy is known for shows.
#[cfg(test)]
mod tests {
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
        let tps: Vec<f64> =
            outcome.seconds.iter().skip(from).map(|second| second.commits).collect();
        stability(&tps, 1.0).unwrap().min_over_mean_1s
    }

    fn check_kept(plan: &FlushPlan, outcome: &FlushOutcome) {
        let policy = plan.settings.policy;
        let kept = outcome.written_pages + outcome.left_pages;
        let lost = (outcome.dirtied_pages - kept).abs() / outcome.dirtied_pages.max(1.0);
        assert!(lost < 1e-6, "{policy}: {} became dirty, {kept} are known", outcome.dirtied_pages);
        let per_second: f64 = outcome.seconds.iter().map(|second| second.redo_bytes).sum();
        assert!((outcome.redo_bytes - per_second) / outcome.redo_bytes.max(1.0) < 0.05);
        // Users admitted before the wall may still append.
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
        let first = of(7);
        assert_eq!(first, of(7));
        assert_ne!(first, of(8));
    }

    #[test]
    fn policies_of_history_stop_all_users_and_steady_none() {
        // The last one's users wait for redo behind its pages more than they stand at the wall.
        let all = [
            (PolicyName::Adaptive, 0.2, 0.2),
            (PolicyName::Mariadb, 0.2, 0.2),
            (PolicyName::PageCleaner84, 0.02, 1.0),
        ];
        for (policy, stopped, worst_max) in all {
            let outcome = run(&plan(policy, "100M", 600.0)).unwrap();
            assert!(outcome.stopped_share > stopped, "{policy}: {}", outcome.stopped_share);
            let wall = outcome.wall_age as f64;
            assert!(outcome.age_max as f64 >= wall, "{policy}: the wall was never reached");
            let worst = worst(&outcome, 60);
            assert!(worst < worst_max, "{policy}: {worst}");
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
        let commits = |outcome: &FlushOutcome| {
            outcome.seconds.iter().map(|second| second.commits).sum::<f64>()
        };
        let delayed = run(&held).unwrap();
        assert!(
            commits(&delayed) < commits(&free) / 3.0,
            "{} {}",
            commits(&delayed),
            commits(&free)
        );
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
        // Hardly a page of large data has a dirty neighbour.
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
        #![proptest_config(crate::cases(8, 96))]

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
}
