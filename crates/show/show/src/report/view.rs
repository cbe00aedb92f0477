//! What is shown: a run, and how its parts are found.
//!
//! Invariant: selects and orders, never computes a figure.

use iostrata_plan::Point;
use iostrata_run::{Event, Manifest, ProbeHost, Replicate, RunReader, RunResult};

use crate::report::head::Head;

/// A run to be shown: what the run directory holds, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct RunView<'a> {
    /// What was run.
    pub manifest: &'a Manifest,
    /// What the command printed; absent when the run was stopped before its end.
    pub result: Option<&'a RunResult>,
    /// What happened, series included.
    pub events: &'a [Event],
    /// What the reader has to say about the files.
    pub notes: &'a [String],
}

impl<'a> RunView<'a> {
    /// The view of a run directory.
    pub fn of(run: &'a RunReader) -> Self {
        Self {
            manifest: run.manifest(),
            result: run.result(),
            events: run.events(),
            notes: run.notes(),
        }
    }

    /// The words around a report; the machine is the document's, or that at the start.
    pub(crate) fn head(&self, host: Option<&ProbeHost>, study: Option<&str>) -> Head {
        Head::of(self.manifest, host.or(self.manifest.host.as_ref()), study, self.notes)
    }

    /// Every finished replicate, in the order of the run.
    pub(crate) fn replicates(&self) -> impl Iterator<Item = &'a Replicate> + use<'a> {
        self.events.iter().filter_map(|event| match event {
            Event::Replicate(replicate) => Some(replicate.as_ref()),
            _ => None,
        })
    }

    /// The measured points in the order of the run, each with its replicates.
    pub(crate) fn measured(&self) -> Vec<(&'a Point, Vec<&'a Replicate>)> {
        let mut points: Vec<(&Point, Vec<&Replicate>)> = Vec::new();
        for replicate in self.replicates() {
            match points.iter_mut().find(|(point, _)| point.id == replicate.point.id) {
                Some((_, replicates)) => replicates.push(replicate),
                None => points.push((&replicate.point, vec![replicate])),
            }
        }
        points
    }

    /// A point by its id, measured or only planned.
    pub(crate) fn point(&self, id: &str) -> Option<&'a Point> {
        let planned = self.manifest.plan.iter().flatten();
        planned.chain(self.replicates().map(|replicate| &replicate.point)).find(|p| p.id == id)
    }
}
