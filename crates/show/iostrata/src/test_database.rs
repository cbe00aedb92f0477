//! A database that is tested, open: for the commands of workloads, for the top rungs of a probe and
//! for the points of a study.
//!
//! Purpose: what all of them do with it, whether it is the embedded engine or a server. Who made
//! it, what conditions it runs under and what is removed with it differ, and stay with each of
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use iostrata_database::target::{Isolation, Target, TargetError, Trouble};
use iostrata_embedded::EmbeddedTarget;
use iostrata_engine::Engine;
use iostrata_load::TransactionSource;
use iostrata_server::{Credentials, ServerAddress, ServerTarget};
use iostrata_stats::units;
use iostrata_workload::{SourceOptions, Workload, WorkloadError};

use crate::args::TargetArgs;
use crate::exit_error::ExitError;

/// What a target is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Its tables are made; an engine that is not there is, too.
    Make,
    /// They are written to.
    Write,
    /// They are read.
    Read,
}

/// One that is open.
pub enum TestDatabase {
    /// The embedded engine.
    Engine(EmbeddedTarget),
    /// A server.
    Server(Box<ServerTarget>),
}

impl TestDatabase {
    /// Opens the target that a user named, for the tables of a workload. Calls `note` with the
    /// space that a new engine takes on the disk.
    ///
    /// # Errors
    /// A target that is none, or a server that should not be written to; an error of opening.
    pub fn open(
        args: &TargetArgs,
        workload: &dyn Workload,
        to: Use,
        note: &dyn Fn(&str),
    ) -> Result<Self, ExitError> {
        if let Some(dir) = args.target.strip_prefix("engine:") {
            return Self::engine(args, Path::new(dir), workload, to, note);
        }
        if args.target.is_empty() {
            return Err(ExitError::Usage(
                "--target is missing: write engine:DIR or mysql://user@host:port/db, or name a \
                 server by --mysql-host and so on"
                    .to_owned(),
            ));
        }
        if !args.target.starts_with("mysql://") {
            return Err(ExitError::Usage(format!(
                "--target {}: write engine:DIR or mysql://user@host:port/db",
                args.target.split(':').next().unwrap_or_default()
            )));
        }
        if let Some(setting) = args.engine.first() {
            return Err(ExitError::Usage(format!(
                "--engine {setting}: a server's settings are its own; use it with engine:DIR"
            )));
        }
        let credentials = args.login.for_loads();
        let address = server_address(&args.target, &credentials, "--target: ")?;
        let storage_engine = args.storage_engine.clone();
        if to == Use::Make && args.create_database {
            ServerTarget::create_database(address.clone()).map_err(ending)?;
        }
        let opened = ServerTarget::open(address, storage_engine);
        let opened = opened.map_err(|error| ending(with_option(error, to)))?;
        if to != Use::Read && !args.insist {
            refuse_replica(&opened)?;
        }
        Ok(Self::Server(Box::new(opened.with_table_words(workload.table_words()))))
    }

    fn engine(
        args: &TargetArgs,
        dir: &Path,
        workload: &dyn Workload,
        to: Use,
        note: &dyn Fn(&str),
    ) -> Result<Self, ExitError> {
        let words = workload.table_words();
        for (option, is_given) in [
            ("--secondary", words.key_is_secondary),
            ("--create-table-options", !words.options.is_empty()),
        ] {
            if is_given && to == Use::Make {
                return Err(ExitError::Usage(format!(
                    "{option}: the embedded engine makes its tables in one way; use it with mysql://"
                )));
            }
        }
        if let Some(name) = &args.storage_engine {
            return Err(ExitError::Usage(format!(
                "--storage-engine {name}: the embedded engine is one; use it with mysql://"
            )));
        }
        let settings: Result<Vec<(String, String)>, ExitError> = args
            .engine
            .iter()
            .map(|setting| match setting.split_once('=') {
                Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
                None => Err(ExitError::Usage(format!("--engine {setting}: write name=value"))),
            })
            .collect();
        if to != Use::Make && !dir.is_dir() {
            return Err(ExitError::Usage(format!(
                "--target engine:{0}: no such directory {0}; create it with `prepare`",
                dir.display()
            )));
        }
        let mut settings = settings?;
        let made = match to {
            Use::Make => NewEngine::of(dir, workload.data_bytes(), &mut settings, note)?,
            Use::Write | Use::Read => None,
        };
        let opened = EmbeddedTarget::open(dir, &workload.schema(), &settings).map(Self::Engine);
        opened.map_err(|error| {
            made.iter().for_each(NewEngine::remove);
            ending(error)
        })
    }

    /// The target.
    pub fn target(&self) -> &dyn Target {
        match self {
            Self::Engine(target) => target,
            Self::Server(target) => &**target,
        }
    }

    /// The storage engine of a workload that can have any: the requested one, if any was.
    ///
    /// # Errors
    /// Another one; an error of the target.
    pub fn storage_engine(
        &self,
        asked: Option<&str>,
        workload: &dyn Workload,
    ) -> Result<Option<String>, ExitError> {
        let Some(table) = workload.storage_table() else { return Ok(None) };
        let schema = workload.schema();
        let found = self.target().table_facts(&schema, table).map_err(ending)?.storage_engine;
        match (asked, &found) {
            (Some(asked), Some(found)) if !asked.eq_ignore_ascii_case(found) => {
                Err(ExitError::Usage(format!(
                    "--storage-engine {asked}: table {} is there with {found}; load it again with \
                     `prepare --reset`",
                    schema.tables[table].name
                )))
            }
            _ => Ok(found),
        }
    }

    /// The transactions of a workload, with statements that are prepared, one terminal for each
    /// session and the isolation that databases have by default.
    ///
    /// # Errors
    /// As those of [`Workload::source`].
    pub fn source(
        &self,
        workload: &dyn Workload,
        seed: u64,
    ) -> Result<Box<dyn TransactionSource + '_>, WorkloadError> {
        let options = SourceOptions {
            seed,
            isolation: Isolation::RepeatableRead,
            as_text: false,
            blocks: self.blocks(),
            terminals: 1,
        };
        Ok(workload.source(self.target(), &options)?.source)
    }

    /// Whether a session keeps its thread waiting for the target.
    pub fn blocks(&self) -> bool {
        matches!(self, Self::Server(_))
    }

    /// Closes it, so that an engine has nothing to recover.
    ///
    /// # Errors
    /// An error of the engine.
    pub fn close(self) -> Result<(), TargetError> {
        match self {
            Self::Engine(target) => target.close(),
            Self::Server(_) => Ok(()),
        }
    }
}

/// A database that is not there is made on request.
fn with_option(error: TargetError, to: Use) -> TargetError {
    match (error.code.as_str(), &error.fix, to) {
        ("1049", Some(fix), Use::Make) => {
            TargetError { fix: Some(format!("{fix}, or add --create-database")), ..error }
        }
        _ => error,
    }
}

/// Refuses to write to a server that gets its rows from another one. One that does not report it,
/// such as a proxy, is taken for no replica.
fn refuse_replica(server: &ServerTarget) -> Result<(), ExitError> {
    let Some(why) = server.role().ok().and_then(|role| role.replica) else { return Ok(()) };
    Err(ExitError::Usage(format!(
        "{}: {why}: what is written here is refused, or parts it from its source; use its source, or \
         --insist",
        server.name()
    )))
}

/// A server's address as the user wrote it, with what it leaves out. Errors begin with the prefix,
/// which names the option, and repeat no password.
///
/// # Errors
/// What is no address; an option file that cannot be read.
pub fn server_address(
    target: &str,
    credentials: &Credentials,
    prefix: &str,
) -> Result<ServerAddress, ExitError> {
    let usage = |error: &dyn std::fmt::Display| ExitError::Usage(format!("{prefix}{error}"));
    let address: ServerAddress = target.parse().map_err(|error| usage(&error))?;
    credentials.complete(address).map_err(|error| usage(&error))
}

/// Errors of servers whose connections are used up: all of them, or those of the user.
const NO_CONNECTION_LEFT: [&str; 3] = ["1040", "1203", "1226"];

/// How a command ends that a target refused.
pub fn ending(error: TargetError) -> ExitError {
    match (error.trouble, error.code.as_str()) {
        (_, "broken") => ExitError::Bug(error.to_string()),
        (Trouble::NotReady, code) if NO_CONNECTION_LEFT.contains(&code) => {
            ExitError::Busy(error.to_string())
        }
        (Trouble::NotReady, _) => ExitError::Usage(error.to_string()),
        _ => ExitError::NotHere(error.to_string()),
    }
}

const REDO: &str = "redo_log_capacity";
const GROWTH: &str = "autoextend_increment";
/// Data that is smaller gets less redo than the usual, and grows in smaller steps.
const SMALL_DATA_BYTES: u64 = 256 << 20;
const SMALL_REDO: &str = "128M";
const SMALL_GROWTH: &str = "8M";
/// Pages are not full, and files grow in steps.
const DATA_SPREAD: f64 = 1.5;

/// A directory that an engine is made in.
pub struct NewEngine {
    dir: PathBuf,
    /// Whether the directory is there already, and empty.
    was_there: bool,
}

impl NewEngine {
    /// What is to be made, with settings that go with so many bytes of data; none where an engine
    /// is there. `note` is called with how much of the disk it takes.
    ///
    /// # Errors
    /// When the disk has not the room for it.
    pub fn of(
        dir: &Path,
        data_bytes: Option<u64>,
        settings: &mut Vec<(String, String)>,
        note: &dyn Fn(&str),
    ) -> Result<Option<Self>, ExitError> {
        let was_there = match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
            // Whatever it holds: opening reports what is wrong with it.
            Ok(false) => return Ok(None),
            Ok(true) => true,
            Err(_) => false,
        };
        let names = |name: &str, settings: &[(String, String)]| {
            settings.iter().any(|(one, _)| one.replace('-', "_").ends_with(name))
        };
        if data_bytes.is_some_and(|bytes| bytes < SMALL_DATA_BYTES) {
            for (name, value) in [(REDO, SMALL_REDO), (GROWTH, SMALL_GROWTH)] {
                if !names(name, settings) {
                    settings.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        let mut all = Engine::server_settings();
        for (name, value) in settings.iter() {
            // A setting that is none is refused when it is opened.
            let _refused = all.set(name, value);
        }
        let data = (data_bytes.unwrap_or(0) as f64 * DATA_SPREAD) as u64;
        let data = data.max(u64::from(all.data_files) * all.autoextend_increment);
        // Redo in a directory of its own is on another disk, perhaps.
        let redo = if all.redo_directory.is_none() { all.redo_log_capacity } else { 0 };
        let free = free_bytes(dir);
        let words = |bytes: u64| units::bytes(bytes as f64);
        if let Some(free) = free.filter(|free| *free < redo + data) {
            return Err(ExitError::NotHere(format!(
                "engine:{}: a new engine takes {} of redo and about {} of data, and {} are free there; \
                 make room, load less, or take less redo by --engine {REDO}=64M",
                dir.display(),
                words(redo),
                words(data),
                words(free)
            )));
        }
        let free = free.map_or(String::new(), |free| format!("; {} are free there", words(free)));
        note(&format!(
            "engine:{} is made: {} of redo ({REDO}) and about {} of data{free}",
            dir.display(),
            words(redo),
            words(data)
        ));
        Ok(Some(Self { dir: dir.to_owned(), was_there }))
    }

    /// Removes what making it has left.
    pub fn remove(&self) {
        // The failure that led here is the one to report.
        let _rest = fs::remove_dir_all(&self.dir);
        if self.was_there {
            let _gone = fs::create_dir(&self.dir);
        }
    }
}

/// What is free on the disk that a directory is to be on.
fn free_bytes(dir: &Path) -> Option<u64> {
    let there = std::path::absolute(dir).ok()?;
    let there = there.ancestors().find(|one| one.is_dir())?;
    let stat = rustix::fs::statvfs(there).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
