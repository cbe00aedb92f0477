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
    /// engine:DIR is the embedded engine, made there if DIR is empty or missing. A server's address
    /// may name several hosts with commas between; sessions take them in turn. What it leaves out
    /// comes from --defaults-file or ~/.my.cnf, and the password from MYSQL_PWD.
    #[arg(long, value_name = "TARGET", default_value = "", hide_default_value = true)]
    pub target: String,
    /// A setting of the embedded engine, as name=value; may be repeated
    #[arg(long = "engine", value_name = "NAME=VALUE")]
    pub engine: Vec<String>,
    /// The storage engine of a server's tables [default: the server's]
    #[arg(long, visible_alias = "mysql-storage-engine", value_name = "NAME")]
    pub storage_engine: Option<String>,
    /// Make the database that the address names, if it is not there; of `prepare`
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub create_database: bool,
    /// Write to a replica or to a server that is read-only, too
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
    /// database stand for what is not said.
    pub fn take_words(&mut self, has_defaults: bool) {
        if let Some(address) = self.words.address(has_defaults) {
            self.target = address;
        }
    }
}

/// A private server for one run.
#[derive(Args, Clone, Debug)]
pub struct PrivateArgs {
    /// Start this server program (mariadbd, mysqld or a path) for the run, in place of --target
    ///
    /// It gets data, a socket and nothing else of its own, is loaded, measured, stopped and
    /// removed. The system's own server is left alone.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["target", "mysql_host", "mysql_socket", "defaults_file", "defaults_group_suffix"])]
    pub server: Option<String>,
    /// Where its data goes: a directory that is made and removed, with a short path
    #[arg(long, value_name = "DIR", default_value = "iostrata-server", requires = "server")]
    pub server_dir: PathBuf,
    /// An option of the server in its own words (innodb_buffer_pool_size=1G); may be repeated
    #[arg(long = "server-option", value_name = "NAME=VALUE", requires = "server")]
    pub server_options: Vec<String>,
    /// A loaded copy of its data, made by the first run and copied for every run
    ///
    /// Where DIR does not exist, a server loads the tables and is shut down, and its data is kept
    /// in DIR. Each run works on a copy, so that all begin alike. Remove DIR when done with it.
    #[arg(long, value_name = "DIR", requires = "server")]
    pub prepared: Option<PathBuf>,
    /// Limit the memory of the measured server, its page cache included (2G); needs root
    #[arg(long, value_name = "SIZE", requires = "server", value_parser = value::size)]
    pub server_memory: Option<u64>,
    /// Limit the processors of the measured server (1.5); needs root
    #[arg(long, value_name = "N", requires = "server", value_parser = value::milli)]
    pub server_cpus: Option<u64>,
    /// Limit the I/O of the measured server on the disk below --server-dir, in the words of the
    /// kernel's io.max (riops=500,wbps=50M); needs root
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
    /// Remove what is there of this workload and load it again
    #[arg(long)]
    pub reset: bool,
    /// Seed of all random values
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u64>)]
    pub seed: u64,
    /// Directory for the run's results; none are kept without it
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub printing: Printing,
}

impl LoadArgs {
    /// Where nothing can be said.
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
    /// Each read sees what is committed when it begins
    #[value(name = "read-committed", alias = "RC", alias = "rc", alias = "read_committed")]
    ReadCommitted,
    /// Plain reads see one state of the database
    #[value(name = "repeatable-read", alias = "RR", alias = "rr", alias = "repeatable_read")]
    RepeatableRead,
    /// As if one transaction ran after the other; servers only
    #[value(alias = "SER", alias = "ser")]
    Serializable,
}

/// How transactions are driven.
#[derive(Args, Clone, Debug)]
pub struct DriveArgs {
    /// Terminals that run at the same time; a list is a staircase, one level after the other
    #[arg(short = 'T', long, value_name = "N[,N...]", default_value = "1", value_delimiter = ',',
          value_parser = value::whole::<u32>)]
    pub threads: Vec<u32>,
    /// Measured time of each level; 0 for as long as --events takes
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = value::duration)]
    pub time: Duration,
    /// End a level after so many transactions; 0 for no such end
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value::whole::<u64>)]
    pub events: u64,
    /// The percentile of latency in lines of progress
    #[arg(long, value_name = "P", default_value = "95", value_parser = value::percentile)]
    pub percentile: f64,
    /// Go on after these errors and count them, however many there are: codes with commas between,
    /// or all
    #[arg(long, value_name = "CODE[,CODE...]", value_delimiter = ',')]
    pub mysql_ignore_errors: Vec<String>,
    #[command(flatten)]
    pub taken: TakenWords,
    /// Time before it that is not counted [default: found]
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    pub warmup_time: Option<Duration>,
    /// Transactions per second that arrive, whether earlier ones are done or not
    #[arg(long, value_name = "TPS", value_parser = value::number)]
    pub rate: Option<f64>,
    /// How arrivals are spaced
    #[arg(long, value_parser = value::word::<RateProcess>(), default_value = "poisson", requires = "rate")]
    pub arrival: RateProcess,
    /// Arrivals that may wait for a session
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "rate", value_parser = value::whole::<u32>)]
    pub max_queue: u32,
    /// What happens to an arrival that finds so many waiting
    #[arg(long, value_parser = value::word::<Overload>(), default_value = "queue", requires = "rate")]
    pub on_overload: Overload,
    /// Search for the highest rate at which response time holds this objective, such as 20ms
    ///
    /// The first level has no schedule and gives the capacity; further ones are rates below it.
    #[arg(long, value_name = "TIME", value_parser = value::bound, conflicts_with = "rate")]
    pub latency_target: Option<Duration>,
    /// The percentile of response time that has to hold it
    #[arg(long, value_name = "P", default_value = "99", requires = "latency_target", value_parser = value::percentile)]
    pub latency_percentile: f64,
    /// What sessions see of each other
    #[arg(long, visible_alias = "trx-level", value_enum, default_value = "repeatable-read")]
    pub isolation: IsolationWord,
    /// Send statements as text instead of preparing them
    #[arg(long, value_name = "auto|disable", default_value = "auto")]
    pub db_ps_mode: PreparedMode,
    /// Seconds between lines of progress, 0 for none [default: 1 in a terminal, else 0]
    #[arg(short = 'i', long, visible_alias = "interval", value_name = "N", value_parser = value::whole::<u32>)]
    pub report_interval: Option<u32>,
    /// Seed of everything that is drawn
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
    /// Of sysbench-tpcc: a table has a key of its own where the server asks for one.
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
