//! `iostrata tpcc` and `iostrata oltp`: workloads of databases.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use iostrata_plan::study::IoLimits;
use iostrata_plan::{Overload, RateProcess};
use iostrata_server::TableWords;
use iostrata_workload::oltp::Member;

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
    /// How a server's tables are made.
    #[arg(skip)]
    pub table_words: TableWords,
    /// About how many bytes of data there will be.
    #[arg(skip)]
    pub data_bytes: Option<u64>,
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
    /// Sets of tables of sysbench-tpcc; stands for --compat sysbench-tpcc
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub tables: Option<u32>,
    /// Foreign keys between that kit's tables
    #[arg(long, value_name = "0|1", default_value = "1", value_parser = value::switch,
          action = clap::ArgAction::Set)]
    pub use_fk: bool,
}

impl CompatArgs {
    /// Whether the kit's load is meant.
    pub fn is_kit(&self) -> bool {
        self.compat.is_some() || self.tables.is_some()
    }

    /// Sets of the kit's tables.
    pub fn sets(&self) -> u32 {
        self.tables.unwrap_or(1).max(1)
    }
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
    /// Let few threads work in all warehouses, each in its own share; 0 leaves each at one
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "1", value_parser = value::switch, action = clap::ArgAction::Set)]
    pub all_warehouses: bool,
    /// Check the twelve consistency conditions after the run; exit code 1 when one does not hold
    #[arg(long, conflicts_with = "compat")]
    pub check: bool,
    #[command(flatten)]
    pub common: Common,
}

/// A member of the OLTP family, as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberWord(pub Member);

impl ValueEnum for MemberWord {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<MemberWord>> =
            LazyLock::new(|| Member::ALL.map(MemberWord).to_vec());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.words()))
    }
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
#[derive(Args, Clone, Debug)]
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
    /// Of gaussian and special: numbers that are summed up
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = value::whole::<u32>)]
    pub rand_spec_iter: u32,
    /// Of special: percent of the rows that are special
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = value::percent)]
    pub rand_spec_pct: u8,
    /// Of special: percent of the draws that go to special rows
    #[arg(long, value_name = "PERCENT", default_value = "75", value_parser = value::percent)]
    pub rand_spec_res: u8,
    /// Of pareto: its shape
    #[arg(long, value_name = "H", default_value = "0.2", value_parser = value::number)]
    pub rand_pareto_h: f64,
    /// Of zipfian: its exponent
    #[arg(long, value_name = "EXP", default_value = "0.8", value_parser = value::number)]
    pub rand_zipfian_exp: f64,
    /// Let the server count ids up
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "1", value_parser = value::switch, action = clap::ArgAction::Set)]
    pub auto_inc: bool,
    /// An index of the ids in place of the primary key; servers only
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, action = clap::ArgAction::Set)]
    pub secondary: bool,
    /// What CREATE TABLE ends with; servers only
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub create_table_options: String,
}

/// The statements of a transaction.
#[derive(Args, Clone, Copy, Debug)]
pub struct StatementArgs {
    /// Rows of a range
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value::whole::<u32>)]
    pub range_size: u32,
    /// Ranges at all
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "1", value_parser = value::switch, action = clap::ArgAction::Set)]
    pub range_selects: bool,
    /// Selects by id [default: 10]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub point_selects: Option<u32>,
    /// Ranges as they are [default: 1]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub simple_ranges: Option<u32>,
    /// Sums of ranges [default: 1]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub sum_ranges: Option<u32>,
    /// Ordered ranges [default: 1]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub order_ranges: Option<u32>,
    /// Distinct values of ranges [default: 1]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub distinct_ranges: Option<u32>,
    /// Updates of the indexed column [default: 1]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub index_updates: Option<u32>,
    /// Updates of a column without an index [default: 1]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub non_index_updates: Option<u32>,
    /// Rows removed and put back [default: 1]
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    pub delete_inserts: Option<u32>,
    /// Values of select_random_points
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value::whole::<u32>)]
    pub random_points: u32,
    /// Ranges of select_random_ranges
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value::whole::<u32>)]
    pub number_of_ranges: u32,
    /// Length of a range of select_random_ranges
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value::whole::<u32>)]
    pub delta: u32,
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
    #[command(flatten)]
    pub statements: StatementArgs,
    /// Make every statement a transaction of its own
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          value_parser = value::switch)]
    pub skip_trx: Option<bool>,
    #[command(flatten)]
    pub drive: DriveArgs,
    #[command(flatten)]
    pub common: Common,
}
