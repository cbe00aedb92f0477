//! What the cleaner and users have done by the device: the one place where an action is performed.
//!
//! Method: as the engine's flusher does it. Pages are written in batches: the redo behind them, the
//! copies, the pages in place; then a checkpoint where it is worth its write.
//! Invariant: a checkpoint lies at or before the oldest change that is not written.

use iostrata_flush::{BATCH_PAGES, Finished};
use iostrata_page::Lsn;
use iostrata_settings::Doublewrite;

use super::dirty::Flown;
use super::state::{Happening, RedoWaiter, Task, TaskSlot, TaskStep, Work, World};

/// A task that found nothing to do takes this long, in ns: whoever asks at once would turn in
/// circles.
const NOTHING_NS: u64 = 200_000;
/// The cleaner's own time between two actions, in ns.
const LOOK_NS: u64 = 20_000;
/// Bytes of the file that says where the checkpoint is.
const CHECKPOINT_BYTES: f64 = 4096.0;
/// Processor time to purge one transaction, in ns.
pub(super) const PURGE_NS: f64 = 50_000.0;

impl World {
    /// Begins something, which goes on by itself until it is done.
    pub(super) fn begin_task(&mut self, slot: TaskSlot, work: Work, pages: f64, user: Option<u32>) {
        *self.task(slot) = Some(Task {
            work,
            step: TaskStep::Time,
            left: pages,
            flushed: 0.0,
            freed: 0.0,
            has_purged: false,
            batch: Flown::default(),
            checkpoint: 0,
            begun_ns: self.now_ns,
            user,
        });
        self.dirty.spread(self.redo.lsn);
        match work {
            Work::Oldest { .. } => self.next_batch(slot),
            Work::Frames => {
                self.drop_clean(slot);
                self.next_batch(slot);
            }
            Work::Checkpoint => self.checkpoint(slot),
            Work::SyncRedo => {
                self.set_step(slot, TaskStep::Time);
                self.need_redo(self.redo.lsn, RedoWaiter::Task(slot));
            }
            Work::Purge => self.purge_batch(slot),
        }
    }

    /// What a task waited for has come.
    pub(super) fn go_on(&mut self, slot: TaskSlot) {
        let Some(task) = *self.task(slot) else { return };
        match task.step {
            TaskStep::Redo => self.write_copies(slot, task.batch),
            TaskStep::Copies => self.write_in_place(slot, task.batch),
            TaskStep::InPlace => self.landed(slot, task),
            TaskStep::CheckpointRedo => {
                let done_ns = self.volume.redo(self.now_ns, CHECKPOINT_BYTES, 1.0);
                self.wait_until(slot, TaskStep::Checkpoint, done_ns);
            }
            TaskStep::Checkpoint => self.took_checkpoint(slot, task),
            TaskStep::Time => self.end_task(slot, task),
        }
    }

    fn set_step(&mut self, slot: TaskSlot, step: TaskStep) {
        if let Some(task) = self.task(slot) {
            task.step = step;
        }
    }

    fn wait_until(&mut self, slot: TaskSlot, step: TaskStep, at_ns: u64) {
        self.set_step(slot, step);
        self.note(at_ns, Happening::Task(slot));
    }

    fn next_batch(&mut self, slot: TaskSlot) {
        let Some(task) = *self.task(slot) else { return };
        let size = f64::from(BATCH_PAGES.min(self.plan.settings.doublewrite_pages));
        let most = size.min(task.left);
        let is_over = task.left < 0.5;
        let batch = match task.work {
            _ if is_over => Flown::default(),
            Work::Oldest { until, .. } => {
                self.dirty.take_oldest(most, until.0, self.plan.settings.flush_neighbors)
            }
            Work::Frames => self.dirty.take_cold(most),
            Work::Checkpoint | Work::SyncRedo | Work::Purge => Flown::default(),
        };
        if batch.pages <= 0.0 {
            let wants = matches!(task.work, Work::Oldest { checkpoints: true, .. });
            if wants && task.flushed == 0.0 {
                return self.checkpoint(slot);
            }
            let pause_ns = if task.flushed + task.freed > 0.0 { 0 } else { NOTHING_NS };
            return self.wait_until(slot, TaskStep::Time, self.now_ns + pause_ns);
        }
        if let Some(task) = self.task(slot) {
            (task.batch, task.left) = (batch, task.left - batch.pages);
            task.step = TaskStep::Redo;
        }
        // Among so many pages some were changed a moment ago.
        self.need_redo(self.redo.lsn, RedoWaiter::Task(slot));
    }

    fn write_copies(&mut self, slot: TaskSlot, batch: Flown) {
        let is_whole = match self.plan.settings.doublewrite {
            Doublewrite::On => true,
            Doublewrite::DetectOnly => false,
            Doublewrite::Off => return self.write_in_place(slot, batch),
        };
        let done_ns = self.volume.copies(self.now_ns, batch.pages.ceil(), is_whole);
        self.wait_until(slot, TaskStep::Copies, done_ns);
    }

    fn write_in_place(&mut self, slot: TaskSlot, batch: Flown) {
        let done_ns = self.volume.pages(self.now_ns, batch.pages.ceil());
        self.wait_until(slot, TaskStep::InPlace, done_ns);
    }

    /// A batch is in place.
    fn landed(&mut self, slot: TaskSlot, task: Task) {
        let pages = task.batch.pages;
        self.dirty.land(task.batch);
        self.second.flushed_pages += pages;
        let is_cold = matches!(task.work, Work::Frames);
        if is_cold {
            self.counts.lru_flushed += pages;
            self.free_frames += pages;
        } else {
            self.counts.list_flushed += pages;
        }
        if let Some(task) = self.task(slot) {
            task.flushed += pages;
            task.freed += if is_cold { pages } else { 0.0 };
        }
        // Who waits for old pages to be gone looks again every few milliseconds.
        self.unpark();
        let wants = is_cold || matches!(task.work, Work::Oldest { checkpoints: true, .. });
        if wants && self.is_checkpoint_worth() {
            self.checkpoint(slot)
        } else {
            self.next_batch(slot)
        }
    }

    fn is_checkpoint_worth(&self) -> bool {
        let [last, at, end] = [self.redo.checkpoint, self.oldest(), self.redo.lsn].map(Lsn);
        self.limits.are_worth_checkpoint(last, at, end)
    }

    /// Takes a checkpoint if it moves anything.
    fn checkpoint(&mut self, slot: TaskSlot) {
        let at = self.oldest();
        if at <= self.redo.checkpoint {
            return self.after_checkpoint(slot);
        }
        if let Some(task) = self.task(slot) {
            (task.checkpoint, task.step) = (at, TaskStep::CheckpointRedo);
        }
        self.need_redo(at, RedoWaiter::Task(slot));
    }

    fn took_checkpoint(&mut self, slot: TaskSlot, task: Task) {
        self.redo.checkpoint = self.redo.checkpoint.max(task.checkpoint);
        self.counts.checkpoints += 1;
        self.after_checkpoint(slot);
    }

    fn after_checkpoint(&mut self, slot: TaskSlot) {
        let Some(task) = *self.task(slot) else { return };
        match task.work {
            Work::Oldest { .. } | Work::Frames if task.flushed > 0.0 => {
                self.unpark();
                self.next_batch(slot);
            }
            _ => self.wait_until(slot, TaskStep::Time, self.now_ns + LOOK_NS),
        }
    }

    /// Clean pages at the cold end go without being written.
    fn drop_clean(&mut self, slot: TaskSlot) {
        let share = 1.0 - self.dirty.cold_dirty_share();
        let Some(task) = self.task(slot) else { return };
        let clean = (task.left * share).floor();
        (task.left, task.freed) = (task.left - clean, task.freed + clean);
        self.free_frames = (self.free_frames + clean).min(self.frames);
    }

    fn purge_batch(&mut self, slot: TaskSlot) {
        let batch = f64::from(self.plan.settings.purge_batch_size).min(self.history.floor());
        self.history -= batch;
        if let Some(task) = self.task(slot) {
            task.has_purged = batch > 0.0;
        }
        let took_ns = (batch * PURGE_NS) as u64 + LOOK_NS;
        self.wait_until(slot, TaskStep::Time, self.now_ns + took_ns);
    }

    fn end_task(&mut self, slot: TaskSlot, task: Task) {
        *self.task(slot) = None;
        if let Some(user) = task.user {
            self.note_user(self.now_ns, user);
        }
        match slot {
            TaskSlot::Cleaner => self.cleaner_is_done(task),
            TaskSlot::UserFlush => self.next_user_flush(),
            TaskSlot::UserCheckpoint | TaskSlot::UserFrames => {}
        }
        self.unpark();
    }

    fn cleaner_is_done(&mut self, task: Task) {
        let cleaner = &mut self.cleaner;
        // Whole pages are reported; the parts of one are kept until they make one.
        let whole = |carry: &mut f64, more: f64| {
            *carry += more;
            let whole = carry.floor();
            *carry -= whole;
            whole as u32
        };
        cleaner.last = Finished {
            flushed: whole(&mut cleaner.flushed_carry, task.flushed),
            freed: whole(&mut cleaner.freed_carry, task.freed),
            took_us: (self.now_ns - task.begun_ns) / 1_000,
            has_purged: task.has_purged,
        };
        self.note_look(self.now_ns + LOOK_NS);
    }
}
