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
use iostrata_plan::study::setting::{OF_BOTH, OF_SERVER, REDO_CAPACITY, SHARED};
use iostrata_server::private::{
    DataSource, PrivateError, PrivatePlan, PrivateServer, ProgramVersion, ServerProgram,
};
use iostrata_server::{AddressError, ServerAddress, ServerTarget, lacks_storage_engine};
use iostrata_stats::units::parse_size;
use iostrata_study::StudyError;
use iostrata_study::factorial::DatabasePlace;
use iostrata_workload::Workload;

use super::tables;
use crate::exit_error::ExitError;
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

    /// The last output of a server that has ended by itself; nothing while it runs.
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

    /// Removes it with its data, so that the next point that wants it starts over.
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
            true => no_engine(format!("{} reports: {}", self.version(), error.text)),
            false => error.into(),
        }
    }
}

/// Whether a server that is started reports that it lacks a storage engine: with one sentence where
/// it is unknown, with another where it is switched off.
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
            fix: "omit it for this target, or see its manual for the name".to_owned(),
        },
        PrivateError::Reserved { option, why } => StudyError::NotHere {
            why: format!("{option} cannot be chosen: {why}"),
            fix: "leave it out".to_owned(),
        },
        PrivateError::Change(ChangeError::Unavailable { why, .. }) if lacks(&why) => {
            no_engine(format!("{version} reports: {why}"))
        }
        PrivateError::Change(ChangeError::Unavailable { why, .. }) => {
            StudyError::NotStarted { version: version.to_owned(), said: why }
        }
        PrivateError::Change(error) => error.into(),
        other => StudyError::NotStarted { version: version.to_owned(), said: other.to_string() },
    }
}

const LOG_DIRECTORY: &str = "innodb_log_group_home_dir";
/// Settings of servers where a study gives none: what the engine has there, or what keeps a
/// restarted server from reading on its own what it had in memory before.
const DEFAULTS: [(&str, &str); 3] =
    [("buffer_pool_size", "128M"), (REDO_CAPACITY, "128M"), ("flush_method", "O_DIRECT")];
const ALWAYS: [&str; 4] = [
    "loose-innodb-buffer-pool-load-at-startup=OFF",
    "loose-innodb-buffer-pool-dump-at-shutdown=OFF",
    "loose-performance-schema=OFF",
    "loose-local-infile=ON",
];
/// While tables are loaded nothing has to survive a crash.
const LOADING: [&str; 2] = ["innodb-flush-log-at-trx-commit=0", "innodb-buffer-pool-size=256M"];
/// Decided when the data is created.
const OF_DATA: [&str; 7] = [
    "innodb_page_size",
    "innodb_data_file_path",
    "innodb_undo_tablespaces",
    "innodb_checksum_algorithm",
    LOG_DIRECTORY,
    "innodb_file_per_table",
    "lower_case_table_names",
];

/// What a server is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// What its data was created with.
    pub of_data: Vec<String>,
    /// Everything else.
    pub at_start: Vec<String>,
}

impl ServerOptions {
    /// The options of a load on a server of this version.
    pub fn of(version: &ProgramVersion, load: &TransactionSpec) -> Self {
        let mut all: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
        let shared = load
            .settings
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(OF_BOTH)?, value.as_str())));
        let shared: Vec<(&str, &str)> = shared.collect();
        let unsaid = DEFAULTS.iter().filter(|(name, _)| shared.iter().all(|own| own.0 != *name));
        for (name, value) in unsaid.copied().chain(shared.iter().copied()) {
            all.extend(named_by(version, name, value));
        }
        if let Some(engine) = load.settings.get("storage_engine") {
            // So that a server without it reports that.
            all.push(format!("default-storage-engine={engine}"));
        }
        all.extend(load.settings.iter().filter_map(|(name, value)| {
            Some(format!("{}={value}", name.strip_prefix(OF_SERVER)?))
        }));
        let (of_data, at_start) = all.into_iter().partition(|option| is_of_data(option));
        Self { of_data, at_start }
    }

    /// The same with its redo in another directory, where one is named; the study's own words win.
    pub fn with_redo(mut self, dir: Option<&Path>) -> Self {
        let option = dir.map(|dir| format!("{LOG_DIRECTORY}={}", dir.display()));
        self.of_data.splice(0..0, option);
        self
    }

    /// The options under which tables are loaded.
    pub fn for_loading(&self) -> Vec<String> {
        self.at_start.iter().cloned().chain(LOADING.map(str::to_owned)).collect()
    }
}

fn is_of_data(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or(option).replace('-', "_");
    OF_DATA.contains(&name.as_str())
}

/// A shared setting as a version calls it.
fn named_by(version: &ProgramVersion, name: &str, value: &str) -> Vec<String> {
    if name == REDO_CAPACITY {
        return redo(version, value);
    }
    let own = SHARED.iter().find(|(engine, _)| *engine == name);
    own.map(|(_, server)| format!("{server}={}", in_bytes(value))).into_iter().collect()
}

/// One file, several, or a capacity.
fn redo(version: &ProgramVersion, value: &str) -> Vec<String> {
    let has_capacity = !version.is_mariadb
        && (version.is_from(8, 1) || (version.is_from(8, 0) && version.number.2 >= 30));
    if has_capacity {
        return vec![format!("innodb_redo_log_capacity={}", in_bytes(value))];
    }
    if version.is_mariadb && version.is_from(10, 5) {
        return vec![format!("innodb_log_file_size={}", in_bytes(value))];
    }
    match parse_size(value) {
        Ok(bytes) => vec![
            format!("innodb_log_file_size={}", bytes / 2),
            "innodb_log_files_in_group=2".to_owned(),
        ],
        Err(_) => vec![format!("innodb_log_file_size={value}")],
    }
}

/// Sizes as plain numbers: not every version takes every unit.
fn in_bytes(value: &str) -> String {
    let has_unit = value.ends_with(|c: char| c.is_ascii_alphabetic());
    let size = parse_size(value).ok().filter(|_| has_unit);
    size.map_or_else(|| value.to_owned(), |bytes| bytes.to_string())
}

/// Names further programs, separated by `:`.
const VARIABLE: &str = "IOSTRATA_SERVER_PROGRAMS";
/// What is looked for where programs are installed.
const INSTALLED: [&str; 2] = ["mariadbd", "mysqld"];

/// Server programs at hand.
#[derive(Debug, Default)]
pub struct ServerPrograms {
    named: Vec<ServerProgram>,
    /// Those of the environment and of the system, once they were looked for.
    others: Option<Vec<ServerProgram>>,
}

impl ServerPrograms {
    /// With the programs that the user named.
    ///
    /// # Errors
    /// The first one that is no server.
    pub fn named(programs: &[String]) -> Result<Self, ExitError> {
        let find = |asked: &String| {
            ServerProgram::find(asked)
                .map_err(|error| ExitError::Usage(format!("--server {asked}: {error}")))
        };
        let named = programs.iter().map(find).collect::<Result<_, _>>()?;
        Ok(Self { named, others: None })
    }

    /// The program of a target such as `mariadb-10.11` or `mysql`.
    ///
    /// # Errors
    /// [`StudyError::NotHere`].
    pub fn find(&mut self, target: &str) -> Result<ServerProgram, StudyError> {
        let others = self.others.get_or_insert_with(others);
        let mut all = self.named.iter().chain(others.iter());
        if let Some(program) = all.find(|program| is_meant(target, &program.version)) {
            return Ok(program.clone());
        }
        let known = self.named.iter().chain(others.iter());
        let known: Vec<String> = known.map(|program| program.version.to_string()).collect();
        let there = match known.is_empty() {
            true => "no server program is".to_owned(),
            false => format!("only {} are", known.join(", ")),
        };
        Err(StudyError::NotHere {
            why: format!("there is no program of {target} here: {there}"),
            fix: format!("give one with --server PROGRAM, or name it in {VARIABLE}"),
        })
    }
}

/// What the environment names and the system has. One that does not run is none.
fn others() -> Vec<ServerProgram> {
    let variable = std::env::var(VARIABLE).unwrap_or_default();
    let asked = variable.split(':').filter(|path| !path.is_empty()).chain(INSTALLED);
    let mut found: Vec<ServerProgram> = Vec::new();
    for program in asked.filter_map(|asked| ServerProgram::find(asked).ok()) {
        if found.iter().all(|other| other.path != program.path) {
            found.push(program);
        }
    }
    found
}

/// Whether a program is of the flavour, and of the version as far as that is named.
fn is_meant(target: &str, version: &ProgramVersion) -> bool {
    let (flavour, asked) = target.split_once('-').unwrap_or((target, ""));
    let (major, minor, patch) = version.number;
    let parts = [major, minor, patch].map(|number| number.to_string());
    let asked: Vec<&str> = asked.split('.').filter(|part| !part.is_empty()).collect();
    (flavour == "mariadb") == version.is_mariadb
        && asked.iter().zip(&parts).all(|(asked, is)| asked == is)
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

    fn version(said: &str) -> ProgramVersion {
        ProgramVersion::parse(&format!("mysqld  Ver {said} for Linux on x86_64")).unwrap()
    }

    fn options(said: &str, settings: &[(&str, &str)]) -> ServerOptions {
        let mut load = TransactionSpec::new("tpcc", "mysql");
        let own = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        load.settings.extend(own);
        ServerOptions::of(&version(said), &load)
    }

    #[test]
    fn one_name_becomes_what_each_version_calls_it() {
        let settings = [("database.redo_log_capacity", "1G"), ("database.io_capacity", "200")];
        let redo = |said: &str| -> Vec<String> {
            let all = options(said, &settings).at_start;
            assert!(all.contains(&"innodb_io_capacity=200".to_owned()), "{all:?}");
            all.into_iter().filter(|one| one.contains("log_file") || one.contains("redo")).collect()
        };
        assert_eq!(redo("9.7.4"), ["innodb_redo_log_capacity=1073741824"]);
        assert_eq!(redo("10.11.6-MariaDB"), ["innodb_log_file_size=1073741824"]);
        let halves = ["innodb_log_file_size=536870912", "innodb_log_files_in_group=2"];
        assert_eq!(redo("5.6.24"), halves);
        assert_eq!(redo("8.0.29"), halves);
    }

    #[test]
    fn what_the_study_says_of_the_server_comes_last_and_data_is_apart() {
        let found = options(
            "9.7.4",
            &[
                ("server.innodb_flush_method", "fsync"),
                ("server.innodb_page_size", "4096"),
                ("storage_engine", "MyISAM"),
            ],
        );
        assert_eq!(found.of_data, ["innodb_page_size=4096"]);
        let place = |word: &str| found.at_start.iter().position(|one| one == word);
        let (own, default) = ("innodb_flush_method=fsync", "innodb_flush_method=O_DIRECT");
        assert!(place(own) > place(default) && place(default).is_some(), "{found:?}");
        assert!(place("default-storage-engine=MyISAM").is_some());
    }

    #[test]
    fn a_target_is_a_flavour_and_as_much_of_a_version_as_it_names() {
        let maria = ProgramVersion::parse("mariadbd  Ver 10.11.6-MariaDB for x on y").unwrap();
        let mysql = ProgramVersion::parse("mysqld  Ver 9.7.4 for Linux on x86_64 (x)").unwrap();
        for target in ["mariadb", "mariadb-10", "mariadb-10.11", "mariadb-10.11.6"] {
            assert!(is_meant(target, &maria) && !is_meant(target, &mysql), "{target}");
        }
        for target in ["mariadb-10.1", "mariadb-11", "mysql-10.11", "mysql"] {
            assert!(!is_meant(target, &maria), "{target}");
        }
        assert!(is_meant("mysql-9.7", &mysql) && !is_meant("mysql-5.6", &mysql));
    }

    #[test]
    fn a_server_that_is_not_there_is_named_with_the_ways_to_give_it() {
        let said = ServerPrograms::default().find("mysql-3.23").unwrap_err().to_string();
        assert!(said.contains("mysql-3.23") && said.contains("--server PROGRAM"), "{said}");
        assert!(said.contains(VARIABLE), "{said}");
        let refused = ServerPrograms::named(&["/no/such/mysqld".to_owned()]).unwrap_err();
        assert!(refused.to_string().contains("--server /no/such/mysqld"), "{refused}");
    }
}
