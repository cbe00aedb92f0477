//! What is shown: a run, and the ways in which its parts are found and grouped.
//!
//! Invariant: selects and orders, never computes a figure.

use std::collections::BTreeSet;

use iostrata_run::{
    Curve, Event, FioDocument, IoDocument, Manifest, ProbeDocument, ProbeHost, QueueDocument,
    Replicate, RunReader, RunResult, Rung, StudyDocument, Unavailable,
};
use iostrata_spec::{Better, Layer, Point};
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

/// Rungs that share a unit, so that they can share an axis.
pub(crate) struct UnitGroup<'a> {
    /// The unit.
    pub(crate) unit: &'a str,
    /// Whether more is better.
    pub(crate) better: Better,
    /// The rungs, by layer from the device up, else in the document's order.
    pub(crate) rungs: Vec<&'a Rung>,
}

/// The rungs that stand for the ladder, by unit, what the machine itself costs last. Of a curve
/// only its first point and its knee (or its last point) are taken, of a comparison only its best:
/// the rest is in their own charts.
pub(crate) fn ladder<'a>(view: &RunView<'a>, probe: &'a ProbeDocument) -> Vec<UnitGroup<'a>> {
    let compared = comparisons(view, probe);
    let beaten = |rung: &Rung| {
        let mut blocks = compared.iter().filter(|block| block.rungs.contains(&rung));
        blocks.any(|block| best(&block.rungs).is_some_and(|best| best != rung))
    };
    let shown = |rung: &&Rung| stands_for_itself(probe, rung) && !beaten(rung);
    let mut groups = by_unit(probe.rungs.iter().filter(shown));
    groups.sort_by_key(|group| group.rungs.iter().all(|rung| rung.layer == Layer::Host));
    groups
}

/// Groups rungs by unit, units in order of appearance.
pub(crate) fn by_unit<'a>(rungs: impl Iterator<Item = &'a Rung>) -> Vec<UnitGroup<'a>> {
    let mut groups: Vec<UnitGroup<'a>> = Vec::new();
    for rung in rungs {
        let same =
            |group: &&mut UnitGroup<'_>| group.unit == rung.unit && group.better == rung.better;
        match groups.iter_mut().find(same) {
            Some(group) => group.rungs.push(rung),
            None => {
                groups.push(UnitGroup { unit: &rung.unit, better: rung.better, rungs: vec![rung] })
            }
        }
    }
    for group in &mut groups {
        group.rungs.sort_by_key(|rung| rung.layer);
    }
    groups
}

fn stands_for_itself(probe: &ProbeDocument, rung: &Rung) -> bool {
    let on: Vec<_> = probe.curves.iter().filter(|curve| place(curve, rung).is_some()).collect();
    on.is_empty() || on.iter().any(|curve| is_landmark(curve, rung))
}

fn place(curve: &Curve, rung: &Rung) -> Option<f64> {
    curve.points.iter().find(|point| point.rung == rung.name).map(|point| point.x)
}

fn is_landmark(curve: &Curve, rung: &Rung) -> bool {
    let ends = [curve.points.first(), curve.points.last()];
    let [first, last] = ends.map(|point| point.map(|point| point.x));
    let x = place(curve, rung);
    x.is_some() && (x == first || x == curve.knee_x.or(last))
}

/// The rungs for the cards at the top: one plain commit, and of each curve the point that the
/// document marks (or its end, where more is better); without curves the best rung of each unit.
pub(crate) fn key_rungs(probe: &ProbeDocument) -> Vec<&Rung> {
    let mut names: Vec<&str> = vec!["commit_fdatasync"];
    names.extend(probe.curves.iter().filter_map(landmark));
    let mut keys: Vec<&Rung> = Vec::new();
    for name in names {
        let rung = probe.rungs.iter().find(|rung| rung.name == name);
        keys.extend(rung.filter(|rung| !keys.contains(rung)));
    }
    if keys.len() < 2 {
        let storage = probe.rungs.iter().filter(|rung| rung.layer != Layer::Host);
        keys = by_unit(storage).iter().filter_map(|group| best(&group.rungs)).collect();
    }
    keys.sort_by_key(|rung| rung.layer);
    keys
}

/// The rung at the marked point of a curve.
fn landmark(curve: &Curve) -> Option<&str> {
    let last = curve.points.last().filter(|_| curve.unit.ends_with("/s"));
    let marked = curve.points.iter().find(|point| Some(point.x) == curve.knee_x);
    marked.or(last).map(|point| point.rung.as_str())
}

/// The best of rungs that share a unit.
fn best<'a>(rungs: &[&'a Rung]) -> Option<&'a Rung> {
    let all = rungs.iter().copied();
    match rungs.first()?.better {
        Better::Higher => all.max_by(|a, b| a.value.total_cmp(&b.value)),
        Better::Lower => all.min_by(|a, b| a.value.total_cmp(&b.value)),
    }
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
        if along_curve || rung.layer == Layer::Host {
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
