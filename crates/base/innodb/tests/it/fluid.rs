//! An engine as a fluid, for the policies of history: redo comes at a rate, pages lie by age, and a
//! device that does so many pages per second is shared by the cleaner and by users.

use std::collections::VecDeque;

use iostrata_innodb::Lsn;
use iostrata_innodb::flush::{
    Action, ActionOutcome, Admit, AgeLimits, FlushPolicy, FlushSample, FlushSettings, Outlook,
};

/// One step, in microseconds.
const STEP_US: u64 = 10_000;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub redo_bytes_per_s: u64,
    /// Pages that become dirty by each MiB of redo.
    pub pages_per_mib: f64,
    pub device_pages_per_s: f64,
    pub file_bytes: u64,
    pub frames: u64,
    /// Whether commits are counted: a transaction may take longer than a tick.
    pub commits: bool,
    pub settings: FlushSettings,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    /// Redo made in each second.
    pub redo: Vec<u64>,
    /// Pages written in each second.
    pub written: Vec<f64>,
    pub age_max: u64,
    /// Times that users began to flush and waited for it, or that the cleaner became furious.
    pub furious: u64,
    /// Times that users began to flush by themselves, regardless of `io_capacity`.
    pub user_flushes: u64,
    /// Steps in which users waited at the wall.
    pub walls: u64,
}

/// The engine.
pub struct Fluid {
    load: Load,
    policy: Box<dyn FlushPolicy>,
    now_us: u64,
    lsn: u64,
    checkpoint: u64,
    /// First LSN and pages of each bucket.
    ages: VecDeque<(u64, f64)>,
    commits: u64,
    page_ios: f64,
    /// What the cleaner does: pages left, up to where, and those written.
    flush: Option<(f64, u64, f64)>,
    takes_checkpoint: bool,
    /// Up to where users flush, and whether they wait.
    user: Option<(u64, bool)>,
    finished: ActionOutcome,
    sleeps_until_us: u64,
    is_firm: bool,
    was_furious: bool,
    pub seen: Observations,
}

impl Fluid {
    pub fn new(load: Load, policy: Box<dyn FlushPolicy>) -> Fluid {
        Fluid {
            load,
            policy,
            now_us: 0,
            lsn: 1 << 20,
            checkpoint: 1 << 20,
            ages: VecDeque::new(),
            commits: 0,
            page_ios: 0.0,
            flush: None,
            takes_checkpoint: false,
            user: None,
            finished: ActionOutcome::default(),
            sleeps_until_us: 0,
            is_firm: false,
            was_furious: false,
            seen: Observations::default(),
        }
    }

    pub fn run(&mut self, seconds: u64) -> &Observations {
        for _ in 0..seconds * 1_000_000 / STEP_US {
            self.step();
        }
        &self.seen
    }

    pub fn device(&mut self, pages_per_s: f64) {
        self.load.device_pages_per_s = pages_per_s;
    }

    pub fn outlook(&self) -> Outlook {
        self.policy.outlook()
    }

    pub fn age(&self) -> u64 {
        self.lsn - self.oldest()
    }

    fn oldest(&self) -> u64 {
        self.ages.front().map_or(self.lsn, |(lsn, _)| *lsn)
    }

    fn step(&mut self) {
        let second = (self.now_us / 1_000_000) as usize;
        self.seen.redo.resize(second + 1, 0);
        self.seen.written.resize(second + 1, 0.0);
        self.users(second);
        self.write(second);
        // A cleaner that has nothing to wait for decides again and again, within reason.
        for _ in 0..100 {
            let sleeps = self.now_us < self.sleeps_until_us;
            if self.flush.is_some() || sleeps {
                break;
            }
            self.decide();
        }
        self.now_us += STEP_US;
    }

    /// Users make redo, unless the rule has them do something else.
    fn users(&mut self, second: usize) {
        if matches!(self.user, Some((_, true))) {
            return;
        }
        let at = (Lsn(self.lsn), Lsn(self.checkpoint), Lsn(self.oldest()));
        match self.policy.admit().decide(at.0, at.1, at.2) {
            Admit::WaitCheckpoint { lsn, .. } => {
                self.seen.walls += 1;
                self.checkpoint = self.oldest();
                if self.checkpoint < lsn.0 {
                    self.user = Some((lsn.0, true));
                }
                return self.wake();
            }
            Admit::FlushSelf { until, wait } => {
                self.seen.furious += u64::from(wait);
                self.seen.user_flushes += 1;
                self.user = Some((until.0, wait));
                if wait {
                    return;
                }
            }
            Admit::WaitOldest(_) => return self.wake(),
            Admit::WakeCleaner => self.wake(),
            Admit::TakeCheckpoint => self.checkpoint = self.oldest(),
            Admit::Go | Admit::Delay { .. } | Admit::Paced { .. } => {}
        }
        let made = self.load.redo_bytes_per_s * STEP_US / 1_000_000;
        let pages = made as f64 / f64::from(1 << 20) * self.load.pages_per_mib;
        if made > 0 {
            self.ages.push_back((self.lsn, pages));
        }
        self.lsn += made;
        self.commits += u64::from(self.load.commits && made > 0);
        self.seen.redo[second] += made;
        self.seen.age_max = self.seen.age_max.max(self.lsn - self.checkpoint);
    }

    fn wake(&mut self) {
        if !self.is_firm {
            self.sleeps_until_us = self.now_us;
        }
    }

    /// The device writes for the cleaner and for users, half and half where both want it.
    fn write(&mut self, second: usize) {
        let most = self.load.device_pages_per_s * STEP_US as f64 / 1e6;
        let both = self.flush.is_some() && self.user.is_some();
        let each = if both { most / 2.0 } else { most };
        let mut written = 0.0;
        if let Some((until, _)) = self.user {
            written += self.take(each, until);
            if self.oldest() >= until {
                self.user = None;
                self.checkpoint = self.oldest();
            }
        }
        if let Some((left, until, done)) = self.flush {
            let taken = self.take(each.min(left), until);
            written += taken;
            self.flush = Some((left - taken, until, done + taken));
            if left - taken < 1e-6 || self.oldest() >= until {
                self.flush = None;
                let flushed = (done + taken).round() as u32;
                self.finished =
                    ActionOutcome { flushed, took_us: STEP_US, ..ActionOutcome::default() };
                if self.takes_checkpoint {
                    self.checkpoint = self.oldest();
                }
            }
        }
        self.page_ios += written;
        self.seen.written[second] += written;
    }

    fn take(&mut self, most: f64, until: u64) -> f64 {
        let mut left = most;
        while let Some((lsn, pages)) = self.ages.front_mut() {
            if *lsn >= until || left <= 0.0 {
                break;
            }
            let taken = pages.min(left);
            (*pages, left) = (*pages - taken, left - taken);
            if *pages < 1e-9 {
                self.ages.pop_front();
            }
        }
        most - left
    }

    fn decide(&mut self) {
        let mut ages: Vec<(Lsn, u32)> = Vec::new();
        for chunk in self.ages.make_contiguous().chunks(64) {
            let pages: f64 = chunk.iter().map(|(_, pages)| pages).sum();
            ages.push((Lsn(chunk[0].0), pages.round() as u32));
        }
        let dirty: f64 = self.ages.iter().map(|(_, pages)| pages).sum();
        let max_age = self.load.file_bytes / 100 * 94;
        let limits = AgeLimits {
            capacity: self.load.file_bytes,
            async_age: max_age / 8 * 6,
            sync_age: max_age / 8 * 7,
            max_age,
        };
        let sample = FlushSample {
            now_us: self.now_us,
            lsn: Lsn(self.lsn),
            durable: Lsn(self.lsn),
            checkpoint: Lsn(self.checkpoint),
            oldest: self.ages.front().map(|(lsn, _)| Lsn(*lsn)),
            limits,
            dirty_pages: dirty.round() as u64,
            free_frames: self.load.frames / 4,
            frames: self.load.frames,
            age_histogram: &ages,
            redo_file_bytes: self.load.file_bytes,
            commits: self.commits,
            page_ios: self.page_ios as u64,
            settings: self.load.settings,
            ..FlushSample::default()
        };
        let finished = std::mem::take(&mut self.finished);
        match self.policy.next(&sample, finished) {
            Action::Sleep { until_us, firm } => {
                assert!(until_us > self.now_us, "a sleep of no time");
                (self.sleeps_until_us, self.is_firm) = (until_us, firm);
                self.was_furious = false;
            }
            Action::Flush { pages, until, furious, checkpoints, .. } => {
                self.seen.furious += u64::from(furious && !self.was_furious);
                self.was_furious = furious;
                self.takes_checkpoint = checkpoints;
                self.flush = Some((f64::from(pages), until.0, 0.0));
            }
            Action::Checkpoint => self.checkpoint = self.oldest(),
            Action::Lru { .. } | Action::Purge | Action::SyncRedo => {}
        }
    }
}
