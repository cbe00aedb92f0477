//! What the run directory of a driven database says of flushing there.
//!
//! Invariant: what the recording does not say is taken from somewhere else and named; a directory
//! that says too little is refused with what to do.

use std::path::Path;

use iostrata_run::{
    Event, FlushAssumption, FlushFigures, Replicate, RunKind, RunReader, RunResult, TargetCourse,
    TransactionDocument,
};
use iostrata_server::{Flavour, ServerVersion};
use iostrata_settings::{PolicyName, Settings};
use iostrata_sim::flush::{Demand, FOLLOWED, RecordedWindow};
use iostrata_study::transactions_per_s;
use iostrata_units::Size;

use super::flush_plan::{POOL_BYTES, REDO_BYTES, SERVER_SETTINGS};
use crate::exit_error::ExitError;

/// Settings that say how large the redo is, where one by itself does not.
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
    /// Reads a run directory; `needs_redo` unless the arguments say how much redo there is.
    ///
    /// # Errors
    /// A directory that is no such run, or whose figures are not enough.
    pub fn read(dir: &Path, needs_redo: bool) -> Result<Self, ExitError> {
        let run = dir.display().to_string();
        let reader =
            RunReader::open(dir).map_err(|error| ExitError::Usage(format!("--from: {error}")))?;
        let refused = |why: String| ExitError::Usage(format!("--from {run}: {why}"));
        let document = document(&reader).map_err(refused)?;
        if document.tps <= 0.0 {
            return Err(refused("no transaction was completed in it; record another".to_owned()));
        }
        let course = course(&reader, document).unwrap_or_default();
        let target = format!("{} {}", document.target.flavour, document.target.version);
        check_redo(&course, &target, document.tps, needs_redo).map_err(refused)?;
        let mut assumed = Vec::new();
        let settings = settings(document, &mut assumed);
        let figures = FlushFigures {
            tps: document.tps,
            redo_bytes_per_s: course.redo_bytes_per_s,
            pages_dirtied_per_s: course.pages_dirtied_per_s,
            checkpoint_age_pct_mean: course.checkpoint_age_pct_mean,
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
}

fn document(reader: &RunReader) -> Result<&TransactionDocument, String> {
    let kind = reader.manifest().kind;
    match (reader.result(), kind) {
        (Some(RunResult::Tpcc(document) | RunResult::Oltp(document)), _) => Ok(document),
        (None, RunKind::Tpcc | RunKind::Oltp | RunKind::Stress | RunKind::Insert) => Err(
            "the run was stopped before its end and has no result; record it again and let it end"
                .to_owned(),
        ),
        _ => Err(format!(
            "it is a run of `{}`; give one of `iostrata tpcc run`, or of `run` of oltp, stress or \
             insert",
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

/// The engine's settings that are nearest to the target's.
fn settings(document: &TransactionDocument, assumed: &mut Vec<FlushAssumption>) -> Settings {
    let recorded = &document.target.settings;
    let of = |wanted: &str| {
        let found = recorded.iter().find(|(name, _)| bare(name) == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let mut settings = Settings::default();
    let mut assume = |what: &str, taken_as: String| {
        assumed.push(FlushAssumption { what: what.to_owned(), taken_as });
    };
    // The policy is told by the version, the redo may be several files, and files are written
    // directly in the model.
    let own = ["policy", "redo_log_capacity", "flush_method"];
    for (name, value) in recorded.iter().filter(|(name, _)| !own.contains(&bare(name))) {
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
    let number = |name: &str| of(name)?.parse::<u64>().ok();
    let files = || Some(number("log_file_size")? * number("log_files_in_group").unwrap_or(1));
    let redo = of("redo_log_capacity").map(str::to_owned);
    let redo = redo.or_else(|| files().map(|bytes| bytes.to_string()));
    if redo.is_none_or(|text| settings.set("redo_log_capacity", &text).is_err()) {
        settings.redo_log_capacity = REDO_BYTES;
        assume("redo", Size(REDO_BYTES).to_string());
    }
    let policy = match document.target.flavour.as_str() {
        "engine" => of("policy")
            .and_then(|word| PolicyName::ALL.iter().find(|name| name.word() == word).copied()),
        flavour => policy_of(&ServerVersion::recognise(&document.target.version, flavour)),
    };
    settings.policy = policy.unwrap_or_else(|| {
        let name = match document.target.flavour.as_str() {
            "engine" => PolicyName::Steady,
            _ => PolicyName::PageCleaner84,
        };
        assume("policy", name.word().to_owned());
        name
    });
    settings
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
    use super::*;

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
        let mut document = TransactionDocument::default();
        document.target.flavour = "mariadb".to_owned();
        document.target.version = "11.8.9-MariaDB".to_owned();
        for (name, value) in [
            ("innodb_log_file_size", "104857600"),
            ("innodb_io_capacity", "1000"),
            ("innodb_max_dirty_pages_pct", "90.000000"),
            ("innodb_doublewrite", "fast"),
            ("innodb_max_purge_lag", "1000"),
        ] {
            document.target.settings.insert(name.to_owned(), value.to_owned());
            assert!(is_recorded(name));
        }
        let mut assumed = Vec::new();
        let found = settings(&document, &mut assumed);
        assert_eq!((found.redo_log_capacity, found.io_capacity), (100 << 20, 1000));
        assert_eq!((found.policy, found.max_purge_lag), (PolicyName::Mariadb, 0));
        let what: Vec<&str> = assumed.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(what, ["innodb_doublewrite", "io_capacity_max", "buffer pool"]);
        let mut assumed = Vec::new();
        let found = settings(&TransactionDocument::default(), &mut assumed);
        assert_eq!((found.io_capacity, found.redo_log_capacity), (200, 1 << 30));
        assert_eq!(found.policy, PolicyName::PageCleaner84);
        assert_eq!(assumed.len(), 5, "{assumed:?}");
    }
}
