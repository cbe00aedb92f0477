//! The loop: one moment after the other until the span is over.

use std::collections::VecDeque;

use iostrata_innodb::flush::{AdmitRule, AgeLimits, Finished, WritePace, policy};
use iostrata_stats::{LatencyHistogram, Random};

use super::access::classes;
use super::dirty::DirtyPages;
use super::outcome::{FlushOutcome, FlushSecond};
use super::plan::{Demand, FlushChange, FlushPlan, FlushPlanError};
use super::state::{CleanerThread, FlushCounts, Happening, PageWriter, Redo, TASKS, User, World};
use super::volume::Volume;
use crate::drive::Agenda;

const SECOND_NS: u64 = 1_000_000_000;
/// Share of the redo files that the age may take before reserves: all segments but one.
const SEGMENTS: u64 = 32;
/// Dirty pages are told apart by so many parts of the redo.
const AGE_PARTS: u64 = 256;
/// Sessions that serve an open rate.
const SESSIONS: usize = 256;
/// Transactions per second that are followed one by one; of more, several are done in one go.
pub(super) const FOLLOWED_PER_S: f64 = 400.0;
/// What the load was is forgotten at this rate per second.
const KEPT: f64 = 0.95;

/// Simulates a plan.
///
/// # Errors
/// A plan that can't be simulated.
pub fn run(plan: &FlushPlan) -> Result<FlushOutcome, FlushPlanError> {
    run_while(plan, FOLLOWED_PER_S, |_| false)
}

/// Simulates a plan until a second after which it `is_over`, at most as long as it says. Of more
/// transactions than are followed per second, several are done in one go.
///
/// # Errors
/// A plan that can't be simulated.
pub(super) fn run_while(
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
    pub(super) fn new(plan: &FlushPlan) -> Self {
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
                last: Finished::default(),
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

    pub(super) fn start(&mut self) {
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
    pub(super) fn run_until(&mut self, end_ns: u64) {
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

    pub(super) fn change(&mut self, change: FlushChange) {
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

    pub(super) fn outcome(mut self) -> FlushOutcome {
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
