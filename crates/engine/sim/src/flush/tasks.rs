//! The cleaner's thread, and what it and users have done by the device: the one place where an
//! action is performed.
//!
//! Method: as the engine's cleaner and flusher do it. The thread takes a sample, calls the policy,
//! begins what it returns. Pages are written in batches, several at once: the redo behind them, the
//! copies, the pages in place, no more of them in flight than the policy's pace allows; then a
//! checkpoint where it is worth its write.
//! Invariants: time in samples never goes back; a firm sleep is ended by its end alone, any other
//! by a user or task that needs the cleaner. A checkpoint lies at or before the oldest change that
//! is not written.

use iostrata_innodb::flush::{
    Action, ActionOutcome, BATCH_PAGES, FlushSample, FlushSettings, WritePace, batch_share,
    batches_at_once,
};
use iostrata_innodb::{Doublewrite, Lsn};

use super::dirty::InFlightPages;
use super::state::{
    Happening, PageWriter, RedoWaiter, TASKS, Task, TaskSlot, Work, World, WriterId, WriterStep,
};

/// A task that found nothing to do takes this long, in ns: trying again at once would loop without
/// end.
const NOTHING_NS: u64 = 200_000;
/// The cleaner's own time between two actions, in ns.
const LOOK_NS: u64 = 20_000;
/// Bytes of the file that holds where the checkpoint is.
const CHECKPOINT_BYTES: f64 = 4096.0;
/// Processor time to purge one transaction, in ns.
const PURGE_NS: f64 = 50_000.0;

impl World {
    /// Begins something, which goes on by itself until it is done.
    pub(super) fn begin_task(&mut self, slot: TaskSlot, work: Work, pages: f64, user: Option<u32>) {
        *self.task(slot) = Some(Task {
            work,
            left: pages,
            flushed: 0.0,
            freed: 0.0,
            has_purged: false,
            begun_ns: self.now_ns,
            user,
        });
        self.dirty.spread(self.redo.lsn);
        let writer = WriterId::first_of(slot);
        match work {
            Work::Oldest { .. } => self.begin_batches(slot),
            Work::Frames => {
                self.drop_clean(slot);
                self.begin_batches(slot);
            }
            Work::Checkpoint => self.checkpoint(writer),
            Work::SyncRedo => {
                self.writer(writer).step = WriterStep::Time;
                self.need_redo(self.redo.lsn, RedoWaiter::Writer(writer));
            }
            Work::Purge => self.purge_batch(writer),
        }
    }

    fn writer(&mut self, writer: WriterId) -> &mut PageWriter {
        &mut self.writers[writer.0]
    }

    /// The writers of a task: one user, or as many as the pace has room for.
    fn writers_of(&self, slot: TaskSlot) -> impl Iterator<Item = WriterId> + use<> {
        let more = match slot {
            TaskSlot::Cleaner => self.batches_at_once() as usize - 1,
            _ => 0,
        };
        std::iter::once(WriterId::first_of(slot)).chain((TASKS..TASKS + more).map(WriterId))
    }

    fn batches_at_once(&self) -> u32 {
        let most = self.writers.len() - (TASKS - 1);
        batches_at_once(self.cleaner.pace.in_flight, most as u32)
    }

    fn begin_batches(&mut self, slot: TaskSlot) {
        for writer in self.writers_of(slot) {
            if self.task(slot).is_some_and(|task| task.left >= 0.5) || writer.0 < TASKS {
                self.next_batch(writer);
            }
        }
    }

    /// What a writer waited for has come.
    pub(super) fn go_on(&mut self, writer: WriterId) {
        match self.writer(writer).step {
            WriterStep::Idle => {}
            WriterStep::Redo => self.write_copies(writer),
            WriterStep::Copies => self.write_in_place(writer),
            WriterStep::InPlace => self.landed(writer),
            WriterStep::CheckpointRedo => {
                let done_ns = self.volume.redo(self.now_ns, CHECKPOINT_BYTES, 1.0);
                self.wait_until(writer, WriterStep::Checkpoint, done_ns);
            }
            WriterStep::Checkpoint => self.took_checkpoint(writer),
            WriterStep::Time => self.end_task(writer),
        }
    }

    fn wait_until(&mut self, writer: WriterId, step: WriterStep, at_ns: u64) {
        self.writer(writer).step = step;
        self.note(at_ns, Happening::Writer(writer));
    }

    fn next_batch(&mut self, writer: WriterId) {
        let slot = writer.slot();
        let Some(task) = *self.task(slot) else { return };
        let each = match slot {
            TaskSlot::Cleaner => batch_share(task.left, self.batches_at_once()),
            _ => f64::from(BATCH_PAGES),
        };
        let most = each.min(f64::from(self.plan.settings.doublewrite_pages)).min(task.left);
        let is_over = task.left < 0.5;
        let batch = match task.work {
            _ if is_over => InFlightPages::default(),
            Work::Oldest { until, .. } => {
                self.dirty.take_oldest(most, until.0, self.plan.settings.flush_neighbors)
            }
            Work::Frames => self.dirty.take_cold(most),
            Work::Checkpoint | Work::SyncRedo | Work::Purge => InFlightPages::default(),
        };
        if batch.pages <= 0.0 {
            return self.found_nothing(writer, task);
        }
        if let Some(task) = self.task(slot) {
            task.left -= batch.pages;
        }
        *self.writer(writer) = PageWriter { step: WriterStep::Redo, batch, ..PageWriter::IDLE };
        // Among so many pages some were changed a moment ago.
        self.need_redo(self.redo.lsn, RedoWaiter::Writer(writer));
    }

    /// The last of a task's writers ends it.
    fn found_nothing(&mut self, writer: WriterId, task: Task) {
        *self.writer(writer) = PageWriter::IDLE;
        let slot = writer.slot();
        let is_at_work = |(at, one): (usize, &PageWriter)| {
            WriterId(at).slot() == slot && one.step != WriterStep::Idle
        };
        if self.writers.iter().enumerate().any(is_at_work) {
            return;
        }
        let last = WriterId::first_of(slot);
        let wants = matches!(task.work, Work::Oldest { checkpoints: true, .. });
        if wants && task.flushed == 0.0 {
            return self.checkpoint(last);
        }
        let pause_ns = if task.flushed + task.freed > 0.0 { 0 } else { NOTHING_NS };
        self.wait_until(last, WriterStep::Time, self.now_ns + pause_ns);
    }

    fn write_copies(&mut self, writer: WriterId) {
        let is_whole = match self.plan.settings.doublewrite {
            Doublewrite::On => true,
            Doublewrite::DetectOnly => false,
            Doublewrite::Off => return self.write_in_place(writer),
        };
        let pages = self.writer(writer).batch.pages.ceil();
        let done_ns = self.volume.copies(self.now_ns, pages, is_whole);
        self.wait_until(writer, WriterStep::Copies, done_ns);
    }

    /// As many pages as may be in flight; the next ones when these are in place.
    fn write_in_place(&mut self, writer: WriterId) {
        let now_ns = self.now_ns as f64;
        if self.paced_ns > now_ns {
            return self.wait_until(writer, WriterStep::Copies, self.paced_ns.ceil() as u64);
        }
        let WritePace { in_flight, pages_per_s } = self.cleaner.pace;
        let in_flight = (in_flight / self.batches_at_once()).max(1);
        let one = self.writer(writer);
        let left = one.batch.pages.ceil() - one.begun;
        let pages = left.min(f64::from(in_flight));
        one.begun += pages;
        let batch = (pages == left).then_some(one.batch.pages.ceil());
        self.paced_ns = now_ns + pages / pages_per_s * 1e9;
        let done_ns = self.volume.pages(self.now_ns, pages, batch);
        self.wait_until(writer, WriterStep::InPlace, done_ns);
    }

    /// Pages of a batch are in place.
    fn landed(&mut self, writer: WriterId) {
        let PageWriter { batch, begun, .. } = *self.writer(writer);
        if begun < batch.pages {
            return self.write_in_place(writer);
        }
        let slot = writer.slot();
        let Some(task) = self.task(slot) else { return };
        let (pages, work) = (batch.pages, task.work);
        let is_cold = matches!(work, Work::Frames);
        task.flushed += pages;
        task.freed += if is_cold { pages } else { 0.0 };
        self.dirty.land(batch);
        self.second.flushed_pages += pages;
        if is_cold {
            self.counts.lru_flushed += pages;
            self.free_frames += pages;
        } else {
            self.counts.list_flushed += pages;
        }
        // A waiter for old pages to be gone looks again every few milliseconds.
        self.unpark();
        let wants = is_cold || matches!(work, Work::Oldest { checkpoints: true, .. });
        if wants && self.is_checkpoint_worth() {
            self.checkpoint(writer)
        } else {
            self.next_batch(writer)
        }
    }

    /// Whether a checkpoint is worth its write, and none is being taken.
    fn is_checkpoint_worth(&self) -> bool {
        let takes = |one: &PageWriter| {
            matches!(one.step, WriterStep::CheckpointRedo | WriterStep::Checkpoint)
        };
        if self.writers.iter().any(takes) {
            return false;
        }
        let [last, at, end] = [self.redo.checkpoint, self.oldest(), self.redo.lsn].map(Lsn);
        self.limits.are_worth_checkpoint(last, at, end)
    }

    /// Takes a checkpoint if it moves anything.
    fn checkpoint(&mut self, writer: WriterId) {
        let at = self.oldest();
        if at <= self.redo.checkpoint {
            return self.after_checkpoint(writer);
        }
        let one = self.writer(writer);
        (one.checkpoint, one.step) = (at, WriterStep::CheckpointRedo);
        self.need_redo(at, RedoWaiter::Writer(writer));
    }

    fn took_checkpoint(&mut self, writer: WriterId) {
        let at = self.writer(writer).checkpoint;
        self.redo.checkpoint = self.redo.checkpoint.max(at);
        self.counts.checkpoints += 1;
        self.after_checkpoint(writer);
    }

    fn after_checkpoint(&mut self, writer: WriterId) {
        let Some(task) = *self.task(writer.slot()) else { return };
        match task.work {
            Work::Oldest { .. } | Work::Frames if task.flushed > 0.0 => {
                self.unpark();
                self.next_batch(writer);
            }
            _ => self.wait_until(writer, WriterStep::Time, self.now_ns + LOOK_NS),
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

    fn purge_batch(&mut self, writer: WriterId) {
        let batch = f64::from(self.plan.settings.purge_batch_size).min(self.history.floor());
        self.history -= batch;
        if let Some(task) = self.task(writer.slot()) {
            task.has_purged = batch > 0.0;
        }
        let took_ns = (batch * PURGE_NS) as u64 + LOOK_NS;
        self.wait_until(writer, WriterStep::Time, self.now_ns + took_ns);
    }

    fn end_task(&mut self, writer: WriterId) {
        *self.writer(writer) = PageWriter::IDLE;
        let slot = writer.slot();
        let Some(task) = self.task(slot).take() else { return };
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
        cleaner.last = ActionOutcome {
            flushed: whole(&mut cleaner.flushed_carry, task.flushed),
            freed: whole(&mut cleaner.freed_carry, task.freed),
            took_us: (self.now_ns - task.begun_ns) / 1_000,
            has_purged: task.has_purged,
        };
        self.note_look(self.now_ns + LOOK_NS);
    }
}

/// Longest sleep, whatever the policy returns, in ns.
const SLEEP_NS_MAX: u64 = 1_000_000_000;
/// Shortest time between two looks of a cleaner that is woken all the time, in ns.
const WAKE_GAP_NS: u64 = 2_000_000;

impl World {
    /// Schedules the next look of the cleaner.
    pub(super) fn note_look(&mut self, at_ns: u64) {
        self.cleaner.turn = self.cleaner.turn.wrapping_add(1);
        let turn = self.cleaner.turn;
        self.note(at_ns, Happening::Cleaner { turn });
    }

    /// A user or task needs the cleaner.
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
