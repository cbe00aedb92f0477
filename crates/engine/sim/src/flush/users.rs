//! Users: transactions one after the other, each held back by the policy's rule, and made durable
//! by group commit: one write of redo at a time, for all waiters.
//!
//! Invariants: a user does what `decide` answers, as a thread of the engine does, and calls it
//! again. What is durable never goes back; a waiter for redo that is there goes on.

use std::time::Duration;

use iostrata_innodb::flush::{Admit, Lag, STALLED_REDO_WRITE, UserWork, frames_of_user};
use iostrata_innodb::{FlushLogAt, Lsn};

use super::plan::Demand;
use super::state::{Happening, Hold, RedoWaiter, TaskSlot, User, UserStep, Work, World};

/// Shortest time after which a delayed user tries again, in ns.
const ASK_AGAIN_NS: u64 = 2_000_000;
/// Transactions that may wait for a session; more are turned away.
const QUEUED_MAX: usize = 1_000_000;

impl World {
    /// A transaction arrives.
    pub(super) fn arrive(&mut self) {
        let weight = self.weight;
        match self.idle.pop() {
            Some(user) => self.begin(user, self.now_ns, weight),
            None if self.queued.len() < QUEUED_MAX => self.queued.push_back((self.now_ns, weight)),
            None => {}
        }
    }

    /// So many users may begin from now on.
    pub(super) fn set_active(&mut self, active: usize) {
        self.active = active.min(self.users.len());
        let idle = std::mem::take(&mut self.idle);
        for user in idle {
            match (user as usize) < self.active {
                true => self.begin(user, self.now_ns, self.weight),
                false => self.idle.push(user),
            }
        }
    }

    pub(super) fn begin(&mut self, user: u32, asked_ns: u64, weight: f64) {
        let queued_ns = self.now_ns - asked_ns;
        let one = &mut self.users[user as usize];
        let turn = one.turn;
        let step = UserStep::Works;
        *one = User { step, turn, weight, queued_ns, ..User::IDLE };
        self.compute(user);
    }

    /// Reads what is not in the pool, and computes.
    fn compute(&mut self, user: u32) {
        let load = self.plan.load;
        let weight = self.users[user as usize].weight;
        let changes = weight * load.pages_per_txn;
        self.reads_carry += changes * self.dirty.miss_share();
        let reads = self.reads_carry.floor();
        if reads > self.free_frames && reads > 0.0 {
            self.reads_carry -= changes * self.dirty.miss_share();
            return self.wait_frames(user);
        }
        self.reads_carry -= reads;
        self.free_frames -= reads;
        self.counts.page_reads += reads;
        let read_ns = if reads > 0.0 { self.volume.read(self.now_ns, reads) } else { self.now_ns };
        let work_ns = weight * load.cpu_us_per_txn * 1e3 * (0.5 + self.random.uniform());
        let free_ns = self.cpu_free_ns.max(self.now_ns as f64);
        self.cpu_free_ns = free_ns + work_ns / f64::from(load.processors);
        let done_ns = (read_ns as f64 + work_ns).max(self.cpu_free_ns);
        let held_ns = changes * self.purge_delay_us() as f64 * 1e3;
        let one = &mut self.users[user as usize];
        (one.step, one.hold) = (UserStep::Works, Hold::None);
        self.note_user((done_ns + held_ns) as u64, user);
    }

    /// What each changed row is delayed for purge.
    fn purge_delay_us(&mut self) -> u64 {
        let settings = &self.plan.settings;
        if settings.max_purge_lag == 0 {
            return 0;
        }
        let threads = u64::from(settings.purge_threads.max(1));
        let (version, batch) = (settings.max_purge_lag_version, settings.purge_batch_size);
        let lag = Lag {
            history: self.history as u64,
            max_lag: u64::from(settings.max_purge_lag),
            max_delay_us: u64::from(settings.max_purge_lag_delay),
            is_blocked: false,
            in_hand: threads * u64::from(batch),
        };
        lag.delay_us(version)
    }

    fn wait_frames(&mut self, user: u32) {
        self.hold(user, Hold::Frames);
        self.park(user);
        if !self.cleaner.policy.users_free_frames() {
            return self.wake_cleaner();
        }
        if !self.has_task(TaskSlot::UserFrames) {
            let pages = frames_of_user(self.frames as u64) as f64;
            self.begin_task(TaskSlot::UserFrames, Work::Frames, pages, None);
        }
    }

    /// A user's moment has come.
    pub(super) fn user_moves(&mut self, user: u32, turn: u32) {
        let one = &mut self.users[user as usize];
        if one.turn != turn {
            return;
        }
        match (one.step, one.hold) {
            (UserStep::Works, Hold::Frames) => self.compute(user),
            (UserStep::Works, _) => {
                (one.step, one.asked_ns) = (UserStep::Asks, self.now_ns);
                self.ask(user);
            }
            (UserStep::Asks, _) => self.ask(user),
            (UserStep::Idle | UserStep::Commits, _) => {}
        }
    }

    /// Tries until it is admitted or has to wait.
    fn ask(&mut self, user: u32) {
        if !self.is_let_go(user) {
            return;
        }
        let bytes = self.users[user as usize].weight * self.plan.load.redo_bytes_per_txn;
        let (lsn, checkpoint) = (self.redo.lsn, self.redo.checkpoint);
        if lsn - checkpoint + bytes as u64 > self.limits.capacity {
            self.hold(user, Hold::Room);
            self.park(user);
            return self.wake_cleaner();
        }
        let oldest = if self.rule.looks_at_oldest() { self.oldest() } else { lsn };
        let answer = match self.pace_wait_us(user) {
            0 => self.rule.decide(Lsn(lsn), Lsn(checkpoint), Lsn(oldest)),
            us => Admit::Paced { us },
        };
        let has_helped = self.users[user as usize].has_helped;
        match answer {
            Admit::Go => self.append(user, bytes),
            Admit::WaitCheckpoint { lsn, work } => {
                self.counts.waits += 1.0;
                self.hold(user, Hold::Checkpoint(lsn, work));
                self.work_for_checkpoint(user, lsn, work);
            }
            _ if has_helped => self.append(user, bytes),
            Admit::Delay { us } => self.delay(user, us, bytes),
            Admit::Paced { us } => self.wait_for_pace(user, us),
            Admit::FlushSelf { until, wait } => self.flush_self(user, until, wait, bytes),
            Admit::WakeCleaner => {
                self.wake_cleaner();
                self.append(user, bytes);
            }
            Admit::WaitOldest(lsn) => {
                self.counts.waits += 1.0;
                self.hold(user, Hold::Oldest(lsn));
                self.park(user);
                self.wake_cleaner();
            }
            Admit::TakeCheckpoint => {
                if self.has_task(TaskSlot::UserCheckpoint) || self.oldest() <= checkpoint {
                    return self.append(user, bytes);
                }
                self.hold(user, Hold::Flush(Lsn(0)));
                let slot = TaskSlot::UserCheckpoint;
                self.begin_task(slot, Work::Checkpoint, 0.0, Some(user));
            }
        }
    }

    /// How long the redo's pace delays it: 0 only for the first waiter.
    fn pace_wait_us(&self, user: u32) -> u64 {
        let us = self.rule.pace.wait_us(self.now_ns / 1_000, Lsn(self.redo.lsn));
        let is_first = self.paced.front().is_none_or(|first| *first == user);
        if is_first { us } else { us.max(1) }
    }

    /// Users that the pace delays go on in the order in which they came.
    fn wait_for_pace(&mut self, user: u32, us: u64) {
        self.delayed_since(user);
        if !self.paced.contains(&user) {
            self.paced.push_back(user);
        }
        if self.paced.front() == Some(&user) {
            self.note_user(self.now_ns + us * 1_000, user);
        }
    }

    /// If it was the first that the pace delays, it makes room for the next.
    fn leave_pace(&mut self, user: u32) {
        if self.paced.front() == Some(&user) {
            self.paced.pop_front();
            if let Some(next) = self.paced.front() {
                self.note_user(self.now_ns, *next);
            }
        }
    }

    /// Whether what held it is over.
    fn is_let_go(&mut self, user: u32) -> bool {
        let one = self.users[user as usize];
        match one.hold {
            Hold::Oldest(lsn) if self.oldest() < lsn.0 => {
                self.park(user);
                self.wake_cleaner();
                false
            }
            Hold::Checkpoint(lsn, work) if self.redo.checkpoint < lsn.0 => {
                self.work_for_checkpoint(user, lsn, work);
                false
            }
            Hold::Oldest(_) | Hold::Flush(_) => {
                self.users[user as usize].has_helped = true;
                self.release(user);
                true
            }
            Hold::Checkpoint(..) | Hold::Room | Hold::Frames => {
                self.release(user);
                true
            }
            Hold::None | Hold::Delay { .. } => true,
        }
    }

    fn hold(&mut self, user: u32, hold: Hold) {
        let now_ns = self.now_ns;
        let one = &mut self.users[user as usize];
        if matches!(one.hold, Hold::None | Hold::Delay { .. }) {
            one.held_ns = now_ns;
        }
        one.hold = hold;
    }

    fn release(&mut self, user: u32) {
        let now_ns = self.now_ns;
        let one = &mut self.users[user as usize];
        one.stopped_ns += now_ns - one.held_ns;
        one.hold = Hold::None;
    }

    fn park(&mut self, user: u32) {
        let one = &mut self.users[user as usize];
        if !std::mem::replace(&mut one.is_parked, true) {
            self.parked.push(user);
        }
    }

    /// Waiters for progress look again.
    pub(super) fn unpark(&mut self) {
        let (checkpoint, oldest) = (self.redo.checkpoint, self.oldest());
        let (mut at, now_ns) = (0, self.now_ns);
        while at < self.parked.len() {
            let user = self.parked[at];
            let goes = match self.users[user as usize].hold {
                Hold::Checkpoint(lsn, work) => checkpoint >= lsn.0 || work != UserWork::Nothing,
                Hold::Oldest(lsn) => oldest >= lsn.0,
                Hold::Frames => self.free_frames >= 1.0,
                _ => true,
            };
            if goes {
                self.parked.swap_remove(at);
                self.users[user as usize].is_parked = false;
                self.note_user(now_ns, user);
            } else {
                at += 1;
            }
        }
    }

    fn delay(&mut self, user: u32, us: u64, bytes: f64) {
        let (now_ns, since_ns) = (self.now_ns, self.delayed_since(user));
        let delay_ns = (us as f64 * 1e3 * self.users[user as usize].weight) as u64;
        let left_ns = (since_ns + delay_ns).saturating_sub(now_ns);
        if left_ns == 0 {
            return self.append(user, bytes);
        }
        // Half of the rest: the rule requires less as soon as the cleaner made progress.
        let next_ns = now_ns + (left_ns / 2).max(ASK_AGAIN_NS).min(left_ns);
        self.note_user(next_ns, user);
    }

    /// Since when it is delayed: from now on at the latest.
    fn delayed_since(&mut self, user: u32) -> u64 {
        let now_ns = self.now_ns;
        let one = &mut self.users[user as usize];
        let since_ns = match one.hold {
            Hold::Delay { since_ns } => since_ns,
            _ => now_ns,
        };
        one.hold = Hold::Delay { since_ns };
        since_ns
    }

    /// One user flushes at a time; one that does not wait leaves it to another at work.
    fn flush_self(&mut self, user: u32, until: Lsn, wait: bool, bytes: f64) {
        if self.has_task(TaskSlot::UserFlush) && !wait {
            return self.append(user, bytes);
        }
        self.hold(user, Hold::Flush(until));
        self.counts.waits += f64::from(u8::from(wait));
        self.counts.furious += 1;
        self.flush_as_user(user, until);
    }

    fn flush_as_user(&mut self, user: u32, until: Lsn) {
        if self.has_task(TaskSlot::UserFlush) {
            return self.wants_flush.push_back((user, until));
        }
        let work = Work::Oldest { until, checkpoints: false };
        self.begin_task(TaskSlot::UserFlush, work, f64::INFINITY, Some(user));
    }

    /// The next user who wanted to flush does so.
    pub(super) fn next_user_flush(&mut self) {
        if let Some((user, until)) = self.wants_flush.pop_front() {
            self.flush_as_user(user, until);
        }
    }

    fn work_for_checkpoint(&mut self, user: u32, lsn: Lsn, work: UserWork) {
        let can_take = work != UserWork::Nothing && self.oldest() > self.redo.checkpoint;
        if can_take && !self.has_task(TaskSlot::UserCheckpoint) {
            let slot = TaskSlot::UserCheckpoint;
            return self.begin_task(slot, Work::Checkpoint, 0.0, Some(user));
        }
        if work == UserWork::FlushAndCheckpoints && !can_take {
            self.counts.furious += 1;
            return self.flush_as_user(user, lsn);
        }
        self.park(user);
        self.wake_cleaner();
    }

    /// Its changes are in the redo.
    fn append(&mut self, user: u32, bytes: f64) {
        self.leave_pace(user);
        let now_ns = self.now_ns;
        let one = &mut self.users[user as usize];
        if let Hold::Delay { since_ns } = one.hold {
            self.counts.delayed_s += (now_ns - since_ns) as f64 / 1e9;
        }
        (one.step, one.hold) = (UserStep::Commits, Hold::None);
        let weight = one.weight;
        let lsn = self.redo.lsn;
        self.dirty.change(weight * self.plan.load.pages_per_txn, lsn);
        self.redo.lsn += bytes.max(1.0) as u64;
        self.second.redo_bytes += (self.redo.lsn - lsn) as f64;
        self.history += weight;
        self.counts.commits += weight;
        let age = self.redo.lsn - self.redo.checkpoint;
        self.counts.age_max = self.counts.age_max.max(age);
        self.second.checkpoint_age = self.second.checkpoint_age.max(age);
        match self.plan.settings.flush_log_at_trx_commit {
            FlushLogAt::Commit => self.need_redo(self.redo.lsn, RedoWaiter::User(user)),
            FlushLogAt::Timeout | FlushLogAt::Written => self.end_transaction(user),
        }
    }

    /// A transaction is acknowledged; the next one begins.
    fn end_transaction(&mut self, user: u32) {
        let one = self.users[user as usize];
        self.second.commits += one.weight;
        self.counts.stopped_s += one.stopped_ns as f64 / 1e9;
        // Of transactions done in one go the first was stopped; all were slowed down alike.
        let waited_ns = (self.now_ns - one.asked_ns).saturating_sub(one.stopped_ns);
        let each_ns = (waited_ns as f64 / one.weight) as u64;
        let alike = one.weight as u64 - u64::from(one.queued_ns + one.stopped_ns > 0);
        self.commit_waits.record_many_ns(each_ns, alike);
        let held_ns = one.queued_ns + one.stopped_ns;
        if held_ns > 0 {
            self.commit_waits.record_ns(each_ns + held_ns);
        }
        self.users[user as usize].step = UserStep::Idle;
        let is_active = (user as usize) < self.active;
        match self.plan.load.demand {
            Demand::Users(_) if is_active => self.begin(user, self.now_ns, self.weight),
            Demand::Users(_) => self.idle.push(user),
            Demand::Rate(_) => match self.queued.pop_front() {
                Some((asked_ns, weight)) => self.begin(user, asked_ns, weight),
                None => self.idle.push(user),
            },
        }
    }
}

/// Longest wait of a leader for others, in ns.
const GATHER_NS_MAX: f64 = 2_000_000.0;

impl World {
    /// The waiter goes on when the redo before `upto` is durable.
    pub(super) fn need_redo(&mut self, upto: u64, waiter: RedoWaiter) {
        if self.redo.durable >= upto {
            return self.redo_is_there(waiter);
        }
        self.redo.waiting.push_back((upto, waiter));
        if self.redo.writing.is_none() {
            self.lead();
        }
    }

    /// Writes, or waits: for as long as the rule gathers the commits of a step; else for those who
    /// waited the last time and may be back in a moment. One more is worth waiting for while it
    /// comes within the time of a write over those that are here.
    fn lead(&mut self) {
        let (now_ns, here) = (self.now_ns, self.redo.waiting.len());
        let least_ns = 1_000 * self.rule.pace.gather_us();
        if least_ns > 0 {
            if self.redo.gather_until_ns.is_none() {
                self.gather_until(now_ns + least_ns, now_ns + least_ns);
            }
            return;
        }
        let lead_ns = self.redo.lead_ns;
        if here >= self.redo.population || lead_ns == 0 {
            return self.write_redo();
        }
        let longest = GATHER_NS_MAX * self.weight;
        let end_ns = now_ns + (lead_ns as f64 / 2.0).min(longest) as u64;
        let end_ns = self.redo.gather_until_ns.unwrap_or(end_ns);
        let worth_ns = lead_ns / here.clamp(2, 64) as u64;
        self.gather_until(end_ns, end_ns.min(now_ns + worth_ns));
    }

    /// The leader waits until `end_ns`, and no longer than `at_ns` unless another committer comes.
    fn gather_until(&mut self, end_ns: u64, at_ns: u64) {
        self.redo.gather_until_ns = Some(end_ns);
        self.redo.gather_turn = self.redo.gather_turn.wrapping_add(1);
        let turn = self.redo.gather_turn;
        self.note(at_ns, Happening::Gathered { turn });
    }

    /// The leader waits no longer for others.
    pub(super) fn gathered(&mut self, turn: u32) {
        let is_due = self.redo.gather_until_ns.is_some() && self.redo.gather_turn == turn;
        if is_due && self.redo.writing.is_none() {
            self.write_redo();
        }
    }

    fn write_redo(&mut self) {
        self.redo.gather_until_ns = None;
        let upto = self.redo.lsn;
        let block = u64::from(self.plan.settings.log_write_ahead_size);
        let bytes = (upto - self.redo.durable).next_multiple_of(block);
        // The commits of a step are gathered in one write, however many are done in one go.
        let times = if self.rule.pace.gather_us() > 0 { 1.0 } else { self.weight };
        let done_ns = self.volume.redo(self.now_ns, bytes as f64, times);
        self.redo.writing = Some((upto, self.now_ns, times));
        self.note(done_ns, Happening::RedoDurable);
    }

    /// A write of redo ended.
    pub(super) fn redo_durable(&mut self) {
        let Some((upto, begun_ns, times)) = self.redo.writing.take() else { return };
        self.redo.durable = upto;
        self.redo.lead_ns = self.now_ns - begun_ns;
        self.redo.writes_ns += self.redo.lead_ns;
        // Transactions done in one go stand for so many writes, one after the other.
        let each = Duration::from_nanos((self.redo.lead_ns as f64 / times) as u64);
        self.redo.writes += times as u64;
        self.redo.stalled_writes += times as u64 * u64::from(each >= STALLED_REDO_WRITE);
        self.redo.population = self.redo.waiting.len();
        let mut covered = Vec::new();
        self.redo.waiting.retain(|(wanted, waiter)| {
            if *wanted <= upto {
                covered.push(*waiter);
            }
            *wanted > upto
        });
        for waiter in covered {
            self.redo_is_there(waiter);
        }
        if self.redo.writing.is_none() && !self.redo.waiting.is_empty() {
            self.lead();
        }
    }

    fn redo_is_there(&mut self, waiter: RedoWaiter) {
        match waiter {
            RedoWaiter::User(user) => self.end_transaction(user),
            RedoWaiter::Writer(writer) => self.go_on(writer),
        }
    }
}
