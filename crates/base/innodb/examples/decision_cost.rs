//! What a decision costs each policy, with a million dirty pages.
//!
//! `cargo run --release -p iostrata-innodb --example decision_cost`
//!
//! Redo is made all the time and every order is done at once, so that each policy reaches all of
//! its branches. The least and the median of many rounds: others may use the machine meanwhile.
//! What the engine adds, taking the sample and publishing the rule, is in its counter
//! `policy_decision_ns`.

use std::time::Instant;

use iostrata_innodb::flush::{
    Action, ActionOutcome, AgeLimits, FlushPolicy, FlushSample, FlushSettings, policy,
};
use iostrata_innodb::{Lsn, PolicyName};

const DIRTY_PAGES: u64 = 1_000_000;
/// As the pool keeps them when the engine has not grown its redo since it opened.
const BUCKETS: u64 = 256;
const REDO_BYTES: u64 = 8 << 30;
const ROUNDS: usize = 200;
const DECISIONS: u64 = 200;
/// What an action takes; sleeps are slept in virtual time.
const STEP_US: u64 = 1_000;
const BYTES_PER_US: u64 = 64;

fn main() {
    eprintln!("ns for a decision   least   median");
    for &name in PolicyName::ALL {
        let mut course = Course::new(policy(name));
        let mut ns: Vec<f64> = (0..ROUNDS).map(|_| course.round()).collect();
        ns.sort_by(f64::total_cmp);
        eprintln!("{:18} {:7.0} {:8.0}", name.to_string(), ns[0], ns[ns.len() / 2]);
    }
}

/// A policy and where it is.
struct Course {
    policy: Box<dyn FlushPolicy>,
    now_us: u64,
    lsn: u64,
    flushed: u64,
    last: ActionOutcome,
}

impl Course {
    fn new(policy: Box<dyn FlushPolicy>) -> Self {
        let last = ActionOutcome::default();
        Self { policy, now_us: 0, lsn: REDO_BYTES, flushed: 0, last }
    }

    /// Mean time of some decisions.
    fn round(&mut self) -> f64 {
        let limits = AgeLimits::of(REDO_BYTES);
        // A third of the redo: old enough for all of them to work.
        let width = limits.capacity / 3 / BUCKETS;
        let mut ages = Vec::new();
        let mut spent_ns = 0;
        for _ in 0..DECISIONS {
            ages.clear();
            let oldest = self.lsn - width * BUCKETS;
            let pages = (DIRTY_PAGES / BUCKETS) as u32;
            ages.extend((0..BUCKETS).map(|at| (Lsn(oldest + at * width), pages)));
            let now = FlushSample {
                now_us: self.now_us,
                lsn: Lsn(self.lsn),
                durable: Lsn(self.lsn),
                checkpoint: Lsn(oldest),
                oldest: Some(Lsn(oldest)),
                limits,
                dirty_pages: DIRTY_PAGES,
                free_frames: 10_000,
                frames: 2 * DIRTY_PAGES,
                age_histogram: &ages,
                list_flushed: self.flushed,
                redo_file_bytes: REDO_BYTES,
                commits: self.now_us,
                settings: FlushSettings::default(),
                ..FlushSample::default()
            };
            let start = Instant::now();
            let action = self.policy.next(&now, std::mem::take(&mut self.last));
            let rule = self.policy.admit();
            spent_ns += start.elapsed().as_nanos();
            std::hint::black_box(rule);
            let begun_us = self.now_us;
            self.now_us += STEP_US;
            match action {
                Action::Flush { pages, .. } => {
                    self.flushed += u64::from(pages);
                    self.last = ActionOutcome { flushed: pages, took_us: STEP_US, ..self.last };
                }
                Action::Sleep { until_us, .. } => self.now_us = until_us.max(self.now_us),
                _ => {}
            }
            self.lsn += (self.now_us - begun_us) * BYTES_PER_US;
        }
        spent_ns as f64 / DECISIONS as f64
    }
}
