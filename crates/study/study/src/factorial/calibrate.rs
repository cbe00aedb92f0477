//! Measures what the loop device, and a file next to its backing file, can do at most.
//!
//! Invariant: the two take turns at the same work. A study that goes on uses what its first part
//! measured.

use std::path::Path;

use iostrata_change::{BackingFile, Platform, Prewrite};
use iostrata_io::{FileSet, FileSetPlan, Place};
use iostrata_linux::host::{Root, Scope, describe_path};
use iostrata_plan::Point;
use iostrata_run::Event;
use iostrata_stats::Measured;

use super::StudyTask;
use super::bench::Bench;
use super::ceiling::{BYTES, Ceiling, Pair, REPLICATES, pairs};
use super::pace::figure_of;
use crate::StudyError;

/// The ceilings of loop devices where they are lower than what lies below them; none for a named
/// device, and none for a study without a raw volume.
pub(super) fn ceilings<W: Platform>(
    bench: &mut Bench<'_, W>,
    task: &StudyTask<'_>,
) -> Result<Vec<Ceiling>, StudyError> {
    let Some((device, raw_bytes)) = bench.raw_place() else { return Ok(Vec::new()) };
    if task.place.device.is_some() {
        return Ok(Vec::new());
    }
    let bytes = BYTES.min(raw_bytes);
    let pairs = pairs(task.plan, &device, &task.place.dir, bytes);
    let known: Vec<Ceiling> = pairs.iter().filter_map(|pair| of_done(pair, task.done)).collect();
    if task.done.iter().any(|event| is_of(event, &pairs)) {
        return Ok(known);
    }
    // Through the journal as well, so that a kill leaves no file behind.
    let beside = task.place.dir.join("beside.img");
    let file = BackingFile { path: beside.clone(), bytes, prewrite: Prewrite::All };
    let made = bench.session.apply(file)?;
    let on_loop = Side::open(bench, Place::Device(device.clone()), &device, bytes)?;
    let below = Side::open(bench, Place::ExistingFile(beside.clone()), &beside, bytes)?;
    let found = measure(bench, &pairs, &on_loop, &below);
    bench.session.undo(made.id)?;
    found
}

fn measure<W: Platform>(
    bench: &mut Bench<'_, W>,
    pairs: &[Pair],
    on_loop: &Side,
    below: &Side,
) -> Result<Vec<Ceiling>, StudyError> {
    let mut found = Vec::new();
    for pair in pairs {
        let mut figures: [Vec<Measured>; 2] = Default::default();
        for replicate in 0..REPLICATES {
            figures[0].extend(on_loop.measure(bench, &pair.on_loop, replicate)?);
            figures[1].extend(below.measure(bench, &pair.below, replicate)?);
        }
        found.extend(Ceiling::of(pair, &figures[0], &figures[1]));
    }
    Ok(found)
}

/// Files to be measured, with what to observe meanwhile.
struct Side {
    files: FileSet,
    scope: Scope,
}

impl Side {
    fn open<W: Platform>(
        bench: &Bench<'_, W>,
        place: Place,
        path: &Path,
        bytes: u64,
    ) -> Result<Self, StudyError> {
        let overwrite_contents = matches!(place, Place::Device(_));
        let plan = FileSetPlan { overwrite_contents, ..FileSetPlan::new(place, bytes, 1 << 20) };
        let files = FileSet::prepare(&plan, bench.pipeline.stop(), &mut |_| {})?;
        let root = Root::system();
        let scope = Scope::of(&root, &describe_path(&root, path)?);
        Ok(Self { files, scope })
    }

    fn measure<W: Platform>(
        &self,
        bench: &mut Bench<'_, W>,
        point: &Point,
        replicate: u32,
    ) -> Result<Option<Measured>, StudyError> {
        bench.measure_beside(point, replicate, self.files.specs().to_vec(), self.scope.clone())
    }
}

fn is_of(event: &Event, pairs: &[Pair]) -> bool {
    let is_point = |id: &str| pairs.iter().any(|pair| pair.on_loop.id == id);
    event.replicate().is_some_and(|replicate| is_point(&replicate.point.id))
}

/// What an earlier part of the run measured.
fn of_done(pair: &Pair, done: &[Event]) -> Option<Ceiling> {
    let figures = |id: &str| -> Vec<Measured> {
        let all = done.iter().filter_map(Event::replicate);
        all.filter(|replicate| replicate.point.id == id).map(figure_of).collect()
    };
    Ceiling::of(pair, &figures(&pair.on_loop.id), &figures(&pair.below.id))
}
