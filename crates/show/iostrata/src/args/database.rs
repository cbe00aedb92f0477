//! What the commands of all workloads of transactions take.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use iostrata_plan::study::IoLimits;
use iostrata_plan::{Overload, RateProcess};

use super::server_words::ServerWords;
use super::{Common, LoginArgs, Printing, value};

/// Where the database is.
#[derive(Args, Clone, Debug)]
pub struct TargetArgs {
    /// The database: engine:DIR, or mysql://user[:password]@host:port/db[?socket=PATH]
    ///
    /// engine:DIR is the embedded engine, created if DIR is empty or missing. A server's address
    /// may have several hosts, separated by commas, which sessions use in turn. Missing parts come
    /// from --defaults-file or ~/.my.cnf, and the password from MYSQL_PWD.
    #[arg(long, value_name = "TARGET", default_value = "", hide_default_value = true)]
    pub target: String,
    /// A setting of the embedded engine, as name=value; may be repeated
    #[arg(long = "engine", value_name = "NAME=VALUE")]
    pub engine: Vec<String>,
    /// The storage engine of a server's tables [default: the server's]
    #[arg(long, visible_alias = "mysql-storage-engine", value_name = "NAME")]
    pub storage_engine: Option<String>,
    /// Create the database if it does not exist (`prepare`)
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub create_database: bool,
    /// Also write to a replica or a read-only server
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub insist: bool,
    #[command(flatten)]
    pub words: ServerWords,
    #[command(flatten)]
    pub login: LoginArgs,
}

impl TargetArgs {
    /// Takes the server that was named option by option. `has_defaults`: sysbench's own user and
    /// database stand for options that are not given.
    pub fn take_words(&mut self, has_defaults: bool) {
        if let Some(address) = self.words.address(has_defaults) {
            self.target = address;
        }
    }
}

/// A private server for one run.
#[derive(Args, Clone, Debug)]
pub struct PrivateArgs {
    /// Start this server program (mariadbd, mysqld or a path) for the run, instead of --target
    ///
    /// It has its own data and socket, is loaded, measured, stopped and removed. The system's own
    /// server is not affected.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["target", "mysql_host", "mysql_socket", "defaults_file", "defaults_group_suffix"])]
    pub server: Option<String>,
    /// Directory for its data, created and removed; needs a short path
    #[arg(long, value_name = "DIR", default_value = "iostrata-server", requires = "server")]
    pub server_dir: PathBuf,
    /// A server option, such as innodb_buffer_pool_size=1G; may be repeated
    #[arg(long = "server-option", value_name = "NAME=VALUE", requires = "server")]
    pub server_options: Vec<String>,
    /// Directory with loaded data, created by the first run and copied for every run
    ///
    /// If DIR does not exist, a server loads the tables and is shut down, and its data is kept in
    /// DIR. Each run uses a copy, so that all start from the same data. Remove DIR when done.
    #[arg(long, value_name = "DIR", requires = "server")]
    pub prepared: Option<PathBuf>,
    /// Memory limit of the measured server, with its page cache (2G); needs root
    #[arg(long, value_name = "SIZE", requires = "server", value_parser = value::size)]
    pub server_memory: Option<u64>,
    /// CPU limit of the measured server (1.5); needs root
    #[arg(long, value_name = "N", requires = "server", value_parser = value::milli)]
    pub server_cpus: Option<u64>,
    /// I/O limit of the measured server on the disk below --server-dir, in the format of io.max
    /// (riops=500,wbps=50M); needs root
    #[arg(long, value_name = "WORD=N[,...]", requires = "server", value_parser = value::io_limits)]
    pub server_io: Option<IoLimits>,
}

/// Arguments of `prepare`.
#[derive(Debug)]
pub struct PrepareArgs {
    pub target: TargetArgs,
    /// How many load at the same time.
    pub loaders: u32,
    pub load: LoadArgs,
}

/// Arguments of `run`.
#[derive(Clone, Debug)]
pub struct TransactionArgs {
    pub target: TargetArgs,
    pub private: PrivateArgs,
    pub drive: DriveArgs,
    /// Whether the tables are checked afterwards.
    pub checks: bool,
    pub common: Common,
}

/// What every load that keeps its run has.
#[derive(Args, Clone, Debug)]
pub struct LoadArgs {
    /// Drop the existing tables of this workload and load them again
    #[arg(long)]
    pub reset: bool,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u64>)]
    pub seed: u64,
    /// Directory for the run's results; without it none are kept
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub printing: Printing,
}

impl LoadArgs {
    /// The defaults, for commands without these options.
    pub fn new() -> Self {
        let printing = Printing { json: false, quiet: false };
        Self { reset: false, seed: 0, out: None, printing }
    }
}

/// Arguments of `check` and `cleanup`.
#[derive(Args, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub printing: Printing,
}

/// What sessions see of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IsolationWord {
    /// Each read returns data committed before it began
    #[value(name = "read-committed", alias = "RC", alias = "rc", alias = "read_committed")]
    ReadCommitted,
    /// Plain reads use one snapshot
    #[value(name = "repeatable-read", alias = "RR", alias = "rr", alias = "repeatable_read")]
    RepeatableRead,
    /// Serializable; servers only
    #[value(alias = "SER", alias = "ser")]
    Serializable,
}

/// How transactions are driven.
#[derive(Args, Clone, Debug)]
pub struct DriveArgs {
    /// Concurrent terminals; a list runs one level after the other
    #[arg(short = 'T', long, value_name = "N[,N...]", default_value = "1", value_delimiter = ',',
          value_parser = value::whole::<u32>)]
    pub threads: Vec<u32>,
    /// Measured time of each level; 0 to run until --events
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = value::duration)]
    pub time: Duration,
    /// End a level after this many transactions; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value::whole::<u64>)]
    pub events: u64,
    /// Latency percentile in progress lines
    #[arg(long, value_name = "P", default_value = "95", value_parser = value::percentile)]
    pub percentile: f64,
    /// Ignore these errors but count them: error codes, separated by commas, or all
    #[arg(long, value_name = "CODE[,CODE...]", value_delimiter = ',')]
    pub mysql_ignore_errors: Vec<String>,
    #[command(flatten)]
    pub taken: TakenWords,
    /// Warm-up time, not measured [default: detected]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub warmup_time: Option<Duration>,
    /// Open arrival rate, transactions per second
    #[arg(long, value_name = "TPS", value_parser = value::number)]
    pub rate: Option<f64>,
    /// Arrival process
    #[arg(long, value_parser = value::word::<RateProcess>(), default_value = "poisson", requires = "rate")]
    pub arrival: RateProcess,
    /// Maximum number of arrivals waiting for a session
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "rate", value_parser = value::whole::<u32>)]
    pub max_queue: u32,
    /// What to do with further arrivals
    #[arg(long, value_parser = value::word::<Overload>(), default_value = "queue", requires = "rate")]
    pub on_overload: Overload,
    /// Search for the highest rate at which response time meets this objective, such as 20ms
    ///
    /// The first level is a closed loop and gives the capacity; the next ones are rates below it.
    #[arg(long, value_name = "TIME", value_parser = value::bound, conflicts_with = "rate")]
    pub latency_target: Option<Duration>,
    /// The percentile of response time for it
    #[arg(long, value_name = "P", default_value = "99", requires = "latency_target", value_parser = value::percentile)]
    pub latency_percentile: f64,
    /// Isolation level
    #[arg(long, visible_alias = "trx-level", value_enum, default_value = "repeatable-read")]
    pub isolation: IsolationWord,
    /// Send statements as text instead of preparing them
    #[arg(long, value_name = "auto|disable", default_value = "auto")]
    pub db_ps_mode: PreparedMode,
    /// Seconds between progress lines, 0 for none [default: 1 in a terminal, otherwise 0]
    #[arg(short = 'i', long, visible_alias = "interval", value_name = "N", value_parser = value::whole::<u32>)]
    pub report_interval: Option<u32>,
    /// Random seed
    #[arg(long, visible_alias = "rand-seed", value_name = "N", default_value_t = 1, value_parser = value::whole::<u64>)]
    pub seed: u64,
}

/// What sysbench has and a run here is without: windows end on time by themselves, sessions are
/// opened before them, histograms are always kept. The words are taken and have no effect.
#[derive(Args, Clone, Debug)]
pub struct TakenWords {
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub histogram: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub forced_shutdown: Option<String>,
    #[arg(long, hide = true)]
    pub thread_init_timeout: Option<String>,
    #[arg(long, hide = true)]
    pub thread_stack_size: Option<String>,
    #[arg(long, hide = true)]
    pub verbosity: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub debug: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub validate: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub db_debug: Option<String>,
    /// Of sysbench-tpcc: a table has a key of its own where the server requires one.
    #[arg(long, hide = true, value_name = "0|1")]
    pub force_pk: Option<String>,
}

/// Whether statements are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PreparedMode {
    /// Prepared
    Auto,
    /// Sent as text
    Disable,
}
