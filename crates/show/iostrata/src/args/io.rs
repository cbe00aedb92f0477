//! `iostrata io`: one workload in fio's words.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use iostrata_plan::{
    Access, Flush, FlushCount, FlushMethod, FlushScope, IoApi, IoSpec, Memory, Pacing, Preparation,
    RateProcess, Rw, SpecError, SyncWrites,
};

use super::{Common, value};

/// Arguments of `iostrata io`.
#[derive(Args, Debug)]
pub struct IoArgs {
    /// A file, a directory or a block device
    ///
    /// A missing file is created, filled with incompressible data, measured and removed. In a
    /// directory, new files are created. A file that iostrata did not create, and a device, are
    /// only read.
    #[arg(long, value_name = "PATH")]
    pub path: PathBuf,
    /// Type of requests
    #[arg(long, value_parser = value::word::<Rw>(), default_value = "randread")]
    rw: Rw,
    /// Percentage of reads of rw and randrw
    #[arg(long, value_name = "PCT", default_value_t = 50, value_parser = value::percent)]
    rwmixread: u8,
    /// Bytes of each request, 512 to 16M
    #[arg(long, value_name = "SIZE", default_value = "4k", value_parser = value::block)]
    bs: u32,
    /// Requests in flight per job
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u32>)]
    iodepth: u32,
    /// Jobs that share the files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u32>)]
    numjobs: u32,
    /// I/O engine
    #[arg(long, value_parser = value::word::<IoApi>(), default_value = "sync", alias = "engine")]
    ioengine: IoApi,
    /// Memory of the requests, with fio's names
    #[arg(long, visible_alias = "iomem", value_parser = value::word::<Memory>(), default_value = "malloc")]
    mem: Memory,
    /// Bypass the page cache
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    direct: bool,
    /// Poll for completions (io_uring with --direct, on devices that allow it)
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    hipri: bool,
    /// fsync after every N writes of each job
    #[arg(long, value_name = "N", conflicts_with = "fdatasync", value_parser = value::whole::<u32>)]
    fsync: Option<u32>,
    /// fdatasync after every N writes of each job
    #[arg(long, value_name = "N", value_parser = value::whole::<u32>)]
    fdatasync: Option<u32>,
    /// Flush the file just written, or every file
    #[arg(long, value_parser = value::word::<FlushScope>(), default_value = "file")]
    fsync_scope: FlushScope,
    /// Count writes, or reads and writes
    #[arg(long, value_parser = value::word::<FlushCount>(), default_value = "writes")]
    fsync_every: FlushCount,
    /// Durability of each write
    #[arg(long, value_parser = value::word::<SyncWrites>(), default_value = "none")]
    sync: SyncWrites,
    /// Files that share --size
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u32>)]
    nrfiles: u32,
    /// Bytes of all files together [default: 1G, or the whole of an existing file]
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    pub size: Option<u64>,
    /// Initial content of files created for the run
    #[arg(long, value_parser = value::word::<Preparation>(), default_value = "written")]
    prepare: Preparation,
    /// Measure for exactly this time; by default until --precision or --point-time (30 s)
    #[arg(long, value_name = "TIME", value_parser = value::duration)]
    runtime: Option<Duration>,
    /// Open arrival rate of each job, requests per second
    #[arg(long, value_name = "N", value_parser = value::number)]
    rate_iops: Option<f64>,
    /// Arrival process of scheduled requests
    #[arg(long, value_parser = value::word::<RateProcess>(), default_value = "fixed")]
    rate_process: RateProcess,
    /// Distribution of random offsets: uniform, zipf:THETA or coverage
    #[arg(long, value_name = "HOW", default_value = "uniform", value_parser = value::distribution)]
    random_distribution: Access,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value::whole::<u64>)]
    randseed: u64,
    /// Use processes instead of threads as jobs
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    process: bool,
    /// Stop after this many written bytes
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    max_write: Option<u64>,
    /// Keep the created files for the next run
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub keep: bool,
    /// Allow overwriting an existing file or device
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "0|1", default_missing_value = "1",
          default_value = "0", value_parser = value::switch, hide_default_value = true)]
    pub overwrite_contents: bool,
    #[command(flatten)]
    pub common: Common,
}

impl IoArgs {
    /// The checked workload. `size_bytes` is the default's where `--size` was left out.
    ///
    /// # Errors
    /// The first option that cannot be run.
    pub fn spec(&self) -> Result<IoSpec, SpecError> {
        let mut spec = IoSpec::new(&self.path);
        spec.mix = self.rw.mix(self.rwmixread);
        spec.access =
            if self.rw.is_random() { self.random_distribution } else { Access::Sequential };
        spec.block_bytes = self.bs;
        spec.api = self.ioengine;
        (spec.depth, spec.jobs, spec.processes) = (self.iodepth, self.numjobs, self.process);
        (spec.direct, spec.polled) = (self.direct, self.hipri);
        (spec.memory, spec.sync) = (self.mem, self.sync);
        spec.flush = self.flush();
        spec.files = self.nrfiles;
        spec.size_bytes = self.size.unwrap_or(spec.size_bytes);
        spec.preparation = self.prepare;
        if let Some(rate_iops) = self.rate_iops {
            spec.pacing = Pacing::Open { rate_iops, process: self.rate_process };
        }
        spec.seed = self.randseed;
        spec.runtime = self.runtime;
        spec.write_bytes_max = self.max_write;
        spec.point_time = self.common.point_time.unwrap_or(spec.point_time);
        spec.precision = self.common.precision.unwrap_or(spec.precision);
        spec.check()?;
        Ok(spec)
    }

    fn flush(&self) -> Option<Flush> {
        let (method, every) = match (self.fsync, self.fdatasync) {
            (Some(every), _) => (FlushMethod::Fsync, every),
            (None, Some(every)) => (FlushMethod::Fdatasync, every),
            (None, None) => return None,
        };
        let (scope, count) = (self.fsync_scope, self.fsync_every);
        Some(Flush { method, every, scope, count })
    }
}
