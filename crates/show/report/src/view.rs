//! What is shown: a run, and the ways in which its parts are found and grouped.
//!
//! Invariant: selects and orders, never computes a figure.

use std::collections::BTreeSet;

use iostrata_run::{
    Curve, Event, FioDocument, IoDocument, Manifest, ProbeDocument, ProbeHost, QueueDocument,
    Replicate, RunReader, RunResult, Rung, StudyDocument, Unavailable,
};
use iostrata_spec::{Layer, Point};
use iostrata_stats::Verdict;

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

    /// The document of a probe.
    pub(crate) fn probe(&self) -> Option<&'a ProbeDocument> {
        match self.result {
            Some(RunResult::Probe(document)) => Some(document),
            _ => None,
        }
    }

    /// The document of one I/O workload.
    pub(crate) fn io(&self) -> Option<&'a IoDocument> {
        match self.result {
            Some(RunResult::Io(document)) => Some(document),
            _ => None,
        }
    }

    /// The document of job files.
    pub(crate) fn fio(&self) -> Option<&'a FioDocument> {
        match self.result {
            Some(RunResult::Fio(document)) => Some(document),
            _ => None,
        }
    }

    /// The document of a study.
    pub(crate) fn study(&self) -> Option<&'a StudyDocument> {
        match self.result {
            Some(RunResult::Study(document)) => Some(document),
            _ => None,
        }
    }

    /// The document of a simulated queue.
    pub(crate) fn queue(&self) -> Option<&'a QueueDocument> {
        match self.result {
            Some(RunResult::SimulateQueue(document)) => Some(document),
            _ => None,
        }
    }

    /// The machine, from the document or as it was at the start.
    pub(crate) fn host(&self) -> Option<&'a ProbeHost> {
        let of_study = self.study().map(|study| &study.host);
        self.probe().map(|probe| &probe.host).or(of_study).or(self.manifest.host.as_ref())
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

    /// What could not be measured, once each.
    pub(crate) fn unavailable(&self) -> Vec<&'a Unavailable> {
        let from_events = self.events.iter().filter_map(|event| match event {
            Event::Unavailable(unavailable) => Some(unavailable),
            _ => None,
        });
        let mut all: Vec<&Unavailable> = Vec::new();
        let of_probe = self.probe().into_iter().flat_map(|probe| &probe.unavailable);
        let of_study = self.study().into_iter().flat_map(|study| &study.unavailable);
        let of_queue = self.queue().into_iter().flat_map(|queue| &queue.unavailable);
        for one in of_probe.chain(of_study).chain(of_queue).chain(from_events) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        all
    }

    /// Every verdict that any figure of the run carries.
    pub(crate) fn verdicts(&self) -> BTreeSet<Verdict> {
        let mut all = BTreeSet::new();
        if let Some(probe) = self.probe() {
            all.extend(probe.verdicts.iter());
            all.extend(probe.rungs.iter().flat_map(|rung| rung.verdicts.iter()));
        }
        if let Some(io) = self.io() {
            all.extend(io.verdicts.iter());
        }
        if let Some(queue) = self.queue() {
            all.extend(queue.verdicts.iter());
            all.extend(queue.runs.iter().flat_map(|run| run.verdicts.iter()));
        }
        if let Some(study) = self.study() {
            all.extend(study.verdicts.iter());
            all.extend(study.points.iter().flat_map(|point| point.verdicts.iter()));
            return all;
        }
        for replicate in self.replicates() {
            all.extend(replicate.verdicts.iter());
            all.extend(replicate.streams.iter().flat_map(|stream| stream.verdicts.iter()));
        }
        all
    }
}

fn place(curve: &Curve, rung: &Rung) -> Option<f64> {
    curve.points.iter().find(|point| point.rung == rung.name).map(|point| point.x)
}

/// Rungs that were measured interleaved because they are compared: the same block of the plan and
/// the same unit, two or more, and not all of them one curve.
pub(crate) struct Comparison<'a> {
    /// Name of the block.
    pub(crate) block: &'a str,
    /// The rungs in the document's order, all of one unit.
    pub(crate) rungs: Vec<&'a Rung>,
}

/// Every comparison of the probe, in the order of its rungs.
pub(crate) fn comparisons<'a>(view: &RunView<'a>, probe: &'a ProbeDocument) -> Vec<Comparison<'a>> {
    let mut blocks: Vec<Comparison<'a>> = Vec::new();
    for rung in &probe.rungs {
        let Some(point) = view.point(&rung.name) else { continue };
        // Of a curve, its first point is compared with what was measured beside it.
        let along_curve = probe.curves.iter().any(|curve| {
            let starts_it = curve.points.first().is_some_and(|first| first.rung == rung.name);
            place(curve, rung).is_some() && !starts_it
        });
        if along_curve || rung.layer == Layer::Host || probe.unknown_of(&rung.name).is_some() {
            continue;
        }
        let same = |other: &&mut Comparison<'_>| {
            other.block == point.block
                && other.rungs.first().is_some_and(|first| first.unit == rung.unit)
        };
        match blocks.iter_mut().find(same) {
            Some(block) => block.rungs.push(rung),
            None => blocks.push(Comparison { block: &point.block, rungs: vec![rung] }),
        }
    }
    blocks.retain(|block| block.rungs.len() > 1);
    blocks
}

/// Curves over the same axis in the same unit, which share a chart.
pub(crate) fn curve_families(curves: &[Curve]) -> Vec<Vec<&Curve>> {
    let mut families: Vec<Vec<&Curve>> = Vec::new();
    for curve in curves {
        let same = |family: &&mut Vec<&Curve>| {
            family.first().is_some_and(|one| one.axis == curve.axis && one.unit == curve.unit)
        };
        match families.iter_mut().find(same) {
            Some(family) => family.push(curve),
            None => families.push(vec![curve]),
        }
    }
    families
}

/// The title of a rung by its name; the name itself when there is no such rung.
pub(crate) fn rung_title<'a>(probe: &'a ProbeDocument, name: &'a str) -> &'a str {
    probe.rungs.iter().find(|rung| rung.name == name).map_or(name, |rung| &rung.title)
}
