//! One replicate of a cell that is a load of transactions.
//!
//! Invariants: tables are loaded and databases opened and closed without the limits of the cell,
//! which hold from the first transaction of the warm-up to the last one of the window; every window
//! begins on a database that was closed and opened, with the redo gone round since.

use std::path::PathBuf;
use std::time::Instant;

use iostrata_change::{Platform, ServerDirectory};
use iostrata_load::TransactionLoad;
use iostrata_plan::study::setting::{Setting, SettingId};
use iostrata_plan::study::{Cell, Conditions};
use iostrata_plan::{Point, TransactionSpec};
use iostrata_run::host::NamedIostat;
use iostrata_run::{Event, Replicate, TransactionFigures};
use iostrata_stats::Measured;
use iostrata_stats::units::seconds;

use super::bench::{Bench, DATABASES, How, SECOND_DATABASES, TakenReplicate};
use super::database::{DatabasePlace, StudiedDatabase, WarmedUp, warm_up};
use super::pace::{figure_of, transactions};
use super::second::{Readers, Second};
use crate::sampling::UseWatch;
use crate::{Measurement, Sampling, StudyError, Watcher};

/// Where data lies, of the members of a volume, and redo that does not lie with it.
const DATA_MEMBER: usize = 0;
const REDO_MEMBER: usize = 1;

impl<W: Platform> Bench<'_, W> {
    /// Loads the tables of a cell, so that no round begins with that.
    pub(super) fn prepare_tables(
        &mut self,
        load: &TransactionSpec,
        cell: &Cell,
    ) -> Result<(), StudyError> {
        for (load, directory) in [(Some(load), DATABASES), (cell.second.as_ref(), SECOND_DATABASES)]
        {
            let Some(load) = load else { continue };
            let database = self.open_database(load, cell, directory)?;
            self.count_written(&*database);
            database.close()?;
        }
        Ok(())
    }

    /// Measures a cell once and stores it, as [`Bench::measure`] does.
    pub(super) fn measure_transactions(
        &mut self,
        load: &TransactionSpec,
        cell: &Cell,
        replicate: u32,
        how: &How,
    ) -> Result<Option<TakenReplicate>, StudyError> {
        let started = Instant::now();
        let of_replicate = |load: &TransactionSpec| {
            let seed = load.seed.wrapping_add(u64::from(replicate));
            TransactionSpec { runtime: Some(how.window), seed, ..load.clone() }
        };
        let load = of_replicate(load);
        let mut database = self.open_database(&load, cell, DATABASES)?;
        let second = match cell.second.as_ref().map(of_replicate) {
            Some(load) => {
                let database = self.open_database(&load, cell, SECOND_DATABASES)?;
                Some(Second { database, load })
            }
            None => None,
        };
        let readers = match &cell.readers {
            Some(spec) => Some(Readers::new(spec, self.files_of(cell, spec)?, how.window)),
            None => None,
        };
        let beside = Beside { second: second.as_ref(), readers };
        let at = self.volume_of(cell);
        let measured = self.switch(cell, &cell.conditions).and_then(|()| {
            self.begin_in_group(&mut *database, how)?;
            let mut point = transactions(cell, &load);
            point.metric.op =
                database.source(&load)?.kinds().first().copied().unwrap_or(point.metric.op);
            self.run_beside(&beside, &*database, &point, replicate, how, at)
        });
        let last_words = |error: StudyError| match database.last_words(self.session) {
            Some(said) => StudyError::Died { error: Box::new(error), said },
            None => error,
        };
        let measured = measured.map_err(last_words);
        self.count_written(&*database);
        second.iter().for_each(|second| self.count_written(&*second.database));
        let ended = database.end(self.session);
        // Closing writes every dirty page, and is no part of what the limits are for.
        let unlimited = ended.and_then(|()| self.switch(cell, &Conditions::default()));
        let closed = database.close();
        let second_closed = second.map_or(Ok(()), |second| second.database.close());
        let Some(mut replicate) = measured? else { return Ok(None) };
        unlimited?;
        closed.and(second_closed)?;
        let evidence = replicate.evidence.as_mut();
        if let Some(evidence) = evidence {
            evidence.emulated = self.disks_of(at).take();
            if has_redo_volume(&load) {
                evidence.redo_device = self.device_of((at, REDO_MEMBER), &evidence.layers);
            }
        }
        let figure = figure_of(&replicate);
        let is_lost = iostrata_diagnose::is_lost_to_steal(&replicate);
        self.pipeline.store(Event::Replicate(Box::new(replicate)))?;
        Ok(Some(TakenReplicate { figure, is_lost, took_s: started.elapsed().as_secs_f64() }))
    }

    /// Begins the conditions of a point for its database.
    fn begin_in_group(
        &mut self,
        database: &mut dyn StudiedDatabase<W>,
        how: &How,
    ) -> Result<(), StudyError> {
        let group = self.group();
        let listener = &mut *self.pipeline.listener;
        let mut progress =
            |text: &str| listener.progress(how.share, &format!("{}: {text}", how.text));
        database.begin(self.session, group, &mut progress)
    }

    /// Warm-up and window on the volume `at`, with what else uses it meanwhile.
    fn run_beside(
        &mut self,
        beside: &Beside<'_, W>,
        database: &dyn StudiedDatabase<W>,
        point: &Point,
        replicate: u32,
        how: &How,
        at: usize,
    ) -> Result<Option<Replicate>, StudyError> {
        let mut beside_readers = |of_second: Option<&mut dyn Watcher>| {
            let Some(readers) = &beside.readers else {
                return self.run(database, point, replicate, how, at, [of_second, None]);
            };
            let (measured, figures) = readers.beside(|of_readers| {
                let of_second = of_second.map(|one| one as &mut dyn Watcher);
                self.run(database, point, replicate, how, at, [of_second, Some(of_readers)])
            })?;
            Ok(measured.map(|one| with_counts(one, |counted| counted.readers = Some(figures))))
        };
        let Some(second) = beside.second else { return beside_readers(None) };
        let (measured, figures) =
            second.beside(how.window, |of_second| beside_readers(Some(of_second)))?;
        Ok(measured.map(|one| with_counts(one, |counted| counted.second = Some(figures))))
    }

    /// What the device of one member of a volume did, among those of all.
    fn device_of(
        &self,
        (volume, member): (usize, usize),
        layers: &[NamedIostat],
    ) -> Option<NamedIostat> {
        self.volumes[volume].0.scope.of_place(member, layers)
    }

    /// The groups in which the conditions hold, where some are of groups.
    fn group(&self) -> Option<&'static str> {
        self.conditions.group()
    }

    /// A directory of databases on a member of a volume; made, through the journal, when first
    /// needed, and removed with the volume.
    fn database_directory(
        &mut self,
        volume: usize,
        member: usize,
        name: &'static str,
    ) -> Result<PathBuf, StudyError> {
        let (mounted, ids) = &mut self.volumes[volume];
        let path = mounted.places[member].join(name);
        if mounted.databases.contains(&path) {
            return Ok(path);
        }
        let made = self.session.apply(ServerDirectory { path: path.clone() })?;
        ids.push(made.id);
        mounted.databases.push(path.clone());
        self.record(&made)?;
        Ok(path)
    }

    /// Counts what a database has written since it was opened, as far as it reports that.
    fn count_written(&mut self, database: &dyn StudiedDatabase<W>) {
        // A server that does not run, or not any more, reports nothing.
        let Ok(target) = database.target() else { return };
        let used = target.used().unwrap_or_default();
        self.pipeline.filled_bytes += used.written_bytes();
    }

    /// Warm-up and window; nothing when a signal came.
    fn run(
        &mut self,
        database: &dyn StudiedDatabase<W>,
        point: &Point,
        replicate: u32,
        how: &How,
        at: usize,
        beside: [Option<&mut dyn Watcher>; 2],
    ) -> Result<Option<Replicate>, StudyError> {
        let Some(load) = &point.transactions else { return Ok(None) };
        let source = database.source(load)?;
        let (stop, listener) = (self.pipeline.stop(), &mut *self.pipeline.listener);
        let mut said = |done: f64| {
            let text = format!("{}: warming up, {:.0} %", how.text, 100.0 * done);
            listener.progress(how.share, &text);
        };
        let target = database.target()?;
        let warmed = warm_up(target, &*source, load, how.window, stop, &mut said)?;
        if self.pipeline.is_interrupted() {
            return Ok(None);
        }
        let mut notes = Vec::new();
        let mut sampling = Sampling::of(target, &mut |text| notes.push(text.to_owned()));
        let used = || target.used().unwrap_or_default();
        let mut watch = UseWatch::new(&used);
        let transactions = TransactionLoad::new(&*source, load, true);
        let disks = &mut self.volumes[at].0.disks;
        let mut watchers: Vec<&mut dyn Watcher> = vec![disks, &mut watch, &mut sampling];
        for one in beside.into_iter().flatten() {
            watchers.push(one);
        }
        watchers.extend(self.probes.profiler());
        let (share, text) = (how.share, how.text.as_str());
        let measured = self.pipeline.measure(
            point,
            replicate,
            &transactions,
            &|_| share,
            text,
            &mut watchers,
        )?;
        drop(watchers);
        let used = watch.used();
        let Measurement { mut replicate, interrupted, error, .. } = measured;
        if let Some(error) = error {
            return Err(error);
        }
        sampling.explain(&mut replicate, load.threads);
        if let Some(stream) = replicate.streams.first_mut() {
            stream.total = stream.total.take().map(one_sample);
            stream.notes.extend(notes);
            stream.notes.extend(not_round(&warmed));
            let counted = stream.transactions.get_or_insert_with(TransactionFigures::default);
            (counted.used, counted.warm_up_s) = (Some(used), warmed.took_s);
        }
        Ok((!interrupted).then_some(replicate))
    }

    /// Opens a database of a cell on its volume, without the cell's limits.
    fn open_database(
        &mut self,
        load: &TransactionSpec,
        cell: &Cell,
        directory: &'static str,
    ) -> Result<Box<dyn StudiedDatabase<W>>, StudyError> {
        self.switch(cell, &Conditions::default())?;
        let volume = self.volume_of(cell);
        let place = DatabasePlace {
            data: self.database_directory(volume, DATA_MEMBER, directory)?,
            redo: match has_redo_volume(load) {
                true => Some(self.database_directory(volume, REDO_MEMBER, directory)?),
                false => None,
            },
        };
        let (stop, share) = (self.pipeline.stop(), 0.0);
        let (databases, listener) = (&mut *self.databases, &mut *self.pipeline.listener);
        let mut progress = |text: &str| listener.progress(share, text);
        databases.open(self.session, load, &place, stop, &mut progress)
    }
}

/// What else uses the volume of a measured database.
struct Beside<'a, W: Platform> {
    second: Option<&'a Second<W>>,
    readers: Option<Readers>,
}

/// A replicate with something added to what its transactions counted.
fn with_counts(mut of: Replicate, add: impl FnOnce(&mut TransactionFigures)) -> Replicate {
    let stream = of.streams.first_mut();
    if let Some(counted) = stream.and_then(|stream| stream.transactions.as_mut()) {
        add(counted);
    }
    of
}

fn has_redo_volume(load: &TransactionSpec) -> bool {
    load.settings.contains_key(&*Setting::of(SettingId::RedoVolume).name)
}

/// The rate of a window as one sample: its seconds hang together by the round of the redo, so that
/// only other windows show how far it is to be trusted.
fn one_sample(rate: Measured) -> Measured {
    Measured::without_interval(rate.value, 1, rate.verdicts)
}

/// The note on a window that began too early.
fn not_round(warmed: &WarmedUp) -> Option<String> {
    let too_early = warmed.makes_redo && !warmed.went_round;
    too_early.then(|| {
        format!(
            "the redo had not gone round when the window began, after a warm-up of {}: use a \
             longer point_time, more load or a smaller redo",
            seconds(warmed.took_s)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_load_that_writes_can_begin_too_early() {
        let warmed = |makes_redo, went_round| WarmedUp { took_s: 9.0, went_round, makes_redo };
        assert_eq!(not_round(&warmed(false, false)), None);
        assert_eq!(not_round(&warmed(true, true)), None);
        assert!(not_round(&warmed(true, false)).unwrap().contains("9 s"));
    }
}
