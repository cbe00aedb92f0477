//! The engine at one moment of virtual time, and what is to happen to it.
//!
//! Invariant: plain data; what happens is in the files that act on it.

use std::collections::VecDeque;

use iostrata_innodb::Lsn;
use iostrata_innodb::flush::{
    ActionOutcome, AdmitRule, AgeLimits, FlushPolicy, UserWork, WritePace,
};
use iostrata_stats::{LatencyHistogram, Random};

use super::dirty::{DirtyPages, InFlightPages};
use super::plan::{FlushPlan, FlushSecond};
use super::volume::Volume;
use crate::drive::Agenda;

/// Something that happens at its moment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    /// A user goes on, unless something else came first.
    User { user: u32, turn: u32 },
    /// A transaction is requested, for any user.
    Arrival,
    /// A write of redo is durable.
    RedoDurable,
    /// A leader has waited long enough for others to come.
    Gathered { turn: u32 },
    /// The cleaner looks, unless it was woken before.
    Cleaner { turn: u32 },
    /// A request of a writer is done.
    Writer(WriterId),
    /// A second is over.
    Second,
    /// A change of the plan.
    Change(usize),
}

/// Who has pages written; each does one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskSlot {
    /// The cleaner.
    Cleaner,
    /// The one user who flushes for all.
    UserFlush,
    /// The one user who takes a checkpoint for all.
    UserCheckpoint,
    /// The one user who frees frames for all.
    UserFrames,
}

/// Who writes: each writes one batch at a time. The first of a task is numbered as the task is; the
/// others are the cleaner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriterId(pub usize);

/// Tasks that there may be at once.
pub(super) const TASKS: usize = 4;

impl WriterId {
    /// The first of a task.
    pub fn first_of(slot: TaskSlot) -> Self {
        Self(slot as usize)
    }

    /// Whose batches it writes.
    pub fn slot(self) -> TaskSlot {
        match self.0 {
            1 => TaskSlot::UserFlush,
            2 => TaskSlot::UserCheckpoint,
            3 => TaskSlot::UserFrames,
            _ => TaskSlot::Cleaner,
        }
    }
}

/// What a task is to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// The oldest pages.
    Oldest { until: Lsn, checkpoints: bool },
    /// Frames at the cold end.
    Frames,
    /// A checkpoint.
    Checkpoint,
    /// The redo up to its end.
    SyncRedo,
    /// Purge, which takes processor time only.
    Purge,
}

/// What a writer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriterStep {
    /// Nothing: it has nothing to do.
    Idle,
    /// The redo behind its pages.
    Redo,
    /// Its copies, and its turn to write as many pages as may be in flight.
    Copies,
    InPlace,
    /// The redo up to its checkpoint, then the checkpoint itself.
    CheckpointRedo,
    Checkpoint,
    /// Nothing but time.
    Time,
}

/// Something that is being done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub work: Work,
    /// Pages to write, or to free, that no batch has.
    pub left: f64,
    pub flushed: f64,
    pub freed: f64,
    pub has_purged: bool,
    pub begun_ns: u64,
    /// Who does it, where that is a user.
    pub user: Option<u32>,
}

/// A writer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageWriter {
    pub step: WriterStep,
    pub batch: InFlightPages,
    /// Pages of the batch that were begun.
    pub begun: f64,
    pub checkpoint: u64,
}

impl PageWriter {
    pub const IDLE: Self = Self {
        step: WriterStep::Idle,
        batch: InFlightPages { pages: 0.0, oldest: 0, key: 0 },
        begun: 0.0,
        checkpoint: 0,
    };
}

/// Why a user does not go on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Hold {
    /// It was not held yet.
    None,
    /// Delayed since then.
    Delay { since_ns: u64 },
    /// Until nothing older is dirty.
    Oldest(Lsn),
    /// Until the checkpoint is there, with what it does for that.
    Checkpoint(Lsn, UserWork),
    /// It flushes, or waits to do so.
    Flush(Lsn),
    /// No free frame.
    Frames,
    /// No room in the redo.
    Room,
}

/// Where a user is in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserStep {
    Idle,
    /// Computes and reads.
    Works,
    /// Requests to write.
    Asks,
    /// Waits for its redo.
    Commits,
}

/// A user.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    pub step: UserStep,
    pub hold: Hold,
    /// Whether it has done what the rule required.
    pub has_helped: bool,
    pub is_parked: bool,
    /// Counts its moments, so that one that was overtaken is known.
    pub turn: u32,
    /// Transactions that it does in one go.
    pub weight: f64,
    /// How long its transaction waited for a session, and when it requested to write.
    pub queued_ns: u64,
    pub asked_ns: u64,
    /// Since when it is stopped, and for how long it was: not only slowed down.
    pub held_ns: u64,
    pub stopped_ns: u64,
}

impl User {
    /// An idle writer.
    pub const IDLE: Self = Self {
        step: UserStep::Idle,
        hold: Hold::None,
        has_helped: false,
        is_parked: false,
        turn: 0,
        weight: 1.0,
        queued_ns: 0,
        asked_ns: 0,
        held_ns: 0,
        stopped_ns: 0,
    };
}

/// The redo and its waiters.
#[derive(Debug, Default)]
pub(super) struct Redo {
    pub lsn: u64,
    pub durable: u64,
    pub checkpoint: u64,
    /// What is being written ends here, was begun then, and stands for so many writes.
    pub writing: Option<(u64, u64, f64)>,
    pub waiting: VecDeque<(u64, RedoWaiter)>,
    /// The waiters when the last write ended, and how long it took.
    pub population: usize,
    pub lead_ns: u64,
    /// When the present leader gives up waiting for others.
    pub gather_until_ns: Option<u64>,
    pub gather_turn: u32,
    pub writes: u64,
    pub writes_ns: u64,
    pub stalled_writes: u64,
}

/// A waiter for redo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedoWaiter {
    User(u32),
    Writer(WriterId),
}

/// The cleaner's thread.
pub(super) struct CleanerThread {
    pub policy: Box<dyn FlushPolicy>,
    pub last: ActionOutcome,
    pub turn: u32,
    /// When it looked last, and when it will look again if it sleeps.
    pub looked_ns: u64,
    pub sleeps_until_ns: Option<u64>,
    pub is_firm: bool,
    pub is_woken: bool,
    pub is_furious: bool,
    pub flushed_carry: f64,
    pub freed_carry: f64,
    pub ages: Vec<(Lsn, u32)>,
    /// How fast its policy has pages written.
    pub pace: WritePace,
}

/// What is counted since the engine opened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlushCounts {
    pub commits: f64,
    pub list_flushed: f64,
    pub lru_flushed: f64,
    pub page_reads: f64,
    pub furious: u64,
    pub waits: f64,
    pub checkpoints: u64,
    pub age_max: u64,
    /// Time of users that the rule slowed down or stopped, in user-seconds.
    pub delayed_s: f64,
    pub stopped_s: f64,
}

/// Everything.
pub(super) struct World {
    pub plan: FlushPlan,
    pub limits: AgeLimits,
    pub now_ns: u64,
    pub agenda: Agenda<Happening>,
    pub random: Random,
    pub volume: Volume,
    pub dirty: DirtyPages,
    pub redo: Redo,
    pub cleaner: CleanerThread,
    pub rule: AdmitRule,
    pub tasks: [Option<Task>; TASKS],
    pub writers: Vec<PageWriter>,
    /// When the pace lets the next page begin.
    pub paced_ns: f64,
    pub users: Vec<User>,
    /// Users who may begin; the others have left.
    pub active: usize,
    pub idle: Vec<u32>,
    /// Transactions that wait for a user, and when they arrived.
    pub queued: VecDeque<(u64, f64)>,
    pub load: f64,
    pub weight: f64,
    /// Transactions per second that are followed one by one.
    pub followed_per_s: f64,
    pub tps_recent: f64,
    pub parked: Vec<u32>,
    /// Held up by the pace of the redo, in the order in which they came.
    pub paced: VecDeque<u32>,
    pub wants_flush: VecDeque<(u32, Lsn)>,
    pub frames: f64,
    pub free_frames: f64,
    pub cpu_free_ns: f64,
    pub reads_carry: f64,
    pub history: f64,
    pub purged_ns: u64,
    pub counts: FlushCounts,
    pub commit_waits: LatencyHistogram,
    pub second: FlushSecond,
    pub seconds: Vec<FlushSecond>,
}

impl World {
    pub fn task(&mut self, slot: TaskSlot) -> &mut Option<Task> {
        &mut self.tasks[slot as usize]
    }

    pub fn has_task(&self, slot: TaskSlot) -> bool {
        self.tasks[slot as usize].is_some()
    }

    /// The oldest change of a dirty page, or the end of the redo.
    pub fn oldest(&self) -> u64 {
        self.dirty.oldest().map_or(self.redo.lsn, |oldest| oldest.min(self.redo.lsn))
    }

    pub fn note(&mut self, at_ns: u64, what: Happening) {
        self.agenda.note(at_ns.max(self.now_ns), what);
    }

    /// A user goes on at a moment; whatever else was to move it does so no more.
    pub fn note_user(&mut self, at_ns: u64, user: u32) {
        let one = &mut self.users[user as usize];
        one.turn = one.turn.wrapping_add(1);
        let turn = one.turn;
        self.note(at_ns, Happening::User { user, turn });
    }
}
