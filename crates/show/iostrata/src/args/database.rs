//! `iostrata tpcc` and `iostrata oltp`: workloads of databases.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use iostrata_spec::study::IoLimits;
use iostrata_spec::{Overload, RateProcess};

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
    #[arg(long, value_name = "NAME")]
    pub storage_engine: Option<String>,
    #[command(flatten)]
    pub login: LoginArgs,
}

/// A private server for one run.
#[derive(Args, Clone, Debug)]
pub struct PrivateArgs {
    /// Start this server program (mariadbd, mysqld or a path) for the run, in place of --target
    ///
    /// It gets data, a socket and nothing else of its own, is loaded, measured, stopped and
    /// removed. The system's own server is left alone.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["target", "defaults_file", "defaults_group_suffix"])]
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

/// Arguments of `iostrata tpcc`.
#[derive(Args, Debug)]
pub struct TpccArgs {
    #[command(subcommand)]
    pub action: TpccAction,
}

/// What to do with TPC-C.
#[derive(Debug, Subcommand)]
pub enum TpccAction {
    /// Make the tables and fill them; goes on where an earlier attempt was interrupted
    Prepare(TpccPrepareArgs),
    /// Run transactions and measure them
    Run(Box<TpccRunArgs>),
    /// Check the twelve consistency conditions
    ///
    /// Exit code 1 when one does not hold.
    Check(CheckArgs),
    /// Remove the tables
    #[command(visible_alias = "clean")]
    Cleanup(TpccCleanupArgs),
}

impl TpccAction {
    /// Whether notes on stderr were asked not to be.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Prepare(args) => args.load.printing.quiet,
            Self::Run(args) => args.common.printing.quiet,
            Self::Check(args) => args.printing.quiet,
            Self::Cleanup(args) => args.printing.quiet,
        }
    }
}

/// A load to be compatible with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compat {
    /// The statements and deviations of sysbench-tpcc, on its own tables
    SysbenchTpcc,
}

/// Whose tables.
#[derive(Args, Clone, Copy, Debug)]
pub struct CompatArgs {
    /// Another kit's load in place of TPC-C's, on the kit's own tables
    #[arg(long, value_enum, value_name = "KIT")]
    pub compat: Option<Compat>,
    /// Sets of tables of that kit
    #[arg(long, value_name = "N", default_value_t = 1, requires = "compat", value_parser = value::whole::<u32>)]
    pub tables: u32,
    /// Foreign keys between that kit's tables
    #[arg(long, value_name = "0|1", default_value = "1", requires = "compat", value_parser = value::switch,
          action = clap::ArgAction::Set)]
    pub use_fk: bool,
}

/// Arguments of `iostrata tpcc prepare`.
#[derive(Args, Debug)]
pub struct TpccPrepareArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub compat: CompatArgs,
    /// Warehouses, about 100 MB each
    #[arg(short = 'w', long, visible_alias = "scale", value_name = "N", default_value_t = 4,
          value_parser = value::whole::<u32>)]
    pub warehouses: u32,
    /// Loaders at the same time
    #[arg(short = 'T', long, value_name = "N", default_value_t = 4, value_parser = value::whole::<u32>)]
    pub threads: u32,
    #[command(flatten)]
    pub load: LoadArgs,
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

/// Arguments of `check`, and of `cleanup` where a target has tables of one kind.
#[derive(Args, Debug)]
pub struct CheckArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub printing: Printing,
}

/// Arguments of `iostrata tpcc cleanup`.
#[derive(Args, Debug)]
pub struct TpccCleanupArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub compat: CompatArgs,
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
    /// Measured time of each level
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = value::bound)]
    pub time: Duration,
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

/// Whether statements are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PreparedMode {
    /// Prepared
    Auto,
    /// Sent as text
    Disable,
}

/// Arguments of `iostrata tpcc run`.
#[derive(Args, Clone, Debug)]
pub struct TpccRunArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub private: PrivateArgs,
    #[command(flatten)]
    pub compat: CompatArgs,
    /// Warehouses of --compat, which does not keep their number, and of --server [default: 4]
    #[arg(short = 'w', long, visible_alias = "scale", value_name = "N", value_parser = value::whole::<u32>)]
    pub warehouses: Option<u32>,
    #[command(flatten)]
    pub drive: DriveArgs,
    /// Ten terminals for each warehouse that key and think as specified, over --threads sessions
    #[arg(long, conflicts_with_all = ["rate", "latency_target", "compat"])]
    pub wait: bool,
    /// Factor of keying times
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "wait", value_parser = value::number)]
    pub keying_multiplier: f64,
    /// Factor of think times
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "wait", value_parser = value::number)]
    pub think_multiplier: f64,
    /// Shares of new orders, payments, order statuses, deliveries, stock levels; or: deck
    #[arg(
        long,
        visible_alias = "weight",
        value_name = "N,N,N,N,N|deck",
        default_value = "45,43,4,4,4"
    )]
    pub mix: String,
    /// Check the twelve consistency conditions after the run; exit code 1 when one does not hold
    #[arg(long, conflicts_with = "compat")]
    pub check: bool,
    #[command(flatten)]
    pub common: Common,
}

/// A member of the OLTP family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum MemberWord {
    /// 14 reads and 4 writes in a transaction
    ReadWrite,
    /// The reads of read_write
    ReadOnly,
    /// The writes of read_write
    WriteOnly,
    /// One row by its key, no transaction
    PointSelect,
    /// One update of an indexed column, no transaction
    UpdateIndex,
}

/// Arguments of `iostrata oltp`.
#[derive(Args, Debug)]
pub struct OltpArgs {
    /// The workload, as sysbench calls it without oltp_
    #[arg(value_enum)]
    pub member: MemberWord,
    #[command(subcommand)]
    pub action: OltpAction,
}

/// What to do with it.
#[derive(Debug, Subcommand)]
pub enum OltpAction {
    /// Make the tables and fill them
    Prepare(OltpPrepareArgs),
    /// Run transactions and measure them
    Run(Box<OltpRunArgs>),
    /// Remove the tables
    #[command(visible_alias = "clean")]
    Cleanup(OltpPrepareArgs),
}

impl OltpAction {
    /// Whether notes on stderr were asked not to be.
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Prepare(args) | Self::Cleanup(args) => args.printing.quiet,
            Self::Run(args) => args.common.printing.quiet,
        }
    }
}

/// Which rows are asked for, in sysbench's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RandType {
    /// All alike
    Uniform,
    /// A bell around the middle
    Gaussian,
    /// Three of four in a hundredth of the rows
    Special,
    /// The first rows by far the most
    Pareto,
    /// By rank
    Zipfian,
}

/// The tables of the family.
#[derive(Args, Clone, Copy, Debug)]
pub struct OltpTables {
    /// Tables sbtest1 to sbtestN
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u32>)]
    pub tables: u32,
    /// Rows of each table
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = value::whole::<u32>)]
    pub table_size: u32,
    /// Which rows are asked for
    #[arg(long, value_enum, default_value = "uniform")]
    pub rand_type: RandType,
}

/// Arguments of `iostrata oltp ... prepare` and `cleanup`.
#[derive(Args, Debug)]
pub struct OltpPrepareArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub tables: OltpTables,
    /// Loaders at the same time
    #[arg(short = 'T', long, value_name = "N", default_value_t = 4, value_parser = value::whole::<u32>)]
    pub threads: u32,
    #[command(flatten)]
    pub printing: Printing,
}

/// Arguments of `iostrata oltp ... run`.
#[derive(Args, Clone, Debug)]
pub struct OltpRunArgs {
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub private: PrivateArgs,
    #[command(flatten)]
    pub tables: OltpTables,
    /// Rows of a range
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value::whole::<u32>)]
    pub range_size: u32,
    /// Make every statement a transaction of its own
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          value_parser = value::switch)]
    pub skip_trx: Option<bool>,
    #[command(flatten)]
    pub drive: DriveArgs,
    #[command(flatten)]
    pub common: Common,
}
