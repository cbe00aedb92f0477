//! What one target told so far.
//!
//! Invariant: keeps the last [`SAMPLES_MAX`] samples and the last [`EPISODES_MAX`] episodes,
//! however long it is watched.

use std::collections::VecDeque;

use iostrata_run::{WatchSample, WatchTarget};

use crate::screen::episode::{Episode, Trouble};

/// Samples that are kept: as many cells as the widest screen has, several samples to a cell.
pub(crate) const SAMPLES_MAX: usize = 1200;

/// Episodes that are kept: more than a screen has lines.
const EPISODES_MAX: usize = 200;

/// How a target is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Health {
    /// No sample came yet.
    Waiting,
    /// It runs.
    Running,
    /// It stalls; the episode says why.
    Stalled(Episode),
    /// It does not answer; the episode says why.
    Silent(Episode),
}

/// What one target told so far.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// What is watched.
    pub(crate) target: WatchTarget,
    samples: VecDeque<WatchSample>,
    taken: usize,
    episodes: VecDeque<Episode>,
}

impl Course {
    /// A target that told nothing yet.
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
}
