//! A small engine in virtual time: threads that produce redo and dirty pages, a device that writes
//! pages, and a cleaner that does what the policy orders.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use iostrata_innodb::Lsn;
use iostrata_innodb::flush::{
    Action, ActionOutcome, Admit, AdmitRule, AgeLimits, Cause, FlushPolicy, FlushSample, Steady,
};

use crate::plan::Plan;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Thread {
    /// Requests admission at this time.
    Asks(u64),
    /// Was delayed and continues at this time.
    Goes(u64),
    WaitsCheckpoint(Lsn),
    WaitsFrame,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    pub age_max: u64,
    /// Time and age of the oldest change, at every look of the cleaner.
    pub ages: Vec<(u64, u64)>,
    /// Commits by hundredths of a second.
    pub commits: Vec<u32>,
    /// Pages flushed by hundredths of a second.
    pub flushed: Vec<u32>,
    pub flushed_pages: u64,
    /// Pages that a flush would have written that lets every page reach the async limit.
    pub least_pages: u64,
    pub furious: u64,
    pub waits: u64,
    pub frame_waits: u64,
    pub looks: u64,
    pub redo_syncs: u64,
    pub decisions: u64,
}

pub struct Plant {
    pub plan: Plan,
    policy: Steady,
    rule: AdmitRule,
    limits: AgeLimits,
    pub now_us: u64,
    pub lsn: Lsn,
    checkpoint: Lsn,
    free_frames: u64,
    threads: Vec<Thread>,
    think_us: f64,
    by_page: BTreeMap<u64, Lsn>,
    by_age: BTreeSet<(Lsn, u64)>,
    buckets: BTreeMap<u64, u32>,
    least: BTreeMap<u64, Lsn>,
    writing: Option<(Lsn, Action)>,
    cleaner_us: u64,
    finished: ActionOutcome,
    was_furious: bool,
    random: u64,
    pub seen: Observations,
    hasher: DefaultHasher,
}

impl Plant {
    pub fn new(plan: Plan) -> Plant {
        let limits = AgeLimits::of(plan.capacity);
        Plant {
            plan,
            policy: Steady::default(),
            rule: AdmitRule::wall(limits.max_age),
            limits,
            now_us: 0,
            lsn: Lsn(4096),
            checkpoint: Lsn(4096),
            free_frames: plan.frames,
            threads: vec![Thread::Asks(0); plan.threads],
            think_us: f64::INFINITY,
            by_page: BTreeMap::new(),
            by_age: BTreeSet::new(),
            buckets: BTreeMap::new(),
            least: BTreeMap::new(),
            writing: None,
            cleaner_us: 0,
            finished: ActionOutcome::default(),
            was_furious: false,
            random: plan.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            seen: Observations::default(),
            hasher: DefaultHasher::new(),
        }
    }

    /// Redo per second that the threads offer from now on; 0 stops them.
    pub fn offer(&mut self, bytes_per_s: f64) {
        let txns_per_s = bytes_per_s / self.plan.redo_bytes as f64;
        self.think_us = self.plan.threads as f64 * 1e6 / txns_per_s;
        for thread in &mut self.threads {
            if let Thread::Asks(at) = thread {
                *at = self.now_us;
            }
        }
    }

    pub fn device(&mut self, pages_per_s: f64) {
        self.plan.device_pages_per_s = pages_per_s;
    }

    pub fn dirty_pages(&self) -> usize {
        self.by_page.len()
    }

    pub fn checkpoint(&self) -> Lsn {
        self.checkpoint
    }

    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % below.max(1)
    }

    /// Lets `seconds` pass.
    pub fn run(&mut self, seconds: f64) {
        let end_us = self.now_us + (seconds * 1e6) as u64;
        loop {
            let thread = (0..self.threads.len()).min_by_key(|at| self.thread_us(*at));
            let thread = thread.filter(|at| self.thread_us(*at) < self.cleaner_us);
            let next_us = thread.map_or(self.cleaner_us, |at| self.thread_us(at));
            if next_us >= end_us {
                self.now_us = end_us;
                return;
            }
            self.now_us = self.now_us.max(next_us);
            match thread {
                Some(at) => self.step_thread(at),
                None => self.step_cleaner(),
            }
        }
    }

    fn thread_us(&self, at: usize) -> u64 {
        match self.threads[at] {
            Thread::Asks(us) if self.think_us.is_finite() => us,
            Thread::Goes(us) => us,
            _ => u64::MAX,
        }
    }

    fn oldest(&self) -> Option<Lsn> {
        let dirty = self.by_age.first().map(|(om, _)| *om);
        let writing = self.writing.map(|(om, _)| om);
        dirty.into_iter().chain(writing).min()
    }

    fn step_thread(&mut self, at: usize) {
        let oldest = self.oldest().unwrap_or(self.lsn);
        let admit = match self.threads[at] {
            Thread::Goes(_) => self.rule.decide_delayed(self.lsn, self.checkpoint),
            _ => match self.rule.pace.wait_us(self.now_us, self.lsn) {
                0 => self.rule.decide(self.lsn, self.checkpoint, oldest),
                us => Admit::Paced { us },
            },
        };
        match admit {
            Admit::Go => {}
            Admit::Delay { us } => {
                self.threads[at] = Thread::Goes(self.now_us + us);
                return;
            }
            Admit::Paced { us } => {
                self.threads[at] = Thread::Asks(self.now_us + us);
                return;
            }
            Admit::WaitCheckpoint { lsn, .. } => {
                self.seen.waits += 1;
                self.threads[at] = Thread::WaitsCheckpoint(lsn);
                return self.wake();
            }
            other => panic!("steady lets no user thread work for the cleaner: {other:?}"),
        }
        if self.plan.misses > 0 && !self.take_frames() {
            self.seen.frame_waits += 1;
            self.threads[at] = Thread::WaitsFrame;
            return self.wake();
        }
        self.commit();
        let jitter = 0.5 + self.random(1000) as f64 / 1000.0;
        self.threads[at] = Thread::Asks(self.now_us + (self.think_us * jitter).max(1.0) as u64);
    }

    fn take_frames(&mut self) -> bool {
        let misses = (0..self.plan.touches).filter(|_| self.random(self.plan.misses) == 0).count();
        if misses as u64 > self.free_frames {
            return false;
        }
        self.free_frames -= misses as u64;
        true
    }

    /// A sleeping cleaner looks now.
    fn wake(&mut self) {
        if self.writing.is_none() {
            self.cleaner_us = self.cleaner_us.min(self.now_us);
        }
    }

    fn commit(&mut self) {
        let at = self.lsn;
        for _ in 0..self.plan.touches {
            let hot = (self.plan.population / 10).max(1);
            let page = match self.random(4) {
                0 => self.random(self.plan.population),
                _ => self.random(hot),
            };
            if let Entry::Vacant(clean) = self.by_page.entry(page) {
                clean.insert(at);
                self.by_age.insert((at, page));
                *self.buckets.entry(at.0 / self.plan.bucket_bytes).or_default() += 1;
            }
            let least = self.least.entry(page).or_insert(at);
            if at.since(*least) >= self.limits.async_age {
                *least = at;
                self.seen.least_pages += 1;
            }
        }
        self.lsn = self.lsn.plus(self.plan.redo_bytes);
        self.seen.age_max = self.seen.age_max.max(self.lsn.since(self.checkpoint));
        count(&mut self.seen.commits, self.now_us, 1);
    }

    fn step_cleaner(&mut self) {
        if let Some((_, action)) = self.writing.take() {
            let moved = self.oldest().unwrap_or(self.lsn);
            assert!(moved >= self.checkpoint, "the oldest change went back");
            self.checkpoint = moved;
            if let Action::Lru { .. } = action {
                self.free_frames += u64::from(self.finished.freed);
            }
            self.wake_threads();
        }
        let histogram = self.histogram();
        let sample = FlushSample {
            now_us: self.now_us,
            lsn: self.lsn,
            durable: self.lsn,
            checkpoint: self.checkpoint,
            oldest: self.oldest(),
            limits: self.limits,
            dirty_pages: self.by_page.len() as u64,
            free_frames: self.free_frames,
            frames: self.plan.frames,
            age_histogram: &histogram,
            lru_flushed: 0,
            list_flushed: self.seen.flushed_pages,
            settings: self.plan.settings,
            ..FlushSample::default()
        };
        self.seen.ages.push((self.now_us, sample.modified_age()));
        let action = self.policy.next(&sample, self.finished);
        self.rule = self.policy.admit();
        format!("{action:?} {:?}", self.rule).hash(&mut self.hasher);
        self.seen.decisions = self.hasher.finish();
        self.seen.looks += 1;
        self.act(action);
    }

    fn act(&mut self, action: Action) {
        self.finished = ActionOutcome::default();
        match action {
            Action::Sleep { until_us, .. } => {
                assert!(until_us > self.now_us, "a sleep of no time");
                self.cleaner_us = until_us;
            }
            Action::SyncRedo => {
                self.seen.redo_syncs += 1;
                self.cleaner_us = self.now_us + 100;
            }
            Action::Purge => panic!("nothing to purge"),
            Action::Checkpoint => self.write(action, &[]),
            Action::Lru { pages } => {
                // Half of the cold pages are dirty.
                let dirty: Vec<_> = (0..pages / 2).filter_map(|_| self.cold()).collect();
                self.write(action, &dirty);
                self.finished.freed = pages;
            }
            Action::Flush { pages, until, furious, cause, .. } => {
                assert_eq!(furious, cause == Cause::Sync);
                self.seen.furious += u64::from(furious && !self.was_furious);
                self.was_furious = furious;
                let ages = self.by_age.range(..(until, 0));
                let taken: Vec<_> = ages.copied().take(pages as usize).collect();
                self.write(action, &taken);
            }
        }
    }

    fn cold(&mut self) -> Option<(Lsn, u64)> {
        let from = self.random(self.plan.population);
        let page = self.by_page.range(from..).next().map(|(page, om)| (*om, *page))?;
        Some(page)
    }

    fn write(&mut self, action: Action, pages: &[(Lsn, u64)]) {
        let oldest = self.oldest().unwrap_or(self.lsn);
        let mut written = 0;
        for &(om, page) in pages {
            if self.by_age.remove(&(om, page)) {
                written += 1;
                self.by_page.remove(&page);
                self.leave_bucket(om);
            }
        }
        let took_us =
            self.plan.batch_us + (f64::from(written) * 1e6 / self.plan.device_pages_per_s) as u64;
        self.seen.flushed_pages += u64::from(written);
        count(&mut self.seen.flushed, self.now_us, written);
        self.writing = Some((oldest, action));
        self.finished = ActionOutcome { flushed: written, took_us, ..ActionOutcome::default() };
        self.cleaner_us = self.now_us + took_us;
    }

    fn wake_threads(&mut self) {
        for thread in &mut self.threads {
            match *thread {
                Thread::WaitsCheckpoint(lsn) if self.checkpoint >= lsn => {
                    *thread = Thread::Asks(self.now_us);
                }
                Thread::WaitsFrame if self.free_frames > 0 => *thread = Thread::Asks(self.now_us),
                _ => {}
            }
        }
    }

    fn leave_bucket(&mut self, om: Lsn) {
        let bucket = om.0 / self.plan.bucket_bytes;
        if let Entry::Occupied(mut pages) = self.buckets.entry(bucket) {
            *pages.get_mut() -= 1;
            if *pages.get() == 0 {
                pages.remove();
            }
        }
    }

    fn histogram(&self) -> Vec<(Lsn, u32)> {
        let start = |bucket: &u64| Lsn(bucket * self.plan.bucket_bytes);
        self.buckets.iter().map(|(bucket, pages)| (start(bucket), *pages)).collect()
    }
}

fn count(counts: &mut Vec<u32>, now_us: u64, pages: u32) {
    let at = (now_us / 10_000) as usize;
    if counts.len() <= at {
        counts.resize(at + 1, 0);
    }
    counts[at] += pages;
}
