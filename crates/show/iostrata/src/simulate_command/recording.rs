//! What the run directory of a driven database, or of a watched server, says of flushing there.
//!
//! Invariant: what the recording does not say is taken from somewhere else and named; a directory
//! that says too little is refused with what to do.

use std::path::Path;

use iostrata_innodb::Settings;
use iostrata_run::{
    Event, FlushAssumption, FlushFigures, Replicate, RunKind, RunReader, RunResult, StallCause,
    TargetCourse, TransactionDocument, TransactionStall, WatchDocument, WatchSample, WatchTarget,
};
use iostrata_sim::flush::{Demand, RecordedWindow};
use iostrata_stats::stability;
use iostrata_study::transactions_per_s;

use super::recorded_settings::{Had, settings};
use crate::exit_error::ExitError;

/// What a run directory says.
pub struct Recording {
    /// The directory, as it was named.
    pub run: String,
    pub workload: String,
    /// The database and its version.
    pub target: String,
    /// As the database had them, its policy with them.
    pub settings: Settings,
    pub demand: Demand,
    pub window: RecordedWindow,
    pub data_bytes: Option<u64>,
    pub assumed: Vec<FlushAssumption>,
}

impl Recording {
    /// Reads a run directory; `needs_redo` unless the arguments say how much redo there is. `turns`
    /// where they say that the disk does.
    ///
    /// # Errors
    /// A directory that is no such run, or whose figures are not enough.
    pub fn read(dir: &Path, needs_redo: bool, turns: bool) -> Result<Self, ExitError> {
        let run = dir.display().to_string();
        let reader =
            RunReader::open(dir).map_err(|error| ExitError::Usage(format!("--from: {error}")))?;
        let refused = |why: String| ExitError::Usage(format!("--from {run}: {why}"));
        if let Some(RunResult::Watch(watched)) = reader.result() {
            let run = run.clone();
            return Self::of_watched(watched, run, (needs_redo, turns)).map_err(refused);
        }
        let document = document(&reader).map_err(refused)?;
        if document.tps <= 0.0 {
            return Err(refused("no transaction was completed in it; record another".to_owned()));
        }
        let course = course(&reader, document).unwrap_or_default();
        let target = format!("{} {}", document.target.flavour, document.target.version);
        check_redo(&course, &target, document.tps, needs_redo).map_err(refused)?;
        let mut assumed = Vec::new();
        let had = Had {
            flavour: &document.target.flavour,
            version: &document.target.version,
            settings: &document.target.settings,
            turns,
        };
        let settings = settings(&had, &mut assumed);
        let figures = FlushFigures {
            tps: document.tps,
            redo_bytes_per_s: course.redo_bytes_per_s,
            pages_dirtied_per_s: course.pages_dirtied_per_s,
            checkpoint_age_pct_mean: course.checkpoint_age_pct_mean,
            redo_stalled_pct: stalled_pct(&document.stalls, document.duration_s),
            ..FlushFigures::default()
        };
        let checkpoint_age_pct_max = course.checkpoint_age_pct_max;
        // Samples are taken from the beginning of the warm-up on.
        let length_s = document.warm_up_s + document.duration_s;
        let data = document.dataset;
        Ok(Self {
            run: run.clone(),
            workload: document.workload.clone(),
            target,
            settings,
            demand: match document.arrivals {
                Some(arrivals) => Demand::Rate(arrivals as f64 / document.duration_s.max(1.0)),
                None => Demand::Users(document.threads),
            },
            window: RecordedWindow { figures, checkpoint_age_pct_max, length_s },
            data_bytes: data.and_then(|data| data.bytes_before.or(data.bytes_after)),
            assumed,
        })
    }

    /// What a recording of a server's own load says.
    ///
    /// # Errors
    /// Why it does not say enough.
    pub fn of_watched(
        watched: &WatchDocument,
        run: String,
        (needs_redo, turns): (bool, bool),
    ) -> Result<Self, String> {
        if !watched.settings.is_empty() {
            return Err("its settings were changed while it was recorded, so that no load can be \
                        told from it; give a recording of `iostrata watch`"
                .to_owned());
        }
        let figures = figures_of(watched).ok_or("no transaction was seen in it; record another")?;
        let target = format!("{} {}", watched.target.flavour, watched.target.version);
        let redo =
            TargetCourse { redo_bytes_per_s: figures.redo_bytes_per_s, ..TargetCourse::default() };
        check_redo(&redo, &target, figures.tps, needs_redo)?;
        let mut assumed = Vec::new();
        let WatchTarget { flavour, version, settings: had, .. } = &watched.target;
        let settings = settings(&Had { flavour, version, settings: had, turns }, &mut assumed);
        let running = mean(watched, |sample| sample.sessions_running.map(|count| count as f64));
        let demand = match running {
            Some(count) => Demand::Users(count.round().max(1.0) as u32),
            None => Demand::Rate(figures.tps),
        };
        let taken_as = match demand {
            Demand::Users(users) => format!("{users}, the sessions that were at work on average"),
            Demand::Rate(_) => "as many transactions per second as were recorded".to_owned(),
        };
        assumed.push(FlushAssumption { what: "users".to_owned(), taken_as });
        let checkpoint_age_pct_max = watched.checkpoint_age_pct_max;
        let length_s = watched.duration_s;
        let window = RecordedWindow { figures, checkpoint_age_pct_max, length_s };
        let workload = "its own load".to_owned();
        Ok(Self { run, workload, target, settings, demand, window, data_bytes: None, assumed })
    }
}

/// The mean of what samples tell.
fn mean(watched: &WatchDocument, of: impl Fn(&WatchSample) -> Option<f64>) -> Option<f64> {
    let told: Vec<f64> = watched.samples.iter().filter_map(of).collect();
    (!told.is_empty()).then(|| told.iter().sum::<f64>() / told.len() as f64)
}

/// The figures of a recording; nothing where no transactions were seen.
fn figures_of(watched: &WatchDocument) -> Option<FlushFigures> {
    let tps = watched.tps.filter(|tps| *tps > 0.0)?;
    let dirty = |sample: &WatchSample| Some((sample.t_s, sample.dirty_pages? as f64));
    let first = watched.samples.iter().find_map(dirty);
    let last = watched.samples.iter().rev().find_map(dirty);
    let grown = first.zip(last).filter(|(first, last)| last.0 > first.0);
    let grown_per_s = grown.map_or(0.0, |(first, last)| (last.1 - first.1) / (last.0 - first.0));
    let flushed = mean(watched, |sample| sample.flushed_pages_per_s);
    Some(FlushFigures {
        tps,
        redo_bytes_per_s: mean(watched, |sample| sample.redo_bytes_per_s),
        pages_dirtied_per_s: flushed.map(|flushed| (flushed + grown_per_s).max(0.0)),
        checkpoint_age_pct_mean: mean(watched, |sample| sample.checkpoint_age_pct),
        redo_stalled_pct: stalled_pct(&watched.stalls, watched.duration_s),
        min_over_mean_1s: min_over_mean_1s(watched),
        pages_written_per_txn: watched.pages_written_per_txn,
        flushed_pages_per_s_max: watched
            .samples
            .iter()
            .filter_map(|sample| sample.flushed_pages_per_s)
            .max_by(f64::total_cmp),
    })
}

/// The worst second over the mean; nothing where samples are further apart, or one is missing.
fn min_over_mean_1s(watched: &WatchDocument) -> Option<f64> {
    let rates: Vec<f64> = watched.samples.iter().skip(1).map_while(|sample| sample.tps).collect();
    let width_s = watched.duration_s / rates.len().max(1) as f64;
    // Samples come about a second apart, not to the millisecond.
    let width_s = if (0.9..1.1).contains(&width_s) { 1.0 } else { width_s };
    let is_whole = rates.len() + 1 == watched.samples.len() && width_s <= 1.0;
    is_whole.then(|| stability(&rates, width_s)).flatten().map(|even| even.min_over_mean_1s)
}

/// The share of so many seconds that stalls for want of redo space lasted, in percent.
fn stalled_pct(stalls: &[TransactionStall], of_s: f64) -> Option<f64> {
    let of_redo = stalls.iter().filter(|stall| stall.cause == StallCause::RedoFull);
    let stalled_s: f64 = of_redo.map(|stall| stall.length_s).sum();
    (of_s > 0.0).then(|| (100.0 * stalled_s / of_s).min(100.0))
}

fn document(reader: &RunReader) -> Result<&TransactionDocument, String> {
    let kind = reader.manifest().kind;
    match (reader.result(), kind) {
        (Some(RunResult::Transactions(document)), _) => Ok(document),
        (None, kind) if kind.is_of_workload() || kind == RunKind::Watch => {
            Err("the run was stopped before its end and has no result; record it again and let it \
                 end"
            .to_owned())
        }
        _ => Err(format!(
            "it is a run of `{}`; give one of `iostrata tpcc run`, or of `run` of oltp, stress or \
             insert, or a recording of `iostrata watch`",
            reader.manifest().arguments.first().map_or("another command", String::as_str)
        )),
    }
}

/// What samples of the target say of the window that the document shows.
fn course(reader: &RunReader, document: &TransactionDocument) -> Option<TargetCourse> {
    let replicates = reader.events().iter().filter_map(|event| match event {
        Event::Replicate(replicate) => Some(&**replicate),
        _ => None,
    });
    let distance = |one: &Replicate| (transactions_per_s(one) - document.tps).abs();
    let shown = replicates.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    shown.streams.first()?.transactions.as_ref()?.course
}

fn check_redo(
    course: &TargetCourse,
    target: &str,
    tps: f64,
    needs_redo: bool,
) -> Result<(), String> {
    match course.redo_bytes_per_s {
        _ if !needs_redo => Ok(()),
        None => Err(format!(
            "it has no figures of redo ({target} does not tell them, or the program was older): \
             give --redo-per-txn SIZE, or record a MariaDB, a Percona Server, a MySQL from 8.0.30 \
             on, or the engine"
        )),
        Some(bytes_per_s) if bytes_per_s < 16.0 * tps => Err(
            "its transactions made no redo, so that there is nothing to flush; record a workload \
             that writes"
                .to_owned(),
        ),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use iostrata_run::TunedSetting;

    use super::*;

    #[test]
    fn a_recording_of_a_server_tells_its_load() {
        let sample = |t_s: f64, dirty_pages, flushed| WatchSample {
            t_s,
            dirty_pages: Some(dirty_pages),
            flushed_pages_per_s: flushed,
            redo_bytes_per_s: flushed.map(|_| 3e6),
            sessions_running: Some(7 + t_s as u64),
            ..WatchSample::default()
        };
        let target = WatchTarget {
            flavour: "mariadb".to_owned(),
            version: "10.11.19-MariaDB".to_owned(),
            settings: [("innodb_log_file_size".to_owned(), "104857600".to_owned())].into(),
            ..WatchTarget::default()
        };
        let mut watched = WatchDocument {
            target,
            duration_s: 2.0,
            tps: Some(400.0),
            samples: vec![
                sample(0.0, 100, None),
                sample(1.0, 300, Some(500.0)),
                sample(2.0, 400, Some(700.0)),
            ],
            ..WatchDocument::default()
        };
        let found = Recording::of_watched(&watched, "R".to_owned(), (true, false)).unwrap();
        assert_eq!(found.demand, Demand::Users(8));
        assert_eq!(found.settings.redo_log_capacity, 100 << 20);
        let FlushFigures { tps, redo_bytes_per_s, pages_dirtied_per_s, .. } = found.window.figures;
        let figures = (tps, redo_bytes_per_s, pages_dirtied_per_s);
        assert_eq!(figures, (400.0, Some(3e6), Some(600.0 + 150.0)));
        assert!(found.assumed.iter().any(|one| one.what == "users"), "{:?}", found.assumed);
        // Whoever tuned it changed the load of every second.
        watched.settings.push(TunedSetting::default());
        let refused = Recording::of_watched(&watched, "R".to_owned(), (true, false)).err().unwrap();
        assert!(refused.contains("give a recording of `iostrata watch`"), "{refused}");
        watched.settings.clear();
        watched.tps = None;
        let refused = Recording::of_watched(&watched, "R".to_owned(), (true, false)).err().unwrap();
        assert!(refused.contains("no transaction"), "{refused}");
    }
}
