//! What every rule of a study looks at.

use std::collections::BTreeMap;

use iostrata_plan::study::StudyPlan;
use iostrata_run::{QueueChange, StudyAxis, StudyEffect, StudyPoint, Unavailable};

use crate::observed::Seen;
use crate::statement::Statement;

/// A study that was measured.
#[derive(Clone, Copy)]
pub(crate) struct StudyCase<'c> {
    pub plan: &'c StudyPlan,
    pub seen: &'c BTreeMap<&'c str, Seen<'c>>,
    pub points: &'c [StudyPoint],
    pub effects: &'c [StudyEffect],
    pub axes: &'c [StudyAxis],
    pub changes: &'c [QueueChange],
    pub unavailable: &'c [Unavailable],
}

/// A statement with its name in the catalogue.
pub(crate) type Stated = (&'static str, Statement);
