//! One worker as a thing to start, in a thread or a process: its spec, its files, its part of the
//! shared statistics.
//!
//! Invariant: a job starts the same way in a thread and in a process. It opens its own descriptors,
//! so that workers share no file reference count.

use std::io::{self, BufRead, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use iostrata_io::{
    ApiConfig, Buffers, FileApi, FileCall, FileSpec, LibaioApi, MmapApi, NullApi, OpenFiles,
    OpenMode, OpenSync, Pages, SyncApi, SyncKind, UringApi, WriteThrough,
};
use iostrata_plan::{
    FlushMethod, IoApi, IoSpec, Memory, Mix, OpKind, Pacing, RangeSteps, SyncWrites,
};
use iostrata_stats::Verdict;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, ClockFacts, MonotonicClock, TscClock};
use crate::detail::{Submissions, is_apart};
use crate::error::LoadError;
use crate::outcome::{CpuOf, JobOutcome, StreamOptions};
use crate::recorder::Recorder;
use crate::segment::HistogramNeeds;
use crate::shared_stats::{SharedStats, StatsLayout, WorkerState};
use crate::tally::Span;
use crate::worker::{Worker, WorkerParts};

/// One workload of a window and the files it runs on.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// What it stands for.
    pub name: String,
    /// The workload.
    pub spec: IoSpec,
    /// The prepared files; empty for the null API.
    pub files: Vec<FileSpec>,
    /// Whether its requests are noted in detail.
    pub detail: bool,
}

/// One worker to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// Number among all workers of the window.
    pub number: u32,
    /// Number among the workers of its stream.
    pub job: u32,
    pub spec: IoSpec,
    /// Paths and usable bytes; empty for the null API.
    pub files: Vec<(std::path::PathBuf, u64)>,
    /// Slices at which its segments begin.
    pub first_slices: Vec<usize>,
    /// Its part of the window.
    pub span: Span,
    /// Whether its requests are noted in detail.
    pub detail: bool,
}

impl Job {
    /// Runs the worker on the calling thread with the clock that `facts` chose. Returns after the
    /// window; posts its state, also when it fails.
    pub(crate) fn run(
        &self,
        shared: &SharedStats,
        facts: &ClockFacts,
    ) -> Result<JobOutcome, LoadError> {
        let bound = self.bind();
        let mut outcome = match facts.tsc_ns_per_tick {
            Some(ns_per_tick) => self.run_with_clock(shared, TscClock::new(ns_per_tick)),
            None => self.run_with_clock(shared, MonotonicClock).map(|mut outcome| {
                outcome.verdicts.add(Verdict::ClockFallback);
                outcome
            }),
        };
        shared.post_state(self.number, WorkerState::Done);
        if let (Ok(outcome), Err(why)) = (&mut outcome, bound) {
            outcome.notes.push(format!("cpus_allowed: {why}; workers run on every processor"));
        }
        outcome
    }

    /// Leaves the calling thread only the processors that its spec names.
    fn bind(&self) -> std::io::Result<()> {
        let cpus = &self.spec.variation.cpus;
        if cpus.is_empty() {
            return Ok(());
        }
        let mut set = CpuSet::new();
        let known = cpus.iter().filter(|cpu| (**cpu as usize) < CpuSet::MAX_CPU);
        known.for_each(|cpu| set.set(*cpu as usize));
        Ok(sched_setaffinity(None, &set)?)
    }

    fn run_with_clock<C: Clock>(
        &self,
        shared: &SharedStats,
        clock: C,
    ) -> Result<JobOutcome, LoadError> {
        let files = self.open()?;
        match self.spec.api {
            IoApi::Null => self.drive::<NullApi, C>(shared, clock, &files),
            IoApi::Sync => self.drive::<SyncApi, C>(shared, clock, &files),
            IoApi::Libaio => self.drive::<LibaioApi, C>(shared, clock, &files),
            IoApi::IoUring => self.drive::<UringApi, C>(shared, clock, &files),
            IoApi::Mmap => self.drive::<MmapApi, C>(shared, clock, &files),
        }
    }

    fn open(&self) -> Result<OpenFiles, LoadError> {
        if self.spec.api == IoApi::Null {
            let end = self.spec.variation.offset_bytes + self.spec.file_bytes();
            return Ok(OpenFiles::null(self.spec.files, end));
        }
        let specs: Vec<FileSpec> = self
            .files
            .iter()
            .map(|(path, bytes)| FileSpec { path: path.clone(), bytes: *bytes })
            .collect();
        if self.spec.variation.call.is_some_and(|call| call.is_by_name()) {
            return Ok(OpenFiles::named(&specs));
        }
        let files = OpenFiles::open(&specs, open_mode(&self.spec))?;
        if self.spec.variation.drop_cache {
            files.drop_cached();
        }
        if self.spec.variation.pre_read {
            files.read_into_cache();
        }
        Ok(files)
    }

    /// The same with a given API, clock and files: what tests of the loop call.
    pub(crate) fn drive<A: FileApi, C: Clock>(
        &self,
        shared: &SharedStats,
        clock: C,
        files: &OpenFiles,
    ) -> Result<JobOutcome, LoadError> {
        let spec = &self.spec;
        let buffers = if spec.api == IoApi::Null {
            Buffers::none()
        } else {
            let seed = spec.seed.wrapping_add(u64::from(self.number) << 32);
            let pages = match spec.memory {
                Memory::Malloc => Pages::Small,
                Memory::MmapHuge => Pages::Huge,
            };
            // A discard has no content, nor has a call for a file.
            let has_none = spec.mix == Mix::Trim || spec.variation.call.is_some();
            let bytes = if has_none { 4096 } else { spec.block_bytes_most() };
            Buffers::in_pages(pages, spec.depth, bytes, seed)?
        };
        let (api, caps) = A::start(&api_config(spec), files, &buffers)?;
        let recorded = HistogramNeeds { detail: self.detail, ..recorded(spec) };
        let recorder = Recorder::new(shared.clone(), self.number, &self.first_slices, &recorded);
        let parts = WorkerParts {
            clock,
            shared: shared.clone(),
            recorder,
            files: files.clone(),
            buffers,
            number: self.number,
            job: self.job,
            span: self.span,
            flush: sync_kind(spec),
            submissions: self.detail.then(|| Box::new(Submissions::of(spec))),
        };
        let worker = Worker::new(spec, api, parts)?;
        shared.post_state(self.number, WorkerState::Ready);
        let start = shared.wait_for_start();
        let (recorder, failure) = worker.run(start)?;
        let notes = caps.refused.iter().map(|refused| format!("{}: {}", refused.what, refused.why));
        Ok(JobOutcome {
            segments: recorder.into_segments(),
            failure,
            notes: notes.collect(),
            verdicts: caps
                .is_memlock_limited
                .then_some(Verdict::MemlockLimited)
                .into_iter()
                .collect(),
        })
    }
}

/// How the files of a workload are opened.
pub fn open_mode(spec: &IoSpec) -> OpenMode {
    let sync = match spec.sync {
        SyncWrites::None | SyncWrites::RwfDsync => OpenSync::None,
        SyncWrites::Dsync => OpenSync::Dsync,
        SyncWrites::Sync => OpenSync::Sync,
    };
    let flushes = matches!(spec.mix, Mix::FlushOnly(_));
    OpenMode { direct: spec.direct, write: spec.changes_files() || flushes, sync }
}

/// How a workload flushes its files.
fn sync_kind(spec: &IoSpec) -> SyncKind {
    let logged = match &spec.variation.replay {
        Some(replay) if replay.is_fdatasync => FlushMethod::Fdatasync,
        _ => FlushMethod::Fsync,
    };
    let method = match (spec.flush, spec.mix) {
        (Some(flush), _) => flush.method,
        (None, Mix::FlushOnly(method)) => method,
        (None, _) => logged,
    };
    match method {
        FlushMethod::Fsync => SyncKind::Fsync,
        FlushMethod::Fdatasync => SyncKind::Fdatasync,
        FlushMethod::SyncFileRange(RangeSteps { wait_before, write, wait_after }) => {
            let flags = [
                (wait_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE),
                (write, libc::SYNC_FILE_RANGE_WRITE),
                (wait_after, libc::SYNC_FILE_RANGE_WAIT_AFTER),
            ];
            let asked = flags.into_iter().filter(|(is_asked, _)| *is_asked);
            SyncKind::Range(asked.map(|(_, flag)| flag).sum())
        }
    }
}

fn api_config(spec: &IoSpec) -> ApiConfig {
    ApiConfig {
        depth: spec.depth,
        sync_kind: sync_kind(spec),
        write_through: match spec.sync {
            SyncWrites::RwfDsync => WriteThrough::Dsync,
            _ => WriteThrough::None,
        },
        registered: true,
        polled: spec.polled,
        call: spec.variation.call.map(|call| match call {
            iostrata_plan::FileCall::Allocate => FileCall::Allocate,
            iostrata_plan::FileCall::Truncate => FileCall::Truncate,
            iostrata_plan::FileCall::Create => FileCall::Create,
            iostrata_plan::FileCall::Stat => FileCall::Stat,
            iostrata_plan::FileCall::Delete => FileCall::Delete,
        }),
    }
}

/// Slices of the longest series that a stream of requests keeps.
const SERIES_POINTS_MAX: usize = 3_000;

/// What figures have to know of a workload.
pub(crate) fn asked(name: &str, spec: &IoSpec) -> StreamOptions {
    let is_null = spec.api == IoApi::Null;
    let is_closed = spec.pacing == Pacing::Closed && spec.flush.is_none();
    StreamOptions {
        name: name.to_owned(),
        precision: spec.precision,
        in_flight_max: spec.in_flight_max(),
        holds_depth: is_closed && spec.depth > 1,
        workers: spec.jobs,
        cpu_of: if is_null { CpuOf::Figure } else { CpuOf::Meter },
        block_bytes: spec.variation.is_plain_loop().then_some(spec.block_bytes),
        reads: spec.mix.reads(),
        has_transactions: false,
        series_points_max: SERIES_POINTS_MAX,
    }
}

/// What is recorded of a workload.
pub(crate) fn recorded(spec: &IoSpec) -> HistogramNeeds {
    let flushes = spec.flush.is_some()
        || matches!(spec.mix, Mix::FlushOnly(_))
        || spec.variation.replay.as_ref().is_some_and(|replay| replay.flushes);
    let reads_back =
        spec.mix.writes() && spec.variation.verify.as_ref().is_some_and(|one| one.reads_back);
    let does = [spec.mix.reads() || reads_back, spec.mix.writes(), flushes];
    let does = OpKind::OF_FILES.into_iter().zip(does);
    let kinds = does.chain([(OpKind::Trim, spec.mix.trims())]).filter(|(_, does)| *does);
    HistogramNeeds {
        kinds: kinds.map(|(kind, _)| kind).collect(),
        scheduled: spec.pacing != Pacing::Closed,
        detail: false,
        is_apart: is_apart(spec.api),
    }
}

// Workers as processes: the program runs itself again, since forking after threads is not safe.
//
// Invariant: a child that outlives its parent ends with it (its standard input closes and the
// parent-death signal fires); it writes nothing but its answer to standard output.

/// The hidden subcommand under which the program runs as a worker.
pub const WORKER_COMMAND: &str = "__worker";

/// The order to a worker process, in one line of JSON; parent and child are the same program, so
/// that the form needs no version.
#[derive(Serialize, Deserialize)]
struct Order {
    job: Job,
    layout: StatsLayout,
    clock: ClockFacts,
    /// The descriptor number under which the child finds the shared statistics.
    shared_fd: i32,
    /// The process that gives the order.
    parent: u32,
}

/// What it answers.
#[derive(Serialize, Deserialize)]
struct Answer(Result<JobOutcome, String>);

/// Runs one job in a child process and waits for its answer.
pub(crate) fn run_in_child(
    program: &Path,
    job: &Job,
    workers: u32,
    shared: &SharedStats,
    clock: &ClockFacts,
) -> Result<JobOutcome, LoadError> {
    let spawn = |source| LoadError::Spawn { worker: job.number, workers, source };
    // The descriptor is duplicated without close-on-exec, so that the child inherits it.
    let inherited = rustix::io::dup(shared.file()).map_err(|errno| spawn(errno.into()))?;
    let order = Order {
        job: job.clone(),
        layout: shared.layout().clone(),
        clock: clock.clone(),
        shared_fd: inherited.as_fd().as_raw_fd(),
        parent: std::process::id(),
    };
    let mut child = Command::new(program)
        .arg(WORKER_COMMAND)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(spawn)?;
    let lost = |why: String| LoadError::WorkerLost { worker: job.number, why };
    send(&mut child, &order).map_err(|error| lost(error.to_string()))?;
    let output = child.wait_with_output().map_err(|error| lost(error.to_string()))?;
    let last_words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match serde_json::from_slice(&output.stdout) {
        Ok(Answer(Ok(outcome))) => Ok(outcome),
        Ok(Answer(Err(why))) => Err(lost(why)),
        Err(_) => Err(lost(format!("{} {last_words}", output.status))),
    }
}

fn send(child: &mut Child, order: &Order) -> io::Result<()> {
    let Some(stdin) = child.stdin.as_mut() else { return Ok(()) };
    serde_json::to_writer(&mut *stdin, order)?;
    stdin.write_all(b"\n")?;
    stdin.flush()
}

/// The whole life of a worker process: order on standard input, answer on standard output.
///
/// # Errors
/// When the order cannot be read or the answer not be written: the parent is gone.
pub fn worker_main() -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let mut line = String::new();
    io::stdin().lock().take(1 << 24).read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line)?;
    check_parent(order.parent)?;
    let answer = Answer(carry_out(order));
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, &answer)?;
    out.flush()
}

/// A parent that was killed before the signal of its death was requested sends none.
fn check_parent(expected: u32) -> io::Result<()> {
    if std::os::unix::process::parent_id() == expected {
        return Ok(());
    }
    Err(io::Error::other("the process that gave the order is gone"))
}

fn carry_out(order: Order) -> Result<JobOutcome, String> {
    let file = crate::region::take(order.shared_fd);
    let shared = SharedStats::inherited(file, order.layout).map_err(|error| error.to_string())?;
    order.job.run(&shared, &order.clock).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_whose_parent_is_gone_does_nothing() {
        assert!(check_parent(std::os::unix::process::parent_id()).is_ok());
        assert!(check_parent(std::process::id()).is_err());
    }
}
