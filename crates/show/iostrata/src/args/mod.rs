//! The command line as users type it.
//!
//! Invariant: clap's types end here; every command gets plain data. Dashes and underscores in
//! option names are the same, and a switch may be `--direct` or `--direct=1`.

mod database;
mod disk;
mod engine;
mod fileio;
mod fio;
mod go_tpc_words;
mod help_files;
mod io;
mod probe;
mod server_words;
mod simulate;
mod study;
mod sysbench_words;
mod value;
mod watch;
mod word_order;
mod workload;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

pub use database::{
    CheckArgs, DriveArgs, IsolationWord, LoadArgs, PrepareArgs, PreparedMode, PrivateArgs,
    TargetArgs, TransactionArgs,
};
pub use disk::{DiskAction, DiskArgs, DiskListArgs, FaultArgs, StartArgs, StopArgs};
pub use engine::{
    CrashKind, CrashTestArgs, CrashWorkerArgs, EngineAction, EngineArgs, EngineCommon,
};
pub use fileio::{FileioAction, FileioArgs, FileioFiles, FileioRunArgs};
pub use fio::{Eta, FioArgs, OutputFormat, own_options};
pub use help_files::{CompletionsArgs, ManArgs, completions, man};
pub use io::IoArgs;
pub use probe::{Format, ProbeArgs, ReportArgs};
pub use server_words::LoginArgs;
pub use simulate::{FlushArgs, QueueArgs, SimulateAction, SimulateArgs, TimedValue};
pub use study::{DiffArgs, ListArgs, RunArgs, ShowArgs, StudyAction, StudyArgs, StudyPlace};
pub use watch::{ModeWord, TuneArgs, WatchArgs};
pub use workload::{WorkloadAction, WorkloadCommand};

/// Find the layer that takes your database's I/O, and get it back.
#[derive(Debug, Parser)]
#[command(name = "iostrata", version, max_term_width = 100, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Whether notes on stderr are suppressed.
    #[arg(skip)]
    pub is_quiet: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure what the storage under a directory can do for a database, and say what to change
    ///
    /// Measures one layer after the other on its own files in DIR, within two minutes, compares
    /// measurements of equal work, and writes a report. Needs no root and no server; removes its
    /// files.
    Probe(ProbeArgs),
    /// Run one I/O workload, with fio's options
    Io(Box<IoArgs>),
    /// Run fio job files and fio command lines
    ///
    /// Accepts fio's syntax. Unsupported options are refused with file and line or argument, and
    /// the reason; ignored options give a warning. docs/fio.md lists every option.
    Fio(Box<FioArgs>),
    /// Run sysbench's fileio test, with its options
    ///
    /// Measures like `io`. `prepare` creates the files, `cleanup` removes them.
    Fileio(FileioArgs),
    /// Run factorial studies, shipped or your own
    Study(StudyArgs),
    /// Simulate the effect of settings in virtual time, on modelled disks
    Simulate(SimulateArgs),
    /// Create block devices with the timing of modelled disks
    Disk(DiskArgs),
    /// Check an embedded storage engine, print its counters, crash-test it
    Engine(EngineArgs),
    /// A workload of transactions.
    #[command(flatten)]
    Workload(WorkloadCommand),
    /// Hold a live server's throughput steady by adjusting its dynamic settings
    ///
    /// Keeps the checkpoint age below its maximum, at which all writers wait, so that throughput
    /// does not dip whenever the redo runs out. Every change is journaled first and undone at the
    /// end, after a kill by `iostrata restore`. docs/tune.md explains the method.
    Tune(Box<TuneArgs>),
    /// Show checkpoint age, flushing, purge and I/O live, and name the cause of stalls
    ///
    /// Watches MySQL, MariaDB and Percona Server, and embedded engines in other processes. Reads
    /// existing counters and changes nothing. docs/watch.md lists the counters of each server, the
    /// rights they need, and how stalls are found.
    Watch(WatchArgs),
    /// Show or rewrite the report of a finished or partial run
    Report(ReportArgs),
    /// Undo the changes of killed runs, and remove their files
    ///
    /// Detaches loop devices, unmounts, removes control groups and files that killed runs created,
    /// and restores settings they changed, unless changed again since. Active runs and files kept
    /// on purpose are not affected. May be repeated.
    Restore(RestoreArgs),
    /// Print a shell completion script
    ///
    /// For bash: iostrata completions bash > ~/.local/share/bash-completion/completions/iostrata
    Completions(CompletionsArgs),
    /// Write the manual pages, one per command
    ///
    /// For all users: iostrata man /usr/local/share/man/man1
    Man(ManArgs),
    /// One worker of `io --process`; not for users
    #[command(name = iostrata_load::WORKER_COMMAND, hide = true)]
    Worker,
}

impl Cli {
    /// Reads prepared arguments.
    ///
    /// # Errors
    /// An error of clap; a test that only sysbench has.
    pub fn parsed(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let refused = word_order::refused(arguments);
        let refused = refused.or_else(|| sysbench_words::refused(arguments));
        if let Some(why) = refused.or_else(|| go_tpc_words::refused(arguments)) {
            return Err(Self::command().error(clap::error::ErrorKind::InvalidSubcommand, why));
        }
        let matches = Self::command().try_get_matches_from(arguments)?;
        let mut cli =
            Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::command()))?;
        cli.is_quiet = is_quiet(&matches);
        if let Command::Workload(command) = &mut cli.command {
            let has_defaults = command.has_defaults();
            command.target_mut().take_words(has_defaults);
        }
        Ok(cli)
    }
}

/// Whether the command that was given is to be quiet. One without that argument speaks to programs.
fn is_quiet(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some(("report", _)) => false,
        Some((_, inner)) => is_quiet(inner),
        None => !matches!(matches.try_get_one("quiet"), Ok(Some(false))),
    }
}

impl Command {
    /// Whether it makes files to measure on.
    pub fn makes_files(&self) -> bool {
        match self {
            Self::Probe(_) | Self::Io(_) | Self::Fileio(_) => true,
            Self::Fio(args) => !args.dry_run && !args.showcmd,
            Self::Study(args) => {
                matches!(args.action, StudyAction::Run(_) | StudyAction::Resume(_))
            }
            _ => false,
        }
    }
}

/// How a command prints.
#[derive(Args, Clone, Copy, Debug)]
pub struct Printing {
    /// Print one JSON document on stdout and nothing else there
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub json: bool,
    /// Print no progress and no notes
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub quiet: bool,
}

/// Options that every simulation has.
#[derive(Args, Clone, Debug)]
pub struct SimulateCommon {
    #[command(flatten)]
    pub printing: Printing,
    /// Directory for the run's results [default: iostrata-runs/<time>-<name>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Time limit of the whole command, in real time
    #[arg(long, value_name = "TIME", value_parser = value::bound)]
    pub max_time: Option<Duration>,
    /// Random seed; the same seed gives the same figures
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u64>)]
    pub seed: u64,
}

/// Options that every measuring command has.
#[derive(Args, Clone, Debug)]
pub struct Common {
    #[command(flatten)]
    pub printing: Printing,
    /// Directory for the run's results [default: iostrata-runs/<time>-<name>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Time limit of the whole command
    #[arg(long, value_name = "TIME", value_parser = value::bound)]
    pub max_time: Option<Duration>,
    /// Time limit of one measured point
    #[arg(long, value_name = "TIME", value_parser = value::bound)]
    pub point_time: Option<Duration>,
    /// Relative half-width of the 95 % interval at which a point may stop [default: 3%]
    #[arg(long, value_name = "SHARE", value_parser = value::share)]
    pub precision: Option<f64>,
}

/// The arguments as clap takes them: underscores in option names turned into dashes, and a value
/// below zero joined to its option, since `-5` alone reads as an option of that name.
pub fn prepared(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    // What has no option file is refused when it is parsed.
    let arguments = sysbench_words::present(arguments.clone()).unwrap_or(arguments);
    let arguments = go_tpc_words::in_ours(word_order::in_our_order(arguments));
    // What follows a bare `--` is no option.
    let arguments = fio::in_our_words(arguments);
    let mut arguments = arguments.into_iter().peekable();
    let mut result: Vec<OsString> = Vec::new();
    while let Some(argument) = arguments.next_if(|argument| argument != "--") {
        let argument = dashed(argument);
        match result.last_mut() {
            Some(option) if is_below_zero(&argument) && is_bare_option(option) => {
                option.push("=");
                option.push(argument);
            }
            _ => result.push(argument),
        }
    }
    result.extend(arguments);
    word_order::without_other_verbs(&Cli::command(), result)
}

fn dashed(argument: OsString) -> OsString {
    match argument.to_str() {
        Some(text) if text.starts_with("--") => {
            let (name, rest) = text.split_at(text.find('=').unwrap_or(text.len()));
            OsString::from(format!("{}{rest}", name.replace('_', "-")))
        }
        _ => argument,
    }
}

fn is_bare_option(argument: &OsString) -> bool {
    argument.to_str().is_some_and(|text| text.starts_with("--") && !text.contains('='))
}

fn is_below_zero(argument: &OsString) -> bool {
    let number = argument.to_str().and_then(|text| text.strip_prefix('-'));
    number.is_some_and(|text| text.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// What a user meant who wrote `--direct 1`: a switch takes its value behind a `=`.
pub fn switch_tip(arguments: &[OsString], error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg) else { return None };
    value::switch(found).ok()?;
    let at = arguments.iter().position(|argument| argument == found.as_str())?;
    let option = arguments.get(at.checked_sub(1)?).filter(|option| is_bare_option(option))?;
    Some(format!("write {}={found}", option.to_str()?))
}

/// Arguments of `iostrata restore`.
#[derive(Args, Debug)]
pub struct RestoreArgs {
    /// Restore only the settings of this server: mysql://user[:password]@host:port/db
    ///
    /// Without it everything is restored, and servers are contacted at the journaled address, with
    /// the password from ~/.my.cnf or MYSQL_PWD: journals contain no passwords.
    #[arg(long, value_name = "T")]
    pub target: Option<String>,
    #[command(flatten)]
    pub login: LoginArgs,
    #[command(flatten)]
    pub printing: Printing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn underscores_are_dashes_in_names_only() {
        let typed = ["x", "io", "--rate_iops=5", "--ioengine", "io_uring", "--", "--a_b"];
        let dashed = prepared(typed.iter().map(OsString::from));
        assert_eq!(dashed, ["x", "io", "--rate-iops=5", "--ioengine", "io_uring", "--", "--a_b"]);
    }

    #[test]
    fn values_below_zero_belong_to_their_option() {
        let typed =
            ["x", "--size", "-4k", "--seed=1", "-2", "-h", "--json", "-x", "--", "--a", "-1"];
        let joined = prepared(typed.iter().map(OsString::from));
        let expected =
            ["x", "--size=-4k", "--seed=1", "-2", "-h", "--json", "-x", "--", "--a", "-1"];
        assert_eq!(joined, expected);
    }

    #[test]
    fn a_value_behind_a_switch_is_told_where_it_belongs() {
        let of = |line: &str| {
            let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let error = Cli::try_parse_from(&arguments).unwrap_err();
            switch_tip(&arguments, &error)
        };
        assert_eq!(of("x io --path F --direct 1").as_deref(), Some("write --direct=1"));
        assert_eq!(of("x io --path F 1"), None);
        assert_eq!(of("x io --path F --nope"), None);
    }
}
