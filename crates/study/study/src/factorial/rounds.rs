//! The rounds of a study: every point once per round, then those again that are not precise enough;
//! and which volumes stand at the same time.
//!
//! Invariant: the first round reaches every point, whatever the budget; after it replicates are
//! dropped when time or bytes run out, and a point that fails is named and left out.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_change::{ChangeError, DeviceRef, Platform, Session};
use iostrata_linux::host::{Root, describe_path};
use iostrata_plan::study::pacing::Pacing;
use iostrata_plan::study::{VolumeKind, is_on_server};
use iostrata_run::{Event, Unavailable, UnavailableCause};

use super::bench::{Bench, How, TakenReplicate};
use super::database::Databases;
use super::layout::{VolumeLayout, lay_out};
use super::pace::Standing;
use super::probes::Probes;
use super::{StudyTask, calibrate, pace, space_bytes};
use crate::{FileSetCache, Listener, Meter, Pipeline, RunOutcome, StudyError};

/// Points that get one more replicate before it is looked again which need it most.
const SWEEP: usize = 16;

/// What helps a point that filled the volume that was made for it.
const LARGER_VOLUME: &str = "raise `volume_size` in the study, or measure for less time";

/// Runs a study, or goes on with one. What was changed on the way stays with the session, which
/// takes it back.
///
/// # Errors
/// When the run directory or the journal cannot be written, or nothing can be made at all.
pub fn run<W: Platform>(
    task: &StudyTask<'_>,
    session: &mut Session<W>,
    interrupted: &AtomicBool,
    listener: &mut dyn Listener,
    databases: &mut dyn Databases<W>,
) -> Result<RunOutcome, StudyError> {
    let program = Some(task.place.program.clone());
    let meter = Meter::new(&Root::system(), None, interrupted, program);
    let measuring = &task.plan.measuring;
    let (probes, missing) = Probes::open(measuring.profile_hz);
    let mut pipeline = Pipeline::new(listener, meter, FileSetCache::default(), interrupted);
    pipeline.before_s = pace::before_s(task.done);
    let bench = Bench::new(session, pipeline, probes, databases);
    let standings = pace::standings(&task.plan.cells, task.done);
    let mut rounds =
        Rounds { task, bench, standings, left_out: BTreeSet::new(), cost_s: 0.0, overhead_s: 0.0 };
    if task.done.is_empty() {
        rounds.bench.pipeline.store_clock()?;
        rounds.bench.pipeline.store_missing(missing)?;
    }
    let ran = rounds.go();
    // What cannot be put back now, the session tries again and reports: what was measured is kept.
    let _tried_again_by_the_session = rounds.bench.tear_down();
    ran?;
    rounds.finish()
}

struct Rounds<'a, W: Platform> {
    task: &'a StudyTask<'a>,
    bench: Bench<'a, W>,
    /// By cell.
    standings: Vec<Standing>,
    /// Cells that cannot be measured here.
    left_out: BTreeSet<usize>,
    /// What one replicate takes, in seconds, as it turned out lately.
    cost_s: f64,
    /// What of that is outside the window.
    overhead_s: f64,
}

impl<W: Platform> Rounds<'_, W> {
    fn go(&mut self) -> Result<(), StudyError> {
        let mut place = self.task.place.clone();
        if let Some(path) = place.device.clone() {
            let overwrite = place.overwrite_device;
            self.bench.session.may_overwrite(&DeviceRef::Named { path, overwrite })?;
            // From here on it holds what the study itself makes on it, one volume after the other.
            place.overwrite_device = true;
        }
        let layouts = lay_out(self.task.plan, &place)?;
        let batches = batches(&layouts, self.task)?;
        let mut measured = 0;
        for batch in &batches {
            if self.bench.pipeline.is_interrupted() {
                break;
            }
            let cells = self.make(batch)?;
            if batches.len() == 1 {
                let found = calibrate::ceilings(&mut self.bench, self.task)?;
                self.bench.ceilings = found;
            }
            // Those of a volume that cannot be made leave their time to the others.
            let gone = self.left_out.len() + measured;
            let left = self.task.plan.cells.len().saturating_sub(gone);
            let share = cells.len() as f64 / left.max(cells.len()).max(1) as f64;
            measured += cells.len();
            self.measure(&cells, share)?;
            self.bench.tear_down()?;
        }
        Ok(())
    }

    /// Makes the volumes of a batch; the cells of volumes that cannot be made are left out.
    fn make(&mut self, batch: &[VolumeLayout]) -> Result<Vec<usize>, StudyError> {
        let mut cells = Vec::new();
        for layout in batch {
            let on_it: Vec<usize> = self.cells_of(layout);
            if self.bench.pipeline.is_interrupted() {
                break;
            }
            self.bench
                .pipeline
                .listener
                .progress(0.0, &format!("making the volume {}", layout.name));
            match self.bench.make(layout, &self.task.place.dir) {
                Ok(()) => cells.extend(on_it),
                Err(error) => self.leave_out(&on_it, &layout.words(), error)?,
            }
        }
        Ok(cells)
    }

    fn cells_of(&self, layout: &VolumeLayout) -> Vec<usize> {
        let cells = self.task.plan.cells.iter().enumerate();
        cells.filter(|(_, cell)| cell.volume == layout.volume).map(|(index, _)| index).collect()
    }

    /// Leaves cells out for a reason that is a result; anything else ends the study.
    fn leave_out(
        &mut self,
        cells: &[usize],
        what: &str,
        error: StudyError,
    ) -> Result<(), StudyError> {
        let mut missing = match error {
            StudyError::Change(ChangeError::Unavailable { what: setting, why, fix }) => {
                Unavailable::impossible(what, format!("{setting}: {why}"), Some(fix))
            }
            StudyError::NotHere { why, fix } => Unavailable::impossible(what, why, Some(fix)),
            StudyError::Run(_)
            | StudyError::Change(
                ChangeError::Refused { .. } | ChangeError::Journal(_) | ChangeError::Ending,
            ) => return Err(error),
            other => other.missing(what),
        };
        let is_on_here = |&cell: &usize| self.task.plan.cells[cell].volume.kind == VolumeKind::Here;
        if missing.cause == UnavailableCause::NoRoom && !cells.iter().any(is_on_here) {
            missing.fix = Some(LARGER_VOLUME.to_owned());
        }
        self.left_out.extend(cells);
        self.bench.pipeline.store(Event::Unavailable(missing))
    }

    fn measure(&mut self, cells: &[usize], share: f64) -> Result<(), StudyError> {
        let measuring = &self.task.plan.measuring;
        for &cell in cells {
            if self.bench.pipeline.is_interrupted() {
                return Ok(());
            }
            self.prepare(cell)?;
        }
        let cells: Vec<usize> =
            cells.iter().copied().filter(|cell| !self.left_out.contains(cell)).collect();
        let cells = cells.as_slice();
        let pacing = Pacing {
            points: cells.len(),
            warmed_points: self.warmed(cells),
            server_points: self.on_servers(cells),
            replicates: measuring.replicates,
            replicates_max: measuring.replicates_max,
            traced: measuring.traced,
            point_time_s: measuring.point_time.as_secs_f64(),
            left_s: measuring.budget.map(|budget| {
                let left_s = budget.as_secs_f64() - self.bench.pipeline.elapsed_s();
                left_s.max(0.0) * share
            }),
        };
        self.overhead_s = pacing.beside_s();
        let [about, most] = [pacing.rounds_s(), pacing.rounds_s_max()]
            .map(|rounds_s| iostrata_stats::units::seconds(rounds_s + pacing.traced_s()));
        let at_most = if most == about { String::new() } else { format!(", at most {most}") };
        self.bench.pipeline.listener.note(&format!(
            "The volumes are ready after {}; measuring their {} points takes about {about} \
             more{at_most}.",
            iostrata_stats::units::seconds(self.bench.pipeline.elapsed_s()),
            cells.len(),
        ));
        let now_s = self.bench.pipeline.elapsed_s();
        let planned_s = pacing.left_s.map(|_| now_s + pacing.rounds_s());
        let window = self.rounds(cells, &pacing, pacing.left_for_rounds_s().map(|s| now_s + s))?;
        self.once_more(cells, window, planned_s)?;
        if measuring.traced { self.trace(cells) } else { Ok(()) }
    }

    /// Makes what a cell needs. A database that cannot be had keeps no other cell from its turn.
    fn prepare(&mut self, cell: usize) -> Result<(), StudyError> {
        let it = &self.task.plan.cells[cell];
        match self.bench.prepare(it) {
            Err(_) if self.bench.pipeline.is_interrupted() => Ok(()),
            Err(error) if it.transactions.is_some() => self.leave_out(&[cell], &it.title, error),
            done => done,
        }
    }

    /// How many of some cells are warmed up before each window.
    fn warmed(&self, cells: &[usize]) -> usize {
        let is_warmed = |cell: &&usize| self.task.plan.cells[**cell].transactions.is_some();
        cells.iter().filter(is_warmed).count()
    }

    fn on_servers(&self, cells: &[usize]) -> usize {
        cells.iter().filter(|cell| is_on_server(&self.task.plan.cells[**cell])).count()
    }

    /// Every cell once per round, as many rounds as planned, and once more where the hypervisor
    /// took the window. Returns the length of the windows as it was at the end: every round makes
    /// up for what the one before took outside its windows.
    fn rounds(
        &mut self,
        cells: &[usize],
        pacing: &Pacing,
        end_s: Option<f64>,
    ) -> Result<Duration, StudyError> {
        let measuring = &self.task.plan.measuring;
        let mut window = seconds(pacing.window_s());
        for round in 0..measuring.replicates {
            if let Some(end_s) = end_s.filter(|_| round > 0) {
                let left_s = end_s - self.bench.pipeline.elapsed_s();
                window = seconds(pacing.window_after_s(round, left_s, self.overhead_s));
            }
            let text = format!("round {} of {}", round + 1, measuring.replicates);
            let again = format!("{text}, once more what the hypervisor took time from");
            for (text, is_again) in [(text, false), (again, true)] {
                let wants = |&cell: &usize| self.standings[cell].wants(round, is_again);
                let wanting: Vec<usize> = cells.iter().copied().filter(wants).collect();
                for index in pace::order(&self.task.plan.cells, &wanting, measuring.seed, round) {
                    if self.standings[index].replicates() > 0 && !self.goes_on(end_s) {
                        return Ok(window);
                    }
                    self.once(index, window, end_s, &text)?;
                    if self.bench.pipeline.is_interrupted() {
                        return Ok(window);
                    }
                }
            }
        }
        Ok(window)
    }

    /// The traced passes: after the measured windows, because enabled tracepoints slow them down.
    fn trace(&mut self, cells: &[usize]) -> Result<(), StudyError> {
        let is_traced = |cell: &usize| {
            let id = &self.task.plan.cells[*cell].id;
            let of = |event: &Event| matches!(event, Event::Traced(one) if one.point == *id);
            self.task.done.iter().any(of)
        };
        let wanting: Vec<usize> = cells
            .iter()
            .copied()
            .filter(|cell| !self.left_out.contains(cell) && !is_traced(cell))
            .collect();
        if wanting.is_empty() || self.bench.pipeline.is_interrupted() {
            return Ok(());
        }
        let missing = self.bench.probes.open_trace(self.bench.session);
        self.bench.pipeline.store_missing(missing)?;
        let plan = self.task.plan;
        let order = pace::order(&plan.cells, &wanting, plan.measuring.seed, u32::MAX);
        for (done, &index) in order.iter().enumerate() {
            if self.bench.pipeline.is_interrupted() {
                break;
            }
            let share = 0.95 + 0.05 * done as f64 / order.len() as f64;
            self.bench.trace(&plan.cells[index], share)?;
        }
        Ok(self.bench.probes.close_trace(self.bench.session)?)
    }

    /// Spends what is left of the budget on points that are not precise enough.
    fn once_more(
        &mut self,
        cells: &[usize],
        window: Duration,
        end_s: Option<f64>,
    ) -> Result<(), StudyError> {
        let measuring = &self.task.plan.measuring;
        let cells: Vec<usize> =
            cells.iter().copied().filter(|cell| !self.left_out.contains(cell)).collect();
        for sweep in 0.. {
            let standings: Vec<Standing> =
                cells.iter().map(|&cell| self.standings[cell].clone()).collect();
            let (most, target) = (measuring.replicates_max, measuring.precision);
            let wanting = pace::once_more(&standings, target, most, end_s.is_some());
            let chosen: Vec<usize> = wanting.iter().take(SWEEP).map(|&at| cells[at]).collect();
            if chosen.is_empty() {
                return Ok(());
            }
            let text = format!("{} points not yet precise", wanting.len());
            let round = measuring.replicates + sweep;
            for index in pace::order(&self.task.plan.cells, &chosen, measuring.seed, round) {
                if !self.goes_on(end_s) {
                    return Ok(());
                }
                self.once(index, window, end_s, &text)?;
            }
        }
        Ok(())
    }

    /// Whether there is time and are bytes for one more replicate.
    fn goes_on(&self, end_s: Option<f64>) -> bool {
        let left = end_s.map(|end_s| seconds(end_s - self.bench.pipeline.elapsed_s()));
        let bytes = self.task.plan.measuring.write_bytes_max;
        !self.bench.pipeline.is_interrupted()
            && pace::fits(left, self.cost_s)
            && bytes.is_none_or(|most| self.bench.written_bytes() < most)
    }

    /// Measures a cell once.
    fn once(
        &mut self,
        index: usize,
        window: Duration,
        end_s: Option<f64>,
        text: &str,
    ) -> Result<(), StudyError> {
        if self.left_out.contains(&index) {
            return Ok(());
        }
        let cell = &self.task.plan.cells[index];
        let measuring = &self.task.plan.measuring;
        let replicate = self.standings[index].replicates();
        let (share, left) = self.progress(end_s);
        let how = How {
            window,
            write_bytes_max: measuring
                .write_bytes_max
                .map(|most| most.saturating_sub(self.bench.written_bytes()).max(1 << 20)),
            share,
            text: format!("{text}, {left}: {}", cell.title),
        };
        match self.bench.measure(cell, replicate, &how) {
            Ok(None) => {}
            Ok(Some(TakenReplicate { figure, is_lost, took_s })) => {
                let is_first = self.cost_s == 0.0;
                self.cost_s = if is_first { took_s } else { 0.9 * self.cost_s + 0.1 * took_s };
                let beside_s = took_s - window.as_secs_f64();
                // A round of few points weighs as much as a part of a round of many.
                let weight = (1.0 / self.task.plan.cells.len() as f64).max(0.05);
                self.overhead_s = (1.0 - weight) * self.overhead_s + weight * beside_s;
                self.standings[index].add(figure, is_lost);
            }
            Err(_) if self.bench.pipeline.is_interrupted() => {}
            Err(error) => self.leave_out(&[index], &cell.title, error)?,
        }
        Ok(())
    }

    /// How far it has come, and how long it will still take, in words.
    fn progress(&self, end_s: Option<f64>) -> (f64, String) {
        let replicates = self.task.plan.measuring.replicates as usize;
        let have = |standing: &Standing| standing.figures.len().min(replicates);
        let done: usize = self.standings.iter().map(have).sum();
        let planned = (self.standings.len() - self.left_out.len()).max(1) * replicates;
        let planned_left_s = planned.saturating_sub(done) as f64 * self.cost_s;
        let elapsed_s = self.bench.pipeline.elapsed_s();
        // Rounds end before their budget where they can.
        let left_s = match end_s.map(|end_s| (end_s - elapsed_s).max(0.0)) {
            Some(until_end_s) if planned_left_s > 0.0 => until_end_s.min(planned_left_s),
            Some(until_end_s) => until_end_s,
            None => planned_left_s,
        };
        let share = elapsed_s / (elapsed_s + left_s).max(f64::MIN_POSITIVE);
        if self.cost_s == 0.0 {
            return (share, "starting".to_owned());
        }
        (share, format!("about {} left", iostrata_stats::units::seconds(left_s)))
    }

    fn finish(self) -> Result<RunOutcome, StudyError> {
        let interrupted = self.bench.pipeline.is_interrupted();
        self.bench.pipeline.finish(self.task.done, interrupted)
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.max(0.0))
}

// Which volumes stand at the same time.
//
// Invariant: the volumes of a batch fit into the place together; the points of a batch are
// measured interleaved, batches one after the other.

/// Share of the place's free bytes that volumes may take.
const SPACE_SHARE: f64 = 0.8;

/// Volumes that fit into the place at the same time are measured interleaved; others one batch
/// after the other. A named device holds one volume at a time.
fn batches(
    layouts: &[VolumeLayout],
    task: &StudyTask<'_>,
) -> Result<Vec<Vec<VolumeLayout>>, StudyError> {
    if task.place.device.is_some() {
        return Ok(layouts.iter().map(|layout| vec![layout.clone()]).collect());
    }
    let free = describe_path(&Root::system(), &task.place.dir)?.free_bytes.unwrap_or(u64::MAX);
    let room = (free as f64 * SPACE_SHARE) as u64;
    let mut batches: Vec<Vec<VolumeLayout>> = Vec::new();
    let mut taken = u64::MAX;
    for layout in layouts {
        let bytes = space_bytes(std::slice::from_ref(layout));
        if bytes > room {
            return Err(StudyError::NoRoom {
                dir: task.place.dir.display().to_string(),
                needed_bytes: bytes,
                room_bytes: room,
            });
        }
        match batches.last_mut() {
            Some(batch) if taken.saturating_add(bytes) <= room => {
                batch.push(layout.clone());
                taken += bytes;
            }
            _ => {
                batches.push(vec![layout.clone()]);
                taken = bytes;
            }
        }
    }
    Ok(batches)
}
