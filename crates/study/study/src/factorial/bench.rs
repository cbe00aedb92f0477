//! One replicate of one cell: its conditions, its files, the window, what was seen meanwhile.
//!
//! Invariant: the conditions are in place before the window opens, and whatever the window left in
//! the page cache is written back before the next.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iostrata_change::{AppliedChange, ChangeId, DropCaches, Platform, Session};
use iostrata_io::FileSpec;
use iostrata_linux::host::{Root, Scope};
use iostrata_load::IoLoad;
use iostrata_plan::study::{Cell, Conditions, VolumeKind};
use iostrata_plan::{IoSpec, Point};
use iostrata_run::host::QueueReadback;
use iostrata_run::{ChangeRecord, Event, LatencyTrace, PointProfile, Replicate};
use iostrata_stats::{Measured, Verdict, Verdicts};

use super::ceiling::Ceiling;
use super::conditions::ConditionState;
use super::database::Databases;
use super::emulated::DiskProbe;
use super::layout::VolumeLayout;
use super::pace::{TRACED_PASS, figure_of, point};
use super::probes::{PathScope, Probes};
use super::volume::{self, MountedVolume};
use crate::{Measurement, Pipeline, StudyError, Watcher};

/// The directory of a volume below which its databases lie.
pub(super) const DATABASES: &str = "iostrata-databases";
/// And those that run along with the measured ones.
pub(super) const SECOND_DATABASES: &str = "iostrata-databases-second";

/// Everything that one replicate needs.
pub(super) struct Bench<'a, W: Platform> {
    pub session: &'a mut Session<W>,
    pub pipeline: Pipeline<'a>,
    pub probes: Probes,
    pub ceilings: Vec<Ceiling>,
    pub databases: &'a mut dyn Databases<W>,
    root: Root,
    pub conditions: ConditionState,
    pub volumes: Vec<(MountedVolume, Vec<ChangeId>)>,
    /// What the kernel took otherwise than requested, reported once each.
    said: BTreeMap<String, ()>,
}

impl<'a, W: Platform> Bench<'a, W> {
    pub(super) fn new(
        session: &'a mut Session<W>,
        pipeline: Pipeline<'a>,
        probes: Probes,
        databases: &'a mut dyn Databases<W>,
    ) -> Self {
        Self {
            session,
            pipeline,
            probes,
            ceilings: Vec::new(),
            databases,
            root: Root::system(),
            conditions: ConditionState::default(),
            volumes: Vec::new(),
            said: BTreeMap::new(),
        }
    }

    /// Bytes that requests, databases and filling wrote.
    pub(super) fn written_bytes(&self) -> u64 {
        let filled: u64 = self.volumes.iter().map(|(volume, _)| volume.filled_bytes()).sum();
        self.pipeline.written_bytes() + filled
    }

    /// Makes a volume.
    pub(super) fn make(&mut self, layout: &VolumeLayout, here: &Path) -> Result<(), StudyError> {
        let mut made = Vec::new();
        let mut tell = |applied: &AppliedChange| made.push(applied.clone());
        let volume = volume::make(self.session, layout, &self.root, here, &mut tell)?;
        let ids =
            made.iter().filter(|one| one.change.is_lasting()).map(|applied| applied.id).collect();
        for applied in &made {
            self.record(applied)?;
        }
        self.volumes.push((volume, ids));
        Ok(())
    }

    /// Takes every volume back, the latest first.
    pub(super) fn tear_down(&mut self) -> Result<(), StudyError> {
        for id in self.conditions.clear() {
            self.session.undo(id)?;
        }
        while let Some((volume, ids)) = self.volumes.pop() {
            self.pipeline.filled_bytes += volume.filled_bytes();
            for dir in &volume.databases {
                self.databases.forget(self.session, dir)?;
            }
            drop(volume);
            for id in ids.into_iter().rev() {
                self.session.undo(id)?;
            }
        }
        Ok(())
    }

    /// Stores what a change did, each text once.
    pub(super) fn record(&mut self, applied: &AppliedChange) -> Result<(), StudyError> {
        let text = applied.change.describe();
        let (asked, took) = match applied.asked_and_took() {
            Some((asked, took)) => (Some(asked.to_owned()), Some(took.to_owned())),
            None => (None, None),
        };
        let key = format!("{text}{took:?}");
        if self.said.insert(key, ()).is_some() {
            return Ok(());
        }
        self.pipeline.store(Event::Changed(ChangeRecord { text, asked, took }))
    }

    /// The first raw volume over a file and its bytes, for measuring what the loop device can do.
    pub(super) fn raw_place(&self) -> Option<(PathBuf, u64)> {
        let raw = |(volume, _): &&(MountedVolume, Vec<ChangeId>)| {
            let asked = &volume.layout.volume;
            asked.kind == VolumeKind::Raw && asked.disk.is_none()
        };
        let found = self.volumes.iter().find(raw);
        found.map(|(volume, _)| (volume.places[0].clone(), volume.layout.member_bytes))
    }

    /// Puts conditions in place on a cell's volume, and observes it from now on.
    pub(super) fn switch(&mut self, cell: &Cell, wanted: &Conditions) -> Result<(), StudyError> {
        let at = self.volume_of(cell);
        let devices = self.volumes[at].0.layout.devices();
        let made = self.conditions.switch(self.session, wanted, &devices)?;
        for applied in &made {
            self.record(applied)?;
        }
        if wanted.drop_caches {
            self.session.apply(DropCaches)?;
        }
        let volume = &mut self.volumes[at].0;
        if !made.is_empty() {
            volume.scope = PathScope::of(&self.root, &volume.places)?;
        }
        self.pipeline.meter.look_at(volume.scope.observed.clone());
        Ok(())
    }

    /// What reaches the emulated disks of a volume.
    pub(super) fn disks_of(&mut self, volume: usize) -> &mut DiskProbe {
        &mut self.volumes[volume].0.disks
    }

    /// Puts a cell's conditions in place and finds its files.
    fn set_up(&mut self, cell: &Cell, text: &str) -> Result<SetUp, StudyError> {
        self.switch(cell, &cell.conditions)?;
        let at = self.volume_of(cell);
        let volume = &mut self.volumes[at].0;
        let devices = volume.layout.devices();
        let (stop, listener) = (self.pipeline.stop(), &mut *self.pipeline.listener);
        let files = volume.files(&cell.workload, stop, &mut |progress| {
            let done = units_of(progress.done_bytes, progress.total_bytes);
            listener.progress(0.0, &format!("{text}: writing its files, {done}"));
        })?;
        Ok(SetUp {
            volume: at,
            queue: self.conditions.taken(&devices),
            place: volume.places[0].clone(),
            scope: volume.scope.clone(),
            verdicts: volume.verdicts.clone(),
            files,
        })
    }

    /// Measures a cell once and stores it. Gives its figure and what the whole took in seconds;
    /// nothing when a signal came.
    pub(super) fn measure(
        &mut self,
        cell: &Cell,
        replicate: u32,
        how: &How,
    ) -> Result<Option<TakenReplicate>, StudyError> {
        if let Some(load) = &cell.transactions {
            return self.measure_transactions(load, cell, replicate, how);
        }
        let started = Instant::now();
        let set_up = self.set_up(cell, &cell.title)?;
        let mut point = point(cell, &set_up.place, how.window);
        point.streams[0].spec.write_bytes_max = how.write_bytes_max;
        // Every replicate draws its own offsets and arrivals: else what one seed happens to bring
        // would look like a property of the point.
        let seed = &mut point.streams[0].spec.seed;
        *seed = seed.wrapping_add(u64::from(replicate));
        let profiler = self.probes.profiler();
        let is_profiled = profiler.is_some();
        let disks = &mut self.volumes[set_up.volume].0.disks;
        let mut watchers: Vec<&mut dyn Watcher> = vec![disks];
        watchers.extend(profiler);
        let load = IoLoad::new(&point.streams, vec![set_up.files.clone()]);
        let measured = self.pipeline.measure(
            &point,
            replicate,
            &load,
            &|_| how.share,
            &how.text,
            &mut watchers,
        )?;
        let profile = if is_profiled { self.probes.take_profile() } else { None };
        if measured.interrupted {
            return Ok(None);
        }
        let Measurement { mut replicate, error, .. } = measured;
        write_back(cell, &set_up.place);
        if let Some(error) = error {
            return Err(error);
        }
        if let Some(evidence) = &mut replicate.evidence {
            evidence.queue = set_up.queue.clone();
            evidence.emulated = self.volumes[set_up.volume].0.disks.take();
        }
        replicate.verdicts.merge(&self.judged(cell, &set_up, &replicate));
        let (figure, number) = (figure_of(&replicate), replicate.replicate);
        self.pipeline.store(Event::Replicate(Box::new(replicate)))?;
        if let Some(profile) = profile {
            let replicate = Some(number);
            self.pipeline.store(Event::Profiled(Box::new(PointProfile {
                point: cell.id.clone(),
                replicate,
                profile,
            })))?;
        }
        Ok(Some(TakenReplicate { figure, is_lost: false, took_s: started.elapsed().as_secs_f64() }))
    }

    /// Makes a cell's files, so that no round begins with writing them.
    pub(super) fn prepare(&mut self, cell: &Cell) -> Result<(), StudyError> {
        if let Some(load) = &cell.transactions {
            self.prepare_tables(load, cell)?;
        }
        for workload in cell.on_files() {
            self.files_of(cell, workload)?;
        }
        Ok(())
    }

    /// The files of a workload on the volume of a cell.
    pub(super) fn files_of(
        &mut self,
        cell: &Cell,
        workload: &IoSpec,
    ) -> Result<Vec<FileSpec>, StudyError> {
        let at = self.volume_of(cell);
        let stop = self.pipeline.stop();
        let (volumes, listener) = (&mut self.volumes, &mut *self.pipeline.listener);
        let text = format!("writing the files of {}", volumes[at].0.layout.name);
        let mut progress = |progress: iostrata_io::Progress| {
            let done = units_of(progress.done_bytes, progress.total_bytes);
            listener.progress(0.0, &format!("{text}: {done}"));
        };
        volumes[at].0.files(workload, stop, &mut progress)
    }

    pub(super) fn volume_of(&self, cell: &Cell) -> usize {
        let at = self.volumes.iter().position(|(volume, _)| volume.layout.volume == cell.volume);
        at.unwrap_or_else(|| panic!("no volume was made for {}", cell.id))
    }

    /// A pass apart from the measured ones, with block events and sleeping threads traced.
    pub(super) fn trace(&mut self, cell: &Cell, share: f64) -> Result<(), StudyError> {
        if cell.transactions.is_some() {
            // A pass of a fraction of a second shows nothing of a database.
            return Ok(());
        }
        let text = format!("tracing {}", cell.title);
        self.pipeline.listener.progress(share, &text);
        let set_up = self.set_up(cell, &text)?;
        let mut point = point(cell, &set_up.place, TRACED_PASS);
        point.streams[0].spec.runtime = Some(TRACED_PASS);
        if !self.probes.arm_trace(&set_up.scope) {
            return Ok(());
        }
        let load = IoLoad::new(&point.streams, vec![set_up.files.clone()]);
        let mut watchers = self.probes.tracers();
        let pass = self.pipeline.measure(&point, 0, &load, &|_| share, &text, &mut watchers)?;
        drop(watchers);
        write_back(cell, &set_up.place);
        let seen = self.probes.take_trace(&pass.replicate);
        if pass.interrupted || pass.error.is_some() {
            return Ok(());
        }
        let iops = figure_of(&pass.replicate).value;
        if let Some(latency) = seen.latency {
            let traced = LatencyTrace { point: cell.id.clone(), iops, latency };
            self.pipeline.store(Event::Traced(Box::new(traced)))?;
        }
        if let Some(profile) = seen.waits {
            let profiled = PointProfile { point: cell.id.clone(), replicate: None, profile };
            self.pipeline.store(Event::Profiled(Box::new(profiled)))?;
        }
        Ok(())
    }

    /// Measures a point of the study's own, on given files.
    pub(super) fn measure_beside(
        &mut self,
        point: &Point,
        replicate: u32,
        files: Vec<FileSpec>,
        scope: Scope,
    ) -> Result<Option<Measured>, StudyError> {
        self.pipeline.meter.look_at(scope);
        let load = IoLoad::new(&point.streams, vec![files]);
        let measured =
            self.pipeline.measure(point, replicate, &load, &|_| 0.0, &point.title, &mut [])?;
        if measured.interrupted {
            return Ok(None);
        }
        if let Some(error) = measured.error {
            return Err(error);
        }
        let figure = figure_of(&measured.replicate);
        self.pipeline.store(Event::Replicate(Box::new(measured.replicate)))?;
        Ok(Some(figure))
    }

    fn judged(&self, cell: &Cell, set_up: &SetUp, replicate: &Replicate) -> Verdicts {
        let mut verdicts = set_up.verdicts.clone();
        let iops = figure_of(replicate).value;
        let is_over_file = cell.volume.kind != VolumeKind::Here && cell.volume.disk.is_none();
        if is_over_file && self.ceilings.iter().any(|ceiling| ceiling.bounds(&cell.workload, iops))
        {
            verdicts.add(Verdict::LoopLimited);
        }
        verdicts
    }
}

/// A replicate that was taken.
pub(super) struct TakenReplicate {
    pub figure: Measured,
    /// Whether the hypervisor took so much of it that it does not count.
    pub is_lost: bool,
    pub took_s: f64,
}

/// How a replicate is measured.
#[derive(Clone, Debug)]
pub(super) struct How {
    pub window: Duration,
    pub write_bytes_max: Option<u64>,
    /// Share of the whole that is done, for the display.
    pub share: f64,
    /// What is being done, for the display.
    pub text: String,
}

/// A cell that is ready to be measured.
struct SetUp {
    /// Which of the volumes.
    volume: usize,
    queue: Vec<QueueReadback>,
    place: PathBuf,
    scope: PathScope,
    verdicts: Verdicts,
    files: Vec<FileSpec>,
}

/// Buffered writes are written back now, so that they do not disturb the next window.
fn write_back(cell: &Cell, place: &Path) {
    if cell.workload.direct || !cell.workload.mix.writes() {
        return;
    }
    if let Ok(file) = std::fs::File::open(place) {
        // Best effort: what stays dirty shows as foreign I/O of the next window.
        let _synced = rustix::fs::syncfs(&file);
    }
}

fn units_of(done: u64, total: u64) -> String {
    format!(
        "{} of {}",
        iostrata_stats::units::bytes(done as f64),
        iostrata_stats::units::bytes(total as f64)
    )
}
