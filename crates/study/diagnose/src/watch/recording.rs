//! The figures of a recording, and the settings that held.
//!
//! Invariant: what a target does not report is `None`, never 0; a figure rests on the samples that
//! have it, and on no fewer than [`SAMPLES_MIN`].
//!
//! Findings from the course of a recording by itself: a limit that is used up all along, pauses by
//! the clock, settings that were left behind, and too little to conclude anything.

use iostrata_plan::Layer;
use iostrata_run::host::{LimitedRate, ThrottleEvidence};
use iostrata_run::{ManagedService, SettingOrigin, StallCause, WatchDocument, WatchSample};
use iostrata_stats::units::{bytes, count, percent, seconds, times};
use iostrata_stats::{Measured, estimate, mean_of};
use serde_json::json;

use crate::server_setting::{Family, Release};
use crate::statement::Statement;

/// Fewer samples with figures prove nothing.
pub(super) const SAMPLES_MIN: usize = 30;
/// Share of its limit from which on the checkpoint age leaves no room, in percent.
const PRESSED_PCT: f64 = 90.0;
/// The part of a redo log that is the limit of the checkpoint age, about.
pub(super) const LIMIT_SHARE: f64 = 0.82;
/// Samples of the highest rate that was kept up.
const KEPT_UP_SAMPLES: usize = 5;

/// Signs that redo space ran out, or nearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RedoPressure {
    /// Stalls for lack of redo space.
    pub stalls: u64,
    /// Their length together, in seconds.
    pub stalled_s: f64,
    /// Furious flushes that began.
    pub furious_flushes: u64,
    /// The checkpoint age that a twentieth of the samples passed, in percent of its limit.
    pub age_pct_p95: Option<f64>,
}

impl RedoPressure {
    /// `it stalled 3 times for lack of redo space (12 s)`, or what else speaks for it.
    pub fn words(&self) -> String {
        let Self { stalls, stalled_s, furious_flushes, age_pct_p95 } = *self;
        if stalls > 0 {
            let seconds = seconds(stalled_s);
            return format!("it stalled {} for lack of redo space ({seconds})", times(stalls));
        }
        if furious_flushes > 0 {
            return format!("furious flushing began {}", times(furious_flushes));
        }
        let age = age_pct_p95.unwrap_or_default();
        format!("the checkpoint age reached {} of its limit", percent(age))
    }

    /// A statement with what speaks for redo space that ran out.
    pub fn beside(&self, said: Statement) -> Statement {
        said.with("redo_stalls", self.stalls)
            .with("redo_stalled_s", self.stalled_s)
            .with("furious_flushes", self.furious_flushes)
            .with("checkpoint_age_pct_p95", json!(self.age_pct_p95))
    }
}

/// A recording with what its rules ask for.
pub(crate) struct Recording<'d> {
    pub document: &'d WatchDocument,
    pub family: Family,
    /// Major, minor and patch level, where the version begins with them.
    pub version: Release,
    /// Who runs the server, where that is a service.
    pub service: Option<ManagedService>,
    samples: Vec<&'d WatchSample>,
}

impl<'d> Recording<'d> {
    pub fn of(document: &'d WatchDocument) -> Self {
        let samples: Vec<&WatchSample> =
            document.samples.iter().filter(|sample| sample.error.is_none()).collect();
        let target = &document.target;
        let family = match target.flavour.as_str() {
            "engine" => Family::Engine,
            "mariadb" => Family::MariaDb,
            _ => Family::MySql,
        };
        let mut numbers = target.version.split(|char: char| !char.is_ascii_digit());
        let mut number = || numbers.next().and_then(|text| text.parse().ok()).unwrap_or(0);
        let version = (number(), number(), number());
        let settings = target.settings.iter().map(|(name, value)| (&**name, &**value));
        let service = ManagedService::of(settings);
        Self { document, family, version, service, samples }
    }

    /// Whether there are enough samples with figures to conclude from.
    pub fn is_long_enough(&self) -> bool {
        self.samples.len() >= SAMPLES_MIN
    }

    /// The values of a figure, in the order of time.
    pub fn series<T>(&self, of: impl Fn(&WatchSample) -> Option<T>) -> Vec<T> {
        self.samples.iter().filter_map(|sample| of(sample)).collect()
    }

    /// The mean of a figure.
    pub fn mean(&self, of: impl Fn(&WatchSample) -> Option<f64>) -> Option<Measured> {
        measured(&self.series(of))
    }

    /// Pages that became dirty per second: those that were written, and by how many more there are.
    pub fn pages_dirtied_per_s(&self) -> Option<Measured> {
        let dirtied = |pair: &[&WatchSample]| {
            let [before, after] = pair else { return None };
            let grown = after.dirty_pages? as f64 - before.dirty_pages? as f64;
            let seconds = Some(after.t_s - before.t_s).filter(|seconds| *seconds > 0.0)?;
            Some(after.flushed_pages_per_s? + grown / seconds)
        };
        let rates: Vec<f64> = self.samples.windows(2).filter_map(dirtied).collect();
        measured(&rates).filter(|rate| rate.value > 0.0)
    }

    /// Dirty pages per byte of checkpoint age, over the samples that have both.
    pub fn dirty_pages_per_age_byte(&self) -> Option<f64> {
        let of = |sample: &WatchSample| {
            let age = sample.checkpoint_age_bytes.filter(|age| *age > 0)?;
            Some(sample.dirty_pages? as f64 / age as f64)
        };
        self.quantile(0.5, of).filter(|pages| *pages > 0.0)
    }

    /// The highest rate of page writes that was kept up for some samples.
    pub fn flushed_per_s_best(&self) -> Option<f64> {
        let rates = self.series(|sample| sample.flushed_pages_per_s);
        let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len() as f64;
        rates.windows(KEPT_UP_SAMPLES).map(mean).max_by(f64::total_cmp)
    }

    /// The value below which this share of the samples lies.
    pub fn quantile(&self, share: f64, of: impl Fn(&WatchSample) -> Option<f64>) -> Option<f64> {
        let mut values = self.series(of);
        values.sort_by(f64::total_cmp);
        let at = ((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1));
        (values.len() >= SAMPLES_MIN).then(|| values[at])
    }

    /// The share of the samples of which something holds, among those of which it is known.
    pub fn share(&self, of: impl Fn(&WatchSample) -> Option<bool>) -> Option<f64> {
        let known: Vec<bool> = self.samples.iter().filter_map(|sample| of(sample)).collect();
        let held = known.iter().filter(|held| **held).count();
        (known.len() >= SAMPLES_MIN).then(|| held as f64 / known.len() as f64)
    }

    /// Longest stretch of samples of which something holds.
    pub fn longest(&self, holds: impl Fn(&WatchSample) -> bool) -> usize {
        let (mut longest, mut now) = (0, 0);
        for sample in &self.samples {
            now = if holds(sample) { now + 1 } else { 0 };
            longest = longest.max(now);
        }
        longest
    }

    /// First and last value of a figure, with the seconds between.
    pub fn ends(&self, of: impl Fn(&WatchSample) -> Option<f64>) -> Option<([f64; 2], f64)> {
        let known = |sample: &&&WatchSample| of(sample).is_some();
        let (first, last) = (self.samples.iter().find(known)?, self.samples.iter().rfind(known)?);
        let seconds = last.t_s - first.t_s;
        (seconds > 0.0).then_some(([of(first)?, of(last)?], seconds))
    }

    /// Stalls of a cause, and their length together in seconds.
    pub fn stalls(&self, cause: StallCause) -> (u64, f64) {
        let stalls = self.document.stalls.iter().filter(|stall| stall.cause == cause);
        stalls.fold((0, 0.0), |(count, s), stall| (count + 1, s + stall.length_s))
    }

    /// Whether redo space ran out, or nearly; `None` where nothing speaks for it.
    pub fn redo_pressure(&self) -> Option<RedoPressure> {
        let (stalls, stalled_s) = self.stalls(StallCause::RedoFull);
        let furious = self.ends(|sample| sample.furious_flushes.map(|count| count as f64));
        let furious_flushes =
            furious.map_or(0, |([first, last], _)| (last - first).max(0.0) as u64);
        let age_pct_p95 = self.quantile(0.95, |sample| sample.checkpoint_age_pct);
        let is_high = age_pct_p95.is_some_and(|age| age >= PRESSED_PCT);
        let found = RedoPressure { stalls, stalled_s, furious_flushes, age_pct_p95 };
        (stalls > 0 || furious_flushes > 0 || is_high).then_some(found)
    }

    /// The name that this target gives a setting of InnoDB.
    pub fn named(&self, setting: &str) -> String {
        match self.family {
            Family::Engine => setting.to_owned(),
            _ => format!("innodb_{setting}"),
        }
    }

    /// A setting of InnoDB as it was at the end: the last that tuning made of it.
    pub fn setting(&self, setting: &str) -> Option<&'d str> {
        self.variable(&self.named(setting))
    }

    /// A variable by its full name.
    pub fn variable(&self, name: &str) -> Option<&'d str> {
        let tuned = self.document.settings.iter().rev().find(|tuned| tuned.name == name);
        let tuned = tuned.map(|tuned| tuned.to.as_str());
        tuned.or_else(|| self.document.target.settings.get(name).map(String::as_str))
    }

    /// A setting that is a number.
    pub fn number(&self, setting: &str) -> Option<f64> {
        self.setting(setting)?.parse().ok()
    }

    /// A setting that is on or off.
    pub fn is_on(&self, setting: &str) -> Option<bool> {
        is_on(self.setting(setting)?)
    }

    /// The limit of the checkpoint age, in bytes.
    pub fn age_limit(&self) -> Option<f64> {
        self.quantile(0.5, |sample| sample.checkpoint_age_limit_bytes.map(|bytes| bytes as f64))
    }

    /// Bytes of redo by the sizes and numbers of its files.
    pub fn redo_files(&self) -> Option<f64> {
        let files = match self.family {
            Family::MySql => self.number("log_files_in_group")?,
            _ => 1.0,
        };
        Some(self.number("log_file_size")? * files)
    }

    /// Bytes of the redo log, and the setting that changes them. MySQL 8.0.30 and later shows a
    /// capacity also where the files determine the size; the limit of the age reveals which.
    pub fn redo_capacity(&self) -> Option<(&'static str, f64)> {
        let Some(capacity) = self.number("redo_log_capacity") else {
            return Some(("log_file_size", self.redo_files()?));
        };
        let by_files = self.redo_files().zip(self.age_limit());
        let is_by_files = by_files.is_some_and(|(files, limit)| {
            let off = |bytes: f64| (limit / (LIMIT_SHARE * bytes)).ln().abs();
            off(files) < off(capacity)
        });
        let bytes = if is_by_files { self.redo_files()? } else { capacity };
        Some(("redo_log_capacity", bytes))
    }
}

/// Whether a switch is on; nothing for other words.
pub(super) fn is_on(word: &str) -> Option<bool> {
    match word.to_ascii_uppercase().as_str() {
        "ON" | "1" => Some(true),
        "OFF" | "0" => Some(false),
        _ => None,
    }
}

fn measured(values: &[f64]) -> Option<Measured> {
    if values.len() < SAMPLES_MIN {
        return None;
    }
    estimate(values)
}

/// A limit of which so much is used holds requests back, in percent, where it is so in this share
/// of the samples.
const USED_UP_PCT: f64 = 95.0;
const USED_UP_SHARE_MIN: f64 = 0.5;
/// Fewer pauses are no rule.
const PAUSES_MIN: usize = 5;
/// How far one may be from its time: of the period, and in seconds because of the samples.
const OFF_SHARE: f64 = 0.1;
const OFF_S: f64 = 1.5;
/// Pauses that follow each other so soon are one trouble and no clock.
const PERIOD_S_MIN: f64 = 5.0;
/// Settings that a sentence names.
const NAMED: usize = 4;

/// The I/O limit of its control groups, not the device, determines how much is done.
pub(crate) fn io_limit(recording: &Recording<'_>) -> Option<Statement> {
    let used = |one: &ThrottleEvidence| one.io_limit_used_pct;
    let share = recording.share(|one| Some(used(one.throttle.as_ref()?)? >= USED_UP_PCT))?;
    if share < USED_UP_SHARE_MIN {
        return None;
    }
    let mean = recording.mean(|one| used(one.throttle.as_ref()?));
    let last = recording.series(|one| one.throttle.clone()).pop()?;
    let bound = last.io_limit_rate.zip(last.io_limit.as_ref());
    let bound = bound.and_then(|(rate, limit)| {
        let bound = limit.bound(rate)? as f64;
        let what = match rate {
            LimitedRate::ReadBytes => format!("{} read per second", bytes(bound)),
            LimitedRate::WriteBytes => format!("{} written per second", bytes(bound)),
            LimitedRate::Reads => format!("{} reads per second", count(bound)),
            LimitedRate::Writes => format!("{} writes per second", count(bound)),
        };
        Some(format!(" ({what} on {}, control group {})", limit.device, limit.cgroup))
    });
    let text = format!(
        "The I/O limit of its control group{} was used up in {} of the samples: requests wait for \
         the limit, whatever the device could do. A higher limit gives more, or fewer requests.",
        bound.unwrap_or_default(),
        percent(100.0 * share)
    );
    let said = Statement::new(Layer::Limit, mean.as_ref().map_or(0, |mean| mean.n), text)
        .with("share_of_samples", share)
        .measured("io_limit_used_pct", mean.as_ref());
    Some(said)
}

/// Stalls that begin by the clock.
pub(crate) fn regular_pauses(recording: &Recording<'_>) -> Option<Statement> {
    let stalls = &recording.document.stalls;
    let starts: Vec<f64> = stalls.iter().map(|stall| stall.t_s).collect();
    let period = period_s(&starts)?;
    let most = StallCause::ALL
        .iter()
        .map(|(cause, _)| (recording.stalls(*cause).0, *cause))
        .max_by_key(|(stalls, _)| *stalls)?;
    let cause = match most {
        (_, StallCause::Unknown) => "what they wait for is not known; something that is started \
                                     by the clock (an event, a job, a backup, a checkpoint of the \
                                     file system) is to be looked for"
            .to_owned(),
        (stalls, cause) => format!("{cause} {} of {}", times(stalls), starts.len()),
    };
    let [low, high] = period.ci95?;
    let text = format!(
        "It paused {} at regular times, one every {} ({} to {}): {cause}.",
        times(starts.len() as u64),
        seconds(period.value),
        seconds(low),
        seconds(high)
    );
    let said = Statement::new(Layer::Transactions, period.n, text)
        .with("pauses", starts.len() as u64)
        .measured("period_s", &period);
    Some(said)
}

/// The time from one pause to the next, of pauses that began at these times. One of them may have
/// failed to show.
fn period_s(starts: &[f64]) -> Option<Measured> {
    if starts.len() < PAUSES_MIN {
        return None;
    }
    let gaps: Vec<f64> = starts.windows(2).map(|two| two[1] - two[0]).collect();
    let mut sorted = gaps.clone();
    sorted.sort_by(f64::total_cmp);
    let usual = sorted[sorted.len() / 2];
    let off = OFF_SHARE * usual + OFF_S;
    let is_near = |gap: f64| (gap - usual).abs() <= off.min(usual / 4.0);
    let (near, others): (Vec<f64>, Vec<f64>) = gaps.into_iter().partition(|gap| is_near(*gap));
    let is_regular = match others[..] {
        [] => true,
        [one] => is_near(one / 2.0),
        _ => false,
    };
    if !is_regular || usual < PERIOD_S_MIN || near.len() + 1 < PAUSES_MIN - 1 {
        return None;
    }
    mean_of(&near)
}

/// Settings that were changed since the server started, while no tuner runs.
pub(crate) fn settings_left(recording: &Recording<'_>) -> Option<Statement> {
    let target = &recording.document.target;
    let changed = &target.changed_settings;
    let is_tuned = target.tuner.is_some() || !recording.document.settings.is_empty();
    if changed.is_empty() || is_tuned {
        return None;
    }
    let name = |one: &SettingOrigin| {
        let told = [&one.set_by, &one.set_at].into_iter().flatten().cloned().collect::<Vec<_>>();
        let told =
            if told.is_empty() { String::new() } else { format!(" ({})", told.join(", at ")) };
        format!("{} = {}{told}", one.name, one.value)
    };
    let names: Vec<String> = changed.iter().take(NAMED).map(name).collect();
    let more = match changed.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!(
        "Set since the server started, and no tune runs: {}{more}. A restart brings back what the \
         option file says; iostrata restore, what a killed tune left.",
        names.join(", ")
    );
    let names: Vec<&str> = changed.iter().map(|one| one.name.as_str()).collect();
    Some(Statement::new(Layer::Engine, 0, text).with("settings", json!(names)))
}

/// The finding where there is too little to judge.
pub(crate) fn too_short(document: &WatchDocument) -> Option<Statement> {
    let answered: Vec<f64> = document
        .samples
        .iter()
        .filter(|sample| sample.error.is_none())
        .map(|sample| sample.t_s)
        .collect();
    let (first, last) = (answered.first()?, answered.last()?);
    let steps = answered.len().checked_sub(1).filter(|steps| *steps > 0)?;
    let every_s = (last - first) / steps as f64;
    let need_s = (every_s * SAMPLES_MIN as f64).ceil();
    let text = format!(
        "{} samples are too few for a judgement; {SAMPLES_MIN} are needed: --time {need_s:.0}s at \
         this interval.",
        answered.len(),
    );
    let said = Statement::new(Layer::Host, answered.len() as u64, text)
        .with("samples", answered.len() as u64)
        .with("samples_needed", SAMPLES_MIN as u64)
        .with("duration_s_needed", need_s);
    Some(said)
}

#[cfg(test)]
mod tests {
    use iostrata_run::SettingSource;
    use iostrata_run::host::{CgroupVersion, DeviceNumber, IoLimit, LimitScope};

    use super::*;
    use crate::rules::diagnose_watch;
    use crate::watch::made::{calm, stalled, with};

    fn first(document: &WatchDocument) -> (String, String) {
        let (findings, _) = diagnose_watch(document);
        let first = findings.into_iter().next();
        first.map(|one| (one.id, one.text)).unwrap_or_default()
    }

    fn paused_at(starts: &[f64]) -> WatchDocument {
        let mut document = calm();
        for t_s in starts {
            document = stalled(document, StallCause::Unknown);
            document.stalls.last_mut().unwrap().t_s = *t_s;
        }
        document
    }

    #[test]
    fn a_limit_that_is_used_up_all_along_is_the_first_sentence() {
        let throttle = |used| ThrottleEvidence {
            io_limit_used_pct: Some(used),
            io_limit_rate: Some(LimitedRate::Writes),
            io_limit: Some(IoLimit {
                cgroup: "/db".to_owned(),
                version: CgroupVersion::V2,
                scope: LimitScope::Process,
                device: "vda".to_owned(),
                device_number: DeviceNumber { major: 254, minor: 0 },
                read_bytes_per_s: None,
                write_bytes_per_s: None,
                read_iops: None,
                write_iops: Some(1_500),
            }),
            ..ThrottleEvidence::default()
        };
        let at = |used: f64| {
            let paused = paused_at(&[10.0, 50.0, 90.0, 130.0, 170.0]);
            with(paused, |_, sample| sample.throttle = Some(throttle(used)))
        };
        let (id, text) = first(&at(100.0));
        assert_eq!(id, "io_limit_binds");
        assert!(text.contains("1.5 K writes per second on vda, control group /db"), "{text}");
        assert!(text.contains("in 100 % of the samples"), "{text}");
        assert_eq!(first(&at(80.0)).0, "regular_pauses");
        let now_and_then = |at: usize, sample: &mut iostrata_run::WatchSample| {
            sample.throttle = Some(throttle(if at.is_multiple_of(5) { 100.0 } else { 40.0 }));
        };
        assert_eq!(first(&with(calm(), now_and_then)).0, "");
    }

    #[test]
    fn pauses_by_the_clock_are_told_with_their_period() {
        let (id, text) = first(&paused_at(&[12.0, 42.4, 72.1, 102.0, 131.8, 162.0]));
        assert_eq!(id, "regular_pauses");
        assert!(
            text.starts_with("It paused 6 times at regular times, one every 30 s (2"),
            "{text}"
        );
        // One of them did not show.
        assert_eq!(first(&paused_at(&[12.0, 42.0, 102.0, 132.0, 162.0, 192.0])).0, id);
        for irregular in [
            &[12.0, 42.0, 72.0, 102.0][..],
            &[12.0, 30.0, 72.0, 84.0, 131.0, 162.0],
            &[12.0, 15.0, 18.0, 21.0, 24.0, 27.0],
            &[12.0, 42.0, 102.0, 132.0, 192.0, 222.0],
        ] {
            assert_eq!(first(&paused_at(irregular)).0, "", "{irregular:?}");
        }
    }

    #[test]
    fn settings_that_were_left_changed_are_told_unless_somebody_tunes() {
        let origin = |name: &str, set_by: Option<&str>| SettingOrigin {
            name: name.to_owned(),
            value: "100".to_owned(),
            source: SettingSource::Changed,
            path: None,
            set_by: set_by.map(str::to_owned),
            set_at: set_by.map(|_| "2026-11-01 10:00:00".to_owned()),
        };
        let mut document = calm();
        document.target.changed_settings =
            vec![origin("innodb_io_capacity", Some("dba@db1")), origin("sync_binlog", None)];
        let (id, text) = first(&document);
        assert_eq!(id, "settings_left_changed");
        let says = "innodb_io_capacity = 100 (dba@db1, at 2026-11-01 10:00:00), sync_binlog = 100.";
        assert!(text.contains(says), "{text}");
        document.target.tuner = Some(12);
        assert_eq!(first(&document).0, "");
    }

    #[test]
    fn too_short_a_recording_says_how_long_it_must_be() {
        let mut document = calm();
        document.samples.truncate(12);
        for (at, sample) in document.samples.iter_mut().enumerate() {
            sample.t_s = 5.0 * at as f64;
        }
        let (id, text) = first(&document);
        assert_eq!(id, "recording_short");
        assert!(text.starts_with("12 samples are too few"), "{text}");
        assert!(text.contains("--time 150s at this interval"), "{text}");
        document.samples.truncate(1);
        assert_eq!(first(&document).0, "", "there is no interval");
    }
}
