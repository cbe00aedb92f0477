//! `iostrata fileio`: sysbench's test of files, on the meter of `io`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use iostrata_plan::{
    Access, Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, Mix, Pacing, RateProcess,
    SpecError, SyncWrites,
};

use super::{Common, value};

/// sysbench's first names of its files.
const FILE_NAME: &str = "test_file";
/// How long a run may take that has no time of its own.
const LONGEST: Duration = Duration::from_secs(3600);

/// Arguments of `iostrata fileio`.
#[derive(Args, Debug)]
pub struct FileioArgs {
    #[command(subcommand)]
    pub action: FileioAction,
}

/// What to do with the files.
#[derive(Debug, Subcommand)]
pub enum FileioAction {
    /// Create the files, with random contents
    Prepare(FileioFiles),
    /// Run the test
    Run(Box<FileioRunArgs>),
    /// Remove the files created by `prepare`
    Cleanup(FileioFiles),
}

/// Which files.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct FileioFiles {
    #[command(flatten)]
    pub place: FilePlace,
    #[command(flatten)]
    pub printing: super::Printing,
}

/// Where the files are, how many and how large.
#[derive(Args, Clone, Debug)]
pub struct FilePlace {
    /// Directory of the files test_file.0 and so on
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub file_dir: PathBuf,
    /// Number of files
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = value::whole::<u32>)]
    pub file_num: u32,
    /// Bytes of all files together
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = value::size)]
    pub file_total_size: u64,
    /// Bytes of each request
    #[arg(long, value_name = "SIZE", default_value = "16K", value_parser = value::block)]
    pub file_block_size: u32,
}

impl FilePlace {
    /// The name that those of several files begin with; of one file its whole name.
    pub fn path(&self) -> PathBuf {
        match self.file_num {
            1 => self.file_dir.join(format!("{FILE_NAME}.0")),
            _ => self.file_dir.join(FILE_NAME),
        }
    }

    /// All files.
    pub fn paths(&self) -> Vec<PathBuf> {
        (0..self.file_num)
            .map(|number| self.file_dir.join(format!("{FILE_NAME}.{number}")))
            .collect()
    }
}

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum TestMode {
    /// Sequential writes
    Seqwr,
    /// Sequential overwrites
    Seqrewr,
    /// Sequential reads
    Seqrd,
    /// Random reads
    Rndrd,
    /// Random writes
    Rndwr,
    /// Random reads and writes
    Rndrw,
}

/// How requests reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum IoMode {
    /// pread and pwrite
    Sync,
    /// Linux native asynchronous I/O, --file-async-backlog in flight
    Async,
    /// Mapped into memory
    Mmap,
}

/// How files are opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum ExtraFlag {
    /// O_SYNC
    Sync,
    /// O_DSYNC
    Dsync,
    /// O_DIRECT
    Direct,
}

/// How files are synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum FsyncMode {
    /// fsync
    Fsync,
    /// fdatasync
    Fdatasync,
}

/// Arguments of `iostrata fileio run`.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct FileioRunArgs {
    #[command(flatten)]
    pub place: FilePlace,
    /// Type of requests
    #[arg(long, value_enum, value_name = "MODE")]
    pub file_test_mode: TestMode,
    /// I/O mode
    #[arg(long, value_enum, default_value = "sync")]
    pub file_io_mode: IoMode,
    /// Requests in flight per thread with --file-io-mode=async
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = value::whole::<u32>)]
    pub file_async_backlog: u32,
    /// Additional flags of open
    #[arg(long, value_enum, value_delimiter = ',', value_name = "FLAG[,FLAG]")]
    pub file_extra_flags: Vec<ExtraFlag>,
    /// Sync every file after this many requests; 0 for never
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = value::whole::<u32>)]
    pub file_fsync_freq: u32,
    /// Sync the file after each write
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, action = clap::ArgAction::Set)]
    pub file_fsync_all: bool,
    /// Sync every file at the end
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "1", value_parser = value::switch, action = clap::ArgAction::Set)]
    pub file_fsync_end: bool,
    /// Sync method
    #[arg(long, value_enum, default_value = "fsync")]
    pub file_fsync_mode: FsyncMode,
    /// Reads per write of rndrw
    #[arg(long, value_name = "RATIO", default_value = "1.5", value_parser = value::number)]
    pub file_rw_ratio: f64,
    /// Threads
    #[arg(short = 'T', long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u32>)]
    pub threads: u32,
    /// Measured time; 0 to run until --events
    #[arg(long, value_name = "TIME", default_value = "10", value_parser = value::duration)]
    pub time: Duration,
    /// Stop after this many requests; 0 for no limit
    #[arg(long, visible_alias = "max-requests", value_name = "N", default_value_t = 0, value_parser = value::whole::<u64>)]
    pub events: u64,
    /// Open arrival rate of all threads, requests per second; 0 for none
    #[arg(long, value_name = "N", default_value = "0", value_parser = value::number)]
    pub rate: f64,
    /// Random seed
    #[arg(long, visible_alias = "rand-seed", value_name = "N", default_value_t = 1, value_parser = value::whole::<u64>)]
    pub seed: u64,
    #[command(flatten)]
    pub ignored: FileioIgnored,
    #[command(flatten)]
    pub common: Common,
}

/// Options of sysbench whose answer is always printed, or that are without effect here.
#[derive(Args, Clone, Debug)]
pub struct FileioIgnored {
    #[arg(long, hide = true)]
    pub percentile: Option<String>,
    #[arg(long, hide = true)]
    pub report_interval: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub histogram: Option<String>,
    #[arg(long, hide = true)]
    pub verbosity: Option<String>,
}

impl FileioRunArgs {
    /// The checked workload.
    ///
    /// # Errors
    /// The first option that cannot be run.
    pub fn spec(&self) -> Result<IoSpec, SpecError> {
        let mut spec = IoSpec::new(self.place.path());
        let reads_pct = 100.0 * self.file_rw_ratio / (1.0 + self.file_rw_ratio);
        (spec.mix, spec.access) = match self.file_test_mode {
            TestMode::Seqwr | TestMode::Seqrewr => (Mix::Write, Access::Sequential),
            TestMode::Seqrd => (Mix::Read, Access::Sequential),
            TestMode::Rndrd => (Mix::Read, Access::Uniform),
            TestMode::Rndwr => (Mix::Write, Access::Uniform),
            TestMode::Rndrw => {
                (Mix::Both { read_pct: reads_pct.round().clamp(0.0, 100.0) as u8 }, Access::Uniform)
            }
        };
        spec.block_bytes = self.place.file_block_size;
        (spec.api, spec.depth) = match self.file_io_mode {
            IoMode::Sync => (IoApi::Sync, 1),
            IoMode::Async => (IoApi::Libaio, self.file_async_backlog),
            IoMode::Mmap => (IoApi::Mmap, 1),
        };
        spec.jobs = self.threads;
        let has = |flag| self.file_extra_flags.contains(&flag);
        spec.direct = has(ExtraFlag::Direct);
        spec.sync = match (has(ExtraFlag::Sync), has(ExtraFlag::Dsync)) {
            (true, _) => SyncWrites::Sync,
            (false, true) => SyncWrites::Dsync,
            (false, false) => SyncWrites::None,
        };
        spec.files = self.place.file_num;
        spec.size_bytes = self.place.file_total_size;
        spec.flush = self.flush().filter(|_| spec.mix.writes());
        spec.variation.end_flush = self.file_fsync_end && spec.mix.writes();
        if self.rate > 0.0 {
            let rate_iops = self.rate / f64::from(self.threads.max(1));
            spec.pacing = Pacing::Open { rate_iops, process: RateProcess::Poisson };
        }
        if self.events > 0 {
            let each = self.events.div_ceil(u64::from(self.threads.max(1)));
            spec.variation.io_bytes_max = Some(each * u64::from(spec.block_bytes));
        }
        spec.seed = self.seed;
        // Nothing that ends by its requests takes longer than this.
        spec.runtime = Some(match (self.time.is_zero(), self.events) {
            (false, _) => self.time,
            (true, 0) => {
                let (found, why) = ("0".to_owned(), "it leaves no time".to_owned());
                let fix = "write for example 30, or give --events".to_owned();
                return Err(SpecError { option: "time", found, why, fix });
            }
            (true, _) => LONGEST,
        });
        spec.check()?;
        Ok(spec)
    }

    /// After every so many requests of each thread, which over all threads is as often.
    fn flush(&self) -> Option<Flush> {
        let method = match self.file_fsync_mode {
            FsyncMode::Fsync => FlushMethod::Fsync,
            FsyncMode::Fdatasync => FlushMethod::Fdatasync,
        };
        if self.file_fsync_all {
            let (scope, count) = (FlushScope::File, FlushCount::Writes);
            return Some(Flush { method, every: 1, scope, count });
        }
        let (scope, count) = (FlushScope::All, FlushCount::Requests);
        let every = self.file_fsync_freq;
        (every > 0).then_some(Flush { method, every, scope, count })
    }
}
