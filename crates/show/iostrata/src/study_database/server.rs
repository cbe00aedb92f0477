//! Private servers as databases of a study.
//!
//! Invariants: the data of a server is made and loaded once for all points that agree on it; a
//! server runs under the conditions and options of its point alone, from its start to its end. Its
//! data lies on the study's volume, its socket in a short directory of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use iostrata_change::{ChangeError, Platform, Session};
use iostrata_database::target::TargetError;
use iostrata_plan::TransactionSpec;
use iostrata_server::private::{DataSource, PrivateError, PrivatePlan, PrivateServer};
use iostrata_server::{AddressError, ServerAddress, ServerTarget, lacks_storage_engine};
use iostrata_study::StudyError;
use iostrata_study::factorial::DatabasePlace;
use iostrata_workload::Workload;

use super::options::ServerOptions;
use super::programs::ServerPrograms;
use super::tables;
use crate::test_database::TestDatabase;

/// The database of the tables.
const DATABASE: &str = "study";
/// Connections that load tables at the same time.
const LOADERS: usize = 4;

/// Servers whose data is loaded, by the directories of their data.
#[derive(Debug, Default)]
pub struct LoadedServers {
    programs: ServerPrograms,
    by_data: BTreeMap<PathBuf, Rc<RefCell<PrivateServer>>>,
    /// How many directories were made, for their names.
    made: usize,
}

impl LoadedServers {
    /// With the programs that the user named.
    pub fn new(programs: ServerPrograms) -> Self {
        Self { programs, ..Self::default() }
    }

    /// A server of a load, with its data made and loaded; it does not run yet.
    ///
    /// # Errors
    /// As `Databases::open`.
    pub fn open<W: Platform>(
        &mut self,
        session: &mut Session<W>,
        (workload, load): (&dyn Workload, &TransactionSpec),
        place: &DatabasePlace,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<StudyServer, StudyError> {
        let program = self.programs.find(&load.target)?;
        let options = ServerOptions::of(&program.version, load);
        let name = name_of_data(&program.version.to_string(), (workload, load), &options);
        let redo = place.redo.as_ref().map(|dir| dir.join(&name));
        let options = options.with_redo(redo.as_deref());
        let data = place.data.join(&name);
        let studied = StudyServer {
            server: match self.by_data.get(&data) {
                Some(server) => Rc::clone(server),
                None => {
                    progress(&format!("making the data of {}", program.version));
                    self.made += 1;
                    let dir = format!("iostrata-{}-{}", std::process::id(), self.made);
                    let plan = PrivatePlan {
                        data: DataSource::FreshAt(data.clone()),
                        options: options.of_data.clone(),
                        ..PrivatePlan::new(program, std::env::temp_dir().join(dir))
                    };
                    Rc::new(RefCell::new(made(session, &plan, redo.as_deref())?))
                }
            },
            options,
            storage_engine: load.settings.get("storage_engine").cloned(),
        };
        if self.by_data.contains_key(&data) || stop.load(Ordering::Relaxed) {
            return Ok(studied);
        }
        progress(&format!("loading {name}"));
        match studied.fill(session, workload, stop) {
            Ok(()) => drop(self.by_data.insert(data, Rc::clone(&studied.server))),
            Err(error) => {
                studied.remove(session, &data, redo.as_deref())?;
                return Err(error);
            }
        }
        Ok(studied)
    }

    /// Removes every server with data in a directory.
    ///
    /// # Errors
    /// What cannot be ended.
    pub fn forget<W: Platform>(
        &mut self,
        session: &mut Session<W>,
        dir: &Path,
    ) -> Result<(), StudyError> {
        let there: Vec<PathBuf> =
            self.by_data.keys().filter(|data| data.starts_with(dir)).cloned().collect();
        for data in there {
            // Points that used it have let go of it.
            let server = self.by_data.remove(&data).and_then(Rc::into_inner);
            if let Some(server) = server {
                server.into_inner().remove(session).map_err(|error| not_here(error, "", None))?;
            }
        }
        Ok(())
    }
}

/// Equal for loads that can share their data.
fn name_of_data(
    version: &str,
    (workload, load): (&dyn Workload, &TransactionSpec),
    options: &ServerOptions,
) -> String {
    let engine = load.settings.get("storage_engine");
    let of_data = engine.into_iter().chain(&options.of_data);
    let all = [version.to_owned(), workload.tables_name()].into_iter().chain(of_data.cloned());
    let name = all.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '.', "-")
}

/// Makes the data of a server.
fn made<W: Platform>(
    session: &mut Session<W>,
    plan: &PrivatePlan,
    redo: Option<&Path>,
) -> Result<PrivateServer, StudyError> {
    if let Some(dir) = redo {
        let version = &plan.program.version;
        let not_made = |error: std::io::Error| StudyError::NotStarted {
            version: version.to_string(),
            said: format!("cannot make {}: {error}", dir.display()),
        };
        // Below a directory that the study made, and removed with it.
        std::fs::create_dir_all(dir).map_err(not_made)?;
    }
    let version = plan.program.version.to_string();
    PrivateServer::prepare(session, plan).map_err(|error| {
        if let DataSource::FreshAt(data) = &plan.data {
            clear(data);
        }
        not_here(error, &version, None)
    })
}

/// Removes what a failed attempt left below the study's own directory; what stays shows in the next
/// attempt.
fn clear(dir: &Path) {
    let _ = std::fs::remove_dir_all(dir);
}

/// A server for the points of a study.
#[derive(Debug)]
pub struct StudyServer {
    server: Rc<RefCell<PrivateServer>>,
    options: ServerOptions,
    storage_engine: Option<String>,
}

impl StudyServer {
    /// Which one.
    pub fn version(&self) -> String {
        self.server.borrow().program().version.to_string()
    }

    /// Starts it for a point, in the groups of this name.
    ///
    /// # Errors
    /// As `StudiedDatabase::begin`.
    pub fn start<W: Platform>(
        &self,
        session: &mut Session<W>,
        group: Option<&str>,
    ) -> Result<TestDatabase, StudyError> {
        self.server.borrow_mut().enter(group);
        self.run(session, &self.options.at_start)
    }

    /// Shuts it down after a point.
    ///
    /// # Errors
    /// When it cannot be ended.
    pub fn end<W: Platform>(&self, session: &mut Session<W>) -> Result<(), StudyError> {
        let halted = self.halt(session);
        self.server.borrow_mut().enter(None);
        halted
    }

    /// What it said that has ended by itself; nothing while it runs.
    pub fn last_words<W: Platform>(&self, session: &Session<W>) -> Option<String> {
        self.server.borrow().last_words(session)
    }

    /// Loads the tables of a workload, and shuts it down.
    fn fill<W: Platform>(
        &self,
        session: &mut Session<W>,
        workload: &dyn Workload,
        stop: &AtomicBool,
    ) -> Result<(), StudyError> {
        let database = self.run(session, &self.options.for_loading())?;
        let loaded = workload.load(database.target(), &tables(LOADERS, stop), &|_| ());
        drop(database);
        let stopped = self.halt(session);
        loaded.map_err(|error| self.told(error))?;
        stopped
    }

    fn run<W: Platform>(
        &self,
        session: &mut Session<W>,
        options: &[String],
    ) -> Result<TestDatabase, StudyError> {
        let version = self.version();
        let mut server = self.server.borrow_mut();
        let engine = self.storage_engine.as_deref();
        server.run(session, options).map_err(|error| not_here(error, &version, engine))?;
        let address = server.address().replacen("/?", &format!("/{DATABASE}?"), 1);
        drop(server);
        let opened = address
            .parse::<ServerAddress>()
            .map_err(|error: AddressError| StudyError::NotStarted {
                version,
                said: error.to_string(),
            })
            .and_then(|address| {
                ServerTarget::create_database(address.clone())?;
                Ok(ServerTarget::open(address, self.storage_engine.clone())?)
            });
        match opened {
            Ok(target) => Ok(TestDatabase::Server(Box::new(target))),
            Err(error) => {
                self.halt(session)?;
                Err(error)
            }
        }
    }

    fn halt<W: Platform>(&self, session: &mut Session<W>) -> Result<(), StudyError> {
        let version = self.version();
        self.server.borrow_mut().stop(session).map_err(|error| not_here(error, &version, None))
    }

    /// Removes it with its data, so that the next point that wants it begins anew.
    fn remove<W: Platform>(
        self,
        session: &mut Session<W>,
        data: &Path,
        redo: Option<&Path>,
    ) -> Result<(), StudyError> {
        if let Some(server) = Rc::into_inner(self.server) {
            server.into_inner().remove(session).map_err(|error| not_here(error, "", None))?;
        }
        clear(data);
        redo.iter().for_each(|dir| clear(dir));
        Ok(())
    }

    /// What a server lacks is no failure.
    fn told(&self, error: TargetError) -> StudyError {
        match lacks_storage_engine(&error) {
            true => no_engine(format!("{} says: {}", self.version(), error.text)),
            false => error.into(),
        }
    }
}

/// Whether a server that is started says that it lacks a storage engine: in one sentence
/// where it does not know it, in another where it is switched off.
fn is_lacking_at_start(said: &str, storage_engine: &str) -> bool {
    let said = said.to_ascii_lowercase();
    let name = storage_engine.to_ascii_lowercase();
    let sentences = [
        format!("unknown/unsupported storage engine: {name}"),
        format!("storage engine ({name}) is not available"),
    ];
    sentences.iter().any(|sentence| said.contains(sentence.as_str()))
}

fn no_engine(why: String) -> StudyError {
    let fix = "name one of SHOW ENGINES, or load its plugin: server.plugin_load_add".to_owned();
    StudyError::NotHere { why, fix }
}

/// What a server lacks, apart from what went wrong with it.
fn not_here(error: PrivateError, version: &str, storage_engine: Option<&str>) -> StudyError {
    let lacks = |said: &str| storage_engine.is_some_and(|engine| is_lacking_at_start(said, engine));
    match error {
        PrivateError::UnknownOption { version, said } => StudyError::NotHere {
            why: format!("{version} refuses an option: {said}"),
            fix: "leave it out for this target, or see its manual for the name".to_owned(),
        },
        PrivateError::Reserved { option, why } => StudyError::NotHere {
            why: format!("{option} cannot be chosen: {why}"),
            fix: "leave it out".to_owned(),
        },
        PrivateError::Change(ChangeError::Unavailable { why, .. }) if lacks(&why) => {
            no_engine(format!("{version} says: {why}"))
        }
        PrivateError::Change(ChangeError::Unavailable { why, .. }) => {
            StudyError::NotStarted { version: version.to_owned(), said: why }
        }
        PrivateError::Change(error) => error.into(),
        other => StudyError::NotStarted { version: version.to_owned(), said: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use iostrata_database::target::Trouble;

    use super::*;

    #[test]
    fn only_what_names_a_missing_engine_is_one() {
        let error = |code: &str, text: &str| TargetError {
            trouble: Trouble::Failed,
            code: code.to_owned(),
            target: String::new(),
            text: text.to_owned(),
            fix: None,
        };
        let full = "Got error 28 \"No space left on device\" from storage engine InnoDB";
        assert!(!lacks_storage_engine(&error("1030", full)), "a full disk");
        assert!(lacks_storage_engine(&error("1286", "Unknown storage engine 'RocksDB'")));
        let unknown = "Unknown/unsupported storage engine: RocksDB";
        assert!(is_lacking_at_start(unknown, "rocksdb"));
        assert!(!is_lacking_at_start(unknown, "MyISAM"), "another one than was asked for");
        let off = "Default storage engine (MyISAM) is not available";
        assert!(is_lacking_at_start(off, "MyISAM"));
        let plugin = "Plugin 'InnoDB' registration as a STORAGE ENGINE failed. RocksDB";
        assert!(!is_lacking_at_start(plugin, "RocksDB"));
    }
}
