//! The event log as a diagnosis reads it: replicates by point, what was suspected when.
//!
//! Invariant: one replicate per number and point (a later line replaces an earlier one), ordered by
//! number; points are in the order of their first line. Where the rates fell on the way, only what
//! was measured after the fall is in it; points of which nothing was are kept apart.

use std::collections::BTreeMap;

use iostrata_plan::Point;
use iostrata_run::host::IoLimit;
use iostrata_run::{
    DevicePause, Event, LatencyTrace, PointProfile, PooledLatencies, Replicate, Unavailable,
};
use iostrata_stats::Measured;

use crate::figure::{combined, weighted_mean};
use crate::lasting::{Fall, falls, is_before};

/// What is known of one point.
#[derive(Clone, Debug)]
pub(crate) struct PointLog<'a> {
    /// The point as it was first measured.
    pub point: &'a Point,
    /// Its replicates by number.
    pub replicates: Vec<&'a Replicate>,
    /// What the kernel did in its windows.
    pub profiles: Vec<&'a PointProfile>,
    /// Its pass with latency by layer.
    pub traced: Option<&'a LatencyTrace>,
    /// Windows that are not among the replicates, because the machine was not there for them.
    pub left_out: u32,
}

impl<'a> PointLog<'a> {
    pub fn new(point: &'a Point, replicates: Vec<&'a Replicate>) -> Self {
        Self { point, replicates, profiles: Vec::new(), traced: None, left_out: 0 }
    }

    /// The replicates, each with its round, by which those of compared points pair up. A window
    /// that was left out was measured again in its round, so rounds are counted without it.
    pub fn rounds(&self) -> impl Iterator<Item = (u32, &'a Replicate)> {
        (0..).zip(self.replicates.iter().copied())
    }

    /// Its figure.
    pub fn figure(&self) -> Option<Measured> {
        combined(self.replicates.iter().copied())
    }

    /// A mean over the requests of its replicates.
    pub fn mean(&self, value: fn(&Replicate) -> Option<f64>) -> Option<f64> {
        weighted_mean(self.replicates.iter().copied(), value)
    }

    /// Adds a replicate; one that was stored twice counts once, as it was last.
    fn add(&mut self, replicate: &'a Replicate) {
        self.replicates.retain(|other| other.replicate != replicate.replicate);
        self.replicates.push(replicate);
        self.replicates.sort_by_key(|replicate| replicate.replicate);
    }
}

/// The points of a study by id, of requests and of transactions alike, with all that was seen of
/// them. What does not count of a point is taken out of its replicates.
pub(crate) fn by_point<'a>(
    events: &'a [Event],
    leave_out: impl Fn(&mut Vec<&'a Replicate>) -> u32,
) -> BTreeMap<&'a str, PointLog<'a>> {
    let mut all: BTreeMap<&str, PointLog<'_>> = BTreeMap::new();
    for one in events.iter().filter_map(Event::replicate) {
        let none = || PointLog::new(&one.point, Vec::new());
        all.entry(&one.point.id).or_insert_with(none).add(one);
    }
    // A point may be looked into before its first window.
    for event in events {
        match event {
            Event::Profiled(one) => {
                all.entry(&one.point).and_modify(|seen| seen.profiles.push(one));
            }
            Event::Traced(one) => {
                all.entry(&one.point).and_modify(|seen| seen.traced = Some(one));
            }
            _ => {}
        }
    }
    all.values_mut().for_each(|seen| seen.left_out = leave_out(&mut seen.replicates));
    all
}

/// Which replicates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All of them.
    All,
    /// Only those measured after a suspicion was logged.
    Confirming(&'static str),
}

/// An event log, indexed.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventIndex<'a> {
    points: Vec<PointLog<'a>>,
    suspected: BTreeMap<&'a str, FirstSuspicion<'a>>,
    unavailable: Vec<&'a Unavailable>,
    clock: Option<(&'a str, &'a Measured)>,
    falls: Vec<Fall>,
    fallen: Vec<PointLog<'a>>,
    transactions: Vec<PointLog<'a>>,
    limits: Vec<&'a IoLimit>,
    pooled: BTreeMap<&'a str, &'a PooledLatencies>,
    paused: Option<(f64, &'a [DevicePause])>,
}

/// What was known when something was suspected for the first time.
#[derive(Clone, Debug, Default)]
struct FirstSuspicion<'a> {
    confirm: Vec<&'a str>,
    /// The first number that a confirming replicate can have, by point.
    first: BTreeMap<&'a str, u32>,
}

impl<'a> EventIndex<'a> {
    pub fn of(events: &'a [Event]) -> Self {
        let mut log = Self::default();
        for event in events {
            match event {
                Event::Replicate(replicate) => log.add(replicate),
                Event::Unavailable(unavailable) => log.unavailable.push(unavailable),
                Event::Suspected { id, confirm } => log.suspect(id, confirm),
                Event::Clock { name, read_ns, .. } => log.clock = Some((name, read_ns)),
                Event::Limits { limits, .. } => log.limits = limits.iter().collect(),
                Event::Pooled(pooled) => {
                    log.pooled.insert(&pooled.point, pooled);
                }
                Event::Paused { watched_s, pauses } => log.paused = Some((*watched_s, pauses)),
                Event::Profiled(_)
                | Event::Traced(_)
                | Event::Changed(_)
                | Event::Watching(_)
                | Event::Sampled { .. }
                | Event::Tuned(_)
                | Event::Finished { .. }
                | Event::Interrupted { .. } => {}
            }
        }
        log.keep_what_lasts();
        log
    }

    /// Sets aside what was measured before the rates fell.
    fn keep_what_lasts(&mut self) {
        let all: Vec<&Replicate> =
            self.points.iter().flat_map(|seen| seen.replicates.iter().copied()).collect();
        self.falls = falls(&all);
        if self.falls.is_empty() {
            return;
        }
        for mut seen in std::mem::take(&mut self.points) {
            let (before, lasting): (Vec<&Replicate>, Vec<&Replicate>) =
                seen.replicates.iter().partition(|one| is_before(one, &self.falls));
            if lasting.is_empty() {
                seen.replicates = before;
                self.fallen.push(seen);
            } else {
                seen.replicates = lasting;
                self.points.push(seen);
            }
        }
    }

    /// When rates fell and stayed low; empty for a run that held.
    pub fn falls(&self) -> &[Fall] {
        &self.falls
    }

    /// Points that were measured only before the rates fell: not what lasts.
    pub fn fallen(&self) -> &[PointLog<'a>] {
        &self.fallen
    }

    /// Latencies over all replicates of a point that last.
    pub fn pooled(&self, point: &str) -> Option<&'a PooledLatencies> {
        let pooled = *self.pooled.get(point)?;
        let seen = self.seen(point)?;
        let lasts = |number: &u32| seen.replicates.iter().any(|one| one.replicate == *number);
        pooled.replicates.iter().all(lasts).then_some(pooled)
    }

    /// For how many seconds the device was watched for pauses, and those that it made.
    pub fn paused(&self) -> Option<(f64, &'a [DevicePause])> {
        self.paused
    }

    /// The limits of control groups as they were read last, where they changed during the run.
    pub fn limits(&self) -> &[&'a IoLimit] {
        &self.limits
    }

    /// Points of transactions on a database. They are no evidence about the storage by themselves,
    /// so no rule about the storage uses them.
    pub fn transactions(&self) -> &[PointLog<'a>] {
        &self.transactions
    }

    fn add(&mut self, replicate: &'a Replicate) {
        let points = match replicate.point.transactions {
            Some(_) => &mut self.transactions,
            None => &mut self.points,
        };
        match points.iter_mut().find(|seen| seen.point.id == replicate.point.id) {
            Some(seen) => seen.add(replicate),
            None => points.push(PointLog::new(&replicate.point, vec![replicate])),
        }
    }

    fn suspect(&mut self, id: &'a str, confirm: &'a [String]) {
        if self.suspected.contains_key(id) {
            return;
        }
        let mut suspected = FirstSuspicion::default();
        for point in confirm {
            let known = self.seen(point).map(|seen| seen.replicates.iter());
            let next = known.into_iter().flatten().map(|known| known.replicate.saturating_add(1));
            suspected.first.insert(point, next.max().unwrap_or(0));
            suspected.confirm.push(point);
        }
        self.suspected.insert(id, suspected);
    }

    /// The clock's name and what reading it costs, in nanoseconds.
    pub fn clock(&self) -> Option<(&'a str, &'a Measured)> {
        self.clock
    }

    /// Every point, in the order of its first line.
    pub fn points(&self) -> &[PointLog<'a>] {
        &self.points
    }

    /// Every replicate of every point.
    pub fn all_replicates(&self) -> Vec<&'a Replicate> {
        self.points.iter().flat_map(|seen| seen.replicates.iter().copied()).collect()
    }

    /// One point, if it was ever measured.
    pub fn seen(&self, id: &str) -> Option<&PointLog<'a>> {
        self.points.iter().find(|seen| seen.point.id == id)
    }

    /// What could not be measured.
    pub fn unavailable(&self) -> &[&'a Unavailable] {
        &self.unavailable
    }

    /// The points that were to confirm a suspicion; `None` when it was never raised.
    pub fn confirm_ids(&self, id: &str) -> Option<&[&'a str]> {
        self.suspected.get(id).map(|suspected| suspected.confirm.as_slice())
    }

    /// Replicates of a point that count, numbered so that those of compared points pair up.
    pub fn replicates(&self, point: &str, which: Which) -> Vec<(u32, &'a Replicate)> {
        let Some(seen) = self.seen(point) else { return Vec::new() };
        let first = match which {
            Which::All => 0,
            Which::Confirming(id) => {
                match self.suspected.get(id).and_then(|suspected| suspected.first.get(point)) {
                    Some(first) => *first,
                    None => return Vec::new(),
                }
            }
        };
        let counted = seen.replicates.iter().filter(|one| one.replicate >= first);
        counted.map(|one| (one.replicate - first, *one)).collect()
    }
}
