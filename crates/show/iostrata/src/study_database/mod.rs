//! The databases of a study's points: the embedded engine and private servers on the study's own
//! volumes.
//!
//! Invariants: what a study's text states about a server is checked by starting it; tables are
//! loaded once for all points that can share them, which are those that agree on the rows and on
//! what is decided when the data is created.

mod server;

pub use server::ServerPrograms;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_change::{Platform, Session};
use iostrata_database::target::Target;
use iostrata_embedded::EmbeddedTarget;
use iostrata_load::TransactionSource;
use iostrata_plan::TransactionSpec;
use iostrata_plan::study::setting::{ENGINE, OF_ENGINE, REDO_DIRECTORY, engine_settings};
use iostrata_study::StudyError;
use iostrata_study::factorial::{DatabasePlace, Databases, StudiedDatabase};
use iostrata_workload::{LoadOptions, Workload, WorkloadError, WorkloadSettings};

use self::server::{LoadedServers, StudyServer};
use crate::test_database::TestDatabase;

/// Tables are equal, whatever the seed of a replicate is.
const TABLE_SEED: u64 = 1;
/// What is decided when the data is created.
const OF_DATA: [&str; 2] = ["page_size", "data_files"];
/// Databases of a study, each loaded once.
#[derive(Debug, Default)]
pub struct StudyDatabases {
    loaded: BTreeSet<PathBuf>,
    servers: LoadedServers,
}

impl StudyDatabases {
    /// With the server programs that the user named.
    pub fn new(programs: ServerPrograms) -> Self {
        Self { servers: LoadedServers::new(programs), ..Self::default() }
    }

    /// The directory of the tables that a load shares with others.
    fn directory(workload: &dyn Workload, load: &TransactionSpec, below: &Path) -> PathBuf {
        let mut name = workload.tables_name();
        for of_data in OF_DATA {
            if let Some(value) = load.settings.get(&format!("{OF_ENGINE}{of_data}")) {
                name.push_str(&format!("-{of_data}-{value}"));
            }
        }
        below.join(name)
    }

    fn engine(
        &mut self,
        load: &TransactionSpec,
        place: &DatabasePlace,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<StudyDatabase, StudyError> {
        let workload = workload_of(load)?;
        let directory = Self::directory(&*workload, load, &place.data);
        let mut settings = engine_settings(load);
        if let Some(redo) = &place.redo {
            let redo = Self::directory(&*workload, load, redo);
            std::fs::create_dir_all(&redo).map_err(|error| StudyError::NotStarted {
                version: "the engine".to_owned(),
                said: format!("cannot make {}: {error}", redo.display()),
            })?;
            settings.push((REDO_DIRECTORY.to_owned(), redo.display().to_string()));
        }
        let target = EmbeddedTarget::open(&directory, &workload.schema(), &settings)?;
        if !self.loaded.contains(&directory) {
            progress(&format!("loading {}", workload.tables_name()));
            workload.load(&target, &tables(1, stop), &|_| ())?;
            self.loaded.insert(directory);
        }
        if !stop.load(Ordering::Relaxed) {
            progress("reading the tables");
            workload.read_all(&target)?;
        }
        Ok(StudyDatabase { workload, open: Some(TestDatabase::Engine(target)), server: None })
    }
}

impl<W: Platform> Databases<W> for StudyDatabases {
    fn open(
        &mut self,
        session: &mut Session<W>,
        load: &TransactionSpec,
        place: &DatabasePlace,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Box<dyn StudiedDatabase<W>>, StudyError> {
        if load.target == ENGINE {
            return Ok(Box::new(self.engine(load, place, stop, progress)?));
        }
        let workload = workload_of(load)?;
        let server = self.servers.open(session, (&*workload, load), place, stop, progress)?;
        Ok(Box::new(StudyDatabase { workload, open: None, server: Some(server) }))
    }

    fn forget(&mut self, session: &mut Session<W>, dir: &Path) -> Result<(), StudyError> {
        self.loaded.retain(|loaded| !loaded.starts_with(dir));
        self.servers.forget(session, dir)
    }
}

/// The workload that the words of a load name.
fn workload_of(load: &TransactionSpec) -> Result<Box<dyn Workload>, StudyError> {
    let settings = WorkloadSettings::to_load(&load.settings);
    iostrata_workload::workload(&load.workload, &settings).map_err(study_error)
}

fn study_error(error: WorkloadError) -> StudyError {
    match error {
        WorkloadError::Setting(why) => {
            StudyError::NotHere { why, fix: "change it in the study's text".to_owned() }
        }
        WorkloadError::Target(error) => error.into(),
    }
}

/// How tables are loaded, in place of what an attempt before left half done.
fn tables(threads: usize, stop: &AtomicBool) -> LoadOptions<'_> {
    LoadOptions { threads, seed: TABLE_SEED, resets: true, stop }
}

/// A database for a point.
struct StudyDatabase {
    workload: Box<dyn Workload>,
    /// An engine always, a server while it runs.
    open: Option<TestDatabase>,
    /// The server; an engine runs in this process, which is in the point's groups already.
    server: Option<StudyServer>,
}

impl StudyDatabase {
    fn open(&self) -> Result<&TestDatabase, StudyError> {
        self.open.as_ref().ok_or_else(|| StudyError::NotStarted {
            version: self.server.as_ref().map_or_else(String::new, StudyServer::version),
            said: "it was not started".to_owned(),
        })
    }
}

impl<W: Platform> StudiedDatabase<W> for StudyDatabase {
    fn begin(
        &mut self,
        session: &mut Session<W>,
        group: Option<&str>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), StudyError> {
        let Some(server) = &self.server else { return Ok(()) };
        progress(&format!("starting {}", server.version()));
        let database = self.open.insert(server.start(session, group)?);
        progress("reading the tables");
        Ok(self.workload.read_all(database.target())?)
    }

    fn end(&mut self, session: &mut Session<W>) -> Result<(), StudyError> {
        let Some(server) = &self.server else { return Ok(()) };
        self.open = None;
        server.end(session)
    }

    fn target(&self) -> Result<&dyn Target, StudyError> {
        Ok(self.open()?.target())
    }

    fn source(
        &self,
        load: &TransactionSpec,
    ) -> Result<Box<dyn TransactionSource + '_>, StudyError> {
        self.open()?.source(&*workload_of(load)?, load.seed).map_err(study_error)
    }

    fn last_words(&self, session: &Session<W>) -> Option<String> {
        self.server.as_ref().and_then(|server| server.last_words(session))
    }

    fn close(self: Box<Self>) -> Result<(), StudyError> {
        Ok(self.open.map_or(Ok(()), TestDatabase::close)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(workload: &str, settings: &[(&str, &str)]) -> TransactionSpec {
        let mut load = TransactionSpec::new(workload, "engine");
        let own = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        load.settings.extend(own);
        load
    }

    #[test]
    fn points_share_their_tables_unless_the_data_itself_differs() {
        let of = |settings: &[(&str, &str)]| {
            let load = load("updates", settings);
            StudyDatabases::directory(&*workload_of(&load).unwrap(), &load, Path::new("/v"))
        };
        let plain = of(&[("rows", "9")]);
        assert_eq!(plain, of(&[("rows", "9"), ("engine.policy", "adaptive")]));
        assert_ne!(plain, of(&[("rows", "8")]));
        assert_ne!(plain, of(&[("rows", "9"), ("engine.page_size", "4K")]));
    }

    #[test]
    fn a_load_that_is_none_is_refused() {
        let refused = workload_of(&load("updates", &[("rows", "0")])).unwrap_err().to_string();
        assert!(refused.contains("at least 1") && refused.contains("study's text"), "{refused}");
    }
}
