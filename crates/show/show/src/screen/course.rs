//! What one target reported so far: its samples, also as bars of a chart, and its stretches of
//! trouble.
//!
//! Invariants: keeps the last [`SAMPLES_MAX`] samples and the last [`EPISODES_MAX`] episodes,
//! however long it is watched. What goes on without a break is one episode; its cause is the last
//! one that was named, unknown only where none ever was. Every chart has [`SAMPLES_PER_BAR`], so
//! that one place in time is the same number of cells from the right in each; a bar keeps its
//! samples while it moves. What is not reported is a gap, and what is more than nothing is seen.

use std::collections::VecDeque;

use iostrata_run::{StallCause, WatchSample, WatchTarget};

/// Samples that are kept: as many cells as the widest screen has, several samples to a cell.
const SAMPLES_MAX: usize = 1200;

/// Episodes that are kept: more than a screen has lines.
const EPISODES_MAX: usize = 200;

/// How a target is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Health {
    /// No sample came yet.
    Waiting,
    /// It runs.
    Running,
    /// It stalls; the episode has the reason.
    Stalled(Episode),
    /// It does not answer; the episode has the reason.
    Silent(Episode),
}

/// /// What one target reported so far.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// What is watched.
    pub(crate) target: WatchTarget,
    samples: VecDeque<WatchSample>,
    taken: usize,
    episodes: VecDeque<Episode>,
}

impl Course {
    /// A target that reported nothing yet.
    pub(crate) fn new(target: WatchTarget) -> Self {
        Self { target, samples: VecDeque::new(), taken: 0, episodes: VecDeque::new() }
    }

    /// Takes the next sample.
    pub(crate) fn take(&mut self, sample: WatchSample) {
        if let Some(next) = Episode::of(&sample, self.samples.back()) {
            let joined = match self.episodes.back_mut() {
                Some(last) => last.join(next),
                None => Err(next),
            };
            if let Err(next) = joined {
                self.episodes.push_back(next);
            }
        }
        self.samples.push_back(sample);
        self.taken += 1;
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
        if self.episodes.len() > EPISODES_MAX {
            self.episodes.pop_front();
        }
    }

    /// The last sample, with or without figures.
    pub(crate) fn last(&self) -> Option<&WatchSample> {
        self.samples.back()
    }

    /// The samples that are kept, in the order of time, and how many came before them.
    pub(crate) fn samples(&self) -> (usize, &VecDeque<WatchSample>) {
        (self.taken - self.samples.len(), &self.samples)
    }

    /// Episodes, the last one first.
    pub(crate) fn episodes(&self) -> impl Iterator<Item = &Episode> {
        self.episodes.iter().rev()
    }

    /// Whether an episode still goes on.
    pub(crate) fn is_open(&self, episode: &Episode) -> bool {
        self.last().is_some_and(|last| episode.end_s >= last.t_s)
    }

    /// How it is now.
    pub(crate) fn state(&self) -> Health {
        let open = self.episodes.back().filter(|one| self.is_open(one));
        match (self.last(), open) {
            (None, _) => Health::Waiting,
            (_, Some(one)) if matches!(one.trouble, Trouble::Stall(_)) => {
                Health::Stalled(one.clone())
            }
            (_, Some(one)) if one.trouble == Trouble::Silent => Health::Silent(one.clone()),
            _ => Health::Running,
        }
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// Transactions stalled.
    Stall(StallCause),
    /// Furious flushes, so many.
    Furious(u64),
    /// The target did not answer.
    Silent,
    /// The target was started again.
    Restart,
}

/// A stretch of one kind of trouble.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Episode {
    /// When it began, in seconds since watching began.
    pub(crate) t_s: f64,
    /// When it was last seen.
    pub(crate) end_s: f64,
    /// What went wrong.
    pub(crate) trouble: Trouble,
    /// What speaks for it; empty where nothing is known.
    pub(crate) evidence: String,
    /// The lowest rate of transactions in it.
    pub(crate) tps_min: Option<f64>,
}

impl Episode {
    /// The trouble that a sample shows, since the sample before.
    pub(crate) fn of(sample: &WatchSample, before: Option<&WatchSample>) -> Option<Self> {
        let (trouble, evidence) = if let Some(error) = &sample.error {
            (Trouble::Silent, error.clone())
        } else if sample.restarted {
            (Trouble::Restart, String::new())
        } else if sample.stalled {
            let evidence = sample.stall_evidence.clone().unwrap_or_default();
            (Trouble::Stall(sample.stall_cause.unwrap_or_default()), evidence)
        } else {
            let count = |one: &WatchSample| one.furious_flushes;
            let more = count(sample)?.checked_sub(before.and_then(count)?)?;
            if more == 0 {
                return None;
            }
            (Trouble::Furious(more), "redo was about to run out".to_owned())
        };
        let t_s = before.map_or(sample.t_s, |one| one.t_s);
        Some(Self { t_s, end_s: sample.t_s, trouble, evidence, tps_min: sample.tps })
    }

    /// How long it lasted, in seconds.
    pub(crate) fn length_s(&self) -> f64 {
        self.end_s - self.t_s
    }

    /// Takes the next one in where it goes on from this one.
    ///
    /// # Errors
    /// The next one, where it is another.
    pub(crate) fn join(&mut self, next: Self) -> Result<(), Self> {
        let joined = match (&self.trouble, &next.trouble) {
            _ if next.t_s > self.end_s => None,
            (Trouble::Stall(cause), Trouble::Stall(StallCause::Unknown)) => {
                Some((Trouble::Stall(*cause), next.evidence.is_empty()))
            }
            (Trouble::Stall(_), Trouble::Stall(cause)) => Some((Trouble::Stall(*cause), false)),
            (Trouble::Furious(a), Trouble::Furious(b)) => Some((Trouble::Furious(a + b), false)),
            (Trouble::Silent, Trouble::Silent) => Some((Trouble::Silent, false)),
            _ => None,
        };
        let Some((trouble, keeps_evidence)) = joined else {
            return Err(next);
        };
        let is_named = self.trouble != Trouble::Stall(StallCause::Unknown);
        let is_better = trouble == next.trouble || !is_named;
        if is_better && !keeps_evidence && !next.evidence.is_empty() {
            self.evidence = next.evidence;
        }
        self.trouble = trouble;
        self.end_s = next.end_s;
        self.tps_min = [self.tps_min, next.tps_min].into_iter().flatten().reduce(f64::min);
        Ok(())
    }

    /// Transactions stalled.
    pub(crate) fn is_stall(&self) -> bool {
        matches!(self.trouble, Trouble::Stall(_))
    }

    /// What the target waited for, in words; what went wrong where it is no stall.
    pub(crate) fn cause(&self) -> String {
        match &self.trouble {
            Trouble::Stall(StallCause::Unknown) => "cause unknown".to_owned(),
            Trouble::Stall(cause) => cause.to_string(),
            _ => self.words(),
        }
    }

    /// What went wrong, in words: `STALL: redo full`.
    pub(crate) fn words(&self) -> String {
        match &self.trouble {
            Trouble::Stall(_) => format!("STALL: {}", self.cause()),
            Trouble::Furious(1) => "furious flush".to_owned(),
            Trouble::Furious(count) => format!("{count} furious flushes"),
            Trouble::Silent => "NO ANSWER".to_owned(),
            Trouble::Restart => "restarted".to_owned(),
        }
    }
}

/// Samples in one bar: the last minutes are seen on a terminal of 80 columns.
pub(crate) const SAMPLES_PER_BAR: usize = 2;

/// What one bar stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bar {
    /// Its value; absent where no sample has it.
    pub(crate) value: Option<f64>,
    /// The target stalled meanwhile.
    pub(crate) stalled: bool,
}

/// How the samples of a bar become its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Their mean.
    Mean,
    /// Their mean, but the least one while the target stalls.
    Throughput,
    /// The largest one.
    Max,
}

/// The last bars of transactions per second.
pub(crate) fn throughput(course: &Course, width: usize) -> Vec<Bar> {
    bars(course, width, Fold::Throughput, |one| one.tps)
}

/// The last bars of a course, at most `width`, the newest last.
pub(crate) fn bars(
    course: &Course,
    width: usize,
    fold: Fold,
    value: fn(&WatchSample) -> Option<f64>,
) -> Vec<Bar> {
    let (before, samples) = course.samples();
    let mut parts: Vec<(usize, Vec<&WatchSample>)> = Vec::new();
    for (at, sample) in samples.iter().enumerate() {
        let place = (before + at) / SAMPLES_PER_BAR;
        match parts.last_mut() {
            Some((last, part)) if *last == place => part.push(sample),
            _ => parts.push((place, vec![sample])),
        }
    }
    let from = parts.len().saturating_sub(width);
    parts[from..].iter().map(|(_, part)| bar(part, fold, value)).collect()
}

fn bar(part: &[&WatchSample], fold: Fold, value: fn(&WatchSample) -> Option<f64>) -> Bar {
    let stalled = part.iter().any(|one| one.stalled);
    let told: Vec<f64> = part.iter().filter_map(|one| value(one)).collect();
    let mean = |told: &[f64]| told.iter().sum::<f64>() / told.len() as f64;
    let value = match fold {
        _ if told.is_empty() => None,
        Fold::Max => told.iter().copied().reduce(f64::max),
        Fold::Throughput if stalled => told.iter().copied().reduce(f64::min),
        Fold::Mean | Fold::Throughput => Some(mean(&told)),
    };
    Bar { value, stalled }
}

/// The largest value; absent where there is none.
pub(crate) fn largest<'a>(bars: impl IntoIterator<Item = &'a Bar>) -> Option<f64> {
    bars.into_iter().filter_map(|bar| bar.value).reduce(f64::max)
}

/// How high a value stands, in steps; at least one for what is more than nothing.
pub(crate) fn height(value: f64, max: f64, steps: u64, is_log: bool) -> u64 {
    if !(value > 0.0 && max > 0.0) {
        return 0;
    }
    let share = if is_log { value.ln_1p() / max.ln_1p() } else { value / max };
    ((share * steps as f64).round() as u64).clamp(1, steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_course_keeps_its_end_only() {
        let mut course = Course::new(WatchTarget::default());
        assert_eq!(course.state(), Health::Waiting);
        for at in 0..3 * SAMPLES_MAX {
            let stalled = at % 3 == 2;
            course.take(WatchSample { t_s: at as f64, stalled, ..WatchSample::default() });
        }
        let (before, samples) = course.samples();
        assert_eq!((before, samples.len()), (2 * SAMPLES_MAX, SAMPLES_MAX));
        assert_eq!(course.episodes().count(), EPISODES_MAX);
        assert!(matches!(course.state(), Health::Stalled(_)));
        course.take(WatchSample { t_s: 1e6, ..WatchSample::default() });
        assert_eq!(course.state(), Health::Running);
    }

    fn stalled(t_s: f64, cause: StallCause, tps: f64) -> WatchSample {
        WatchSample {
            t_s,
            stalled: true,
            stall_cause: Some(cause),
            stall_evidence: Some(format!("seen at {t_s}")),
            tps: Some(tps),
            ..WatchSample::default()
        }
    }

    fn joined(samples: &[WatchSample]) -> Vec<Episode> {
        let mut found: Vec<Episode> = Vec::new();
        for (at, sample) in samples.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| &samples[at]);
            let Some(next) = Episode::of(sample, before) else { continue };
            match found.last_mut().map(|last| last.join(next.clone())) {
                Some(Ok(())) => {}
                _ => found.push(next),
            }
        }
        found
    }

    #[test]
    fn a_stall_lasts_from_the_sample_before_it_to_its_last() {
        let found = joined(&[
            WatchSample { t_s: 1.0, ..WatchSample::default() },
            stalled(2.0, StallCause::Unknown, 40.0),
            stalled(3.0, StallCause::RedoFull, 3.0),
            stalled(4.0, StallCause::Unknown, 90.0),
            WatchSample { t_s: 5.0, ..WatchSample::default() },
            stalled(6.0, StallCause::Device, 1.0),
        ]);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].t_s, found[0].length_s(), found[0].tps_min), (1.0, 3.0, Some(3.0)));
        assert_eq!(found[0].words(), "STALL: redo full");
        assert_eq!(found[0].evidence, "seen at 3", "evidence of the cause that is named");
        assert_eq!((found[1].t_s, found[1].words().as_str()), (5.0, "STALL: device"));
    }

    #[test]
    fn silence_and_furious_flushes_are_told_apart_from_stalls() {
        let furious = |t_s: f64, count: u64| WatchSample {
            t_s,
            furious_flushes: Some(count),
            ..WatchSample::default()
        };
        let silent = |t_s: f64| WatchSample {
            t_s,
            error: Some("connection refused".to_owned()),
            ..WatchSample::default()
        };
        let found =
            joined(&[furious(1.0, 5), furious(2.0, 6), furious(3.0, 8), silent(4.0), silent(5.0)]);
        let words: Vec<String> = found.iter().map(Episode::words).collect();
        assert_eq!(words, ["3 furious flushes", "NO ANSWER"]);
        assert_eq!((found[1].length_s(), found[1].evidence.as_str()), (2.0, "connection refused"));
        let anew = WatchSample { restarted: true, ..furious(6.0, 0) };
        let found = joined(&[silent(5.0), anew, furious(7.0, 0)]);
        let words: Vec<String> = found.iter().map(Episode::words).collect();
        assert_eq!(words, ["NO ANSWER", "restarted"]);
        // A counter that was set back or is reported for the first time is no flush.
        assert!(joined(&[furious(1.0, 5), furious(2.0, 0)]).is_empty());
        assert!(joined(&[WatchSample::default(), furious(2.0, 9)]).is_empty());
    }

    fn course(rates: &[(Option<f64>, bool)]) -> Course {
        let mut course = Course::new(WatchTarget::default());
        for (at, (tps, stalled)) in rates.iter().enumerate() {
            let (t_s, tps, stalled) = (at as f64, *tps, *stalled);
            course.take(WatchSample { t_s, tps, stalled, ..WatchSample::default() });
        }
        course
    }

    #[test]
    fn a_stall_within_a_bar_is_not_averaged_away() {
        let course = course(&[
            (Some(600.0), false),
            (Some(500.0), false),
            (Some(3.0), true),
            (Some(601.0), false),
            (None, false),
            (None, false),
            (Some(7.0), false),
        ]);
        let of = |fold| bars(&course, 10, fold, |one| one.tps);
        let values: Vec<Option<f64>> = of(Fold::Throughput).iter().map(|bar| bar.value).collect();
        assert_eq!(values, [Some(550.0), Some(3.0), None, Some(7.0)]);
        assert_eq!(of(Fold::Mean)[1], Bar { value: Some(302.0), stalled: true });
        assert_eq!(of(Fold::Max)[1].value, Some(601.0));
        assert_eq!(bars(&course, 2, Fold::Mean, |one| one.tps).len(), 2);
        assert_eq!(largest(&of(Fold::Max)), Some(601.0));
    }

    #[test]
    fn bars_keep_their_samples_when_old_ones_are_forgotten() {
        let many = |count| course(&vec![(Some(1.0), true); count]);
        for more in 0..4 {
            let course = many(crate::screen::course::SAMPLES_MAX + more);
            let found = bars(&course, 9999, Fold::Mean, |_| Some(1.0));
            let whole = crate::screen::course::SAMPLES_MAX / SAMPLES_PER_BAR;
            assert_eq!(found.len(), whole + more % 2, "{more}");
        }
    }

    #[test]
    fn small_values_are_seen_and_zero_is_nothing() {
        assert_eq!(height(0.0, 100.0, 8, false), 0);
        assert_eq!(height(0.1, 100.0, 8, false), 1);
        assert_eq!(height(100.0, 100.0, 8, false), 8);
        assert_eq!(height(300.0, 100.0, 8, false), 8);
        assert_eq!(height(5.0, 0.0, 8, false), 0);
        assert!(height(10.0, 1000.0, 8, true) > height(10.0, 1000.0, 8, false));
    }
}
