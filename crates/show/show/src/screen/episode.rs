//! Stretches of trouble, put together from samples.
//!
//! Invariant: what goes on without a break is one episode. The cause is the last one that was
//! named; it is unknown only where none ever was.

use iostrata_run::{StallCause, WatchSample};

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// Transactions stalled.
    Stall(StallCause),
    /// Pages had to be written at any price, so often.
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
    /// What speaks for it; empty where nothing is told.
    pub(crate) evidence: String,
    /// The lowest rate of transactions in it.
    pub(crate) tps_min: Option<f64>,
}

impl Episode {
    /// The trouble that a sample tells of, since the sample before.
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
            (Trouble::Furious(more), "pages were written at any price".to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

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
        // A counter that was set back or is told for the first time is no flush.
        assert!(joined(&[furious(1.0, 5), furious(2.0, 0)]).is_empty());
        assert!(joined(&[WatchSample::default(), furious(2.0, 9)]).is_empty());
    }
}
