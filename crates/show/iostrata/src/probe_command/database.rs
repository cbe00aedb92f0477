//! Tables of the program's own on a database that is probed.
//!
//! Invariant: nothing of the user's is opened or changed. A server has a database of its own; an
//! engine is made anew beside the user's, with the same settings. Both are gone when the value is
//! dropped; what a killed program left is removed by the next probe, and by its mark alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iostrata_embedded::EmbeddedTarget;
use iostrata_load::TransactionSource;
use iostrata_run::ResourceUse;
use iostrata_server::{OwnDatabase, ServerTarget};
use iostrata_study::probe::{ProbedDatabase, TopRung};
use iostrata_target::{Isolation, Schema, Target, TargetError};
use iostrata_workload::oltp::{self, Member, OltpSpec, OltpTerminals};
use iostrata_workload::tpcc::{
    self, Dataset, Mix, PrepareOptions, TerminalOptions, Terminals, Waits,
};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::database_command::ending;
use crate::exit_error::ExitError;

/// The directory in that of an engine, and its mark.
const DIRECTORY: &str = "iostrata-probe-engine";
const MARK: &str = "made_by_iostrata";
/// A small engine is enough for one warehouse, and the user's may have the memory.
const SMALL: [(&str, &str); 3] =
    [("buffer_pool_size", "256M"), ("redo_log_capacity", "256M"), ("autoextend_increment", "8M")];
const WAREHOUSES: i64 = 1;
const SEED: u64 = 1;
const LOADERS: usize = 2;

/// Which tables a rung needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tables {
    Small,
    Tpcc,
}

impl Tables {
    fn of(rung: TopRung) -> Self {
        match rung {
            TopRung::Tpcc => Self::Tpcc,
            TopRung::Commits | TopRung::Unsynced | TopRung::GroupCommits => Self::Small,
        }
    }

    fn schema(self) -> Schema {
        match self {
            Self::Small => spec().schema(),
            Self::Tpcc => tpcc::schema(),
        }
    }
}

/// Tables of the program's own.
pub struct OwnTables {
    place: Owned,
    ready: Vec<Tables>,
    dataset: Option<Dataset>,
    interrupted: Arc<AtomicBool>,
}

enum Owned {
    Engine(Box<OwnEngine>),
    Server { target: Box<ServerTarget>, own: Box<OwnDatabase> },
}

/// An engine beside the user's.
struct OwnEngine {
    /// The user's.
    like: PathBuf,
    target: Option<EmbeddedTarget>,
    /// Bytes that engines before this one wrote: each counts from its own opening.
    written_before_bytes: u64,
    /// `flush_log_at_trx_commit` as the user has it.
    flush_log: String,
    directory: OwnDirectory,
}

/// A directory that is removed with the value.
struct OwnDirectory(PathBuf);

impl OwnTables {
    /// On an engine that is made in the directory of another one.
    ///
    /// # Errors
    /// When the directory cannot be made, or there is one that is not ours.
    pub fn engine(like: &Path, interrupted: Arc<AtomicBool>) -> Result<Self, ExitError> {
        let directory = OwnDirectory::make(like)?;
        let engine = OwnEngine {
            like: like.to_owned(),
            target: None,
            written_before_bytes: 0,
            flush_log: String::new(),
            directory,
        };
        let place = Owned::Engine(Box::new(engine));
        Ok(Self { place, ready: Vec::new(), dataset: None, interrupted })
    }

    /// On a server.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn server(own: OwnDatabase, interrupted: Arc<AtomicBool>) -> Result<Self, ExitError> {
        let target = ServerTarget::open(own.address().clone(), None).map_err(ending)?;
        let place = Owned::Server { target: Box::new(target), own: Box::new(own) };
        Ok(Self { place, ready: Vec::new(), dataset: None, interrupted })
    }

    /// Removes everything.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(self) -> Result<(), ExitError> {
        match self.place {
            Owned::Engine(engine) => {
                let OwnEngine { target, directory, .. } = *engine;
                drop(target);
                directory.remove()
            }
            Owned::Server { target, own } => {
                drop(target);
                own.remove().map_err(ending)
            }
        }
    }

    fn target(&self) -> Option<&dyn Target> {
        match &self.place {
            Owned::Engine(engine) => engine.target.as_ref().map(|target| target as &dyn Target),
            Owned::Server { target, .. } => Some(&**target),
        }
    }

    fn blocks(&self) -> bool {
        matches!(self.place, Owned::Server { .. })
    }

    fn fill(&mut self, tables: Tables, progress: &mut dyn FnMut(&str)) -> Result<(), TargetError> {
        let Some(target) = self.target() else { return Ok(()) };
        match tables {
            Tables::Small => {
                progress("filling a small table");
                oltp::prepare(target, &spec(), LOADERS, &self.interrupted, &|_| ()).map(drop)
            }
            Tables::Tpcc => {
                progress("loading one warehouse of TPC-C");
                let options = PrepareOptions {
                    warehouses: WAREHOUSES,
                    threads: LOADERS,
                    seed: SEED,
                    now_s: tpcc::now_s(),
                    reset: false,
                };
                let prepared = tpcc::prepare(target, &options, &self.interrupted, &|_| ())?;
                self.dataset = Some(prepared.dataset);
                Ok(())
            }
        }
    }
}

/// Small transactions: one row by its key, with its index, each a transaction of its own.
fn spec() -> OltpSpec {
    OltpSpec { seed: SEED, ..OltpSpec::new(Member::UpdateIndex) }
}

impl ProbedDatabase for OwnTables {
    fn name(&self) -> String {
        match &self.place {
            Owned::Engine(engine) => format!("engine:{}", engine.like.display()),
            Owned::Server { target, .. } => target.name(),
        }
    }

    fn is_here(&self) -> bool {
        // A server elsewhere has no processor time that can be read.
        self.used().cpu_us.is_some() || !self.blocks()
    }

    fn can_leave_syncs_out(&self) -> bool {
        !self.blocks()
    }

    fn prepare(&mut self, rung: TopRung, progress: &mut dyn FnMut(&str)) -> Result<(), String> {
        let tables = Tables::of(rung);
        if !self.ready.contains(&tables) {
            if let Owned::Engine(engine) = &mut self.place {
                // An engine is open for the tables of one schema.
                self.ready.clear();
                engine.open(tables).map_err(|error| error.to_string())?;
            }
            self.fill(tables, progress).map_err(|error| error.to_string())?;
            self.ready.push(tables);
        }
        match &self.place {
            Owned::Engine(engine) => engine.sync_commits(rung != TopRung::Unsynced),
            Owned::Server { .. } => Ok(()),
        }
    }

    fn source(&self, rung: TopRung) -> Result<Box<dyn TransactionSource + '_>, String> {
        let target = self.target().ok_or("the engine is not open")?;
        match (Tables::of(rung), &self.dataset) {
            (Tables::Small, _) => {
                let source = OltpTerminals::new(target, spec(), self.blocks());
                Ok(Box::new(source.map_err(|error| error.to_string())?))
            }
            (Tables::Tpcc, Some(dataset)) => {
                let options = TerminalOptions {
                    mix: Mix::default(),
                    waits: Waits::NONE,
                    isolation: Isolation::default(),
                    seed: SEED,
                    as_text: false,
                    blocks: self.blocks(),
                    sharing: None,
                };
                Ok(Box::new(Terminals::new(target, dataset, options)))
            }
            (Tables::Tpcc, None) => Err("the warehouse is not loaded".to_owned()),
        }
    }

    fn used(&self) -> ResourceUse {
        self.target().and_then(|target| target.used().ok()).unwrap_or_default()
    }

    fn written_bytes(&self) -> Option<u64> {
        match &self.place {
            Owned::Engine(engine) => engine.written_bytes().ok(),
            Owned::Server { target, .. } => Some(target.used().ok()?.written_bytes()),
        }
    }
}

impl OwnEngine {
    /// Opens one for these tables, in place of the one before.
    fn open(&mut self, tables: Tables) -> Result<(), TargetError> {
        self.written_before_bytes = self.written_bytes()?;
        self.target = None;
        let directory = self.directory.0.join(match tables {
            Tables::Small => "small",
            Tables::Tpcc => "tpcc",
        });
        let settings: Vec<(String, String)> =
            SMALL.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let schema = tables.schema();
        let target = EmbeddedTarget::open_like(&self.like, &directory, &schema, &settings)?;
        let facts = target.facts()?;
        let flush_log = facts.durability.flush_log_at_commit.unwrap_or(1);
        self.flush_log = flush_log.to_string();
        self.target = Some(target);
        Ok(())
    }

    fn written_bytes(&self) -> Result<u64, TargetError> {
        let now = self.target.as_ref().map(EmbeddedTarget::used).transpose()?;
        Ok(self.written_before_bytes + now.map_or(0, |used| used.written_bytes()))
    }

    /// Whether commits are synced as the user's are, or only written.
    fn sync_commits(&self, as_set: bool) -> Result<(), String> {
        let Some(target) = &self.target else { return Ok(()) };
        let value = if as_set { self.flush_log.as_str() } else { "2" };
        let set = target.engine().set("flush_log_at_trx_commit", value);
        set.map_err(|error| error.to_string())
    }
}

impl OwnDirectory {
    fn make(engine: &Path) -> Result<Self, ExitError> {
        let path = engine.join(DIRECTORY);
        let told = |doing: &str, error: std::io::Error| {
            ExitError::NotHere(format!("{doing} {}: {error}", path.display()))
        };
        if path.exists() {
            let owner = fs::read_to_string(path.join(MARK)).map_err(|_| {
                ExitError::Usage(format!(
                    "{} is there, and iostrata did not make it; rename or remove it: that name is \
                     needed for the time of the probe",
                    path.display()
                ))
            })?;
            let pid = owner.trim().parse().ok().and_then(Pid::from_raw);
            if pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH)) {
                return Err(ExitError::Usage(format!(
                    "{}: process {} measures this engine; wait until it has ended",
                    engine.display(),
                    owner.trim()
                )));
            }
            fs::remove_dir_all(&path).map_err(|error| told("cannot remove", error))?;
        }
        fs::create_dir(&path).map_err(|error| told("cannot make", error))?;
        let own = Self(path.clone());
        fs::write(path.join(MARK), std::process::id().to_string())
            .map_err(|error| told("cannot mark", error))?;
        Ok(own)
    }

    fn remove(self) -> Result<(), ExitError> {
        fs::remove_dir_all(&self.0).map_err(|error| {
            ExitError::NotHere(format!("cannot remove {}: {error}", self.0.display()))
        })
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // It is gone already where it was removed.
        let _gone = fs::remove_dir_all(&self.0);
    }
}
