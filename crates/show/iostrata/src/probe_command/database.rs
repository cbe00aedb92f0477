//! Tables of the program's own on a database that is probed.
//!
//! Invariant: nothing of the user's is opened or changed. A server has a database of its own; an
//! engine is made anew beside the user's, with the same settings. Both are gone when the value is
//! dropped; what a killed program left is removed by the next probe, and by its mark alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use iostrata_database::target::{Target, TargetError};
use iostrata_embedded::EmbeddedTarget;
use iostrata_load::TransactionSource;
use iostrata_run::ResourceUse;
use iostrata_server::{OwnDatabase, ServerTarget};
use iostrata_study::probe::{ProbedDatabase, TopRung};
use iostrata_workload::{LoadOptions, Workload, WorkloadError, WorkloadSettings};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::exit_error::ExitError;
use crate::test_database::{TestDatabase, ending};

/// The directory in that of an engine, and its mark.
const DIRECTORY: &str = "iostrata-probe-engine";
const MARK: &str = "made_by_iostrata";
/// A small engine is enough for one warehouse, and the user's may have the memory.
const SMALL: [(&str, &str); 3] =
    [("buffer_pool_size", "256M"), ("redo_log_capacity", "256M"), ("autoextend_increment", "8M")];
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

    fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Tpcc => "tpcc",
        }
    }

    /// Small transactions change one row by its key, with its index; each is a transaction of its
    /// own.
    fn workload(self) -> Result<Box<dyn Workload>, WorkloadError> {
        let (name, setting) = match self {
            Self::Small => ("oltp_update_index", ("tables", 1)),
            Self::Tpcc => ("tpcc", ("warehouses", 1)),
        };
        iostrata_workload::workload(name, &WorkloadSettings::to_load([setting]))
    }

    fn loading(self) -> &'static str {
        match self {
            Self::Small => "filling a small table",
            Self::Tpcc => "loading one warehouse of TPC-C",
        }
    }
}

/// Tables of the program's own.
pub struct OwnTables {
    place: Owned,
    /// An engine from its first rung on.
    open: Option<TestDatabase>,
    ready: Vec<Tables>,
    interrupted: Arc<AtomicBool>,
}

/// What holds them, and goes with them.
enum Owned {
    Engine(Box<OwnEngine>),
    Server(Box<OwnDatabase>),
}

/// An engine beside the user's.
struct OwnEngine {
    /// The user's.
    like: PathBuf,
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
            written_before_bytes: 0,
            flush_log: String::new(),
            directory,
        };
        let place = Owned::Engine(Box::new(engine));
        Ok(Self { place, open: None, ready: Vec::new(), interrupted })
    }

    /// On a server.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn server(own: OwnDatabase, interrupted: Arc<AtomicBool>) -> Result<Self, ExitError> {
        let target = ServerTarget::open(own.address().clone(), None).map_err(ending)?;
        let open = Some(TestDatabase::Server(Box::new(target)));
        Ok(Self { place: Owned::Server(Box::new(own)), open, ready: Vec::new(), interrupted })
    }

    /// Removes everything.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(self) -> Result<(), ExitError> {
        drop(self.open);
        match self.place {
            Owned::Engine(engine) => engine.directory.remove(),
            Owned::Server(own) => own.remove().map_err(ending),
        }
    }

    fn is_server(&self) -> bool {
        matches!(self.place, Owned::Server(_))
    }

    /// Opens an engine for these tables, in place of the one before.
    fn open_engine(&mut self, tables: Tables, workload: &dyn Workload) -> Result<(), TargetError> {
        let Owned::Engine(engine) = &mut self.place else { return Ok(()) };
        // An engine is open for the tables of one schema.
        self.ready.clear();
        let before = self.open.as_ref().map(|open| open.target().used()).transpose()?;
        engine.written_before_bytes += before.map_or(0, |used| used.written_bytes());
        self.open = None;
        self.open = Some(TestDatabase::Engine(engine.open(tables, workload)?));
        Ok(())
    }

    fn fill(
        &mut self,
        tables: Tables,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), WorkloadError> {
        let workload = tables.workload()?;
        self.open_engine(tables, &*workload)?;
        let Some(open) = &self.open else { return Ok(()) };
        progress(tables.loading());
        let stop = &*self.interrupted;
        let options = LoadOptions { threads: LOADERS, seed: SEED, resets: false, stop };
        workload.load(open.target(), &options, &|_| ())?;
        self.ready.push(tables);
        Ok(())
    }
}

impl ProbedDatabase for OwnTables {
    fn name(&self) -> String {
        match &self.place {
            Owned::Engine(engine) => format!("engine:{}", engine.like.display()),
            Owned::Server(own) => {
                let open = self.open.as_ref();
                open.map_or_else(|| own.address().to_string(), |open| open.target().name())
            }
        }
    }

    fn is_here(&self) -> bool {
        // A server elsewhere has no processor time that can be read.
        self.used().cpu_us.is_some() || !self.is_server()
    }

    fn can_leave_syncs_out(&self) -> bool {
        !self.is_server()
    }

    fn prepare(&mut self, rung: TopRung, progress: &mut dyn FnMut(&str)) -> Result<(), String> {
        let tables = Tables::of(rung);
        if !self.ready.contains(&tables) {
            self.fill(tables, progress).map_err(|error| error.to_string())?;
        }
        match (&self.place, &self.open) {
            (Owned::Engine(engine), Some(TestDatabase::Engine(target))) => {
                engine.sync_commits(target, rung != TopRung::Unsynced)
            }
            _ => Ok(()),
        }
    }

    fn source(&self, rung: TopRung) -> Result<Box<dyn TransactionSource + '_>, String> {
        let open = self.open.as_ref().ok_or("the engine is not open")?;
        let workload = Tables::of(rung).workload();
        let source = workload.and_then(|workload| open.source(&*workload, SEED));
        source.map_err(|error| error.to_string())
    }

    fn used(&self) -> ResourceUse {
        self.open.as_ref().and_then(|open| open.target().used().ok()).unwrap_or_default()
    }

    fn written_bytes(&self) -> Option<u64> {
        let used = self.open.as_ref().map(|open| open.target().used()).transpose().ok()?;
        let before = match &self.place {
            Owned::Engine(engine) => engine.written_before_bytes,
            Owned::Server(_) => 0,
        };
        Some(before + used.map_or(0, |used| used.written_bytes()))
    }
}

impl OwnEngine {
    /// One for these tables.
    fn open(
        &mut self,
        tables: Tables,
        workload: &dyn Workload,
    ) -> Result<EmbeddedTarget, TargetError> {
        let directory = self.directory.0.join(tables.name());
        let settings: Vec<(String, String)> =
            SMALL.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let schema = workload.schema();
        let target = EmbeddedTarget::open_like(&self.like, &directory, &schema, &settings)?;
        let flush_log = target.facts()?.durability.flush_log_at_commit.unwrap_or(1);
        self.flush_log = flush_log.to_string();
        Ok(target)
    }

    /// Whether commits are synced as the user's are, or only written.
    fn sync_commits(&self, target: &EmbeddedTarget, as_set: bool) -> Result<(), String> {
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
