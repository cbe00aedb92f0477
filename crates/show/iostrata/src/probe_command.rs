//! `iostrata probe`: announces, runs, concludes, reports; its target, and tables of the program's
//! own on a database that is probed.
//!
//! Invariants: a server's directory is measured only when it is known to be the server's: it has
//! the directory of a database that was made there a moment before. Nothing of the user's is opened
//! or changed: a server has a database of its own; an engine is created next to the user's, with
//! the same settings. Both are gone when the value is dropped; what a killed program left is
//! removed by the next probe, and by its mark alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use iostrata_database::target::{Target, TargetError};
use iostrata_diagnose::{ProbeEnd, summarise};
use iostrata_embedded::EmbeddedTarget;
use iostrata_linux::host::{Root, describe_host, describe_path, quiet_check};
use iostrata_load::TransactionSource;
use iostrata_plan::rung;
use iostrata_run::host::PathFacts;
use iostrata_run::{ProbeDocument, ProbeHost, ResourceUse, RunKind, RunResult, Rung, Unavailable};
use iostrata_server::{DataPlace, OWN_DATABASE, OwnDatabase, ServerAddress, ServerTarget};
use iostrata_stats::units;
use iostrata_study::RunOutcome;
use iostrata_study::probe::{
    self, Announcement, ProbeOptions, ProbedDatabase, TooSmall, TopRung, Transactions,
};
use iostrata_workload::{LoadOptions, Workload, WorkloadError, WorkloadSettings};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::args::ProbeArgs;
use super::display::{Display, print_text};
use super::exit_error::{ExitError, exit_error};
use super::run_sink::RunSink;
use super::signals::Interruption;
use super::test_database::{TestDatabase, ending, server_address};

/// How long the device is watched for other users before the probe begins.
const QUIET: Duration = Duration::from_millis(600);
const PRECISION: f64 = 0.03;

/// Runs the command.
///
/// # Errors
/// With the exit codes of the contract.
pub fn run(args: &ProbeArgs, interruption: &Interruption) -> Result<(), ExitError> {
    let mut place = ProbedPlace::of(args)?;
    let options = options_of(args, &place)?;
    let display = Display::new(args.common.printing.quiet);
    let root = Root::system();
    let path = path_of(&root, &options)?;
    let announcement = announcement_of(&options, &path)?;
    let host = ProbeHost { machine: describe_host(&root), path };
    display.note(&announced(&options, &announcement, &host, place.database().as_deref()));
    if options.transactions != Transactions::Measured {
        return measure(args, (&options, &announcement, host), None, interruption);
    }
    let mut own = place.make_own(interruption)?;
    // Only now it is known whether the directory is the server's.
    let ended = options_of(args, &place).and_then(|checked| match checked == options {
        true => measure(args, (&options, &announcement, host), Some(&mut own), interruption),
        false => {
            let path = path_of(&root, &checked)?;
            let announcement = announcement_of(&checked, &path)?;
            display.note(place.directory().err().unwrap_or_default());
            let host = ProbeHost { machine: host.machine, path };
            measure(args, (&checked, &announcement, host), Some(&mut own), interruption)
        }
    });
    let removed = own.remove();
    ended.and(removed)
}

/// What lies under the directory, where there is one.
fn path_of(root: &Root, options: &ProbeOptions) -> Result<PathFacts, ExitError> {
    match &options.below_is_unknown {
        Some(missing) => {
            Ok(PathFacts { notes: vec![missing.why.clone()], ..PathFacts::unknown("") })
        }
        None => describe_path(root, &options.dir)
            .map_err(|error| ExitError::Usage(format!("{}: {error}", options.dir.display()))),
    }
}

fn announcement_of(options: &ProbeOptions, path: &PathFacts) -> Result<Announcement, ExitError> {
    probe::announce(options, path).map_err(|error| match error {
        TooSmall::Asked(why) => ExitError::Usage(why),
        TooSmall::Room(why) => ExitError::NotHere(why),
    })
}

/// Runs what was announced, and shows it.
fn measure(
    args: &ProbeArgs,
    (options, announcement, host): (&ProbeOptions, &Announcement, ProbeHost),
    database: Option<&mut OwnTables>,
    interruption: &Interruption,
) -> Result<(), ExitError> {
    let display = Display::new(args.common.printing.quiet);
    note_other_users(&Root::system(), &host, &display);
    let out = args.common.out.as_deref();
    let mut sink = RunSink::begin(RunKind::Probe, "probe", out, &display)?;
    sink.amend(|manifest| manifest.host = Some(host.clone()))?;
    sink.say_whether_kept();
    let database = database.map(|own| own as &mut dyn ProbedDatabase);
    let flag = interruption.flag();
    let outcome = probe::run(options, announcement, &host, flag, &mut sink, database);
    display.finish();
    let outcome = match outcome {
        Err(_) if interruption.is_set() => {
            return Err(ExitError::Interrupted(interruption.exit_code()));
        }
        outcome => outcome.map_err(exit_error)?,
    };
    let mut document = summarise(host, &outcome.events, ProbeEnd::of(&outcome.events));
    document.report = sink.report();
    if !sink.keep_with_report(&document) {
        document.report = None;
    }
    show(args, &document, &sink, &outcome)?;
    let of_storage = |rung: &Rung| rung.name != rung::METER_NULL && rung.name != "clock_read";
    let ended_it = document.unavailable.iter().find(|one| one.ended_it());
    sink.end(if outcome.interrupted {
        Err(ExitError::Interrupted(interruption.exit_code()))
    } else if let Some(ended_it) = ended_it {
        Err(ExitError::NotHere(format!("{}: {}", ended_it.what, ended_it.why)))
    } else if !document.rungs.iter().any(of_storage) {
        let place = match &options.below_is_unknown {
            Some(_) => String::new(),
            None => format!(" in {}", options.dir.display()),
        };
        let why = why_nothing(&document.unavailable);
        Err(ExitError::NotHere(format!("nothing could be measured{place}: {why}")))
    } else {
        Ok(())
    })
}

/// Why nothing was measured: the reason in the plan explains more than what this place lacks.
fn why_nothing(unavailable: &[Unavailable]) -> &str {
    let planned = unavailable.iter().find(|one| one.was_planned());
    planned.or(unavailable.first()).map_or("unknown reason", |one| one.why.as_str())
}

/// The directory that is measured, if there is one.
fn directory(place: &ProbedPlace) -> Result<Result<PathBuf, Unavailable>, ExitError> {
    let named = match place.directory() {
        Ok(named) => named,
        Err(why) => return Ok(Err(below_is_unknown(why))),
    };
    let dir = std::fs::canonicalize(named).map_err(|error| {
        ExitError::Usage(format!("{}: {error}; name an existing directory", named.display()))
    })?;
    if !dir.is_dir() {
        return Err(ExitError::Usage(format!(
            "{}: not a directory; probe works in own files of a directory (for one file or device \
             use iostrata io --path)",
            dir.display()
        )));
    }
    Ok(Ok(dir))
}

fn options_of(args: &ProbeArgs, place: &ProbedPlace) -> Result<ProbeOptions, ExitError> {
    let (dir, below_is_unknown) = match directory(place)? {
        Ok(dir) => (dir, None),
        Err(missing) => (PathBuf::new(), Some(missing)),
    };
    let precision = args.common.precision.unwrap_or(PRECISION);
    if !(precision > 0.0 && precision < 1.0) {
        return Err(ExitError::Usage(format!(
            "--precision {precision}: out of range; use for example 0.03 or 3%"
        )));
    }
    if args.common.max_time.is_some_and(|time| time < Duration::from_secs(5)) {
        return Err(ExitError::Usage(
            "--max-time: too short for a probe; use 5s or more (120s is the default)".to_owned(),
        ));
    }
    if args.read_only && (args.precondition || args.lasting.is_some()) {
        return Err(ExitError::Usage(
            "--read-only: --precondition and --lasting write; leave them out".to_owned(),
        ));
    }
    check_lasting(args)?;
    Ok(ProbeOptions {
        dir,
        read_only: args.read_only,
        write_bytes_max: args.max_write,
        size_bytes: args.size,
        time_max: args.common.max_time,
        point_time: args.common.point_time,
        precision,
        verify: args.verify,
        precondition: args.precondition,
        lasting: args.lasting,
        below_is_unknown,
        transactions: place.transactions(args),
    })
}

/// The least time that is left for everything but lasting writes.
const BESIDE_LASTING: Duration = Duration::from_secs(30);

fn check_lasting(args: &ProbeArgs) -> Result<(), ExitError> {
    let Some(lasting) = args.lasting else { return Ok(()) };
    let shown = |time: Duration| units::seconds(time.as_secs_f64());
    if lasting < Duration::from_secs(1) {
        return Err(ExitError::Usage(format!(
            "--lasting {}: too short to last; use 1s or more (12s is the default)",
            shown(lasting)
        )));
    }
    match args.common.max_time {
        Some(all) if all < lasting + BESIDE_LASTING => Err(ExitError::Usage(format!(
            "--lasting {}: does not fit into --max-time {}; use at least {}",
            shown(lasting),
            shown(all),
            shown(lasting + BESIDE_LASTING)
        ))),
        _ => Ok(()),
    }
}

/// What it will write and for how long, printed before it begins.
fn announced(
    options: &ProbeOptions,
    announcement: &Announcement,
    host: &ProbeHost,
    database: Option<&str>,
) -> String {
    let end = "Everything is removed at the end; Ctrl-C is safe.";
    let below = match &options.below_is_unknown {
        Some(missing) => format!("The storage below is not measured: {}.", missing.why),
        None => announced_below(options, announcement, host),
    };
    let top = database.filter(|_| options.transactions == Transactions::Measured);
    let Some(database) = top else { return format!("{below} {end}") };
    format!(
        "{below} Then transactions on {database}, in {}: about 150 MiB of tables and what is \
         changed in them, at most {}. {end}",
        match database.starts_with("engine:") {
            true => "an engine of their own with its settings".to_owned(),
            false => format!("a separate database ({OWN_DATABASE}, which is replicated)"),
        },
        units::seconds(announcement.top_time_max.as_secs_f64())
    )
}

fn announced_below(
    options: &ProbeOptions,
    announcement: &Announcement,
    host: &ProbeHost,
) -> String {
    let device =
        host.path.devices.first().map_or_else(String::new, |device| format!(" on {}", device.name));
    let file_system = host.path.file_system.as_deref().unwrap_or("an unknown file system");
    let what = format!("Probing {} ({file_system}{device}).", options.dir.display());
    let files = units::bytes(announcement.file_bytes_max as f64);
    let time = units::seconds(announcement.time_max.as_secs_f64());
    let writes = if options.read_only {
        format!("Writes {files} once, to have something to read, and nothing after that;")
    } else {
        let written = units::bytes(announcement.written_bytes_max as f64);
        format!("Writes at most {written} in all, into own files of at most {files};")
    };
    let first = match announcement.precondition_bytes_max {
        0 => String::new(),
        most => format!(
            " Overwrites them first, with at most {} in {}.",
            units::bytes(most as f64),
            units::seconds(announcement.precondition_time_max.as_secs_f64())
        ),
    };
    let lasting = options.lasting.map_or_else(String::new, |lasting| {
        format!(
            " Sustained writes last {}, with at most {}.",
            units::seconds(lasting.as_secs_f64()),
            units::bytes(announcement.sustained_write_bytes_max as f64)
        )
    });
    format!("{what} {writes} takes at most {time}.{first}{lasting}")
}

fn note_other_users(root: &Root, host: &ProbeHost, display: &Display) {
    let Some(check) = quiet_check(root, &host.path, QUIET) else { return };
    if check.quiet {
        return;
    }
    let others: Vec<String> = check
        .processes
        .iter()
        .take(3)
        .map(|process| format!("{} (pid {})", process.comm, process.pid))
        .collect();
    let who = if others.is_empty() { "unknown".to_owned() } else { others.join(", ") };
    display.note(&format!(
        "Something else is using {}: {who}. Figures will carry foreign_io where it shows.",
        check.device
    ));
}

fn show(
    args: &ProbeArgs,
    document: &ProbeDocument,
    sink: &RunSink<'_>,
    outcome: &RunOutcome,
) -> Result<(), ExitError> {
    let json = args.common.printing.json;
    sink.print(&RunResult::Probe(Box::new(document.clone())), &outcome.events, json)?;
    let report = document.report.iter().filter(|_| !json);
    report.into_iter().try_for_each(|report| print_text(&format!("Report: {report}\n")))
}

/// What lies below the transactions.
const STORAGE: &str = "rungs of the storage";

/// What a probe was pointed at.
pub enum ProbedPlace {
    /// A directory.
    Directory(PathBuf),
    /// The directory of an embedded engine.
    Engine(PathBuf),
    /// A server.
    Server(Box<ServerPlace>),
}

/// A server, and where it keeps its data.
pub struct ServerPlace {
    address: ServerAddress,
    data: DataPlace,
}

impl ProbedPlace {
    /// What the arguments name.
    ///
    /// # Errors
    /// What is no target; a server that does not answer or does not let the user in.
    pub fn of(args: &ProbeArgs) -> Result<Self, ExitError> {
        let Some(target) = &args.target else {
            return match args.login.given() {
                Some(option) => Err(ExitError::Usage(format!(
                    "{option}: it is for a server; add --target mysql://user@host:port"
                ))),
                None => Ok(Self::Directory(args.dir.clone())),
            };
        };
        if let Some(dir) = target.strip_prefix("engine:") {
            return Ok(Self::Engine(PathBuf::from(dir)));
        }
        if !target.contains("://") {
            return Ok(Self::Directory(PathBuf::from(target)));
        }
        let credentials = args.login.credentials();
        let address = server_address(target, &credentials, "--target: ")?;
        let data = DataPlace::of(&address).map_err(ending)?;
        Ok(Self::Server(Box::new(ServerPlace { address, data: writable(data) })))
    }

    /// The directory, where there is one that can be measured.
    ///
    /// # Errors
    /// Why not.
    pub fn directory(&self) -> Result<&Path, &str> {
        match self {
            Self::Directory(dir) | Self::Engine(dir) => Ok(dir),
            Self::Server(server) => match &server.data {
                DataPlace::Here(dir) => Ok(dir),
                DataPlace::Unknown(why) => Err(why),
            },
        }
    }

    /// The database, as users know it; `None` for a directory.
    pub fn database(&self) -> Option<String> {
        match self {
            Self::Directory(_) => None,
            Self::Engine(dir) => Some(format!("engine:{}", dir.display())),
            Self::Server(server) => Some(server.address.to_string()),
        }
    }

    /// Whether transactions are to be measured.
    pub fn transactions(&self, args: &ProbeArgs) -> Transactions {
        match self.database() {
            None => Transactions::NotAsked,
            Some(_) if args.read_only => {
                let why = "transactions write, and --read-only was given";
                let fix = Some("leave out --read-only".to_owned());
                Transactions::Missing(Unavailable::impossible("transactions", why, fix))
            }
            Some(_) => Transactions::Measured,
        }
    }

    /// Makes the tables' place: a database of the program's own. Where the server's directory does
    /// not show it, that one is another server's and is not measured.
    ///
    /// # Errors
    /// An error of making it.
    fn make_own(&mut self, interruption: &Interruption) -> Result<OwnTables, ExitError> {
        let flag = interruption.flag().clone();
        match self {
            Self::Directory(_) => Err(ExitError::Bug("a directory has no tables".to_owned())),
            Self::Engine(dir) => OwnTables::engine(dir, flag),
            Self::Server(server) => {
                let own = OwnDatabase::make(&server.address).map_err(ending)?;
                if let DataPlace::Here(dir) = &server.data
                    && !dir.join(OWN_DATABASE).is_dir()
                {
                    server.data = DataPlace::Unknown(format!(
                        "{} on this machine is not the server's",
                        dir.display()
                    ));
                }
                OwnTables::server(own, flag)
            }
        }
    }
}

/// Why the rungs below a database are missing.
pub fn below_is_unknown(why: &str) -> Unavailable {
    let fix = "run the probe on the server's machine, as a user who may write where its data lies";
    Unavailable::impossible(STORAGE, why, Some(fix.to_owned()))
}

/// A directory that this user may not write cannot be measured.
fn writable(data: DataPlace) -> DataPlace {
    match &data {
        DataPlace::Here(dir) => match access(dir, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => data,
            Err(error) => DataPlace::Unknown(format!(
                "the server's data directory {} cannot be written: {error}",
                dir.display()
            )),
        },
        DataPlace::Unknown(_) => data,
    }
}

/// The directory within an engine's, and its mark.
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
    place: OwnStore,
    /// An engine from its first rung on.
    open: Option<TestDatabase>,
    ready: Vec<Tables>,
    interrupted: Arc<AtomicBool>,
}

/// What holds them, and goes with them.
enum OwnStore {
    Engine(Box<OwnEngine>),
    Server(Box<OwnDatabase>),
}

/// An engine next to the user's.
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
        let place = OwnStore::Engine(Box::new(engine));
        Ok(Self { place, open: None, ready: Vec::new(), interrupted })
    }

    /// On a server.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn server(own: OwnDatabase, interrupted: Arc<AtomicBool>) -> Result<Self, ExitError> {
        let target = ServerTarget::open(own.address().clone(), None).map_err(ending)?;
        let open = Some(TestDatabase::Server(Box::new(target)));
        Ok(Self { place: OwnStore::Server(Box::new(own)), open, ready: Vec::new(), interrupted })
    }

    /// Removes everything.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn remove(self) -> Result<(), ExitError> {
        drop(self.open);
        match self.place {
            OwnStore::Engine(engine) => engine.directory.remove(),
            OwnStore::Server(own) => own.remove().map_err(ending),
        }
    }

    fn is_server(&self) -> bool {
        matches!(self.place, OwnStore::Server(_))
    }

    /// Opens an engine for these tables, in place of the one before.
    fn open_engine(&mut self, tables: Tables, workload: &dyn Workload) -> Result<(), TargetError> {
        let OwnStore::Engine(engine) = &mut self.place else { return Ok(()) };
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
            OwnStore::Engine(engine) => format!("engine:{}", engine.like.display()),
            OwnStore::Server(own) => {
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
            (OwnStore::Engine(engine), Some(TestDatabase::Engine(target))) => {
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
            OwnStore::Engine(engine) => engine.written_before_bytes,
            OwnStore::Server(_) => 0,
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
                    "{} exists, and iostrata did not create it; rename or remove it: the \
                     probe needs that name",
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
