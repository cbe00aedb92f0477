//! When a low rate is a stall, and why a target stalled, from samples of it.
//!
//! Purpose: one judgement for targets that are watched and windows that are measured. Both follow
//! one rule with thresholds of their own: while a target is watched, the usual value is the median
//! of the last minute; of a window that is over, it is its mean. Invariants: pure; a cause is named
//! only where samples within or around the stall support it; otherwise it is unknown, and the
//! evidence lists what was seen. What holds writers up in most samples of the stall is the cause,
//! even where it began or ended for another. What also happens while nothing stalls (waits that are
//! counted, I/O in flight) has to stand out from the samples outside.

use iostrata_run::{SessionWaits, StallCause, TargetSample};
use iostrata_stats::units::times;
use iostrata_stats::{DOWN_SHARE, LowSpell, SECOND_EVENTS_MIN};

/// Share of its limit from which checkpoint age explains a stall.
const AGE_FULL: f64 = 0.95;
/// A counter explains a stall where it grows this many times as fast as outside of it.
const FASTER: f64 = 2.0;
/// Writing and syncing the redo explains a stall where it takes so long each time, in microseconds,
/// and so many times as long as usual.
const FLUSH_US_SLOW: f64 = 20_000.0;
const SLOWER: f64 = 4.0;
/// Share of the time in which tasks can run that they wait for a processor, in percent, from which
/// a target is starved: with twice as many busy tasks as processors it is half.
const STARVED_PCT: u64 = 90;
/// Share of a stall for which other members of a cluster held writers back, to explain it.
const PAUSED: f64 = 0.3;
/// Where commits do not wait for it, redo is synced once a second, or a little earlier.
const SYNC_EVERY_S: f64 = 0.9;
/// Samples within a stall that is long enough to look at how it goes on.
const SAMPLES_LONG: usize = 4;
/// Fewest samples within a stall that show what was pending all the time.
const SAMPLES_MIN: usize = 2;

/// When a low rate is a stall.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallRule {
    /// The share of the usual rate below which a target stalls.
    pub below: f64,
    /// Transactions that are usual in the time that is judged: fewer may fail to come by chance.
    pub transactions_min: f64,
    /// Standard deviations of a count that chance may take away.
    pub deviations: f64,
}

impl StallRule {
    /// While a target is watched, second by second.
    pub const LIVE: Self = Self { below: DOWN_SHARE, transactions_min: 16.0, deviations: 4.0 };
    /// Of a window that is over, where the time of a stall is known as a whole.
    pub const WINDOW: Self =
        Self { below: DOWN_SHARE, transactions_min: SECOND_EVENTS_MIN, deviations: 4.0 };

    /// How long a time is judged at least, in seconds, so that enough transactions are usual in it.
    pub fn seconds_min(&self, usual_tps: f64) -> f64 {
        self.transactions_min / usual_tps
    }

    /// Whether a time in which all windows were low is a stall, and not by chance.
    pub fn is_stall(&self, spell: &LowSpell, usual_tps: f64) -> bool {
        spell.length_s >= self.seconds_min(usual_tps)
            && self.is_low(spell.share * usual_tps, spell.length_s, usual_tps, 0.0)
    }

    /// Whether a rate over so many seconds is under the share of what is usual, and not by chance.
    /// Samples are a little early or late: `tolerance` is the share that may be missing for that.
    pub fn is_low(&self, tps: f64, seconds: f64, usual_tps: f64, tolerance: f64) -> bool {
        let (expected, found) = (usual_tps * seconds, tps * seconds);
        let by_chance = self.deviations * expected.sqrt() * (1.0 - tolerance);
        tps < self.below * usual_tps && expected - found >= by_chance
    }
}

/// A sample, and when it was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct StallSample {
    /// In seconds.
    pub at_s: f64,
    /// The target's sample, or the code of its error.
    pub sample: Result<TargetSample, String>,
}

/// A stall to be explained, on the clock of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallSpan {
    /// When it began, in seconds.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// Sessions that were at work.
    pub sessions: u32,
}

/// The cause of a stall and what speaks for it. Samples are in the order of their time.
pub fn stall_cause(samples: &[StallSample], stalled: StallSpan) -> (StallCause, String) {
    let view = View::new(samples, stalled);
    if let Some(code) = view.refusal {
        return (StallCause::Unknown, format!("the target did not answer: {code}"));
    }
    if view.within.is_empty() && view.around.len() < 2 {
        return (StallCause::Unknown, "no sample was taken meanwhile".to_owned());
    }
    let rules = [
        View::all_locked,
        View::waiting_sessions,
        View::connections,
        View::flow_control,
        View::semi_sync,
        View::redo_full,
        View::free_pages,
        View::log_buffer,
        View::purge,
        View::redo_past_async,
        View::redo_stays_full,
        View::lock,
        View::device_all_along,
        // Who waits for a processor syncs late, too.
        View::processors,
        View::device,
    ];
    rules.iter().find_map(|rule| rule(&view)).unwrap_or_else(|| {
        let text = match view.within.len() {
            0 => "the samples before and after it show none of the known causes".to_owned(),
            1 => "the sample within it shows none of the known causes".to_owned(),
            n => format!("{n} samples within it show none of the known causes"),
        };
        (StallCause::Unknown, text)
    })
}

/// A sample with its time, as the rules see it.
type SampleAt<'a> = (f64, &'a TargetSample);
type Field = fn(&TargetSample) -> Option<u64>;
type Reason = Option<(StallCause, String)>;

/// For how long redo waited between two samples, in seconds, and how many bytes of it: where none
/// of it became durable.
fn stuck(pair: &[SampleAt<'_>]) -> Option<(f64, u64)> {
    let [(from_s, before), (to_s, after)] = pair else { return None };
    let bytes = after.redo_end_bytes?.checked_sub(after.redo_durable_bytes?)?;
    let is_stuck = before.redo_durable_bytes == after.redo_durable_bytes && bytes > 0;
    is_stuck.then_some((to_s - from_s, bytes))
}

/// The samples by where they lie.
struct View<'a> {
    stalled: StallSpan,
    all: Vec<SampleAt<'a>>,
    within: Vec<SampleAt<'a>>,
    /// Those within, the last one before and the first one after.
    around: Vec<SampleAt<'a>>,
    /// What the first sample within was refused with.
    refusal: Option<&'a str>,
}

impl<'a> View<'a> {
    fn new(samples: &'a [StallSample], stalled: StallSpan) -> Self {
        let is_within = |at_s: f64| (stalled.from_s..=stalled.to_s).contains(&at_s);
        let seen = |one: &'a StallSample| Some((one.at_s, one.sample.as_ref().ok()?));
        let all: Vec<SampleAt<'a>> = samples.iter().filter_map(seen).collect();
        let before = all.iter().rev().find(|(at_s, _)| *at_s < stalled.from_s);
        let after = all.iter().find(|(at_s, _)| *at_s > stalled.to_s);
        let within: Vec<SampleAt<'a>> =
            all.iter().filter(|(at_s, _)| is_within(*at_s)).copied().collect();
        let around = before.into_iter().chain(&within).chain(after).copied().collect();
        let refused = samples.iter().find(|one| is_within(one.at_s) && one.sample.is_err());
        let refusal = refused.and_then(|one| one.sample.as_ref().err()).map(String::as_str);
        Self { stalled, all, within, around, refusal }
    }

    /// By how much a counter grew around the stall, if that is faster than outside of it.
    fn growth(&self, field: Field) -> Option<u64> {
        let grown = |samples: &[SampleAt<'_>]| {
            let ((from_s, first), (to_s, last)) = (samples.first()?, samples.last()?);
            Some((field(last)?.checked_sub(field(first)?)?, to_s - from_s))
        };
        let (count, seconds) = grown(&self.around)?;
        let (all_count, all_seconds) = grown(&self.all)?;
        let rest = all_count.saturating_sub(count) as f64;
        let usual = rest / (all_seconds - seconds).max(f64::MIN_POSITIVE);
        let is_alone = all_seconds <= seconds;
        let is_faster = is_alone || count as f64 / seconds > FASTER * usual;
        (count > 0 && seconds > 0.0 && is_faster).then_some(count)
    }

    /// The least value within the stall, where every sample has one.
    fn least(&self, field: Field) -> Option<u64> {
        let values: Option<Vec<u64>> = self.within.iter().map(|(_, one)| field(one)).collect();
        values?.into_iter().min()
    }

    /// What sessions waited for at the last look within the stall.
    fn session_waits(&self) -> Option<SessionWaits> {
        self.within.iter().rev().find_map(|(_, one)| one.session_waits)
    }

    /// The samples within the stall of which something holds, where that is most of them, and words
    /// for how many where it is not all.
    fn in_most(
        &self,
        holds: impl Fn(&TargetSample) -> bool,
    ) -> Option<(Vec<&TargetSample>, String)> {
        let found: Vec<&TargetSample> =
            self.within.iter().map(|(_, one)| *one).filter(|one| holds(one)).collect();
        let (count, all) = (found.len(), self.within.len());
        let text = if count < all {
            format!(" in {count} of {all} samples within it")
        } else {
            String::new()
        };
        (2 * count > all).then_some((found, text))
    }

    fn redo_full(&self) -> Reason {
        if let Some(count) = self.growth(|one| one.redo_waits) {
            let text = format!("writers waited {} for a checkpoint", times(count));
            return Some((StallCause::RedoFull, text));
        }
        if let Some(full) = self.redo_stays_full().filter(|_| !self.is_full_outside()) {
            return Some(full);
        }
        let pages = self.growth(|one| one.pages_flushed_for_redo)?;
        let text = format!("{pages} pages were written because redo was about to run out");
        Some((StallCause::RedoFull, text))
    }

    /// An age that is as high while nothing stalls explains less than what counts waits.
    fn is_full_outside(&self) -> bool {
        self.is_outside(age_share, AGE_FULL)
    }

    /// Whether a share is that high in most samples outside of the stall.
    fn is_outside(&self, share: impl Fn(&TargetSample) -> Option<f64>, least: f64) -> bool {
        let outside = self.all.iter().filter(|seen| !self.around.contains(seen));
        let shares: Vec<f64> = outside.filter_map(|(_, one)| share(one)).collect();
        2 * shares.iter().filter(|share| **share >= least).count() > shares.len()
    }

    /// An age that was full when a long stall began, and fell meanwhile, does not explain why it
    /// continues.
    fn redo_stays_full(&self) -> Reason {
        let full = |one: &TargetSample| age_share(one).is_some_and(|share| share >= AGE_FULL);
        if self.within.len() >= SAMPLES_LONG {
            let count = self.within.iter().filter(|(_, one)| full(one)).count();
            (2 * count >= self.within.len()).then_some(())?;
        }
        let most = self.around.iter().filter_map(|(_, one)| age_share(one)).fold(0.0, f64::max);
        let text = format!("checkpoint age was at {:.0} % of its limit", most * 100.0);
        (most >= AGE_FULL).then_some((StallCause::RedoFull, text))
    }

    /// All that is written out at once keeps pages busy: writers wait for these before they wait
    /// for a checkpoint. Where the age is usually as high, that alone proves nothing: sometimes
    /// many pages lie past the limit and sometimes few, and many of them have to be written
    /// meanwhile.
    fn redo_past_async(&self) -> Reason {
        let async_share = |one: &TargetSample| share_of(one, one.checkpoint_age_async_bytes);
        let shares = self.within.iter().filter_map(|(_, one)| async_share(one));
        let (past, all) = (shares.filter(|share| *share >= 1.0).count(), self.within.len());
        if 2 * past <= all {
            return None;
        }
        let mut text = format!(
            "checkpoint age was past the async limit, from which pages are flushed as fast as \
             possible, in {past} of {all} samples within it"
        );
        if self.is_outside(async_share, 1.0) {
            let pages = self.growth(|one| one.pages_flushed)?;
            text = format!("{text}, and {pages} pages were written, more than usual");
        }
        Some((StallCause::RedoFull, text))
    }

    fn free_pages(&self) -> Reason {
        let count = self.growth(|one| one.free_page_waits)?;
        Some((StallCause::FreePages, format!("pages waited {} for a free frame", times(count))))
    }

    fn log_buffer(&self) -> Reason {
        let count = self.growth(|one| one.log_buffer_waits)?;
        Some((
            StallCause::LogBuffer,
            format!("writers waited {} for room in the log buffer", times(count)),
        ))
    }

    fn purge(&self) -> Reason {
        let past = |one: &TargetSample| Some((one.history_list_length?, one.history_list_limit?));
        let is_past = |one: &TargetSample| past(one).is_some_and(|(length, limit)| length > limit);
        let (samples, when) = self.in_most(is_past)?;
        let (history, limit) = samples.into_iter().filter_map(past).min()?;
        let text = format!(
            "the history list was never below {history}{when}, and writers are held back above \
             {limit}"
        );
        Some((StallCause::Purge, text))
    }

    fn lock(&self) -> Reason {
        let sessions = u64::from(self.stalled.sessions);
        let waiting = |one: &TargetSample| {
            one.row_locks_waiting.filter(|count| *count > 0 && 2 * count >= sessions)
        };
        let (samples, when) = self.in_most(|one| waiting(one).is_some())?;
        let waiting = samples.into_iter().filter_map(waiting).min()?;
        let all = sessions.max(waiting);
        let text = format!("at least {waiting} of {all} sessions waited for row locks{when}");
        Some((StallCause::Lock, text))
    }

    /// When every session waits for a row lock, none waits for space in the redo: a high age is
    /// then nothing unusual, since some servers let it stand there.
    fn all_locked(&self) -> Reason {
        let sessions = u64::from(self.stalled.sessions);
        let most = self.within.iter().filter_map(|(_, one)| one.row_locks_waiting).max()?;
        let least = self.least(|one| one.row_locks_waiting)?;
        if most >= sessions && 2 * least >= sessions { self.lock() } else { None }
    }

    /// Redo that waits to become durable for half of the stall at least. Where commits wait for
    /// it: for a second in all, or while I/O is in flight. Where they do not, it is synced once a
    /// second: for longer than that at a time.
    fn stuck_redo(&self) -> Reason {
        let spans: Vec<Option<(f64, u64)>> = self.within.windows(2).map(stuck).collect();
        let sum_s = |run: &[Option<(f64, u64)>]| run.iter().flatten().map(|(s, _)| s).sum::<f64>();
        let stuck_s = sum_s(&spans);
        let (_, waiting) = spans.iter().flatten().next_back()?;
        let all_s = self.within.last()?.0 - self.within.first()?.0;
        let is_late = if self.is_redo_usually_stuck() {
            spans.split(Option::is_none).map(sum_s).fold(0.0, f64::max) >= 2.0 * SYNC_EVERY_S
        } else {
            stuck_s >= SYNC_EVERY_S || self.least(TargetSample::pending_ios) > Some(0)
        };
        let text = format!("nothing became durable, and {waiting} bytes of redo waited");
        (2.0 * stuck_s >= all_s && is_late).then_some((StallCause::Device, text))
    }

    /// Whether redo waits from sample to sample while nothing stalls, too: it is synced once a
    /// second, whatever is committed.
    fn is_redo_usually_stuck(&self) -> bool {
        let is_outside = |pair: &&[SampleAt<'_>]| pair.iter().all(|one| !self.around.contains(one));
        let outside = self.all.windows(2).filter(is_outside);
        3 * outside.clone().filter_map(stuck).count() > outside.count()
    }

    /// Redo that does not become durable while a task of the target sleeps for I/O at every look:
    /// one that waits for a processor is not in uninterruptible sleep.
    fn device_all_along(&self) -> Reason {
        let waits = self.session_waits()?;
        let is_long = self.within.len() >= SAMPLES_MIN && waits.uninterruptible > 0;
        self.stuck_redo().filter(|_| is_long)
    }

    fn device(&self) -> Reason {
        if self.within.len() < SAMPLES_MIN {
            return None;
        }
        if let Some(stuck) = self.stuck_redo() {
            return Some(stuck);
        }
        if let Some((us, usual_us)) = self.slow_flushes() {
            let [ms, usual_ms] = [us / 1e3, usual_us / 1e3];
            let text = format!(
                "writing and syncing the redo took {ms:.0} ms each time, {usual_ms:.1} ms outside \
                 of stalls"
            );
            return Some((StallCause::Device, text));
        }
        let pending = self.least(TargetSample::pending_ios)?;
        let outside = self.all.iter().filter(|seen| !self.within.contains(seen));
        let idle = outside.clone().filter(|(_, one)| one.pending_ios() == Some(0)).count();
        let is_unusual = 2 * idle > outside.count();
        let text = format!("at least {pending} reads, writes or syncs were in flight all the time");
        (pending > 0 && is_unusual).then_some((StallCause::Device, text))
    }
}

impl View<'_> {
    /// How long writing and syncing the redo took each time between the samples within the stall,
    /// and how long it usually takes, if it was slow. A sample from before would mix in many quick
    /// ones.
    fn slow_flushes(&self) -> Option<(f64, f64)> {
        let mean_us = |(first, last): (&TargetSample, &TargetSample)| {
            let count = last.redo_flushes?.checked_sub(first.redo_flushes?)?;
            let us = last.redo_flush_us?.checked_sub(first.redo_flush_us?)?;
            (count > 0).then(|| us as f64 / count as f64)
        };
        let us = mean_us((self.within.first()?.1, self.within.last()?.1))?;
        let pairs = self.all.windows(2);
        let mut each: Vec<f64> = pairs.filter_map(|two| mean_us((two[0].1, two[1].1))).collect();
        each.sort_by(f64::total_cmp);
        // Other stalls may fill the rest of the run: its quicker quarter is what is usual.
        let usual_us = *each.get(each.len() / 4)?;
        (us > FLUSH_US_SLOW && us > SLOWER * usual_us).then_some((us, usual_us))
    }
}

/// What a kind of waiting is called, how many sessions do so, and the cause that it is.
type Waiting = (&'static str, fn(&SessionWaits) -> u64, StallCause);

const WAITING: [Waiting; 5] = [
    (
        "the lock that stops all writers (FLUSH TABLES WITH READ LOCK or a backup)",
        |waits| waits.global_lock,
        StallCause::GlobalLock,
    ),
    (
        "metadata locks of tables that others alter or still use",
        |waits| waits.metadata_lock,
        StallCause::MetadataLock,
    ),
    ("flow control of the cluster", |waits| waits.flow_control, StallCause::FlowControl),
    ("a replica to acknowledge their commit", |waits| waits.semi_sync, StallCause::SemiSync),
    ("room on a disk", |waits| waits.disk_space, StallCause::DiskFull),
];

impl View<'_> {
    /// What half of the sessions wait for, by the last look at all of them.
    fn waiting_sessions(&self) -> Reason {
        let waits = self.session_waits()?;
        let sessions = u64::from(self.stalled.sessions);
        let most = WAITING.iter().max_by_key(|(_, count, _)| count(&waits))?;
        let (what, count, cause) = (most.0, most.1(&waits), most.2);
        let text = format!("{count} of {} sessions waited for {what}", sessions.max(count));
        (count > 0 && 2 * count >= sessions).then_some((cause, text))
    }

    /// After all that sessions wait for by name: busy tasks wait for processors in many servers
    /// that are well.
    fn processors(&self) -> Reason {
        let waits = self.session_waits()?;
        let count = waits.processor;
        let mut text = format!("{count} of its tasks waited for a processor at a time");
        if waits.processor_waited_pct >= STARVED_PCT {
            let pct = waits.processor_waited_pct;
            text.push_str(&format!(", and tasks that could run did not for {pct} % of the time"));
        }
        let is_short = is_short_of_processors(&waits, u64::from(self.stalled.sessions));
        is_short.then_some((StallCause::Processors, text))
    }

    fn connections(&self) -> Reason {
        let refused = self.growth(|one| one.connections_refused)?;
        let limit = self.within.iter().rev().find_map(|(_, one)| one.connections_limit)?;
        let is_full = |one: &TargetSample| one.connections.is_some_and(|count| count >= limit);
        let (_, when) = self.in_most(is_full)?;
        let text = format!(
            "clients were turned away {}, as all of its {limit} connections (max_connections) \
             were taken{when}",
            times(refused)
        );
        Some((StallCause::Connections, text))
    }

    fn flow_control(&self) -> Reason {
        let waits = self.session_waits();
        let full = waits
            .filter(|one| one.group_queue_limit > 0 && one.group_queue >= one.group_queue_limit);
        if let Some(SessionWaits { group_queue, group_queue_limit, .. }) = full {
            let text = format!(
                "{group_queue} transactions wait at a member of the group; beyond \
                 {group_queue_limit} its flow control holds writers back"
            );
            return Some((StallCause::FlowControl, text));
        }
        let paused_ns = self.growth(|one| one.flow_control_paused_ns)?;
        let seconds = self.around.last()?.0 - self.around.first()?.0;
        let share = paused_ns as f64 / 1e9 / seconds;
        let text = format!(
            "flow control of the cluster held writers back for {:.0} % of the time",
            100.0 * share.min(1.0)
        );
        (share >= PAUSED).then_some((StallCause::FlowControl, text))
    }

    /// Each commit waits for a replica, but not that many of them in every sample.
    fn semi_sync(&self) -> Reason {
        let sessions = f64::from(self.stalled.sessions.max(1));
        let share = |one: &TargetSample| Some(one.semi_sync_waiting? as f64 / sessions);
        let (samples, when) = self.in_most(|one| share(one).is_some_and(|share| share >= 0.5))?;
        let least = samples.into_iter().filter_map(|one| one.semi_sync_waiting).min()?;
        let text =
            format!("at least {least} commits waited for a replica to acknowledge them{when}");
        (!self.is_outside(share, 0.5)).then_some((StallCause::SemiSync, text))
    }
}

/// Whether tasks of a target wait for processors: half as many as there are sessions, or any, if
/// those that could run hardly ever did.
pub(crate) fn is_short_of_processors(waits: &SessionWaits, sessions: u64) -> bool {
    let is_crowd = waits.processor > 0 && 2 * waits.processor >= sessions;
    is_crowd || is_starved_of_processors(waits)
}

/// Whether tasks of a target wait for processors, and those that could run hardly ever did.
pub(crate) fn is_starved_of_processors(waits: &SessionWaits) -> bool {
    waits.processor > 0 && waits.processor_waited_pct >= STARVED_PCT
}

/// Checkpoint age over its limit.
fn age_share(one: &TargetSample) -> Option<f64> {
    share_of(one, one.checkpoint_age_limit_bytes)
}

/// Checkpoint age over one of its limits.
fn share_of(one: &TargetSample, limit: Option<u64>) -> Option<f64> {
    let limit = limit.filter(|limit| *limit > 0)?;
    Some(one.checkpoint_age_bytes? as f64 / limit as f64)
}

#[cfg(test)]
mod tests;
