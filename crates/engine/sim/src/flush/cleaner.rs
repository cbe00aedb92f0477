//! The cleaner's thread: takes a sample, asks the policy, begins what it says.
//!
//! Invariant: time in samples never goes back; a firm sleep is ended by its end alone, any other by
//! whoever needs the cleaner.

use iostrata_innodb::Lsn;
use iostrata_innodb::flush::{Action, FlushSample, FlushSettings};

use super::state::{Happening, TaskSlot, Work, World};
use super::tasks::PURGE_NS;

/// Longest sleep, whatever the policy says, in ns.
const SLEEP_NS_MAX: u64 = 1_000_000_000;
/// Shortest time between two looks of a cleaner that is woken all the time, in ns.
const WAKE_GAP_NS: u64 = 2_000_000;

impl World {
    /// The cleaner looks at a moment.
    pub(super) fn note_look(&mut self, at_ns: u64) {
        self.cleaner.turn = self.cleaner.turn.wrapping_add(1);
        let turn = self.cleaner.turn;
        self.note(at_ns, Happening::Cleaner { turn });
    }

    /// Somebody needs the cleaner.
    pub(super) fn wake_cleaner(&mut self) {
        let cleaner = &mut self.cleaner;
        let Some(until_ns) = cleaner.sleeps_until_ns.filter(|_| !cleaner.is_firm) else {
            cleaner.is_woken = true;
            return;
        };
        let at_ns = self.now_ns.max(cleaner.looked_ns + WAKE_GAP_NS);
        if at_ns < until_ns {
            cleaner.sleeps_until_ns = Some(at_ns);
            self.note_look(at_ns);
        }
    }

    /// Looks, unless it was woken before.
    pub(super) fn look(&mut self, turn: u32) {
        if self.cleaner.turn != turn || self.has_task(TaskSlot::Cleaner) {
            return;
        }
        self.purge();
        self.dirty.spread(self.redo.lsn);
        let mut ages = std::mem::take(&mut self.cleaner.ages);
        self.dirty.by_age(&mut ages);
        let sample = FlushSample { age_histogram: &ages, ..self.sample() };
        let cleaner = &mut self.cleaner;
        let last = std::mem::take(&mut cleaner.last);
        let action = cleaner.policy.next(&sample, last);
        self.rule = cleaner.policy.admit();
        cleaner.pace = cleaner.policy.write_pace();
        cleaner.looked_ns = self.now_ns;
        cleaner.sleeps_until_ns = None;
        match action {
            Action::Flush { furious, .. } => {
                self.counts.furious += u64::from(furious && !cleaner.is_furious);
                cleaner.is_furious = furious;
            }
            Action::Sleep { .. } => cleaner.is_furious = false,
            _ => {}
        }
        cleaner.ages = ages;
        self.perform(action);
    }

    fn perform(&mut self, action: Action) {
        let slot = TaskSlot::Cleaner;
        let (work, pages) = match action {
            Action::Flush { pages, until, checkpoints, .. } => {
                (Work::Oldest { until, checkpoints }, f64::from(pages))
            }
            Action::Lru { pages } => (Work::Frames, f64::from(pages)),
            Action::Purge => (Work::Purge, 0.0),
            Action::SyncRedo => (Work::SyncRedo, 0.0),
            Action::Checkpoint => (Work::Checkpoint, 0.0),
            Action::Sleep { until_us, firm } => return self.sleep(until_us, firm),
        };
        self.begin_task(slot, work, pages, None);
    }

    fn sleep(&mut self, until_us: u64, firm: bool) {
        self.unpark();
        let (now_ns, has_parked) = (self.now_ns, !self.parked.is_empty());
        let longest_ns = now_ns + SLEEP_NS_MAX;
        let mut until_ns = until_us.saturating_mul(1_000).clamp(now_ns + 1_000, longest_ns);
        let cleaner = &mut self.cleaner;
        let is_woken = std::mem::take(&mut cleaner.is_woken) || has_parked;
        if is_woken && !firm {
            until_ns = until_ns.min(now_ns + WAKE_GAP_NS);
        }
        (cleaner.sleeps_until_ns, cleaner.is_firm) = (Some(until_ns), firm);
        self.note_look(until_ns);
    }

    /// What the purge threads did since the last time.
    fn purge(&mut self) {
        let passed_ns = (self.now_ns - self.purged_ns) as f64;
        self.purged_ns = self.now_ns;
        let threads = f64::from(self.plan.settings.purge_threads);
        self.history = (self.history - passed_ns / PURGE_NS * threads).max(0.0);
    }

    fn sample(&mut self) -> FlushSample<'static> {
        let flying = self.dirty.flying_pages();
        let pending_reads = self.volume.pending_reads(self.now_ns);
        FlushSample {
            now_us: self.now_ns / 1_000,
            lsn: Lsn(self.redo.lsn),
            durable: Lsn(self.redo.durable),
            checkpoint: Lsn(self.redo.checkpoint),
            oldest: self.dirty.oldest().map(Lsn),
            limits: self.limits,
            dirty_pages: self.dirty.pages().round() as u64,
            free_frames: self.free_frames as u64,
            frames: self.frames as u64,
            lru_flushed: self.counts.lru_flushed as u64,
            list_flushed: self.counts.list_flushed as u64,
            redo_file_bytes: self.plan.settings.redo_log_capacity,
            commits: self.counts.commits as u64,
            page_ios: (self.counts.page_reads + self.dirty.written) as u64,
            redo_writes: self.redo.writes,
            redo_write_us: self.redo.writes_ns / 1_000,
            stalled_redo_writes: self.redo.stalled_writes,
            pending_reads,
            pending_writes: flying as u64,
            settings: FlushSettings::of(&self.plan.settings),
            ..FlushSample::default()
        }
    }
}
