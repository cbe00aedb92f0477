//! What a study is asked to do, and what it brought back.

use iostrata_run::Event;
use iostrata_spec::study::StudyPlan;

use super::Place;

/// A study to be run or to be gone on with.
#[derive(Clone, Debug)]
pub struct StudyTask<'a> {
    /// What is measured.
    pub plan: &'a StudyPlan,
    /// Where its volumes are made.
    pub place: Place,
    /// What an earlier part of the same run stored.
    pub done: &'a [Event],
}

/// What a study brought back.
#[derive(Debug)]
pub struct StudyOutcome {
    /// Everything that was stored, the earlier part included.
    pub events: Vec<Event>,
    /// Bytes written in all by this part.
    pub written_bytes: u64,
    /// Seconds in all, the earlier part included.
    pub duration_s: f64,
    /// Whether a signal ended it.
    pub interrupted: bool,
}
