//! A server in virtual time and a controller that tunes it, one step a second.

use iostrata_innodb::{PolicyName, Settings};
use iostrata_sim::flush::{
    Demand, FlushChange, FlushDevice, FlushLoad, FlushPlan, FlushPlant, FlushSecond, PageAccess,
};
use iostrata_stats::Random;
use iostrata_target::TargetSample;
use iostrata_tune::{Controller, Generation, Lever, LeverValues, Look, TuneConfig, TuneMode};

/// A server, its device and its load.
#[derive(Clone, Debug)]
pub struct PlantCase {
    pub policy: PolicyName,
    pub redo: &'static str,
    pub pool: &'static str,
    pub iops: f64,
    pub users: u32,
    pub access: PageAccess,
    pub changes: Vec<(f64, FlushChange)>,
    /// By how much the redo that is told of swings, as a share of a second's.
    pub noise: f64,
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
            users: 8,
            access: PageAccess::Uniform,
            changes: Vec::new(),
            noise: 0.0,
            tuned_from_s: 0,
            span_s: 360,
            seed: 1,
        }
    }

    fn plan(&self) -> FlushPlan {
        let mut settings = Settings { policy: self.policy, ..Settings::default() };
        for (name, value) in [
            ("redo_log_capacity", self.redo),
            ("buffer_pool_size", self.pool),
            ("io_capacity", "200"),
            ("io_capacity_max", "2000"),
            ("flush_neighbors", "1"),
        ] {
            settings.set(name, value).unwrap();
        }
        let load = FlushLoad {
            demand: Demand::Users(self.users),
            pages_per_txn: 20.0,
            redo_bytes_per_txn: 6400.0,
            data_bytes: 450 << 20,
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

/// What came of a case.
#[derive(Debug)]
pub struct Ran {
    pub seconds: Vec<FlushSecond>,
    /// What was moved, and when.
    pub moves: Vec<(u32, Lever, f64)>,
    pub wall_age: u64,
    pub pages_per_txn: f64,
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
    let config = TuneConfig::default();
    let mut controller =
        Controller::new(case.generation(), TuneMode::Steady, config, present.clone());
    let mut random = Random::new(case.seed);
    let mut moves = Vec::new();
    for at_s in 1..=case.span_s {
        plant.run_until(f64::from(at_s));
        if !is_tuned || at_s < case.tuned_from_s {
            continue;
        }
        let sample = sample(&mut plant, case, &mut random);
        let now_us = u64::from(at_s) * 1_000_000;
        let look = Look { now_us, sample: &sample, present: &present, read_ms: None };
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
        moves,
        wall_age: outcome.wall_age,
        pages_per_txn: outcome.written_pages / commits,
        seconds: outcome.seconds,
    }
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
    // MariaDB tells its wall in its status; where it flushes all it may is seven eighths of that.
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
