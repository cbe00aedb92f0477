//! Holds the age at its set-point.
//!
//! Invariant: a server whose redo does not run out has its own settings, and gets them back when
//! it no longer does.

use iostrata_innodb::flush::Ages;

use crate::config::TuneConfig;
use crate::delay;
use crate::device::DeviceLimit;
use crate::dirty_limit;
use crate::generation::Generation;
use crate::lever::{Lever, LeverValues, Move};
use crate::monitor::Vitals;
use crate::pace::SteadyPace;
use crate::pinned::PinnedPace;

/// A server is tuned from this share of the age's limit on, if the set-point is so many seconds
/// away; or from the higher share on, if redo is made at all.
const BEGIN_SHARE: f64 = 0.1;
const BEGIN_S: f64 = 90.0;
const BEGIN_ANYWAY_SHARE: f64 = 0.5;
/// It is left alone when the age was below this share for so many seconds.
const END_SHARE: f64 = 0.08;
const END_S: f64 = 60.0;
/// The pace changes by such factors in one step at most, and is left where it is within the last.
const STEP_UP: f64 = 1.5;
const STEP_DOWN: f64 = 0.7;
const NEAR: f64 = 0.03;
/// `innodb_io_capacity_max` over `innodb_io_capacity`, and where it is left as it is.
const MAX_OVER: f64 = 1.25;
const MAX_OVER_MOST: f64 = 2.0;
/// Less is written for the sake of reads down to this share, by this factor per second.
const EASE_LEAST: f64 = 0.6;
const EASE_PER_S: f64 = 0.95;
/// But not above this share of the set-point.
const EASE_BELOW: f64 = 1.05;

/// The set-point is at most this share of the age from which the server flushes all it may: the age
/// swings by some percent, and must not come there.
const BELOW_ASYNC: f64 = 0.93;

/// What lies between two checkpoints lowers the set-point to this share at most.
const SET_POINT_LEAST: f64 = 0.5;

/// What a step sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepView<'a> {
    pub now_us: u64,
    pub now: &'a Vitals,
    pub present: &'a LeverValues,
    /// The user's own values.
    pub before: &'a LeverValues,
    pub config: &'a TuneConfig,
    /// The dirty pages by age.
    pub ages: Ages<'a>,
    pub read_ms: Option<f64>,
}

/// Leads one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steady {
    generation: Generation,
    pub is_active: bool,
    calm_s: f64,
    pace: SteadyPace,
    pinned: PinnedPace,
    device: DeviceLimit,
    ease: f64,
    /// Whether more is wanted than the device can, or the user allows.
    is_short: bool,
}

impl Steady {
    pub fn new(generation: Generation) -> Self {
        let (pace, device) = (SteadyPace::default(), DeviceLimit::default());
        let (is_active, is_short) = (false, false);
        let pinned = PinnedPace::default();
        Self { generation, is_active, calm_s: 0.0, pace, pinned, device, ease: 1.0, is_short }
    }

    pub fn step(&mut self, view: &StepView<'_>) -> Vec<Move> {
        let mut moves = Vec::new();
        if !self.is_active {
            if !needs_tuning(view) {
                return moves;
            }
            *self = Self { is_active: true, ..Self::new(self.generation) };
            moves = self.generation.held_settings(view.present);
        } else if self.is_calm(view) {
            self.is_active = false;
            return give_back(view);
        }
        self.pinned.take(view.now);
        let is_first = !moves.is_empty();
        let set_point = set_point_bytes(view);
        let limit = dirty_limit::raised(view.now, view.present, set_point, self.generation);
        moves.extend(limit);
        let target = self.target(view);
        if self.generation.obeys(view.now) {
            moves.extend(capacity(view, (target, self.ease), is_first));
        } else {
            // Nothing is taken away from a server that is short of redo before rates are known.
            let takes_away = self.pinned.is_known();
            let wanted = pinned(view, self.pinned.most(view.now));
            let is_more = |one: &Move| view.present.get(one.lever).is_some_and(|now| one.to > now);
            moves.extend(wanted.into_iter().filter(|one| takes_away || is_more(one)));
        }
        if view.config.allow_delay {
            moves.extend(delay::moves(view.now, self.is_short, view.present, view.before));
        }
        moves
    }

    fn is_calm(&mut self, view: &StepView<'_>) -> bool {
        let is_low = view.now.age_bytes < END_SHARE * view.now.limit_bytes;
        self.calm_s = if is_low { self.calm_s + view.now.dt_s } else { 0.0 };
        self.calm_s >= END_S
    }

    /// Pages per second to ask the server for.
    fn target(&mut self, view: &StepView<'_>) -> f64 {
        let StepView { now, config, present, .. } = view;
        let between = self.generation.checkpoint_s() * now.redo_bytes_per_s;
        let set_point = set_point_bytes(view);
        let set_point = (set_point - between).max(set_point * SET_POINT_LEAST);
        let asked = self.pace.step(now, &view.ages, set_point, self.generation);
        let io = present.get(Lever::IoCapacity).unwrap_or(asked);
        match self.generation.obeys(now) {
            true => self.device.take(view.now_us, io, now.written_per_s, now.dirty_pages),
            false => self.device.look_anew(),
        }
        self.ease(view, set_point);
        let limit = self.device.pages_per_s().unwrap_or(f64::INFINITY);
        let bounds = config.bounds(Lever::IoCapacity);
        let most = bounds.max.min(config.bounds(Lever::IoCapacityMax).max);
        let target = (asked * self.ease).min(limit).min(most).max(bounds.min);
        self.is_short = limit.is_finite() || asked * self.ease > most;
        if target < asked {
            self.pace.bounded(target / asked);
        }
        target
    }

    /// Less is written while reads are slow and the age allows it.
    fn ease(&mut self, view: &StepView<'_>, set_point: f64) {
        let (Some(most), Some(ms)) = (view.config.read_ms_max, view.read_ms) else { return };
        let factor = EASE_PER_S.powf(view.now.dt_s);
        let may_wait = view.now.modified_bytes < EASE_BELOW * set_point;
        self.ease = match ms > most && may_wait {
            true => (self.ease * factor).max(EASE_LEAST),
            false => (self.ease / factor).min(1.0),
        };
    }
}

/// Why less is wanted than the age asks for.
fn for_reads(read_ms: Option<f64>, ease: f64) -> String {
    let less = format!("{:.0} % less", 100.0 * (1.0 - ease));
    let said = |ms| format!(", {less} as reads take {ms:.1} ms");
    read_ms.filter(|_| ease < 1.0).map(said).unwrap_or_default()
}

/// The set-point, and below the async limit in any case: above that the server flushes all it may,
/// and commits wait behind that.
fn set_point_bytes(view: &StepView<'_>) -> f64 {
    let asked = view.now.limit_bytes * view.config.set_point_pct / 100.0;
    view.now.async_bytes.map_or(asked, |bytes| asked.min(bytes * BELOW_ASYNC))
}

fn needs_tuning(view: &StepView<'_>) -> bool {
    let now = view.now;
    let share = now.age_bytes / now.limit_bytes;
    let left_s = now.seconds_of(set_point_bytes(view) - now.age_bytes);
    let is_near = share > BEGIN_SHARE && left_s < BEGIN_S;
    is_near || (share > BEGIN_ANYWAY_SHARE && now.still_s < 1.0 && now.redo_bytes_per_s > 0.0)
}

/// The user's own values of all that differs from them.
fn give_back(view: &StepView<'_>) -> Vec<Move> {
    let why = format!(
        "the checkpoint age was below {:.0} % of its limit for a minute: the server has its own \
         settings again",
        END_SHARE * 100.0
    );
    let back = |(lever, to)| Move { lever, to, why: why.clone() };
    let differs = |(lever, to): &(Lever, f64)| view.present.get(*lever) != Some(*to);
    view.before.iter().filter(differs).map(back).collect()
}

/// The moves that bring both capacities to what may be written at most above the async limit.
fn pinned(view: &StepView<'_>, most: f64) -> Vec<Move> {
    let StepView { now, present, config, .. } = view;
    let why = format!(
        "age {:.0} % of its limit; above {:.0} % the server writes only what is older than that, and \
         {most:.0} pages/s at most keep it even",
        now.age_pct(),
        100.0 * now.async_bytes.unwrap_or(now.limit_bytes) / now.limit_bytes,
    );
    let to = (most / 5.0).round() * 5.0;
    let one = |lever: Lever| {
        let bounds = config.bounds(lever);
        let (now, to) = (present.get(lever)?, to.clamp(bounds.min, bounds.max));
        ((to / now - 1.0).abs() >= NEAR).then(|| Move { lever, to, why: why.clone() })
    };
    let (io, max) = (one(Lever::IoCapacity), one(Lever::IoCapacityMax));
    // The greater of the two is raised first and lowered last.
    let is_raised = max.as_ref().is_some_and(|max| Some(max.to) > present.get(max.lever));
    let moves = if is_raised { [max, io] } else { [io, max] };
    moves.into_iter().flatten().collect()
}

/// The moves that bring the two capacities to a target, which is less by a factor for the sake of
/// reads.
fn capacity(view: &StepView<'_>, (target, ease): (f64, f64), is_first: bool) -> Vec<Move> {
    let StepView { now, present, config, .. } = view;
    let (io_lever, max_lever) = (Lever::IoCapacity, Lever::IoCapacityMax);
    let Some(io) = present.get(io_lever) else { return Vec::new() };
    let stepped = match is_first {
        true => target,
        false => target.clamp(io * STEP_DOWN, io * STEP_UP),
    };
    let to = ((stepped / 5.0).round() * 5.0).max(config.bounds(io_lever).min);
    let is_near = (to / io - 1.0).abs() < NEAR;
    let to = if is_near { io } else { to };
    let mut moves = Vec::new();
    if !is_near {
        let why = format!(
            "age {:.0} % of its limit, set-point {:.0} %; {:.1} MB/s of redo over {:.0} dirty \
             pages want {target:.0} pages/s{}",
            now.age_pct(),
            100.0 * set_point_bytes(view) / now.limit_bytes,
            now.redo_bytes_per_s / 1e6,
            now.dirty_pages,
            for_reads(view.read_ms, ease),
        );
        moves.push(Move { lever: io_lever, to, why });
    }
    let Some(max) = present.get(max_lever) else { return moves };
    if max >= to && max <= MAX_OVER_MOST * to {
        return moves;
    }
    let bounds = config.bounds(max_lever);
    let wanted = ((to * MAX_OVER / 50.0).ceil() * 50.0).clamp(bounds.min, bounds.max).max(to);
    let why = "a burst at the limit of the redo takes no more than the device can bear beside it";
    let one = Move { lever: max_lever, to: wanted, why: why.to_owned() };
    // The greater of the two is raised first and lowered last.
    let at = if wanted > max { 0 } else { moves.len() };
    if wanted != max {
        moves.insert(at, one);
    }
    moves
}
