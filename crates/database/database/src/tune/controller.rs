//! One sample in, settings to change out.
//!
//! Invariant: a move names a setting that the server has, a value within the user's bounds, and one
//! that differs from the present; nothing is moved that another user has set meanwhile. If that
//! setting is safe only together with others, nothing is moved at all.

use std::collections::BTreeSet;

use crate::target::TargetSample;

use crate::tune::auto_raise::AutoRaise;
use crate::tune::config::TuneConfig;
use crate::tune::generation::Generation;
use crate::tune::lever::{Lever, LeverValues, Move};
use crate::tune::monitor::{Missing, Monitor};
use crate::tune::need::Rest;
use crate::tune::steady::{self, Steady, StepView};

pub use crate::tune::monitor::Vitals;

/// How a server is tuned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TuneMode {
    /// The checkpoint age is held at its set-point.
    #[default]
    Steady,
    /// `innodb_io_capacity` rises whenever the redo was found nearly full ten times.
    AutoRaise,
}

/// A server at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Now, in microseconds of a clock that never goes back.
    pub now_us: u64,
    /// What the server reports.
    pub sample: &'a TargetSample,
    /// The settings as they are now.
    pub present: &'a LeverValues,
    /// Mean time of a read of the device below, in milliseconds, where it is known.
    pub read_ms: Option<f64>,
    /// Whether the disk below the data seeks, where that is known.
    pub seeks: Option<bool>,
    /// Whether the server stalls for lack of redo space.
    pub is_stalled: bool,
    /// Seconds since 1970, for what is allowed by day and hour.
    pub utc_s: u64,
}

/// Without one of these the others are no pace but a flood: with adaptive flushing off MariaDB
/// writes `innodb_io_capacity` pages a second, whatever that is.
const SAFE_TOGETHER: [Lever; 4] =
    [Lever::IoCapacity, Lever::IoCapacityMax, Lever::AdaptiveFlushing, Lever::AdaptiveFlushingLwm];

/// Leads one server from its start to its end.
#[derive(Clone, Debug)]
pub struct Controller {
    mode: TuneMode,
    config: TuneConfig,
    before: LeverValues,
    monitor: Monitor,
    steady: Steady,
    auto_raise: AutoRaise,
    left: BTreeSet<Lever>,
    has_ended: bool,
    vitals: Vitals,
}

impl Controller {
    /// For a server whose settings are now `before`.
    pub fn new(
        generation: Generation,
        mode: TuneMode,
        config: TuneConfig,
        before: LeverValues,
    ) -> Self {
        Self {
            mode,
            config,
            before,
            monitor: Monitor::default(),
            steady: Steady::new(generation),
            auto_raise: AutoRaise::default(),
            left: BTreeSet::new(),
            has_ended: false,
            vitals: Vitals::default(),
        }
    }

    /// What to change now, in the order in which it is to be done.
    ///
    /// # Errors
    /// When the server does not report what is needed.
    pub fn step(&mut self, look: &Look<'_>) -> Result<Vec<Move>, Missing> {
        self.vitals = self.monitor.take(look.now_us, look.sample)?;
        // Without a rate nothing can be decided.
        if self.vitals.dt_s == 0.0 || self.has_ended {
            return Ok(Vec::new());
        }
        let view = StepView {
            now_us: look.now_us,
            now: &self.vitals,
            present: look.present,
            before: &self.before,
            config: &self.config,
            ages: self.monitor.ages(),
            read_ms: look.read_ms,
            seeks: look.seeks,
            is_stalled: look.is_stalled,
            utc_s: look.utc_s,
        };
        let moves = match self.mode {
            TuneMode::Steady => self.steady.step(&view),
            TuneMode::AutoRaise => self.auto_raise.step(&self.vitals, look.present, &self.config),
        };
        Ok(moves.into_iter().filter_map(|one| self.allowed(one, look.present)).collect())
    }

    fn allowed(&self, mut one: Move, present: &LeverValues) -> Option<Move> {
        let now = present.get(one.lever).filter(|_| !self.left.contains(&one.lever))?;
        // The way back is always allowed.
        if self.before.get(one.lever) != Some(one.to) {
            let bounds = self.config.bounds(one.lever);
            one.to = one.to.clamp(bounds.min, bounds.max);
        }
        (one.to != now).then_some(one)
    }

    /// Moves a setting no more: another user has set it. Moves nothing any more where the others
    /// are not safe without it; everything has to go back then.
    pub fn leave(&mut self, lever: Lever) {
        self.left.insert(lever);
        self.has_ended |= SAFE_TOGETHER.contains(&lever);
    }

    /// Whether a setting was left to another user.
    pub fn has_left(&self, lever: Lever) -> bool {
        self.left.contains(&lever)
    }

    /// Whether nothing is moved any more.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether the server would be tuned from this look on, and is not yet.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn would_begin(&self, look: &Look<'_>) -> Result<bool, Missing> {
        if self.is_active() || self.has_ended {
            return Ok(false);
        }
        let mut ahead = self.clone();
        ahead.step(look)?;
        Ok(ahead.is_active())
    }

    /// The server's own settings have become these while it was not tuned.
    pub fn renew(&mut self, before: LeverValues) {
        self.before = before;
    }

    /// Why the server has its own settings; absent while it is tuned.
    pub fn rest(&self) -> Option<Rest> {
        if self.has_ended {
            return self
                .left
                .iter()
                .find(|lever| SAFE_TOGETHER.contains(lever))
                .map(|lever| Rest::Taken(*lever));
        }
        self.steady.rest.clone().filter(|_| self.mode == TuneMode::Steady)
    }

    /// Where the age is held, in percent of its limit.
    pub fn set_point_pct(&self) -> f64 {
        steady::set_point_pct(&self.vitals, &self.config)
    }

    /// The state at the last step.
    pub fn vitals(&self) -> &Vitals {
        &self.vitals
    }

    /// Whether the server is tuned now; otherwise it has its own settings.
    pub fn is_active(&self) -> bool {
        self.rest().is_none()
    }
}
