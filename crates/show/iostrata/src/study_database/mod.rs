//! The databases of a study's points: the embedded engine and private servers on the study's own
//! volumes.
//!
//! Invariants: what a study's text says of a server is checked by starting it; tables are loaded
//! once for all points that can share them, which are those that agree on the rows and on what is
//! decided when the data is created.

mod options;
mod programs;
mod server;
mod workload;

pub use programs::ServerPrograms;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_change::{Platform, Session};
use iostrata_embedded::EmbeddedTarget;
use iostrata_load::TransactionSource;
use iostrata_plan::TransactionSpec;
use iostrata_plan::study::setting::{ENGINE, OF_ENGINE, REDO_DIRECTORY, engine_settings};
use iostrata_study::StudyError;
use iostrata_study::factorial::{DatabasePlace, Databases, StudiedDatabase};
use iostrata_target::Target;

use server::LoadedServers;
use workload::StudyWorkload;

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
    fn directory(load: &TransactionSpec, below: &Path) -> PathBuf {
        let mut name = StudyWorkload::tables(load);
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
    ) -> Result<StudyEngine, StudyError> {
        let directory = Self::directory(load, &place.data);
        let workload = StudyWorkload::of(load);
        let mut settings = engine_settings(load);
        if let Some(redo) = &place.redo {
            let redo = Self::directory(load, redo);
            std::fs::create_dir_all(&redo).map_err(|error| StudyError::NotStarted {
                version: "the engine".to_owned(),
                said: format!("cannot make {}: {error}", redo.display()),
            })?;
            settings.push((REDO_DIRECTORY.to_owned(), redo.display().to_string()));
        }
        let target = EmbeddedTarget::open(&directory, &workload.schema(), &settings)?;
        if !self.loaded.contains(&directory) {
            progress(&format!("loading {}", StudyWorkload::tables(load)));
            workload.load(&target, 1, stop)?;
            self.loaded.insert(directory);
        }
        if !stop.load(Ordering::Relaxed) {
            progress("reading the tables");
            workload.read_all(&target)?;
        }
        Ok(StudyEngine { target })
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
        Ok(Box::new(self.servers.open(session, load, place, stop, progress)?))
    }

    fn forget(&mut self, session: &mut Session<W>, dir: &Path) -> Result<(), StudyError> {
        self.loaded.retain(|loaded| !loaded.starts_with(dir));
        self.servers.forget(session, dir)
    }
}

/// An engine that is open for a point.
struct StudyEngine {
    target: EmbeddedTarget,
}

impl<W: Platform> StudiedDatabase<W> for StudyEngine {
    fn begin(
        &mut self,
        _session: &mut Session<W>,
        _group: Option<&str>,
        _progress: &mut dyn FnMut(&str),
    ) -> Result<(), StudyError> {
        // It runs in this process, which is in the groups already.
        Ok(())
    }

    fn end(&mut self, _session: &mut Session<W>) -> Result<(), StudyError> {
        Ok(())
    }

    fn target(&self) -> Result<&dyn Target, StudyError> {
        Ok(&self.target)
    }

    fn source(
        &self,
        load: &TransactionSpec,
    ) -> Result<Box<dyn TransactionSource + '_>, StudyError> {
        Ok(StudyWorkload::of(load).source(&self.target, false)?)
    }

    fn last_words(&self, _session: &Session<W>) -> Option<String> {
        None
    }

    fn close(self: Box<Self>) -> Result<(), StudyError> {
        Ok(self.target.close()?)
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
            StudyDatabases::directory(&load("updates", settings), Path::new("/v"))
        };
        let plain = of(&[("rows", "9")]);
        assert_eq!(plain, of(&[("rows", "9"), ("engine.policy", "adaptive")]));
        assert_ne!(plain, of(&[("rows", "8")]));
        assert_ne!(plain, of(&[("rows", "9"), ("engine.page_size", "4K")]));
    }
}
