//! The databases of a study's points: the embedded engine and private servers on the study's own
//! volumes.
//!
//! Invariants: what a study's text says of the engine is checked before anything is touched, what
//! it says of a server by starting it; tables are loaded once for all points that can share them,
//! which are those that agree on the rows and on what is decided when the data is created.

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
use iostrata_engine::{Engine, SettingError, Settings};
use iostrata_load::TransactionSource;
use iostrata_spec::TransactionSpec;
use iostrata_spec::study::setting::{ENGINE, OF_BOTH, OF_ENGINE, OF_SECOND, OF_SERVER};
use iostrata_spec::study::{DatabaseSetting, Extent, MeasuringOverrides, StudySpec};
use iostrata_study::StudyError;
use iostrata_study::factorial::{DatabasePlace, Databases, StudiedDatabase};
use iostrata_target::Target;

use crate::exit_error::ExitError;
use server::LoadedServers;
use workload::StudyWorkload;

/// A machine with much memory would give the engine of a study much more than its tables need.
const SMALL: [(&str, &str); 3] =
    [("buffer_pool_size", "128M"), ("redo_log_capacity", "128M"), ("autoextend_increment", "8M")];
/// What is decided when the data is created.
const OF_DATA: [&str; 2] = ["page_size", "data_files"];
/// Where the redo lies is the study's affair: on the volume that it is about, or on one beside it.
const NOT_OURS: &str = "redo_directory";

/// Checks what a study says of the engine.
///
/// # Errors
/// The first setting that the engine does not have or take, with its place; the first point whose
/// settings do not go together.
pub fn check(study: &StudySpec) -> Result<(), ExitError> {
    for set in study.database_settings() {
        if let Some((why, fix)) = wrong_with(&set) {
            return Err(ExitError::Usage(study.refusal(&set, &why, &fix).to_string()));
        }
    }
    for extent in [Extent::Quick, Extent::Full] {
        let plan = study.plan(extent, None, &MeasuringOverrides::default());
        let plan = plan.map_err(|error| ExitError::Usage(error.to_string()))?;
        for cell in &plan.cells {
            for (load, which) in [(&cell.transactions, ""), (&cell.second, ", second engine")] {
                let Some(load) = load.as_ref().filter(|load| load.target == ENGINE) else {
                    continue;
                };
                together(load).map_err(|error| {
                    let place = format!("study {}, point {}{which}", study.name, cell.id);
                    ExitError::Usage(format!("{place}: {error}"))
                })?;
            }
        }
    }
    Ok(())
}

/// Why a setting cannot be, and the fix. What a server takes, only that server knows.
fn wrong_with(set: &DatabaseSetting) -> Option<(String, String)> {
    if set.name.starts_with(OF_SERVER) {
        return None;
    }
    let own = [OF_ENGINE, OF_SECOND, OF_BOTH].iter().find_map(|of| set.name.strip_prefix(of));
    let name = own.unwrap_or(set.name);
    if name == NOT_OURS {
        let fix = "leave it away: redo lies on the volume, with the data, or set redo_volume";
        return Some(("is not for studies".to_owned(), fix.to_owned()));
    }
    if set.name.starts_with(OF_BOTH) && !options::is_shared(name) {
        let why = format!("{name} is no setting that the engine and servers share");
        let names = options::shared_names();
        return Some((why, format!("use engine.NAME or server.NAME; shared are {names}")));
    }
    let error = Settings::default().set(name, &set.value).err()?;
    let fix = match error {
        SettingError::Unknown { .. } => "docs/settings.md lists the settings of the engine",
        _ => "see docs/settings.md",
    };
    Some((error.to_string(), fix.to_owned()))
}

/// Whether the settings of a load go together.
fn together(load: &TransactionSpec) -> Result<(), SettingError> {
    let mut settings = Engine::server_settings();
    for (name, value) in settings_of(load) {
        settings.set(&name, &value)?;
    }
    settings.check()
}

/// The engine's settings for a load.
fn settings_of(load: &TransactionSpec) -> Vec<(String, String)> {
    let own = |(name, value): (&String, &String)| {
        Some((name.strip_prefix(OF_ENGINE)?.to_owned(), value.clone()))
    };
    let own: Vec<(String, String)> = load.settings.iter().filter_map(own).collect();
    let small = SMALL.map(|(name, value)| (name.to_owned(), value.to_owned()));
    small.into_iter().chain(own).collect()
}

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
        let mut settings = settings_of(load);
        if let Some(redo) = &place.redo {
            let redo = Self::directory(load, redo);
            std::fs::create_dir_all(&redo).map_err(|error| StudyError::NotStarted {
                version: "the engine".to_owned(),
                said: format!("cannot make {}: {error}", redo.display()),
            })?;
            settings.push((NOT_OURS.to_owned(), redo.display().to_string()));
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

    fn refused(settings: &str) -> String {
        let text = format!(
            "name = 'a'\ntitle = 'a'\n[base]\nworkload = 'updates'\n[factors]\n{settings}\n"
        );
        let spec = StudySpec::parse(&text, "a.toml").unwrap();
        check(&spec).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_the_engine_does_not_have_is_refused_with_its_place() {
        assert_eq!(refused("'engine.policy' = ['adaptive', 'steady']"), "");
        let text = refused("'engine.polciy' = ['adaptive']");
        assert!(text.starts_with("a.toml:6:20: engine.polciy"), "{text}");
        assert!(text.contains("policy"), "{text}");
        let text = refused("workers = [1]\n'engine.policy' = ['adaptive', 'adaptve']");
        assert!(text.starts_with("a.toml:7:32: engine.policy `adaptve`"), "{text}");
        let text = refused("'engine.redo_directory' = ['/tmp']");
        assert!(text.contains("redo lies on the volume"), "{text}");
        let text = refused("'database.policy' = ['steady']");
        assert!(text.starts_with("a.toml:6:22: database.policy"), "{text}");
        assert!(text.contains("engine.NAME or server.NAME"), "{text}");
        let text = refused("'database.io_capacity' = ['many']");
        assert!(text.starts_with("a.toml:6:27: database.io_capacity"), "{text}");
        assert_eq!(refused("target = ['mysql']\n'server.any_thing' = ['at all']"), "");
        let text = refused("'engine.buffer_pool_size' = ['256K']\n'engine.page_size' = ['64K']");
        assert!(text.contains("point buffer256k"), "{text}");
    }
}
