//! What a study is asked to do.

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
