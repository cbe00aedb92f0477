//! A server in virtual time and a controller that tunes it, one step a second.

use iostrata_database::target::TargetSample;
use iostrata_database::tune::{
    Controller, Generation, Lever, LeverValues, Look, TuneConfig, TuneMode,
};
use iostrata_innodb::{PolicyName, Settings};
use iostrata_sim::flush::{
    Demand, FlushChange, FlushDevice, FlushLoad, FlushPlan, FlushPlant, FlushSecond, PageAccess,
};
use iostrata_stats::Random;

/// A server, its device and its load.
#[derive(Clone, Debug)]
pub struct PlantCase {
    pub policy: PolicyName,
    pub redo: &'static str,
    pub pool: &'static str,
    pub iops: f64,
    pub demand: Demand,
    /// `innodb_io_capacity` and `_max` that the user has set.
    pub capacity: [&'static str; 2],
    /// Pages that a transaction changes, of so many.
    pub pages_per_txn: f64,
    pub data_pages: u64,
    pub redo_bytes_per_txn: f64,
    pub access: PageAccess,
    pub changes: Vec<(f64, FlushChange)>,
    /// As in a file of the user's.
    pub config: &'static str,
    /// How much the reported redo fluctuates, as a share of a second's.
    pub noise: f64,
    /// Whether the disk seeks, where that is reported.
    pub seeks: Option<bool>,
    /// Until this second it is on its own.
    pub tuned_from_s: u32,
    pub span_s: u32,
    pub seed: u64,
}

impl PlantCase {
    /// The load that stalls: pages everywhere, 100 MB of redo, 1,500 requests per second each way.
    pub fn stall() -> Self {
        Self {
            policy: PolicyName::Mariadb,
            redo: "100M",
            pool: "2G",
            iops: 1500.0,
            demand: Demand::Users(8),
            capacity: ["200", "2000"],
            pages_per_txn: 20.0,
            data_pages: 28_800,
            redo_bytes_per_txn: 6400.0,
            access: PageAccess::Uniform,
            changes: Vec::new(),
            config: "",
            noise: 0.0,
            seeks: Some(false),
            tuned_from_s: 0,
            span_s: 360,
            seed: 1,
        }
    }

    /// Five transactions per second on 32 MB of redo, each of which changes 200 rows: all pages are
    /// written once in some minutes, and nothing stalls.
    pub fn quiet() -> Self {
        Self {
            redo: "32M",
            demand: Demand::Rate(5.0),
            pages_per_txn: 120.0,
            data_pages: 2100,
            redo_bytes_per_txn: 13_000.0,
            span_s: 1500,
            ..Self::stall()
        }
    }

    fn plan(&self) -> FlushPlan {
        let mut settings = Settings { policy: self.policy, ..Settings::default() };
        for (name, value) in [
            ("redo_log_capacity", self.redo),
            ("buffer_pool_size", self.pool),
            ("io_capacity_max", self.capacity[1]),
            ("io_capacity", self.capacity[0]),
            ("flush_neighbors", "1"),
        ] {
            settings.set(name, value).unwrap();
        }
        let load = FlushLoad {
            demand: self.demand,
            pages_per_txn: self.pages_per_txn,
            redo_bytes_per_txn: self.redo_bytes_per_txn,
            data_bytes: self.data_pages << 14,
            access: self.access,
            cpu_us_per_txn: 2500.0,
            processors: 2,
        };
        let sizes = (u64::from(settings.page_size), load.data_bytes);
        let spec = "nvme".parse().unwrap();
        let device = FlushDevice::new(&spec, None, Some(self.iops), sizes, 1).unwrap();
        let (changes, span_s) = (self.changes.clone(), f64::from(self.span_s));
        FlushPlan { settings, device, load, changes, span_s, seed: self.seed }
    }

    /// Generation of the server that the policy is of.
    fn generation(&self) -> Generation {
        match self.policy {
            PolicyName::Mariadb => Generation::MariaDb,
            PolicyName::PageCleaner56 => Generation::Mysql56,
            PolicyName::PageCleaner84 => Generation::Mysql8,
            _ => Generation::Mysql57,
        }
    }
}

/// The result of a case.
#[derive(Debug)]
pub struct Ran {
    pub seconds: Vec<FlushSecond>,
    /// What was moved, and when.
    pub moves: Vec<(u32, Lever, f64)>,
    pub wall_age: u64,
    pub pages_per_txn: f64,
    /// Why it is left alone in the end.
    pub rest: Option<String>,
}

impl Ran {
    /// Mean transactions per second from a second on.
    pub fn mean(&self, from: usize) -> f64 {
        let commits: f64 = self.seconds[from..].iter().map(|second| second.commits).sum();
        commits / (self.seconds.len() - from) as f64
    }

    /// The worst two seconds over the mean.
    pub fn worst(&self, from: usize) -> f64 {
        let pairs = self.seconds[from..].windows(2);
        let worst = pairs.map(|pair| (pair[0].commits + pair[1].commits) / 2.0);
        worst.fold(f64::INFINITY, f64::min) / self.mean(from)
    }

    /// The mean of some seconds.
    pub fn tps(&self, seconds: std::ops::Range<usize>) -> f64 {
        let commits = self.seconds[seconds.clone()].iter().map(|second| second.commits);
        commits.sum::<f64>() / seconds.len() as f64
    }

    /// The value of a setting after a second, where it was moved until then.
    pub fn setting(&self, lever: Lever, at_s: u32) -> Option<f64> {
        let until = self.moves.iter().take_while(|one| one.0 <= at_s);
        until.filter(|one| one.1 == lever).last().map(|one| one.2)
    }

    /// The greatest age over the wall.
    pub fn age_max(&self, from: usize) -> f64 {
        let ages = self.seconds[from..].iter().map(|second| second.checkpoint_age);
        ages.max().unwrap_or(0) as f64 / self.wall_age as f64
    }
}

/// Lets a case run, tuned or not.
pub fn run(case: &PlantCase, is_tuned: bool) -> Ran {
    let plan = case.plan();
    let mut plant = FlushPlant::new(&plan).unwrap();
    let mut present = levers(&plant);
    let config = TuneConfig::parse(case.config).unwrap();
    let mut controller =
        Controller::new(case.generation(), TuneMode::Steady, config, present.clone());
    let mut random = Random::new(case.seed);
    let (mut moves, mut commits) = (Vec::new(), Vec::new());
    for at_s in 1..=case.span_s {
        plant.run_until(f64::from(at_s));
        if !is_tuned || at_s < case.tuned_from_s {
            continue;
        }
        let sample = sample(&mut plant, case, &mut random);
        commits.push(sample.transactions.unwrap());
        let look = Look {
            now_us: u64::from(at_s) * 1_000_000,
            sample: &sample,
            present: &present,
            read_ms: None,
            seeks: case.seeks,
            is_stalled: is_stalled(&commits),
            utc_s: at_s.into(),
        };
        for one in controller.step(&look).unwrap() {
            moves.push((at_s, one.lever, one.to));
            let name = one.lever.name().strip_prefix("innodb_").unwrap();
            plant.set(name, &one.lever.text(one.to)).unwrap();
            present.set(one.lever, one.to);
        }
    }
    let outcome = plant.outcome();
    let commits: f64 = outcome.seconds.iter().map(|second| second.commits).sum();
    Ran {
        rest: controller.rest().map(|why| why.to_string()),
        moves,
        wall_age: outcome.wall_age,
        pages_per_txn: outcome.written_pages / commits,
        seconds: outcome.seconds,
    }
}

/// Whether the last second had less than half of the last minute's median, where that is no chance.
fn is_stalled(commits: &[u64]) -> bool {
    let from = commits.len().saturating_sub(61);
    let mut rates: Vec<u64> = commits[from..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    let Some(last) = rates.last().copied() else { return false };
    rates.sort_unstable();
    let median = rates[rates.len() / 2];
    rates.len() > 5 && median >= 16 && 2 * last < median
}

fn levers(plant: &FlushPlant) -> LeverValues {
    let mut present = LeverValues::default();
    for lever in Lever::ALL {
        let text = plant.setting(lever.name().strip_prefix("innodb_").unwrap());
        if let Some(value) = text.and_then(|text| lever.value(&text)) {
            present.set(lever, value);
        }
    }
    present
}

fn sample(plant: &mut FlushPlant, case: &PlantCase, random: &mut Random) -> TargetSample {
    let view = plant.look();
    // MariaDB reports its limit in its status; from seven eighths of it on it flushes all it may.
    let async_age = case.policy == PolicyName::Mariadb;
    let swing = (case.noise * (random.uniform() - 0.5) * 4e6) as i64;
    let end = view.redo_end_bytes.saturating_add_signed(swing).max(view.checkpoint_bytes);
    TargetSample {
        checkpoint_age_bytes: Some(end - view.checkpoint_bytes),
        checkpoint_age_limit_bytes: Some(view.wall_age_bytes),
        checkpoint_age_async_bytes: async_age.then_some(view.wall_age_bytes / 8 * 7),
        redo_capacity_bytes: Some(view.redo_file_bytes),
        redo_end_bytes: Some(end),
        dirty_pages: Some(view.dirty_pages),
        pool_pages: Some(view.pool_pages),
        pages_flushed: Some(view.pages_written),
        transactions: Some(view.commits),
        history_list_length: Some(view.history),
        ..TargetSample::default()
    }
}
