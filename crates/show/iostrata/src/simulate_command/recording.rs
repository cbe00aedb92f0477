//! The flushing in the run directory of a driven database, or of a watched server, and its settings
//! as the engine's model has them.
//!
//! Invariants: what the recording or the model lacks is taken from somewhere else or assumed, and
//! named; a directory that holds too little is refused with what to do.

use std::collections::BTreeMap;
use std::path::Path;

use iostrata_innodb::{PolicyName, Settings};
use iostrata_run::{
    Event, FlushAssumption, FlushFigures, Replicate, RunKind, RunReader, RunResult, StallCause,
    TargetCourse, TransactionDocument, TransactionStall, WatchDocument, WatchSample, WatchTarget,
};
use iostrata_server::{Flavour, ServerVersion};
use iostrata_sim::flush::{Demand, FOLLOWED, RecordedWindow};
use iostrata_stats::units::Size;
use iostrata_stats::{SECOND_EVENTS_MIN, stability};
use iostrata_study::transactions_per_s;

use super::flush_plan::{POOL_BYTES, REDO_BYTES, SERVER_SETTINGS};
use crate::exit_error::ExitError;

/// The contents of a run directory.
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
    /// Reads a run directory; `needs_redo` unless the arguments give the amount of redo. `turns`
    /// where they give a rotating disk.
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

    /// The contents of a recording of a server's own load.
    ///
    /// # Errors
    /// What it lacks.
    pub fn of_watched(
        watched: &WatchDocument,
        run: String,
        (needs_redo, turns): (bool, bool),
    ) -> Result<Self, String> {
        if !watched.settings.is_empty() {
            return Err(
                "its settings changed during the recording, so the load cannot be derived \
                        from it; give a recording of `iostrata watch`"
                    .to_owned(),
            );
        }
        let figures = figures_of(watched).ok_or("it contains no transactions; record another")?;
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

/// The mean over the samples that have a figure.
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

/// The worst second over the mean; nothing where samples are further apart, one is missing, or a
/// second has too few transactions.
fn min_over_mean_1s(watched: &WatchDocument) -> Option<f64> {
    let rates: Vec<f64> = watched.samples.iter().skip(1).map_while(|sample| sample.tps).collect();
    let width_s = watched.duration_s / rates.len().max(1) as f64;
    // Samples come about a second apart, not to the millisecond.
    let width_s = if (0.9..1.1).contains(&width_s) { 1.0 } else { width_s };
    let is_whole = rates.len() + 1 == watched.samples.len() && width_s <= 1.0;
    let is_judged = rates.iter().sum::<f64>() >= SECOND_EVENTS_MIN * rates.len() as f64;
    let even = (is_whole && is_judged).then(|| stability(&rates, width_s)).flatten();
    even.map(|even| even.min_over_mean_1s)
}

/// The share of so many seconds that stalls for lack of redo space lasted, in percent.
fn stalled_pct(stalls: &[TransactionStall], of_s: f64) -> Option<f64> {
    let of_redo = stalls.iter().filter(|stall| stall.cause == StallCause::RedoFull);
    let stalled_s: f64 = of_redo.map(|stall| stall.length_s).sum();
    // The sum of none is -0.
    (of_s > 0.0).then(|| (100.0 * stalled_s / of_s).min(100.0) + 0.0)
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

/// The samples of the target within the window that the document shows.
fn course(reader: &RunReader, document: &TransactionDocument) -> Option<TargetCourse> {
    let replicates = reader.events().iter().filter_map(Event::replicate);
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
            "it has no figures of redo ({target} does not report them, or the program was older): \
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

/// Settings that give the size of the redo together, where one by itself does not.
const REDO_FILES: [&str; 2] = ["log_file_size", "log_files_in_group"];

/// Whether flushing follows a setting of a target, by the target's name of it.
pub fn is_recorded(name: &str) -> bool {
    let bare = bare(name);
    FOLLOWED.contains(&bare) || REDO_FILES.contains(&bare)
}

/// The engine's name of a setting; servers put one word before it.
fn bare(name: &str) -> &str {
    name.strip_prefix("innodb_").unwrap_or(name)
}

/// The target that was recorded.
pub struct Had<'a> {
    pub flavour: &'a str,
    pub version: &'a str,
    pub settings: &'a BTreeMap<String, String>,
    /// Whether its disk is known to turn.
    pub turns: bool,
}

/// The engine's settings that are nearest to the target's.
pub fn settings(had: &Had<'_>, assumed: &mut Vec<FlushAssumption>) -> Settings {
    let of = |wanted: &str| {
        let found = had.settings.iter().find(|(name, _)| bare(name) == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let mut settings = Settings::default();
    let mut assume = |what: &str, taken_as: String| {
        assumed.push(FlushAssumption { what: what.to_owned(), taken_as });
    };
    // The version determines the policy, the redo may be several files, and files are written
    // directly in the model.
    let own = ["policy", "redo_log_capacity", "flush_method"];
    for (name, value) in had.settings.iter().filter(|(name, _)| !own.contains(&bare(name))) {
        if FOLLOWED.contains(&bare(name)) && settings.set(bare(name), value).is_err() {
            let taken = settings.get(bare(name)).unwrap_or_default();
            assume(name, format!("{taken}; the model has no {value}"));
        }
    }
    // A delay of 0 leaves the limit without effect.
    if settings.max_purge_lag_delay == 0 {
        settings.max_purge_lag = 0;
    }
    for (name, value) in SERVER_SETTINGS.iter().filter(|(name, _)| of(name).is_none()) {
        // Both are values of the catalogue.
        if settings.set(name, value).is_ok() {
            assume(name, (*value).to_owned());
        }
    }
    if of("buffer_pool_size").is_none() {
        settings.buffer_pool_size = POOL_BYTES;
        assume("buffer pool", Size(POOL_BYTES).to_string());
    }
    if had.flavour != "engine" && of("flush_neighbors").is_none() {
        assume("flush_neighbors", "0".to_owned());
    } else if settings.flush_neighbors > 0 && has_effect_on_turning_disks_alone(had) && !had.turns {
        settings.flush_neighbors = 0;
        let why = "0; a MariaDB follows it on disks that turn, and --device names none";
        assume("innodb_flush_neighbors", why.to_owned());
    }
    let number = |name: &str| of(name)?.parse::<u64>().ok();
    let files = || Some(number("log_file_size")? * number("log_files_in_group").unwrap_or(1));
    let redo = of("redo_log_capacity").map(str::to_owned);
    let redo = redo.or_else(|| files().map(|bytes| bytes.to_string()));
    if redo.is_none_or(|text| settings.set("redo_log_capacity", &text).is_err()) {
        settings.redo_log_capacity = REDO_BYTES;
        assume("redo", Size(REDO_BYTES).to_string());
    }
    let policy = match had.flavour {
        "engine" => of("policy")
            .and_then(|word| PolicyName::ALL.iter().find(|name| name.word() == word).copied()),
        flavour => policy_of(&ServerVersion::recognise(had.version, flavour)),
    };
    settings.policy = policy.unwrap_or_else(|| {
        let name = match had.flavour {
            "engine" => PolicyName::Steady,
            _ => PolicyName::PageCleaner84,
        };
        assume("policy", name.word().to_owned());
        name
    });
    settings
}

/// From 10.4 on a MariaDB checks the kernel's rotational flag of the disk before it writes
/// neighbours.
fn has_effect_on_turning_disks_alone(had: &Had<'_>) -> bool {
    let version = ServerVersion::recognise(had.version, had.flavour);
    version.flavour == Flavour::MariaDb && (version.numbers.0, version.numbers.1) >= (10, 4)
}

/// The policy of a server's version.
fn policy_of(version: &ServerVersion) -> Option<PolicyName> {
    let (major, minor, _) = version.numbers;
    match (version.flavour, (major, minor)) {
        (Flavour::MariaDb, (10, 5..) | (11.., _)) => Some(PolicyName::Mariadb),
        (Flavour::MariaDb, (10, 2..=4)) => Some(PolicyName::PageCleaner57),
        (Flavour::MariaDb, (10, _)) => Some(PolicyName::PageCleaner56),
        (Flavour::Percona, (5, 6)) => Some(PolicyName::PerconaHighCheckpoint),
        (Flavour::MySql, (5, 6)) => Some(PolicyName::PageCleaner56),
        (Flavour::MySql | Flavour::Percona, (5, 7)) => Some(PolicyName::PageCleaner57),
        (Flavour::MySql | Flavour::Percona, (8.., _)) => Some(PolicyName::PageCleaner84),
        (Flavour::MySql, (5, 5)) => Some(PolicyName::Adaptive),
        _ => None,
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
        // Tuning changed the load of every second.
        watched.settings.push(TunedSetting::default());
        let refused = Recording::of_watched(&watched, "R".to_owned(), (true, false)).err().unwrap();
        assert!(refused.contains("give a recording of `iostrata watch`"), "{refused}");
        watched.settings.clear();
        watched.tps = None;
        let refused = Recording::of_watched(&watched, "R".to_owned(), (true, false)).err().unwrap();
        assert!(refused.contains("no transaction"), "{refused}");
    }

    #[test]
    fn each_server_has_the_policy_of_its_version() {
        for (flavour, version, policy) in [
            ("mysql", "5.6.24", Some(PolicyName::PageCleaner56)),
            ("mysql", "5.7.44-log", Some(PolicyName::PageCleaner57)),
            ("mysql", "8.4.6", Some(PolicyName::PageCleaner84)),
            ("mysql", "9.7.4", Some(PolicyName::PageCleaner84)),
            ("mariadb", "5.5.5-10.11.2-MariaDB-log", Some(PolicyName::Mariadb)),
            ("mariadb", "11.8.9-MariaDB-4 from Debian", Some(PolicyName::Mariadb)),
            ("mariadb", "10.4.34-MariaDB", Some(PolicyName::PageCleaner57)),
            ("percona", "5.6.51-91.0", Some(PolicyName::PerconaHighCheckpoint)),
            ("tidb", "8.0.11-TiDB-v7.5.0", None),
        ] {
            let found = policy_of(&ServerVersion::recognise(version, flavour));
            assert_eq!(found, policy, "{flavour} {version}");
        }
    }

    #[test]
    fn what_a_target_does_not_tell_is_assumed_and_named() {
        let mut had = BTreeMap::new();
        for (name, value) in [
            ("innodb_log_file_size", "104857600"),
            ("innodb_io_capacity", "1000"),
            ("innodb_max_dirty_pages_pct", "90.000000"),
            ("innodb_doublewrite", "fast"),
            ("innodb_max_purge_lag", "1000"),
        ] {
            had.insert(name.to_owned(), value.to_owned());
            assert!(is_recorded(name));
        }
        let mut assumed = Vec::new();
        let version = "11.8.9-MariaDB";
        let server = Had { flavour: "mariadb", version, settings: &had, turns: false };
        let found = settings(&server, &mut assumed);
        assert_eq!((found.redo_log_capacity, found.io_capacity), (100 << 20, 1000));
        assert_eq!((found.policy, found.max_purge_lag), (PolicyName::Mariadb, 0));
        let what: Vec<&str> = assumed.iter().map(|one| one.what.as_str()).collect();
        let known = ["innodb_doublewrite", "io_capacity_max", "buffer pool", "flush_neighbors"];
        assert_eq!(what, known);
        let mut assumed = Vec::new();
        let none = Had { flavour: "", version: "", settings: &BTreeMap::new(), turns: false };
        let found = settings(&none, &mut assumed);
        assert_eq!((found.io_capacity, found.redo_log_capacity), (200, 1 << 30));
        assert_eq!(found.policy, PolicyName::PageCleaner84);
        assert_eq!(assumed.len(), 6, "{assumed:?}");
    }

    #[test]
    fn neighbours_of_a_mariadb_are_written_along_on_disks_that_turn() {
        let had = [("innodb_flush_neighbors".to_owned(), "1".to_owned())].into();
        let of = |flavour, version, turns| {
            let mut assumed = Vec::new();
            let server = Had { flavour, version, settings: &had, turns };
            let found = settings(&server, &mut assumed).flush_neighbors;
            (found, assumed.iter().any(|one| one.what == "innodb_flush_neighbors"))
        };
        assert_eq!(of("mariadb", "10.11.6-MariaDB", false), (0, true));
        assert_eq!(of("mariadb", "10.11.6-MariaDB", true), (1, false));
        assert_eq!(of("mariadb", "10.3.39-MariaDB", false), (1, false));
        assert_eq!(of("mysql", "5.7.44", false), (1, false));
    }
}
