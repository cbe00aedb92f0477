//! Holds the age at its set-point.
//!
//! Invariant: a server that needs no help has its own settings, and gets them back when it no
//! longer does.

use iostrata_innodb::flush::Ages;

use crate::tune::budget::BudgetUse;
use crate::tune::config::TuneConfig;
use crate::tune::delay;
use crate::tune::device::DeviceLimit;
use crate::tune::dirty_limit;
use crate::tune::gain::Gain;
use crate::tune::generation::Generation;
use crate::tune::lever::{Lever, LeverValues, Move};
use crate::tune::monitor::Vitals;
use crate::tune::need::{Need, Rest};
use crate::tune::pace::SteadyPace;
use crate::tune::pinned::PinnedPace;

/// The pace changes by such factors in one step at most, and is left where it is within the last.
const STEP_UP: f64 = 1.5;
const STEP_DOWN: f64 = 0.7;
const NEAR: f64 = 0.03;
/// `innodb_io_capacity_max` over `innodb_io_capacity`, and where it is left as it is.
const MAX_OVER: f64 = 1.25;
const MAX_OVER_MOST: f64 = 2.0;
/// Below this share of the set-point `innodb_io_capacity_max` is what the user has set at least, as
/// a reserve for a load that surges; above that one it takes no more than keeps a burst small.
const RESERVE_BELOW: f64 = 0.9;
const NO_RESERVE_ABOVE: f64 = 1.02;
/// A server that weighs its age by itself is led again above so many times the least capacity.
const LED_ABOVE: f64 = 1.25;
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
    /// Whether the disk below the data seeks, where that is known.
    pub seeks: Option<bool>,
    pub is_stalled: bool,
    /// Seconds since 1970.
    pub utc_s: u64,
}

/// Leads one server.
#[derive(Clone, Debug)]
pub(crate) struct Steady {
    generation: Generation,
    need: Need,
    gain: Gain,
    spent: BudgetUse,
    /// Why the server has its own settings; absent while it is tuned.
    pub rest: Option<Rest>,
    led: TunedServer,
}

/// A server while it is led.
#[derive(Clone, Copy, Debug)]
struct TunedServer {
    generation: Generation,
    pace: SteadyPace,
    pinned: PinnedPace,
    device: DeviceLimit,
    ease: f64,
    /// Whether more is wanted than the device can, or the user allows.
    is_short: bool,
    /// Whether it weighs the age by itself: less is wanted than it can be set to write.
    is_own: bool,
}

impl Steady {
    pub fn new(generation: Generation) -> Self {
        let (need, gain, spent) = (Need::default(), Gain::default(), BudgetUse::default());
        let led = TunedServer::new(generation);
        Self { generation, need, gain, spent, rest: Some(Rest::Redo), led }
    }

    pub fn step(&mut self, view: &StepView<'_>) -> Vec<Move> {
        let is_active = self.rest.is_none();
        self.need.take(view.now);
        self.gain.take(view.now, is_active, view.is_stalled);
        self.spent.take(view.now, view.utc_s, is_active);
        self.rest = self.why_to_rest(view, is_active);
        match (&self.rest, is_active) {
            (Some(_), false) => Vec::new(),
            (Some(why), true) => give_back(view, why),
            (None, false) => {
                self.need.begin();
                self.led = TunedServer::new(self.generation);
                let mut moves = self.generation.held_settings(view.present);
                moves.extend(self.led.step(view, true));
                moves
            }
            (None, true) => self.led.step(view, false),
        }
    }

    fn why_to_rest(&self, view: &StepView<'_>, is_active: bool) -> Option<Rest> {
        let set_point = set_point_bytes(view);
        self.spent
            .rest(&view.config.budget, view.utc_s)
            .or_else(|| self.gain.rest())
            .or_else(|| self.need.rest(view.now, set_point, view.is_stalled, is_active))
    }
}

impl TunedServer {
    fn new(generation: Generation) -> Self {
        let (pace, pinned) = (SteadyPace::default(), PinnedPace::default());
        let (device, is_short, is_own) = (DeviceLimit::default(), false, false);
        Self { generation, pace, pinned, device, ease: 1.0, is_short, is_own }
    }

    fn step(&mut self, view: &StepView<'_>, is_first: bool) -> Vec<Move> {
        let mut moves = Vec::new();
        self.pinned.take(view.now);
        moves.extend(neighbors(view));
        let set_point = set_point_bytes(view);
        let limit = dirty_limit::raised(view.now, view.present, set_point, self.generation);
        moves.extend(limit);
        let target = self.target(view);
        if self.generation.obeys(view.now) {
            moves.extend(capacity(view, self.generation, (target, self.ease), is_first));
        } else {
            // Nothing is taken away from a server that is short of redo before rates are known.
            let takes_away = self.pinned.is_known();
            let wanted = pinned(view, self.pinned.most(view.now));
            let is_more = |one: &Move| view.present.get(one.lever).is_some_and(|now| one.to > now);
            moves.extend(wanted.into_iter().filter(|one| takes_away || is_more(one)));
        }
        if self.generation == Generation::MariaDb && !is_first {
            moves.extend(self.weighing(view));
        }
        if view.config.allow_delay {
            moves.extend(delay::moves(view.now, self.is_short, view.present, view.before));
        }
        moves
    }

    /// Whether a MariaDB weighs the age by itself. Without that each pass writes
    /// `innodb_io_capacity` pages, also where fewer are wanted.
    fn weighing(&self, view: &StepView<'_>) -> Option<Move> {
        let lever = Lever::AdaptiveFlushing;
        let (to, why) = match self.is_own {
            true => (1.0, "fewer pages are wanted than innodb_io_capacity can be set to"),
            false => (0.0, "each pass then writes innodb_io_capacity pages, no more and no fewer"),
        };
        let differs = view.present.get(lever).is_some_and(|now| now != to);
        differs.then(|| Move { lever, to, why: why.to_owned() })
    }

    /// Pages per second to request of the server.
    fn target(&mut self, view: &StepView<'_>) -> f64 {
        let StepView { now, config, present, .. } = view;
        let between = self.generation.checkpoint_s() * now.redo_bytes_per_s;
        let set_point = set_point_bytes(view);
        let set_point = (set_point - between).max(set_point * SET_POINT_LEAST);
        let learns = self.generation.obeys(now) && !self.is_own;
        let asked = self.pace.step(now, &view.ages, set_point, (self.generation, learns));
        let io = present.get(Lever::IoCapacity).unwrap_or(asked);
        match self.generation.obeys(now) {
            true => self.device.take(view.now_us, io, now.written_per_s, now.dirty_pages),
            false => self.device.look_anew(),
        }
        self.ease(view, set_point);
        let limit = self.device.pages_per_s().unwrap_or(f64::INFINITY);
        let bounds = config.bounds(Lever::IoCapacity);
        self.is_own = asked < bounds.min * if self.is_own { LED_ABOVE } else { 1.0 };
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

/// Why less is wanted than the age requires.
fn for_reads(read_ms: Option<f64>, ease: f64) -> String {
    let less = format!("{:.0} % less", 100.0 * (1.0 - ease));
    let said = |ms| format!(", {less} as reads take {ms:.1} ms");
    read_ms.filter(|_| ease < 1.0).map(said).unwrap_or_default()
}

/// The set-point in percent of the limit, and below the async limit in any case: above that the
/// server flushes all it may, and commits wait behind that.
pub(crate) fn set_point_pct(now: &Vitals, config: &TuneConfig) -> f64 {
    let most = now.async_bytes.map(|bytes| 100.0 * BELOW_ASYNC * bytes / now.limit_bytes);
    most.map_or(config.set_point_pct, |most| most.min(config.set_point_pct))
}

fn set_point_bytes(view: &StepView<'_>) -> f64 {
    view.now.limit_bytes * set_point_pct(view.now, view.config) / 100.0
}

/// On a disk that does not seek, neighbours of a page need not be written with it.
fn neighbors(view: &StepView<'_>) -> Option<Move> {
    let lever = Lever::FlushNeighbors;
    let is_set = view.present.get(lever).is_some_and(|now| now != 0.0);
    let why = "a page is written for its age alone, not its neighbours with it";
    let is_wanted = is_set && view.seeks == Some(false);
    is_wanted.then(|| Move { lever, to: 0.0, why: why.to_owned() })
}

/// The user's own values of all that differs from them.
fn give_back(view: &StepView<'_>, rest: &Rest) -> Vec<Move> {
    let why = format!("{rest}: the server has its own settings again");
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
fn capacity(
    view: &StepView<'_>,
    generation: Generation,
    (target, ease): (f64, f64),
    is_first: bool,
) -> Vec<Move> {
    let StepView { now, present, config, .. } = view;
    let (io_lever, max_lever) = (Lever::IoCapacity, Lever::IoCapacityMax);
    let Some(io) = present.get(io_lever) else { return Vec::new() };
    let own = |lever| view.before.get(lever).unwrap_or(0.0).min(config.bounds(lever).max);
    let stepped = match is_first || now.surges {
        // What the user has set bears a surge until its rate is known.
        true if now.surges => target.max(own(io_lever)),
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
    let (wanted, why) = match reserve(view, generation, own(max_lever)) {
        Some(reserve) => {
            (max.max(reserve).max(to), "a load that surges may take what it is set to")
        }
        None if max >= to && max <= MAX_OVER_MOST * to => return moves,
        None => {
            let bounds = config.bounds(max_lever);
            let over = ((to * MAX_OVER / 50.0).ceil() * 50.0).clamp(bounds.min, bounds.max);
            let why = "a burst at the limit of the redo takes no more than the device can bear \
                       beside it";
            (over.max(to), why)
        }
    };
    let one = Move { lever: max_lever, to: wanted, why: why.to_owned() };
    // The greater of the two is raised first and lowered last.
    let at = if wanted > max { 0 } else { moves.len() };
    if wanted != max {
        moves.insert(at, one);
    }
    moves
}

/// What `innodb_io_capacity_max` is at least; nothing where it follows `innodb_io_capacity`. In the
/// formula of a MySQL one is a factor to the other, so that there it is for a surge only.
fn reserve(view: &StepView<'_>, generation: Generation, own: f64) -> Option<f64> {
    let share = view.now.age_bytes / set_point_bytes(view);
    match generation {
        Generation::MariaDb if share < RESERVE_BELOW => Some(own),
        Generation::MariaDb => (share < NO_RESERVE_ABOVE).then_some(0.0),
        _ => view.now.surges.then_some(own),
    }
}
