//! The model while it runs: looked at and set from outside, as a server is by whoever tunes it.
//!
//! Invariant: time goes on only when it is told to; a setting takes effect at the cleaner's next
//! look, as in the engine.

use iostrata_innodb::{SettingError, flush::policy};

use super::outcome::FlushOutcome;
use super::plan::{FlushChange, FlushPlan, FlushPlanError};
use super::state::World;

/// What a server would tell of itself. Fields that count do so from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlantView {
    /// End of the redo, in bytes.
    pub redo_end_bytes: u64,
    /// The last checkpoint.
    pub checkpoint_bytes: u64,
    /// The checkpoint age at which writers wait.
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

    /// What it tells of itself now.
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
