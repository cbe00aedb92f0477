//! Finds stalls while they go on.
//!
//! A target stalls when its throughput of the last second is under half the median of the last
//! minute while a client waits for an answer. Invariants: during a stall, its seconds do not count
//! to what is usual, so that a long one does not become usual by itself; an ongoing one keeps its
//! start. What chance explains is no stall: where a second has few transactions, as long is looked
//! back as sixteen of them usually take. A pause without any statement is no stall either.

use std::collections::VecDeque;

use crate::target::{
    SessionWaits, StallRule, StallSample, StallSpan, is_short_of_processors,
    is_starved_of_processors, stall_cause,
};
use iostrata_run::{StallCause, TransactionStall};

use crate::watch::moment::{ProcessorWaits, SampleMoment};

/// When a rate is low.
const RULE: StallRule = StallRule::LIVE;
/// How far back the usual is looked for, in seconds.
const MEMORY_S: f64 = 60.0;
/// Rates that are kept beyond that, where samples are far apart.
const RATES_KEPT: usize = 10;
/// Rates, and seconds of them, without which nothing is usual yet.
const RATES_MIN: usize = 5;
const RATES_MIN_S: f64 = 4.0;
/// How far is looked back, in seconds: by the contract, and at most on a slow target.
const LOOK_S: f64 = 1.0;
const LOOK_S_MAX: f64 = 15.0;
/// Samples are a little early or late.
const JITTER: f64 = 0.1;
/// Stalls with less than this between them are one, in seconds.
const GAP_S: f64 = 2.0;
/// After so long without any visible cause it is a different load, in seconds.
const UNEXPLAINED_S: f64 = 60.0;
/// What a hypervisor takes at least, in percent of the processor time, before a stall is put down
/// to it: less does not cost half of the throughput.
const STOLEN_PCT: f64 = 30.0;
/// How many periods of a quota run out, or in how much of the time tasks wait for a processor, in
/// percent, where that explains a stall; it has to be twice of what is usual.
const PROCESSORS_PCT: f64 = 50.0;
const PROCESSORS_MORE: f64 = 2.0;
/// Tasks of a busy server wait for processors at many moments: so many looks at a stall show it,
/// one for each sample. After that it is checked every two seconds, since sessions may have begun
/// to wait for something else. What they wait for by name needs one look.
const LOOKS_AT_PROCESSORS: u32 = 3;
const LOOK_AGAIN_S: f64 = 2.0;

/// A throughput while nothing stalled, with the sessions that waited for an answer.
#[derive(Clone, Copy, Debug)]
struct Usual {
    at_s: f64,
    tps: f64,
    running: Option<u64>,
}

/// A low rate at which no sessions are at work where some usually are.
#[derive(Clone, Copy, Debug)]
struct Lull {
    now_s: f64,
    /// The rate, and over how many seconds.
    rate: (f64, f64),
}

/// The current stall, or the last one.
#[derive(Clone, Debug)]
struct LastStall {
    stall: TransactionStall,
    is_going: bool,
    /// How often it was queried for what sessions wait for, and when last.
    looks: u32,
    looked_s: f64,
}

/// What a sample shows of stalls.
#[derive(Debug, Default)]
pub(crate) struct FoundStall {
    /// Whether the target stalls.
    pub(crate) is_going: bool,
    /// The current stall, or the one that has just ended.
    pub(crate) stall: Option<TransactionStall>,
}

/// The samples of the last minute, and what they show of stalls.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    moments: VecDeque<SampleMoment>,
    /// The same for the causes, with those that were refused.
    sampled: VecDeque<StallSample>,
    usual: VecDeque<Usual>,
    last: Option<LastStall>,
    /// The last sample, if it may be one of a target that is kept from processors.
    lull: Option<Lull>,
}

impl Stalls {
    /// A target that was started again is another one.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// A sample that was refused. A stall ends with the target.
    pub(crate) fn refused(&mut self, at_s: f64, code: String) -> Option<TransactionStall> {
        self.sampled.push_back(StallSample { at_s, sample: Err(code) });
        self.lull = None;
        self.end()
    }

    /// Takes the next sample.
    pub(crate) fn take(&mut self, moment: SampleMoment) -> FoundStall {
        self.remember(moment);
        let now_s = moment.at_s;
        let Some((tps, seconds, running)) = self.recent(&moment) else {
            return FoundStall::default();
        };
        let usual = self.usual_tps();
        let is_low = usual.is_some_and(|usual| RULE.is_low(tps, seconds, usual, JITTER));
        let waits = || match running {
            // Those that are turned away are not among the sessions.
            Some(_) if self.are_refused() => true,
            Some(running) => self.is_crowded(running) || tps > 0.0 && self.is_starved(now_s),
            // A target that does not report its sessions shows by causes whether one waits.
            None => self.cause(now_s - seconds, now_s, None).0 != StallCause::Unknown,
        };
        let waits = is_low && waits();
        self.lull = None;
        if !waits {
            let from_s = now_s - seconds;
            if is_low && running.is_some() && self.is_pressed(from_s, now_s) {
                self.lull = Some(Lull { now_s, rate: (tps, seconds) });
            }
            self.usual.push_back(Usual { at_s: now_s, tps, running });
            return FoundStall { is_going: false, stall: self.end() };
        }
        self.go_on(now_s, (tps, seconds), running)
    }

    /// Begins a stall, or extends the ongoing one.
    fn go_on(
        &mut self,
        now_s: f64,
        (tps, seconds): (f64, f64),
        running: Option<u64>,
    ) -> FoundStall {
        let follows =
            |stall: &TransactionStall| stall.t_s + stall.length_s + GAP_S >= now_s - seconds;
        let before = self.last.take().filter(|last| last.is_going || follows(&last.stall));
        let (looks, looked_s) =
            before.as_ref().map_or((0, 0.0), |last| (last.looks, last.looked_s));
        let mut stall = before.map_or_else(
            || TransactionStall {
                t_s: now_s - seconds,
                min_tps: tps,
                ..TransactionStall::default()
            },
            |last| last.stall,
        );
        stall.length_s = now_s - stall.t_s;
        stall.min_tps = stall.min_tps.min(tps);
        let (cause, evidence) = self.cause(stall.t_s, now_s, running);
        // What was known of it stays known when it shows no more.
        if cause != StallCause::Unknown || stall.evidence.is_empty() {
            (stall.cause, stall.evidence) = (cause, evidence);
        }
        if stall.cause == StallCause::Unknown && stall.length_s > UNEXPLAINED_S {
            self.usual.clear();
            return FoundStall { is_going: false, stall: Some(stall) };
        }
        self.last = Some(LastStall { stall: stall.clone(), is_going: true, looks, looked_s });
        FoundStall { is_going: true, stall: Some(stall) }
    }

    /// The stall that has just ended.
    fn end(&mut self) -> Option<TransactionStall> {
        let last = self.last.as_mut().filter(|last| last.is_going)?;
        last.is_going = false;
        Some(last.stall.clone())
    }

    fn cause(&self, from_s: f64, to_s: f64, running: Option<u64>) -> (StallCause, String) {
        // Where sessions are not counted, neither are row locks of all of them.
        let sessions = running.map_or(u32::MAX, |count| count.try_into().unwrap_or(u32::MAX));
        let all: Vec<StallSample> = self.sampled.iter().cloned().collect();
        let (cause, evidence) = stall_cause(&all, StallSpan { from_s, to_s, sessions });
        // A server from which processors are withheld syncs late, whatever the device does, but is
        // not asleep for it at every look.
        let waits = all.iter().rev().find_map(|one| one.sample.as_ref().ok()?.session_waits);
        let is_asleep = waits.is_some_and(|waits| waits.uninterruptible > 0);
        if (cause == StallCause::Unknown || cause == StallCause::Device && !is_asleep)
            && let Some(processors) = self.processors(from_s, to_s)
        {
            return (StallCause::Processors, processors);
        }
        match self.stolen_pct(from_s, to_s).filter(|pct| *pct >= STOLEN_PCT) {
            Some(pct) if cause == StallCause::Unknown => {
                let text = "of the processor time went to other virtual machines";
                (cause, format!("{evidence}; {} {text}", iostrata_stats::units::percent(pct)))
            }
            _ => (cause, evidence),
        }
    }

    /// Whether a stall goes on for which the waits of sessions were not queried yet, or whose cause
    /// is not known, or a low rate may be a stall.
    pub(crate) fn needs_session_waits(&self) -> bool {
        if self.lull.is_some() {
            return true;
        }
        self.last.as_ref().is_some_and(|last| {
            let is_known = match last.stall.cause {
                StallCause::Unknown => false,
                StallCause::Processors => {
                    let now_s = self.moments.back().map_or(0.0, |moment| moment.at_s);
                    last.looks >= LOOKS_AT_PROCESSORS && now_s - last.looked_s < LOOK_AGAIN_S
                }
                _ => last.looks > 0,
            };
            last.is_going && !is_known
        })
    }

    /// What sessions wait for at the last sample, which lies within the current stall; the stall
    /// with the cause that this shows.
    pub(crate) fn explain(&mut self, waits: SessionWaits) -> Option<TransactionStall> {
        if let Some(lull) = self.lull.take() {
            self.begin_starved(lull, waits)?;
        }
        let last = self.last.clone().filter(|last| last.is_going)?.stall;
        let sampled = self.sampled.back_mut()?.sample.as_mut().ok()?;
        sampled.session_waits = Some(waits);
        let moment = self.moments.back_mut()?;
        moment.sample.session_waits = Some(waits);
        let (now_s, running) = (moment.at_s, moment.sample.sessions_running);
        let (cause, evidence) = self.cause(last.t_s, now_s, running);
        let going = self.last.as_mut()?;
        going.looks += 1;
        going.looked_s = now_s;
        if cause != StallCause::Unknown || going.stall.cause == StallCause::Processors {
            (going.stall.cause, going.stall.evidence) = (cause, evidence);
        }
        Some(going.stall.clone())
    }

    /// Whether a stall goes on in which processors are withheld.
    fn is_starved(&self, now_s: f64) -> bool {
        let going = self.last.as_ref().filter(|last| last.is_going).map(|last| &last.stall);
        let starved = going.filter(|stall| stall.cause == StallCause::Processors);
        starved.is_some_and(|stall| self.is_pressed(stall.t_s, now_s))
    }

    /// A server that gets a processor for a moment serves all that came meanwhile, so that no
    /// session is at work when it takes a sample: its tasks that wait for one show that it stalls.
    /// Where clients are slower than the server, no sample usually sees a session at work either:
    /// then it has to be starved, and still complete some transactions.
    fn begin_starved(&mut self, lull: Lull, waits: SessionWaits) -> Option<()> {
        let usual = self.usual_running()?;
        let is_short = match usual {
            0 => lull.rate.0 > 0.0 && is_starved_of_processors(&waits),
            usual => is_short_of_processors(&waits, usual),
        };
        is_short.then_some(())?;
        // Its rate is not usual.
        self.usual.pop_back();
        self.go_on(lull.now_s, lull.rate, Some(usual.max(1)));
        Some(())
    }

    /// The mean of a share of processor waits within a time, in percent.
    fn processor_waits_pct(
        &self,
        of: fn(&ProcessorWaits) -> Option<f64>,
        (from_s, to_s): (f64, f64),
    ) -> f64 {
        let within = self.moments.iter().filter(|one| one.at_s > from_s && one.at_s <= to_s);
        let shares: Vec<f64> = within.filter_map(|one| of(&one.processors)).collect();
        shares.iter().sum::<f64>() / shares.len().max(1) as f64
    }

    /// Whether tasks waited for processors for much of a time, as they may in other times.
    fn is_pressed(&self, from_s: f64, to_s: f64) -> bool {
        let shares: [fn(&ProcessorWaits) -> Option<f64>; 2] =
            [|one| one.throttled_pct, |one| one.pressure_pct];
        shares.into_iter().any(|of| self.processor_waits_pct(of, (from_s, to_s)) >= PROCESSORS_PCT)
    }

    /// Whether processors were withheld within a time, and usually are not.
    fn processors(&self, from_s: f64, to_s: f64) -> Option<String> {
        let is_outside = |one: &&SampleMoment| one.at_s <= from_s || one.at_s > to_s;
        let unusual = |of: fn(&ProcessorWaits) -> Option<f64>| {
            let outside = self.moments.iter().filter(is_outside);
            let shares = outside.filter_map(|one| of(&one.processors)).collect();
            let usual = median(shares, f64::total_cmp)?;
            let pct = self.processor_waits_pct(of, (from_s, to_s));
            (pct >= PROCESSORS_PCT && pct >= PROCESSORS_MORE * usual).then_some((pct, usual))
        };
        let percent = iostrata_stats::units::percent;
        if let Some((pct, usual)) = unusual(|one| one.throttled_pct) {
            return Some(format!(
                "the processor quota of its control group ran out in {} of its periods, in {} \
                 outside of stalls",
                percent(pct),
                percent(usual)
            ));
        }
        let (pct, usual) = unusual(|one| one.pressure_pct)?;
        Some(format!(
            "its tasks waited for a processor in {} of the time, in {} outside of stalls",
            percent(pct),
            percent(usual)
        ))
    }

    /// What the hypervisor took within a time, on average over its samples.
    fn stolen_pct(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let within = self.moments.iter().filter(|one| one.at_s > from_s && one.at_s <= to_s);
        let all: Option<Vec<f64>> = within.map(|one| one.stolen_pct).collect();
        let all = all.filter(|all| !all.is_empty())?;
        Some(all.iter().sum::<f64>() / all.len() as f64)
    }

    fn remember(&mut self, moment: SampleMoment) {
        self.moments.push_back(moment);
        self.sampled.push_back(StallSample { at_s: moment.at_s, sample: Ok(moment.sample) });
        let since_s = match &self.last {
            Some(last) if last.is_going => moment.at_s.min(last.stall.t_s) - MEMORY_S,
            _ => moment.at_s - MEMORY_S,
        };
        let is_old = |at_s: f64, kept: usize| at_s < since_s && kept > RATES_KEPT;
        while self.moments.front().is_some_and(|one| is_old(one.at_s, self.moments.len())) {
            self.moments.pop_front();
        }
        while self.sampled.front().is_some_and(|one| is_old(one.at_s, self.sampled.len())) {
            self.sampled.pop_front();
        }
        // During a stall, what was usual before it stays.
        while self.usual.front().is_some_and(|one| is_old(one.at_s, self.usual.len())) {
            self.usual.pop_front();
        }
    }

    /// Throughput of the recent span, its length, and the sessions that waited meanwhile.
    fn recent(&self, now: &SampleMoment) -> Option<(f64, f64, Option<u64>)> {
        let look_s = match self.usual_tps() {
            Some(usual) if usual > 0.0 => RULE.seconds_min(usual).clamp(LOOK_S, LOOK_S_MAX),
            _ => LOOK_S,
        };
        let until_s = now.taken_s() - look_s * (1.0 - JITTER);
        let before = self.moments.iter().rev().find(|one| one.taken_s() <= until_s)?;
        let span = now.since(before);
        let tps = span.per_s(|one| one.transactions)?;
        let since_s = before.taken_s();
        let recent = self.moments.iter().filter(|one| one.taken_s() > since_s);
        let running: Option<Vec<u64>> = recent.map(|one| one.sample.sessions_running).collect();
        Some((tps, span.seconds, running.and_then(|all| median(all, u64::cmp))))
    }

    fn usual_tps(&self) -> Option<f64> {
        let (first, last) = (self.usual.front()?, self.usual.back()?);
        let is_known =
            self.usual.len() >= RATES_MIN && last.at_s - first.at_s >= RATES_MIN_S * (1.0 - JITTER);
        let rates = self.usual.iter().map(|one| one.tps).collect();
        median(rates, f64::total_cmp).filter(|_| is_known)
    }

    /// Whether so many sessions wait as are to be expected of a stall: where load went away, fewer
    /// do.
    fn is_crowded(&self, running: u64) -> bool {
        running > 0 && 2 * running >= self.usual_running().unwrap_or(0)
    }

    /// Sessions that are usually at work.
    fn usual_running(&self) -> Option<u64> {
        median(self.usual.iter().filter_map(|one| one.running).collect(), u64::cmp)
    }
}

impl Stalls {
    /// Whether clients were turned away since the sample before.
    fn are_refused(&self) -> bool {
        let mut last = self.moments.iter().rev();
        let Some((after, before)) = last.next().zip(last.next()) else { return false };
        after.since(before).grown(|one| one.connections_refused).is_some_and(|more| more > 0)
    }
}

/// The lower median.
fn median<T: Copy>(
    mut values: Vec<T>,
    order: impl FnMut(&T, &T) -> std::cmp::Ordering,
) -> Option<T> {
    values.sort_by(order);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests;
