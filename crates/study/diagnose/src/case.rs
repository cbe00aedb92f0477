//! What every rule looks at: the run so far, and the host.

use iostrata_plan::Point;
use iostrata_run::ProbeHost;

use crate::observed::Observed;

/// What a rule looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case<'c, 'a> {
    pub log: &'c Observed<'a>,
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
