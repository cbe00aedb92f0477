//! What the rules look at: a run of a probe so far with its host, or a study.

use std::collections::BTreeMap;

use iostrata_plan::Point;
use iostrata_plan::study::StudyPlan;
use iostrata_run::{ProbeHost, QueueChange, StudyAxis, StudyEffect, StudyPoint, Unavailable};

use crate::observed::{EventIndex, PointLog};
use crate::statement::Statement;

/// The input of a rule of storage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'c, 'a> {
    pub log: &'c EventIndex<'a>,
    pub host: &'c ProbeHost,
}

impl Case<'_, '_> {
    /// The points with these ids that were measured.
    pub fn points(&self, ids: &[&str]) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        for id in ids {
            if let Some(seen) = self.log.seen(id)
                && points.iter().all(|point| point.id != *id)
            {
                points.push(seen.point.clone());
            }
        }
        points
    }
}

/// A study that was measured.
#[derive(Clone, Copy)]
pub(crate) struct StudyCase<'c> {
    pub plan: &'c StudyPlan,
    pub seen: &'c BTreeMap<&'c str, PointLog<'c>>,
    pub points: &'c [StudyPoint],
    pub effects: &'c [StudyEffect],
    pub axes: &'c [StudyAxis],
    pub changes: &'c [QueueChange],
    pub unavailable: &'c [Unavailable],
}

/// A statement with its name in the catalogue.
pub(crate) type NamedStatement = (&'static str, Statement);
