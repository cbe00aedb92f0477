//! Axes of rates: what is asked there is how long requests wait, not how many are done.

use iostrata_run::{StudyAxis, StudyDocument, StudyResponse};

use super::levels::listed;

/// Every axis of rates with its response times.
pub(crate) fn rated(study: &StudyDocument) -> impl Iterator<Item = (&StudyAxis, &StudyResponse)> {
    study.axes.iter().filter_map(|axis| Some((axis, axis.response.as_ref()?)))
}

/// Whether a factor is one of rates.
pub(crate) fn is_rated(study: &StudyDocument, factor: &str) -> bool {
    rated(study).any(|(axis, _)| axis.factor == factor)
}

/// The levels in which an axis of rates differs from the others, in words.
pub(crate) fn rated_place(study: &StudyDocument, axis: &StudyAxis) -> String {
    let mut levels = axis.levels.clone();
    levels.retain(|at| rated(study).any(|(other, _)| !other.levels.contains(at)));
    listed(&levels)
}
