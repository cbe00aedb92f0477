//! From samples to the state of a server: rates of redo and of pages, the age, its limit.
//!
//! Invariant: what the server does not report is an error that names it, never a guess.

use std::fmt;

use crate::target::TargetSample;
use iostrata_innodb::Lsn;
use iostrata_innodb::flush::{Ages, Average, DrainRate, RedoRate};
use iostrata_run::SampleSpan;
use thiserror::Error;

use crate::tune::age_book::{AgeBook, DirtyNow};

/// How far averages reach back, in microseconds: a part of the time in which the redo goes round,
/// within these bounds. Redo comes in swings of half from one second to the next.
const REACH_US: (f64, f64) = (5e6, 30e6);
/// That part.
const REACH_SHARE: f64 = 0.3;
/// The load has changed when redo of late comes faster or slower than on average by this factor;
/// late is so many microseconds.
const SURGE: f64 = 1.8;
const LATE_US: u64 = 3_000_000;
/// For so long after it began to come faster its rate is not known, in microseconds.
const UNKNOWN_US: u64 = 5_000_000;
/// Pages written are averaged over this time, in microseconds.
const WRITTEN_REACH_US: u64 = 5_000_000;

/// Something without which a server is not tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the server does not report {0}; it is not tuned without")]
pub struct Missing(pub &'static str);

/// What was done in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WorkDone {
    /// Redo made, in bytes.
    pub redo_bytes: f64,
    /// Transactions that ended, where they are reported.
    pub transactions: Option<f64>,
    /// Pages that became dirty, where the pages written are reported.
    pub pages: Option<f64>,
}

impl WorkDone {
    /// Between two samples.
    fn of(span: &SampleSpan<'_>) -> Self {
        let grown = |field| span.grown(field).map(|count| count as f64);
        Self {
            redo_bytes: grown(|one| one.redo_end_bytes).unwrap_or(0.0),
            transactions: grown(|one| one.transactions),
            pages: span.pages_dirtied(),
        }
    }

    /// Adds the span after it; a figure that one of them lacks is absent from the sum.
    pub fn add(&mut self, more: &Self) {
        let sum = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
        *self = match self.redo_bytes == 0.0 && self.pages.is_none() {
            true => *more,
            false => Self {
                redo_bytes: self.redo_bytes + more.redo_bytes,
                transactions: sum(self.transactions, more.transactions),
                pages: sum(self.pages, more.pages),
            },
        };
    }
}

/// The state of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vitals {
    /// Checkpoint age, in bytes.
    pub age_bytes: f64,
    /// The max checkpoint age, in bytes.
    pub limit_bytes: f64,
    /// Redo since the oldest change of a dirty page, as far as it is known, in bytes.
    pub modified_bytes: f64,
    /// The checkpoint age from which the server flushes as fast as it may, where it is known.
    pub async_bytes: Option<f64>,
    /// Size of the redo, in bytes, where it is known.
    pub capacity_bytes: Option<f64>,
    /// Redo made per second, averaged.
    pub redo_bytes_per_s: f64,
    /// Redo freed per second, averaged.
    pub freed_bytes_per_s: f64,
    /// Pages written per second, averaged.
    pub written_per_s: f64,
    /// Dirty pages.
    pub dirty_pages: f64,
    /// Pages of the pool, where they are known.
    pub pool_pages: Option<f64>,
    /// For how long no redo was made, in seconds.
    pub still_s: f64,
    /// Whether redo has come so much faster of late that the rates above may be of another load.
    pub surges: bool,
    /// What was done since the sample before.
    pub(crate) done: WorkDone,
    /// Since the sample before, in seconds; 0 for the first.
    pub dt_s: f64,
}

impl Vitals {
    /// Checkpoint age in percent of its limit.
    pub fn age_pct(&self) -> f64 {
        100.0 * self.age_bytes / self.limit_bytes
    }

    /// Pages per second that write every dirty page once while the redo goes round.
    pub(crate) fn even_pages_per_s(&self) -> f64 {
        self.dirty_pages / self.seconds_of(self.modified_bytes).max(1.0)
    }

    /// Seconds in which so much redo is made; infinite while none is.
    pub(crate) fn seconds_of(&self, bytes: f64) -> f64 {
        if self.redo_bytes_per_s > 0.0 { bytes / self.redo_bytes_per_s } else { f64::INFINITY }
    }
}

impl fmt::Display for Vitals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "checkpoint age {:.0} % of {:.0} MB, redo {:.2} MB/s, {:.0} dirty pages, {:.0} pages/s \
             written",
            self.age_pct(),
            self.limit_bytes / 1e6,
            self.redo_bytes_per_s / 1e6,
            self.dirty_pages,
            self.written_per_s,
        )
    }
}

/// Makes vitals of samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Monitor {
    redo: RedoRate,
    /// The same of late.
    recent: RedoRate,
    drain: DrainRate,
    written: Average,
    book: AgeBook,
    /// The sample before, and when it was taken.
    last: Option<(u64, TargetSample)>,
    surge_us: Option<u64>,
}

impl Monitor {
    /// Takes in a sample at a time.
    pub fn take(&mut self, now_us: u64, sample: &TargetSample) -> Result<Vitals, Missing> {
        let limit = sample.checkpoint_age_limit_bytes.filter(|bytes| *bytes > 0);
        let limit = limit.ok_or(Missing("the max checkpoint age"))?;
        let age = sample.checkpoint_age_bytes.ok_or(Missing("its checkpoint age"))?;
        let end = sample.redo_end_bytes.ok_or(Missing("where its redo ends"))?;
        let dirty = sample.dirty_pages.ok_or(Missing("how many pages are dirty"))?;
        let round_us = limit as f64 * 1e6 / self.redo.bytes_per_s().max(1.0);
        self.recent.observe(now_us, Lsn(end), LATE_US, 0.0);
        let change = self.recent.bytes_per_s() / self.redo.bytes_per_s().max(1.0);
        let reach_us = match (1.0 / SURGE..=SURGE).contains(&change) {
            true => (round_us * REACH_SHARE).clamp(REACH_US.0, REACH_US.1) as u64,
            // A load that has begun, or gone, is no swing.
            false => LATE_US,
        };
        if change > SURGE {
            self.surge_us = Some(now_us);
        }
        self.surge_us = self.surge_us.filter(|us| now_us.saturating_sub(*us) < UNKNOWN_US);
        self.redo.observe(now_us, Lsn(end), reach_us, 0.0);
        self.drain.observe(now_us, Lsn(end.saturating_sub(age)), reach_us);
        let before = self.last.replace((now_us, *sample));
        let dt_us = before.map_or(0, |(us, _)| now_us.saturating_sub(us));
        let span = match &before {
            Some((_, was)) => SampleSpan::between(was, sample, dt_us as f64 / 1e6),
            None => SampleSpan::first(sample),
        };
        if let Some(per_s) = span.per_s(|one| one.pages_flushed) {
            self.written.take(per_s, dt_us, WRITTEN_REACH_US);
        }
        self.book.take(DirtyNow {
            end: Lsn(end),
            oldest: Lsn(end.saturating_sub(age)),
            pages: dirty as f64,
            written: sample.pages_flushed,
            limit_bytes: limit,
        });
        Ok(Vitals {
            age_bytes: age as f64,
            limit_bytes: limit as f64,
            capacity_bytes: sample.redo_capacity_bytes.map(|bytes| bytes as f64),
            redo_bytes_per_s: self.redo.bytes_per_s(),
            freed_bytes_per_s: self.drain.bytes_per_s(),
            written_per_s: self.written.value(),
            modified_bytes: self.book.modified_age() as f64,
            async_bytes: sample.checkpoint_age_async_bytes.map(|bytes| bytes as f64),
            dirty_pages: dirty as f64,
            pool_pages: sample.pool_pages.map(|pages| pages as f64),
            still_s: self.redo.still_us() as f64 / 1e6,
            surges: self.surge_us.is_some(),
            done: WorkDone::of(&span),
            dt_s: dt_us as f64 / 1e6,
        })
    }

    /// The dirty pages by age, as of the last sample.
    pub fn ages(&self) -> Ages<'_> {
        self.book.ages()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_s: u64) -> TargetSample {
        TargetSample {
            checkpoint_age_bytes: Some(1_000_000),
            checkpoint_age_limit_bytes: Some(80_000_000),
            redo_end_bytes: Some(50_000_000 + at_s * 3_000_000),
            dirty_pages: Some(700),
            pages_flushed: Some(at_s * 400),
            ..TargetSample::default()
        }
    }

    #[test]
    fn rates_are_those_of_the_counters() {
        let mut monitor = Monitor::default();
        let mut vitals = Vitals::default();
        for at_s in 0..60 {
            vitals = monitor.take(at_s * 1_000_000, &sample(at_s)).unwrap();
        }
        assert!((vitals.redo_bytes_per_s - 3e6).abs() < 1e4, "{vitals:?}");
        assert!((vitals.freed_bytes_per_s - 3e6).abs() < 1e4, "{vitals:?}");
        assert!((vitals.written_per_s - 400.0).abs() < 1.0, "{vitals:?}");
        assert_eq!((vitals.dt_s, vitals.age_pct()), (1.0, 1.25));
    }

    #[test]
    fn a_load_that_begins_is_known_within_seconds() {
        let mut monitor = Monitor::default();
        let mut rate_after = |seconds: std::ops::Range<u64>, per_s: u64| {
            let mut rate = 0.0;
            for at_s in seconds {
                let end = Some(50_000_000 + at_s.saturating_sub(300) * per_s);
                let sample = TargetSample { redo_end_bytes: end, ..sample(0) };
                rate = monitor.take(at_s * 1_000_000, &sample).unwrap().redo_bytes_per_s;
            }
            rate
        };
        assert!(rate_after(0..301, 4_000_000) < 1.0);
        let found = rate_after(301..308, 4_000_000);
        assert!(found > 2e6, "{found}");
    }

    #[test]
    fn a_counter_that_began_anew_has_no_rate() {
        let mut monitor = Monitor::default();
        for at_s in 0..60 {
            monitor.take(at_s * 1_000_000, &sample(at_s)).unwrap();
        }
        let anew = TargetSample { pages_flushed: Some(7), ..sample(60) };
        let vitals = monitor.take(60_000_000, &anew).unwrap();
        assert!((vitals.written_per_s - 400.0).abs() < 1.0, "{vitals:?}");
        assert_eq!((vitals.done.redo_bytes, vitals.done.pages), (3e6, None));
    }

    #[test]
    fn what_is_not_told_is_named() {
        let mut monitor = Monitor::default();
        let mut lacks = |change: &dyn Fn(&mut TargetSample)| {
            let mut sample = sample(0);
            change(&mut sample);
            monitor.take(0, &sample).unwrap_err().to_string()
        };
        let said = lacks(&|sample| sample.checkpoint_age_limit_bytes = None);
        assert!(said.contains("max checkpoint age"), "{said}");
        assert!(
            lacks(&|sample| sample.checkpoint_age_limit_bytes = Some(0))
                .contains("max checkpoint age")
        );
        assert!(lacks(&|sample| sample.checkpoint_age_bytes = None).contains("checkpoint age"));
        assert!(lacks(&|sample| sample.redo_end_bytes = None).contains("redo ends"));
        assert!(lacks(&|sample| sample.dirty_pages = None).contains("dirty"));
    }
}
