//! What to simulate (the engine's settings, a device, a load, and what changes on the way), and
//! what came of it.
//!
//! Invariant: a plan that `check` lets pass can be simulated; an error names the wrong value and
//! what is possible.

use iostrata_innodb::{FlushMethod, SettingError, Settings};
use iostrata_plan::disk::DiskSpec;
use iostrata_stats::LatencyHistogram;
use thiserror::Error;

use super::volume::{DeviceError, FlushDevice};

/// Most users, each of which is followed by itself.
pub const USERS_MAX: u32 = 2_000;
/// Longest span, in seconds.
pub const SPAN_S_MAX: f64 = 7.0 * 86_400.0;

/// Settings that the model follows, besides the policy's name.
pub const FOLLOWED: [&str; 30] = [
    "adaptive_flushing",
    "adaptive_flushing_lwm",
    "buffer_pool_size",
    "data_files",
    "doublewrite",
    "doublewrite_pages",
    "flush_log_at_timeout",
    "flush_log_at_trx_commit",
    "flush_neighbors",
    "flush_sync",
    "flush_write_limit",
    "flushing_avg_loops",
    "idle_flush_pct",
    "io_capacity",
    "io_capacity_max",
    "log_write_ahead_size",
    "lru_scan_depth",
    "max_dirty_pages_pct",
    "max_dirty_pages_pct_lwm",
    "max_purge_lag",
    "max_purge_lag_delay",
    "max_purge_lag_version",
    "page_cleaners",
    "page_size",
    "policy",
    "purge_batch_size",
    "purge_threads",
    "redo_log_capacity",
    "flush_method",
    "trust_device_cache",
];

/// The demand for transactions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// So many users, each of whom begins the next transaction when the last one is durable.
    Users(u32),
    /// So many transactions per second, whatever becomes of them.
    Rate(f64),
}

/// Which pages transactions change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PageAccess {
    /// Each alike.
    Uniform,
    /// By rank: the weight of rank `r` is `r` to the power of minus this.
    Zipf(f64),
    /// A part of the data takes a part of the changes, both in percent.
    HotSet {
        /// Part of the data.
        data_pct: f64,
        /// Part of the changes that it takes.
        changes_pct: f64,
    },
}

/// The load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlushLoad {
    /// The demand.
    pub demand: Demand,
    /// Pages that a transaction changes.
    pub pages_per_txn: f64,
    /// Bytes of redo that it makes.
    pub redo_bytes_per_txn: f64,
    /// Bytes of the data.
    pub data_bytes: u64,
    /// Which pages are changed.
    pub access: PageAccess,
    /// Processor time of a transaction, in microseconds.
    pub cpu_us_per_txn: f64,
    /// Processors.
    pub processors: u32,
}

/// What changes at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlushChange {
    /// The limit of the device, in reads per second and in writes per second.
    IopsLimit(f64),
    /// The demand, as a multiple of the plan's.
    Load(f64),
}

/// One policy on one device under one load.
#[derive(Clone, Debug)]
pub struct FlushPlan {
    /// The engine's settings, the policy with them.
    pub settings: Settings,
    /// What the device does.
    pub device: FlushDevice,
    /// The load.
    pub load: FlushLoad,
    /// What changes, each at its moment in seconds.
    pub changes: Vec<(f64, FlushChange)>,
    /// How long, in seconds.
    pub span_s: f64,
    /// The seed.
    pub seed: u64,
}

/// Why a plan can't be simulated.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FlushPlanError {
    /// A setting is out of its range, or two do not go together.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A setting that the model does not follow.
    #[error(
        "{name} = {found}: the model does not follow this setting; it follows {}",
        FOLLOWED.join(", ")
    )]
    NotFollowed {
        /// The setting.
        name: &'static str,
        /// Its value.
        found: String,
    },
    /// A number out of its bounds.
    #[error("{what} is {found}; it takes {bounds}")]
    Number {
        /// Which.
        what: &'static str,
        /// What was found.
        found: f64,
        /// What would have been taken.
        bounds: &'static str,
    },
    /// The redo takes less than all users write at once.
    #[error(
        "a redo of {redo_bytes} bytes is too small: it must take 16 transactions of each of the \
         {users} users, {needed_bytes} bytes; make it larger, or the transactions smaller"
    )]
    RedoTooSmall {
        /// The setting.
        redo_bytes: u64,
        /// Users.
        users: u32,
        /// What would do.
        needed_bytes: u64,
    },
    /// A change of a limit that is not there, or after the end.
    #[error("the change at {at_s} s {why}")]
    Change {
        /// Its moment.
        at_s: f64,
        /// What is wrong.
        why: &'static str,
    },
    /// The device can't be modelled.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl FlushPlan {
    /// Whether it can be simulated.
    ///
    /// # Errors
    /// The first value that is wrong.
    pub fn check(&self) -> Result<(), FlushPlanError> {
        self.settings.check()?;
        self.check_followed()?;
        self.load.check()?;
        number("the span in seconds", self.span_s, 10.0..=SPAN_S_MAX, "10 seconds to 7 days")?;
        for (at_s, change) in &self.changes {
            self.check_change(*at_s, *change)?;
        }
        let users = match self.load.demand {
            Demand::Users(users) => users,
            Demand::Rate(_) => 1,
        };
        let needed_bytes = 16 * u64::from(users) * self.load.redo_bytes_per_txn as u64;
        let redo_bytes = self.settings.redo_log_capacity;
        if redo_bytes < needed_bytes {
            return Err(FlushPlanError::RedoTooSmall { redo_bytes, users, needed_bytes });
        }
        Ok(())
    }

    fn check_followed(&self) -> Result<(), FlushPlanError> {
        let defaults = Settings::default();
        let refused = |name: &'static str, settings: &Settings| {
            let found = settings.get(name).unwrap_or_default();
            FlushPlanError::NotFollowed { name, found }
        };
        for setting in iostrata_innodb::CATALOGUE {
            let differs = self.settings.get(setting.name) != defaults.get(setting.name);
            if differs && !FOLLOWED.contains(&setting.name) {
                return Err(refused(setting.name, &self.settings));
            }
        }
        // Redo and data are written and synced as these two have it.
        let methods = [FlushMethod::Direct, FlushMethod::AllDirect];
        if !methods.contains(&self.settings.flush_method) {
            return Err(refused("flush_method", &self.settings));
        }
        Ok(())
    }

    fn check_change(&self, at_s: f64, change: FlushChange) -> Result<(), FlushPlanError> {
        let wrong = |why| Err(FlushPlanError::Change { at_s, why });
        if !(0.0..self.span_s).contains(&at_s) {
            return wrong("lies outside the span; give a moment before its end, or a longer span");
        }
        match change {
            FlushChange::IopsLimit(_) if self.device.iops_limit().is_none() => {
                wrong("sets a limit where there is none; give the device a limit to begin with")
            }
            FlushChange::IopsLimit(iops) if !(1.0..=1e8).contains(&iops) => {
                wrong("sets a limit out of 1 to 100,000,000 per second")
            }
            FlushChange::Load(factor) if !(0.0..=100.0).contains(&factor) => {
                wrong("multiplies the load by a factor out of 0 to 100")
            }
            _ => Ok(()),
        }
    }

    /// The disk.
    pub fn disk(&self) -> &DiskSpec {
        self.device.disk()
    }

    /// The greatest multiple of the demand that ever holds.
    pub(super) fn load_max(&self) -> f64 {
        let factor = |(_, change): &(f64, FlushChange)| match change {
            FlushChange::Load(factor) => *factor,
            FlushChange::IopsLimit(_) => 1.0,
        };
        self.changes.iter().map(factor).fold(1.0, f64::max)
    }
}

impl FlushLoad {
    fn check(&self) -> Result<(), FlushPlanError> {
        match self.demand {
            Demand::Users(users) => {
                let most = f64::from(USERS_MAX);
                number("the number of users", f64::from(users), 1.0..=most, "1 to 2,000")?;
            }
            Demand::Rate(rate) => {
                number(
                    "the rate of transactions per second",
                    rate,
                    0.1..=1e7,
                    "0.1 to 10,000,000",
                )?;
            }
        }
        number("pages per transaction", self.pages_per_txn, 0.01..=10_000.0, "0.01 to 10,000")?;
        let (least, most) = (16.0, 1e8);
        let redo = self.redo_bytes_per_txn;
        number("redo per transaction in bytes", redo, least..=most, "16 to 100,000,000")?;
        let data = self.data_bytes as f64;
        number("the data in bytes", data, 1e6..=4e13, "1 MB to 40 TB")?;
        number("processor time in us", self.cpu_us_per_txn, 1.0..=1e7, "1 to 10,000,000")?;
        number("processors", f64::from(self.processors), 1.0..=4096.0, "1 to 4,096")?;
        match self.access {
            PageAccess::Uniform => Ok(()),
            PageAccess::Zipf(power) => number("the power of zipf", power, 0.01..=3.0, "0.01 to 3"),
            PageAccess::HotSet { data_pct, changes_pct } => {
                let share = 0.001..=99.999;
                let bounds = "0.001 to 99.999 percent";
                number("the hot part of the data", data_pct, share.clone(), bounds)?;
                number("the changes of the hot part", changes_pct, share, bounds)
            }
        }
    }
}

fn number(
    what: &'static str,
    found: f64,
    range: std::ops::RangeInclusive<f64>,
    bounds: &'static str,
) -> Result<(), FlushPlanError> {
    match range.contains(&found) {
        true => Ok(()),
        false => Err(FlushPlanError::Number { what, found, bounds }),
    }
}

/// What happened in one second of virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlushSecond {
    /// Transactions that became durable.
    pub commits: f64,
    /// Pages written.
    pub flushed_pages: f64,
    /// Redo made.
    pub redo_bytes: f64,
    /// The greatest checkpoint age in it, in bytes.
    pub checkpoint_age: u64,
    /// Dirty pages at its end.
    pub dirty_pages: f64,
    /// Transactions that purge has before it, at its end.
    pub history: f64,
}

/// What came of a plan.
#[derive(Clone, Debug)]
pub struct FlushOutcome {
    /// Every second.
    pub seconds: Vec<FlushSecond>,
    /// From the request to write until the redo was durable.
    pub commit_waits: LatencyHistogram,
    /// Times that flushing became furious: a page cleaner went beyond its cap because redo ran
    /// out, or a user had to flush.
    pub furious_flushes: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
    /// Max checkpoint age of the engine, and of this policy.
    pub max_age: u64,
    /// The policy's wall, in bytes of checkpoint age.
    pub wall_age: u64,
    /// Bytes of the redo that shares are taken of.
    pub capacity: u64,
    /// The greatest checkpoint age.
    pub age_max: u64,
    /// Time that users were slowed down by the policy's rule, and stopped, as shares of their time.
    pub delayed_share: f64,
    /// The same for stopped ones.
    pub stopped_share: f64,
    /// Pages that became dirty, were written, and are left.
    pub dirtied_pages: f64,
    /// Pages written.
    pub written_pages: f64,
    /// Pages dirty or being written at the end.
    pub left_pages: f64,
    /// Redo at the end, from 0.
    pub redo_bytes: f64,
    /// Write requests of the device: page writes, copies, redo, checkpoints.
    pub write_requests: f64,
    /// Read requests of the device.
    pub read_requests: f64,
}
